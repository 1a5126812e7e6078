//! The room as the node reports it, and what the page derives from successive snapshots.

use leptos::prelude::*;
use potluck_panel::{HostChoice, PlanStatus, Status, Timings};

use super::History;

/// A room while it opens.
#[derive(Clone, Debug, PartialEq)]
pub struct Opening {
    /// What was chosen.
    pub choice: HostChoice,
    /// The room this tab was in before: a snapshot of that room does not show the new one yet.
    pub before: Option<String>,
}

/// The room. Copies are handles to the same state.
#[derive(Clone, Copy)]
pub struct RoomState {
    /// The node's last snapshot.
    pub status: RwSignal<Status>,
    /// The room over time.
    pub history: RwSignal<History>,
    /// The room that is opening.
    pub opening: RwSignal<Option<Opening>>,
    /// Tokens received by this tab: each one sends the light around the table.
    pub tokens: RwSignal<u64>,
    /// Timings of this tab's last answer.
    pub last_timings: RwSignal<Option<Timings>>,
    /// A plan was active in this room before.
    was_up: RwSignal<bool>,
}

impl RoomState {
    /// In no room.
    pub fn new() -> Self {
        Self {
            status: RwSignal::new(Status::default()),
            history: RwSignal::new(History::default()),
            opening: RwSignal::new(None),
            tokens: RwSignal::new(0),
            last_timings: RwSignal::new(None),
            was_up: RwSignal::new(false),
        }
    }

    /// Processes a snapshot taken at `now`, in milliseconds of any monotonic clock.
    pub fn observe(self, status: Status, now: f64) {
        let up = status.plan.as_ref().is_some_and(|plan| plan.state == PlanStatus::Up);
        let was_up = self.was_up.get_untracked();
        if up && !was_up {
            self.was_up.set(true);
        } else if status.room.is_none() && was_up {
            self.was_up.set(false);
        }
        self.history.maybe_update(|history| history.observe(&status, now));
        self.status.set(status);
    }

    /// Positions of context in the room; 0 outside of one.
    pub fn context(self) -> u32 {
        self.status.with(|status| status.context)
    }

    /// The tab leaves, for another room or none.
    pub fn left(self) {
        self.was_up.set(false);
    }

    /// True if the room accepts prompts: its plan is active, or was and prompts wait for the next one.
    pub fn takes_prompts(self) -> bool {
        let was_up = self.was_up.get();
        self.status.with(|status| {
            let ready = |state| {
                state == PlanStatus::Up || (was_up && !matches!(state, PlanStatus::Waiting | PlanStatus::Failed))
            };
            status.room.is_some() && status.plan.as_ref().is_some_and(|plan| ready(plan.state))
        })
    }
}
