//! Which tokens may come next in an answer that must have a form. What a form is, is said by [`Rules`]; [`Vocabulary`] makes a [`Matcher`] of
//! them, which reads the answer token by token.

mod error;
mod gbnf;
mod limits;
mod matcher;
mod rules;
mod vocabulary;

pub use error::GrammarError;
pub use gbnf::{is_gbnf, lark_of_gbnf};
pub use limits::MAX_RULES;
pub use matcher::Matcher;
pub use rules::{Begun, CallRules, Function, Part, Rules, Strictness};
pub use vocabulary::Vocabulary;
