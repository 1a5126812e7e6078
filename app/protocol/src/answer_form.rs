//! The form that an answer must have.

use serde::{Deserialize, Serialize};

/// The form that an answer must have. Only tokens with which it can still have this form are chosen; reasoning is free. Whoever writes it
/// may write anything: the host refuses what it cannot read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum AnswerForm {
    /// Any.
    #[default]
    Free,
    /// A call of a function has arguments that fit the function's schema. Without a call, the answer is free.
    Calls {
        /// A schema with something that cannot be held to is refused; otherwise that part of it does not count.
        strict: bool,
    },
    /// A JSON object.
    Json,
    /// JSON that fits this schema, which is JSON itself; or a call of a function, if some are offered.
    Schema(String),
    /// A text that this regular expression matches from beginning to end.
    Regex(String),
    /// A text of this grammar, in the form of Lark that llguidance reads.
    Lark(String),
}

impl AnswerForm {
    /// Bytes of a schema, an expression or a grammar, at most.
    pub const MAX_BYTES: usize = 64 * 1024;

    /// It is no form at all.
    #[must_use]
    pub fn is_free(&self) -> bool {
        *self == Self::Free
    }

    /// Bytes of its text.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::Free | Self::Calls { .. } | Self::Json => 0,
            Self::Schema(text) | Self::Regex(text) | Self::Lark(text) => text.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn the_bytes_stay() {
        let text = || "ab".to_owned();
        for (form, bytes) in [
            (AnswerForm::Free, vec![0]),
            (AnswerForm::Calls { strict: true }, vec![1, 1]),
            (AnswerForm::Json, vec![2]),
            (AnswerForm::Schema(text()), vec![3, 2, b'a', b'b']),
            (AnswerForm::Regex(text()), vec![4, 2, b'a', b'b']),
            (AnswerForm::Lark(text()), vec![5, 2, b'a', b'b']),
        ] {
            assert_eq!(postcard::to_allocvec(&form).unwrap(), bytes);
            assert_eq!(postcard::from_bytes::<AnswerForm>(&bytes).unwrap(), form);
        }
        assert!(postcard::from_bytes::<AnswerForm>(&[6]).is_err(), "a form that nobody knows");
    }
}
