//! A deterministic simulator around the same state machines: virtual clock, relay, links, devices, faults. Everything is
//! drawn from a seed, so a run can be repeated.
//!
//! Its engine computes hashes instead of a language model, exact in f32: a row's value depends on every earlier row of its
//! conversation, on the blocks it passed and on the kernel class of each row. A lost, doubled, reordered or stale row
//! changes the answer, so "the answer is the undisturbed one" is a strong statement here.

mod engine;
mod language;
mod random;
mod world;

pub use engine::{SimModel, undisturbed};
pub use world::{Answer, Fault, Link, SimDevice, World};
