//! The driver of a peer: it runs [`potluck_swarm::Peer`] and does what it asks, with web and native adapters.
//!
//! - [`node`]: the loop. Everything that happens comes through one counted channel ([`events`]), on one thread.
//! - [`platform`]: five small traits (`Transport`, `Neighbours`, `BlobStore`, `Clock`, `Spawn`) are all it needs of the world.
//! - [`source`], [`hashes`], [`open`]: where a model's bytes come from, how they are checked, how a header is read.
//! - [`loader`]: weight units to the GPU, through the cache. [`compute`]: the GPU and the engine on it.
//! - `bench`: a model measured on this device alone.
//! - [`room`], [`control`], [`relay`]: the line to a room and the relay's forms. [`direct`]: past the relay to tabs of this browser.
//! - [`status`], [`convert`]: the page's view.
//! - [`pack`]: where weight units lie in a browser's storage.
//! - `native` and `web`: the adapters. A browser tab has three contexts: page half, node worker, storage worker.
#![forbid(unsafe_code)]

mod bench;
pub mod blob;
pub mod compute;
pub mod control;
pub mod direct;
pub mod events;
pub mod hashes;
mod language;
pub mod loader;
#[cfg(not(target_arch = "wasm32"))]
pub mod native;
pub mod node;
pub mod open;
pub mod pack;
pub mod platform;
pub mod relay;
pub mod room;
pub mod source;
pub mod status;
#[cfg(target_arch = "wasm32")]
pub mod web;

pub use language::{LanguageError, ModelLanguage};
