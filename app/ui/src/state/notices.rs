//! Notices on the screen: newest last, no duplicates. Some tell of a condition whose end the page can see.

use potluck_panel::{Notice, NoticeLevel};

/// A notice on the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownNotice {
    /// Its id on this page.
    pub id: u32,
    /// What it says.
    pub notice: Notice,
    /// It is about the room that this tab is in.
    pub of_room: bool,
}

/// The notices on the screen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notices {
    next: u32,
    shown: Vec<ShownNotice>,
    /// The last warnings and errors, whether dismissed or not, newest last.
    errors: Vec<Notice>,
}

/// Limit on notices, so that they do not cover the page; the oldest is dropped.
const MOST: usize = 3;
/// Warnings and errors that are kept for an issue.
const KEPT: usize = 8;

impl Notices {
    /// Shows a notice and returns its id. Replaces a notice with the same sentence or of the same condition.
    pub fn show(&mut self, notice: Notice, of_room: bool) -> u32 {
        let has_same_condition = |old: &Notice| notice.condition.is_some() && old.condition == notice.condition;
        if notice.level != NoticeLevel::Info {
            self.errors.retain(|old| old.sentence != notice.sentence);
            self.errors.push(notice.clone());
            self.errors.drain(..self.errors.len().saturating_sub(KEPT));
        }
        let is_same = |old: &Notice| old.sentence == notice.sentence || has_same_condition(old);
        self.shown.retain(|shown| !is_same(&shown.notice));
        let id = self.next;
        self.next = self.next.wrapping_add(1);
        self.shown.push(ShownNotice { id, notice, of_room });
        if self.shown.len() > MOST {
            self.shown.remove(0);
        }
        id
    }

    /// Removes a notice.
    pub fn dismiss(&mut self, id: u32) {
        self.shown.retain(|shown| shown.id != id);
    }

    /// The tab leaves its room: what was said of it no longer matters.
    pub fn leave_room(&mut self) {
        self.shown.retain(|shown| !shown.of_room);
    }

    /// True if a notice is still on the screen.
    #[must_use]
    pub fn is_shown(&self, id: u32) -> bool {
        self.shown.iter().any(|shown| shown.id == id)
    }

    /// The last warnings and errors of this page, newest last.
    #[must_use]
    pub fn errors(&self) -> &[Notice] {
        &self.errors
    }

    /// The notices on the screen, newest last.
    #[must_use]
    pub fn shown(&self) -> &[ShownNotice] {
        &self.shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use potluck_panel::Condition;

    fn notice(sentence: &str) -> Notice {
        Notice { level: NoticeLevel::Info, sentence: sentence.into(), details: String::new(), condition: None }
    }

    #[test]
    fn the_same_sentence_is_shown_once_and_the_screen_is_never_covered() {
        let mut notices = Notices::default();
        notices.show(notice("a"), true);
        let again = notices.show(notice("a"), true);
        assert_eq!(notices.shown().len(), 1);
        for sentence in ["b", "c", "d"] {
            notices.show(notice(sentence), true);
        }
        let sentences: Vec<_> = notices.shown().iter().map(|shown| shown.notice.sentence.as_str()).collect();
        assert_eq!(sentences, ["b", "c", "d"]);
        notices.dismiss(again);
        assert_eq!(notices.shown().len(), 3);
    }

    #[test]
    fn what_is_told_of_a_room_goes_with_it() {
        let mut notices = Notices::default();
        notices.show(notice("The host has the room closed."), true);
        notices.show(notice("This browser stores nothing."), false);
        notices.leave_room();
        let left: Vec<_> = notices.shown().iter().map(|shown| shown.notice.sentence.as_str()).collect();
        assert_eq!(left, ["This browser stores nothing."]);
    }

    #[test]
    fn errors_are_kept_when_they_are_no_longer_shown() {
        let mut notices = Notices::default();
        notices.show(notice("Good to know."), true);
        for number in 0..10 {
            let id = notices.show(Notice { level: NoticeLevel::Error, ..notice(&format!("Error {number}.")) }, true);
            notices.dismiss(id);
        }
        notices.show(Notice { level: NoticeLevel::Warning, ..notice("Error 5.") }, true);
        notices.leave_room();
        let kept: Vec<_> = notices.errors().iter().map(|kept| kept.sentence.as_str()).collect();
        assert_eq!(
            kept,
            ["Error 2.", "Error 3.", "Error 4.", "Error 6.", "Error 7.", "Error 8.", "Error 9.", "Error 5."]
        );
        assert_eq!(notices.shown(), []);
    }

    #[test]
    fn of_one_condition_only_the_newest_is_shown() {
        let mut notices = Notices::default();
        let of = |condition, sentence| Notice { condition: Some(condition), ..notice(sentence) };
        let lost = notices.show(of(Condition::GpuLost, "This device's GPU was lost."), true);
        notices.show(of(Condition::FileChecked, "This device still checks this model's file (0 %)."), true);
        assert!(notices.is_shown(lost));
        notices.show(of(Condition::GpuLost, "The GPU did not come back."), true);
        assert!(!notices.is_shown(lost));
        assert_eq!(notices.shown().len(), 2);
        notices.show(notice("Something else."), true);
        assert_eq!(notices.shown().len(), 3);
    }
}
