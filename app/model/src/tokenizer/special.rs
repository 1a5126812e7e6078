//! Finds special tokens before the text is split into words.

use rustc_hash::FxHashMap;

use super::SpecialText;

/// Control, user-defined and unknown tokens by their text.
#[derive(Clone, Debug, Default)]
pub(super) struct SpecialTokens {
    /// Indexed by the first byte of the text; each list is sorted longest first.
    by_first_byte: FxHashMap<u8, Vec<Special>>,
}

#[derive(Clone, Debug)]
struct Special {
    text: Box<str>,
    id: u32,
    /// User-defined tokens are text, so they match even where control tokens are not parsed.
    is_text: bool,
}

/// A special token found in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hit {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) id: u32,
}

impl SpecialTokens {
    pub(super) fn insert(&mut self, text: &str, id: u32, is_text: bool) {
        let Some(&first) = text.as_bytes().first() else { return };
        let list = self.by_first_byte.entry(first).or_default();
        let at = list.partition_point(|other| other.text.len() >= text.len());
        list.insert(at, Special { text: text.into(), id, is_text });
    }

    pub(super) fn id(&self, text: &str) -> Option<u32> {
        let list = self.by_first_byte.get(text.as_bytes().first()?)?;
        list.iter().find(|special| *special.text == *text).map(|special| special.id)
    }

    /// The leftmost special token at or after byte `from`; the longest if several start there.
    pub(super) fn find(&self, text: &str, from: usize, special: SpecialText) -> Option<Hit> {
        let bytes = text.as_bytes();
        if self.by_first_byte.is_empty() {
            return None;
        }
        (from..bytes.len()).find_map(|start| {
            let list = self.by_first_byte.get(&bytes[start])?;
            let wanted = |entry: &&Special| entry.is_text || special == SpecialText::Parse;
            let hit = list.iter().filter(wanted).find(|entry| bytes[start..].starts_with(entry.text.as_bytes()))?;
            Some(Hit { start, end: start + hit.text.len(), id: hit.id })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_leftmost_and_longest_wins_and_control_tokens_need_trust() {
        let mut tokens = SpecialTokens::default();
        tokens.insert("<a>", 1, false);
        tokens.insert("<a><b>", 2, false);
        tokens.insert("<t>", 3, true);
        let text = "x<a><b><t>";
        assert_eq!(tokens.find(text, 0, SpecialText::Parse), Some(Hit { start: 1, end: 7, id: 2 }));
        assert_eq!(tokens.find(text, 0, SpecialText::Literal), Some(Hit { start: 7, end: 10, id: 3 }));
        assert_eq!(tokens.find(text, 8, SpecialText::Parse), None);
        assert_eq!(tokens.id("<a>"), Some(1));
        assert_eq!(tokens.id("<"), None);
    }
}
