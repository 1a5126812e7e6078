//! Which conversations a tab has to store, and what it does when another tab has stored something else.

use leptos::prelude::*;
use potluck_text::texts;
use serde::{Deserialize, Serialize};

use super::{
    super::{AnswerState, Conversation, KnownRecord, PendingWrite, Record, Revision},
    Chats,
};

/// An unsaved conversation, as a tab keeps it over a reload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stashed {
    /// The conversation.
    pub conversation: Conversation,
    /// What the tab knows of its record.
    #[serde(flatten)]
    pub seen: KnownRecord,
}

impl Chats {
    /// The conversations to store. One without a question is not worth it.
    pub fn unsaved(self) -> Vec<Conversation> {
        let unsaved = self.unsaved.get_value();
        let is_due =
            |conversation: &&Conversation| unsaved.contains(&conversation.id) && !conversation.turns.is_empty();
        let mut due: Vec<Conversation> =
            self.shelved.with_value(|shelved| shelved.values().filter(is_due).cloned().collect());
        due.extend(self.open.with_untracked(|open| Some(open).filter(is_due).cloned()));
        due
    }

    /// What a reload must not lose.
    pub fn stash(self) -> Vec<Stashed> {
        let stash = |conversation: Conversation| Stashed { seen: self.seen_of(&conversation.id), conversation };
        self.unsaved().into_iter().map(stash).collect()
    }

    /// The writes that are due, each with a revision of its own.
    pub fn begin_writes(self, mut revision: impl FnMut() -> Revision) -> Vec<PendingWrite> {
        let begin = |conversation: Conversation| {
            let revision = revision();
            let seen = self.seen_of(&conversation.id);
            self.learn(&conversation.id, |seen| seen.attempt(revision));
            PendingWrite { mine: Record { revision, conversation }, seen }
        };
        self.unsaved().into_iter().map(begin).collect()
    }

    /// The database has this. It still lacks what changed since, except for a title and a pin that another tab gave.
    pub fn saved(self, written: &Record) {
        let Record { revision, conversation } = written;
        let id = &conversation.id;
        if !self.has(id) {
            return;
        }
        self.learn(id, |seen| seen.confirm(*revision));
        let has_other_title = |now: &Conversation| conversation.renamed && now.title != conversation.title;
        let is_other = |now: &Conversation| has_other_title(now) || now.pinned != conversation.pinned;
        if self.inspect(id, is_other) == Some(true) {
            self.alter(id, |now| {
                if conversation.renamed {
                    now.take_title(conversation);
                }
                now.pinned = conversation.pinned;
            });
            self.refresh_headings();
        }
        if self.inspect(id, |now| now == conversation) == Some(true) {
            self.unmark(id);
        }
    }

    /// Takes the database's record of a conversation, in which another tab may have written on. What this tab changed or has
    /// answered now stays, and then it does not know that record.
    pub fn renew(self, mut stored: Record) {
        stored.conversation.break_off(&AnswerState::Interrupted);
        let Record { revision, conversation } = &stored;
        let is_same = self.inspect(&conversation.id, |known| known == conversation);
        if conversation.turns.is_empty() || self.is_own(&conversation.id) {
            return;
        }
        match is_same {
            Some(true) => self.learn(&conversation.id, |seen| seen.read(*revision)),
            Some(false) => self.take(stored),
            None => {}
        }
    }

    /// Another tab has stored `theirs`, which this one does not know, where it was about to write. What it has goes on as a
    /// conversation of its own with the id `copy`, open or not, and `theirs` is shelved. If all of it is in `theirs`, it takes
    /// that, as if it had read it before. Returns true if there is a copy now.
    pub fn part(self, mut theirs: Record, copy: String) -> bool {
        let id = theirs.conversation.id.clone();
        let knows_it = self.seen_of(&id).revisions.contains(&theirs.revision);
        // Another write may have come here before, or somebody deleted it.
        if knows_it || !self.is_own(&id) {
            return false;
        }
        theirs.conversation.break_off(&AnswerState::Interrupted);
        let adds = self.inspect(&id, |mine| mine.adds_to(&theirs.conversation)) == Some(true);
        let becomes_copy = adds || self.running(&id).is_some();
        if becomes_copy {
            self.make_copy(&id, copy);
        }
        self.take(theirs);
        becomes_copy
    }

    /// Gives a conversation another id, under which nothing is stored yet. A running answer finds it by its request.
    fn make_copy(self, id: &str, copy: String) {
        let rename = |mine: &mut Conversation| {
            mine.title = texts().notice.copy(&mine.title);
            mine.id.clone_from(&copy);
        };
        if self.is_open(id) {
            self.open.update(rename);
        } else if let Some(mut mine) = self.unshelve(id) {
            rename(&mut mine);
            self.shelve(mine);
        }
        self.mark(&copy);
    }

