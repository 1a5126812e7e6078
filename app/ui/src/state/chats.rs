//! All conversations: one is open, the others are shelved. No conversation is both; the list names them all.

#[cfg(test)]
mod fixtures;
mod searching;
mod storing;

use std::collections::{BTreeMap, BTreeSet};

use leptos::prelude::*;
use potluck_panel::{AnswerPart, RequestId};

pub use storing::Stashed;

use super::{AnswerState, AttachedFile, Conversation, Heading, KnownRecord, QuestionParts, Record, TakenBack};

/// The conversations. Copies are handles to the same ones.
#[derive(Clone, Copy)]
pub struct Chats {
    /// The open conversation.
    pub open: RwSignal<Conversation>,
    /// All conversations that have a question, newest first.
    pub headings: RwSignal<Vec<Heading>>,
    /// Text that the page puts into the composer. It is told of what is typed there, but not at once.
    pub draft: RwSignal<String>,
    /// The files that go along with the text in the composer.
    pub files: RwSignal<Vec<AttachedFile>>,
    /// Why the question was refused that was put back into the composer, or a file was not taken.
    pub refused: RwSignal<Option<String>>,
    /// The composer's field, while it has a text that is not kept yet.
    pub typing: StoredValue<Option<web_sys::HtmlTextAreaElement>, LocalStorage>,
    /// The conversations that are not open; an answer in one may still grow.
    shelved: StoredValue<BTreeMap<String, Conversation>>,
    /// Conversations that this tab changed since it read or stored them. It stores no others.
    unsaved: StoredValue<BTreeSet<String>>,
    /// What this tab knows of their records.
    seen: StoredValue<BTreeMap<String, KnownRecord>>,
    /// A write of them is scheduled.
    saving: StoredValue<bool>,
}

impl Chats {
    /// Restores the stored conversations (`None`: there is no database) and what this tab stashed of them, and marks answers
    /// that a reload interrupted. Opens the conversation `open` if it exists, otherwise a new one with the id `fresh`.
    pub fn restore(
        stored: Option<Vec<Record>>,
        stash: Vec<Stashed>,
        draft: String,
        open: Option<&str>,
        fresh: String,
    ) -> Self {
        let asked = |conversation: &Conversation| !conversation.turns.is_empty();
        let has_database = stored.is_some();
        let records = stored.unwrap_or_default().into_iter().filter(|record| asked(&record.conversation));
        let mut shelved = BTreeMap::new();
        let mut seen = BTreeMap::new();
        for Record { revision, conversation } in records {
            seen.insert(conversation.id.clone(), KnownRecord { was_stored: true, revisions: vec![revision] });
            shelved.insert(conversation.id.clone(), conversation);
        }
        let mut unsaved = BTreeSet::new();
        for mut stashed in stash.into_iter().filter(|stashed| asked(&stashed.conversation)) {
            let id = stashed.conversation.id.clone();
            let counts = match (shelved.get(&id), seen.get(&id)) {
                // If another tab wrote meanwhile, the first save finds that out: the stash does not know its revision.
                (Some(record), Some(read)) => stashed.seen.covers(read) || stashed.conversation.adds_to(record),
                _ => !stashed.seen.was_stored || !has_database,
            };
            if counts {
                stashed.seen.was_stored |= shelved.contains_key(&id);
                unsaved.insert(id.clone());
                seen.insert(id.clone(), stashed.seen);
                shelved.insert(id, stashed.conversation);
            }
        }
        for conversation in shelved.values_mut() {
            conversation.break_off(&AnswerState::Interrupted);
        }
        let open = open.and_then(|id| shelved.remove(id)).unwrap_or_else(|| Conversation::new(fresh));
        let chats = Self {
            open: RwSignal::new(open),
            headings: RwSignal::new(Vec::new()),
            files: RwSignal::new(QuestionParts::of(&draft).files),
            draft: RwSignal::new(draft),
            refused: RwSignal::new(None),
            typing: StoredValue::new_local(None),
            shelved: StoredValue::new(shelved),
            unsaved: StoredValue::new(unsaved),
            seen: StoredValue::new(seen),
            saving: StoredValue::new(false),
        };
        chats.refresh_headings();
        chats
    }

