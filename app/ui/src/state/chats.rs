//! All conversations: one is open, the others are shelved. No conversation is both; the list names them all.

use std::collections::{BTreeMap, BTreeSet};

use leptos::prelude::*;
use potluck_panel::{AnswerPart, RequestId};

use super::{AnswerState, Conversation, Heading};

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
    /// A write of them is scheduled.
    saving: StoredValue<bool>,
}

impl Chats {
    /// Restores the stored conversations and what this tab stashed of them, and marks answers that a reload interrupted.
    /// Opens the conversation `open` if it exists, otherwise a new one with the id `fresh`.
    pub fn restore(
        stored: Vec<Conversation>,
        stash: Vec<Conversation>,
        draft: String,
        open: Option<&str>,
        fresh: String,
    ) -> Self {
        let asked = |conversation: &Conversation| !conversation.turns.is_empty();
        let by_id = |conversation: Conversation| (conversation.id.clone(), conversation);
        let mut shelved: BTreeMap<String, Conversation> = stored.into_iter().filter(asked).map(by_id).collect();
        let mut unsaved = BTreeSet::new();
        for stashed in stash.into_iter().filter(asked) {
            // The stash is newer than the database's record, unless another tab asked something meanwhile.
            if shelved.get(&stashed.id).is_none_or(|known| known.changed <= stashed.changed) {
                unsaved.insert(stashed.id.clone());
                shelved.insert(stashed.id.clone(), stashed);
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

    /// Takes the database's record of the open conversation, in which another tab may have written on. What this tab
    /// changed or is being answered stays.
    pub fn renew(self, mut stored: Conversation) {
        let is_own = self.unsaved.with_value(|unsaved| unsaved.contains(&stored.id));
        stored.break_off(&AnswerState::Interrupted);
        let is_news = self.open.with_untracked(|open| {
            open.id == stored.id && open.running().is_none() && !stored.turns.is_empty() && *open != stored
        });
        if is_news && !is_own {
            self.open.set(stored);
            self.refresh_headings();
        }
    }

    /// Takes a conversation off the shelf in order to open it.
    pub fn unshelve(self, id: &str) -> Option<Conversation> {
        self.shelved.try_update_value(|shelved| shelved.remove(id)).flatten()
    }

    /// True if the conversation with this id is open.
    pub fn is_open(self, id: &str) -> bool {
        self.open.with_untracked(|open| open.id == id)
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
        self.unsaved.update_value(|unsaved| {
            unsaved.remove(id);
        });
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

    /// The database has this conversation. It still lacks what changed since.
    pub fn saved(self, written: &Conversation) {
        let is_same = |now: Option<&Conversation>| now == Some(written);
        let is_same = if self.is_open(&written.id) {
            self.open.with_untracked(|open| is_same(Some(open)))
        } else {
            self.shelved.with_value(|shelved| is_same(shelved.get(&written.id)))
        };
        if is_same {
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

    fn restored(stored: Vec<Conversation>, stash: Vec<Conversation>, open: Option<&str>) -> Chats {
        Chats::restore(stored, stash, String::new(), open, "fresh".into())
    }

    fn ids(conversations: &[Conversation]) -> Vec<&str> {
        conversations.iter().map(|conversation| conversation.id.as_str()).collect()
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
            let chats = restored(stored, vec![answered("a", "Because"), answered("b", "Old.")], Some("a"));
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
