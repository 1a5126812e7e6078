//! The page: door, table, model picker, contribution, chat, bench, settings.
//!
//! It depends on `panel`, not on `node`: all messages from and to the node pass through a [`NodeLink`]. It never
//! touches wgpu, sockets or files. [`mount`] is the only entry point.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod actions;
mod app;
mod bench;
mod browser;
mod chat;
mod clock;
mod common;
mod contribute;
mod door;
mod host;
mod link;
#[cfg(feature = "fuzz")]
pub mod reading;
mod relay;
mod route;
mod settings;
mod state;
mod table;
mod text;

pub use app::mount;
pub use link::{NodeLink, OnMessage, PageServices};