    /// Adds conversations from a file to the list.
    pub fn add(self, conversations: Vec<Conversation>) {
        for conversation in conversations {
            self.mark(&conversation.id);
            self.shelved.update_value(|shelved| drop(shelved.insert(conversation.id.clone(), conversation)));
        }
        self.refresh_headings();
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

    /// This tab has such a conversation, open or not.
    pub fn has(self, id: &str) -> bool {
        self.inspect(id, |_| ()).is_some()
    }

    /// A request that answers in a conversation, open or not.
    pub fn running(self, id: &str) -> Option<RequestId> {
        self.inspect(id, Conversation::running).flatten()
    }

    /// All requests that answer in a conversation, open or not.
    pub fn all_running(self, id: &str) -> Vec<RequestId> {
        self.inspect(id, |conversation| conversation.all_running().collect()).unwrap_or_default()
    }

    fn inspect<T>(self, id: &str, read: impl FnOnce(&Conversation) -> T) -> Option<T> {
        if self.is_open(id) {
            Some(self.open.with_untracked(read))
        } else {
            self.shelved.with_value(|shelved| shelved.get(id).map(read))
        }
    }

    /// Changes a conversation. If it is the open one, whoever shows it learns of it.
    pub fn change(self, id: &str, change: impl FnOnce(&mut Conversation)) {
        self.alter(id, change);
        self.mark(id);
        self.refresh_headings();
    }

    fn alter(self, id: &str, change: impl FnOnce(&mut Conversation)) {
        if self.is_open(id) {
            self.open.update(change);
        } else {
            self.shelved.update_value(|shelved| {
                if let Some(conversation) = shelved.get_mut(id) {
                    change(conversation);
                }
            });
        }
    }

    /// Text of the composer that is not kept yet.
    pub fn draft_to_keep(self) -> Option<String> {
        let text = self.typing.with_value(|field| field.as_ref().map(web_sys::HtmlTextAreaElement::value))?;
        Some(self.with_files(text))
    }

    /// A text with the files of the composer.
    pub fn with_files(self, text: String) -> String {
        QuestionParts { text, files: self.files.get_untracked() }.whole()
    }

    /// Nothing is written in the composer.
    pub fn composer_is_blank(self) -> bool {
        let blank = |text: &str| text.trim().is_empty();
        self.draft_to_keep().map_or_else(|| self.draft.with_untracked(|draft| blank(draft)), |text| blank(&text))
    }

    /// Takes back what this request asks in the open conversation.
    pub fn take_back(self, request: RequestId) -> Option<TakenBack> {
        let taken = self.open.try_update(|open| open.take_back(request)).flatten()?;
        let id = self.open.with_untracked(|open| open.id.clone());
        self.mark(&id);
        self.refresh_headings();
        Some(taken)
    }

    /// An answer to this request may still grow.
    pub fn waits_for(self, request: RequestId) -> bool {
        let waits = |conversation: &Conversation| conversation.waits_for(request);
        self.open.with_untracked(waits) || self.shelved.with_value(|shelved| shelved.values().any(waits))
    }

    /// Applies a part of an answer that came at the time `now`, in milliseconds, to the conversation that waits for it; `false` if
    /// none does.
    pub fn apply(self, request: RequestId, part: &AnswerPart, now: f64) -> bool {
        let waits = |conversation: &Conversation| conversation.waits_for(request);
        let changed = if self.open.with_untracked(waits) {
            self.open.try_update(|open| open.apply_at(request, part, now).then(|| open.id.clone()))
        } else {
            self.shelved.try_update_value(|shelved| {
                let conversation = shelved.values_mut().find(|conversation| waits(conversation))?;
                conversation.apply_at(request, part, now).then(|| conversation.id.clone())
            })
        };
        let changed = changed.flatten();
        if let Some(id) = &changed {
            self.mark(id);
        }
        changed.is_some()
    }

    /// Marks what a request has written in a conversation; `false` if it is not here, or marked.
    pub fn doubt(self, id: &str, request: RequestId) -> bool {
        let mut is_new = false;
        self.alter(id, |conversation| is_new = conversation.doubt(request));
        if is_new {
            self.mark(id);
        }
        is_new
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
        self.unmark(id);
        self.seen.update_value(|seen| {
            seen.remove(id);
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
        let newer = |left: &Heading, right: &Heading| right.changed.total_cmp(&left.changed);
        headings.sort_by(|left, right| right.pinned.cmp(&left.pinned).then_with(|| newer(left, right)));
        self.headings.set(headings);
    }

    fn mark(self, id: &str) {
        self.unsaved.update_value(|unsaved| {
            unsaved.insert(id.to_owned());
        });
    }

    fn unmark(self, id: &str) {
        self.unsaved.update_value(|unsaved| {
            unsaved.remove(id);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::{fixtures::*, *};

    #[test]
    fn an_answer_that_grows_on_the_shelf_is_stored_too() {
        Owner::new().with(|| {
            let mut browser = Browser::with(Vec::new());
            let chats = browser.tab(Vec::new(), None);
            ask(chats, "fresh", "Why?", REQUEST);
            browser.save(chats);
            assert_eq!(chats.unsaved(), []);
            chats.replace_open(Conversation::new("next".into()));
            assert!(chats.apply(REQUEST, &delta("Because"), 0.0));
            assert_eq!(ids(&chats.unsaved()), ["fresh"]);
            let write = browser.begin(chats).remove(0);
            assert_eq!(text_of(&write.mine.conversation), "Because");
            assert!(chats.apply(REQUEST, &delta(" of air."), 0.0));
            chats.saved(&write.mine);
            assert_eq!(text_of(&chats.unsaved()[0]), "Because of air.", "it changed while it was written");
            assert!(!chats.apply(RequestId(2), &delta("x"), 0.0), "nobody waits for this");
        });
    }

    #[test]
    fn what_this_tab_only_looked_at_is_not_stored() {
        Owner::new().with(|| {
            let chats = Browser::with(vec![asked("x"), answered("y", "Yes.")]).tab(Vec::new(), Some("x"));
            assert_eq!(chats.open.with_untracked(|open| open.turns[0].answer.state.clone()), AnswerState::Interrupted);
            chats.replace_open(Conversation::new("next".into()));
            assert_eq!(chats.unsaved(), [], "another tab may have finished the answer");
        });
    }

    #[test]
    fn a_conversation_without_a_question_is_neither_stored_nor_restored() {
        Owner::new().with(|| {
            let browser = Browser::with(vec![Conversation::new("blank".into()), answered("y", "Yes.")]);
            let chats = browser.tab(Vec::new(), None);
            chats.change("fresh", |open| open.changed = 1.0);
            assert_eq!(chats.unsaved(), []);
            let headings = chats.headings.get_untracked();
            assert_eq!(headings.iter().map(|heading| heading.id.as_str()).collect::<Vec<_>>(), ["y"]);
        });
    }

    #[test]
    fn what_is_pinned_comes_first() {
        Owner::new().with(|| {
            let chats = Browser::with(vec![answered("x", "Yes."), answered("y", "No.")]).tab(Vec::new(), None);
            let order = || chats.headings.get_untracked().into_iter().map(|heading| heading.id).collect::<Vec<_>>();
            chats.change("x", |conversation| conversation.changed = 1e12);
            assert_eq!(order(), ["x", "y"]);
            chats.change("y", |conversation| conversation.pinned = true);
            assert_eq!(order(), ["y", "x"]);
        });
    }

    #[test]
    fn a_deleted_conversation_is_not_stored_again() {
        Owner::new().with(|| {
            let chats = Browser::with(vec![answered("x", "Yes.")]).tab(Vec::new(), Some("x"));
            chats.change("x", |open| open.changed = 1.0);
            chats.forget("x", || Conversation::new("next".into()));
            assert_eq!(chats.unsaved(), []);
            assert!(chats.is_open("next") && chats.headings.get_untracked().is_empty() && !chats.has("x"));
        });
    }

    #[test]
    fn an_answer_that_breaks_off_is_stored_wherever_it_is() {
        Owner::new().with(|| {
            let mut browser = Browser::with(Vec::new());
            let chats = browser.tab(Vec::new(), None);
            ask(chats, "fresh", "Why?", REQUEST);
            browser.save(chats);
            chats.replace_open(Conversation::new("next".into()));
            assert!(chats.break_off(&AnswerState::Failed("The room is closed.".into())));
            assert_eq!(ids(&chats.unsaved()), ["fresh"]);
            assert!(!chats.break_off(&AnswerState::Stopped), "it is over already");
        });
    }
}