    /// Replaces what this tab has of a conversation.
    fn take(self, Record { revision, conversation }: Record) {
        self.learn(&conversation.id, |seen| seen.read(revision));
        self.unmark(&conversation.id);
        if self.is_open(&conversation.id) {
            self.open.set(conversation);
        } else {
            self.shelve(conversation);
        }
        self.refresh_headings();
    }

    fn shelve(self, conversation: Conversation) {
        self.shelved.update_value(|shelved| {
            shelved.insert(conversation.id.clone(), conversation);
        });
    }

    fn seen_of(self, id: &str) -> KnownRecord {
        self.seen.with_value(|seen| seen.get(id).cloned().unwrap_or_default())
    }

    fn learn(self, id: &str, learn: impl FnOnce(&mut KnownRecord)) {
        self.seen.update_value(|seen| learn(seen.entry(id.to_owned()).or_default()));
    }

    /// Schedules a write of what is unsaved; `false` if one is already scheduled.
    pub fn begin_saving(self) -> bool {
        self.saving.try_update_value(|saving| std::mem::replace(saving, true)) == Some(false)
    }

    /// The scheduled write has begun: a later change needs another one.
    pub fn end_saving(self) {
        self.saving.set_value(false);
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{super::WriteOutcome, fixtures::*},
        *,
    };
    use potluck_panel::RequestId;

    const MINE: RequestId = RequestId(2);
    const THEIRS: RequestId = RequestId(3);

    fn marks(stash: &[Stashed]) -> Vec<(&str, bool)> {
        stash.iter().map(|stashed| (stashed.conversation.id.as_str(), stashed.seen.was_stored)).collect()
    }

    fn open_text(chats: Chats) -> String {
        chats.open.with_untracked(|open| text_of(open).to_owned())
    }

    fn titles(chats: Chats) -> Vec<(String, String)> {
        let headings = chats.headings.get_untracked();
        let mut titles: Vec<_> = headings.into_iter().map(|heading| (heading.id, heading.title)).collect();
        titles.sort();
        titles
    }

    /// A conversation, and two tabs that have it open.
    fn two_tabs() -> (Browser, Chats, Chats) {
        let browser = Browser::with(vec![answered("x", "Because.")]);
        let [one, other] = [(); 2].map(|()| browser.tab(Vec::new(), Some("x")));
        (browser, one, other)
    }

    /// The same two tabs, after the other one has asked something that the first one does not know.
    fn one_behind() -> (Browser, Chats, Chats) {
        let (mut browser, one, other) = two_tabs();
        ask(other, "x", "And moss?", THEIRS);
        browser.save(other);
        (browser, one, other)
    }

    #[test]
    fn two_tabs_that_go_on_in_one_conversation_have_two_afterwards() {
        Owner::new().with(|| {
            let (mut browser, one, other) = one_behind();
            ask(one, "x", "And grass?", MINE);
            let theirs = browser.save_in_vain(one);
            assert!(one.part(theirs, "copy".into()));
            browser.save(one);
            assert_eq!(browser.questions("x"), ["Why?", "And moss?"]);
            assert_eq!(browser.questions("copy"), ["Why?", "And grass?"]);
            let expected = [("copy", "Why? (copy)"), ("x", "Why?")].map(|(id, title)| (id.into(), title.into()));
            assert_eq!(titles(one), expected);
            browser.save(other);
            assert_eq!(browser.records.len(), 2, "the other tab goes on where it was");
        });
    }

    #[test]
    fn an_answer_grows_on_in_the_copy_open_or_not() {
        for is_open in [true, false] {
            Owner::new().with(|| {
                let (mut browser, one, _) = one_behind();
                ask(one, "x", "And grass?", MINE);
                if !is_open {
                    one.replace_open(Conversation::new("next".into()));
                }
                let theirs = browser.save_in_vain(one);
                assert!(one.part(theirs, "copy".into()));
                assert_eq!((one.is_open("copy"), one.running("copy")), (is_open, Some(MINE)));
                assert_eq!(one.running("x"), None, "the other tab's request means nothing here");
                assert!(one.apply(MINE, &delta("It is green."), 0.0));
                browser.save(one);
                assert_eq!(browser.records["copy"].conversation.turns[1].answer.text, "It is green.");
            });
        }
    }

    #[test]
    fn two_writes_that_come_too_late_make_one_copy() {
        Owner::new().with(|| {
            let (mut browser, one, _) = one_behind();
            ask(one, "x", "And grass?", MINE);
            let [first, second] = [(); 2].map(|()| browser.save_in_vain(one));
            assert!(one.part(first, "copy".into()));
            assert!(!one.part(second, "another".into()));
            assert_eq!(ids(&one.unsaved()), ["copy"]);
            assert!(!one.has("another"));
        });
    }

