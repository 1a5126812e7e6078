//! Compares the engine with llama.cpp's answers (`e2e/golden`), natively and in a browser.
//!
//! A golden file contains a synthetic model's description, three prompts of 64 tokens, and llama.cpp's result after
//! each token on the same weights in F32. The engine runs the quantized model, divided among devices as a [`Split`]
//! says. At every position the engine's best token must match the reference's, unless the reference's own margin is
//! below the stated tolerance.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod golden;
#[cfg(not(target_arch = "wasm32"))]
mod likelihood;
#[cfg(not(target_arch = "wasm32"))]
mod published;
mod recipe;
mod reference;
mod room;
mod verdict;

pub use golden::{Golden, Prompt};
#[cfg(not(target_arch = "wasm32"))]
pub use likelihood::{LOGITS_READ, Likelihood, likelihoods};
#[cfg(not(target_arch = "wasm32"))]
pub use published::{ANSWER_CONTEXT, Answer, Published, Way, surprise};
pub use recipe::{Recipe, Sum, Tensor, judge_recipe};
pub use reference::{Reference, compare};
pub use room::{Room, Setup, Split};
pub use verdict::{Verdict, judge};
