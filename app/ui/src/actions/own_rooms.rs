//! Hosts this browser's own rooms on, in whichever tab, but in one at a time.

use leptos::prelude::*;
use potluck_panel::{NoticeLevel, Status, ToNode};
use potluck_text::texts;

use crate::{
    browser,
    route::Route,
    state::{Notices, OwnRoom, Part, Place, Store},
};

impl Store {
    /// Hosts one of this browser's rooms again, with the conversation that was open. Leaves the room this tab is in, unless
    /// another tab hosts or has ended the wanted one meanwhile. A room that this tab hosted stays this browser's.
    pub fn open_again(self, room: OwnRoom) {
        self.ask_to_persist();
        let is_elsewhere = move |id: &str| self.session.with_untracked(|session| session.is_elsewhere(id));
        let link = self.node.link.with_value(Clone::clone);
        leptos::task::spawn_local(async move {
            if self.own_rooms.was_stored(room.id()) && matches!(browser::stored_room(room.id()).await, Ok(None)) {
                self.own_rooms.remove(room.id());
                return self.tell(NoticeLevel::Info, texts().notice.room_ended(), "");
            }
            if !is_elsewhere(room.id()) {
                return self.host_on(room.place, room.conversation);
            }
            // Taking the wanted room's lock would release that of the hosted one, so the browser is asked first.
            let held = link.held_rooms().await;
            if held.iter().any(|id| id == room.id()) {
                self.own_rooms.found_elsewhere(held);
                return self.tell(NoticeLevel::Info, texts().notice.hosted_elsewhere(), "");
            }
            if is_elsewhere(room.id()) {
                self.give_up_place(None);
            }
            self.host_on(room.place, room.conversation);
        });
    }

    /// Ends one of this browser's rooms if somebody confirms it.
    pub fn ask_to_end_room(self, id: &str) {
        if browser::confirm(texts().leave.end_own()) {
            self.end_room(id);
        }
    }

    /// Ends one of this browser's rooms on purpose.
    fn end_room(self, id: &str) {
        self.own_rooms.remove(id);
        browser::forget_room(id);
    }

    /// Hosts a room again unless another tab does.
    pub(crate) fn host_on(self, place: Place, conversation: Option<String>) {
        let link = self.node.link.with_value(Clone::clone);
        leptos::task::spawn_local(async move {
            let may_host = link.hold_room(&place.room).await;
            // Nobody changes it now. Another tab may have hosted the room since this one learned of it.
            let stored = browser::stored_room(&place.room).await.ok().flatten();
            let place = place.or_newer(stored.map(|room| room.place));
            let went_elsewhere = self.session.with_untracked(|session| session.is_elsewhere(&place.room));
            match place.resume() {
                _ if went_elsewhere => link.release_room(),
                Some(choice) if may_host => {
                    self.take_seat(place);
                    if let Some(conversation) = conversation {
                        self.open_conversation(&conversation);
                    }
                    self.send(ToNode::Host(choice));
                }
                _ => self.give_way(&place),
            }
        });
    }

    /// This tab hosts a new room.
    pub(crate) fn hold_room(self, room: String) {
        let link = self.node.link.with_value(Clone::clone);
        leptos::task::spawn_local(async move {
            // Nobody else knows the room yet.
            let _held = link.hold_room(&room).await;
        });
    }

    /// The tab's place, and its address.
    fn take_seat(self, place: Place) {
        self.remember(|session| session.place = Some(place.clone()));
        self.go_to(&place);
    }

    /// Another tab hosts the room: this one may enter as a guest, and says so at the door.
    fn give_way(self, place: &Place) {
        self.remember(|session| session.place = None);
        self.own_rooms.found_elsewhere(vec![place.room.clone()]);
        self.go_to(place);
    }

    fn go_to(self, place: &Place) {
        let address = place.address();
        browser::go_unless_there(&address.path());
        self.screen.route.set(Route::Room(address));
    }

    /// Stores what hosts the room again after this tab is gone, once it changes.
    pub(crate) fn keep_own_room(self, status: &Status) {
        self.keep_own_room_then(status, |_| {});
    }

    /// The same, and then something else, with `false` if the database has an older record of the room instead.
    pub(crate) fn keep_own_room_then(self, status: &Status, then: impl FnOnce(bool) + 'static) {
        let place = self.session.with_untracked(|session| session.place.clone());
        let hosts = |place: &Place| {
            status.role.coordinator
                && status.room.as_ref().is_some_and(|room| room.id == place.room)
                && place.has_keys()
        };
        let Some(place) = place else { return then(true) };
        if !hosts(&place) {
            return then(!self.own_rooms.was_stored(&place.room));
        }
        let title = status.model.as_ref().map(|model| model.name.as_str());
        let conversation = self.chats.open.with_untracked(|open| Some(open.id.clone()));
        let Some(room) = self.own_rooms.renewed(&place, title, conversation, browser::now()) else {
            return then(true);
        };
        self.own_rooms.put(room.clone());
        leptos::task::spawn_local(async move {
            let is_written = browser::keep_room(&room).await.is_ok();
            then(self.own_rooms.wrote(room.id(), is_written));
        });
    }

    /// This tab gives its place up; a room that it hosts ends.
    pub(crate) fn end_place(self) {
        if let Some(room) = self.clear_place() {
            self.end_room(&room);
        }
    }

    /// This tab gives its place up. Returns the room that it hosted: it can be hosted again until it ends.
    pub(super) fn clear_place(self) -> Option<String> {
        let place = self.session.with_untracked(|session| session.place.clone());
        self.remember(|session| session.place = None);
        self.room.left();
        self.screen.notices.update(Notices::leave_room);
        self.screen.spoken.set(String::new());
        self.chats.refused.set(None);
        let hosted = place.filter(|place| matches!(place.part, Part::Host(_)))?;
        self.node.link.with_value(crate::link::NodeLink::release_room);
        Some(hosted.room)
    }
}
