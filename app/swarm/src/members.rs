//! The members of a room, and which of them are still there.

use std::collections::BTreeMap;

use potluck_plan::{Millis, PeerId};
use potluck_planner::measures::LinkMeasure;
use potluck_protocol::{Hello, WorkerStatus};

/// Grace period after a connection ended: a reload or a flaky network is back within it.
const GRACE_MILLIS: f64 = 1_500.0;
/// The same for a peer that an awaited answer needs. A broken line is redialled after half a second at the earliest,
/// so waiting longer gains nothing; a peer that is back later gets work again.
const URGENT_GRACE_MILLIS: f64 = 100.0;
/// The same after our own connection was lost: the others may take a while to be back, too.
const GRACE_AFTER_OUTAGE_MILLIS: f64 = 10_000.0;
/// A member is shown as silent after this time.
pub(crate) const SILENT_MILLIS: f64 = 5_000.0;
/// A peer that computes is considered frozen after this silence: its tab stands still, and others take its part.
const FROZEN_MILLIS: f64 = 4_500.0;
/// If nobody else was heard for this long either, our own line is the problem.
const OWN_LINE_MILLIS: f64 = 2_500.0;
/// A member is given up after this time.
pub(crate) const GONE_MILLIS: f64 = 20_000.0;
/// At most this much of the time between two ticks counts as silence: if we stood still ourselves, we have not
/// listened.
const LISTENED_MILLIS: f64 = 1_000.0;

/// Back-off before a failed member is asked again: doubled from the first value up to the last.
const FIRST_RETRY_MILLIS: f64 = 2_000.0;
const LAST_RETRY_MILLIS: f64 = 60_000.0;
/// Wrong results count as this many failures.
const WRONG_FAILURES: u32 = 4;
/// A device whose trusted share of its memory budget falls below this is not planned with.
const MIN_TRUST: f64 = 0.5;

/// An idle link is measured by a heartbeat and this many echoes.
const ECHOES: u8 = 2;

/// Bytes of the first probe of a link: no more than one token's frame, so that a slow link is not blocked by it.
const FIRST_PROBE_BYTES: usize = 2 * 1024;
/// Bytes of the largest probe, for fast links.
const MAX_PROBE_BYTES: usize = 128 * 1024;
/// A probe that took longer than this, in milliseconds, is not followed by a larger one: it would block a slow link.
const LARGER_MILLIS: f64 = 500.0;
/// Probes needed to know a link's bandwidth.
const PROBES: usize = 3;
/// Limit on probes: on a link faster than the clock's resolution none of them measures anything.
const MAX_PROBES: u32 = 8;

pub(crate) struct Member {
    pub hello: Hello,
    /// The host let it in (the host itself, and whoever brought the key).
    pub admitted: bool,
    pub status: WorkerStatus,
    /// Milliseconds of silence while we were listening.
    pub silent: f64,
    /// Its connection ended; it is given up at this time unless it is back.
    pub away_until: Option<Millis>,
    /// When the relay reported that its connection ended.
    pub ended: Option<Millis>,
    /// Latency and bandwidth between it and us.
    pub link: LinkMeasure,
    /// Echoes left: heartbeats that are sent as soon as the one before is answered.
    echoes: u8,
    /// Bytes of the next probe.
    probe: usize,
    /// Probes that came back.
    probes: u32,
    /// A probe is in flight; no second one is sent until it is back.
    probing: bool,
    /// Connected but silent: it gets no work until it is heard again.
    pub frozen: bool,
    /// It could not get ready for a plan, or its device failed; it is asked again later.
    pub failed_until: Option<Millis>,
    /// Failures since it last changed its contribution.
    failures: u32,
    /// Share of its memory budget that is planned with: less once its engine needed more than the model's sizes say.
    pub trust: f64,
}

impl Member {
    pub fn new(hello: Hello) -> Self {
        Self {
            hello,
            admitted: false,
            status: WorkerStatus::default(),
            silent: 0.0,
            away_until: None,
            ended: None,
            link: LinkMeasure::default(),
            echoes: 0,
            probe: FIRST_PROBE_BYTES,
            probes: 0,
            probing: false,
            frozen: false,
            failed_until: None,
            failures: 0,
            trust: 1.0,
        }
    }

    /// Its contribution changed: what was learnt about the old one does not count.
    pub fn contribution_changed(&mut self) {
        self.failed_until = None;
        self.failures = 0;
        self.trust = 1.0;
    }

    /// Median of the last round trips, milliseconds; 0 before the first.
    pub fn round_trip(&self) -> f64 {
        2.0 * self.link.latency_millis().unwrap_or(0.0)
    }

    /// A heartbeat goes out, and echoes follow it. The first one wakes sleeping radios and processors; the later ones
    /// measure what tokens meet.
    pub fn beat(&mut self) {
        self.echoes = ECHOES;
    }

    /// A heartbeat is back. True if another one follows at once; the last one's round trip counts.
    pub fn echo(&mut self) -> bool {
        let follows = self.echoes > 0;
        self.echoes = self.echoes.saturating_sub(1);
        follows
    }

    /// Size of the next probe, if one is worth sending: the latency is known, the bandwidth is not.
    pub fn next_probe(&self) -> Option<usize> {
        let wanted = self.is_available()
            && !self.probing
            && self.probes < MAX_PROBES
            && self.link.latency_millis().is_some()
            && self.link.transfers() < PROBES;
        wanted.then_some(self.probe)
    }

    /// A probe goes out.
    pub fn probe(&mut self) {
        self.probing = true;
    }

    /// A probe is back, whether it measured anything or not.
    pub fn probe_is_back(&mut self) {
        self.probing = false;
    }

