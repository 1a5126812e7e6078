//! Who is in the room, and who is still there.

use std::collections::BTreeMap;

use potluck_plan::{Millis, PeerId};
use potluck_protocol::{Hello, WorkerStatus};

/// A connection that ended may come back (a reload, a flaky network): so long its peer is not given up.
pub(crate) const GRACE_MILLIS: f64 = 1_500.0;
/// The same after our own connection was lost: the others may take a while to be back too.
pub(crate) const GRACE_AFTER_OUTAGE_MILLIS: f64 = 10_000.0;
/// Nothing heard for so long: shown as silent.
pub(crate) const SILENT_MILLIS: f64 = 5_000.0;
/// Nothing heard for so long: given up.
pub(crate) const GONE_MILLIS: f64 = 20_000.0;

pub(crate) struct Member {
    pub hello: Hello,
    /// The host let it in (the host itself, and whoever brought the key).
    pub admitted: bool,
    pub status: WorkerStatus,
    pub heard: Millis,
    /// Its connection ended; given up at this time unless it is back.
    pub away_until: Option<Millis>,
    pub round_trip: f64,
    /// It could not get ready for a plan, or its device failed: one sentence. Cleared when it lends anew.
    pub failed: Option<String>,
}

impl Member {
    pub fn new(hello: Hello, now: Millis) -> Self {
        Self {
            hello,
            admitted: false,
            status: WorkerStatus::default(),
            heard: now,
            away_until: None,
            round_trip: 0.0,
            failed: None,
        }
    }

    /// It can be given work.
    pub fn lends(&self) -> bool {
        self.admitted && self.hello.contribution.is_some() && self.away_until.is_none() && self.failed.is_none()
    }

    pub fn is_silent(&self, now: Millis) -> bool {
        self.away_until.is_some() || now.0 - self.heard.0 > SILENT_MILLIS
    }
}

/// Everyone known, oneself included.
pub(crate) struct Members {
    pub me: PeerId,
    pub known: BTreeMap<PeerId, Member>,
}

impl Members {
    pub fn get(&self, peer: PeerId) -> Option<&Member> {
        self.known.get(&peer)
    }

    /// Still here: frames to it make sense.
    pub fn is_here(&self, peer: PeerId) -> bool {
        peer == self.me || self.known.get(&peer).is_some_and(|member| member.away_until.is_none())
    }

    pub fn name(&self, peer: PeerId) -> String {
        self.known.get(&peer).map_or_else(|| "A device".to_owned(), |member| member.hello.name.clone())
    }

    /// The peer that says it opened the room, if it is not oneself.
    pub fn host(&self) -> Option<PeerId> {
        self.known.iter().find(|(peer, member)| **peer != self.me && member.hello.coordinator).map(|(peer, _)| *peer)
    }

    pub fn heard(&mut self, peer: PeerId, now: Millis) {
        if let Some(member) = self.known.get_mut(&peer) {
            member.heard = now;
        }
    }

    /// Marks a peer whose connection ended.
    pub fn away(&mut self, peer: PeerId, until: Millis) {
        if let Some(member) = self.known.get_mut(&peer)
            && peer != self.me
            && member.away_until.is_none()
        {
            member.away_until = Some(until);
        }
    }

    /// Removes and returns who is to be given up.
    pub fn give_up(&mut self, now: Millis) -> Vec<(PeerId, Member)> {
        let me = self.me;
        let over = |member: &Member| {
            member.away_until.is_some_and(|until| now.0 >= until.0) || now.0 - member.heard.0 > GONE_MILLIS
        };
        let gone: Vec<PeerId> =
            self.known.iter().filter(|(peer, member)| **peer != me && over(member)).map(|(peer, _)| *peer).collect();
        gone.into_iter().filter_map(|peer| Some((peer, self.known.remove(&peer)?))).collect()
    }
}
