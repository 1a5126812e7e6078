//! Saves, opens, renames and deletes conversations.

use leptos::prelude::*;
use potluck_panel::NoticeLevel;
use potluck_text::texts;

use crate::{
    browser,
    state::{Conversation, Store},
};

/// Minimum time between two saves of a growing answer, milliseconds.
const SAVE_EVERY: u32 = 500;

impl Store {
    /// Opens an empty conversation and shelves the open one.
    pub fn new_conversation(self) {
        if self.chats.open.with_untracked(|conversation| conversation.turns.is_empty()) {
            return;
        }
        self.shelve(Conversation::new(browser::hex(8)));
    }

    /// Opens a conversation from the list.
    pub fn open_conversation(self, id: &str) {
        if let Some(conversation) = self.chats.unshelve(id) {
            self.shelve(conversation);
        }
    }

    fn shelve(self, next: Conversation) {
        let id = next.id.clone();
        if let Some(before) = self.chats.replace_open(next) {
            self.save(before);
        }
        self.remember(|session| session.conversation = Some(id));
    }

    /// Gives a conversation a title.
    pub fn rename_conversation(self, id: &str, title: &str) {
        let title = title.trim().to_owned();
        if title.is_empty() {
            return;
        }
        let rename = |conversation: &mut Conversation| {
            conversation.title = title;
            conversation.renamed = true;
        };
        if self.chats.is_open(id) {
            self.chats.open.update(rename);
            self.touch();
        } else if let Some(changed) = self.chats.change_shelved(id, rename) {
            self.save(changed);
        }
    }

    /// Deletes a conversation permanently.
    pub fn delete_conversation(self, id: &str) {
        if self.chats.is_open(id) {
            self.stop();
            let next = Conversation::new(browser::hex(8));
            let next_id = next.id.clone();
            self.chats.open.set(next);
            self.remember(|session| session.conversation = Some(next_id));
        } else {
            self.chats.unshelve(id);
        }
        self.chats.refresh_headings();
        let id = id.to_owned();
        leptos::task::spawn_local(async move {
            if let Err(error) = browser::delete_conversation(&id).await {
                self.tell(NoticeLevel::Warning, texts().notice.not_deleted, error.to_string());
            }
        });
    }

    /// Marks the open conversation as changed now and saves it.
    pub fn touch(self) {
        self.chats.open.update(|conversation| conversation.changed = browser::now());
        self.chats.refresh_headings();
        self.save(self.chats.open.get_untracked());
    }

    /// Saves the open conversation soon; merges repeated calls into one write.
    pub(crate) fn save_soon(self) {
        if self.chats.begin_saving() {
            gloo_timers::callback::Timeout::new(SAVE_EVERY, move || {
                self.chats.end_saving();
                self.save(self.chats.open.get_untracked());
            })
            .forget();
        }
    }

    pub(crate) fn save(self, conversation: Conversation) {
        leptos::task::spawn_local(async move {
            if let Err(error) = browser::keep_conversation(&conversation).await {
                self.tell(NoticeLevel::Warning, texts().notice.not_stored, error.to_string());
            }
        });
    }

    /// Saves the composer's text.
    pub fn set_draft(self, text: String) {
        self.chats.draft.set(text);
        let draft = self.chats.draft.get_untracked();
        leptos::task::spawn_local(async move {
            // A lost draft does not deserve a notice.
            let _refused = browser::keep_draft(&draft).await;
        });
    }
}
