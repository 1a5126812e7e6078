//! Links to the relay: latency, jitter, bandwidth, loss, and what a cut does to them.
//!
//! Frames travel in WebSockets, so nothing is lost, duplicated or reordered on a connection. A lost packet is sent
//! again: its content and everything behind it is delayed. If it does not get through after several tries, the
//! connection ends.

use super::random::Random;

/// Bytes of a packet.
const PACKET: usize = 1460;
/// TCP retransmits a packet after this time, then after twice as long. The loss of a burst's last packet is only
/// noticed by this timer, and a token's frame is a burst of one.
const RESEND_MILLIS: f64 = 200.0;
/// A link sleeps after this idle time.
const ASLEEP_MILLIS: f64 = 50.0;
/// A packet lost this often ends the connection.
const MAX_TRIES: u32 = 6;

/// A peer's link to the relay, symmetric but for its bandwidth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// One way, milliseconds.
    pub latency: f64,
    /// Additional delay, uniform from 0 to this.
    pub jitter: f64,
    /// Share of packets that are lost on the way (and sent again).
    pub loss: f64,
    /// Additional delay on an idle link, milliseconds: radios and processors sleep.
    pub wake: f64,
    /// Bytes a second towards the relay.
    pub up: f64,
    /// Bytes a second from the relay.
    pub down: f64,
}

impl Default for Link {
    /// No delay at all.
    fn default() -> Self {
        Self { latency: 0.0, jitter: 0.0, loss: 0.0, wake: 0.0, up: f64::INFINITY, down: f64::INFINITY }
    }
}

impl Link {
    /// A link with this one-way latency.
    pub fn after(latency: f64) -> Self {
        Self { latency, ..Self::default() }
    }

    /// Nothing depends on how long a frame is.
    pub(crate) fn ignores_length(&self) -> bool {
        self.loss == 0.0 && self.up.is_infinite() && self.down.is_infinite()
    }
}

/// One direction of one connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lane {
    /// The sender's last bit is on the wire.
    free: f64,
    /// The last frame arrives: nothing overtakes it.
    last: f64,
}

/// How a frame passes a lane.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Passage {
    /// It arrives at this time.
    Arrives(f64),
    /// It never gets through: the connection ends at this time.
    Breaks(f64),
}

impl Lane {
    /// Sends `bytes` at `now` behind what was sent before.
    pub fn pass(&mut self, now: f64, bytes: usize, rate: f64, link: &Link, random: &mut Random) -> Passage {
        let wake = if now - self.last > ASLEEP_MILLIS { link.wake } else { 0.0 };
        self.free = self.free.max(now) + bytes as f64 / rate * 1e3;
        let delay = wake + link.latency + if link.jitter > 0.0 { link.jitter * random.unit() } else { 0.0 };
        let again = if link.loss > 0.0 { resent(bytes, link, random) } else { Some(0.0) };
        match again {
            Some(again) => {
                self.last = self.last.max(self.free + delay + again);
                Passage::Arrives(self.last)
            }
            None => Passage::Breaks(self.free + RESEND_MILLIS * f64::from(2u32.pow(MAX_TRIES) - 1)),
        }
    }

    /// Nothing arrives before `until`: the link is cut. Returns when a frame due now arrives instead.
    pub fn hold_until(&mut self, until: f64) -> f64 {
        self.last = self.last.max(until);
        self.last
    }
}

/// Milliseconds until the last packet of a frame is through, beyond its usual time; `None` if it never is.
fn resent(bytes: usize, link: &Link, random: &mut Random) -> Option<f64> {
    let packets = bytes.div_ceil(PACKET).max(1) as i32;
    let mut lost = 1.0 - (1.0 - link.loss).powi(packets);
    let (mut wait, mut total) = (RESEND_MILLIS + 2.0 * link.latency, 0.0);
    for _ in 0..MAX_TRIES {
        if random.unit() >= lost {
            return Some(total);
        }
        total += wait;
        wait *= 2.0;
        lost = link.loss;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(lane: &mut Lane, now: f64, bytes: usize, link: &Link) -> f64 {
        match lane.pass(now, bytes, link.up, link, &mut Random(1)) {
            Passage::Arrives(at) => at,
            Passage::Breaks(at) => panic!("the connection broke at {at}"),
        }
    }

    #[test]
    fn frames_queue_behind_each_other_on_a_slow_link() {
        let link = Link { latency: 10.0, up: 1_000.0, ..Link::default() };
        let mut lane = Lane::default();
        assert_eq!(arrival(&mut lane, 0.0, 100, &link), 110.0, "100 bytes take 100 ms, then 10 ms on the way");
        assert_eq!(arrival(&mut lane, 50.0, 100, &link), 210.0, "the second waits for the first");
        assert_eq!(arrival(&mut lane, 500.0, 100, &link), 610.0, "an idle line is free again");
    }

    #[test]
    fn frames_stay_in_order_whatever_the_jitter() {
        let link = Link { latency: 1.0, jitter: 50.0, ..Link::default() };
        let (mut lane, mut random, mut last) = (Lane::default(), Random(3), 0.0);
        for i in 0..200 {
            let Passage::Arrives(at) = lane.pass(f64::from(i), 10, link.up, &link, &mut random) else { continue };
            assert!(at >= last, "frame {i} arrives at {at}, the one before at {last}");
            last = at;
        }
    }

    #[test]
    fn a_lost_packet_is_a_delay_and_a_dead_link_an_end() {
        let (mut lane, mut random) = (Lane::default(), Random(5));
        let lossy = Link { loss: 0.1, ..Link::after(10.0) };
        let times: Vec<f64> = (0..500)
            .map(|i| match lane.pass(f64::from(i) * 10_000.0, 100, lossy.up, &lossy, &mut random) {
                Passage::Arrives(at) => at - f64::from(i) * 10_000.0,
                Passage::Breaks(_) => panic!("six losses in a row of one in ten"),
            })
            .collect();
        let late = times.iter().filter(|time| **time > 200.0).count();
        assert!((30..=75).contains(&late), "about one in ten comes late, {late} of 500 did");
        let dead = Link { loss: 1.0, ..Link::after(10.0) };
        assert!(matches!(lane.pass(1e9, 100, dead.up, &dead, &mut random), Passage::Breaks(_)));
    }
}
