//! What the relay counts, and its Prometheus text form.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds one.
    pub fn inc(&self) {
        self.add(1);
    }

    /// Adds `n`.
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// The value now.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Everything the relay counts since its start. Bytes of weights per model are counted at the models themselves.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Bytes of weights sent, over all models; headers and multipart boundaries not counted.
    pub weight_bytes: Counter,
    /// Binary messages taken from members.
    pub frames_received: Counter,
    /// Binary messages put into the queues of receivers; one to everyone counts once for each receiver.
    pub frames_forwarded: Counter,
    /// Bytes of forwarded messages, routes included.
    pub bytes_forwarded: Counter,
    /// Messages whose route was not in the room.
    pub frames_undeliverable: Counter,
    /// Messages dropped because of their form.
    pub frames_bad: Counter,
    /// Pauses imposed on senders that were too fast.
    pub senders_limited: Counter,
    /// Rooms made, also those made again after a restart.
    pub rooms_created: Counter,
    /// Rooms dropped because nobody was in them for too long.
    pub rooms_expired: Counter,
    /// Members that came in.
    pub members_joined: Counter,
    /// Connections that were not let in.
    pub members_refused: Counter,
    /// Members put out because they took too little too slowly.
    pub evicted_slow: Counter,
    /// Members put out because they were silent.
    pub evicted_silent: Counter,
    /// Members put out because of a message far over the limit.
    pub evicted_frame: Counter,
    /// HTTP requests answered with 429.
    pub requests_limited: Counter,
}

/// Values that the relay reads at the moment it is asked.
#[derive(Clone, Debug, Default)]
pub struct Gauges {
    /// Rooms that exist.
    pub rooms: usize,
    /// Members in all rooms.
    pub members: usize,
    /// Bytes that wait for receivers.
    pub queued_bytes: usize,
    /// Bytes of weights sent, for each model by name.
    pub model_bytes: Vec<(String, u64)>,
}

impl Metrics {
    /// The Prometheus text form of all counters and of `gauges`.
    pub fn render(&self, gauges: &Gauges) -> String {
        let mut out = String::with_capacity(4096);
        let mut family = |name: &str, kind: &str, help: &str, rows: &[(String, u64)]| {
            // Writing to a String cannot fail.
            let _ = writeln!(out, "# HELP potluck_relay_{name} {help}\n# TYPE potluck_relay_{name} {kind}");
            for (labels, value) in rows {
                let _ = writeln!(out, "potluck_relay_{name}{labels} {value}");
            }
        };
        let one = |value: u64| [(String::new(), value)];
        let reason = |reason: &str, counter: &Counter| (format!("{{reason=\"{reason}\"}}"), counter.get());

        family("weight_bytes_total", "counter", "Bytes of weights sent.", &one(self.weight_bytes.get()));
        let models: Vec<_> =
            gauges.model_bytes.iter().map(|(name, n)| (format!("{{model=\"{}\"}}", escape(name)), *n)).collect();
        family("model_bytes_total", "counter", "Bytes of weights sent, by model.", &models);
        family("frames_received_total", "counter", "Messages from members.", &one(self.frames_received.get()));
        family("frames_forwarded_total", "counter", "Messages to receivers.", &one(self.frames_forwarded.get()));
        family("bytes_forwarded_total", "counter", "Bytes of forwarded messages.", &one(self.bytes_forwarded.get()));
        let dropped = [reason("undeliverable", &self.frames_undeliverable), reason("bad-frame", &self.frames_bad)];
        family("frames_dropped_total", "counter", "Messages dropped.", &dropped);
        family("senders_limited_total", "counter", "Pauses of senders.", &one(self.senders_limited.get()));
        family("rooms", "gauge", "Rooms that exist.", &one(gauges.rooms as u64));
        family("rooms_created_total", "counter", "Rooms made.", &one(self.rooms_created.get()));
        family("rooms_expired_total", "counter", "Rooms dropped when empty.", &one(self.rooms_expired.get()));
        family("members", "gauge", "Members in all rooms.", &one(gauges.members as u64));
        family("members_joined_total", "counter", "Members that came in.", &one(self.members_joined.get()));
        family("members_refused_total", "counter", "Connections refused.", &one(self.members_refused.get()));
        let evictions = [
            reason("slow-receiver", &self.evicted_slow),
            reason("silent", &self.evicted_silent),
            reason("frame-too-long", &self.evicted_frame),
        ];
        family("evictions_total", "counter", "Members put out.", &evictions);
        family("queued_bytes", "gauge", "Bytes waiting for receivers.", &one(gauges.queued_bytes as u64));
        family("requests_limited_total", "counter", "Requests with 429.", &one(self.requests_limited.get()));
        out
    }
}

/// A label value as Prometheus wants it: backslash, quote and line feed escaped.
fn escape(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_labels_and_values_are_written() {
        let metrics = Metrics::default();
        metrics.weight_bytes.add(42);
        metrics.evicted_slow.inc();
        let gauges = Gauges { rooms: 2, model_bytes: vec![("a\"b".into(), 7)], ..Gauges::default() };
        let text = metrics.render(&gauges);
        assert!(text.contains("\npotluck_relay_weight_bytes_total 42\n"));
        assert!(text.contains("\npotluck_relay_model_bytes_total{model=\"a\\\"b\"} 7\n"));
        assert!(text.contains("\npotluck_relay_evictions_total{reason=\"slow-receiver\"} 1\n"));
        assert!(text.contains("\n# TYPE potluck_relay_rooms gauge\npotluck_relay_rooms 2\n"));
    }
}
