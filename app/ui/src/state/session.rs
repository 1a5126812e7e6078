//! What a tab remembers across a reload: its identity and its place at a table.

use potluck_panel::{DeputyChoice, Doors, HostChoice, KeySeed, RoomKeys, Sharing};
use serde::{Deserialize, Serialize};

use super::{AnswerSettings, Waiting};
use crate::route::{RoomAddress, Route};

/// How many rooms' keys a tab remembers.
const KEPT_LINKS: usize = 8;

/// Stored in the tab's session storage.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// The tab's key, which decides its peer id; `None` before the first visit.
    #[serde(default)]
    pub tab_key: Option<KeySeed>,
    /// The next request's number, unique for the lifetime of the tab.
    pub next_request: u32,
    /// The conversation that is open.
    pub conversation: Option<String>,
    /// The place at a table.
    pub place: Option<Place>,
    /// The links that were opened in this tab, newest first: the address bar does not show their keys.
    #[serde(default)]
    pub links: Vec<RoomAddress>,
    /// Questions that wait for the answer before them.
    #[serde(default)]
    pub waiting: Waiting,
    /// The settings of the open conversation while it has no question: it is not stored until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_answers: Option<AnswerSettings>,
}

impl Session {
    /// The place that an address names. Keeps the key of a room's link; an address without a key, as after a reload or the back
    /// button, names the room with the key that this tab has for it.
    pub fn arrive_at(&mut self, route: Route) -> Route {
        let Route::Room(address) = route else { return route };
        if address.key.is_some() {
            self.links.retain(|known| known.id != address.id);
            self.links.insert(0, address.clone());
            self.links.truncate(KEPT_LINKS);
            return Route::Room(address);
        }
        let place = self.place.as_ref().map(Place::address);
        let known = place.iter().chain(&self.links).find(|known| known.id == address.id && known.key.is_some());
        Route::Room(known.cloned().unwrap_or(address))
    }

    /// This tab has a place, but not that of the host of this room.
    #[must_use]
    pub fn is_elsewhere(&self, room: &str) -> bool {
        self.place.as_ref().is_some_and(|place| place.room != room || place.part == Part::Guest)
    }
}

/// A place at a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// The room's id.
    pub room: String,
    /// Its key, if this tab has it.
    pub key: Option<String>,
    /// This tab's role there.
    pub part: Part,
    /// Bytes that this tab lends, if any.
    pub lends: Option<u64>,
    /// When what hosts the room again changed last, milliseconds since 1970.
    #[serde(default)]
    pub changed: f64,
}

/// A tab's role in a room.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Part {
    /// It opened the room.
    Host(Box<HostChoice>),
    /// It came by a link or from the list.
    Guest,
}

impl Place {
    /// The address to return to.
    #[must_use]
    pub fn address(&self) -> RoomAddress {
        RoomAddress { id: self.room.clone(), key: self.key.clone() }
    }

    /// The choice that reopens the same room.
    #[must_use]
    pub fn resume(&self) -> Option<HostChoice> {
        let Part::Host(choice) = &self.part else { return None };
        Some(HostChoice { budget: self.lends.unwrap_or(0), ..(**choice).clone() })
    }

    /// What another tab of this browser has stored for the same room, if it hosted the room later.
    #[must_use]
    pub fn or_newer(self, stored: Option<Self>) -> Self {
        stored.filter(|stored| stored.changed > self.changed).unwrap_or(self)
    }

    /// Keeps who may come into the room that this tab hosts.
    pub fn keep_doors(&mut self, doors: Doors, now: f64) {
        if let Part::Host(choice) = &mut self.part {
            choice.doors = doors;
            self.changed = now;
        }
    }

    /// Keeps how the work of the room that this tab hosts is shared.
    pub fn keep_sharing(&mut self, sharing: Sharing, now: f64) {
        if let Part::Host(choice) = &mut self.part {
            choice.sharing = sharing;
            self.changed = now;
        }
    }

    /// Keeps who hosts the room if this tab is lost.
    pub fn keep_deputy(&mut self, deputy: DeputyChoice, now: f64) {
        if let Part::Host(choice) = &mut self.part {
            choice.deputy = deputy;
            self.changed = now;
        }
    }

    /// Who hosts the room if this tab is lost; `None` where another one hosts.
    #[must_use]
    pub fn deputy(&self) -> Option<DeputyChoice> {
        match &self.part {
            Part::Host(choice) => Some(choice.deputy),
            Part::Guest => None,
        }
    }

    /// It can be hosted again.
    #[must_use]
    pub fn has_keys(&self) -> bool {
        matches!(&self.part, Part::Host(choice) if choice.resume.is_some())
    }

