//! The members of a room, and which of them are still connected.

use std::collections::BTreeMap;

use potluck_plan::{DeviceId, Millis, PeerId};
use potluck_planner::measures::LinkMeasure;
use potluck_protocol::{Hello, WorkerStatus};

use crate::doorkeeper::Access;
use crate::limits::{self, Allowance};
use crate::lineages::KnownCheckers;

/// Grace period after a connection ended, enough for a reload or a short network failure.
const GRACE_MILLIS: f64 = 1_500.0;
/// Grace period of a peer that a pending answer needs. A broken connection is redialled after half a second at the
/// earliest, so a longer wait gains nothing; a peer that returns later gets work again.
const URGENT_GRACE_MILLIS: f64 = 100.0;
/// Grace period after this peer's own connection was lost, because the others may need longer to return, too.
const GRACE_AFTER_OUTAGE_MILLIS: f64 = 10_000.0;
/// The page shows a member as silent after this time.
pub(crate) const SILENT_MILLIS: f64 = 5_000.0;
/// A computing peer counts as frozen after this silence: its tab is suspended, and others take over its part.
const FROZEN_MILLIS: f64 = 4_500.0;
/// If all other members were silent for this long, too, the fault is in this peer's connection.
const OWN_LINE_MILLIS: f64 = 2_500.0;
/// A member is removed after this time.
pub(crate) const GONE_MILLIS: f64 = 20_000.0;
/// Maximum silence counted per tick: a longer gap means that this peer itself was suspended and did not listen.
const LISTENED_MILLIS: f64 = 1_000.0;

/// Back-off before a failed member gets work again: starts at the first value and doubles up to the last.
const FIRST_RETRY_MILLIS: f64 = 2_000.0;
const LAST_RETRY_MILLIS: f64 = 60_000.0;
/// The shortest back-off where others have to load what the member held.
const LONG_RETRY_MILLIS: f64 = 30_000.0;
/// Back-off of a member whose results were wrong, the same way.
const FIRST_DISTRUST_MILLIS: f64 = 30_000.0;
const LAST_DISTRUST_MILLIS: f64 = 600_000.0;
/// What is known of peers that are not here is forgotten beyond this many.
const MAX_STANDINGS: usize = 1_024;
/// The planner skips a device whose trusted share of its memory budget falls below this.
const MIN_TRUST: f64 = 0.5;

/// An idle link is measured by a heartbeat and this many echoes.
const ECHOES: u8 = 2;

/// Size of a link's first probe: no more than one token's frame, so that it does not block a slow link.
const FIRST_PROBE_BYTES: usize = 2 * 1024;
/// Size of the largest probe, for fast links.
const MAX_PROBE_BYTES: usize = 128 * 1024;
/// No larger probe follows one that took longer than this, in milliseconds: it would block a slow link.
const LARGER_MILLIS: f64 = 500.0;
/// Probes needed to measure a link's bandwidth.
const PROBES: usize = 3;
/// Limit on probes, because none measures anything on a link faster than the clock's resolution.
const MAX_PROBES: u32 = 8;

/// What a device has made of itself: neither another contribution, another session nor another tab changes it.
#[derive(Default)]
struct Record {
    /// How often its results were wrong.
    wrongs: u32,
    /// It gets no work until then, because its results were wrong.
    distrusted_until: Option<Millis>,
}

/// What a peer has used of its limits, in whatever session.
pub(crate) struct Standing {
    pub hellos: Allowance,
    pub resumes: Allowance,
    /// Whole rooms that it was sent because it said hello.
    pub greetings: Allowance,
    /// Bytes of its questions that were rendered in vain.
    pub in_vain: Allowance,
    /// Pieces of the host's file that are being read for it.
    pub pieces: u32,
}

impl Standing {
    fn new(now: Millis) -> Self {
        let full = |limit| Allowance::full(limit, now);
        let [hellos, resumes] = [limits::HELLOS, limits::RESUMES].map(full);
        let [greetings, in_vain] = [limits::GREETINGS, limits::IN_VAIN].map(full);
        Self { hellos, resumes, greetings, in_vain, pieces: 0 }
    }
}

