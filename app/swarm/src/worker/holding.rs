//! Experts besides those of the plan: loaded while the plan goes on, so that no device is needed that might leave.

use potluck_plan::{BlockIndex, ExpertId, PeerId, Plan, PlanEpoch};
use potluck_protocol::{Frame, Hold, Holding, LoadFault, LoadReport, Residency, ResidencyChange};

use super::{Active, Worker};
use crate::event_context::EventContext;
use crate::residency;

/// Names of loads for orders are above every plan's epoch (`limits::claimed_epoch`), so that neither is taken for the
/// other.
const NAMES: u32 = 1 << 31;

/// An order to load experts.
pub(super) struct Held {
    coordinator: PeerId,
    version: u32,
    experts: Vec<(BlockIndex, ExpertId)>,
    is_loaded: bool,
    progress: Option<LoadReport>,
}

impl Held {
    fn load(&self) -> PlanEpoch {
        PlanEpoch(NAMES | self.version)
    }
}

impl Worker {
    /// Experts of a plan lie elsewhere from now on.
    pub fn move_experts(&mut self, residency: &Residency, cx: &mut EventContext) {
        let Residency { epoch, version, changes } = residency;
        let change = |plan: &mut Plan| changes.iter().for_each(|change| residency::apply(plan, *change));
        if let Some(inactive) = self.inactive.as_mut().filter(|inactive| inactive.epoch() == *epoch) {
            let executor = inactive.executor.as_mut();
            if executor.is_none_or(|executor| executor.move_experts(*version, changes, cx)) {
                change(&mut inactive.prepare.plan);
            }
        }
        if let Some(active) = self.active.as_mut().filter(|active| active.executor.epoch() == *epoch)
            && active.executor.move_experts(*version, changes, cx)
        {
            change(&mut active.prepare.plan);
        }
    }

    /// The coordinator wants experts to be here, too.
    pub fn hold(&mut self, coordinator: PeerId, order: Hold, cx: &mut EventContext) {
        let Hold { epoch, version, experts } = order;
        if let Err(fault) = self.may_hold(epoch, version, &experts) {
            cx.out.send(coordinator, Frame::Holding(Holding { epoch, version, failed: Some(fault) }));
            return;
        }
        let Some(active) = &mut self.active else { return };
        if let Some(held) = active.held.as_ref().filter(|held| held.version == version) {
            // The answer may be lost.
            if held.is_loaded {
                cx.out.send(coordinator, Frame::Holding(Holding { epoch, version, failed: None }));
            }
            return;
        }
        let held = Held { coordinator, version, experts, is_loaded: false, progress: None };
        let load = held.load();
        add(active, &held, cx.members.me);
        active.held = Some(held);
        match self.active.as_ref().map_or(Ok(()), |active| self.check(&active.prepare, cx.members.me)) {
            Ok(()) => self.load(load, cx),
            Err(fault) => self.stop_holding(fault, cx),
        }
    }

    fn may_hold(&self, epoch: PlanEpoch, version: u32, experts: &[(BlockIndex, ExpertId)]) -> Result<(), LoadFault> {
        let failed = |sentence: &str| Err(LoadFault::Failed(sentence.to_owned()));
        let Some(active) = self.active.as_ref().filter(|active| active.executor.epoch() == epoch) else {
            return failed("it does not run this plan");
        };
        let is_expert = |(block, expert): &(BlockIndex, ExpertId)| {
            usize::from(expert.0) < active.prepare.shape.expert_count(*block)
        };
        let is_other = |held: &Held| held.version != version && !held.is_loaded;
        match () {
            () if self.inactive.is_some() || active.held.as_ref().is_some_and(is_other) => failed("it is loading"),
            () if version >= NAMES || !experts.iter().all(is_expert) => failed("the model has no such expert"),
            () => Ok(()),
        }
    }

    /// A load goes on. It may be one of experts besides the plan's.
    pub(super) fn hold_progress(&mut self, load: PlanEpoch, report: LoadReport) {
        let held = self.active.as_mut().and_then(|active| active.held.as_mut());
        if let Some(held) = held.filter(|held| held.load() == load && !held.is_loaded) {
            held.progress = Some(report);
        }
    }

    /// How far this device is with experts besides the plan's.
    pub(super) fn holding(&self) -> Option<LoadReport> {
        self.active.as_ref()?.held.as_ref().filter(|held| !held.is_loaded)?.progress
    }

    /// A load has ended. True if it was one of experts besides the plan's.
    pub(super) fn held_loaded(&mut self, load: PlanEpoch, cx: &mut EventContext) -> bool {
        let Some(active) = &mut self.active else { return false };
        let Some(held) = active.held.as_mut().filter(|held| held.load() == load && !held.is_loaded) else {
            return false;
        };
        held.is_loaded = true;
        let epoch = active.executor.epoch();
        held.experts.iter().for_each(|(block, expert)| active.executor.add_own(*block, *expert));
        cx.out.send(held.coordinator, Frame::Holding(Holding { epoch, version: held.version, failed: None }));
        self.load_standby(cx);
        true
    }

    /// A load has failed. True if it was one of experts besides the plan's.
    pub(super) fn hold_failed(&mut self, load: PlanEpoch, fault: &LoadFault, cx: &mut EventContext) -> bool {
        let is_meant = |active: &Active| active.held.as_ref().is_some_and(|held| held.load() == load);
        let epoch = self.active.as_ref().filter(|active| is_meant(active)).map(|active| active.executor.epoch());
        if let Some(epoch) = epoch {
            self.stop_holding(fault.clone(), cx);
            self.load(epoch, cx);
        }
        epoch.is_some()
    }

    /// Gives up loading experts besides the plan's. Those that are there stay.
    pub(super) fn stop_holding(&mut self, fault: LoadFault, cx: &mut EventContext) {
        let Some(active) = &mut self.active else { return };
        let Some(held) = active.held.take_if(|held| !held.is_loaded) else { return };
        let epoch = active.executor.epoch();
        // What is on the GPU is what the executor knows.
        active.prepare.plan = active.executor.plan().clone();
        cx.out.send(held.coordinator, Frame::Holding(Holding { epoch, version: held.version, failed: Some(fault) }));
    }
}

/// The plan names this device as a holder, so that whatever is loaded for the plan includes the experts.
fn add(active: &mut Active, held: &Held, me: PeerId) {
    for (block, expert) in &held.experts {
        let change = ResidencyChange::Add { block: *block, expert: *expert, peer: me };
        residency::apply(&mut active.prepare.plan, change);
    }
}
