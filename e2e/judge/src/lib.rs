//! Holds the engine against llama.cpp's answers (`e2e/golden`), natively and in a browser alike.
//!
//! A golden file describes a synthetic model, three prompts of 64 tokens and what llama.cpp answered after each of their
//! tokens on the same weights in F32. Here the quantized model runs through the engine, split over devices by a
//! [`Split`]. At every position our best token must be the reference's, unless the reference's own margin is below the
//! stated tolerance.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod golden;
mod reference;
mod room;
mod verdict;

pub use golden::{Golden, Prompt};
pub use reference::{Reference, compare};
pub use room::{Room, Split};
pub use verdict::{Verdict, judge};