pub(crate) struct Member {
    pub hello: Hello,
    /// The host admitted it: at once if it knows a secret of the room. Only the host keeps this.
    pub admitted: bool,
    /// What it may do once it is admitted.
    pub access: Access,
    pub status: WorkerStatus,
    /// Milliseconds of silence while this peer was listening.
    pub silent: f64,
    /// Its connection ended; it is removed at this time unless it returns.
    pub away_until: Option<Millis>,
    /// When the relay reported that its connection ended.
    pub ended: Option<Millis>,
    /// Latency and bandwidth of the link to it.
    pub link: LinkMeasure,
    /// Remaining echoes: heartbeats sent as soon as the previous one is answered.
    echoes: u8,
    /// Bytes of the next probe.
    probe: usize,
    /// Probes that returned.
    probes: u32,
    /// A probe is in flight; the next one waits for its return.
    probing: bool,
    /// Connected but silent: gets no work until it is heard again.
    pub frozen: bool,
    /// It could not prepare for a plan, or its device failed; it gets work again after this time.
    pub failed_until: Option<Millis>,
    /// Its results were wrong: it gets no work for now.
    pub distrusted: bool,
    /// Failures since it last changed its contribution.
    failures: u32,
    /// Share of its memory budget to plan with; lowered once its engine needs more than the model's sizes predict.
    pub trust: f64,
}

impl Member {
    pub fn new(hello: Hello) -> Self {
        Self {
            hello,
            admitted: false,
            access: Access::Full,
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
            distrusted: false,
            failures: 0,
            trust: 1.0,
        }
    }

    /// Its contribution changed: forgets what was learnt about the old one. Its standing stays.
    pub fn contribution_changed(&mut self) {
        self.failed_until = None;
        self.failures = 0;
        self.trust = 1.0;
    }

    /// Median of the latest round trips in milliseconds; 0 before the first.
    pub fn round_trip(&self) -> f64 {
        2.0 * self.link.latency_millis().unwrap_or(0.0)
    }

    /// A heartbeat goes out, followed by echoes. The first one wakes sleeping radios and processors, so only the later
    /// ones measure the latency that tokens see.
    pub fn beat(&mut self) {
        self.echoes = ECHOES;
    }

    /// A heartbeat returned. True if another one should follow immediately; the last one's round trip counts.
    pub fn echo(&mut self) -> bool {
        let follows = self.echoes > 0;
        self.echoes = self.echoes.saturating_sub(1);
        follows
    }

    /// Size of the next probe, if useful: the latency is known, the bandwidth is not.
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

    /// A probe returned, whether it measured anything or not.
    pub fn probe_is_back(&mut self) {
        self.probing = false;
    }

    /// A probe of `bytes` bytes took `millis` milliseconds one way and `back` milliseconds there and back. A larger
    /// probe follows one that is too small to measure anything.
    pub fn probed(&mut self, bytes: u64, millis: f64, back: f64) {
        self.probes += 1;
        if !self.link.transfer(bytes, millis) && back < LARGER_MILLIS {
            self.probe = (self.probe * 8).min(MAX_PROBE_BYTES);
        }
    }

    /// It failed at what it had loaded: others need time to load that, so it gets no work for longer.
    pub fn fail_long(&mut self, now: Millis) {
        self.fail(now);
        let least = now.0 + LONG_RETRY_MILLIS;
        self.failed_until = self.failed_until.map(|until| Millis(until.0.max(least)));
    }

    /// It failed: gets no work for a while, longer each time.
    pub fn fail(&mut self, now: Millis) {
        let wait = FIRST_RETRY_MILLIS * f64::from(2u32.saturating_pow(self.failures.min(16)));
        self.failures += 1;
        self.failed_until = Some(Millis(now.0 + wait.min(LAST_RETRY_MILLIS)));
    }

    /// Its engine needed more memory than planned: lowers its budget, and below a limit suspends it for a while.
    pub fn overflow(&mut self, now: Millis) {
        self.trust *= 0.9;
        if self.trust < MIN_TRUST {
            self.fail(now);
        }
    }

    /// True if it can get work.
    pub fn is_available(&self) -> bool {
        let is_here = self.away_until.is_none() && !self.frozen;
        self.admitted && self.hello.contribution.is_some() && is_here && !self.has_failed()
    }

    /// It failed, or its results were wrong, a short while ago.
    pub fn has_failed(&self) -> bool {
        self.failed_until.is_some() || self.distrusted
    }

    pub fn is_silent(&self) -> bool {
        self.away_until.is_some() || self.frozen || self.silent > SILENT_MILLIS
    }
}

/// All known members, including this peer.
pub(crate) struct Members {
    pub me: PeerId,
    /// The other peer that proved to be the host.
    pub host: Option<PeerId>,
    pub known: BTreeMap<PeerId, Member>,
    standings: BTreeMap<PeerId, Standing>,
    records: BTreeMap<DeviceId, Record>,
    /// The devices of peers that were met.
    devices: BTreeMap<PeerId, DeviceId>,
    /// Who may check whose answers, as the host says.
    pub checkers: KnownCheckers,
    /// The peers that sent wrong numbers since the last entry in the host's log, with their names.
    pub wrongs: Vec<(PeerId, String)>,
}

