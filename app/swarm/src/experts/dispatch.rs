//! Calls of experts: to whom, when to somebody else, and what to do with the answers.

use std::collections::{BTreeMap, BTreeSet};

use potluck_plan::{
    BlockIndex, ExpertHolder, ExpertId, ExpertOutputs, KernelClass, Millis, PeerId, Plan, StageId, WireType,
};
use potluck_protocol::{ExpertFailure, ExpertPhase, ExpertWaits, Hedging};

use super::asked;
use super::checks::{Check, Checks, Verdict};
use super::gather::{Gather, Share};
use super::hedging::{Budget, Cause, MAX_COPIES};
use super::holders::{Holders, Size};
use super::owed::{Owed, OwedCalls};
use super::waits::{Passed, Waits};
use crate::members::Members;

/// A block whose experts do not come for this long has none: the coordinator makes another plan.
const GIVE_UP_MILLIS: f64 = 10_000.0;
/// With experts on demand a holder may have to fetch a chunk's experts over the network first.
const GIVE_UP_LOADING_MILLIS: f64 = 120_000.0;
/// A holder with too much to do is asked again after this time, if there is nobody else.
const BUSY_MILLIS: f64 = 20.0;

/// Bytes of a call with its answer. A chunk of 512 tokens with eight experts of Qwen3-30B-A3B has 38 MB, and a frame 16 MiB
/// at most; with several calls the first experts compute while later ones are on their way.
const MAX_CALL_BYTES: u64 = 4 << 20;

/// What a decision depends on, besides what was asked before.
pub(crate) struct Around<'a> {
    /// Names holders in order of preference.
    pub plan: &'a Plan,
    pub members: &'a Members,
    pub holders: &'a mut Holders,
    pub now: Millis,
}

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// Ask a holder.
    Call { to: PeerId, call: u64, block: BlockIndex, class: KernelClass, share: Share },
    /// Have the own engine compute.
    Own { call: u64, block: BlockIndex, class: KernelClass, share: Share },
    /// A holder need not answer any more.
    Cancel { to: PeerId, call: u64 },
    /// The own engine need not either.
    CancelOwn { call: u64 },
    /// All outputs are there; `helpers` have computed some of them.
    Done { gather: u64, outputs: ExpertOutputs, helpers: Vec<PeerId> },
    /// A holder's numbers cannot be right; others are asked.
    Wrong { gather: u64, holder: PeerId },
    /// A spot check has found that a holder computes wrongly.
    Convicted { stage: StageId, holder: PeerId },
    /// Nobody is left to ask: because of a holder's wrong numbers, or because nobody answers.
    Lost { gather: u64, block: BlockIndex, wrong: Option<PeerId> },
}

struct Call {
    gather: u64,
    holder: ExpertHolder,
    pairs: Vec<usize>,
    size: Size,
    asked: Millis,
    timeout_millis: f64,
    /// Somebody else is asked then, instead, or the same holder again.
    due: Millis,
    state: CallState,
    /// Somebody else is asked then, too.
    hedge_at: Option<Millis>,
    /// It is late then, after as many milliseconds.
    late_at: Option<Millis>,
    late_millis: f64,
    is_late: bool,
    /// 0 for the first call, then which copy it is.
    copy: u8,
}

/// What is known of a call that is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallState {
    /// The holder has time until it is due.
    Asked,
    /// It has too much to do.
    Busy,
    /// It has not answered in time.
    Overdue,
}

/// How holders are asked, as the host chose.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Settings {
    pub hedging: Hedging,
    /// Share of answers that another holder computes again.
    pub spot_checks: f64,
}

/// All calls of one plan's stages on this device.
pub(crate) struct Dispatch {
    hedging: Hedging,
    checks: Checks,
    next_id: u64,
    gathers: BTreeMap<u64, Gather>,
    calls: BTreeMap<u64, Call>,
    owed: OwedCalls,
    budget: Budget,
    waits: Waits,
    /// A block whose experts do not come for this long has none.
    give_up_millis: f64,
}

