//! All conversations: one is open, the others are shelved. No conversation is both; the list names them all.

use std::collections::{BTreeMap, BTreeSet};

use leptos::prelude::*;
use potluck_panel::{AnswerPart, RequestId};
use serde::{Deserialize, Serialize};

use super::{AnswerState, Conversation, Heading};

/// An unsaved conversation, as a tab keeps it over a reload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stashed {
    /// The conversation.
    pub conversation: Conversation,
    /// The database had an earlier state of it. If it has none any more, the conversation was deleted.
    pub was_stored: bool,
}

/// The conversations. Copies are handles to the same ones.
#[derive(Clone, Copy)]
pub struct Chats {
    /// The open conversation.
    pub open: RwSignal<Conversation>,
    /// All conversations that have a question, newest first.
    pub headings: RwSignal<Vec<Heading>>,
    /// Text of the composer.
    pub draft: RwSignal<String>,
    /// The conversations that are not open; an answer in one may still grow.
    shelved: StoredValue<BTreeMap<String, Conversation>>,
    /// Conversations that this tab changed since it read or stored them. It stores no others: another tab of the browser
    /// may have written on in them.
    unsaved: StoredValue<BTreeSet<String>>,
    /// Conversations that the database has, as far as this tab knows.
    stored: StoredValue<BTreeSet<String>>,
    /// A write of them is scheduled.
    saving: StoredValue<bool>,
}

impl Chats {
    /// Restores the stored conversations (`None`: there is no database) and what this tab stashed of them, and marks answers
    /// that a reload interrupted. Opens the conversation `open` if it exists, otherwise a new one with the id `fresh`.
    pub fn restore(
        stored: Option<Vec<Conversation>>,
        stash: Vec<Stashed>,
        draft: String,
        open: Option<&str>,
        fresh: String,
    ) -> Self {
        let asked = |conversation: &Conversation| !conversation.turns.is_empty();
        let by_id = |conversation: Conversation| (conversation.id.clone(), conversation);
        let has_database = stored.is_some();
        let mut shelved: BTreeMap<String, Conversation> =
            stored.unwrap_or_default().into_iter().filter(asked).map(by_id).collect();
        let mut stored: BTreeSet<String> = shelved.keys().cloned().collect();
        let mut unsaved = BTreeSet::new();
        for Stashed { conversation, was_stored } in stash.into_iter().filter(|stashed| asked(&stashed.conversation)) {
            let id = conversation.id.clone();
            let counts = match shelved.get(&id) {
                // The stash is newer than the database's record, unless another tab asked something meanwhile.
                Some(known) => known.changed <= conversation.changed,
                None => !was_stored || !has_database,
            };
            if counts {
                unsaved.insert(id.clone());
                if was_stored {
                    stored.insert(id.clone());
                }
                shelved.insert(id, conversation);
            }
        }
        for conversation in shelved.values_mut() {
            conversation.break_off(&AnswerState::Interrupted);
        }
        let open = open.and_then(|id| shelved.remove(id)).unwrap_or_else(|| Conversation::new(fresh));
        let chats = Self {
            open: RwSignal::new(open),
            headings: RwSignal::new(Vec::new()),
            draft: RwSignal::new(draft),
            shelved: StoredValue::new(shelved),
            unsaved: StoredValue::new(unsaved),
            stored: StoredValue::new(stored),
            saving: StoredValue::new(false),
        };
        chats.refresh_headings();
        chats
    }

    /// Opens `next`, and shelves the previously open conversation unless it was empty.
    pub fn replace_open(self, next: Conversation) {
        let before = self.open.try_update(|open| std::mem::replace(open, next));
        if let Some(before) = before.filter(|before| !before.turns.is_empty()) {
            self.shelved.update_value(|shelved| {
                shelved.insert(before.id.clone(), before);
            });
        }
        self.refresh_headings();
    }

    /// Takes the database's record of a conversation, in which another tab may have written on. What this tab changed or has
    /// answered now stays.
    pub fn renew(self, mut stored: Conversation) {
        stored.break_off(&AnswerState::Interrupted);
        let is_news = self.look_at(&stored.id, |known| *known != stored) == Some(true);
        if !is_news || stored.turns.is_empty() || self.is_own(&stored.id) {
            return;
        }
        if self.is_open(&stored.id) {
            self.open.set(stored);
        } else {
            self.shelved.update_value(|shelved| {
                shelved.insert(stored.id.clone(), stored);
            });
        }
        self.refresh_headings();
    }

