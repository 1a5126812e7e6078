//! The page's state: signals driven by the node's messages and the user's actions.

use std::collections::BTreeSet;

use leptos::prelude::*;
use potluck_panel::{
    BUILD, BenchEvent, Condition, Connection, Doors, KeySeed, Notice, NoticeLevel, RoomKeys, Status, ToNode, ToPage,
};
use potluck_text::texts;

use super::{
    AnswerState, BenchProgress, BenchState, Chats, Notices, Opening, OwnRooms, Part, Place, RoomState, Session,
    Settings, TurnId,
};
use crate::{
    actions::ToolCalls,
    browser,
    link::NodeLink,
    route::{RoomAddress, Route},
};

/// Passing notices are looked at this often, milliseconds.
const PASS_EVERY: u32 = 8_000;

/// A dialog on top of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DialogKind {
    /// Choose a model and open a room.
    Host,
    /// Choose a room.
    Rooms,
    /// Link and QR code of the room.
    Invite,
    /// What becomes of the room when its host leaves.
    Leave,
    /// Who can see what.
    Privacy,
    /// All conversations.
    Chats,
    /// How the open conversation is answered.
    OwnAnswers,
    /// Settings.
    Settings,
    /// Keyboard shortcuts.
    Shortcuts,
}

/// What the browser's storage holds, as the node last reported it.
#[derive(Clone, Debug, PartialEq)]
pub struct StorageReport {
    /// Models stored completely or partly.
    pub models: Vec<potluck_panel::StoredModel>,
    /// Bytes used by this site.
    pub used: u64,
    /// Bytes the browser allows.
    pub quota: u64,
    /// The browser promised not to evict this site's storage.
    pub persistent: bool,
}

/// The page's connection to the node.
#[derive(Clone, Copy)]
pub struct NodeState {
    pub(crate) link: StoredValue<NodeLink, LocalStorage>,
    /// Pending calls of `window.potluck`.
    pub(crate) tools: StoredValue<ToolCalls, LocalStorage>,
    /// This browser's secret key.
    pub(crate) device_key: StoredValue<KeySeed, LocalStorage>,
    /// The node has answered.
    pub ready: RwSignal<bool>,
}

/// What is on the screen.
#[derive(Clone, Copy)]
pub struct Screen {
    /// Where the address bar points.
    pub route: RwSignal<Route>,
    /// The open dialog.
    pub dialog: RwSignal<Option<DialogKind>>,
    /// Notices above the page.
    pub notices: RwSignal<Notices>,
    /// Answers that are shown as plain text, because drawing them stopped the page.
    pub plain: RwSignal<BTreeSet<TurnId>>,
    /// The answer that is shown beside another one to the same question.
    pub beside: RwSignal<Option<TurnId>>,
    /// What a screen reader says of the answer that is written now.
    pub spoken: RwSignal<String>,
}

/// The page's state. Copies are handles to the same state.
#[derive(Clone, Copy)]
pub struct Store {
    /// The node.
    pub node: NodeState,
    /// The room.
    pub room: RoomState,
    /// The rooms that this browser hosts or hosted.
    pub own_rooms: OwnRooms,
    /// The conversations.
    pub chats: Chats,
    /// The benchmark.
    pub bench: BenchState,
    /// The screen.
    pub screen: Screen,
    /// What this tab remembers; change it with [`Store::remember`].
    pub session: RwSignal<Session>,
    /// The user's settings; change them with [`Store::set`].
    pub settings: RwSignal<Settings>,
    /// The storage report, once requested.
    pub storage: RwSignal<Option<StorageReport>>,
}

impl Store {
    /// Restores the stored state.
    #[must_use]
    pub fn new(link: NodeLink, stored: browser::StoredData, mut session: Session, route: Route) -> Self {
        session.tab_key.get_or_insert_with(browser::key_seed);
        let browser::StoredData { conversations, settings, draft, device_key, own_rooms } = stored;
        let (own_rooms, over) = OwnRooms::restore(own_rooms, browser::now());
        over.iter().for_each(|id| browser::forget_room(id));
        let device_key = device_key.unwrap_or_else(|| {
            let key = browser::key_seed();
            browser::keep_device_key(key.clone());
            key
        });
        let open = session.conversation.as_deref();
        let chats = Chats::restore(
            conversations,
            browser::take_stash(),
            browser::take_draft().unwrap_or(draft),
            open,
            browser::hex(8),
        );
        let own_answers = session.own_answers.take();
        if chats.open.with_untracked(|open| open.turns.is_empty()) {
            session.own_answers.clone_from(&own_answers);
            chats.open.update_untracked(|open| open.own_answers = own_answers);
        }
        session.conversation = Some(chats.open.with_untracked(|open| open.id.clone()));
        // Whoever looks at the bench or the door comes back. A room that this tab hosted is offered at the door.
        let stays = |place: &Place| match &route {
            Route::Room(address) => address.id == place.room,
            Route::Bench | Route::Chats => true,
            Route::Door => place.part == Part::Guest,
        };
        session.place = session.place.filter(stays);
        let _refused = browser::keep_session(&session);
        Self {
            node: NodeState {
                link: StoredValue::new_local(link),
                tools: StoredValue::new_local(ToolCalls::default()),
                ready: RwSignal::new(false),
                device_key: StoredValue::new_local(device_key),
            },
            room: RoomState::new(),
            own_rooms,
            chats,
            bench: BenchState::new(),
            screen: Screen {
                route: RwSignal::new(route),
                dialog: RwSignal::new(None),
                notices: RwSignal::new(Notices::default()),
                plain: RwSignal::new(browser::plain_answers()),
                beside: RwSignal::new(None),
                spoken: RwSignal::new(String::new()),
            },
            session: RwSignal::new(session),
            settings: RwSignal::new(settings),
            storage: RwSignal::new(None),
        }
    }

