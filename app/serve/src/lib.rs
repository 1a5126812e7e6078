//! An HTTP API for programs: editors, agents and libraries that expect OpenAI's or Anthropic's API ask the model of a room, or of this
//! machine.
//!
//! [`Server::open`] listens in a thread of its own. What it needs of the room it orders from the program that started it ([`Order`]), and
//! what it knows of the room that program tells it ([`RoomState`]).
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
mod question;
mod reader;
mod room;
mod route;
mod server;
mod stream;

pub use access::{Access, ApiKey, BadAccess, Origin};
pub use room::{Order, Parts, RoomState};
pub use server::Server;