    /// Takes a conversation off the shelf in order to open it.
    pub fn unshelve(self, id: &str) -> Option<Conversation> {
        self.shelved.try_update_value(|shelved| shelved.remove(id)).flatten()
    }

    /// True if the conversation with this id is open.
    pub fn is_open(self, id: &str) -> bool {
        self.open.with_untracked(|open| open.id == id)
    }

    /// This tab's state of a conversation is the one that counts: it changed it since it read or stored it, or has it answered.
    pub fn is_own(self, id: &str) -> bool {
        self.unsaved.with_value(|unsaved| unsaved.contains(id)) || self.running(id).is_some()
    }

    /// The database has no such conversation: true if another tab deleted it. What this tab has to store yet is not deleted.
    pub fn is_gone(self, id: &str) -> bool {
        self.look_at(id, |_| ()).is_some() && !self.is_own(id)
    }

    /// The request that answers in a conversation, open or not.
    pub fn running(self, id: &str) -> Option<RequestId> {
        self.look_at(id, Conversation::running).flatten()
    }

    fn look_at<T>(self, id: &str, look: impl FnOnce(&Conversation) -> T) -> Option<T> {
        if self.is_open(id) {
            Some(self.open.with_untracked(look))
        } else {
            self.shelved.with_value(|shelved| shelved.get(id).map(look))
        }
    }

    /// Changes a conversation. If it is the open one, whoever shows it learns of it.
    pub fn change(self, id: &str, change: impl FnOnce(&mut Conversation)) {
        if self.is_open(id) {
            self.open.update(change);
        } else {
            self.shelved.update_value(|shelved| {
                if let Some(conversation) = shelved.get_mut(id) {
                    change(conversation);
                }
            });
        }
        self.mark(id);
        self.refresh_headings();
    }

    /// Applies a part of an answer to the conversation that waits for it; `false` if none does.
    pub fn apply(self, request: RequestId, part: &AnswerPart) -> bool {
        let waits = |conversation: &Conversation| conversation.running() == Some(request);
        let changed = if self.open.with_untracked(waits) {
            self.open.try_update(|open| open.apply(request, part).then(|| open.id.clone()))
        } else {
            self.shelved.try_update_value(|shelved| {
                let conversation = shelved.values_mut().find(|conversation| waits(conversation))?;
                conversation.apply(request, part).then(|| conversation.id.clone())
            })
        };
        let changed = changed.flatten();
        if let Some(id) = &changed {
            self.mark(id);
        }
        changed.is_some()
    }

    /// Ends all unfinished answers with `state`; `false` if there were none.
    pub fn break_off(self, state: &AnswerState) -> bool {
        let running = |conversation: &&Conversation| conversation.running().is_some();
        let mut ids: Vec<String> =
            self.shelved.with_value(|shelved| shelved.values().filter(running).map(|found| found.id.clone()).collect());
        ids.extend(self.open.with_untracked(|open| Some(open).filter(running).map(|open| open.id.clone())));
        for id in &ids {
            self.change(id, |conversation| {
                conversation.break_off(state);
            });
        }
        !ids.is_empty()
    }

    /// Forgets a conversation; `next` takes the place of the open one.
    pub fn forget(self, id: &str, next: impl FnOnce() -> Conversation) {
        if self.is_open(id) {
            self.open.set(next());
        }
        self.unshelve(id);
        for known in [self.unsaved, self.stored] {
            known.update_value(|known| {
                known.remove(id);
            });
        }
        self.refresh_headings();
    }

