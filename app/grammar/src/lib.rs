//! Which tokens may come next in an answer that must have a form. What a form is, is said by [`Rules`]; [`Vocabulary`] makes a [`Matcher`] of
//! them, which reads the answer token by token.

mod gbnf;
mod limits;
mod matcher;
mod rules;
mod vocabulary;
#[cfg(target_arch = "wasm32")]
mod web;

pub use gbnf::{is_gbnf, lark_of_gbnf};
pub use matcher::Matcher;
pub use potluck_forms::{Begun, CallRules, Function, GrammarError, MAX_RULES, Part, Rules, Strictness};
pub use vocabulary::Vocabulary;
