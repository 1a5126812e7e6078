//! The user's actions, as methods of the store.

mod bench;
mod chat;
mod conversations;
mod room;
mod tools;

pub use tools::{ToolCalls, install_tools};