    /// Rebuilds the list of conversations.
    pub fn refresh_headings(self) {
        let mut headings: Vec<_> =
            self.shelved.with_value(|shelved| shelved.values().map(Conversation::heading).collect());
        self.open.with_untracked(|open| {
            if !open.turns.is_empty() {
                headings.push(open.heading());
            }
        });
        headings.sort_by(|left, right| right.changed.total_cmp(&left.changed));
        self.headings.set(headings);
    }

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
        let stash = |conversation: Conversation| {
            let was_stored = self.stored.with_value(|stored| stored.contains(&conversation.id));
            Stashed { conversation, was_stored }
        };
        self.unsaved().into_iter().map(stash).collect()
    }

    /// The database has this conversation. It still lacks what changed since.
    pub fn saved(self, written: &Conversation) {
        let is_same = self.look_at(&written.id, |now| now == written);
        if is_same.is_some() {
            self.stored.update_value(|stored| {
                stored.insert(written.id.clone());
            });
        }
        if is_same == Some(true) {
            self.unsaved.update_value(|unsaved| {
                unsaved.remove(&written.id);
            });
        }
    }

    fn mark(self, id: &str) {
        self.unsaved.update_value(|unsaved| {
            unsaved.insert(id.to_owned());
        });
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
    use super::*;
    use potluck_panel::{AnswerStop, Timings};

    const REQUEST: RequestId = RequestId(1);

    fn asked(id: &str) -> Conversation {
        let mut conversation = Conversation::new(id.into());
        conversation.ask("Why?", REQUEST, "tiny");
        conversation
    }

    fn answered(id: &str, text: &str) -> Conversation {
        let mut conversation = asked(id);
        conversation.apply(REQUEST, &delta(text));
        conversation.apply(REQUEST, &end());
        conversation
    }

    fn delta(text: &str) -> AnswerPart {
        AnswerPart::Text { index: 0, delta: text.into(), tokens: vec![1] }
    }

    fn end() -> AnswerPart {
        AnswerPart::End { pieces: 1, stop: AnswerStop::Complete, timings: Timings::default() }
    }

    fn restored(stored: Vec<Conversation>, stash: Vec<Stashed>, open: Option<&str>) -> Chats {
        Chats::restore(Some(stored), stash, String::new(), open, "fresh".into())
    }

    fn stashed(conversation: Conversation, was_stored: bool) -> Stashed {
        Stashed { conversation, was_stored }
    }

    fn ids(conversations: &[Conversation]) -> Vec<&str> {
        conversations.iter().map(|conversation| conversation.id.as_str()).collect()
    }

    fn marks(stash: &[Stashed]) -> Vec<(&str, bool)> {
        stash.iter().map(|stashed| (stashed.conversation.id.as_str(), stashed.was_stored)).collect()
    }

    fn text_of(conversation: &Conversation) -> &str {
        &conversation.turns[0].answer.text
    }

    #[test]
    fn an_answer_that_grows_on_the_shelf_is_stored_too() {
        Owner::new().with(|| {
            let chats = restored(Vec::new(), Vec::new(), None);
            chats.change("fresh", |open| open.ask("Why?", REQUEST, "tiny"));
            chats.saved(&chats.open.get_untracked());
            assert_eq!(chats.unsaved(), []);
            chats.replace_open(Conversation::new("next".into()));
            assert!(chats.apply(REQUEST, &delta("Because")));
            let due = chats.unsaved();
            assert_eq!((ids(&due), text_of(&due[0])), (vec!["fresh"], "Because"));
            assert!(chats.apply(REQUEST, &delta(" of air.")));
            chats.saved(&due[0]);
            assert_eq!(text_of(&chats.unsaved()[0]), "Because of air.", "it changed while it was written");
            assert!(!chats.apply(RequestId(2), &delta("x")), "nobody waits for this");
        });
    }

    #[test]
    fn what_this_tab_only_looked_at_is_not_stored() {
        Owner::new().with(|| {
            let chats = restored(vec![asked("x"), answered("y", "Yes.")], Vec::new(), Some("x"));
            assert_eq!(chats.open.with_untracked(|open| open.turns[0].answer.state.clone()), AnswerState::Interrupted);
            chats.replace_open(Conversation::new("next".into()));
            assert_eq!(chats.unsaved(), [], "another tab may have finished the answer");
        });
    }

    #[test]
    fn a_conversation_without_a_question_is_neither_stored_nor_restored() {
        Owner::new().with(|| {
            let chats = restored(vec![Conversation::new("blank".into()), answered("y", "Yes.")], Vec::new(), None);
            chats.change("fresh", |open| open.changed = 1.0);
            assert_eq!(chats.unsaved(), []);
            let headings = chats.headings.get_untracked();
            assert_eq!(headings.iter().map(|heading| heading.id.as_str()).collect::<Vec<_>>(), ["y"]);
        });
    }

    #[test]
    fn a_stash_wins_over_an_older_record_and_is_stored() {
        Owner::new().with(|| {
            let mut newer = answered("b", "Another tab's.");
            newer.changed = 2.0;
            let stored = vec![answered("a", "Be"), newer];
            let stash = vec![stashed(answered("a", "Because"), true), stashed(answered("b", "Old."), true)];
            let chats = restored(stored, stash, Some("a"));
            assert_eq!(chats.open.with_untracked(|open| text_of(open).to_owned()), "Because");
            assert_eq!(ids(&chats.unsaved()), ["a"]);
        });
    }

    #[test]
    fn an_opened_conversation_is_renewed_unless_this_tab_changed_it() {
        Owner::new().with(|| {
            let chats = restored(vec![asked("x")], Vec::new(), Some("x"));
            chats.renew(answered("y", "Of another one."));
            chats.renew(answered("x", "Because."));
            assert_eq!(chats.open.with_untracked(|open| text_of(open).to_owned()), "Because.");
            chats.change("x", |open| open.title = "Air".into());
            chats.renew(answered("x", "Stale."));
            assert_eq!(chats.open.with_untracked(|open| text_of(open).to_owned()), "Because.");
        });
    }

    #[test]
    fn a_conversation_that_is_answered_here_is_not_renewed() {
        Owner::new().with(|| {
            let chats = restored(Vec::new(), Vec::new(), None);
            chats.change("fresh", |open| open.ask("Why?", REQUEST, "tiny"));
            chats.saved(&chats.open.get_untracked());
            chats.renew(answered("fresh", "Another tab's."));
            assert_eq!(chats.running("fresh"), Some(REQUEST));
            chats.replace_open(Conversation::new("next".into()));
            assert_eq!(chats.running("fresh"), Some(REQUEST), "a deletion stops it on the shelf too");
            assert!(chats.is_own("fresh") && !chats.is_gone("fresh"));
            chats.apply(REQUEST, &end());
            chats.saved(&chats.unsaved()[0]);
            assert!(!chats.is_own("fresh"), "the database has it");
            assert!(chats.is_gone("fresh") && !chats.is_gone("never known"));
        });
    }

    #[test]
    fn a_title_comes_with_what_another_tab_wrote() {
        Owner::new().with(|| {
            let chats = restored(vec![asked("x")], Vec::new(), None);
            let mut renamed = answered("x", "Another tab's.");
            renamed.title = "Air".into();
            chats.renew(renamed.clone());
            assert_eq!(chats.headings.get_untracked()[0].title, "Air");
            assert_eq!(chats.unsaved(), [], "the database has it already");
            assert_eq!(chats.unshelve("x"), Some(renamed));
        });
    }

    #[test]
    fn a_stash_of_a_deleted_conversation_does_not_count() {
        Owner::new().with(|| {
            let before = restored(vec![answered("x", "Yes.")], Vec::new(), Some("x"));
            before.change("x", |open| open.changed = 1.0);
            before.replace_open(asked("new"));
            before.change("new", |open| open.changed = 2.0);
            let stash = before.stash();
            assert_eq!(marks(&stash), [("x", true), ("new", false)]);
            let after = restored(Vec::new(), stash.clone(), None);
            assert_eq!(ids(&after.unsaved()), ["new"], "another tab deleted the other one");
            let without_database = Chats::restore(None, stash, String::new(), None, "fresh".into());
            assert_eq!(marks(&without_database.stash()), [("new", false), ("x", true)], "nothing else has them");
        });
    }

    #[test]
    fn a_deleted_conversation_is_not_stored_again() {
        Owner::new().with(|| {
            let chats = restored(vec![answered("x", "Yes.")], Vec::new(), Some("x"));
            chats.change("x", |open| open.changed = 1.0);
            chats.forget("x", || Conversation::new("next".into()));
            assert_eq!(chats.unsaved(), []);
            assert!(chats.is_open("next") && chats.headings.get_untracked().is_empty());
        });
    }

    #[test]
    fn an_answer_that_breaks_off_is_stored_wherever_it_is() {
        Owner::new().with(|| {
            let chats = restored(Vec::new(), Vec::new(), None);
            chats.change("fresh", |open| open.ask("Why?", REQUEST, "tiny"));
            chats.saved(&chats.open.get_untracked());
            chats.replace_open(Conversation::new("next".into()));
            assert!(chats.break_off(&AnswerState::Failed("The room is closed.".into())));
            assert_eq!(ids(&chats.unsaved()), ["fresh"]);
            assert!(!chats.break_off(&AnswerState::Stopped), "it is over already");
        });
    }
}
