//! The worker's side of plans: `Down → Preparing → prepared → committed`. A failed preparation never disturbs the
//! committed plan.

use std::collections::BTreeSet;

use potluck_plan::{Bytes, Computed, ConversationId, Millis, PeerId, PlanEpoch, WeightUnit};
use potluck_protocol::{
    Contribution, ExpertCall, ExpertSum, Forward, Frame, LoadPhase, LoadReport, Prepare, StageFaultKind, WorkerStatus,
};

use crate::event::LoadRequest;
use crate::executor::Executor;
use crate::members::Members;
use crate::outbox::Outbox;
use crate::planted::{Bug, is_planted};
use crate::{Action, Severity};

#[derive(Default)]
pub(crate) struct Worker {
    pub contribution: Option<Contribution>,
    /// The plan being prepared, and whether everything is loaded.
    preparing: Option<(PeerId, Prepare, bool)>,
    active: Option<Executor>,
    /// What the active plan was prepared with: its units are trimmed to after a commit.
    active_prepare: Option<Prepare>,
    next_ticket: u64,
    pub newest_epoch: PlanEpoch,
    pub loading: Option<LoadReport>,
    pub used: Bytes,
}

impl Worker {
    pub fn status(&self, hidden: bool) -> Option<WorkerStatus> {
        self.contribution.as_ref()?;
        let prepared = self.preparing.as_ref().filter(|(.., loaded)| *loaded).map(|(_, prepare, _)| prepare.plan.epoch);
        Some(WorkerStatus {
            used: self.used,
            loading: self.loading,
            prepared: prepared.or(self.active.as_ref().map(Executor::epoch)),
            decode_millis: self.active.as_ref().map_or(0.0, |executor| executor.decode_millis),
            hidden,
        })
    }

    pub fn contribute(&mut self, contribution: Contribution) {
        self.contribution = Some(contribution);
    }

    pub fn stop(&mut self, out: &mut Outbox) {
        *self = Worker { next_ticket: self.ticket(), newest_epoch: self.newest_epoch, ..Worker::default() };
        out.act(Action::Unload);
    }

    fn ticket(&self) -> u64 {
        self.active.as_ref().map_or(self.next_ticket, Executor::next_ticket)
    }

    pub fn prepare(&mut self, coordinator: PeerId, prepare: Prepare, out: &mut Outbox) {
        let epoch = prepare.plan.epoch;
        let Some(contribution) = self.contribution else {
            out.send(coordinator, Frame::PrepareFailed(epoch, "this device does not lend its GPU any more".into()));
            return;
        };
        if let Err(error) = prepare.plan.validate(&prepare.shape) {
            out.send(coordinator, Frame::PrepareFailed(epoch, error.to_string()));
            return;
        }
        self.newest_epoch = self.newest_epoch.max(epoch);
        if !prepare.keep_active {
            self.drop_active(out);
        }
        let units = self.units(out.me, &prepare);
        self.load(contribution.budget, &prepare, units, out);
        self.loading = Some(LoadReport {
            phase: LoadPhase::Find,
            done: Bytes::ZERO,
            total: Bytes::ZERO,
            rate: 0.0,
            cached: Bytes::ZERO,
        });
        self.preparing = Some((coordinator, prepare, false));
        out.act(Action::ViewChanged);
    }

    /// The new plan's units in its order, then those that only the active plan needs.
    fn units(&self, me: PeerId, prepare: &Prepare) -> Vec<WeightUnit> {
        let mut units = prepare.plan.units_for(me, &prepare.shape);
        if let Some(active) = self.active_prepare.as_ref().filter(|active| active.plan.model == prepare.plan.model) {
            let known: BTreeSet<WeightUnit> = units.iter().copied().collect();
            units.extend(active.plan.units_for(me, &active.shape).into_iter().filter(|unit| !known.contains(unit)));
        }
        units
    }

    fn load(&self, budget: Bytes, prepare: &Prepare, units: Vec<WeightUnit>, out: &mut Outbox) {
        out.act(Action::Load(LoadRequest {
            epoch: prepare.plan.epoch,
            plan: prepare.plan.clone(),
            model: prepare.model.clone(),
            units,
            context: prepare.plan.context,
            budget,
        }));
    }

    /// The state of its conversations counts for no other plan, and a coordinator that reloads has forgotten their ids.
    fn drop_active(&mut self, out: &mut Outbox) {
        self.next_ticket = self.ticket();
        if let Some(executor) = self.active.take() {
            executor.conversations().into_iter().for_each(|conversation| out.act(Action::Forget(conversation)));
        }
        self.active_prepare = None;
    }

    pub fn progress(&mut self, epoch: PlanEpoch, report: LoadReport, used: Bytes, out: &mut Outbox) {
        self.used = used;
        if self.preparing.as_ref().is_some_and(|(_, prepare, loaded)| prepare.plan.epoch == epoch && !loaded) {
            self.loading = Some(report);
            out.act(Action::ViewChanged);
        }
    }

