//! What an answer can be held to ([`Rules`]), and why it cannot ([`GrammarError`]). The crate `potluck-grammar` holds answers to rules.
#![forbid(unsafe_code)]

mod error;
mod limits;
mod rules;

pub use error::GrammarError;
pub use limits::{MAX_RULES, MAX_VALUES, MAX_VALUES_IN_ALL};
pub use rules::{Begun, CallRules, Function, Part, Rules, Strictness};
