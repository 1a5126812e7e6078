//! All conversations: one is open, the others are shelved. No conversation is both; the list names them all.

use std::collections::BTreeMap;

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
    /// A write of the open conversation is scheduled.
    saving: StoredValue<bool>,
}

impl Chats {
    /// Restores the stored conversations, and marks answers that a reload interrupted. Opens the conversation `open` if
    /// it exists, otherwise a new one with the id `fresh`.
    pub fn restore(kept: Vec<Conversation>, draft: String, open: Option<&str>, fresh: String) -> Self {
        let mut shelved: BTreeMap<String, Conversation> =
            kept.into_iter().map(|conversation| (conversation.id.clone(), conversation)).collect();
        for conversation in shelved.values_mut() {
            conversation.break_off(&AnswerState::Interrupted);
        }
        let open = open.and_then(|id| shelved.remove(id)).unwrap_or_else(|| Conversation::new(fresh));
        let chats = Self {
            open: RwSignal::new(open),
            headings: RwSignal::new(Vec::new()),
            draft: RwSignal::new(draft),
            shelved: StoredValue::new(shelved),
            saving: StoredValue::new(false),
        };
        chats.refresh_headings();
        chats
    }

    /// Opens `next`; returns the previously open conversation unless it was empty.
    pub fn replace_open(self, next: Conversation) -> Option<Conversation> {
        let before = self.open.try_update(|open| std::mem::replace(open, next));
        let before = before.filter(|before| !before.turns.is_empty());
        if let Some(before) = before.clone() {
            self.shelved.update_value(|shelved| {
                shelved.insert(before.id.clone(), before);
            });
        }
        self.refresh_headings();
        before
    }

    /// Takes a conversation off the shelf in order to open it.
    pub fn unshelve(self, id: &str) -> Option<Conversation> {
        self.shelved.try_update_value(|shelved| shelved.remove(id)).flatten()
    }

    /// True if the conversation with this id is open.
    pub fn is_open(self, id: &str) -> bool {
        self.open.with_untracked(|open| open.id == id)
    }

    /// Changes a shelved conversation; returns the result.
    pub fn change_shelved(self, id: &str, change: impl FnOnce(&mut Conversation)) -> Option<Conversation> {
        let changed = self.shelved.try_update_value(|shelved| {
            let conversation = shelved.get_mut(id)?;
            change(conversation);
            Some(conversation.clone())
        });
        self.refresh_headings();
        changed.flatten()
    }

    /// Applies a part of an answer that grows in a shelved conversation; returns that conversation.
    pub fn apply_shelved(self, request: RequestId, part: &AnswerPart) -> Option<Conversation> {
        self.shelved.try_update_value(|shelved| {
            let conversation = shelved.values_mut().find(|conversation| conversation.running() == Some(request))?;
            conversation.apply(request, part);
            Some(conversation.clone())
        })?
    }

    /// Ends all unfinished answers with `state`. True if the open conversation had one.
    pub fn break_off(self, state: &AnswerState) -> bool {
        self.shelved.update_value(|shelved| {
            for conversation in shelved.values_mut() {
                conversation.break_off(state);
            }
        });
        self.open.try_update(|conversation| conversation.break_off(state)) == Some(true)
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

    /// Schedules a write of the open conversation; `false` if one is already scheduled.
    pub fn begin_saving(self) -> bool {
        self.saving.try_update_value(|saving| std::mem::replace(saving, true)) == Some(false)
    }

    /// The scheduled write has begun: a later change needs another one.
    pub fn end_saving(self) {
        self.saving.set_value(false);
    }
}