impl Dispatch {
    /// `first_id`: above the ids of every earlier plan, so that late answers are recognised.
    pub fn new(Settings { hedging, spot_checks }: Settings, first_id: u64) -> Self {
        Self {
            hedging,
            checks: Checks::new(spot_checks),
            next_id: first_id,
            gathers: BTreeMap::new(),
            calls: BTreeMap::new(),
            owed: OwedCalls::default(),
            budget: Budget::default(),
            waits: Waits::default(),
            give_up_millis: GIVE_UP_MILLIS,
        }
    }

    fn id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    /// Asks for all outputs of a block. Returns the gather's id, which comes back with [`Step::Done`] or [`Step::Lost`].
    pub fn begin(&mut self, gather: Gather, around: &mut Around<'_>) -> (u64, Vec<Step>) {
        if around.plan.is_on_demand() {
            self.give_up_millis = GIVE_UP_LOADING_MILLIS;
        }
        let (id, pairs) = (self.id(), gather.missing());
        self.gathers.insert(id, gather);
        let mut steps = Vec::new();
        let copies = match self.hedging {
            Hedging::Copies(copies) => copies.clamp(1, MAX_COPIES),
            Hedging::Off | Hedging::Adaptive => 1,
        };
        let mut unasked = Vec::new();
        for copy in 0..copies {
            let left = self.ask(id, &pairs, copy, around, &mut steps);
            if copy == 0 {
                unasked = left;
                self.count_asked(id);
            }
        }
        self.note_pattern(id);
        self.check_unasked(id, &unasked, None, around, &mut steps);
        (id, steps)
    }

    /// Notes how many other devices are asked now.
    fn count_asked(&mut self, id: u64) {
        let of_gather = self.calls.values().filter(|call| call.gather == id && call.holder != ExpertHolder::Own);
        let asked = of_gather.map(|call| call.holder).collect::<BTreeSet<_>>().len();
        if let Some(gather) = self.gathers.get_mut(&id) {
            (gather.first_asked, gather.first_bytes) = (asked as u16, gather.asked_bytes);
        }
    }

    /// Notes which calls each expert waits for now.
    fn note_pattern(&mut self, id: u64) {
        let Some(gather) = self.gathers.get_mut(&id).filter(|gather| gather.class == KernelClass::Decode) else {
            return;
        };
        let calls: Vec<(&u64, &Call)> = self.calls.iter().filter(|(_, call)| call.gather == id).collect();
        let of_pair = |pair: usize| {
            let of_it = calls.iter().filter(move |(_, call)| call.pairs.binary_search(&pair).is_ok());
            // What the own engine computes waits for nobody.
            let is_own = of_it.clone().any(|(_, call)| call.holder == ExpertHolder::Own);
            if is_own { BTreeSet::new() } else { of_it.map(|(call, _)| **call).collect() }
        };
        gather.pattern = asked::pattern(gather.missing().into_iter().map(of_pair));
    }

    /// Whether a holder's answer to a call counts.
    pub fn awaits(&self, call: u64, holder: PeerId) -> bool {
        let owes = self.owed.is_owed(call, holder);
        let holder = ExpertHolder::Peer(holder);
        self.calls.get(&call).is_some_and(|call| call.holder == holder) || self.checks.asks(call, holder) || owes
    }

    /// What a call is part of.
    pub fn gather_of(&self, call: u64) -> Option<u64> {
        self.calls.get(&call).map(|call| call.gather)
    }

    /// Calls of a holder that it has not answered.
    pub fn open(&self, holder: PeerId) -> u32 {
        self.calls.values().filter(|call| call.holder == ExpertHolder::Peer(holder)).count() as u32
    }

    /// What decoded tokens have waited for others.
    pub fn waits(&self) -> ExpertWaits {
        self.waits.of_token()
    }

    /// A decoded token leaves its stage, on which the own engine has spent so many milliseconds.
    pub fn left(&mut self, millis: f64) {
        self.waits.left(millis);
    }

