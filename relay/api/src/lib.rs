//! The relay's API, shared by the relay, the node and the page. Types only: no I/O, and it compiles to WebAssembly.
//!
//! - [`Route`] and [`EVERYONE`]: the four bytes in front of every binary message.
//! - [`Control`] and [`Request`]: JSON text messages over `WS /rooms/ID`.
//! - [`Refusal`], [`Eviction`], [`Departure`], [`BadFrame`]: reasons, with close codes and sentences.
//! - [`http`]: JSON bodies of the HTTP endpoints. [`path`]: their paths.
//!
//! # A connection to a room
//!
//! 1. A member opens the WebSocket. The relay answers with [`Control::Welcome`]: the member's route, the routes of the
//!    others, and the limits. The others get [`Control::Join`]. To refuse a member the relay still accepts the socket,
//!    sends [`Control::Refused`] and closes, because a browser hides the details of a failed handshake from the page.
//! 2. **Binary messages** are frames between members. They start with a route: the receiver's (or [`EVERYONE`]) on the
//!    way to the relay, the sender's on the way from it. The relay overwrites these four bytes and forwards the message
//!    at once. It never reads the rest.
//! 3. **Text messages** are JSON between one member and the relay: [`Control`] from it, [`Request`] to it.
//! 4. When a member leaves, for whatever reason, the others get [`Control::Leave`]. Order is kept between any two
//!    members: `join` arrives before a member's first frame and `leave` after its last.
//! 5. Before the relay stops it sends [`Control::Shutdown`]. Members reconnect with `?create=1`, which recreates the room
//!    under its old id.
//!
//! Routes count up from a random start and are never reused, so a frame for a member that left cannot reach another one,
//! not even across a restart of the relay. A member that reconnects gets a new route; members identify each other inside
//! their frames.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod http;
mod message;
pub mod path;
mod reason;
mod route;

pub use message::{Control, MemberLimits, Request, VERSION};
pub use reason::{BadFrame, Departure, Eviction, Refusal};
pub use route::{EVERYONE, ROUTE_BYTES, Route};
