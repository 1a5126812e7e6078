//! Which path to a member on another device is quicker, by pings on both, and whether the channel still works.

use std::collections::VecDeque;

use potluck_plan::Millis;

use super::messages::{ChannelControl, Outgoing, PING_PADDING, RelayControl};

/// The channel gets a ping with each tick, and the relay one for so many of these.
const CHANNEL_PINGS: u32 = 5;
/// The channel stalls if a ping is not answered for so long.
const STALL_MILLIS: f64 = 700.0;
/// The relay's answer is awaited for so long.
const LOST_MILLIS: f64 = 5_000.0;
/// If this device itself was busy for so long, a late answer says nothing.
const OWN_PAUSE_MILLIS: f64 = 450.0;
/// Answers of which the median counts.
const SAMPLES: usize = 5;
/// Answers on each path before one is preferred.
const ENOUGH: usize = 3;
/// The other path must be quicker by this factor to be taken.
const BETTER: f64 = 1.2;

/// The last round trips on a path.
#[derive(Default)]
struct Path {
    waiting: Option<(u32, Millis)>,
    round_trips: VecDeque<f64>,
}

impl Path {
    fn ping(&mut self, number: u32, now: Millis) {
        self.waiting = Some((number, now));
    }

    fn pong(&mut self, number: u32, now: Millis) {
        if let Some((waiting, at)) = self.waiting
            && waiting == number
        {
            self.waiting = None;
            self.round_trips.push_back(now.0 - at.0);
            if self.round_trips.len() > SAMPLES {
                self.round_trips.pop_front();
            }
        }
    }

    /// In milliseconds, once it is known.
    fn median(&self) -> Option<f64> {
        let mut sorted: Vec<f64> = self.round_trips.iter().copied().collect();
        sorted.sort_by(f64::total_cmp);
        (sorted.len() >= ENOUGH).then(|| sorted[sorted.len() / 2])
    }
}

/// Measures both paths to one member.
#[derive(Default)]
pub struct Latency {
    channel: Path,
    relay: Path,
    pings: u32,
    last_tick: Option<Millis>,
    prefers_channel: bool,
}

impl Latency {
    /// To be called a few times a second while the channel is up.
    pub fn tick(&mut self, now: Millis) -> Vec<Outgoing> {
        let paused = self.last_tick.is_some_and(|last| now.0 - last.0 > OWN_PAUSE_MILLIS);
        self.last_tick = Some(now);
        if let (true, Some((_, at))) = (paused, &mut self.channel.waiting) {
            *at = now;
        }
        // One ping at a time: its age says how long nothing has come.
        if self.channel.waiting.is_some() {
            return Vec::new();
        }
        self.pings = self.pings.wrapping_add(1);
        self.channel.ping(self.pings, now);
        let mut outgoing = vec![Outgoing::ChannelControl(ChannelControl::Ping(self.pings, "0".repeat(PING_PADDING)))];
        let is_due = self.relay.median().is_none() || self.pings.is_multiple_of(CHANNEL_PINGS);
        if is_due && self.relay.waiting.is_none_or(|(_, at)| now.0 - at.0 > LOST_MILLIS) {
            self.relay.ping(self.pings, now);
            outgoing.push(Outgoing::RelayControl(RelayControl::Ping(self.pings)));
        }
        outgoing
    }

    /// An answer on the channel.
    pub fn channel_pong(&mut self, number: u32, now: Millis) {
        self.channel.pong(number, now);
        self.compare();
    }

    /// An answer through the relay.
    pub fn relay_pong(&mut self, number: u32, now: Millis) {
        self.relay.pong(number, now);
        self.compare();
    }

    fn compare(&mut self) {
        let (Some(channel), Some(relay)) = (self.channel.median(), self.relay.median()) else { return };
        let (now, other) = if self.prefers_channel { (channel, relay) } else { (relay, channel) };
        if other * BETTER < now {
            self.prefers_channel = !self.prefers_channel;
        }
    }

    /// The channel is the quicker path.
    pub fn prefers_channel(&self) -> bool {
        self.prefers_channel
    }

    /// Nothing comes through the channel any more.
    pub fn is_stalled(&self, now: Millis) -> bool {
        self.channel.waiting.is_some_and(|(_, at)| now.0 - at.0 > STALL_MILLIS)
    }

    /// Round trips on the channel and through the relay, in milliseconds, as far as they are known.
    pub fn round_trips(&self) -> (Option<f64>, Option<f64>) {
        (self.channel.median(), self.relay.median())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Between two ticks.
    const PING_MILLIS: f64 = 200.0;

    /// Both paths answer after so many milliseconds; returns which one is preferred after `ticks`.
    fn settle(latency: &mut Latency, ticks: u32, channel: f64, relay: f64) -> bool {
        let start = latency.last_tick.map_or(0.0, |last| last.0);
        for tick in 1..=ticks {
            let now = start + PING_MILLIS * f64::from(tick);
            for ping in latency.tick(Millis(now)) {
                match ping {
                    Outgoing::ChannelControl(ChannelControl::Ping(number, _)) => {
                        latency.channel_pong(number, Millis(now + channel));
                    }
                    Outgoing::RelayControl(RelayControl::Ping(number)) => {
                        latency.relay_pong(number, Millis(now + relay));
                    }
                    other => panic!("{other:?} is no ping"),
                }
            }
        }
        latency.prefers_channel()
    }

    #[test]
    fn the_quicker_path_is_preferred_once_both_are_known_and_by_enough() {
        let mut latency = Latency::default();
        assert!(!settle(&mut latency, 2, 1.0, 20.0), "two answers are not enough");
        assert!(settle(&mut latency, 2, 1.0, 20.0));
        assert!(settle(&mut latency, 40, 22.0, 20.0), "a little slower is not worth a change");
        assert!(!settle(&mut latency, 40, 30.0, 20.0));
        assert!(settle(&mut latency, 40, 10.0, 20.0));
        assert_eq!(latency.round_trips(), (Some(10.0), Some(20.0)));
    }

    #[test]
    fn a_channel_on_which_nothing_comes_is_noticed_within_a_second() {
        let mut latency = Latency::default();
        settle(&mut latency, 4, 1.0, 20.0);
        let stalls_at = latency.last_tick.map_or(0.0, |last| last.0);
        let noticed = (1..20).map(|tick| stalls_at + PING_MILLIS * f64::from(tick)).find(|now| {
            latency.tick(Millis(*now));
            latency.is_stalled(Millis(*now))
        });
        assert!(noticed.is_some_and(|noticed| noticed - stalls_at <= 1_200.0), "{noticed:?} after {stalls_at}");
    }

    #[test]
    fn a_device_that_was_busy_itself_blames_no_channel() {
        let mut latency = Latency::default();
        settle(&mut latency, 4, 1.0, 20.0);
        latency.tick(Millis(1_000.0));
        latency.tick(Millis(9_000.0));
        assert!(!latency.is_stalled(Millis(9_000.0)), "it did not look for eight seconds");
        assert!(latency.is_stalled(Millis(9_800.0)));
    }
}