    /// What there is to tell of blocks since the last time.
    pub fn take_notes(&mut self) -> Vec<String> {
        self.waits.take_notes()
    }

    /// How long experts took, by the number of devices that were asked for them.
    pub fn phases(&self) -> Vec<ExpertPhase> {
        self.waits.phases()
    }

    /// A holder answers; `engine`: the milliseconds its engine took. Answers that nobody waits for change nothing.
    pub fn answered(
        &mut self,
        call: u64,
        from: ExpertHolder,
        outputs: &[f32],
        engine: f64,
        around: &mut Around<'_>,
    ) -> Vec<Step> {
        let mut steps = Vec::new();
        if let Some(check) = self.checks.take(call, from) {
            self.judge(check, outputs, around, &mut steps);
            return steps;
        }
        if let Some(Owed { holder, size, asked, .. }) = self.owed.take(call, from) {
            around.holders.answered_late(holder, size, around.now.0 - asked.0);
            return steps;
        }
        let Some(Call { gather: id, pairs, size, asked, copy, .. }) = self.take(call, from) else { return steps };
        let Some(gather) = self.gathers.get_mut(&id) else { return steps };
        if !gather.are_outputs(&pairs, outputs) {
            gather.refuse(&pairs, from);
            let left = self.ask_missing(id, &pairs, around, &mut steps);
            let wrong = match from {
                ExpertHolder::Peer(peer) => peer,
                ExpertHolder::Own => around.members.me,
            };
            if !self.check_unasked(id, &left, Some(wrong), around, &mut steps) {
                steps.push(Step::Wrong { gather: id, holder: wrong });
            }
            return steps;
        }
        let was_first = gather.take(&pairs, outputs) > 0;
        match from {
            ExpertHolder::Own => gather.own_done = Some(around.now),
            ExpertHolder::Peer(peer) => {
                gather.helpers.extend(was_first.then_some(peer));
                around.holders.answered(peer, size, around.now.0 - asked.0, engine);
                around.holders.sent(peer, around.plan.expert_wire.bytes(outputs.len() as u64));
                if was_first && copy > 0 {
                    around.holders.hedge_won(peer);
                }
            }
        }
        let is_complete = gather.is_complete();
        if self.checks.wants(call, gather.secret()) {
            let (stage, block, class, share) = (gather.stage, gather.block, gather.class, gather.share(&pairs));
            let (began, answers) = (around.now, vec![(from, outputs.to_vec())]);
            self.check(Check { stage, block, class, share, began, answers, asked: from }, around, &mut steps);
        }
        self.cancel_needless(id, around, &mut steps);
        if is_complete && let Some(gather) = self.gathers.remove(&id) {
            if gather.class == KernelClass::Decode {
                let (waited, bytes) = (gather.waited(around.now), gather.bytes_a_token());
                self.waits.passed(gather.block, Passed { waited, engine, bytes });
                self.waits.gathered(gather.first_asked, around.now.0 - gather.began.0);
                self.waits.note(&gather, around.now);
            }
            let helpers = gather.helpers.iter().copied().collect();
            steps.push(Step::Done { gather: id, outputs: gather.finish(), helpers });
        }
        steps
    }

    /// A holder cannot answer.
    pub fn failed(
        &mut self,
        call: u64,
        from: ExpertHolder,
        failure: ExpertFailure,
        around: &mut Around<'_>,
    ) -> Vec<Step> {
        let mut steps = Vec::new();
        if self.checks.take(call, from).is_some() {
            // Another answer will be checked.
            return steps;
        }
        if let Some(Owed { holder, .. }) = self.owed.take(call, from) {
            match failure {
                ExpertFailure::NoPlan => around.holders.absent(holder),
                _ => around.holders.heartbeat(holder),
            }
            return steps;
        }
        let Some(mut open) = self.take(call, from) else { return steps };
        let (id, pairs) = (open.gather, open.pairs.clone());
        if let (ExpertFailure::NoPlan, ExpertHolder::Peer(peer)) = (failure, from) {
            // The host will say so, too. Until then other blocks need not ask it first.
            around.holders.absent(peer);
        }
        if failure == ExpertFailure::Busy {
            // It stays open until somebody else answers, or it has less to do.
            (open.due, open.state) = (Millis(around.now.0 + BUSY_MILLIS), CallState::Busy);
            (open.hedge_at, open.late_at) = (None, None);
            self.calls.insert(call, open);
        } else if let Some(gather) = self.gathers.get_mut(&id) {
            gather.refuse(&pairs, from);
        }
        let left = self.ask_missing(id, &pairs, around, &mut steps);
        self.check_unasked(id, &left, None, around, &mut steps);
        steps
    }

