//! What each device has computed for the room, by its key. The host counts it: results of stages as they arrive, and
//! experts as the stages that asked for them report. Nothing is believed beyond what can be.

use std::collections::{BTreeMap, BTreeSet};

use potluck_plan::{Bytes, DeviceId, FeedForwardShape, Millis, ModelShape, PeerId, Plan, WireType};
use potluck_protocol::{CreditView, HolderReport, LmHeadOutput, LogitsResult, Work};

use crate::members::Members;

/// Devices that are remembered, those that left included. Beyond this many, the one with the fewest tokens is forgotten.
const MAX_DEVICES: usize = 128;
/// Pairs of a stage and a holder whose reports are remembered. Beyond this many, those that left are forgotten.
const MAX_PAIRS: usize = 4_096;

#[derive(Default)]
pub(super) struct Credits {
    /// Since when is counted.
    opened: Option<Millis>,
    devices: BTreeMap<DeviceId, Account>,
    /// When a device's results were last counted: its GPU cannot have worked for longer than since then.
    counted: BTreeMap<PeerId, Millis>,
    /// By stage's device and holder.
    reported: BTreeMap<(PeerId, PeerId), Reported>,
    /// Tokens that have passed all stages.
    passed: u64,
}

struct Account {
    name: String,
    work: Work,
}

/// What was taken of a stage's reports of a holder.
#[derive(Clone, Copy, Default)]
struct Reported {
    /// Before the stage began to count anew.
    before: Work,
    /// Since then.
    now: Work,
}

impl Reported {
    /// Takes a report that counts from some beginning, up to `most`. Returns what is new in it.
    fn take(&mut self, report: Work, most: Work) -> Work {
        let Work { tokens, gpu_millis, bytes } = self.now;
        if report.tokens < tokens || report.gpu_millis < gpu_millis || report.bytes < bytes {
            (self.before, self.now) = (sum(self.before, self.now), Work::default());
        }
        let left = difference(most, self.before);
        let now = Work {
            tokens: report.tokens.min(left.tokens),
            gpu_millis: report.gpu_millis.min(left.gpu_millis),
            bytes: report.bytes.min(left.bytes),
        };
        difference(now, std::mem::replace(&mut self.now, now))
    }
}

impl Credits {
    /// A pass of so many tokens has come through all stages of a plan. How many there were is the host's own count: the last
    /// stage could say anything.
    pub fn passed(
        &mut self,
        plan: &Plan,
        hidden: u32,
        tokens: u64,
        result: &LogitsResult,
        members: &Members,
        now: Millis,
    ) {
        let opened = *self.opened.get_or_insert(now);
        self.passed = self.passed.saturating_add(tokens);
        let mut seen = BTreeSet::new();
        for (index, stage) in plan.stages.iter().enumerate() {
            let millis = result.stage_millis.get(index).copied().unwrap_or(0.0);
            let since = now.0 - self.counted.get(&stage.peer).unwrap_or(&opened).0;
            let bytes = match plan.stages.get(index + 1) {
                Some(next) if next.peer != stage.peer => hidden_bytes(tokens, hidden, plan.wire),
                None if members.me != stage.peer => candidate_bytes(&result.result),
                _ => 0,
            };
            // A device with two stages has computed each token once.
            let tokens = if seen.insert(stage.peer) { tokens } else { 0 };
            let work = Work { tokens, gpu_millis: millis.min(since.max(0.0)), bytes: Bytes(bytes) };
            self.add(stage.peer, work, members);
        }
        self.counted.extend(seen.into_iter().map(|peer| (peer, now)));
        self.counted.retain(|peer, _| members.known.contains_key(peer));
    }

    /// The stages of a plan report what holders of their experts have computed.
    pub fn reported(&mut self, plan: &Plan, shape: &ModelShape, members: &Members, now: Millis) {
        let opened = *self.opened.get_or_insert(now);
        let most = Work {
            tokens: self.passed,
            gpu_millis: now.0 - opened.0,
            bytes: Bytes(self.passed.saturating_mul(expert_bytes(shape))),
        };
        let holders = plan.expert_holders();
        let is_holder = |peer: PeerId| holders.contains(&peer);
        for (caller, member) in members.known.iter().filter(|(peer, _)| plan.has_stage(**peer)) {
            let known = |report: &&HolderReport| report.peer != *caller && is_holder(report.peer);
            for report in member.status.holders.iter().filter(known) {
                let new = self.reported.entry((*caller, report.peer)).or_default().take(report.work, most);
                self.add(report.peer, new, members);
            }
        }
        if self.reported.len() > MAX_PAIRS {
            let is_here = |peer: &PeerId| members.known.contains_key(peer);
            self.reported.retain(|(caller, holder), _| is_here(caller) && is_here(holder));
        }
    }

    /// All devices that have computed anything.
    pub fn view(&self, members: &Members) -> Vec<CreditView> {
        let tabs = |device: DeviceId| {
            members.known.keys().copied().filter(|peer| members.device(*peer) == Some(device)).collect()
        };
        let credit = |(device, Account { name, work }): (&DeviceId, &Account)| CreditView {
            device: *device,
            peers: tabs(*device),
            name: name.clone(),
            work: *work,
        };
        self.devices.iter().map(credit).collect()
    }

