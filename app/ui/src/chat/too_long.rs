//! Whether a message fits the context, before it is sent. The page has no tokenizer, so it estimates; the host counts.

use potluck_text::texts;

use crate::state::estimated_tokens;

/// Bytes of text that a token stands for: at least, and in the longest words of the largest vocabularies.
const FEWEST: usize = 1;
const MOST: usize = 32;

/// A message that is longer than what its conversation has room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong {
    /// Estimate of its tokens.
    tokens: usize,
    /// Tokens that fit.
    room: u32,
    /// It is too long however its text is divided into tokens: sending it would be in vain.
    pub is_certain: bool,
}

impl TooLong {
    /// Checks a text against `room` tokens; without a room, nothing is too long.
    pub fn check(text: &str, room: Option<u32>) -> Option<Self> {
        let room = room?;
        let bytes = text.trim().len();
        let fits = |bytes_a_token: usize| bytes / bytes_a_token <= room as usize;
        if fits(FEWEST) {
            return None;
        }
        let tokens = estimated_tokens(text);
        (tokens > room as usize).then(|| Self { tokens, room, is_certain: !fits(MOST) })
    }

    /// "This message has about 6,250 tokens, and the conversation has room for 512. Shorten it."
    pub fn sentence(&self) -> String {
        texts().composer.too_long(self.tokens, self.room)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_too_long_for_its_room_only() {
        let text = "word ".repeat(1_000);
        assert_eq!(TooLong::check(&text, None), None);
        assert_eq!(TooLong::check(&text, Some(5_000)), None);
        assert_eq!(TooLong::check(&text, Some(1_300)), None);
        let long = TooLong::check(&text, Some(1_000));
        assert_eq!(long.map(|long| long.is_certain), Some(false), "long words might be one token each");
        let long = TooLong::check(&text, Some(100));
        assert_eq!(long.map(|long| long.is_certain), Some(true));
        let sentence = long.map(|long| long.sentence()).unwrap_or_default();
        assert!(sentence.contains("about 1,250 tokens") && sentence.contains("room for 100"), "{sentence}");
    }

    #[test]
    fn other_scripts_have_more_tokens_a_letter() {
        let text = "水".repeat(1_000);
        assert!(TooLong::check(&text, Some(600)).is_none());
        assert!(TooLong::check(&text, Some(400)).is_some());
    }
}
