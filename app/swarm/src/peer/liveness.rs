//! Heartbeats and probes: who is there, and how fast the links to them are.

use potluck_plan::{Millis, PeerId};
use potluck_protocol::{Frame, WorkerStatus};

use super::Peer;
use crate::limits::{self, MAX_ROUND_TRIPS};
use crate::members::Member;

/// Every peer sends everyone a heartbeat this often.
const HEARTBEAT_MILLIS: f64 = 1_000.0;
/// A device that had no work for this long counts as idle.
const IDLE_MILLIS: f64 = 1_500.0;
/// In a larger room each link is measured by single heartbeats: there are enough of them.
const MAX_ECHO_MEMBERS: usize = 12;

/// When this peer last did what others can notice.
pub(super) struct Liveness {
    /// The last heartbeat.
    heartbeat: Millis,
    /// The last tick.
    ticked: Millis,
    /// The last time it had something to compute or to load.
    pub worked: Millis,
}

impl Default for Liveness {
    fn default() -> Self {
        Self { heartbeat: Millis(f64::MIN), ticked: Millis(f64::MAX), worked: Millis(f64::MIN) }
    }
}

impl Liveness {
    /// Milliseconds since the last tick.
    pub fn tick(&mut self, now: Millis) -> f64 {
        now.0 - std::mem::replace(&mut self.ticked, now).0
    }
}

impl Peer {
    pub(super) fn beat(&mut self) {
        if self.cx.now.0 - self.liveness.heartbeat.0 < HEARTBEAT_MILLIS {
            return;
        }
        self.liveness.heartbeat = self.cx.now;
        let status = self.status();
        let me = self.identity.peer;
        let is_idle = self.is_idle();
        let hosts = self.coordinator.is_some();
        let probes = hosts && is_idle;
        let echoes = is_idle && self.cx.members.known.len() <= MAX_ECHO_MEMBERS;
        for (peer, member) in self.cx.members.known.iter_mut().filter(|(peer, _)| **peer != me) {
            // Who is in the room, and how far away, is nothing for those who are not.
            let is_stranger = hosts && !member.admitted;
            let status = status.clone().filter(|_| !is_stranger);
            self.cx.out.send(*peer, Frame::Heartbeat { sent: self.cx.now.0, status });
            if echoes {
                member.beat();
            }
            if let Some(bytes) = member.next_probe().filter(|_| probes) {
                member.probe();
                self.cx.out.send(*peer, Frame::Probe { sent: self.cx.now.0, bytes: vec![0; bytes] });
            }
        }
    }

    /// This device's status, sent with every heartbeat.
    pub(super) fn status(&self) -> Option<WorkerStatus> {
        let round_trip = |(peer, member): (&PeerId, &Member)| Some((*peer, 2.0 * member.link.latency_millis()?));
        let round_trips = self.cx.members.known.iter().filter_map(round_trip).take(MAX_ROUND_TRIPS).collect();
        Some(WorkerStatus { round_trips, ..self.worker.status(self.hidden, &self.cx.holders)? })
    }

    /// Nothing was computed or loaded here for a while, so a frame is handled as soon as it arrives.
    pub(super) fn is_idle(&self) -> bool {
        let answers = self.coordinator.as_ref().is_some_and(|coordinator| !coordinator.is_idle());
        !answers && !self.worker.is_busy() && self.cx.now.0 - self.liveness.worked.0 >= IDLE_MILLIS
    }

    /// A heartbeat or a probe is back. Measured beside work, it says how busy we are and not how long the path is
    /// (dynamic-partitioning.txt 4.3.2); such measurements count only while there is nothing better.
    pub(super) fn heard_back(&mut self, from: PeerId, sent: f64, probed: u32, idle: bool) {
        let millis = (self.cx.now.0 - sent).max(0.0);
        let Some(member) = self.cx.members.known.get_mut(&from).filter(|_| limits::is_time(millis)) else { return };
        if probed > 0 {
            member.probe_is_back();
        }
        match (probed, member.link.latency_millis()) {
            (0, _) if idle && member.echo() => {
                self.cx.out.send(from, Frame::Heartbeat { sent: self.cx.now.0, status: None })
            }
            (0, _) if idle => member.link.round_trip(millis),
            (0, _) => member.link.busy_round_trip(millis),
            // The answer is short, so it took half of a heartbeat's round trip.
            (1.., Some(back)) if idle => {
                member.probed(u64::from(probed), millis - back, millis);
                // The next one follows at once: nothing else is in flight.
                if let Some(bytes) = member.next_probe() {
                    member.probe();
                    self.cx.out.send(from, Frame::Probe { sent: self.cx.now.0, bytes: vec![0; bytes] });
                }
            }
            _ => {}
        }
    }
}
