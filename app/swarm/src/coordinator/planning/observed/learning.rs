//! What the room learns while its plan runs: times of devices and messages, and predictions from them.

use potluck_plan::{Millis, PeerId, Plan, PlanEpoch, StageId};
use potluck_planner::{HopCost, Planned, Prediction, forecast};
use potluck_protocol::{CalibrationRuns, ForecastView, HopView};

use super::measures::Measures;
use crate::coordinator::answering::{DecodePass, PrefillPass};
use crate::coordinator::planning::Planning;
use crate::coordinator::planning::planner_input::PlannerInput;
use crate::event::{HostCommand, OpenedModel};
use crate::event_context::EventContext;
use crate::members::Members;

/// The active plan's times are predicted this often.
const PREDICT_MILLIS: f64 = 1_000.0;

impl Planning {
    /// Takes a device's times. True if they are worth planning with.
    pub fn calibrated(&mut self, peer: PeerId, answer: Result<CalibrationRuns, String>) -> bool {
        let first = !self.observed.calibrating.has_answered(peer);
        let counts = self.observed.calibrating.answered(peer, answer);
        if counts && first {
            self.observed.measures.recalibrated(peer);
        }
        counts
    }

    /// A decoded token passed the active plan.
    pub fn learn(
        &mut self,
        model: &OpenedModel,
        command: &HostCommand,
        members: &Members,
        pass: &DecodePass,
        now: Millis,
    ) {
        let Some(active) = self.plans.active.as_ref().filter(|active| active.is_up()) else { return };
        let (before, plan) = (self.expected(&active.planned).token_millis, &active.planned.plan);
        let input = PlannerInput::new(self, model, command, members);
        self.observed.measures.learn(&input.room(plan.epoch), plan, pass, now);
        if self.observed.forecasts.passed(plan.epoch, pass, before) {
            let input = PlannerInput::new(self, model, command, members);
            let steady = potluck_planner::predict(&input.room(plan.epoch), plan);
            self.observed.forecasts.set(expected(&self.observed.measures, &steady, plan).token_millis);
        }
    }

    /// A prompt's chunk passed the active plan.
    pub fn learn_prefill(&mut self, model: &OpenedModel, command: &HostCommand, members: &Members, pass: &PrefillPass) {
        let Some(active) = self.plans.active.as_ref().filter(|active| active.is_up()) else { return };
        let plan = &active.planned.plan;
        let input = PlannerInput::new(self, model, command, members);
        self.observed.measures.learn_prefill(&input.room(plan.epoch), plan, pass);
    }

    /// Predicted milliseconds until the first token if nothing else runs, for this many tokens, tokens a chunk, and
    /// chunks in flight.
    pub fn first_token_millis(
        &self,
        model: &OpenedModel,
        command: &HostCommand,
        members: &Members,
        plan: &Plan,
        (tokens, chunk, window): (u32, u32, usize),
    ) -> f64 {
        let input = PlannerInput::new(self, model, command, members);
        potluck_planner::first_token_millis(&input.room(plan.epoch), plan, tokens, chunk, window)
    }

    /// Predicted times of a plan's tokens: the planner's, corrected by the tokens that have passed.
    pub fn expected(&self, planned: &Planned) -> Prediction {
        expected(&self.observed.measures, &planned.prediction, &planned.plan)
    }

    /// The forecast for the newest answer, for a running plan.
    pub fn forecast(&self, planned: &Planned) -> Option<ForecastView> {
        self.observed.forecasts.view(planned.plan.epoch)
    }

    /// Has a device that runs everything alone timed too, once it is up and idle: nobody waits for that.
    pub fn time_alone(&mut self, model: &OpenedModel, command: &HostCommand, cx: &mut EventContext) {
        if self.plans.up().is_some() && self.plans.inactive.is_none() && !self.choosing.policy.awaits_calibration {
            let not_timed = self.not_timed(command, &cx.members);
            self.observed.calibrating.ask_all(model, &not_timed, cx);
        }
    }

    /// Measured engine milliseconds of a stage for a decoded token, if the active plan measured it.
    pub fn measured_millis(&self, epoch: PlanEpoch, stage: StageId) -> Option<f64> {
        self.observed.measures.stage_millis(epoch, stage)
    }

    /// Messages of a token under a plan, with predicted and measured times.
    pub fn hops(&self, planned: &Planned, expected: &Prediction) -> Vec<HopView> {
        let hops = &expected.hops;
        let measured = self.observed.measures.hop_millis_of(planned.plan.epoch, hops);
        let hop = |(hop, measured_ms): (&HopCost, f64)| HopView {
            from: hop.from,
            to: hop.to,
            predicted_ms: hop.millis(),
            measured_ms,
        };
        hops.iter().zip(measured).map(hop).collect()
    }

    /// Learns from what stages report of the holders of their experts.
    fn learn_holders(&mut self, model: &OpenedModel, command: &HostCommand, members: &Members) {
        let Some(plan) = self.plans.up().filter(|plan| plan.pooled().next().is_some()) else { return };
        let input = PlannerInput::new(self, model, command, members);
        let room = input.room(plan.epoch);
        for (caller, member) in members.known.iter().filter(|(peer, _)| plan.has_stage(**peer)) {
            self.observed.measures.learn_holders(&room, plan, *caller, &member.status.holders);
            self.observed.measures.learn_waits(plan, *caller, &member.status);
        }
    }

    /// What would help, one sentence each.
    pub fn help(&self) -> &[String] {
        self.searches.help()
    }

    /// Predicts the active plan's times from the newest measurements. True if they are far from those it was chosen
    /// for.
    pub(in crate::coordinator::planning) fn update_prediction(
        &mut self,
        model: &OpenedModel,
        command: &HostCommand,
        cx: &EventContext,
    ) -> bool {
        if cx.now.0 - self.choosing.policy.predicted.0 < PREDICT_MILLIS {
            return false;
        }
        self.choosing.policy.predicted = cx.now;
        self.learn_holders(model, command, &cx.members);
        let input = PlannerInput::new(self, model, command, &cx.members);
        let Some(active) = self.plans.active.as_mut().filter(|active| active.is_up()) else { return false };
        let (epoch, plan) = (active.epoch(), &active.planned.plan);
        active.planned.prediction = potluck_planner::predict(&input.room(epoch), plan);
        self.choosing.policy.drift.is_far(epoch, &active.planned.prediction, cx.now)
    }
}

fn expected(measures: &Measures, steady: &Prediction, plan: &Plan) -> Prediction {
    match measures.seen(plan) {
        Some(seen) => forecast(steady, &seen),
        None => steady.clone(),
    }
}
