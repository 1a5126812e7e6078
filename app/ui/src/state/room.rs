//! The room as the node reports it, and what the page derives from one snapshot to the next.

use leptos::prelude::*;
use potluck_panel::{HostChoice, PlanStatus, Status, Timings};

use super::History;

/// A room that is being opened.
#[derive(Clone, Debug, PartialEq)]
pub struct Opening {
    /// What was chosen.
    pub choice: HostChoice,
    /// The room that this tab was in: a snapshot of that one does not show the new room yet.
    pub before: Option<String>,
}

/// The room. Copies are handles to the same state.
#[derive(Clone, Copy)]
pub struct RoomState {
    /// The node's last snapshot.
    pub status: RwSignal<Status>,
    /// The room over time.
    pub history: RwSignal<History>,
    /// The room that is being opened.
    pub opening: RwSignal<Option<Opening>>,
    /// Tokens that came to this tab: each one sends the light around the table.
    pub tokens: RwSignal<u64>,
    /// What the last answer of this tab took.
    pub last_timings: RwSignal<Option<Timings>>,
    /// A plan was up in this room before.
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

    /// Takes a snapshot at `now`, in milliseconds of any clock that only goes forward.
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

    /// The tab goes to another room, or to none.
    pub fn left(self) {
        self.was_up.set(false);
    }

    /// The room takes prompts: its plan is up, or was and a prompt waits for the next one.
    pub fn takes_prompts(self) -> bool {
        let was_up = self.was_up.get();
        self.status.with(|status| {
            let ready = |state| state == PlanStatus::Up || (was_up && state != PlanStatus::Waiting);
            status.room.is_some() && status.plan.as_ref().is_some_and(|plan| ready(plan.state))
        })
    }
}
