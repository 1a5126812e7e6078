//! What the relay counts, in the text formats of Prometheus and OpenMetrics.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::{HeaderMap, HeaderValue, header};
use potluck_relay_api::Eviction;

/// A number that only increases.
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

    /// The current value.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counters since the start. Bytes of weights per model are counted at the files themselves.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Bytes of weights sent, over all models, without headers.
    pub weight_bytes: Counter,
    /// Binary messages received from members.
    pub frames_received: Counter,
    /// Binary messages queued for receivers.
    pub frames_forwarded: Counter,
    /// Bytes of forwarded messages, routes included.
    pub bytes_forwarded: Counter,
    /// Messages with a route that was not in the room.
    pub frames_undeliverable: Counter,
    /// Malformed messages dropped.
    pub frames_bad: Counter,
    /// Pauses imposed on senders that were too fast.
    pub senders_limited: Counter,
    /// Rooms created, also those created again after a restart.
    pub rooms_created: Counter,
    /// Rooms dropped because they were empty for too long.
    pub rooms_expired: Counter,
    /// Members that joined.
    pub members_joined: Counter,
    /// Connections that were refused.
    pub members_refused: Counter,
    /// Members evicted because they received too slowly.
    pub evicted_slow: Counter,
    /// Members evicted because they were silent.
    pub evicted_silent: Counter,
    /// Members evicted because of a message far over the limit.
    pub evicted_frame: Counter,
    /// Members evicted because they sent more than a window.
    pub evicted_window: Counter,
    /// Members evicted because the memory was full.
    pub evicted_memory: Counter,
    /// Owners replaced by a later connection of theirs.
    pub evicted_replaced: Counter,
    /// Members that their room's owner evicted, or whose invite it revoked, and those of rooms that the operator ended.
    pub evicted_put_out: Counter,
    /// Connections closed at once because there were too many.
    pub connections_refused: Counter,
    /// Downloads refused because there were too many.
    pub requests_limited: Counter,
}

/// How the metrics are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The Prometheus text format 0.0.4.
    Prometheus,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

impl Format {
    /// OpenMetrics if a request's `Accept` names it, as Prometheus does by itself.
    pub fn accepted(headers: &HeaderMap) -> Self {
        let mut accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let is_named = accepted.any(|kinds| kinds.contains("application/openmetrics-text"));
        if is_named { Self::OpenMetrics } else { Self::Prometheus }
    }

    /// The content type.
    pub fn kind(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        })
    }
}

/// Values read when the metrics are requested.
#[derive(Clone, Debug, Default)]
pub struct Gauges {
    /// The relay is about to stop.
    pub is_draining: bool,
    /// Current rooms.
    pub rooms: usize,
    /// Current members in all rooms, also those that have not entered yet.
    pub members: usize,
    /// Current connections of any kind.
    pub connections: usize,
    /// Bytes of messages, waiting or unfinished.
    pub queued_bytes: usize,
    /// Bytes of weights sent, by model name.
    pub model_bytes: Vec<(String, u64)>,
}

impl Metrics {
    /// Counts an eviction.
    pub fn evicted(&self, reason: Eviction) {
        match reason {
            Eviction::SlowReceiver => self.evicted_slow.inc(),
            Eviction::Silent => self.evicted_silent.inc(),
            Eviction::FrameTooLong => self.evicted_frame.inc(),
            Eviction::WindowExceeded => self.evicted_window.inc(),
            Eviction::RelayFull => self.evicted_memory.inc(),
            Eviction::Replaced | Eviction::Superseded => self.evicted_replaced.inc(),
            Eviction::PutOut | Eviction::InviteRevoked | Eviction::LinkRenewed | Eviction::Ended => {
                self.evicted_put_out.inc()
            }
            Eviction::Unknown => {}
        }
    }

