//! What the room has observed of its devices. The planner's [`Device`](potluck_planner::Device)s are made from it.

use super::calibrating::Calibrating;
use super::churn_history::ChurnHistory;
use super::downloads::Downloads;
use super::measures::Measures;
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
}

impl Observations {
    pub fn tick(&mut self, cx: &EventContext) {
        self.churn_history.tick(cx.now);
        self.downloads.listen(&cx.members);
    }
}
