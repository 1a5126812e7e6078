//! What the connection to a room reports.

use potluck_protocol::FrameError;

use super::intake::Ticket;

/// The state of the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineState {
    /// Connecting for the first time.
    Connecting,
    /// In the room.
    Connected,
    /// Lost; connecting again.
    Reconnecting {
        /// Which attempt, from 1.
        attempt: u32,
        /// Why the last one failed: "connection refused".
        cause: String,
    },
    /// The relay answers requests, but no socket opens; connecting again.
    SocketsRefused {
        /// Which attempt, from 1.
        attempt: u32,
    },
    /// Closed for good, with a sentence that says why.
    Closed(String),
}

/// What the connection reports.
#[allow(clippy::large_enum_variant, reason = "nearly every event is of a member, and each is handed on at once")]
pub enum Event {
    /// An event for the state machine: of the connection itself, or of an authenticated member.
    Member(potluck_swarm::Event),
    /// A frame of an authenticated member, and its place among those that wait.
    Frame(potluck_swarm::Event, Ticket),
    /// The connection to the relay changed.
    Line(LineState),
    /// A frame could not be decoded, with its place; without a place, the host uses another version, which is reported once.
    BadFrame(FrameError, Option<Ticket>),
    /// A sentence for the page.
    Notice(String),
    /// A session has other words.
    WordsChanged,
    /// The host renewed the link of this room; `key` is the new one's.
    LinkRenewed {
        /// The room's id.
        room: String,
        /// The key.
        key: String,
    },
}
