//! Who is in the room, and who is still there.

use std::collections::BTreeMap;

use potluck_plan::{Millis, PeerId};
use potluck_planner::measures::LinkMeasure;
use potluck_protocol::{Hello, WorkerStatus};

/// A connection that ended may come back (a reload, a flaky network): so long its peer is not given up.
const GRACE_MILLIS: f64 = 1_500.0;
/// The same while somebody waits for an answer that needs the peer: a line that broke is dialled again after half a second at
/// the earliest, and whoever is back later is given work again.
const URGENT_GRACE_MILLIS: f64 = 100.0;
/// The same after our own connection was lost: the others may take a while to be back too.
const GRACE_AFTER_OUTAGE_MILLIS: f64 = 10_000.0;
/// Nothing heard for so long: shown as silent.
pub(crate) const SILENT_MILLIS: f64 = 5_000.0;
/// Nothing heard of a peer that computes for so long: its tab stands still, and others take its part.
const FROZEN_MILLIS: f64 = 4_500.0;
/// Nobody else heard for so long either: it is our own line that stands still.
const OWN_LINE_MILLIS: f64 = 2_500.0;
/// Nothing heard for so long: given up.
pub(crate) const GONE_MILLIS: f64 = 20_000.0;
/// Between two ticks at most so much counts as silence: who stood still itself has not listened.
const LISTENED_MILLIS: f64 = 1_000.0;

/// A member that failed is asked again after so long, then after twice as long, and so on up to the last.
const FIRST_RETRY_MILLIS: f64 = 2_000.0;
const LAST_RETRY_MILLIS: f64 = 60_000.0;
/// Wrong results count as so many failures.
const WRONG_FAILURES: u32 = 4;
/// Below this share of its loan a device is not planned with.
const MIN_TRUST: f64 = 0.5;

/// So many heartbeats follow one that measures an idle line.
const ECHOES: u8 = 2;

/// Bytes of the first probe of a line: no more than a token's frame, for a slow line must not fall silent behind it.
const FIRST_PROBE_BYTES: usize = 2 * 1024;
/// Bytes of the largest one, on a quick line.
const MAX_PROBE_BYTES: usize = 128 * 1024;
/// A probe that took longer to come back, in milliseconds, is not followed by a larger one: whatever held it up, a line that
/// carries more for so long carries nothing else.
const LARGER_MILLIS: f64 = 500.0;
/// So many probes tell how quick a line is.
const PROBES: usize = 3;
/// More are not sent: on a line that is quicker than the clock is fine none of them tells anything.
const MAX_PROBES: u32 = 8;

pub(crate) struct Member {
    pub hello: Hello,
    /// The host let it in (the host itself, and whoever brought the key).
    pub admitted: bool,
    pub status: WorkerStatus,
    /// So long nothing was heard of it while we listened, milliseconds.
    pub silent: f64,
    /// Its connection ended; given up at this time unless it is back.
    pub away_until: Option<Millis>,
    /// The relay told that its connection ended.
    pub ended: Option<Millis>,
    /// Its way to us and back.
    pub link: LinkMeasure,
    /// So many heartbeats follow at once, each when the one before is back.
    echoes: u8,
    /// Bytes of the next probe of its line.
    probe: usize,
    /// Probes that came back.
    probes: u32,
    /// One is on its way: until it is back the line is not given another one.
    probing: bool,
    /// Its connection is there, but nothing is heard: it gets no work until it is.
    pub frozen: bool,
    /// It could not get ready for a plan, or its device failed; it is asked again later.
    pub failed_until: Option<Millis>,
    /// How often that happened since it lends what it lends.
    failures: u32,
    /// Of what it lends, so much is planned with: less once its engine needed more than the model's sizes say.
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

    /// It lends something else: what was learnt of the loan before does not count.
    pub fn contribution_changed(&mut self) {
        self.failed_until = None;
        self.failures = 0;
        self.trust = 1.0;
    }

    /// Median of the last round trips, milliseconds; 0 before the first.
    pub fn round_trip(&self) -> f64 {
        2.0 * self.link.latency_millis().unwrap_or(0.0)
    }

    /// A heartbeat goes out, and others behind it: the first one wakes whoever is on the way, and tokens meet them awake.
    pub fn beat(&mut self) {
        self.echoes = ECHOES;
    }

    /// A heartbeat is back: whether another one follows at once. The last one's round trip counts.
    pub fn echo(&mut self) -> bool {
        let follows = self.echoes > 0;
        self.echoes = self.echoes.saturating_sub(1);
        follows
    }

    /// Bytes of a probe that is worth sending: its way is known, how much passes at a time is not.
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

    /// A probe is back, whether it tells anything or not.
    pub fn probe_is_back(&mut self) {
        self.probing = false;
    }

    /// A probe was there so many milliseconds after it was sent, and its answer here after so many. One that was too small to
    /// tell anything is followed by a larger one.
    pub fn probed(&mut self, bytes: u64, millis: f64, back: f64) {
        self.probes += 1;
        if !self.link.transfer(bytes, millis) && back < LARGER_MILLIS {
            self.probe = (self.probe * 8).min(MAX_PROBE_BYTES);
        }
    }

    /// It gets no work for a while, each time for longer.
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

    /// Its engine needed more than was planned: next time it gets less, and at last none for a while.
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

    /// Members whose time to be asked again has come. True if there is one.
    pub fn take_retries(&mut self, now: Millis) -> bool {
        let waits = |member: &mut Member| member.failed_until.take_if(|until| now.0 >= until.0).is_some();
        self.known.values_mut().filter_map(|member| waits(member).then_some(())).count() > 0
    }

    /// Something came from a peer. True if it had been found to stand still.
    pub fn heard(&mut self, peer: PeerId) -> bool {
        let Some(member) = self.known.get_mut(&peer) else { return false };
        member.silent = 0.0;
        std::mem::take(&mut member.frozen)
    }

    /// So much time went by since the last tick.
    pub fn listened(&mut self, millis: f64) {
        let millis = millis.clamp(0.0, LISTENED_MILLIS);
        self.known.values_mut().for_each(|member| member.silent += millis);
    }

    /// True if a peer has just been found to stand still: nothing is heard of it, although its connection is there and
    /// ours works.
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

    /// The relay told that a peer's connection ended.
    pub fn ended(&mut self, peer: PeerId, now: Millis) {
        if let Some(member) = self.other(peer).filter(|member| member.away_until.is_none()) {
            member.away_until = Some(Millis(now.0 + GRACE_MILLIS));
            member.ended = Some(now);
            member.probing = false;
        }
    }

    /// Our own connection ended: everyone has to be heard of again.
    pub fn all_away(&mut self, now: Millis) {
        let me = self.me;
        for member in self.known.iter_mut().filter(|(peer, _)| **peer != me).map(|(_, member)| member) {
            member.away_until = Some(Millis(now.0 + GRACE_AFTER_OUTAGE_MILLIS));
            member.ended = None;
            member.probing = false;
        }
    }

    /// Somebody waits for these peers: whose connection ended is not waited for any longer.
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

    /// Removes and returns who is to be given up.
    pub fn give_up(&mut self, now: Millis) -> Vec<(PeerId, Member)> {
        let me = self.me;
        let over =
            |member: &Member| member.away_until.is_some_and(|until| now.0 >= until.0) || member.silent > GONE_MILLIS;
        let gone: Vec<PeerId> =
            self.known.iter().filter(|(peer, member)| **peer != me && over(member)).map(|(peer, _)| *peer).collect();
        gone.into_iter().filter_map(|peer| Some((peer, self.known.remove(&peer)?))).collect()
    }
}