    #[test]
    fn who_goes_on_in_the_other_tabs_text_is_not_parted_from_it_by_an_earlier_write() {
        Owner::new().with(|| {
            let (mut browser, one, _) = one_behind();
            ask(one, "x", "And grass?", MINE);
            let [first, second] = [(); 2].map(|()| browser.save_in_vain(one));
            assert!(one.part(first, "copy".into()));
            ask(one, "x", "And trees?", REQUEST);
            assert!(!one.part(second, "another".into()));
            browser.save(one);
            assert_eq!(browser.questions("x"), ["Why?", "And moss?", "And trees?"]);
        });
    }

    #[test]
    fn an_answer_that_has_ended_goes_into_the_copy_too() {
        Owner::new().with(|| {
            let (mut browser, one, _) = one_behind();
            ask(one, "x", "And grass?", MINE);
            one.apply(MINE, &end(), 0.0);
            let theirs = browser.save_in_vain(one);
            assert!(one.part(theirs, "copy".into()));
            browser.save(one);
            assert_eq!(browser.questions("copy"), ["Why?", "And grass?"]);
        });
    }

    #[test]
    fn a_tab_whose_text_another_one_has_takes_over_what_that_one_wrote() {
        Owner::new().with(|| {
            let (mut browser, one, _) = one_behind();
            one.change("x", |open| open.changed = 1.0);
            let theirs = browser.save_in_vain(one);
            assert!(!one.part(theirs, "copy".into()));
            assert_eq!(one.open.with_untracked(|open| open.turns.len()), 2);
            assert_eq!(one.unsaved(), []);
            ask(one, "x", "And grass?", MINE);
            browser.save(one);
            assert_eq!(browser.questions("x"), ["Why?", "And moss?", "And grass?"]);
        });
    }

    #[test]
    fn an_answer_that_has_just_begun_makes_a_copy_too() {
        Owner::new().with(|| {
            let (mut browser, one, _) = one_behind();
            one.change("x", |open| assert!(open.regenerate(MINE, "tiny")));
            let theirs = browser.save_in_vain(one);
            assert!(one.part(theirs, "copy".into()));
            assert_eq!(one.running("copy"), Some(MINE));
        });
    }

    #[test]
    fn what_a_tab_would_not_take_when_it_read_it_stays_unknown_to_it() {
        Owner::new().with(|| {
            let (mut browser, one, _) = one_behind();
            ask(one, "x", "And grass?", MINE);
            one.renew(browser.records["x"].clone());
            browser.save_in_vain(one);
        });
    }

    #[test]
    fn a_conversation_that_another_tab_deleted_is_not_written_again() {
        Owner::new().with(|| {
            let (mut browser, one, _) = two_tabs();
            ask(one, "x", "And grass?", MINE);
            browser.records.clear();
            let write = browser.begin(one).remove(0);
            assert_eq!(browser.take(write), WriteOutcome::Deleted);
        });
    }

    #[test]
    fn a_conversation_that_was_deleted_soon_after_its_first_write_is_not_written_again() {
        Owner::new().with(|| {
            let mut browser = Browser::with(Vec::new());
            let chats = browser.tab(Vec::new(), None);
            ask(chats, "fresh", "Why?", REQUEST);
            browser.save(chats);
            browser.records.clear();
            chats.apply(REQUEST, &delta("Because."), 0.0);
            let write = browser.begin(chats).remove(0);
            assert_eq!(browser.take(write), WriteOutcome::Deleted);
        });
    }

    #[test]
    fn a_title_given_in_another_tab_stays_while_an_answer_grows() {
        Owner::new().with(|| {
            let (mut browser, one, _) = two_tabs();
            ask(one, "x", "And grass?", MINE);
            if let Some(record) = browser.records.get_mut("x") {
                record.conversation.title = "Air".into();
                record.conversation.renamed = true;
            }
            browser.save(one);
            assert_eq!(titles(one), [("x".into(), "Air".into())]);
            assert_eq!(one.unsaved(), [], "the title is stored already");
        });
    }

    #[test]
    fn a_reload_in_the_middle_of_an_answer_makes_no_copy() {
        Owner::new().with(|| {
            let (mut browser, before, _) = two_tabs();
            ask(before, "x", "And grass?", MINE);
            let write = browser.begin(before).remove(0);
            assert!(matches!(browser.take(write), WriteOutcome::Written(_)), "the page hears nothing of it any more");
            before.apply(MINE, &delta("It is green."), 0.0);
            let after = browser.tab(before.stash(), Some("x"));
            assert_eq!(after.open.with_untracked(|open| open.turns[1].answer.text.clone()), "It is green.");
            browser.save(after);
            assert_eq!(browser.records.len(), 1);
        });
    }

