//! Keeping, opening, renaming and deleting conversations.

use leptos::prelude::*;
use potluck_panel::{AnswerPart, NoticeLevel, RequestId};

use crate::{
    browser,
    state::{Conversation, Store},
};

/// A growing answer is written this often at most, milliseconds.
const SAVE_EVERY: u32 = 500;

impl Store {
    /// Opens an empty conversation; the open one goes on the shelf.
    pub fn new_conversation(self) {
        if self.conversation.with_untracked(|conversation| conversation.turns.is_empty()) {
            return;
        }
        self.shelve(Conversation::new(browser::hex(8)));
    }

    /// Opens a conversation of the list.
    pub fn open_conversation(self, id: &str) {
        let found = self.shelf.try_update_value(|shelf| shelf.remove(id)).flatten();
        if let Some(conversation) = found {
            self.shelve(conversation);
        }
    }

    fn shelve(self, next: Conversation) {
        let id = next.id.clone();
        let before = self.conversation.try_update(|open| std::mem::replace(open, next));
        if let Some(before) = before.filter(|before| !before.turns.is_empty()) {
            self.save(before.clone());
            self.shelf.update_value(|shelf| {
                shelf.insert(before.id.clone(), before);
            });
        }
        self.remember(|session| session.conversation = Some(id));
        self.refresh_headings();
    }

    /// Gives a conversation a title.
    pub fn rename_conversation(self, id: &str, title: &str) {
        let title = title.trim().to_owned();
        if title.is_empty() {
            return;
        }
        let rename = |conversation: &mut Conversation| {
            conversation.title.clone_from(&title);
            conversation.renamed = true;
        };
        if self.conversation.with_untracked(|open| open.id == id) {
            self.conversation.update(rename);
            self.touch();
        } else {
            let changed = self.shelf.try_update_value(|shelf| {
                shelf.get_mut(id).map(|conversation| {
                    rename(conversation);
                    conversation.clone()
                })
            });
            if let Some(changed) = changed.flatten() {
                self.save(changed);
            }
            self.refresh_headings();
        }
    }

    /// Deletes a conversation for good.
    pub fn delete_conversation(self, id: &str) {
        if self.conversation.with_untracked(|open| open.id == id) {
            self.stop();
            let next = Conversation::new(browser::hex(8));
            let next_id = next.id.clone();
            self.conversation.set(next);
            self.remember(|session| session.conversation = Some(next_id));
        } else {
            self.shelf.update_value(|shelf| {
                shelf.remove(id);
            });
        }
        self.refresh_headings();
        let id = id.to_owned();
        leptos::task::spawn_local(async move {
            if let Err(error) = browser::delete_conversation(&id).await {
                self.tell(NoticeLevel::Warning, "The conversation could not be deleted. Try again.", error.to_string());
            }
        });
    }

    /// Marks the open conversation as changed now and keeps it.
    pub fn touch(self) {
        self.conversation.update(|conversation| conversation.changed = browser::now());
        self.refresh_headings();
        self.save(self.conversation.get_untracked());
    }

    /// Keeps the open conversation soon; many calls make one write.
    pub(crate) fn save_soon(self) {
        if self.saving.try_update_value(|saving| std::mem::replace(saving, true)) == Some(false) {
            gloo_timers::callback::Timeout::new(SAVE_EVERY, move || {
                self.saving.set_value(false);
                self.save(self.conversation.get_untracked());
            })
            .forget();
        }
    }

    pub(crate) fn save(self, conversation: Conversation) {
        leptos::task::spawn_local(async move {
            if let Err(error) = browser::keep_conversation(&conversation).await {
                self.tell(
                    NoticeLevel::Warning,
                    "The browser refused to store this conversation. Copy what you need.",
                    error.to_string(),
                );
            }
        });
    }

    /// Keeps what is in the composer.
    pub fn set_draft(self, text: String) {
        self.draft.set(text);
        let draft = self.draft.get_untracked();
        leptos::task::spawn_local(async move {
            // A lost draft is not worth a sentence on the screen.
            let _refused = browser::keep_draft(&draft).await;
        });
    }

    pub(crate) fn apply_on_shelf(self, request: RequestId, event: &AnswerPart) -> Option<Conversation> {
        self.shelf.try_update_value(|shelf| {
            let conversation = shelf.values_mut().find(|conversation| conversation.running() == Some(request))?;
            conversation.apply(request, event);
            Some(conversation.clone())
        })?
    }

    /// Lists the conversations again, newest first.
    pub fn refresh_headings(self) {
        let mut headings: Vec<_> = self.shelf.with_value(|shelf| shelf.values().map(Conversation::heading).collect());
        self.conversation.with_untracked(|open| {
            if !open.turns.is_empty() {
                headings.push(open.heading());
            }
        });
        headings.sort_by(|left, right| right.changed.total_cmp(&left.changed));
        self.headings.set(headings);
    }
}
