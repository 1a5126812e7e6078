//! Saves, opens, renames and deletes conversations.

use leptos::prelude::*;
use potluck_panel::{NoticeLevel, ToNode};
use potluck_text::{sentences, texts};

use crate::{
    browser,
    route::Route,
    state::{
        Conversation, ImportError, Imported, Record, Revision, Store, TurnId, TurnKey, Versioned, WriteOutcome,
        read_file,
    },
};

/// Minimum time between two saves of a growing answer, milliseconds.
const SAVE_EVERY: u32 = 500;

/// Where conversations are read.
const CHATS: &str = "/chats";

impl Store {
    /// Opens an empty conversation and shelves the open one.
    pub fn new_conversation(self) {
        if self.chats.open.with_untracked(|conversation| conversation.turns.is_empty()) {
            return;
        }
        self.shelve(Conversation::new(browser::hex(8)));
    }

    /// Opens a conversation from the list, as it is here, and reads it again: another tab may have written on in it.
    pub fn open_conversation(self, id: &str) {
        let Some(conversation) = self.chats.unshelve(id) else { return };
        self.shelve(conversation);
        self.renew_open();
    }

    /// Opens a conversation from the list: in the room, or where conversations are read.
    pub fn open_from_list(self, id: &str) {
        self.open_conversation(id);
        self.show_open();
    }

    /// Reads conversations from a file, and opens the newest of them.
    ///
    /// # Errors
    /// The file is something else, damaged, too large, or of a later version of the page.
    pub fn import_conversations(self, text: &str) -> Result<(), ImportError> {
        let Imported { conversations, unreadable } = read_file(text, || browser::hex(8), browser::now())?;
        let newest = conversations.iter().max_by(|left, right| left.changed.total_cmp(&right.changed));
        let newest = newest.map(|conversation| conversation.id.clone());
        let count = conversations.len();
        self.chats.add(conversations);
        self.save();
        if let Some(newest) = newest {
            self.open_conversation(&newest);
        }
        if count > 1 || unreadable > 0 {
            let left_out = if unreadable > 0 { texts().transfer.unreadable(unreadable) } else { String::new() };
            self.tell(NoticeLevel::Info, sentences(&[&texts().transfer.imported(count), &left_out]), "");
        }
        self.show_open();
        Ok(())
    }

    /// Leads from the list to the open conversation.
    fn show_open(self) {
        self.screen.dialog.set(None);
        if !untrack(|| self.in_room()) {
            browser::go_unless_there(CHATS);
            self.screen.route.set(Route::Chats);
        }
    }

    /// Reads the open conversation again: another tab may have written on in it, or deleted it.
    pub(crate) fn renew_open(self) {
        let (id, is_blank) = self.chats.open.with_untracked(|open| (open.id.clone(), open.turns.is_empty()));
        if is_blank || self.chats.is_own(&id) {
            return;
        }
        leptos::task::spawn_local(async move {
            match browser::stored_conversation(&id).await {
                Ok(Some(stored)) => self.chats.renew(stored),
                Ok(None) => self.deleted_elsewhere(&id),
                // What cannot be read is shown as this tab knows it.
                Err(_) => {}
            }
        });
    }

    /// The database has no such conversation. What this tab has to store yet is not deleted.
    fn deleted_elsewhere(self, id: &str) {
        if !self.chats.is_own(id) {
            self.give_up(id);
        }
    }

    /// Another tab deleted this conversation: its answer stops. Does nothing if this tab deleted it itself.
    fn give_up(self, id: &str) {
        if self.chats.has(id) {
            self.stop_and_forget(id);
            self.tell(NoticeLevel::Info, texts().notice.deleted_elsewhere(), "");
        }
    }

    fn stop_and_forget(self, id: &str) {
        for request in self.chats.all_running(id) {
            self.send(ToNode::Stop(request));
        }
        self.chats.forget(id, || Conversation::new(browser::hex(8)));
        self.remember(|session| session.waiting.forget(id));
        self.remember_open();
    }

    /// After a reload, the same conversation is open, and has the same settings.
    pub(super) fn remember_open(self) {
        let (open, own_answers) = self
            .chats
            .open
            .with_untracked(|open| (open.id.clone(), open.own_answers.clone().filter(|_| open.turns.is_empty())));
        self.remember(|session| {
            session.conversation = Some(open);
            session.own_answers = own_answers;
        });
    }

    fn shelve(self, next: Conversation) {
        self.chats.refused.set(None);
        self.screen.spoken.set(String::new());
        self.chats.replace_open(next);
        self.remember_open();
    }

    /// Gives a conversation a title.
    pub fn rename_conversation(self, id: &str, title: &str) {
        let title = title.trim().to_owned();
        if !title.is_empty() {
            self.relabel_conversation(id, move |conversation| {
                conversation.title = title;
                conversation.renamed = true;
            });
        }
    }

    /// Keeps a conversation at the top of the list, or not.
    pub fn pin_conversation(self, id: &str, pinned: bool) {
        self.relabel_conversation(id, move |conversation| conversation.pinned = pinned);
    }

    /// Changes what the list shows of a conversation: where it is stored, because another tab may have written on in it, and here
    /// if this tab has what counts.
    fn relabel_conversation(self, id: &str, relabel: impl FnOnce(&mut Conversation) + Clone + 'static) {
        let id = id.to_owned();
        leptos::task::spawn_local(async move {
            match browser::relabel_conversation(&id, relabel.clone()).await {
                _ if self.chats.is_own(&id) => {
                    self.chats.change(&id, relabel);
                    self.save();
                }
                Ok(Some(stored)) => self.chats.renew(stored),
                Ok(None) => self.deleted_elsewhere(&id),
                Err(error) => self.tell(NoticeLevel::Warning, texts().notice.not_stored(), error.to_string()),
            }
        });
    }

