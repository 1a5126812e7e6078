//! What the GPU must hold for the plans, and the progress of loading it.

use std::collections::BTreeSet;

use potluck_plan::{Bytes, PeerId, PlanEpoch, Stage, WeightUnit};
use potluck_protocol::{Frame, LoadFault, LoadReport, Prepare};

use super::Worker;
use crate::event::LoadRequest;
use crate::event_context::EventContext;
use crate::memory::{pool_bytes, resident_bytes};
use crate::{Action, Severity};

impl Worker {
    /// Checks a plan against the present contribution, which may be smaller than the coordinator knows.
    pub(super) fn check(&self, prepare: &Prepare, me: PeerId) -> Result<(), LoadFault> {
        let Some(contribution) = &self.contribution else {
            return Err(LoadFault::Failed("this device does not lend its GPU any more".into()));
        };
        prepare.plan.validate(&prepare.shape).map_err(|error| LoadFault::Failed(error.to_string()))?;
        let units = self.units_with(prepare, me);
        let slots = pool_bytes(&prepare.plan, &prepare.shape, me);
        let weights = resident_bytes(&prepare.shape, &units, prepare.plan.context).saturating_add(slots);
        let (needed, budget) = (weights.saturating_add(prepare.overhead), contribution.budget);
        if needed > budget {
            Err(LoadFault::NoRoom(format!("its part needs {needed} of GPU memory, but it lends only {budget}")))
        } else {
            Ok(())
        }
    }

    /// The active plan goes on while this one is prepared.
    pub(super) fn keeps_active(&self, prepare: &Prepare) -> bool {
        let active = self.active.as_ref().map(|active| active.executor.epoch());
        active.is_some() && active == prepare.keep
    }

    /// The units of a plan in its order, then those that only the active plan needs.
    fn units_with(&self, prepare: &Prepare, me: PeerId) -> Vec<WeightUnit> {
        let units = prepare.plan.units_for(me, &prepare.shape);
        let kept = self.active.as_ref().map(|active| &active.prepare).filter(|_| self.keeps_active(prepare));
        match kept.filter(|active| active.plan.model == prepare.plan.model) {
            Some(active) => joined(units, &active.plan.units_for(me, &active.shape)),
            None => units,
        }
    }

    /// The units that the plans need now, with the plan that determines model and context.
    pub(super) fn of_plans(&self, me: PeerId) -> Option<(&Prepare, Vec<WeightUnit>)> {
        let inactive = self.inactive.as_ref().map(|inactive| &inactive.prepare);
        if let Some(prepare) = inactive {
            return Some((prepare, self.units_with(prepare, me)));
        }
        let active = &self.active.as_ref()?.prepare;
        Some((active, active.plan.units_for(me, &active.shape)))
    }

    /// In a plan that computes or is made ready, the only stage is here and calls experts that lie in the slots of others.
    pub(super) fn sends_hints(&self, me: PeerId) -> bool {
        self.plans().any(|plan| {
            let is_mine = |stage: &Stage| stage.peer == me && !stage.remote.is_empty();
            !plan.pools.is_empty() && matches!(plan.stages.as_slice(), [stage] if is_mine(stage))
        })
    }

    /// Loads what the plans need now. Standby units stay where they fit beside it, and are dropped otherwise.
    pub(super) fn load(&mut self, epoch: PlanEpoch, cx: &mut EventContext) {
        let (Some((prepare, units)), Some(contribution)) = (self.of_plans(cx.members.me), self.contribution) else {
            return;
        };
        let (model, context, kv_cache) = (prepare.model.clone(), prepare.plan.context, prepare.plan.kv_cache);
        let arithmetic = prepare.plan.arithmetic;
        let pool = prepare.plan.pool_for(cx.members.me, &prepare.shape);
        let pool_experts = prepare.plan.pool_experts(cx.members.me, &prepare.shape);
        let both = self.with_standby(prepare, &units, contribution.budget);
        if both.is_none() {
            self.stop_standing_by(LoadFault::NoRoom("a plan needs the memory".into()), cx)
        } else {
            self.interrupt_standby()
        }
        let units = both.unwrap_or(units);
        let budget = contribution.budget;
        cx.out.act(Action::Load(LoadRequest {
            epoch,
            model,
            units,
            pool,
            pool_experts,
            hints: self.sends_hints(cx.members.me),
            context,
            kv_cache,
            arithmetic,
            budget,
        }));
    }

    /// Reconciles the GPU when no plan is being loaded: frees what no plan needs and loads a waiting standby order.
    pub(super) fn reconcile(&mut self, epoch: PlanEpoch, cx: &mut EventContext) {
        if self.waits_to_stand_by() { self.load_standby(cx) } else { self.load(epoch, cx) }
    }

    pub fn progress(&mut self, epoch: PlanEpoch, report: LoadReport, used: Bytes, cx: &mut EventContext) {
        self.used = used;
        self.hold_progress(epoch, report);
        let of_plan = self.inactive.as_ref().is_some_and(|inactive| inactive.epoch() == epoch && !inactive.loaded);
        // A device that works for a plan is not reported as loading: loading devices may stay silent for longer.
        let of_spare = self.active.is_none() && self.inactive.is_none() && self.loads_standby(epoch);
        if of_plan || of_spare {
            self.loading = Some(report);
            cx.out.act(Action::ViewChanged);
        }
    }

    pub fn loaded(&mut self, epoch: PlanEpoch, cx: &mut EventContext) {
        if self.held_loaded(epoch, cx) {
            return;
        }
        self.standby_loaded(epoch, cx);
        let Some(inactive) = self.inactive.as_mut().filter(|inactive| inactive.epoch() == epoch) else { return };
        if !std::mem::replace(&mut inactive.loaded, true) {
            self.loading = None;
            cx.out.send(inactive.coordinator, Frame::Prepared(epoch));
            cx.out.act(Action::ViewChanged);
        }
    }

    /// Loading failed. The active plan goes on: what it needs was there before.
    pub fn load_failed(&mut self, epoch: PlanEpoch, fault: LoadFault, cx: &mut EventContext) {
        if self.hold_failed(epoch, &fault, cx) {
            return;
        }
        let of_plan = self.inactive.as_ref().is_some_and(|inactive| inactive.epoch() == epoch);
        if of_plan && matches!(fault, LoadFault::NoRoom(_)) && self.holds_standby() {
            // The engine needs more than the sizes say: the plan comes first.
            self.stop_standing_by(fault, cx);
            self.load(epoch, cx);
        } else if let Some(inactive) = self.inactive.take_if(|inactive| inactive.epoch() == epoch) {
            self.loading = None;
            cx.out.notice(Severity::Warning, fault.sentence());
            cx.out.send(inactive.coordinator, Frame::PrepareFailed(epoch, fault));
            cx.out.act(Action::ViewChanged);
            self.reconcile(epoch, cx);
        } else if self.loads_standby(epoch) {
            self.stop_standing_by(fault, cx);
            self.load(epoch, cx);
        }
    }
}

/// Both lists in order, without duplicates.
pub(super) fn joined(mut units: Vec<WeightUnit>, more: &[WeightUnit]) -> Vec<WeightUnit> {
    let known: BTreeSet<WeightUnit> = units.iter().copied().collect();
    units.extend(more.iter().filter(|unit| !known.contains(unit)));
    units
}
