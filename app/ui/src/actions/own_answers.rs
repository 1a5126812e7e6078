//! Changes how the open conversation is answered.

use leptos::prelude::*;

use crate::state::{AnswerSettings, Store};

impl Store {
    /// Changes how the open conversation is answered, from the next answer on. Settings that are the page's again are none.
    pub fn change_own_answers(self, change: impl FnOnce(&mut AnswerSettings)) {
        let usual = self.settings.with_untracked(|settings| settings.answers.clone());
        let mut own = self.chats.open.with_untracked(|open| open.answer_settings(&usual).clone());
        change(&mut own);
        self.keep_own_answers(Some(own).filter(|own| own.difference(&usual).is_some()));
    }

    /// Lets the open conversation be answered like this, or as the page's settings say.
    pub fn keep_own_answers(self, own: Option<AnswerSettings>) {
        let id = self.chats.open.with_untracked(|open| open.id.clone());
        self.chats.change(&id, |conversation| conversation.own_answers = own);
        self.remember_open();
        self.save();
    }
}