    #[test]
    fn a_stash_counts_if_it_follows_the_record_or_adds_to_it() {
        Owner::new().with(|| {
            let mut growing = asked("ended");
            growing.apply(REQUEST, &delta("Because."));
            let mut browser =
                Browser::with(vec![growing, answered("past", "Because."), answered("longer", "Because.")]);
            let other = browser.tab(Vec::new(), None);
            for id in ["past", "longer"] {
                ask(other, id, "And moss?", THEIRS);
            }
            browser.save(other);
            let mut longer = answered("longer", "Because.");
            longer.ask("And grass?", MINE, "tiny");
            let stash = [answered("ended", "Because."), answered("past", "Be"), longer].map(stashed);
            let chats = browser.tab(stash.into(), Some("ended"));
            assert_eq!(chats.open.with_untracked(|open| open.turns[0].answer.state.clone()), AnswerState::Complete);
            assert_eq!(ids(&chats.unsaved()), ["longer", "ended"], "the other record has all that was stashed");
            let verdicts: Vec<_> = browser.begin(chats).into_iter().map(|write| browser.take(write)).collect();
            assert!(matches!(&verdicts[..], [WriteOutcome::Parted(_), WriteOutcome::Written(_)]), "{verdicts:?}");
        });
    }

    #[test]
    fn a_stash_of_an_earlier_build_follows_the_record_of_that_build() {
        Owner::new().with(|| {
            let mut browser = Browser::with(vec![answered("x", "Be")]);
            for record in browser.records.values_mut() {
                record.revision = Revision::default();
            }
            let mut stash = serde_json::to_value(stashed(answered("x", "Because."))).unwrap_or_default();
            stash.as_object_mut().and_then(|stash| stash.remove("revisions")).expect("a stash has revisions");
            let stash = serde_json::from_value(stash).expect("a stash without revisions is one of an earlier build");
            let chats = browser.tab(vec![stash], Some("x"));
            assert_eq!(open_text(chats), "Because.");
            browser.save(chats);
            assert_eq!(browser.records.len(), 1, "no copy");
        });
    }

    #[test]
    fn a_stash_of_a_deleted_conversation_does_not_count() {
        Owner::new().with(|| {
            let before = Browser::with(vec![answered("x", "Yes.")]).tab(Vec::new(), Some("x"));
            before.change("x", |open| open.changed = 1.0);
            before.replace_open(asked("new"));
            before.change("new", |open| open.changed = 2.0);
            let stash = before.stash();
            assert_eq!(marks(&stash), [("x", true), ("new", false)]);
            let after = Browser::with(Vec::new()).tab(stash.clone(), None);
            assert_eq!(ids(&after.unsaved()), ["new"], "another tab deleted the other one");
            let without_database = Chats::restore(None, stash, String::new(), None, "fresh".into());
            assert_eq!(marks(&without_database.stash()), [("new", false), ("x", true)], "nothing else has them");
        });
    }

    #[test]
    fn an_opened_conversation_is_renewed_unless_this_tab_changed_it() {
        Owner::new().with(|| {
            let chats = Browser::with(vec![asked("x")]).tab(Vec::new(), Some("x"));
            chats.renew(record(answered("y", "Of another one.")));
            chats.renew(record(answered("x", "Because.")));
            assert_eq!(open_text(chats), "Because.");
            chats.change("x", |open| open.title = "Air".into());
            chats.renew(record(answered("x", "Stale.")));
            assert_eq!(open_text(chats), "Because.");
        });
    }

    #[test]
    fn a_conversation_that_is_answered_here_is_not_renewed() {
        Owner::new().with(|| {
            let mut browser = Browser::with(Vec::new());
            let chats = browser.tab(Vec::new(), None);
            ask(chats, "fresh", "Why?", REQUEST);
            browser.save(chats);
            chats.renew(record(answered("fresh", "Another tab's.")));
            assert_eq!(chats.running("fresh"), Some(REQUEST));
            chats.replace_open(Conversation::new("next".into()));
            assert_eq!(chats.running("fresh"), Some(REQUEST), "a deletion stops it on the shelf too");
            assert!(chats.is_own("fresh"));
            chats.apply(REQUEST, &end(), 0.0);
            browser.save(chats);
            assert!(!chats.is_own("fresh"), "the database has it");
        });
    }

    #[test]
    fn a_title_comes_with_what_another_tab_wrote() {
        Owner::new().with(|| {
            let chats = Browser::with(vec![asked("x")]).tab(Vec::new(), None);
            let mut renamed = answered("x", "Another tab's.");
            renamed.title = "Air".into();
            chats.renew(record(renamed.clone()));
            assert_eq!(chats.headings.get_untracked()[0].title, "Air");
            assert_eq!(chats.unsaved(), [], "the database has it already");
            assert_eq!(chats.unshelve("x"), Some(renamed));
        });
    }
}
