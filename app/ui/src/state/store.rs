//! The page's state: signals fed by the node's messages and by what a person does.

use std::collections::BTreeMap;

use leptos::prelude::*;
use potluck_panel::{
    BUILD, BenchEvent, BenchReport, Connection, HostChoice, Notice, NoticeLevel, PlanStatus, Status, Timings, ToNode,
    ToPage,
};

use super::{AnswerState, Benching, Conversation, Heading, History, Notices, Part, Place, Session, Settings};
use crate::{
    actions::ToolCalls,
    browser,
    link::NodeLink,
    route::{RoomAddress, Route},
};

/// A dialog on top of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sheet {
    /// Choose a model and open a room.
    Host,
    /// Choose a room.
    Rooms,
    /// Link and QR code of the room.
    Invite,
    /// All conversations.
    Chats,
    /// Settings.
    Settings,
    /// Keyboard shortcuts.
    Shortcuts,
}

/// What the browser's storage holds, as the node told it last.
#[derive(Clone, Debug, PartialEq)]
pub struct StorageReport {
    /// Models, fully or partly here.
    pub models: Vec<potluck_panel::StoredModel>,
    /// Bytes used by this site.
    pub used: u64,
    /// Bytes the browser allows.
    pub quota: u64,
    /// The browser promised not to evict them.
    pub persistent: bool,
}

/// A room that is being opened.
#[derive(Clone, Debug, PartialEq)]
pub struct Opening {
    /// What was chosen.
    pub choice: HostChoice,
    /// The room that this tab was in: a snapshot of it is no answer yet.
    pub before: Option<String>,
}

/// The page's state. Copies are handles to the same state.
#[derive(Clone, Copy)]
pub struct Store {
    pub(crate) link: StoredValue<NodeLink, LocalStorage>,
    pub(crate) tools: StoredValue<ToolCalls, LocalStorage>,
    /// Conversations that are not open; an answer may still grow in one.
    pub(crate) shelf: StoredValue<BTreeMap<String, Conversation>>,
    pub(crate) saving: StoredValue<bool>,
    /// The node has answered.
    pub ready: RwSignal<bool>,
    /// The node's last snapshot.
    pub status: RwSignal<Status>,
    /// Where the address bar points.
    pub route: RwSignal<Route>,
    /// What this tab remembers; change it by [`Store::remember`].
    pub session: RwSignal<Session>,
    /// What a person set; change it by [`Store::set`].
    pub settings: RwSignal<Settings>,
    /// The open conversation.
    pub conversation: RwSignal<Conversation>,
    /// All conversations, newest first.
    pub headings: RwSignal<Vec<Heading>>,
    /// What is in the composer.
    pub draft: RwSignal<String>,
    /// Sentences on the screen.
    pub notices: RwSignal<Notices>,
    /// What the storage holds, once asked.
    pub storage: RwSignal<Option<StorageReport>>,
    /// The room that is being opened.
    pub opening: RwSignal<Option<Opening>>,
    /// Tokens that came to this tab: each one sends the light around the table.
    pub tokens: RwSignal<u64>,
    /// The room over time.
    pub history: RwSignal<History>,
    /// A plan was up in this room before: a prompt sent while another is prepared waits for it.
    pub was_up: RwSignal<bool>,
    /// The dialog on top.
    pub sheet: RwSignal<Option<Sheet>>,
    /// What the last answer of this tab took.
    pub last_timings: RwSignal<Option<Timings>>,
    /// How far a benchmark is.
    pub bench: RwSignal<Benching>,
    /// What the last benchmark gave.
    pub bench_report: RwSignal<Option<BenchReport>>,
}

impl Store {
    /// State as the browser kept it.
    #[must_use]
    pub fn new(link: NodeLink, kept: browser::Kept, mut session: Session) -> Self {
        session.peer.get_or_insert_with(browser::peer_id);
        let mut shelf: BTreeMap<String, Conversation> =
            kept.conversations.into_iter().map(|conversation| (conversation.id.clone(), conversation)).collect();
        if let Some(stash) = browser::take_stash() {
            shelf.insert(stash.id.clone(), stash);
        }
        let open = session.conversation.as_ref().and_then(|id| shelf.remove(id));
        let mut conversation = open.unwrap_or_else(|| Conversation::new(browser::hex(8)));
        conversation.break_off(&AnswerState::Interrupted);
        for shelved in shelf.values_mut() {
            shelved.break_off(&AnswerState::Interrupted);
        }
        session.conversation = Some(conversation.id.clone());
        let route = browser::current_route();
        let place_here = |place: &Place| matches!(&route, Route::Room(address) if address.id == place.room);
        session.place = session.place.filter(place_here);
        browser::keep_session(&session);
        let store = Self {
            link: StoredValue::new_local(link),
            tools: StoredValue::new_local(ToolCalls::default()),
            shelf: StoredValue::new(shelf),
            saving: StoredValue::new(false),
            ready: RwSignal::new(false),
            status: RwSignal::new(Status::default()),
            route: RwSignal::new(route),
            session: RwSignal::new(session),
            settings: RwSignal::new(kept.settings),
            conversation: RwSignal::new(conversation),
            headings: RwSignal::new(Vec::new()),
            draft: RwSignal::new(kept.draft),
            notices: RwSignal::new(Notices::default()),
            storage: RwSignal::new(None),
            opening: RwSignal::new(None),
            tokens: RwSignal::new(0),
            history: RwSignal::new(History::default()),
            was_up: RwSignal::new(false),
            sheet: RwSignal::new(None),
            last_timings: RwSignal::new(None),
            bench: RwSignal::new(Benching::Idle),
            bench_report: RwSignal::new(None),
        };
        store.refresh_headings();
        store
    }

