//! Jinja as Hugging Face Transformers sets it up: Jinja2 in its immutable sandbox with `trim_blocks`, `lstrip_blocks`, loop
//! controls and `generation` tags, and Python's values and methods behind it (decision 0049).
//!
//! A template is untrusted: it can reach nothing but the values that it is given, and its steps, its memory and the depth of its
//! nesting are bounded.
//!
//! The `lexer` makes tokens of a source, the `parser` a tree (`ast`) of them, and the `interpreter` walks the tree. What it makes
//! are `value`s, with `operators`, `attributes` and `methods` as in Python, and `filters` and `tests` as in Jinja2.

mod arguments;
mod ast;
mod attributes;
mod filters;
mod format;
mod interpreter;
mod json;
mod lexer;
mod methods;
mod number;
mod operators;
mod parser;
mod sequences;
mod strings;
mod tests;
mod value;

use std::fmt;
use std::sync::Arc;

use thiserror::Error;

pub(super) use interpreter::Limits;
pub(super) use json::parse as parse_json;
pub(super) use value::Value;

use super::time::LocalTime;

/// Why a template does not compile or render.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum Fault {
    /// What Jinja2 or Python would report.
    #[error("{0}")]
    Error(String),
    /// `raise_exception`.
    #[error("{0}")]
    Raised(String),
    /// A limit is exceeded.
    #[error("it ran too long or wrote too much")]
    Runaway,
}

type Result<T> = std::result::Result<T, Fault>;

/// A fault in Python's or Jinja2's words.
fn fault<T>(message: impl Into<String>) -> Result<T> {
    Err(Fault::Error(message.into()))
}

/// A compiled template.
#[derive(Clone)]
pub(super) struct Template {
    body: Arc<Vec<ast::Statement>>,
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Template({} statements)", self.body.len())
    }
}

impl Template {
    /// Compiles a source.
    pub(super) fn new(source: &str) -> Result<Self> {
        let tokens = lexer::tokens(source)?;
        Ok(Self { body: Arc::new(parser::parse(tokens)?) })
    }

    /// Renders it with these variables. What it costs is gone from the limits.
    pub(super) fn render(
        &self,
        variables: Vec<(&str, Value)>,
        now: Option<LocalTime>,
        limits: &mut Limits,
    ) -> Result<String> {
        interpreter::render(&self.body, variables, now, limits)
    }
}
