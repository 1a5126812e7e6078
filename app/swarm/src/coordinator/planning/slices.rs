//! Searches that take long proceed in slices of one plan search each. Tokens, questions and frames come in between.

mod help;
#[cfg(feature = "testing")]
mod searches;

use potluck_panel::EndsCompared;
use potluck_plan::{Millis, PlanEpoch};
use potluck_planner::experts::Comparison;
use potluck_planner::{Room, Step};

use help::Helpful;

use super::planner_input::PlannerInput;
use super::{PlanRequest, Planning};
use crate::event_context::EventContext;

#[cfg(feature = "testing")]
pub use searches::Searches;

/// From one slice to the next. Where a slice takes longer, what came meanwhile is handled first all the same.
const GAP_MILLIS: f64 = 25.0;
/// A search begins anew if it was interrupted for this long: what devices take was measured again meanwhile.
const STALE_MILLIS: f64 = 30_000.0;

/// Whether a search went on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slice {
    Taken,
    /// There is nothing to look for now, or it has to wait.
    Nothing,
}

/// What is looked for besides standby plans, and when the next slice of any search is due.
#[derive(Default)]
pub(super) struct SlicedSearches {
    helpful: Helpful,
    pace: Pace,
}

impl SlicedSearches {
    /// The two ways to place experts, if they were compared.
    pub fn comparison(&self) -> Option<Comparison> {
        self.helpful.comparison()
    }

    /// What it costs that the ends of the model stay on the host, if that was looked for.
    pub fn ends(&self) -> Option<EndsCompared> {
        self.helpful.ends()
    }

    /// What would help, one sentence each.
    pub fn help(&self) -> &[String] {
        self.helpful.sentences()
    }
}

/// When the next slice is due.
#[derive(Default)]
struct Pace {
    next: Option<Millis>,
}

/// A search in progress, for the room as it was when the search began.
pub(super) struct Sliced<B, S> {
    /// What it depends on.
    basis: B,
    input: PlannerInput,
    epoch: PlanEpoch,
    search: S,
    /// When the last slice was taken.
    at: Millis,
    #[cfg(feature = "testing")]
    began: Millis,
}

impl<B: PartialEq, S> Sliced<B, S> {
    /// A search that begins. A plan for the room would get this epoch.
    pub fn new(
        basis: B,
        input: PlannerInput,
        epoch: PlanEpoch,
        now: Millis,
        begin: impl FnOnce(&Room<'_>) -> S,
    ) -> Self {
        let search = begin(&input.room(epoch));
        Self {
            basis,
            input,
            epoch,
            search,
            at: now,
            #[cfg(feature = "testing")]
            began: now,
        }
    }

    /// The search, if it may go on: nothing that it depends on has changed.
    pub fn valid(self, basis: &B, now: Millis) -> Option<Self> {
        (self.basis == *basis && now.0 - self.at.0 < STALE_MILLIS).then_some(self)
    }

    pub fn search(&self) -> &S {
        &self.search
    }

    /// Takes a slice.
    pub fn step<T>(self, now: Millis, step: impl FnOnce(S, &Room<'_>) -> Step<S, T>) -> Step<Self, T> {
        match step(self.search, &self.input.room(self.epoch)) {
            Step::GoesOn(search) => Step::GoesOn(Self { search, at: now, ..self }),
            Step::Ends(found) => Step::Ends(found),
        }
    }
}

#[cfg(feature = "testing")]
impl<B, S> Sliced<B, S> {
    pub fn progress(&self) -> Progress<'_> {
        Progress { began: self.began, at: self.at, room: self.input.room(self.epoch) }
    }
}

/// How far a search has come.
#[cfg(feature = "testing")]
pub(super) struct Progress<'a> {
    pub began: Millis,
    pub at: Millis,
    pub room: Room<'a>,
}

impl Planning {
    /// When the next slice of a search is due, if one is in progress and has not to wait.
    pub fn next_slice(&self) -> Option<Millis> {
        self.searches.pace.next
    }

    /// Goes on with what is looked for in slices: standby plans first, then what would help.
    pub fn take_slice(&mut self, request: PlanRequest<'_>, cx: &mut EventContext) {
        if self.searches.pace.next.is_some_and(|next| cx.now.0 < next.0) {
            return;
        }
        let taken = match self.stand_by(request, cx) {
            Slice::Taken => Slice::Taken,
            Slice::Nothing => self.look_for_help(request, cx),
        };
        self.searches.pace.next = (taken == Slice::Taken).then_some(Millis(cx.now.0 + GAP_MILLIS));
    }
}