    /// A probe of `bytes` took `millis` one way and `back` milliseconds in all. One too small to measure anything is
    /// followed by a larger one.
    pub fn probed(&mut self, bytes: u64, millis: f64, back: f64) {
        self.probes += 1;
        if !self.link.transfer(bytes, millis) && back < LARGER_MILLIS {
            self.probe = (self.probe * 8).min(MAX_PROBE_BYTES);
        }
    }

    /// It gets no work for a while, longer each time.
    pub fn fail(&mut self, now: Millis) {
        let wait = FIRST_RETRY_MILLIS * f64::from(2u32.saturating_pow(self.failures.min(16)));
        self.failures += 1;
        self.failed_until = Some(Millis(now.0 + wait.min(LAST_RETRY_MILLIS)));
    }

    /// Its results are wrong: it gets no work for half a minute at least.
    pub fn distrust(&mut self, now: Millis) {
        self.failures = self.failures.max(WRONG_FAILURES);
        self.fail(now);
    }

    /// Its engine needed more memory than planned: it is planned with a smaller budget, and below a limit not at all
    /// for a while.
    pub fn overflow(&mut self, now: Millis) {
        self.trust *= 0.9;
        if self.trust < MIN_TRUST {
            self.fail(now);
        }
    }

    /// It can be given work.
    pub fn is_available(&self) -> bool {
        let is_here = self.away_until.is_none() && !self.frozen;
        self.admitted && self.hello.contribution.is_some() && is_here && self.failed_until.is_none()
    }

    pub fn is_silent(&self) -> bool {
        self.away_until.is_some() || self.frozen || self.silent > SILENT_MILLIS
    }
}

/// All known members, including this peer.
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

    /// The other peer that claims to host the room.
    pub fn host(&self) -> Option<PeerId> {
        self.known.iter().find(|(peer, member)| **peer != self.me && member.hello.coordinator).map(|(peer, _)| *peer)
    }

    /// Clears failures whose back-off is over. True if there was one.
    pub fn take_retries(&mut self, now: Millis) -> bool {
        let waits = |member: &mut Member| member.failed_until.take_if(|until| now.0 >= until.0).is_some();
        self.known.values_mut().filter_map(|member| waits(member).then_some(())).count() > 0
    }

    /// Something came from a peer. True if it was considered frozen until now.
    pub fn heard(&mut self, peer: PeerId) -> bool {
        let Some(member) = self.known.get_mut(&peer) else { return false };
        member.silent = 0.0;
        std::mem::take(&mut member.frozen)
    }

    /// Adds the milliseconds since the last tick to everyone's silence.
    pub fn listened(&mut self, millis: f64) {
        let millis = millis.clamp(0.0, LISTENED_MILLIS);
        self.known.values_mut().for_each(|member| member.silent += millis);
    }

    /// Marks a peer as frozen if nothing is heard of it although its connection and ours work. True if it was not
    /// frozen before.
    pub fn freeze(&mut self, peer: PeerId) -> bool {
        let me = self.me;
        let expected = |member: &&Member| member.away_until.is_none() && !member.frozen;
        let others = || self.known.iter().filter(|(other, _)| **other != me).map(|(_, other)| other).filter(expected);
        let is_own_line = others().count() > 1 && others().all(|other| other.silent > OWN_LINE_MILLIS);
        let is_frozen = |member: &&mut Member| {
            !is_own_line && member.silent > FROZEN_MILLIS && member.away_until.is_none() && !member.frozen
        };
        let frozen = self.known.get_mut(&peer).filter(|_| peer != me).filter(is_frozen);
        frozen.map(|member| member.frozen = true).is_some()
    }

    /// The relay reported that a peer's connection ended.
    pub fn ended(&mut self, peer: PeerId, now: Millis) {
        if let Some(member) = self.other(peer).filter(|member| member.away_until.is_none()) {
            member.away_until = Some(Millis(now.0 + GRACE_MILLIS));
            member.ended = Some(now);
            member.probing = false;
        }
    }

    /// Our own connection ended: everyone has to be heard again.
    pub fn all_away(&mut self, now: Millis) {
        let me = self.me;
        for member in self.known.iter_mut().filter(|(peer, _)| **peer != me).map(|(_, member)| member) {
            member.away_until = Some(Millis(now.0 + GRACE_AFTER_OUTAGE_MILLIS));
            member.ended = None;
            member.probing = false;
        }
    }

    /// An answer needs these peers: those whose connection ended are not waited for any longer.
    pub fn cut_grace_short(&mut self, peers: impl IntoIterator<Item = PeerId>, now: Millis) {
        for peer in peers {
            let is_over = |member: &&mut Member| member.ended.is_some_and(|at| now.0 - at.0 >= URGENT_GRACE_MILLIS);
            if let Some(member) = self.other(peer).filter(is_over) {
                member.away_until = Some(now);
            }
        }
    }

    fn other(&mut self, peer: PeerId) -> Option<&mut Member> {
        self.known.get_mut(&peer).filter(|_| peer != self.me)
    }

    /// Removes and returns the members to give up.
    pub fn give_up(&mut self, now: Millis) -> Vec<(PeerId, Member)> {
        let me = self.me;
        let over =
            |member: &Member| member.away_until.is_some_and(|until| now.0 >= until.0) || member.silent > GONE_MILLIS;
        let gone: Vec<PeerId> =
            self.known.iter().filter(|(peer, member)| **peer != me && over(member)).map(|(peer, _)| *peer).collect();
        gone.into_iter().filter_map(|peer| Some((peer, self.known.remove(&peer)?))).collect()
    }
}