    /// Takes a message of the node.
    pub fn take(self, message: ToPage) {
        match message {
            ToPage::Ready { build } => {
                if build != BUILD {
                    self.tell(
                        NoticeLevel::Error,
                        "This page and its worker are different versions. Reload the page.",
                        format!("page {BUILD}, worker {build}"),
                    );
                }
                // A second "ready" comes from a worker that took a dead one's place: it knows of no answers.
                if self.ready.get_untracked() {
                    self.break_off("The page's worker restarted and the answer stopped. Press Continue.");
                    if self.bench.with_untracked(Benching::is_busy) {
                        let sentence = "The page's worker restarted during the benchmark. Measure again.";
                        self.take_bench(BenchEvent::Failed(sentence.to_owned()));
                    }
                }
                self.ready.set(true);
            }
            ToPage::Status(status) => self.take_status(*status),
            ToPage::Answer { request, event } => self.take_answer(request, event),
            ToPage::Notice(notice) => self.show(notice),
            ToPage::Storage { models, used, quota, persistent } => {
                self.storage.set(Some(StorageReport { models, used, quota, persistent }));
            }
            ToPage::Trace(text) => self.tools.update_value(|calls| calls.answer_traces(&text)),
            ToPage::Bench(event) => self.take_bench(event),
        }
    }

    fn take_status(self, status: Status) {
        if let Some(room) = &status.room {
            let opened = self
                .opening
                .get_untracked()
                .filter(|opening| status.role.coordinator && opening.before.as_deref() != Some(room.id.as_str()));
            if let Some(Opening { choice, .. }) = opened {
                let lends = (choice.budget > 0).then_some(choice.budget);
                let place = Place { room: room.id.clone(), key: room.key.clone(), part: Part::Host(choice), lends };
                let address = place.address();
                self.remember(|session| session.place = Some(place));
                self.opening.set(None);
                self.sheet.set(None);
                browser::go(&address.path());
                self.route.set(Route::Room(address));
            } else {
                self.learn_key(&room.id, room.key.as_deref());
            }
        }
        self.admit_again(&status);
        if let Connection::Closed { reason } = &status.connection {
            self.break_off(reason);
        }
        let up = status.plan.as_ref().is_some_and(|plan| plan.state == PlanStatus::Up);
        if up && !self.was_up.get_untracked() {
            self.was_up.set(true);
        } else if status.room.is_none() && self.was_up.get_untracked() {
            self.was_up.set(false);
        }
        let now = browser::now();
        self.history.maybe_update(|history| history.observe(&status, now));
        self.status.set(status);
    }

    /// Answers that were under way do not come any more.
    fn break_off(self, reason: &str) {
        self.tools.update_value(|calls| calls.give_up(reason));
        let failed = AnswerState::Failed(reason.to_owned());
        let open = self.conversation.try_update(|conversation| conversation.break_off(&failed));
        if open == Some(true) {
            self.touch();
        }
        self.shelf.update_value(|shelf| {
            for conversation in shelf.values_mut() {
                conversation.break_off(&failed);
            }
        });
    }

    /// A guest who was let in gets the key: the next reload needs nobody's leave.
    fn learn_key(self, room: &str, key: Option<&str>) {
        let Some(key) = key else { return };
        let news = self.session.with_untracked(|session| {
            session.place.as_ref().is_some_and(|place| place.room == room && place.key.as_deref() != Some(key))
        });
        if news {
            self.remember(|session| {
                if let Some(place) = &mut session.place {
                    place.key = Some(key.to_owned());
                }
            });
            let address = RoomAddress { id: room.to_owned(), key: Some(key.to_owned()) };
            browser::replace(&address.path());
            self.route.set(Route::Room(address));
        }
    }

    /// Sends a message to the node.
    pub fn send(self, message: ToNode) {
        self.link.with_value(|link| link.send(message));
    }

    /// Changes what the tab remembers, and keeps it at once.
    pub fn remember(self, change: impl FnOnce(&mut Session)) {
        self.session.update(change);
        self.session.with_untracked(browser::keep_session);
    }

    /// Changes the settings, and keeps them.
    pub fn set(self, change: impl FnOnce(&mut Settings)) {
        self.settings.update(change);
        let settings = self.settings.get_untracked();
        leptos::task::spawn_local(async move {
            // The settings hold for this visit even if the browser keeps nothing.
            let _refused = browser::keep_settings(&settings).await;
        });
    }

    /// Shows a sentence. Good news go away by themselves.
    pub fn show(self, notice: Notice) {
        let passing = notice.level == NoticeLevel::Info;
        if notice.level == NoticeLevel::Error {
            self.opening.set(None);
        }
        let Some(id) = self.notices.try_update(|notices| notices.show(notice)) else { return };
        if passing {
            gloo_timers::callback::Timeout::new(8_000, move || self.notices.update(|notices| notices.dismiss(id)))
                .forget();
        }
    }

    /// Shows a sentence of the page's own.
    pub fn tell(self, level: NoticeLevel, sentence: impl Into<String>, details: impl Into<String>) {
        self.show(Notice { level, sentence: sentence.into(), details: details.into() });
    }

    /// Bytes to lend unless somebody chooses otherwise.
    #[must_use]
    pub fn lend_by_default(self) -> u64 {
        self.settings
            .with(|settings| settings.lend)
            .unwrap_or_else(|| crate::text::default_lend(browser::device_kind()))
    }

    /// The name others see.
    #[must_use]
    pub fn own_name(self) -> String {
        self.settings.with(|settings| settings.name.clone()).unwrap_or_else(browser::device_name)
    }
}

/// The page's state, from anywhere in the tree.
///
/// # Panics
/// Outside of the tree that `mount` made.
#[must_use]
pub fn store() -> Store {
    use_context::<Store>().expect("mount provides the store to the whole tree")
}
