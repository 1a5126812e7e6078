//! The page's addresses, in the relay's folder: `/` is the door, `/r/ID` a room, `/chats` the conversations, `/bench` the bench. A room's
//! link is `/r/ID#KEY`; its key leaves the address bar as soon as it is read.

use serde::{Deserialize, Serialize};

/// The place that the address bar names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// The door.
    Door,
    /// A room, opened by its link.
    Room(RoomAddress),
    /// The conversations, to be read.
    Chats,
    /// The bench.
    Bench,
}

/// A room's id, and its key from the link's fragment. The browser never sends the fragment to the relay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoomAddress {
    /// The room's id on the relay.
    pub id: String,
    /// The key that admits a guest without asking the host.
    pub key: Option<String>,
}

impl RoomAddress {
    /// The link is an invite to chat. What its holder may do the host decides; this only spares them a button.
    #[must_use]
    pub fn is_for_chat(&self) -> bool {
        self.key.as_ref().is_some_and(|key| key.starts_with("chat."))
    }

    /// What the address bar shows: `/r/ID`. Never the key, which would then reach the history, its copies on other devices, and
    /// anybody who looks at the screen.
    #[must_use]
    pub fn path(&self) -> String {
        format!("/r/{}", self.id)
    }
}

impl Route {
    /// Parses a path and a fragment, with or without its `#`.
    #[must_use]
    pub fn parse(path: &str, fragment: &str) -> Self {
        match path.trim_end_matches('/') {
            "/bench" => return Self::Bench,
            "/chats" => return Self::Chats,
            _ => {}
        }
        let Some(id) = path.strip_prefix("/r/").map(|rest| rest.trim_end_matches('/')) else { return Self::Door };
        if !is_room_id(id) {
            return Self::Door;
        }
        // Native peers also read the fingerprint of the relay, which may follow.
        let key = fragment.split('&').next().unwrap_or_default();
        let key = key.trim_matches(|letter: char| letter == '#' || letter.is_whitespace());
        Self::Room(RoomAddress { id: id.to_owned(), key: (!key.is_empty()).then(|| key.to_owned()) })
    }

    /// Parses pasted text: a whole link, its path, or just the room's id.
    #[must_use]
    pub fn parse_link(text: &str) -> Option<RoomAddress> {
        let text = text.trim();
        if is_room_id(text) {
            return Some(RoomAddress { id: text.to_owned(), key: None });
        }
        let (address, fragment) = text.split_once('#').unwrap_or((text, ""));
        let path = &address[address.rfind("/r/")?..];
        match Self::parse(path.split('?').next().unwrap_or(path), fragment) {
            Self::Room(room) => Some(room),
            Self::Door | Self::Chats | Self::Bench => None,
        }
    }
}

/// The relay's rule for room ids.
fn is_room_id(text: &str) -> bool {
    (4..=64).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn a_room_link_reads_back() {
        let room = RoomAddress { id: "k3v9abcd".into(), key: Some("Zm9v_-x".into()) };
        assert_eq!(Route::parse("/r/k3v9abcd", "#Zm9v_-x"), Route::Room(room.clone()));
        assert_eq!(room.path(), "/r/k3v9abcd", "the address bar shows no key");
    }

    #[test]
    fn the_bench_and_the_conversations_have_addresses() {
        assert_eq!(Route::parse("/bench", ""), Route::Bench);
        assert_eq!(Route::parse("/bench/", "#x"), Route::Bench);
        assert_eq!(Route::parse("/benches", ""), Route::Door);
        assert_eq!(Route::parse("/chats", ""), Route::Chats);
    }

    #[test]
    fn anything_else_is_the_door() {
        for path in ["/", "", "/r/", "/r/UPPER", "/r/a/b", "/other"] {
            assert_eq!(Route::parse(path, ""), Route::Door, "{path}");
        }
    }

    #[test]
    fn pasted_links_are_forgiving() {
        let room = Route::parse_link("  https://192.168.1.5:8787/r/k3v9abcd#key ").unwrap();
        assert_eq!((room.id.as_str(), room.key.as_deref()), ("k3v9abcd", Some("key")));
        assert_eq!(Route::parse_link("k3v9abcd").unwrap().key, None);
        assert_eq!(Route::parse_link("https://example.org/r/k3v9abcd?x=1#k").unwrap().key.as_deref(), Some("k"));
        assert_eq!(
            Route::parse_link("/r/k3v9abcd# #k\u{c}&fp=1").unwrap().key.as_deref(),
            Some("k"),
            "found by the fuzzer"
        );
        assert_eq!(
            Route::parse_link("https://a.example/r/potluck/r/k3v9abcd#k").unwrap().id,
            "k3v9abcd",
            "in a folder"
        );
        assert_eq!(Route::parse_link("hello there"), None);
    }
}