    /// Time has passed, or somebody came or left.
    pub fn look(&mut self, around: &mut Around<'_>) -> Vec<Step> {
        let mut steps = Vec::new();
        self.checks.forget_old(around.now);
        self.owed.look(around.members, around.holders, around.now);
        let ids: Vec<u64> = self.calls.keys().copied().collect();
        for id in ids {
            self.look_at(id, around, &mut steps);
        }
        let ids: Vec<u64> = self.gathers.keys().copied().collect();
        for id in ids {
            let unasked = self.unasked(id);
            let left = self.ask(id, &unasked, 0, around, &mut steps);
            self.check_unasked(id, &left, None, around, &mut steps);
            self.give_up(id, around, &mut steps);
        }
        steps
    }

    /// When to look next; `None` if nothing is waited for.
    pub fn next_look(&self) -> Option<Millis> {
        let calls = self.calls.values().flat_map(|call| [call.hedge_at, call.late_at, Some(call.due)]).flatten();
        let gathers = self.gathers.values().map(|gather| Millis(gather.began.0 + self.give_up_millis));
        let all = calls.chain(gathers).chain(self.owed.next_look());
        all.filter(|at| at.0.is_finite()).min_by(|a, b| a.0.total_cmp(&b.0))
    }

    /// Nobody waits for these outputs any more.
    pub fn drop_gather(&mut self, id: u64, around: &mut Around<'_>) -> Vec<Step> {
        let mut steps = Vec::new();
        self.gathers.remove(&id);
        self.cancel_needless(id, around, &mut steps);
        steps
    }

    /// Has the next holder of the same arithmetic compute an answer again, if there is one.
    fn check(&mut self, mut check: Check, around: &Around<'_>, steps: &mut Vec<Step>) {
        let Some((first, _)) = check.answers.first() else { return };
        let Some((_, stage)) = around.plan.stage(check.stage) else { return };
        let Some(remote) = stage.remote_experts(check.block) else { return };
        let of = |expert: ExpertId| remote.holders.get(usize::from(expert.0)).map_or(&[][..], Vec::as_slice);
        let has_all = |holder: &ExpertHolder| check.experts().all(|expert| of(expert).contains(holder));
        let can_be = |holder: &&ExpertHolder| {
            let is_new = check.answers.iter().all(|(known, _)| known != *holder);
            // What would have to be loaded first is not worth a check.
            let is_here = **holder != ExpertHolder::Own || stage.pool.is_none();
            is_new && is_here && has_all(holder) && is_alike(*first, **holder, around)
        };
        let Some(next) = check.experts().next().and_then(|expert| of(expert).iter().find(can_be)).copied() else {
            return;
        };
        check.asked = next;
        let call = self.id();
        let Check { block, class, share, .. } = check.clone();
        steps.push(match next {
            ExpertHolder::Own => Step::Own { call, block, class, share },
            ExpertHolder::Peer(to) => Step::Call { to, call, block, class, share },
        });
        self.checks.open(call, check);
    }

