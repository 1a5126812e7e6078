//! Where experts lie while a plan runs: the plan's holders with all changes since.

use potluck_plan::Plan;
use potluck_protocol::ResidencyChange;

/// Makes a change in a plan. What is so already stays.
pub(crate) fn apply(plan: &mut Plan, change: ResidencyChange) {
    match change {
        ResidencyChange::Add { block, expert, peer } => plan.add_holder(block, expert, peer),
        ResidencyChange::Drop(peer) => plan.drop_holder(peer),
    }
}
