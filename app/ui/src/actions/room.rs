//! Opens, enters and leaves rooms, and lends this device.

use leptos::prelude::*;
use potluck_panel::{
    BUILD, Connection, ContributeChoice, DeputyChoice, HostChoice, Leaving, NoticeLevel, PeerId, Sharing, ToNode,
};
use potluck_text::texts;

use crate::{
    browser,
    route::{RoomAddress, Route},
    state::{DialogKind, Opening, Part, Place, Store},
    table::failure,
};

impl Store {
    /// Introduces this tab to the node, and returns to the place it had before a reload.
    pub fn start(self) {
        let tab_key = self.session.with_untracked(|session| session.tab_key.clone());
        self.send(ToNode::Start {
            build: BUILD.to_owned(),
            relay: browser::home(),
            device_key: self.node.device_key.get_value(),
            tab_key: tab_key.unwrap_or_else(browser::key_seed),
            name: untrack(|| self.own_name()),
            kind: browser::device_kind(),
        });
        self.send(ToNode::AccessTokens(self.settings.with_untracked(|settings| settings.access_tokens.clone())));
        self.send(ToNode::DirectConnections(self.settings.with_untracked(|settings| settings.direct)));
        self.resume();
        // What was stashed before a reload.
        self.save_soon();
        self.keep_draft(self.chats.draft.get_untracked());
    }

    /// Enters this tab's room again, or hosts on the room of this browser, if the address names it.
    pub fn resume(self) {
        let Route::Room(address) = self.screen.route.get_untracked() else { return };
        let place = self.session.with_untracked(|session| session.place.clone());
        match place.filter(|place| place.room == address.id) {
            Some(place @ Place { part: Part::Host(_), .. }) => self.host_on(place, None),
            Some(place) => self.join(&place),
            None => {
                if let Some(room) = self.own_rooms.get(&address.id) {
                    self.host_on(room.place, room.conversation);
                }
            }
        }
    }

    /// The address has changed: if this tab is in no room, it does what a reload at this address would do.
    pub fn follow_route(self, route: Route) {
        let has_link = self.takes_link(&route);
        self.screen.route.set(route);
        if has_link || self.room.status.with_untracked(|status| status.connection == Connection::Idle) {
            self.resume();
        }
    }

    /// The room did not let this tab in, and another link to it was opened: that one counts from now on.
    fn takes_link(self, route: &Route) -> bool {
        let Route::Room(RoomAddress { id, key: Some(key) }) = route else { return false };
        let is_closed =
            self.room.status.with_untracked(|status| matches!(status.connection, Connection::Closed { .. }));
        let is_news = is_closed
            && self.session.with_untracked(|session| {
                session.place.as_ref().is_some_and(|place| {
                    place.part == Part::Guest && place.room == *id && place.key.as_ref() != Some(key)
                })
            });
        if is_news {
            self.remember(|session| {
                if let Some(place) = &mut session.place {
                    place.key = Some(key.clone());
                }
            });
        }
        is_news
    }

    fn join(self, place: &Place) {
        self.send(ToNode::Join { room: place.room.clone(), key: place.key.clone() });
        if let Some(budget) = place.lends {
            self.send(ToNode::Contribute(ContributeChoice { budget }));
        }
    }

    /// Opens a room.
    pub fn host(self, choice: HostChoice, file: Option<web_sys::File>) {
        self.ask_to_persist();
        self.give_up_place(None);
        let before = self.room.status.with_untracked(|status| status.room.as_ref().map(|room| room.id.clone()));
        self.room.opening.set(Some(Opening { choice: choice.clone(), before }));
        self.node.link.with_value(|link| link.send_with_file(ToNode::Host(choice), file));
    }

    /// Enters a room to lend `lends` bytes, or only to chat.
    pub fn enter(self, address: RoomAddress, lends: Option<u64>) {
        let lends = lends.filter(|_| untrack(|| self.can_lend()));
        if lends.is_some() {
            self.ask_to_persist();
        }
        self.give_up_place(Some(&address.id));
        let place =
            Place { room: address.id.clone(), key: address.key.clone(), part: Part::Guest, lends, changed: 0.0 };
        self.join(&place);
        self.remember(|session| {
            // The key of a pasted link is not in the address bar, but the back button needs it.
            session.arrive_at(Route::Room(address.clone()));
            session.place = Some(place);
        });
        self.screen.dialog.set(None);
        browser::go_unless_there(&address.path());
        self.screen.route.set(Route::Room(address));
    }

    /// A tab has a place at one table only: leaves the current one unless it is the wanted one. A room that this tab hosts
    /// can be opened again, if it ever had a model.
    pub(super) fn give_up_place(self, wanted: Option<&str>) {
        let other = self
            .session
            .with_untracked(|session| session.place.as_ref().is_some_and(|place| Some(place.room.as_str()) != wanted));
        if other && self.never_had_a_model() {
            self.send(ToNode::Leave(Leaving::ForGood));
            self.end_place();
        } else if other {
            self.room.status.with_untracked(|status| self.keep_own_room(status));
            self.send(ToNode::Leave(Leaving::ForNow));
            self.clear_place();
        }
    }

