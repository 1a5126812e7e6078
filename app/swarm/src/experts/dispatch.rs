//! Calls of experts: to whom, when to somebody else, and what to do with the answers.

mod answering;
mod asking;
mod call;
mod ending;
mod spot_checks;
mod timers;

use std::collections::{BTreeMap, BTreeSet};

use potluck_plan::{BlockIndex, ExpertHolder, ExpertOutputs, KernelClass, Millis, PeerId, Plan, StageId, WireType};
use potluck_protocol::{ExpertPhase, ExpertWaits, Hedging};

use self::call::Call;
use super::asked;
use super::checks::Checks;
use super::gather::{CallShare, Gather};
use super::hedging::Budgets;
use super::holders::Holders;
use super::superseded::SupersededCalls;
use super::waits::Waits;
use crate::members::Members;
use crate::trace::ExpertWait;

/// A block whose experts do not come for this long has none: the coordinator makes another plan.
const GIVE_UP_MILLIS: f64 = 10_000.0;
/// With experts on demand a holder may have to fetch a chunk's experts over the network first.
const GIVE_UP_LOADING_MILLIS: f64 = 120_000.0;
/// A holder with too much to do is asked again after this time, if there is nobody else.
const BUSY_MILLIS: f64 = 20.0;

/// What a decision depends on, besides what was asked before.
pub(crate) struct DispatchContext<'a> {
    /// Names holders in order of preference.
    pub plan: &'a Plan,
    pub members: &'a Members,
    pub holders: &'a mut Holders,
    pub now: Millis,
}

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum DispatchStep {
    /// Ask a holder.
    Call { to: PeerId, call: u64, block: BlockIndex, class: KernelClass, share: CallShare },
    /// Have the own engine compute.
    Own { call: u64, block: BlockIndex, class: KernelClass, share: CallShare },
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
    /// A holder has answered in another number format than it was asked in; others are asked.
    OtherWireType { stage: StageId, holder: PeerId, answered: WireType },
    /// Nobody is left to ask: because of a holder's wrong numbers, or because those that are there cannot compute it or do not
    /// answer.
    Lost { gather: u64, block: BlockIndex, wrong: Option<PeerId>, failed: Vec<PeerId> },
}

/// How holders are asked, as the host chose.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct DispatchSettings {
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
    superseded: SupersededCalls,
    budgets: Budgets,
    waits: Waits,
    /// A block whose experts do not come for this long has none.
    give_up_millis: f64,
}

impl Dispatch {
    /// `first_id`: above the ids of every earlier plan, so that late answers are recognised.
    pub fn new(DispatchSettings { hedging, spot_checks }: DispatchSettings, first_id: u64) -> Self {
        Self {
            hedging,
            checks: Checks::new(spot_checks),
            next_id: first_id,
            gathers: BTreeMap::new(),
            calls: BTreeMap::new(),
            superseded: SupersededCalls::default(),
            budgets: Budgets::default(),
            waits: Waits::default(),
            give_up_millis: GIVE_UP_MILLIS,
        }
    }

    fn id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    /// Asks for all outputs of a block. Returns the gather's id, which comes back with [`DispatchStep::Done`] or [`DispatchStep::Lost`].
    pub fn begin(&mut self, gather: Gather, cx: &mut DispatchContext<'_>) -> (u64, Vec<DispatchStep>) {
        if cx.plan.is_on_demand() {
            self.give_up_millis = GIVE_UP_LOADING_MILLIS;
        }
        let (id, pairs) = (self.id(), gather.missing());
        self.gathers.insert(id, gather);
        let mut steps = Vec::new();
        let copies = match self.hedging {
            Hedging::Copies(copies) => copies.clamp(1, Hedging::MAX_COPIES),
            Hedging::Off | Hedging::Adaptive => 1,
        };
        let mut unasked = Vec::new();
        for copy in 0..copies {
            let left = self.ask(id, &pairs, copy, cx, &mut steps);
            if copy == 0 {
                unasked = left;
                self.count_asked(id);
            }
        }
        self.note_pattern(id);
        self.check_unasked(id, &unasked, None, cx, &mut steps);
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
        let is_superseded = self.superseded.awaits(call, holder);
        let holder = ExpertHolder::Peer(holder);
        self.calls.get(&call).is_some_and(|call| call.holder == holder)
            || self.checks.stage_of(call, holder).is_some()
            || is_superseded
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
    pub fn take_notes(&mut self) -> Vec<ExpertWait> {
        self.waits.take_notes()
    }

    /// How long experts took, by the number of devices that were asked for them.
    pub fn phases(&self) -> Vec<ExpertPhase> {
        self.waits.phases()
    }
}

#[cfg(test)]
mod tests;