    /// The place that the address bar names now. A key in it moves to the tab's session.
    #[must_use]
    pub fn arrive(self) -> Route {
        let arrived = self.session.try_update(arrive);
        arrived.unwrap_or(Route::Door)
    }

    /// Handles a message from the node.
    pub fn take(self, message: ToPage) {
        match message {
            ToPage::Ready { build } => {
                if build != BUILD {
                    self.tell(
                        NoticeLevel::Error,
                        texts().notice.versions_differ(),
                        format!("page {BUILD}, worker {build}"),
                    );
                }
                // A second "ready" comes from a worker that replaced a dead one: it knows no pending answers.
                if self.node.ready.get_untracked() {
                    self.break_off(texts().answer.worker_restarted());
                    if self.bench.progress.with_untracked(BenchProgress::is_busy) {
                        self.take_bench(BenchEvent::Failed(texts().notice.bench_interrupted().to_owned()));
                    }
                }
                self.node.ready.set(true);
            }
            ToPage::Hosting(keys) => self.keep_room_keys(keys),
            ToPage::TookOver(choice) => self.took_over(*choice),
            ToPage::SteppedDown { room, key } => self.stepped_down(&room, key),
            ToPage::Doors(doors) => self.keep_doors(*doors),
            ToPage::Status(status) => self.take_status(*status),
            ToPage::Answer { request, event } => self.take_answer(request, event),
            ToPage::Notice(notice) => self.show(notice, self.session.with_untracked(|session| session.place.is_some())),
            ToPage::Storage { models, used, quota, persistent } => {
                self.storage.set(Some(StorageReport { models, used, quota, persistent }));
            }
            ToPage::Trace(text) => self.node.tools.update_value(|calls| calls.answer_traces(&text)),
            ToPage::Bench(event) => self.take_bench(event),
        }
    }

    fn keep_room_keys(self, keys: RoomKeys) {
        let opened = self
            .room
            .opening
            .try_update(|opening| opening.as_mut().map(|opening| opening.choice.resume = Some(keys.clone())));
        if opened.flatten().is_none() {
            self.remember(|session| {
                if let Some(place) = &mut session.place {
                    place.keep_keys(keys, browser::now());
                }
            });
        }
    }

    fn keep_doors(self, doors: Doors) {
        let link = doors.link;
        self.room.opening.update(|opening| {
            if let Some(opening) = opening {
                opening.choice.doors = doors.clone();
            }
        });
        self.session.update(|session| {
            if let Some(place) = &mut session.place {
                place.keep_doors(doors, browser::now());
            }
        });
        let is_kept = self.session.with_untracked(browser::keep_session);
        // Nobody gets renewed keys while a reload, or a tab that opens the room later, would go back to the ones before.
        let goes_back = !is_kept && browser::load_session().place.is_some();
        let answer = move |is_found: bool| {
            let is_kept = is_found && !goes_back;
            self.send(if is_kept { ToNode::DoorsKept(link) } else { ToNode::DoorsLost(link) });
        };
        self.room.status.with_untracked(|status| self.keep_own_room_then(status, answer));
    }

