//! The rooms that this browser hosts or hosted: a room outlives its tab.

use std::collections::BTreeSet;

use leptos::prelude::*;
use serde::{Deserialize, Serialize};

use super::Place;

/// A room whose host is away for longer is forgotten.
const KEPT_MILLIS: f64 = 24.0 * 3_600_000.0;
/// The record of a room that is hosted is renewed this often.
const RENEWED_MILLIS: f64 = 600_000.0;

/// What it takes to host a room again, in any tab of this browser.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OwnRoom {
    /// The host's place: the room's keys, its model and how it was opened.
    pub place: Place,
    /// The model's name; empty until it was opened.
    pub title: String,
    /// The conversation that was open.
    pub conversation: Option<String>,
    /// When the room was last hosted here, milliseconds since 1970.
    pub hosted: f64,
}

impl OwnRoom {
    /// The room's id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.place.room
    }

    /// Hosted lately enough to host it on. A clock that was set back counts as no time at all.
    fn is_kept(&self, now: f64) -> bool {
        now - self.hosted < KEPT_MILLIS
    }

    /// The record should say that the room is hosted.
    fn is_due(&self, now: f64) -> bool {
        now - self.hosted > RENEWED_MILLIS
    }
}

/// This browser's rooms. Copies are handles to the same ones.
#[derive(Clone, Copy)]
pub struct OwnRooms {
    rooms: RwSignal<Vec<OwnRoom>>,
    /// Those that the database has or had.
    stored: StoredValue<BTreeSet<String>>,
    /// Rooms that other tabs hosted when this one last looked.
    elsewhere: RwSignal<Vec<String>>,
}

impl OwnRooms {
    /// The stored rooms; returns also the ids of those whose time is over.
    pub fn restore(stored: Vec<OwnRoom>, now: f64) -> (Self, Vec<String>) {
        let (mut kept, over): (Vec<_>, Vec<_>) = stored.into_iter().partition(|room| room.is_kept(now));
        kept.sort_by(|a, b| b.hosted.total_cmp(&a.hosted));
        let over = over.into_iter().map(|room| room.place.room).collect();
        let stored = StoredValue::new(kept.iter().map(|room| room.place.room.clone()).collect());
        (Self { rooms: RwSignal::new(kept), stored, elsewhere: RwSignal::new(Vec::new()) }, over)
    }

    /// The room's record was written to the database, or could not be. True unless a tab that opens the room from this browser's list
    /// later finds an older record of it. One that is not there at all ends with its tab.
    pub fn wrote(self, id: &str, is_written: bool) -> bool {
        if is_written {
            self.stored.update_value(|stored| {
                stored.insert(id.to_owned());
            });
        }
        is_written || !self.was_stored(id)
    }

    /// The database had this room at some time.
    pub fn was_stored(self, id: &str) -> bool {
        self.stored.with_value(|stored| stored.contains(id))
    }

    /// The rooms that no tab hosts now, newest first.
    pub fn free(self) -> Vec<OwnRoom> {
        let elsewhere = self.elsewhere.get();
        self.rooms.get().into_iter().filter(|room| !elsewhere.iter().any(|id| id == room.id())).collect()
    }

    /// The room with this id.
    pub fn get(self, id: &str) -> Option<OwnRoom> {
        self.rooms.with_untracked(|rooms| rooms.iter().find(|room| room.id() == id).cloned())
    }

    /// Another tab hosts this room.
    pub fn is_elsewhere(self, id: &str) -> bool {
        self.elsewhere.with(|elsewhere| elsewhere.iter().any(|room| room == id))
    }

    /// The rooms that tabs host, as the browser says.
    pub fn found_elsewhere(self, ids: Vec<String>) {
        self.elsewhere.set(ids);
    }

    /// Adds a room or changes it.
    pub fn put(self, room: OwnRoom) {
        self.rooms.update(|rooms| {
            rooms.retain(|known| known.id() != room.id());
            rooms.insert(0, room);
        });
    }

    /// Forgets a room.
    pub fn remove(self, id: &str) {
        self.rooms.update(|rooms| rooms.retain(|room| room.id() != id));
    }

    /// The room's record, if what is known of it changed or it should say that the room is still hosted.
    pub fn renewed(
        self,
        place: &Place,
        title: Option<&str>,
        conversation: Option<String>,
        now: f64,
    ) -> Option<OwnRoom> {
        let before = self.get(&place.room);
        let known = before.as_ref().map(|room| room.title.clone()).unwrap_or_default();
        let title = title.map_or(known, str::to_owned);
        let room = OwnRoom { place: place.clone(), title, conversation, hosted: now };
        let is_same = |before: &OwnRoom| OwnRoom { hosted: now, ..before.clone() } == room && !before.is_due(now);
        (!before.as_ref().is_some_and(is_same)).then_some(room)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::Part;

    fn room(id: &str, hosted: f64) -> OwnRoom {
        let place = Place { room: id.into(), key: None, part: Part::Guest, lends: None, changed: 0.0 };
        OwnRoom { place, title: String::new(), conversation: None, hosted }
    }

    #[test]
    fn a_room_is_kept_for_a_day_after_it_was_last_hosted() {
        let owner = Owner::new();
        owner.with(|| {
            let (rooms, over) = OwnRooms::restore(vec![room("old", 0.0), room("new", 1.0)], KEPT_MILLIS);
            assert_eq!(over, ["old"]);
            assert!(rooms.get("new").is_some() && rooms.get("old").is_none());
        });
    }

    #[test]
    fn rooms_that_another_tab_hosts_are_not_offered() {
        let owner = Owner::new();
        owner.with(|| {
            let (rooms, _) = OwnRooms::restore(vec![room("a", 1.0), room("b", 2.0)], 3.0);
            assert_eq!(rooms.free().iter().map(OwnRoom::id).collect::<Vec<_>>(), ["b", "a"], "newest first");
            rooms.found_elsewhere(vec!["b".into()]);
            assert_eq!(rooms.free().iter().map(OwnRoom::id).collect::<Vec<_>>(), ["a"]);
            assert!(rooms.is_elsewhere("b"));
        });
    }

    /// Renewed keys were given out although the database kept the ones before: opened again, the room had the leaked link.
    #[test]
    fn an_older_record_in_the_database_is_not_taken_for_the_room_as_it_is_now() {
        let owner = Owner::new();
        owner.with(|| {
            let (rooms, _) = OwnRooms::restore(vec![room("a", 1.0)], 2.0);
            assert!(!rooms.wrote("a", false), "the record from before is there");
            assert!(rooms.wrote("b", false), "a room that was never stored has none");
            assert!(rooms.wrote("b", true) && !rooms.wrote("b", false), "from then on it has one");
        });
    }

    #[test]
    fn a_record_is_written_when_something_changed_and_now_and_then() {
        let owner = Owner::new();
        owner.with(|| {
            let (rooms, _) = OwnRooms::restore(Vec::new(), 0.0);
            let place = room("a", 0.0).place;
            let first = rooms.renewed(&place, None, None, 5.0).unwrap_or_else(|| panic!("a new room is written"));
            rooms.put(first);
            assert_eq!(rooms.renewed(&place, None, None, 6.0), None, "nothing changed");
            assert!(rooms.renewed(&place, Some("Model"), None, 6.0).is_some(), "its title is known");
            assert!(rooms.renewed(&place, None, None, 6.0 + RENEWED_MILLIS).is_some(), "it is still hosted");
        });
    }
}
