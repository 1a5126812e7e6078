//! An HTTP API for programs: editors, agents and libraries that expect OpenAI's or Anthropic's API ask the model of a room, or of this
//! machine.
//!
//! [`Server::open`] listens in a thread of its own. It sends [`Order`]s to the program that started it, which tells
//! it the [`RoomState`].
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod access;
mod answer;
mod api;
mod body;
mod connections;
mod conversations;
mod error;
mod fields;
mod meter;
mod question;
mod reader;
mod room;
mod route;
mod server;
mod stream;
mod text_side;

pub use access::{Access, ApiKey, BadAccess, Origin};
pub use room::{Order, Parts, RoomState};
pub use server::Server;
pub use text_side::{TextSide, Words};