    /// Keeps the keys of the room that this tab hosts.
    pub fn keep_keys(&mut self, keys: RoomKeys, now: f64) {
        if let Part::Host(choice) = &mut self.part {
            choice.resume = Some(keys);
            self.changed = now;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use potluck_panel::ModelSource;

    fn choice() -> HostChoice {
        HostChoice {
            model: ModelSource::Relay { name: "tiny".into() },
            budget: 1,
            context: 4096,
            cache: None,
            arithmetic: Default::default(),
            sharing: Sharing::Everyone,
            ends: Default::default(),
            visible: true,
            resume: None,
            doors: Default::default(),
            protect: false,
            guesser: Default::default(),
            pooling: Default::default(),
            deputy: Default::default(),
            term: Default::default(),
        }
    }

    fn place(part: Part) -> Place {
        Place { room: "room".into(), key: Some("key".into()), part, lends: Some(7), changed: 1.0 }
    }

    fn at(id: &str, key: Option<&str>) -> Route {
        Route::Room(RoomAddress { id: id.into(), key: key.map(str::to_owned) })
    }

    #[test]
    fn a_reload_knows_the_key_that_the_address_bar_does_not_show() {
        let mut session = Session::default();
        assert_eq!(session.arrive_at(at("room", None)), at("room", None), "nobody gave this tab a link");
        assert_eq!(session.arrive_at(at("room", Some("key"))), at("room", Some("key")));
        let mut reloaded: Session = serde_json::from_str(&serde_json::to_string(&session).unwrap()).unwrap();
        assert_eq!(reloaded.arrive_at(at("room", None)), at("room", Some("key")));
        assert_eq!(reloaded.arrive_at(at("other", None)), at("other", None));
        assert_eq!(reloaded.arrive_at(at("room", Some("newer"))), at("room", Some("newer")));
        assert_eq!(reloaded.arrive_at(at("room", None)), at("room", Some("newer")), "the link that was opened last");
        assert_eq!(reloaded.arrive_at(Route::Door), Route::Door);
    }

    #[test]
    fn a_tab_with_a_place_comes_back_with_the_key_of_its_place_and_remembers_few_links() {
        let mut session = Session { place: Some(place(Part::Guest)), ..Session::default() };
        assert_eq!(session.arrive_at(at("room", None)), at("room", Some("key")));
        for n in 0..100 {
            session.arrive_at(at(&format!("room{n}"), Some("k")));
        }
        assert_eq!(session.links.len(), KEPT_LINKS);
        assert_eq!(session.arrive_at(at("room99", None)), at("room99", Some("k")));
        assert!(serde_json::from_str::<Session>(r#"{"next_request":1,"conversation":null,"place":null}"#).is_ok());
    }

    #[test]
    fn a_tab_is_elsewhere_unless_it_hosts_the_room_or_has_no_place() {
        let at = |place| Session { place, ..Session::default() };
        assert!(!at(None).is_elsewhere("room"));
        assert!(!at(Some(place(Part::Host(Box::new(choice()))))).is_elsewhere("room"));
        assert!(at(Some(place(Part::Host(Box::new(choice()))))).is_elsewhere("other"));
        assert!(at(Some(place(Part::Guest))).is_elsewhere("room"));
    }

    #[test]
    fn a_host_comes_back_to_its_own_room_with_what_it_lends_and_shares_now() {
        let mut place = place(Part::Host(Box::new(choice())));
        let keys = RoomKeys { owner: KeySeed([1; 32]), secret: "key".into() };
        place.keep_keys(keys.clone(), 2.0);
        place.keep_sharing(Sharing::Fastest, 3.0);
        let again = place.resume().unwrap();
        assert_eq!(again.resume, Some(keys));
        assert_eq!((again.budget, again.context, again.sharing), (7, 4096, Sharing::Fastest));
        assert_eq!(Place { part: Part::Guest, ..place }.resume(), None);
    }

    #[test]
    fn a_room_that_another_tab_hosted_since_is_hosted_on_as_it_left_it() {
        let mine = place(Part::Host(Box::new(choice())));
        let mut theirs = mine.clone();
        let banned = Doors { generation: 1, ..Doors::default() };
        theirs.keep_doors(banned.clone(), 2.0);
        let doors = |place: &Place| place.resume().unwrap().doors;
        assert_eq!(doors(&mine.clone().or_newer(Some(theirs.clone()))), banned, "the ban stays");
        assert_eq!(doors(&theirs.or_newer(Some(mine.clone()))), banned);
        assert_eq!(mine.clone().or_newer(None), mine);
    }
}