    fn judge(&mut self, mut check: Check, outputs: &[f32], around: &Around<'_>, steps: &mut Vec<Step>) {
        match check.answered(outputs) {
            Verdict::Differ => self.check(check, around, steps),
            Verdict::Wrong(ExpertHolder::Peer(holder)) => steps.push(Step::Convicted { stage: check.stage, holder }),
            // The own GPU is tested otherwise.
            Verdict::Wrong(ExpertHolder::Own) | Verdict::Agree | Verdict::Unknown => {}
        }
    }

    fn take(&mut self, call: u64, from: ExpertHolder) -> Option<Call> {
        self.calls.get(&call).filter(|call| call.holder == from)?;
        self.calls.remove(&call)
    }

    fn look_at(&mut self, id: u64, around: &mut Around<'_>, steps: &mut Vec<Step>) {
        let Some(call) = self.calls.get_mut(&id) else { return };
        let ExpertHolder::Peer(peer) = call.holder else { return };
        let gather = call.gather;
        let is_holder = self.gathers.get(&gather).is_some_and(|gather| {
            call.pairs.iter().all(|pair| holders(gather, *pair, around.plan).contains(&call.holder))
        });
        if !around.members.is_here(peer) || !is_holder {
            // Whatever is on its way is lost with the connection; or it has been struck off.
            self.calls.remove(&id);
            return;
        }
        if call.hedge_at.take_if(|at| at.0 <= around.now.0).is_some() {
            let (pairs, copy) = (call.pairs.clone(), call.copy + 1);
            self.hedge(gather, &pairs, copy, Cause::Hedge, around, steps);
        }
        self.look_for_late(id, peer, around, steps);
        let Some(call) = self.calls.get_mut(&id).filter(|call| call.due.0 <= around.now.0) else { return };
        let pairs = call.pairs.clone();
        let is_busy = call.state == CallState::Busy;
        if !is_busy {
            around.holders.timed_out(peer);
            (call.state, call.timeout_millis) = (CallState::Overdue, 2.0 * call.timeout_millis);
        }
        // Its answer still counts if it comes first. Until then others may fail.
        call.due = Millis(around.now.0 + if is_busy { BUSY_MILLIS } else { call.timeout_millis });
        let left = self.ask_missing(gather, &pairs, around, steps);
        if left.iter().any(|pair| !self.is_asked_besides(id, *pair)) {
            self.ask_again(id, around.now, steps);
        }
    }

    /// A call that takes much longer than its holder's calls do goes to the next holder, too, and so do calls of the next blocks.
    fn look_for_late(&mut self, id: u64, peer: PeerId, around: &mut Around<'_>, steps: &mut Vec<Step>) {
        let Some(call) = self.calls.get_mut(&id) else { return };
        let Some(at) = call.late_at.take_if(|at| at.0 <= around.now.0) else { return };
        if around.now.0 - at.0 > call.late_millis {
            // This device itself was held up: answers may wait to be read.
            call.late_at = Some(Millis(around.now.0 + call.late_millis));
            return;
        }
        call.is_late = true;
        around.holders.is_late(peer, around.now);
        let (gather, copy, pairs) = (call.gather, call.copy + 1, call.pairs.clone());
        let in_time = |call: &&Call| call.gather == gather && call.state == CallState::Asked && !call.is_late;
        let others: Vec<&Call> = self.calls.values().filter(in_time).collect();
        let is_alone = |pair: &usize| !others.iter().any(|call| call.pairs.binary_search(pair).is_ok());
        let alone: Vec<usize> = pairs.into_iter().filter(is_alone).collect();
        self.hedge(gather, &alone, copy, Cause::Late, around, steps);
    }

    /// Somebody else has time left to answer for a pair of this call.
    fn is_asked_besides(&self, id: u64, pair: usize) -> bool {
        let Some(gather) = self.calls.get(&id).map(|call| call.gather) else { return false };
        let mut others = self.calls.iter().filter(|(other, call)| **other != id && call.gather == gather);
        others.any(|(_, call)| call.state == CallState::Asked && call.pairs.binary_search(&pair).is_ok())
    }

