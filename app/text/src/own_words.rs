//! From a sentence back to the text that it was made of: what is left when everything is taken out that others put in.

use crate::{Texts, pattern::literals};

/// Letters of its own that a text must have to be told from others: fewer are in many sentences by chance.
const LEAST: usize = 12;

impl Texts {
    /// The text that a sentence was made of, with its arguments' names in their places; `None` if the sentence is not of this
    /// table. Of several that fit, the one with the most words of its own.
    ///
    /// ```
    /// let texts = potluck_text::texts();
    /// let sentence = texts.device.failed("q4_k");
    /// assert_eq!(texts.own_words(&sentence), Some("wrong results from { $kernels }: this device cannot take part"));
    /// ```
    #[must_use]
    pub fn own_words(&self, sentence: &str) -> Option<&'static str> {
        let own = |text: &&str| literals(text).map(str::len).sum::<usize>();
        let fits = |text: &&str| own(text) >= LEAST && is_made_of(sentence, text);
        self.forms().into_iter().filter(fits).max_by_key(own)
    }
}

/// A sentence has what stands around the arguments of a text, in this order, from its beginning to its end.
fn is_made_of(sentence: &str, text: &str) -> bool {
    let literals: Vec<&str> = literals(text).collect();
    let [first, between @ .., last] = literals.as_slice() else { return sentence == text };
    let Some(mut rest) = sentence.strip_prefix(first) else { return false };
    for literal in between {
        let Some((_, behind)) = rest.split_once(literal) else { return false };
        rest = behind;
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::texts;

    #[test]
    fn arguments_are_left_out() {
        let text = "{ $name } left while { $model } was loading.";
        assert!(is_made_of("Anna left while Qwen was loading.", text));
        assert!(!is_made_of("Anna left while Qwen was loading. Ask her.", text), "it goes on");
        assert!(!is_made_of("Anna left.", text));
        assert!(is_made_of("Nothing is missing.", "Nothing is missing."));
        assert!(!is_made_of("Nothing is missing", "Nothing is missing."));
    }

    #[test]
    fn each_text_without_arguments_is_found_and_others_sentences_are_not() {
        for text in texts().forms().into_iter().filter(|text| !text.contains('{') && text.len() >= LEAST) {
            assert_eq!(texts().own_words(text), Some(text));
        }
        for other in ["", "Anna", "Anna: her password is 1234567890", "GET https://relay.example/r/room#key failed"] {
            assert_eq!(texts().own_words(other), None, "{other}");
        }
    }
}