    /// Deletes a conversation permanently.
    pub fn delete_conversation(self, id: &str) {
        self.stop_and_forget(id);
        let id = id.to_owned();
        leptos::task::spawn_local(async move {
            if let Err(error) = browser::delete_conversation(&id).await {
                self.tell(NoticeLevel::Warning, texts().notice.not_deleted(), error.to_string());
            }
        });
    }

    /// Shows another version at a place of the open conversation.
    pub fn choose_version(self, at: usize, of: Versioned, version: usize) {
        self.change_open(|conversation| conversation.choose(at, of, version));
    }

    /// The turn whose answer is shown beside the one at this place of the open conversation.
    pub fn beside(self, at: usize) -> Option<TurnKey> {
        let TurnId(id, key) = self.screen.beside.get()?;
        self.chats.open.with(|open| (open.id == id && open.beside(at, key).is_some()).then_some(key))
    }

    /// Goes on with the answer that is shown beside the one at this place.
    pub fn choose_beside(self, at: usize, key: TurnKey) {
        if self.change_open(|conversation| conversation.choose_beside(at, key)) {
            self.screen.beside.set(None);
        }
    }

    /// Shows another version of the answer at this place beside it, or asks for one if there is none.
    pub fn compare(self, at: usize) {
        let neighbour = |open: &Conversation| open.neighbour(at).map(|key| TurnId(open.id.clone(), key));
        match self.chats.open.with_untracked(neighbour) {
            Some(turn) => self.screen.beside.set(Some(turn)),
            None => self.answer_beside(),
        }
    }

    /// Sends no turns of the open conversation before this place any more.
    pub fn send_from(self, at: usize) {
        self.change_open(|conversation| {
            conversation.send_from(at);
            true
        });
    }

    /// Goes on in a new conversation with the message that is written, or else with the last question.
    pub fn go_on_anew(self) {
        let (own_answers, question) = self
            .chats
            .open
            .with_untracked(|open| (open.own_answers.clone(), open.turns.last().map(|turn| turn.question.clone())));
        let is_blank = self.chats.composer_is_blank();
        self.new_conversation();
        self.keep_own_answers(own_answers);
        if let Some(question) = question.filter(|_| is_blank) {
            self.give_draft(question);
        }
        request_animation_frame(browser::focus_composer);
    }

    /// Deletes a turn of the open conversation, and the conversation with its last one.
    pub fn delete_turn(self, at: usize) {
        if self.change_open(|conversation| conversation.delete_turn(at)) {
            self.forget_blank();
        }
    }

    /// Changes the open conversation while no answer grows in it, and saves it; its place in the list stays. `false` if nothing
    /// changed.
    fn change_open(self, change: impl FnOnce(&mut Conversation) -> bool) -> bool {
        let (id, is_running) = self.chats.open.with_untracked(|open| (open.id.clone(), open.running().is_some()));
        let mut is_new = false;
        if !is_running {
            self.chats.refused.set(None);
            self.screen.spoken.set(String::new());
            self.chats.change(&id, |conversation| is_new = change(conversation));
            self.save();
        }
        is_new
    }

    /// A question was taken back: a conversation that has no other one is none.
    pub(crate) fn forget_blank(self) {
        let (id, is_blank) = self.chats.open.with_untracked(|open| (open.id.clone(), open.turns.is_empty()));
        if is_blank {
            self.delete_conversation(&id);
        } else {
            self.save_soon();
        }
    }

    /// Marks the open conversation as changed now and saves it.
    pub fn touch(self) {
        let open = self.chats.open.with_untracked(|open| open.id.clone());
        self.chats.change(&open, |conversation| conversation.changed = browser::now());
        self.save();
    }

    /// Saves what changed soon; merges repeated calls into one write.
    pub(crate) fn save_soon(self) {
        if self.chats.begin_saving() {
            gloo_timers::callback::Timeout::new(SAVE_EVERY, move || {
                self.chats.end_saving();
                self.save();
            })
            .forget();
        }
    }

    /// Saves the conversations that this tab changed. One that another tab deleted meanwhile is given up; where another tab
    /// has stored something else, this tab goes on with a copy.
    pub(super) fn save(self) {
        for write in self.chats.begin_writes(|| Revision(browser::seed())) {
            let id = write.mine.conversation.id.clone();
            leptos::task::spawn_local(async move {
                match browser::keep_conversation(write).await {
                    Ok(WriteOutcome::Written(record)) => self.chats.saved(&record),
                    Ok(WriteOutcome::Parted(theirs)) => self.part(theirs),
                    Ok(WriteOutcome::Deleted) => self.give_up(&id),
                    Err(error) => self.tell(NoticeLevel::Warning, texts().notice.not_stored(), error.to_string()),
                }
            });
        }
    }

    fn part(self, theirs: Record) {
        let (id, copy) = (theirs.conversation.id.clone(), browser::hex(8));
        if self.chats.part(theirs, copy.clone()) {
            self.remember(|session| session.waiting.rename(&id, &copy));
            self.remember_open();
            self.tell(NoticeLevel::Info, texts().notice.parted(), "");
        }
        // What could not be written is due again.
        self.save();
    }

    /// Puts a text into the composer.
    pub fn give_draft(self, text: String) {
        self.chats.draft.set(text.clone());
        self.keep_draft(text);
    }

    /// Keeps the composer's text.
    pub fn keep_draft(self, text: String) {
        self.chats.typing.set_value(None);
        self.chats.draft.update_untracked(|draft| draft.clone_from(&text));
        leptos::task::spawn_local(async move {
            // A lost draft does not deserve a notice.
            let _refused = browser::keep_draft(&text).await;
        });
    }
}
