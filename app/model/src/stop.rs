//! Ends an answer: at stop tokens, or at stop strings that may span several tokens.

use std::collections::BTreeSet;

use potluck_gguf::Metadata;

use crate::tokenizer::special_ids;
use crate::{TokenKind, Tokenizer, TokenizerError};

/// Tokens that end an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StopTokens {
    ids: BTreeSet<u32>,
}

/// Metadata keys whose tokens end an answer.
pub(crate) const END_KEYS: [&str; 7] = [
    "tokenizer.ggml.eos_token_id",
    // Ollama's list.
    "tokenizer.ggml.eos_token_ids",
    "tokenizer.ggml.eot_token_id",
    "tokenizer.ggml.eom_token_id",
    // A model that writes these goes on to another file.
    "tokenizer.ggml.fim_pad_token_id",
    "tokenizer.ggml.fim_rep_token_id",
    "tokenizer.ggml.fim_sep_token_id",
];

/// Special tokens that end a turn or a text in some model family, even if the metadata does not say so.
pub(crate) const END_NAMES: [&str; 34] = [
    "<|eot_id|>",
    "<|eom_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|return|>",
    "<|call|>",
    "<|calls|>",
    "<|flush|>",
    "<end_of_turn>",
    "<end_of_utterance>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "</s>",
    "<eos>",
    "<turn|>",
    "<|tool_response>",
    "<｜end▁of▁sentence｜>",
    "[e~[",
    "<|fim_pad|>",
    "<fim-pad>",
    "<fim_pad>",
    "<PAD>",
    "[PAD]",
    "<|fim_repo|>",
    "<|repo_name|>",
    "<fim-repo>",
    "<REPO>",
    "<reponame>",
    "<|file_sep|>",
    "<|END_OF_TURN_TOKEN|>",
];

/// With one of each pair in a vocabulary, `<|end|>` ends only a part of an answer (gpt-oss, Solar).
const GOES_ON: [(&str, &str); 2] = [("<|return|>", "<|call|>"), ("<|flush|>", "<|calls|>")];

impl StopTokens {
    /// The end-of-sequence, end-of-turn and end-of-message tokens of a file.
    ///
    /// # Errors
    /// A key whose value is not a token id.
    pub fn from_metadata(metadata: &Metadata, tokenizer: &Tokenizer) -> Result<Self, TokenizerError> {
        let mut ids: BTreeSet<u32> = tokenizer.eos().into_iter().collect();
        for key in END_KEYS {
            ids.extend(special_ids(metadata, key)?.into_iter().filter(|&id| tokenizer.kind(id).is_some()));
        }
        let named = END_NAMES.iter().filter_map(|name| tokenizer.special_id(name));
        ids.extend(named.filter(|&id| tokenizer.kind(id) == Some(TokenKind::Control)));
        let has = |name: &str| tokenizer.special_id(name).is_some();
        if GOES_ON.iter().any(|(first, second)| has(first) && has(second))
            && let Some(end) = tokenizer.special_id("<|end|>")
        {
            ids.remove(&end);
        }
        Ok(Self { ids })
    }

    /// True if an answer ends with this token.
    pub fn contains(&self, id: u32) -> bool {
        self.ids.contains(&id)
    }

    /// The tokens, by id.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.ids.iter().copied()
    }
}

/// Scans streamed text for stop strings; holds back text that could be the start of one.
///
/// ```
/// use potluck_model::StopStrings;
///
/// let mut stops = StopStrings::new(["User:".to_owned()]);
/// assert_eq!(stops.push("It scatters. Us").text, "It scatters. ", "a stop string may begin here");
/// assert_eq!(stops.push("ually").text, "Usually");
/// let last = stops.push(" red.User: and");
/// assert_eq!((last.text.as_str(), last.stopped), (" red.", true));
/// ```
#[derive(Clone, Debug, Default)]
pub struct StopStrings {
    stops: Vec<String>,
    held: String,
    /// Index of the stop string that was found.
    found: Option<usize>,
}

/// The result of pushing a piece of streamed text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Streamed {
    /// Text that can be shown.
    pub text: String,
    /// A stop string was found; the text ends just before it.
    pub stopped: bool,
}

impl StopStrings {
    /// Watches for these strings; ignores empty ones.
    pub fn new(stops: impl IntoIterator<Item = String>) -> Self {
        Self { stops: stops.into_iter().filter(|stop| !stop.is_empty()).collect(), held: String::new(), found: None }
    }

    /// Pushes the next piece of text. How the text is cut into pieces does not matter: the first stop string to be
    /// complete wins.
    pub fn push(&mut self, text: &str) -> Streamed {
        self.held.push_str(text);
        let find = |(index, stop): (usize, &String)| {
            let start = self.held.find(stop.as_str())?;
            Some((start + stop.len(), start, index))
        };
        let first = self.stops.iter().enumerate().filter_map(find).min();
        if let Some((_, start, index)) = first {
            self.found = Some(index);
            self.held.truncate(start);
            return Streamed { text: std::mem::take(&mut self.held), stopped: true };
        }
        let keep = self.stops.iter().map(|stop| overlap(&self.held, stop)).max().unwrap_or(0);
        let rest = self.held.split_off(self.held.len() - keep);
        Streamed { text: std::mem::replace(&mut self.held, rest), stopped: false }
    }

    /// The stop string that was found last.
    #[must_use]
    pub fn found(&self) -> Option<&str> {
        self.found.map(|index| self.stops[index].as_str())
    }

    /// Returns the text held back; call it when the answer ends for another reason.
    pub fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }
}

/// Length in bytes of the longest suffix of `text` that is a proper prefix of `stop`.
pub(crate) fn overlap(text: &str, stop: &str) -> usize {
    let starts = stop.char_indices().map(|(at, _)| at).rev();
    starts.filter(|&len| text.ends_with(&stop[..len])).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_stop_string_is_found_across_pieces_and_never_shown() {
        let mut stops = StopStrings::new(["\nUser:".to_string(), String::new()]);
        assert_eq!(stops.push("Hello\nUs"), Streamed { text: "Hello".into(), stopped: false });
        assert_eq!(stops.push("ual\n"), Streamed { text: "\nUsual".into(), stopped: false });
        assert_eq!(stops.found(), None);
        assert_eq!(stops.push("User: x"), Streamed { text: String::new(), stopped: true });
        assert_eq!(stops.found(), Some("\nUser:"));
        let mut open = StopStrings::new(["END".to_string()]);
        assert_eq!(open.push("the E").text, "the ");
        assert_eq!(open.finish(), "E");
    }

    proptest! {
        #[test]
        fn cuts_change_nothing(
            text in "[abé]{0,24}",
            stops in prop::collection::vec("[abé]{1,4}", 0..4),
            cuts in prop::collection::vec(any::<bool>(), 24),
        ) {
            let mut whole = StopStrings::new(stops.clone());
            let one_piece = whole.push(&text);
            let expected = (one_piece.text + &whole.finish(), one_piece.stopped);
            let mut watch = StopStrings::new(stops);
            let (mut shown, mut stopped, mut piece) = (String::new(), false, String::new());
            for (c, cut) in text.chars().zip(cuts) {
                piece.push(c);
                if cut && !stopped {
                    let streamed = watch.push(&std::mem::take(&mut piece));
                    shown += &streamed.text;
                    stopped = streamed.stopped;
                }
            }
            if !stopped {
                let streamed = watch.push(&piece);
                shown += &streamed.text;
                stopped = streamed.stopped;
            }
            shown += &watch.finish();
            prop_assert_eq!((shown, stopped), expected);
        }
    }
}