    fn take_status(self, status: Status) {
        if let Some(room) = &status.room {
            let opened = self
                .room
                .opening
                .get_untracked()
                .filter(|opening| status.role.coordinator && opening.before.as_deref() != Some(room.id.as_str()));
            if let Some(Opening { choice, .. }) = opened {
                let lends = (choice.budget > 0).then_some(choice.budget);
                let (id, key, part) = (room.id.clone(), room.key.clone(), Part::Host(Box::new(choice)));
                let place = Place { room: id, key, part, lends, changed: browser::now() };
                let address = place.address();
                self.remember(|session| session.place = Some(place));
                self.hold_room(room.id.clone());
                self.room.opening.set(None);
                self.screen.dialog.set(None);
                browser::go(&address.path());
                self.screen.route.set(Route::Room(address));
            } else {
                self.learn_key(&room.id, room.key.as_deref());
            }
        }
        self.keep_own_room(&status);
        if let Connection::Closed { reason } = &status.connection {
            self.break_off(reason);
        }
        self.room.observe(status, browser::now());
    }

    /// Fails all unfinished answers.
    fn break_off(self, reason: &str) {
        self.node.tools.update_value(|calls| calls.give_up(reason));
        if self.chats.break_off(&AnswerState::Failed(reason.to_owned())) {
            self.save_soon();
        }
    }

    /// Stores the key that an admitted guest receives: the next reload needs no admission.
    fn learn_key(self, room: &str, key: Option<&str>) {
        let Some(key) = key else { return };
        let news = self.session.with_untracked(|session| {
            session.place.as_ref().is_some_and(|place| place.room == room && place.key.as_deref() != Some(key))
        });
        if news {
            let address = RoomAddress { id: room.to_owned(), key: Some(key.to_owned()) };
            self.remember(|session| {
                session.arrive_at(Route::Room(address.clone()));
                if let Some(place) = &mut session.place {
                    place.key = Some(key.to_owned());
                }
            });
            self.screen.route.set(Route::Room(address));
        }
    }

    /// Sends a message to the node.
    pub fn send(self, message: ToNode) {
        self.node.link.with_value(|link| link.send(message));
    }

    /// Changes what the tab remembers, and stores it immediately.
    pub fn remember(self, change: impl FnOnce(&mut Session)) {
        self.session.update(change);
        let _refused = self.session.with_untracked(browser::keep_session);
    }

    /// Changes the settings and stores them.
    pub fn set(self, change: impl FnOnce(&mut Settings)) {
        self.settings.update(change);
        let settings = self.settings.get_untracked();
        leptos::task::spawn_local(async move {
            // The settings apply to this visit even if the browser stores nothing.
            let _refused = browser::keep_settings(&settings).await;
        });
    }

    /// Shows a notice. Good news disappears by itself, and so does a warning of a condition that is over.
    fn show(self, notice: Notice, of_room: bool) {
        let condition = notice.condition.filter(|_| notice.level == NoticeLevel::Warning);
        let passing = notice.level == NoticeLevel::Info || condition.is_some();
        if notice.level == NoticeLevel::Error {
            self.room.opening.set(None);
        }
        let Some(id) = self.screen.notices.try_update(|notices| notices.show(notice, of_room)) else { return };
        if passing {
            self.let_pass(id, condition);
        }
    }

    /// Removes a notice after a while, but not before its condition is over.
    fn let_pass(self, id: u32, condition: Option<Condition>) {
        gloo_timers::callback::Timeout::new(PASS_EVERY, move || {
            let is_over =
                self.room.status.with_untracked(|status| condition.is_none_or(|condition| condition.is_over(status)));
            if is_over {
                self.screen.notices.update(|notices| notices.dismiss(id));
            } else if self.screen.notices.with_untracked(|notices| notices.is_shown(id)) {
                self.let_pass(id, condition);
            }
        })
        .forget();
    }

    /// An answer is no longer shown as plain text.
    pub fn draw_again(self, turn: &TurnId) {
        if self.screen.plain.with_untracked(|plain| plain.contains(turn)) {
            browser::forget_plain_answer(turn);
            self.screen.plain.update(|plain| {
                plain.remove(turn);
            });
        }
    }

    /// Shows a notice of the page's own.
    pub fn tell(self, level: NoticeLevel, sentence: impl Into<String>, details: impl Into<String>) {
        self.show(Notice { level, sentence: sentence.into(), details: details.into(), condition: None }, false);
    }

    /// Bytes to lend by default.
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

/// The place that the address bar names. Once the tab's session holds the key of a room's link, the address bar no longer shows it.
pub fn arrive(session: &mut Session) -> Route {
    let shown = browser::current_route();
    let has_key = matches!(&shown, Route::Room(address) if address.key.is_some());
    let route = session.arrive_at(shown);
    if let Route::Room(address) = &route {
        // Where nothing can be kept, the address is the only memory.
        if has_key && browser::keep_session(session) {
            browser::replace(&address.path());
        }
    }
    route
}

/// The page's state, available anywhere in the tree.
///
/// # Panics
/// Outside of the tree that `mount` created.
#[must_use]
pub fn store() -> Store {
    use_context::<Store>().expect("mount provides the store to the whole tree")
}
