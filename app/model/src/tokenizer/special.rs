//! Finds special tokens before the text is split into words.

use rustc_hash::FxHashSet;

use super::SpecialText;

/// Longest name of a special token, in bytes. Real ones have at most a few dozen; longer ones are ordinary text, so that a
/// file's names cannot make every position of a text expensive.
const MAX_NAME_BYTES: usize = 256;

/// Control, user-defined and unknown tokens by their text.
#[derive(Clone, Debug)]
pub(super) struct SpecialTokens {
    /// In the order of their texts, so that those with a common beginning are neighbours.
    sorted: Vec<Special>,
    /// The first bytes of all texts.
    first_bytes: Box<[bool; 256]>,
    /// The first characters of tokens that are not text, in both cases: a template may change the case of a message.
    control_first: FxHashSet<char>,
    /// Their other characters.
    control_rest: FxHashSet<char>,
}

/// A special token.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Special {
    pub(super) text: Box<str>,
    /// User-defined tokens are text, so they match even where control tokens are not parsed.
    pub(super) is_text: bool,
    pub(super) id: u32,
}

/// A special token found in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hit {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) id: u32,
}

impl SpecialTokens {
    /// Of several tokens with the same text and kind the first id counts.
    pub(super) fn new(mut tokens: Vec<Special>) -> Self {
        tokens.retain(|token| (1..=MAX_NAME_BYTES).contains(&token.text.len()));
        tokens.sort_unstable();
        tokens.dedup_by(|a, b| (&a.text, a.is_text) == (&b.text, b.is_text));
        let mut first_bytes = Box::new([false; 256]);
        let (mut control_first, mut control_rest) = (FxHashSet::default(), FxHashSet::default());
        for token in &tokens {
            first_bytes[usize::from(token.text.as_bytes()[0])] = true;
            let mut chars = token.text.chars().filter(|_| !token.is_text);
            control_first.extend(chars.next().into_iter().flat_map(both_cases));
            control_rest.extend(chars.flat_map(both_cases));
        }
        Self { sorted: tokens, first_bytes, control_first, control_rest }
    }

    /// The token with exactly this text.
    pub(super) fn id(&self, text: &str) -> Option<u32> {
        let at = self.sorted.partition_point(|special| *special.text < *text);
        let same = self.sorted[at..].iter().take_while(|special| *special.text == *text);
        same.map(|special| special.id).min()
    }

    /// The name of a token that is not text may begin with this character.
    pub(super) fn may_begin(&self, c: char) -> bool {
        self.control_first.contains(&c)
    }

    /// The name of a token that is not text may go on with this character.
    pub(super) fn may_continue(&self, c: char) -> bool {
        self.control_rest.contains(&c)
    }

    /// The leftmost special token at or after byte `from`; the longest if several start there.
    pub(super) fn find(&self, text: &str, from: usize, special: SpecialText) -> Option<Hit> {
        (from..text.len()).find_map(|start| self.find_at(text, start, special))
    }

    /// The longest special token that starts at byte `start`.
    pub(super) fn find_at(&self, text: &str, start: usize, special: SpecialText) -> Option<Hit> {
        let bytes = &text.as_bytes()[start..];
        if !self.first_bytes[usize::from(*bytes.first()?)] {
            return None;
        }
        let mut longest = None;
        // The names that begin with the first `len` bytes; one that ends there is the first of them.
        let mut candidates = &self.sorted[..];
        for (len, byte) in bytes.iter().enumerate() {
            let next = |special: &Special| special.text.as_bytes().get(len).copied();
            let from = candidates.partition_point(|special| next(special) < Some(*byte));
            let to = candidates.partition_point(|special| next(special) <= Some(*byte));
            candidates = &candidates[from..to];
            if candidates.is_empty() {
                break;
            }
            let wanted = |entry: &&Special| entry.is_text || special == SpecialText::Parse;
            let ending = candidates.iter().take_while(|entry| entry.text.len() == len + 1);
            if let Some(id) = ending.filter(wanted).map(|entry| entry.id).min() {
                longest = Some(Hit { start, end: start + len + 1, id });
            }
        }
        longest
    }
}

fn both_cases(c: char) -> impl Iterator<Item = char> {
    std::iter::once(c).chain(c.to_lowercase()).chain(c.to_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(list: &[(&str, u32, bool)]) -> SpecialTokens {
        let special = |&(text, id, is_text): &(&str, u32, bool)| Special { text: text.into(), is_text, id };
        SpecialTokens::new(list.iter().map(special).collect())
    }

    #[test]
    fn the_leftmost_and_longest_wins_and_control_tokens_need_trust() {
        let tokens = tokens(&[("<a>", 1, false), ("<a><b>", 2, false), ("<t>", 3, true)]);
        let text = "x<a><b><t>";
        assert_eq!(tokens.find(text, 0, SpecialText::Parse), Some(Hit { start: 1, end: 7, id: 2 }));
        assert_eq!(tokens.find(text, 0, SpecialText::Literal), Some(Hit { start: 7, end: 10, id: 3 }));
        assert_eq!(tokens.find(text, 8, SpecialText::Parse), None);
        assert_eq!(tokens.find("x<a><b", 0, SpecialText::Parse), Some(Hit { start: 1, end: 4, id: 1 }));
        assert_eq!(tokens.id("<a>"), Some(1));
        assert_eq!(tokens.id("<"), None);
    }

    #[test]
    fn the_first_of_equal_names_counts_and_empty_or_endless_ones_do_not() {
        let endless = "<".repeat(MAX_NAME_BYTES + 1);
        let tokens = tokens(&[("<a>", 7, false), ("<a>", 5, false), ("", 1, false), (&endless, 2, false)]);
        assert_eq!(tokens.id("<a>"), Some(5));
        assert_eq!(tokens.find("<a>", 0, SpecialText::Parse).map(|hit| hit.id), Some(5));
        assert_eq!(tokens.find(&endless, 0, SpecialText::Parse), None);
    }

    /// A file may have any number of control tokens. Before, each new one moved all others, and each `<` of a text was
    /// compared with all of them: 10¹⁰ steps here.
    #[test]
    fn many_control_tokens_cost_no_more_than_their_number() {
        const COUNT: u32 = 200_000;
        let list = (0..COUNT).map(|id| Special { text: format!("<{id}>").into(), is_text: false, id });
        let tokens = SpecialTokens::new(list.collect());
        let text = "<x".repeat(COUNT as usize) + "<199999>";
        let hit = tokens.find(&text, 0, SpecialText::Parse);
        assert_eq!(hit.map(|hit| (hit.start, hit.id)), Some((2 * COUNT as usize, COUNT - 1)));
    }
}
