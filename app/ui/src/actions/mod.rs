//! The user's actions, as methods of the store.

mod attaching;
mod bench;
mod chat;
mod conversations;
mod own_answers;
mod own_rooms;
mod room;
mod tools;

pub use tools::{ToolCalls, install_tools};
