//! Why a host takes no question, where programs act on the reason and people only read it.

use std::fmt;

use Refusal::{NoModel, QueueFull, TooLong, TooManyTokens, TooMuchText, TooOftenTooLong};

/// Why a question is not taken. It travels as its sentence in [`potluck_protocol::AnswerStop::Refused`], which [`Refusal::read`] reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The room has no model.
    NoModel,
    /// Too many wait, of this asker or in all.
    QueueFull,
    /// Several questions of the asker were too long.
    TooOftenTooLong,
    /// No room takes a conversation of this size.
    TooLong,
    /// It does not fit the context.
    TooManyTokens {
        /// Tokens of the conversation.
        tokens: usize,
        /// Positions of the room's context.
        context: usize,
    },
    /// Its text certainly does not fit the context.
    TooMuchText {
        /// Bytes of the conversation.
        bytes: usize,
        /// Bytes that are read at most.
        max: usize,
    },
}

impl Refusal {
    /// The refusal that a host's sentence states.
    #[must_use]
    pub fn read(sentence: &str) -> Option<Self> {
        let numbers = sentence.split(|letter: char| !letter.is_ascii_digit()).filter_map(|number| number.parse().ok());
        let numbers: Vec<usize> = numbers.take(3).collect();
        let (first, second) = match numbers[..] {
            [] => (0, 0),
            [first, second] => (first, second),
            _ => return None,
        };
        let known = [
            NoModel,
            QueueFull,
            TooOftenTooLong,
            TooLong,
            TooManyTokens { tokens: first, context: second },
            TooMuchText { bytes: first, max: second },
        ];
        known.into_iter().find(|refusal| refusal.to_string() == sentence)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoModel => f.write_str("This room has no model."),
            QueueFull => f.write_str("Too many questions are waiting in this room; ask again in a moment."),
            TooOftenTooLong => f.write_str(
                "Several questions of this device were too long for this room. Wait a minute, and ask a shorter one.",
            ),
            TooLong => {
                f.write_str("The conversation is too long for this room. Start a new one, or shorten the message.")
            }
            TooManyTokens { tokens, context } => write!(
                f,
                "The conversation has {tokens} tokens and the room's context is {context}: start a new one or shorten the message."
            ),
            TooMuchText { bytes, max } => write!(
                f,
                "The conversation has {bytes} bytes of text, and at most {max} are read: start a new one or shorten the message."
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_read_back_from_its_sentence_and_from_no_other() {
        let all = [
            NoModel,
            QueueFull,
            TooOftenTooLong,
            TooLong,
            TooManyTokens { tokens: 5_000, context: 4_096 },
            TooMuchText { bytes: 0, max: usize::MAX },
        ];
        for refusal in all {
            assert_eq!(Refusal::read(&refusal.to_string()), Some(refusal));
        }
        for other in ["", "No.", "The conversation has 5 tokens.", "1 2 3 4"] {
            assert_eq!(Refusal::read(other), None, "{other}");
        }
    }
}