    fn add(&mut self, peer: PeerId, new: Work, members: &Members) {
        let Some(device) = members.device(peer).filter(|_| new != Work::default()) else { return };
        if self.devices.len() >= MAX_DEVICES && !self.devices.contains_key(&device) {
            let least = self.devices.iter().min_by_key(|(_, account)| account.work.tokens).map(|(device, _)| *device);
            least.map(|device| self.devices.remove(&device));
        }
        let fresh = || Account { name: String::new(), work: Work::default() };
        let account = self.devices.entry(device).or_insert_with(fresh);
        account.name = members.name(peer);
        account.work = sum(account.work, new);
    }
}

fn sum(a: Work, b: Work) -> Work {
    Work {
        tokens: a.tokens.saturating_add(b.tokens),
        gpu_millis: a.gpu_millis + b.gpu_millis,
        bytes: a.bytes.saturating_add(b.bytes),
    }
}

fn difference(a: Work, b: Work) -> Work {
    Work {
        tokens: a.tokens.saturating_sub(b.tokens),
        gpu_millis: (a.gpu_millis - b.gpu_millis).max(0.0),
        bytes: a.bytes.saturating_sub(b.bytes),
    }
}

fn hidden_bytes(tokens: u64, hidden: u32, wire: WireType) -> u64 {
    tokens.saturating_mul(wire.bytes(u64::from(hidden)))
}

fn candidate_bytes(result: &LmHeadOutput) -> u64 {
    let LmHeadOutput::Candidates(candidates) = result else { return 0 };
    let bytes = |ids: &[u32], logits: &[f32]| size_of_val(ids) + size_of_val(logits);
    candidates.iter().map(|best_of| bytes(&best_of.ids, &best_of.logits) as u64).sum()
}

/// Bytes of all outputs that experts can give for a token, at most.
fn expert_bytes(shape: &ModelShape) -> u64 {
    let used = shape.blocks.iter().map(|block| match block.feed_forward {
        FeedForwardShape::Experts { used, .. } => u64::from(used),
        FeedForwardShape::Dense { .. } => 0,
    });
    hidden_bytes(used.sum(), shape.hidden, WireType::F32)
}

#[cfg(test)]
mod tests {
    use potluck_plan::{BlockRange, ConversationId, Position, Stage, StageId};
    use potluck_protocol::PassId;

    use super::*;
    use crate::examples;

    fn work(tokens: u64, gpu_millis: f64, bytes: u64) -> Work {
        Work { tokens, gpu_millis, bytes: Bytes(bytes) }
    }

    const ROOM: Work = Work { tokens: 1_000, gpu_millis: 1e6, bytes: Bytes(1 << 30) };

    #[test]
    fn only_what_is_new_in_a_report_counts() {
        let mut reported = Reported::default();
        assert_eq!(reported.take(work(10, 5.0, 100), ROOM), work(10, 5.0, 100));
        assert_eq!(reported.take(work(10, 5.0, 100), ROOM), Work::default(), "the same report again");
        assert_eq!(reported.take(work(12, 6.0, 150), ROOM), work(2, 1.0, 50));
        assert_eq!(reported.take(work(3, 2.0, 30), ROOM), work(3, 2.0, 30), "the stage began to count anew");
    }

    #[test]
    fn no_report_counts_for_more_than_the_room_has_computed() {
        let mut reported = Reported::default();
        let most = work(50, 1_000.0, 4_000);
        assert_eq!(reported.take(work(u64::MAX, 1e300, u64::MAX), most), most);
        let later = work(60, 1_500.0, 5_000);
        assert_eq!(reported.take(work(u64::MAX, 1e300, u64::MAX), later), work(10, 500.0, 1_000));
        assert_eq!(reported.take(Work::default(), later), Work::default());
        assert_eq!(
            reported.take(work(u64::MAX, 1e300, u64::MAX), later),
            Work::default(),
            "counting anew is no way out"
        );
    }

    #[test]
    fn how_many_tokens_there_were_is_not_for_the_last_stage_to_say() {
        let (mut members, mut credits) = (Members::new(PeerId([0; 16])), Credits::default());
        let stage = Stage::new(StageId(0), PeerId([1; 16]), BlockRange::new(0, 1));
        members.met(stage.peer, DeviceId([1; 32]));
        let plan = examples::plan(vec![stage]);
        let result = LogitsResult {
            epoch: plan.epoch,
            pass: PassId(1),
            conversation: ConversationId(1),
            base: Position(0),
            tokens: u32::MAX,
            result: LmHeadOutput::NotRequested,
            stage_millis: Vec::new(),
        };
        credits.passed(&plan, 8, 5, &result, &members, Millis(0.0));
        assert_eq!(credits.view(&members)[0].work.tokens, 5);
        assert_eq!(credits.passed, 5, "which bounds what is believed of holders");
    }

    #[test]
    fn devices_beyond_the_limit_take_the_place_of_those_that_did_least() {
        let mut members = Members::new(PeerId([0; 16]));
        let mut credits = Credits::default();
        for n in 0..=MAX_DEVICES as u16 {
            let (mut peer, mut device) = ([1; 16], [1; 32]);
            peer[..2].copy_from_slice(&n.to_le_bytes());
            device[..2].copy_from_slice(&n.to_le_bytes());
            members.met(PeerId(peer), DeviceId(device));
            credits.add(PeerId(peer), work(u64::from(n) + 1, 0.0, 0), &members);
        }
        let fewest = credits.view(&members).iter().map(|credit| credit.work.tokens).min();
        assert_eq!((credits.devices.len(), fewest), (MAX_DEVICES, Some(2)));
    }
}
