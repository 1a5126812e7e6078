//! Computing the work of another stage again, on the host's device: it has the weights, because it stands by for that stage.

use std::collections::BTreeSet;

use potluck_plan::{PeerId, Plan, Task, Ticket, WeightUnit, Work};

use super::Worker;
use super::standby::plan_sizes;
use crate::Action;
use crate::event_context::EventContext;

/// Counts what was submitted.
#[derive(Default)]
pub(super) struct Replaying {
    submitted: u64,
}

impl Worker {
    /// Weights and KV cache for these units of a plan's model are on the GPU, as the plan computes with them, and stay for now.
    pub fn can_replay(&self, plan: &Plan, units: &[WeightUnit], me: PeerId) -> bool {
        if !self.is_settled() {
            return false;
        }
        let mut held = BTreeSet::new();
        if let Some(active) = self.active.as_ref().filter(|active| active.executor.epoch() == plan.epoch) {
            held.extend(active.prepare.plan.units_for(me, &active.prepare.shape));
        }
        held.extend(self.standby_units(plan_sizes(plan)));
        units.iter().all(|unit| held.contains(unit))
    }

    /// Submits a task beside the work of plans.
    pub fn replay(&mut self, task: Task, cx: &mut EventContext) -> Ticket {
        let ticket = Ticket(Ticket::FIRST_CHECK.0 + self.replaying.submitted);
        self.replaying.submitted += 1;
        cx.out.act(Action::Compute(Work { ticket, task }));
        ticket
    }
}
