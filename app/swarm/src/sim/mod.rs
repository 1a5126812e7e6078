//! A deterministic simulator around the same state machines: virtual clock, relay, lines, devices, faults. Everything is
//! drawn from a seed, so a run can be repeated.
//!
//! Its engine computes hashes instead of a language model, exact in f32: a row's value depends on every earlier row of its
//! conversation, on the blocks it passed and on the kernel class of each row. A lost, doubled, reordered or stale row
//! changes the answer, so "the answer is the undisturbed one" is a strong statement here.

mod device;
mod engine;
mod fault;
mod language;
mod network;
mod notes;
mod peer;
mod perform;
mod random;
mod relay;
mod world;

pub use device::SimDevice;
pub use engine::{SimModel, undisturbed};
pub use fault::Fault;
pub use network::Link;
pub use peer::Answer;
pub use world::World;