    /// Nobody else can be asked: the same call once more, because a frame may be lost, or it was refused.
    fn ask_again(&mut self, id: u64, now: Millis, steps: &mut Vec<Step>) {
        let Some(call) = self.calls.get_mut(&id) else { return };
        let (ExpertHolder::Peer(to), Some(gather)) = (call.holder, self.gathers.get(&call.gather)) else { return };
        if call.state == CallState::Busy {
            call.state = CallState::Asked;
        }
        call.due = Millis(now.0 + call.timeout_millis);
        let share = gather.share(&call.pairs);
        steps.push(Step::Call { to, call: id, block: gather.block, class: gather.class, share });
    }

    /// Asks others too, as far as the budget of bytes allows.
    fn hedge(
        &mut self,
        id: u64,
        pairs: &[usize],
        copy: u8,
        cause: Cause,
        around: &mut Around<'_>,
        steps: &mut Vec<Step>,
    ) {
        let Some(gather) = self.gathers.get(&id).filter(|_| copy < MAX_COPIES) else { return };
        let missing: Vec<usize> = pairs.iter().copied().filter(|pair| gather.is_missing(*pair)).collect();
        let can_be = |pair: &usize| self.choose(id, *pair, around).is_some_and(|holder| !is_late(holder, around));
        let can_be: Vec<usize> = missing.into_iter().filter(can_be).collect();
        let bytes = gather.bytes(&can_be, around.plan.expert_wire);
        if bytes > 0 && self.budget.take(bytes, cause) {
            self.ask(id, &can_be, copy, around, steps);
        }
    }

    fn ask_missing(&mut self, id: u64, pairs: &[usize], around: &mut Around<'_>, steps: &mut Vec<Step>) -> Vec<usize> {
        let Some(gather) = self.gathers.get(&id) else { return Vec::new() };
        let missing: Vec<usize> = pairs.iter().copied().filter(|pair| gather.is_missing(*pair)).collect();
        self.ask(id, &missing, 0, around, steps)
    }

    /// Asks the first holder of each pair that has not been asked yet. Returns the pairs for which there is none.
    fn ask(
        &mut self,
        id: u64,
        pairs: &[usize],
        copy: u8,
        around: &mut Around<'_>,
        steps: &mut Vec<Step>,
    ) -> Vec<usize> {
        let (mut shares, mut unasked) = (BTreeMap::<ExpertHolder, Vec<usize>>::new(), Vec::new());
        let stage = self.gathers.get(&id).and_then(|gather| around.plan.stage(gather.stage));
        // What the stage would have to load first is no copy of anything: it is for experts that nobody else computes.
        let is_no_copy = copy > 0 && stage.is_some_and(|(_, stage)| stage.pool.is_some());
        for pair in pairs {
            match self.choose(id, *pair, around) {
                Some(ExpertHolder::Own) if is_no_copy => {}
                // A copy there would be of no use. Where all holders are late, nothing is copied.
                Some(holder) if copy > 0 && is_late(holder, around) => {}
                Some(holder) => shares.entry(holder).or_default().push(*pair),
                None => unasked.push(*pair),
            }
        }
        // The own engine last: the calls are on their way meanwhile.
        let own = shares.remove(&ExpertHolder::Own).map(|pairs| (ExpertHolder::Own, pairs));
        for (holder, pairs) in shares.into_iter().chain(own) {
            for part in self.parts(id, &pairs, around.plan.expert_wire) {
                self.call(id, holder, part, copy, around, steps);
            }
        }
        unasked
    }

    /// Pairs in as many calls as their bytes take.
    fn parts(&self, id: u64, pairs: &[usize], wire: WireType) -> Vec<Vec<usize>> {
        let bytes = self.gathers.get(&id).map_or(0, |gather| gather.bytes(pairs, wire));
        let calls = bytes.div_ceil(MAX_CALL_BYTES).max(1) as usize;
        pairs.chunks(pairs.len().div_ceil(calls).max(1)).map(<[usize]>::to_vec).collect()
    }