    /// Lends this device, or changes the amount.
    pub fn contribute(self, budget: u64) {
        self.ask_to_persist();
        self.set(|settings| settings.lend = Some(budget));
        self.remember(|session| {
            if let Some(place) = &mut session.place {
                place.lends = Some(budget);
            }
        });
        self.send(ToNode::Contribute(ContributeChoice { budget }));
    }

    /// Stops lending but stays in the room.
    pub fn stop_contributing(self) {
        self.remember(|session| {
            if let Some(place) = &mut session.place {
                place.lends = None;
            }
        });
        self.send(ToNode::StopContributing);
    }

    /// Leaves the room and returns to the door. A room that this tab hosts ends.
    pub fn leave(self) {
        self.send(ToNode::Leave(Leaving::ForGood));
        self.end_place();
        self.go_to_door();
    }

    /// Leaves a room that is closed to this tab. If this tab hosted it, it is still this browser's.
    pub fn go_to_front(self) {
        if self.hosts() { self.close_room() } else { self.leave() }
    }

    /// Leaves the room that this tab hosts, so that this browser can open it again within a day.
    pub fn close_room(self) {
        self.room.status.with_untracked(|status| self.keep_own_room(status));
        self.send(ToNode::Leave(Leaving::ForNow));
        self.clear_place();
        self.go_to_door();
    }

    /// The room that this tab hosts has no model, and never had one: nobody loses anything by its end.
    #[must_use]
    pub fn never_had_a_model(self) -> bool {
        let had_one = self.session.with_untracked(|session| {
            let own = session.place.as_ref().and_then(|place| self.own_rooms.get(&place.room));
            own.is_some_and(|room| !room.title.is_empty())
        });
        !had_one && self.room.status.with_untracked(|status| failure(status).is_some())
    }

    /// Leaves the room: its host is asked what becomes of it, if that matters to anybody.
    pub fn ask_to_leave(self) {
        if self.hosts() && !self.never_had_a_model() {
            self.screen.dialog.set(Some(DialogKind::Leave));
        } else {
            self.leave();
        }
    }

    fn go_to_door(self) {
        browser::go("/");
        self.screen.route.set(Route::Door);
    }

    /// This tab hosts its room.
    #[must_use]
    pub fn hosts(self) -> bool {
        self.session.with_untracked(|session| session.place.as_ref().is_some_and(|place| place.part != Part::Guest))
    }

    /// This device has a GPU to lend, as far as the browser has said.
    #[must_use]
    pub fn can_lend(self) -> bool {
        self.room.status.with(|status| status.device.trouble.is_none())
    }

    /// Changes how the work of the room that this tab hosts is shared, and keeps it for when the room is hosted again.
    pub fn set_sharing(self, sharing: Sharing) {
        self.remember(|session| {
            if let Some(place) = &mut session.place {
                place.keep_sharing(sharing, browser::now());
            }
        });
        self.room.status.with_untracked(|status| self.keep_own_room(status));
        self.send(ToNode::SetSharing(sharing));
    }

    /// Changes who hosts the room if this device leaves, and keeps it for when the room is hosted again.
    pub fn set_deputy(self, deputy: DeputyChoice) {
        self.remember(|session| {
            if let Some(place) = &mut session.place {
                place.keep_deputy(deputy, browser::now());
            }
        });
        self.room.status.with_untracked(|status| self.keep_own_room(status));
        self.send(ToNode::SetDeputy(deputy));
    }

    /// This tab hosts its room from now on: it was the deputy, and the host is gone.
    pub(crate) fn took_over(self, choice: HostChoice) {
        self.tell(NoticeLevel::Info, texts().deputy.took_over(), "");
        let room = self.session.with_untracked(|session| session.place.as_ref().map(|place| place.room.clone()));
        self.remember(|session| {
            if let Some(place) = &mut session.place {
                (place.part, place.changed) = (Part::Host(Box::new(choice)), browser::now());
            }
        });
        if let Some(room) = room {
            self.hold_room(room);
        }
    }

    /// Another device hosts the room of this tab.
    pub(crate) fn stepped_down(self, room: &str, key: Option<String>) {
        self.remember(|session| {
            if let Some(place) = session.place.as_mut().filter(|place| place.room == room) {
                (place.part, place.key) = (Part::Guest, key);
            }
        });
        self.node.link.with_value(|link| link.release_room());
    }

    /// Admits or rejects a peer.
    pub fn admit(self, peer: PeerId, allow: bool) {
        self.send(ToNode::Admit { peer, allow });
    }

    /// Renames this device.
    pub fn rename(self, name: &str) {
        let name: String = name.trim().chars().take(40).collect();
        self.set(|settings| settings.name = (!name.is_empty()).then_some(name));
        self.send(ToNode::Rename(untrack(|| self.own_name())));
    }

    /// Bytes that this tab lends now.
    #[must_use]
    pub fn lends(self) -> Option<u64> {
        self.session.with(|session| session.place.as_ref().and_then(|place| place.lends))
    }

    pub(crate) fn ask_to_persist(self) {
        let link = self.node.link.with_value(Clone::clone);
        leptos::task::spawn_local(async move {
            // If refused, the browser may evict the pieces when storage runs low; the settings show it.
            let _granted = link.persist().await;
        });
    }
}
