//! Why an answer cannot be held to a form.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::limits::{MAX_RULES, MAX_VALUES, MAX_VALUES_IN_ALL};

/// Bytes of a reason, at most: it may repeat much of what it is about.
const MAX_REASON: usize = 400;

/// Why an answer cannot be held to a form: a sentence for whoever asked.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
pub enum GrammarError {
    /// The schema is no JSON object.
    #[error("The schema cannot be read: it must be a JSON object.")]
    NoSchema,
    /// It is longer than rules may be.
    #[error("The form that the answer must have is too long: {0} bytes of schemas and rules, at most {MAX_RULES}.")]
    TooLong(usize),
    /// Schemas have more values than they may have.
    #[error(
        "A schema may have at most {MAX_VALUES} values, and all schemas together {MAX_VALUES_IN_ALL}: make them smaller."
    )]
    TooManyValues,
    /// It cannot be read, asks for something that is not known, or takes too much time or memory.
    #[error("An answer cannot be held to this form: {0}.")]
    Unusable(String),
    /// No token may come next, or it takes too long to find out which ones.
    #[error("The answer cannot go on in the form that it must have: {0}.")]
    Stuck(String),
    /// What reads forms is not here: a browser loads it when it is first needed.
    #[error("The host could not load what holds answers to a form: {0}. Try again.")]
    NotLoaded(String),
}

impl GrammarError {
    /// [`Self::Unusable`], for this reason.
    pub fn unusable(reason: impl ToString) -> Self {
        Self::Unusable(shortened(&reason.to_string()))
    }

    /// [`Self::Stuck`], for this reason.
    pub fn stuck(reason: impl ToString) -> Self {
        Self::Stuck(shortened(&reason.to_string()))
    }
}

/// In one line, without a full stop.
fn shortened(reason: &str) -> String {
    let line = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = line.replace(" <non-verbose/>", "");
    let line = line.trim_end_matches('.');
    match line.char_indices().find(|(at, _)| *at >= MAX_REASON) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_one_short_line() {
        assert_eq!(
            GrammarError::unusable("two\n lines.").to_string(),
            "An answer cannot be held to this form: two lines."
        );
        let long = GrammarError::stuck("ä".repeat(1_000)).to_string();
        assert!(long.len() < 500 && long.ends_with("ä…."), "{long}");
    }
}