    fn call(
        &mut self,
        id: u64,
        holder: ExpertHolder,
        pairs: Vec<usize>,
        copy: u8,
        around: &mut Around<'_>,
        steps: &mut Vec<Step>,
    ) {
        let call = self.id();
        let Some(gather) = self.gathers.get_mut(&id) else { return };
        gather.asks_others |= holder != ExpertHolder::Own;
        let (block, class, share) = (gather.block, gather.class, gather.share(&pairs));
        let size = Size { class, bytes: gather.bytes(&pairs, around.plan.expert_wire), pairs: pairs.len() };
        let (now, mut timeout_millis, mut hedge_at) = (around.now, f64::INFINITY, None);
        let mut late_millis = None;
        match holder {
            ExpertHolder::Own => steps.push(Step::Own { call, block, class, share }),
            ExpertHolder::Peer(to) => {
                timeout_millis = around.holders.timeout(to, size);
                let delay = around.holders.hedge_delay(to, size).filter(|_| self.hedging == Hedging::Adaptive);
                hedge_at = delay.filter(|delay| *delay < timeout_millis).map(|delay| Millis(now.0 + delay));
                late_millis = around.holders.late_after(to, size).filter(|late| *late < timeout_millis);
                match copy {
                    0 => self.budget.first(size.bytes),
                    _ => around.holders.hedged(to),
                }
                gather.asked_bytes += size.bytes;
                steps.push(Step::Call { to, call, block, class, share });
            }
        }
        let due = Millis(now.0 + timeout_millis);
        let (asked, state) = (now, CallState::Asked);
        let late_at = late_millis.map(|late| Millis(now.0 + late));
        let (late_millis, is_late) = (late_millis.unwrap_or(f64::INFINITY), false);
        let new = Call {
            gather: id,
            holder,
            pairs,
            size,
            asked,
            timeout_millis,
            due,
            state,
            hedge_at,
            late_at,
            late_millis,
            is_late,
            copy,
        };
        self.calls.insert(call, new);
    }

    /// The first holder of a pair that is here and was not asked; one that is late with other calls only if there is no other,
    /// and one that does not answer lately last. A stage that would have to load the expert does so only in its turn.
    fn choose(&self, id: u64, pair: usize, around: &Around<'_>) -> Option<ExpertHolder> {
        let gather = self.gathers.get(&id)?;
        let holders = holders(gather, pair, around.plan);
        let is_asked = |holder: ExpertHolder| {
            let mut open = self.calls.values().filter(|call| call.gather == id && call.holder == holder);
            open.any(|call| call.pairs.binary_search(&pair).is_ok())
        };
        let is_here = |holder: &ExpertHolder| match holder {
            ExpertHolder::Own => true,
            ExpertHolder::Peer(peer) => around.members.is_here(*peer),
        };
        let doubt = |holder: &ExpertHolder| match holder {
            ExpertHolder::Peer(peer) if !around.holders.is_healthy(*peer) => 2,
            holder if is_late(*holder, around) => 1,
            ExpertHolder::Own if around.plan.is_on_demand() && holders.first() != Some(&ExpertHolder::Own) => 1,
            ExpertHolder::Peer(_) | ExpertHolder::Own => 0,
        };
        let can_be =
            |holder: &ExpertHolder| is_here(holder) && !gather.has_refused(pair, *holder) && !is_asked(*holder);
        // The first one of those that are doubted least.
        holders.iter().copied().filter(can_be).min_by_key(doubt)
    }

    /// Pairs without a vector that nobody is asked for.
    fn unasked(&self, id: u64) -> Vec<usize> {
        let missing = self.gathers.get(&id).map(Gather::missing).unwrap_or_default();
        let open: Vec<&Call> = self.calls.values().filter(|call| call.gather == id).collect();
        let is_asked = |pair: &usize| open.iter().any(|call| call.pairs.binary_search(pair).is_ok());
        missing.into_iter().filter(|pair| !is_asked(pair)).collect()
    }