    pub fn loaded(&mut self, epoch: PlanEpoch, out: &mut Outbox) {
        if let Some((coordinator, prepare, loaded)) = &mut self.preparing
            && prepare.plan.epoch == epoch
            && !*loaded
        {
            *loaded = true;
            self.loading = None;
            out.send(*coordinator, Frame::Prepared(epoch));
            out.act(Action::ViewChanged);
        }
    }

    pub fn load_failed(&mut self, epoch: PlanEpoch, sentence: String, out: &mut Outbox) {
        if let Some((coordinator, ..)) = self.preparing.take_if(|(_, prepare, _)| prepare.plan.epoch == epoch) {
            self.loading = None;
            out.notice(Severity::Error, sentence.clone());
            out.send(coordinator, Frame::PrepareFailed(epoch, sentence));
        }
    }

    pub fn commit(&mut self, epoch: PlanEpoch, out: &mut Outbox) {
        self.newest_epoch = self.newest_epoch.max(epoch);
        if self.active.as_ref().is_some_and(|active| active.epoch() == epoch) {
            return;
        }
        match self.preparing.take_if(|(_, prepare, loaded)| prepare.plan.epoch == epoch && *loaded) {
            Some((coordinator, prepare, _)) => {
                let kept = self.active_prepare.is_some();
                self.drop_active(out);
                self.active = Some(Executor::new(out.me, coordinator, prepare.plan.clone(), self.next_ticket));
                if let (true, Some(contribution)) = (kept, self.contribution) {
                    // What only the old plan needed goes now; nothing is fetched for this.
                    let units = prepare.plan.units_for(out.me, &prepare.shape);
                    self.load(contribution.budget, &prepare, units, out);
                }
                self.active_prepare = Some(prepare);
            }
            // A plan without us: we keep what we hold, as a spare.
            None if self.preparing.is_none() => self.drop_active(out),
            None => {}
        }
        out.act(Action::ViewChanged);
    }

    /// The executor of a plan. A frame for a plan that is prepared means that it is committed: nobody sends one before.
    fn executor(&mut self, epoch: PlanEpoch, out: &mut Outbox) -> Option<&mut Executor> {
        if self.preparing.as_ref().is_some_and(|(_, prepare, loaded)| prepare.plan.epoch == epoch && *loaded) {
            self.commit(epoch, out);
        }
        self.active.as_mut().filter(|active| active.epoch() == epoch || is_planted(Bug::StaleEpoch))
    }

    pub fn forward(&mut self, forward: Forward, out: &mut Outbox) {
        if let Some(executor) = self.executor(forward.epoch, out) {
            executor.forward(forward, out);
        }
    }

    /// Gives the engine what an event has brought.
    pub fn start(&mut self, out: &mut Outbox) {
        if let Some(executor) = &mut self.active {
            executor.start(out);
        }
    }

    pub fn expert_call(&mut self, caller: PeerId, call: ExpertCall, out: &mut Outbox) {
        if let Some(executor) = self.executor(call.epoch, out) {
            executor.expert_call(caller, call, out);
        }
    }

    pub fn expert_sum(&mut self, from: PeerId, sum: ExpertSum, members: &Members, now: Millis, out: &mut Outbox) {
        if let Some(executor) = self.executor(sum.epoch, out) {
            executor.expert_sum(from, sum, members, now, out);
        }
    }

    pub fn computed(&mut self, computed: Computed, members: &Members, now: Millis, out: &mut Outbox) {
        if let Some(executor) = &mut self.active {
            executor.computed(computed, members, now, out);
        }
    }

    /// Everything on the GPU is gone. The coordinator makes a new plan; until then nothing of ours counts.
    pub fn device_lost(&mut self, sentence: &str, out: &mut Outbox) {
        if let Some((coordinator, prepare, _)) = self.preparing.take() {
            out.send(coordinator, Frame::PrepareFailed(prepare.plan.epoch, sentence.to_owned()));
        }
        if let Some(prepare) = &self.active_prepare
            && let Some(active) = &self.active
        {
            let stage = prepare.plan.stages.iter().find(|stage| stage.peer == out.me).map(|stage| stage.id);
            if let Some(stage) = stage.or(prepare.plan.stages.first().map(|stage| stage.id)) {
                active.device_lost(stage, out);
            }
        }
        self.drop_active(out);
        self.loading = None;
        self.used = Bytes::ZERO;
    }

    pub fn tick(&mut self, members: &Members, now: Millis, out: &mut Outbox) {
        if let Some(executor) = &mut self.active {
            executor.tick(members, now, out);
        }
    }
}

impl Executor {
    fn device_lost(&self, stage: potluck_plan::StageId, out: &mut Outbox) {
        self.report(stage, ConversationId(0), StageFaultKind::DeviceLost, out);
    }
}
