//! Searches in progress, and what the same searches would find at once.

use potluck_plan::Millis;
use potluck_planner::experts::{Comparison, compare};
use potluck_planner::{Standbys, standby_keeping, what_would_help};

use super::help::sentences;
use crate::Peer;
use crate::coordinator::planning::Planning;
use crate::members::Members;

/// What the host of a room looks for in slices.
pub struct Searches<'a> {
    planning: &'a Planning,
    members: &'a Members,
    answering: bool,
}

impl<'a> Searches<'a> {
    /// Those of a peer, if it hosts.
    pub fn of(peer: &'a Peer) -> Option<Self> {
        let (coordinator, members) = peer.hosted()?;
        Some(Self { planning: &coordinator.planning, members, answering: coordinator.answers.is_answering() })
    }

    /// Somebody waits for an answer.
    pub fn is_answering(&self) -> bool {
        self.answering
    }

    /// What the last search for what would help found, in sentences and compared, and when it ended.
    pub fn help(&self) -> (&'a [String], Option<Comparison>, Option<Millis>) {
        let helpful = &self.planning.searches.helpful;
        (helpful.sentences(), helpful.comparison(), helpful.found())
    }

    /// When the search for what would help began, and when it took its last slice.
    pub fn help_progress(&self) -> Option<(Millis, Millis)> {
        self.planning.searches.helpful.progress().map(|progress| (progress.began, progress.at))
    }

    /// What the search for what would help will find, searched at once.
    pub fn help_at_once(&self) -> Option<(Vec<String>, Option<Comparison>)> {
        let room = self.planning.searches.helpful.progress()?.room;
        Some((sentences(&what_would_help(&room), self.members), compare(&room)))
    }

    /// The standby plans, if none is left to be looked for.
    pub fn standbys(&self) -> Option<Standbys> {
        let standbys = &self.planning.standbys;
        standbys.are_made().then(|| standbys.found())
    }

    /// When the search for standby plans began.
    pub fn standbys_began(&self) -> Option<Millis> {
        self.planning.standbys.progress().map(|(progress, _)| progress.began)
    }

    /// The standby plans that the search in progress will find, searched at once.
    pub fn standbys_at_once(&self) -> Option<Standbys> {
        let (progress, active) = self.planning.standbys.progress()?;
        Some(standby_keeping(&progress.room, active, self.planning.standbys.found().covered))
    }
}