impl Members {
    pub fn new(me: PeerId) -> Self {
        let (known, standings) = (BTreeMap::new(), BTreeMap::new());
        let (records, devices, checkers) = (BTreeMap::new(), BTreeMap::new(), KnownCheckers::default());
        Self { me, host: None, known, standings, records, devices, checkers, wrongs: Vec::new() }
    }

    /// A peer has proved which device it is of.
    pub fn met(&mut self, peer: PeerId, device: DeviceId) {
        if self.devices.len() >= 2 * MAX_STANDINGS {
            self.devices.retain(|peer, _| self.known.contains_key(peer));
        }
        self.devices.insert(peer, device);
    }

    /// The device of a peer that was met.
    pub fn device(&self, peer: PeerId) -> Option<DeviceId> {
        self.devices.get(&peer).copied()
    }

    fn record(&self, peer: PeerId) -> Option<&Record> {
        self.records.get(&self.device(peer)?)
    }

    /// Adds a member, or returns the one that is known.
    pub fn enter(&mut self, peer: PeerId, hello: &Hello) -> &mut Member {
        let distrusted = self.record(peer).is_some_and(|record| record.distrusted_until.is_some());
        self.known.entry(peer).or_insert_with(|| Member { distrusted, ..Member::new(hello.clone()) })
    }

    /// What a peer has used of its limits, whether it is a member or not.
    pub fn standing(&mut self, peer: PeerId, now: Millis) -> &mut Standing {
        if self.standings.len() >= MAX_STANDINGS && !self.standings.contains_key(&peer) {
            self.standings.retain(|peer, _| self.known.contains_key(peer));
        }
        self.standings.entry(peer).or_insert_with(|| Standing::new(now))
    }

    /// A peer's results were wrong, once or more often.
    pub fn has_blamed(&self, peer: PeerId) -> bool {
        self.record(peer).is_some_and(|record| record.wrongs > 0)
    }

    /// A peer's results were wrong: its device gets no work for a while, longer each time.
    pub fn distrust(&mut self, peer: PeerId, now: Millis) {
        self.wrongs.push((peer, self.name(peer)));
        if let Some(member) = self.known.get_mut(&peer) {
            member.distrusted = true;
        }
        let Some(device) = self.device(peer) else { return };
        if self.records.len() >= MAX_STANDINGS {
            // No room has so many devices: those that are not here may come back with a clean record.
            let here: Vec<DeviceId> = self.known.keys().filter_map(|peer| self.device(*peer)).collect();
            self.records.retain(|device, _| here.contains(device));
        }
        let record = self.records.entry(device).or_default();
        let wait = FIRST_DISTRUST_MILLIS * f64::from(2u32.saturating_pow(record.wrongs.min(16)));
        record.wrongs = record.wrongs.saturating_add(1);
        record.distrusted_until = Some(Millis(now.0 + wait.min(LAST_DISTRUST_MILLIS)));
        for (other, member) in &mut self.known {
            member.distrusted |= self.devices.get(other) == Some(&device);
        }
    }

    pub fn get(&self, peer: PeerId) -> Option<&Member> {
        self.known.get(&peer)
    }

    /// Honest devices like these compute the same bits, as far as they say what they are. One whose browser hides its GPU may be
    /// of any kind.
    pub fn are_alike(&self, a: PeerId, b: PeerId) -> bool {
        let named = |peer| self.get(peer).map(|known| &known.hello).filter(|hello| !hello.adapter.is_empty());
        let kind = |peer| named(peer).map(|hello| (&hello.build, hello.kernel_class, &hello.adapter));
        kind(a).is_some_and(|known| kind(b) == Some(known))
    }

    /// True while frames can reach it.
    pub fn is_here(&self, peer: PeerId) -> bool {
        peer == self.me || self.known.get(&peer).is_some_and(|member| member.away_until.is_none())
    }

    pub fn name(&self, peer: PeerId) -> String {
        self.known.get(&peer).map_or_else(|| "A device".to_owned(), |member| member.hello.name.clone())
    }

    /// The host, if it is another peer that said hello.
    pub fn host(&self) -> Option<PeerId> {
        self.host.filter(|host| self.known.contains_key(host))
    }

