//! The page: door, table, host, contribute, chat, bench, settings.
//!
//! It knows `panel`, not `node`: everything it learns comes through a [`NodeLink`], everything it wants goes out by it.
//! It never touches wgpu, sockets or files. [`mount`] is the only entry.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod actions;
mod app;
mod bench;
mod browser;
mod chat;
mod common;
mod contribute;
mod door;
mod host;
mod link;
mod relay;
mod route;
mod settings;
mod state;
mod table;
mod text;

pub use app::mount;
pub use link::{NodeLink, OnMessage, PageServices};