    /// Gives up a gather if nobody is left for one of these pairs. Holders whose connection ended may come back in a
    /// moment. True if it was given up.
    fn check_unasked(
        &mut self,
        id: u64,
        unasked: &[usize],
        wrong: Option<PeerId>,
        around: &mut Around<'_>,
        steps: &mut Vec<Step>,
    ) -> bool {
        let Some(gather) = self.gathers.get(&id) else { return false };
        let may_come = |pair: &usize| {
            holders(gather, *pair, around.plan).iter().any(|holder| match holder {
                holder if gather.has_refused(*pair, *holder) => false,
                ExpertHolder::Own => true,
                ExpertHolder::Peer(peer) => around.members.get(*peer).is_some(),
            })
        };
        let is_lost = unasked.iter().any(|pair| !may_come(pair));
        if is_lost {
            self.lose(id, wrong, around, steps);
        }
        is_lost
    }

    fn give_up(&mut self, id: u64, around: &mut Around<'_>, steps: &mut Vec<Step>) {
        if self.gathers.get(&id).is_some_and(|gather| around.now.0 - gather.began.0 >= self.give_up_millis) {
            self.lose(id, None, around, steps);
        }
    }

    fn lose(&mut self, id: u64, wrong: Option<PeerId>, around: &mut Around<'_>, steps: &mut Vec<Step>) {
        if let Some(gather) = self.gathers.remove(&id) {
            steps.push(Step::Lost { gather: id, block: gather.block, wrong });
            self.cancel_needless(id, around, steps);
        }
    }

    /// Cancels the calls of a gather that can bring nothing new.
    fn cancel_needless(&mut self, id: u64, around: &mut Around<'_>, steps: &mut Vec<Step>) {
        let gather = self.gathers.get(&id);
        let is_needed =
            |call: &Call| gather.is_some_and(|gather| call.pairs.iter().any(|pair| gather.is_missing(*pair)));
        let of_gather = self.calls.iter().filter(|(_, call)| call.gather == id && !is_needed(call));
        let needless: Vec<u64> = of_gather.map(|(call, _)| *call).collect();
        for call in needless {
            let Some(Call { holder, size, asked, late_at, .. }) = self.calls.remove(&call) else { continue };
            match holder {
                ExpertHolder::Own => steps.push(Step::CancelOwn { call }),
                ExpertHolder::Peer(to) => {
                    let owed = Owed { holder: to, size, asked, late_at };
                    if !self.owed.leave_open(call, owed, around.holders, around.now) {
                        around.holders.cancelled(to, size, around.now.0 - asked.0);
                        steps.push(Step::Cancel { to, call });
                    }
                }
            }
        }
    }
}

/// A holder is late with other calls.
fn is_late(holder: ExpertHolder, around: &Around<'_>) -> bool {
    matches!(holder, ExpertHolder::Peer(peer) if around.holders.is_overtaken(peer, around.now))
}

/// Both are here, and honest devices like them compute the same bits: with the same kernels, on the same kind of GPU.
fn is_alike(a: ExpertHolder, b: ExpertHolder, around: &Around<'_>) -> bool {
    let hello = |holder: ExpertHolder| {
        let peer = match holder {
            ExpertHolder::Own => around.members.me,
            ExpertHolder::Peer(peer) => peer,
        };
        around.members.get(peer).filter(|_| around.members.is_here(peer)).map(|member| &member.hello)
    };
    let arithmetic = |holder| hello(holder).map(|hello| (&hello.build, hello.kernel_class, &hello.adapter));
    arithmetic(a).is_some_and(|known| arithmetic(b) == Some(known))
}

/// The holders of a pair's expert, in order of preference.
fn holders<'a>(gather: &Gather, pair: usize, plan: &'a Plan) -> &'a [ExpertHolder] {
    let remote = plan.stage(gather.stage).and_then(|(_, stage)| stage.remote_experts(gather.block));
    let holders = remote.and_then(|remote| remote.holders.get(usize::from(gather.expert(pair).0)));
    holders.map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests;