    /// Clears failures and distrust whose back-off is over. True if there were any.
    pub fn take_retries(&mut self, now: Millis) -> bool {
        let mut trusted_again = false;
        for (device, record) in &mut self.records {
            if record.distrusted_until.take_if(|until| now.0 >= until.0).is_none() {
                continue;
            }
            for (peer, member) in &mut self.known {
                if self.devices.get(peer) == Some(device) {
                    (member.distrusted, trusted_again) = (false, true);
                }
            }
        }
        let waits = |member: &mut Member| member.failed_until.take_if(|until| now.0 >= until.0).is_some();
        self.known.values_mut().filter_map(|member| waits(member).then_some(())).count() > 0 || trusted_again
    }

    /// A message from a peer arrived. True if the peer counted as frozen until now.
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

    /// Marks a peer as frozen if it is silent although both connections work. True if it was not frozen before.
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

    /// This peer's own connection ended: everyone counts as away until heard again.
    pub fn all_away(&mut self, now: Millis) {
        let me = self.me;
        for member in self.known.iter_mut().filter(|(peer, _)| **peer != me).map(|(_, member)| member) {
            member.away_until = Some(Millis(now.0 + GRACE_AFTER_OUTAGE_MILLIS));
            member.ended = None;
            member.probing = false;
        }
    }

    /// An answer needs these peers: shortens the grace period of those whose connection ended.
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

    /// Removes and returns the members whose time is up.
    pub fn give_up(&mut self, now: Millis) -> Vec<(PeerId, Member)> {
        let me = self.me;
        let over =
            |member: &Member| member.away_until.is_some_and(|until| now.0 >= until.0) || member.silent > GONE_MILLIS;
        let gone: Vec<PeerId> =
            self.known.iter().filter(|(peer, member)| **peer != me && over(member)).map(|(peer, _)| *peer).collect();
        gone.into_iter().filter_map(|peer| Some((peer, self.known.remove(&peer)?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use potluck_plan::Bytes;
    use potluck_protocol::Contribution;

    use super::*;
    use crate::examples;

    const PEER: PeerId = PeerId([2; 16]);

    fn hello(budget: u64) -> Hello {
        let budget = Bytes(budget);
        Hello {
            contribution: Some(Contribution { budget, binding: budget, bandwidth: 1.0, sync_millis: 1.0 }),
            ..examples::hello()
        }
    }

    fn enter(members: &mut Members, budget: u64) -> bool {
        let member = members.enter(PEER, &hello(budget));
        member.admitted = true;
        member.contribution_changed();
        member.is_available()
    }

    #[test]
    fn lending_a_byte_more_or_coming_again_does_not_restore_trust() {
        let mut members = Members::new(PeerId([1; 16]));
        members.met(PEER, DeviceId([2; 32]));
        assert!(enter(&mut members, 100), "a new device gets work");
        members.distrust(PEER, Millis(0.0));
        assert!(!enter(&mut members, 101), "it lends a byte more");
        members.known.clear();
        assert!(!enter(&mut members, 100), "it left and came again");
        assert!(!members.take_retries(Millis(FIRST_DISTRUST_MILLIS - 1.0)));
        assert!(members.take_retries(Millis(FIRST_DISTRUST_MILLIS)));
        assert!(members.known[&PEER].is_available(), "its time is over");
        members.distrust(PEER, Millis(0.0));
        assert!(!members.take_retries(Millis(FIRST_DISTRUST_MILLIS)), "longer the second time");
    }

    #[test]
    fn identities_made_up_without_end_do_not_fill_the_memory() {
        let mut members = Members::new(PeerId([1; 16]));
        for n in 0..10_000u32 {
            let mut id = [0; 16];
            id[..4].copy_from_slice(&n.to_le_bytes());
            let mut device = [0; 32];
            device[..4].copy_from_slice(&n.to_le_bytes());
            members.met(PeerId(id), DeviceId(device));
            members.standing(PeerId(id), Millis(0.0));
            members.distrust(PeerId(id), Millis(0.0));
        }
        let kept = [members.standings.len(), members.records.len(), members.devices.len()];
        assert!(kept.iter().all(|kept| *kept <= 2 * MAX_STANDINGS), "{kept:?}");
    }

    #[test]
    fn another_tab_of_a_device_that_computed_wrongly_gets_no_work_either() {
        let mut members = Members::new(PeerId([1; 16]));
        let (device, tab) = (DeviceId([2; 32]), PeerId([3; 16]));
        members.met(PEER, device);
        enter(&mut members, 100);
        members.distrust(PEER, Millis(0.0));
        members.met(tab, device);
        assert!(members.enter(tab, &hello(100)).distrusted, "it is the same GPU");
        assert!(members.take_retries(Millis(FIRST_DISTRUST_MILLIS)));
        assert!(!members.known[&tab].distrusted && !members.known[&PEER].distrusted);
    }
}
