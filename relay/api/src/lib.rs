//! The relay's API, shared by the relay, the node and the page. Types only: no I/O, and it compiles to WebAssembly.
//!
//! - [`Route`]: the four bytes in front of every binary message.
//! - [`Control`] and [`Request`]: JSON text messages over `WS /rooms/ID`.
//! - [`EntryProof`], [`room_id`], [`entry_message`]: who may enter a room, and how it is proved.
//! - [`Refusal`], [`Eviction`], [`Departure`], [`BadFrame`]: reasons, with close codes and sentences.
//! - [`http`]: JSON bodies of the HTTP endpoints. [`path`]: their paths.
//!
//! # A connection to a room
//!
//! 1. A device opens the WebSocket. The relay sends [`Control::Challenge`]; the device answers with [`Request::Enter`].
//!    Then it is a member and gets [`Control::Welcome`]: its route, the routes of the others, and the limits. The others
//!    get [`Control::Join`]. To refuse a device the relay sends [`Control::Refused`] and closes; it accepts the socket
//!    first, because a browser hides the details of a failed handshake from the page.
//! 2. **Binary messages** are frames between members. They start with a route: the receiver's on the way to the relay, the
//!    sender's on the way from it. The relay overwrites these four bytes and forwards the message at once. It never reads
//!    the rest. A slow receiver slows its sender: only [`MemberLimits::window_bytes`] may be on the way to one receiver,
//!    and [`Control::Taken`] reports what it took. A message to [`Route::PARTS`] carries several, each with a receiver of
//!    its own ([`join_parts`]); they arrive one by one.
//! 3. **Text messages** are JSON between one member and the relay: [`Control`] from it, [`Request`] to it.
//!    The owner says who has been let in ([`Request::LetIn`]): until then visitors may send only to the owner, and little.
//! 4. When a member leaves, for whatever reason, the others get [`Control::Leave`]. Order is kept between any two
//!    members: `join` arrives before a member's first frame and `leave` after its last.
//! 5. Before the relay stops it sends [`Control::Shutdown`]. Members reconnect; the owner's entry creates the room again
//!    under its old id.
//!
//! Routes count up from a random start and are never reused, so a frame for a member that left cannot reach another one,
//! not even across a restart of the relay. A member that reconnects gets a new route; members identify each other inside
//! their frames.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod base;
mod binary;
mod entry;
pub mod http;
mod message;
mod parts;
pub mod path;
mod reason;
mod route;

pub use binary::{Binary, Nonce, PublicKey, Signature};
pub use entry::{
    DoorCertificate, EntryProof, ROOM_ID_CHARS, SignedEntry, TERMS_LEN, Term, Terms, door_message, entry_message,
    nonce_at, room_id,
};
pub use message::{Control, MAX_EARLIER_LINKS, MAX_REVOKED, MemberLimits, Request, VERSION};
pub use parts::{MAX_PARTS, join_parts, split_parts};
pub use reason::{BadFrame, Departure, Eviction, LINK_RENEWED, Refusal};
pub use route::{ROUTE_BYTES, Route};
