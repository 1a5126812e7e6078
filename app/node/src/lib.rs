//! The driver of a peer: it runs [`potluck_swarm::Peer`] and performs its actions, with web and native adapters.
//!
//! - [`node`]: the event loop. Every input comes through one counted channel ([`events`]), on one thread. Parts have events of their
//!   own ([`compute::Event`], [`room::Event`]) and know nothing of the loop.
//! - [`platform`]: small traits (`Transport`, `SameBrowser`, `BlobStore`, `Clock`, `Spawn`) are all the driver needs of the world.
//! - [`source`], [`hashes`], [`open`]: where a model's bytes come from, how they are verified, how a header is read.
//! - [`loader`]: weight units to the GPU, through the cache. [`compute`]: the GPU and the engine on it.
//! - `bench`: measures a model on this device alone.
//! - [`room`]: the connection to a room, and the way of a frame to its members. [`direct`]: frames to tabs of this browser that bypass
//!   the relay. [`relay`]: what goes to the relay.
//! - [`status`]: the page's view. [`supervision`]: when a page starts its node worker again.
//! - [`storage`]: what the cache has of which models. [`pack`]: how weight units are laid out in a browser's storage.
//! - [`links`]: where a link that a host chose may lead.
//! - `native` and `web`: the adapters. A browser tab has three contexts: page half, node worker, storage worker.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod backoff;
mod bench;
pub mod blob;
pub mod compute;
pub mod direct;
pub mod events;
pub mod hashes;
mod language;
pub mod links;
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
pub mod storage;
pub mod supervision;
#[cfg(target_arch = "wasm32")]
pub mod web;

pub use language::{LanguageError, LanguageFacts, ModelLanguage};