    /// All counters and `gauges`.
    pub fn render(&self, gauges: &Gauges, format: Format) -> String {
        let mut out = String::with_capacity(4096);
        let mut family = |name: &str, kind: &str, help: &str, rows: &[(String, u64)]| {
            let described = match format {
                Format::Prometheus => name,
                Format::OpenMetrics => name.strip_suffix("_total").unwrap_or(name),
            };
            // Writing to a String cannot fail.
            let _ = writeln!(out, "# HELP potluck_relay_{described} {help}\n# TYPE potluck_relay_{described} {kind}");
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
        family("frames_received_total", "counter", "Messages received.", &one(self.frames_received.get()));
        family(
            "frames_forwarded_total",
            "counter",
            "Messages queued for receivers.",
            &one(self.frames_forwarded.get()),
        );
        family("bytes_forwarded_total", "counter", "Bytes of forwarded messages.", &one(self.bytes_forwarded.get()));
        let dropped = [reason("undeliverable", &self.frames_undeliverable), reason("bad-frame", &self.frames_bad)];
        family("frames_dropped_total", "counter", "Messages dropped.", &dropped);
        family("senders_limited_total", "counter", "Pauses imposed on senders.", &one(self.senders_limited.get()));
        family("draining", "gauge", "1 while the relay is about to stop.", &one(gauges.is_draining.into()));
        family("rooms", "gauge", "Current rooms.", &one(gauges.rooms as u64));
        family("rooms_created_total", "counter", "Rooms created.", &one(self.rooms_created.get()));
        family("rooms_expired_total", "counter", "Rooms dropped when empty.", &one(self.rooms_expired.get()));
        family("members", "gauge", "Current members.", &one(gauges.members as u64));
        family("members_joined_total", "counter", "Members that joined.", &one(self.members_joined.get()));
        family("members_refused_total", "counter", "Connections refused.", &one(self.members_refused.get()));
        let evictions = [
            reason("slow-receiver", &self.evicted_slow),
            reason("silent", &self.evicted_silent),
            reason("frame-too-long", &self.evicted_frame),
            reason("window-exceeded", &self.evicted_window),
            reason("relay-full", &self.evicted_memory),
            reason("replaced", &self.evicted_replaced),
            reason("put-out", &self.evicted_put_out),
        ];
        family("evictions_total", "counter", "Members evicted.", &evictions);
        family("connections", "gauge", "Current connections.", &one(gauges.connections as u64));
        family(
            "connections_refused_total",
            "counter",
            "Connections closed at once.",
            &one(self.connections_refused.get()),
        );
        family("queued_bytes", "gauge", "Bytes of messages waiting or unfinished.", &one(gauges.queued_bytes as u64));
        family("requests_limited_total", "counter", "Requests answered with 429.", &one(self.requests_limited.get()));
        if format == Format::OpenMetrics {
            out.push_str("# EOF\n");
        }
        out
    }
}

/// Escapes a label value: backslash, quote and line feed.
fn escape(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_and_gauges_have_names_labels_and_values() {
        let metrics = Metrics::default();
        metrics.weight_bytes.add(42);
        metrics.evicted_slow.inc();
        let gauges = Gauges { rooms: 2, model_bytes: vec![("a\"b".into(), 7)], ..Gauges::default() };
        let text = metrics.render(&gauges, Format::Prometheus);
        assert!(text.contains("\npotluck_relay_weight_bytes_total 42\n"));
        assert!(text.contains("\npotluck_relay_model_bytes_total{model=\"a\\\"b\"} 7\n"));
        assert!(text.contains("\npotluck_relay_evictions_total{reason=\"slow-receiver\"} 1\n"));
        assert!(text.contains("\n# TYPE potluck_relay_rooms gauge\npotluck_relay_rooms 2\n"));
        let open = metrics.render(&gauges, Format::OpenMetrics);
        assert!(open.contains("# TYPE potluck_relay_weight_bytes counter\npotluck_relay_weight_bytes_total 42\n"));
        assert!(open.ends_with("\n# EOF\n") && !text.contains("# EOF"));
    }

    #[test]
    fn who_asks_for_openmetrics_gets_it() {
        let asked = |accept: &'static str| {
            Format::accepted(&[(header::ACCEPT, HeaderValue::from_static(accept))].into_iter().collect())
        };
        // As Prometheus 2 and 3 ask.
        let accept = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.4,*/*;q=0.3";
        assert_eq!((asked(accept), asked("*/*")), (Format::OpenMetrics, Format::Prometheus));
    }
}
