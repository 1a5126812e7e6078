//! What the room has observed of its devices and of its tokens. The planner's [`Device`](potluck_planner::Device)s are made from
//! it; nothing here chooses a plan.

mod calibrating;
mod churn_history;
mod downloads;
mod expert_times;
mod forecasts;
mod learning;
mod measures;

pub(super) use measures::{Drift, path_noise};

use calibrating::Calibrating;
use churn_history::ChurnHistory;
use downloads::Downloads;
use forecasts::Forecasts;
use measures::Measures;

use crate::event_context::EventContext;

#[derive(Default)]
pub(super) struct Observations {
    /// What devices timed before they were planned with.
    pub calibrating: Calibrating,
    /// What they and the messages between them take in use.
    pub measures: Measures,
    /// How fast they download.
    pub downloads: Downloads,
    /// How often they leave.
    pub churn_history: ChurnHistory,
    /// What the rest of an answer was expected to take.
    pub forecasts: Forecasts,
}

impl Observations {
    pub fn tick(&mut self, cx: &EventContext) {
        self.churn_history.tick(cx.now);
        self.downloads.listen(&cx.members);
    }
}
