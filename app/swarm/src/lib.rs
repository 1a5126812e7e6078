//! Coordinator and worker as state machines without I/O and without a clock: `on(event, now) -> actions`.
//!
//! [`Peer`] contains all of them. The browser's driver, the native peer and the simulator (`potluck-sim`) feed it the same
//! [`Event`]s and perform the same [`Action`]s.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod coordinator;
mod door_log;
mod doorkeeper;
mod engine_kv_cache;
mod event;
mod event_context;
#[cfg(test)]
mod examples;
mod executor;
mod experts;
mod file_parts;
mod guest;
mod inherited;
mod kv_pages;
mod language;
mod likeness;
mod limits;
mod lineages;
mod may;
mod members;
mod memory;
mod mutation;
mod outbox;
mod own_biases;
mod peer;
mod refusal;
mod residency;
mod row_hashes;
mod sessions;
#[cfg(feature = "testing")]
pub mod testing;
mod trace;
mod worker;

pub use coordinator::Ownership;
pub use event::{
    Action, Event, HintOptions, HostCommand, Identity, LoadRequest, OpenedModel, Proof, RelayRoute, Severity,
    SpotChecks,
};
pub use file_parts::FileParts;
pub use language::{Grammar, Language, TextStream};
pub use limits::{MAX_FUNCTIONS, prompt as check_prompt};
pub use memory::resident_bytes;
pub use peer::{Membership, Peer, SwarmView};
pub use refusal::Refusal;
pub use trace::{ExpertWait, Fact, TraceLine};
