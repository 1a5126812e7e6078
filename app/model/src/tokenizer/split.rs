//! Splits text into words before byte-level BPE. Written by hand, because a regex engine's tables would make up most of
//! this crate's size in a page. Each function quotes the regex it implements.

use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

/// The rule that splits text into words (`tokenizer.ggml.pre`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PreTokenizer {
    /// `gpt-2`.
    Gpt2,
    /// Single digits, then GPT-2: `smollm`, `starcoder`, `refact`, `command-r`.
    SingleDigitsThenGpt2,
    /// `default`: punctuation, then GPT-2, then numbers, then groups of three digits.
    Default,
    /// `llama-bpe` (up to three digits per number) and `qwen2` (one digit).
    Modern { digits: usize },
    /// `tekken`: also splits words where lower case ends.
    Tekken,
}

impl PreTokenizer {
    /// Looks up a rule by its name in the file; `None` if unknown.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "default" => Self::Default,
            "gpt-2" | "phi-2" | "mpt" | "olmo" | "jais" | "trillion" | "granite-docling" | "jina-es" | "jina-de"
            | "roberta-bpe" => Self::Gpt2,
            "smollm" | "starcoder" | "refact" | "command-r" | "codeshell" | "exaone" | "minerva-7b" => {
                Self::SingleDigitsThenGpt2
            }
            "llama3" | "llama-v3" | "llama-bpe" | "falcon3" | "falcon-h1" | "pixtral" | "midm-2.0" | "lfm2"
            | "dbrx" | "smaug-bpe" | "chatglm-bpe" | "jina-v5-nano" => Self::Modern { digits: 3 },
            "qwen2" | "deepseek-r1-qwen" | "stablelm2" | "hunyuan" | "megrez" => Self::Modern { digits: 1 },
            "tekken" => Self::Tekken,
            _ => return None,
        })
    }

    /// True if words that are tokens skip the merges (`ignore_merges`). Files with these names also put the
    /// beginning-of-sequence token before a text by default.
    pub(super) fn takes_whole_words(name: &str) -> bool {
        let names = ["llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2"];
        names.contains(&name) || matches!(name, "jina-v5-nano" | "tekken")
    }

    /// Calls `each` for every word in order; the words concatenate to the text.
    pub(super) fn for_each(self, text: &str, each: &mut dyn FnMut(&str)) {
        match self {
            Self::Gpt2 => words(text, gpt2, each),
            Self::SingleDigitsThenGpt2 => runs(text, |c| c.is_numeric(), &mut |run, numeric| {
                if numeric {
                    words(run, |rest| rest.chars().next().map_or(0, char::len_utf8), each);
                } else {
                    words(run, gpt2, each);
                }
            }),
            Self::Default => runs(text, is_default_punctuation, &mut |run, punctuation| {
                if punctuation {
                    each(run);
                } else {
                    words(run, gpt2, &mut |word| runs(word, char::is_numeric, &mut |run, _| triples(run, each)));
                }
            }),
            Self::Modern { digits } => words(text, |rest| modern(rest, digits), each),
            Self::Tekken => words(text, tekken, each),
        }
    }
}

/// Cuts words off the front of a text; `next` returns the length of the first in bytes.
fn words(mut text: &str, next: impl Fn(&str) -> usize, each: &mut dyn FnMut(&str)) {
    while !text.is_empty() {
        let (word, rest) = text.split_at(next(text));
        each(word);
        text = rest;
    }
}

/// Splits a text into runs of characters inside and outside of one class.
fn runs(mut text: &str, class: impl Fn(char) -> bool, each: &mut dyn FnMut(&str, bool)) {
    while let Some(first) = text.chars().next() {
        let of_class = class(first);
        let (run, rest) = text.split_at(span(text, |c| class(c) == of_class));
        each(run, of_class);
        text = rest;
    }
}

/// `[0-9][0-9][0-9]`, and the text in between.
fn triples(mut text: &str, each: &mut dyn FnMut(&str)) {
    while let Some(at) = text.as_bytes().windows(3).position(|three| three.iter().all(u8::is_ascii_digit)) {
        if at > 0 {
            each(&text[..at]);
        }
        each(&text[at..at + 3]);
        text = &text[at + 3..];
    }
    if !text.is_empty() {
        each(text);
    }
}

/// `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
fn gpt2(text: &str) -> usize {
    if let Some(len) = contraction(text, |a, b| a == b) {
        return len;
    }
    let after_space = text.strip_prefix(' ').unwrap_or(text);
    let space = text.len() - after_space.len();
    match after_space.chars().next() {
        Some(c) if is_letter(c) => space + span(after_space, is_letter),
        Some(c) if c.is_numeric() => space + span(after_space, char::is_numeric),
        Some(c) if is_symbol(c) => space + span(after_space, is_symbol),
        _ => whitespace(text),
    }
}

/// `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,DIGITS}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
fn modern(text: &str, digits: usize) -> usize {
    // Unicode's simple case folding also maps the long s to s.
    if let Some(len) = contraction(text, |a, b| a.to_ascii_lowercase() == b || (a == 'ſ' && b == 's')) {
        return len;
    }
    let mut chars = text.chars();
    let Some(first) = chars.next() else { return 0 };
    if is_letter(first) {
        return span(text, is_letter);
    }
    if first.is_numeric() {
        return text.chars().take(digits).take_while(|c| c.is_numeric()).map(char::len_utf8).sum();
    }
    if !matches!(first, '\r' | '\n') && chars.next().is_some_and(is_letter) {
        return first.len_utf8() + span(&text[first.len_utf8()..], is_letter);
    }
    symbols_or_space(text, &['\r', '\n'])
}

/// `[^\r\n\p{L}\p{N}]?UPPER*LOWER+|[^\r\n\p{L}\p{N}]?UPPER+LOWER*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
/// with UPPER `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]` and LOWER `[\p{Ll}\p{Lm}\p{Lo}\p{M}]`.
fn tekken(text: &str) -> usize {
    let Some(first) = text.chars().next() else { return 0 };
    if first.is_numeric() {
        return first.len_utf8();
    }
    let may_lead = !matches!(first, '\r' | '\n') && !is_letter(first);
    let lead = if may_lead { first.len_utf8() } else { 0 };
    let word = |class: fn(&str) -> Option<usize>| {
        let after_lead = class(&text[lead..]).map(|len| lead + len);
        after_lead.or_else(|| if lead > 0 { class(text) } else { None })
    };
    word(upper_then_lower)
        .or_else(|| word(|text| Some(span(text, is_upper)).filter(|&len| len > 0)))
        .unwrap_or_else(|| symbols_or_space(text, &['\r', '\n', '/']))
}

/// `UPPER*LOWER+`. Letters of both classes go to the first part unless that would leave the second empty.
fn upper_then_lower(text: &str) -> Option<usize> {
    let upper = span(text, is_upper);
    let lower = span(&text[upper..], is_lower);
    if lower > 0 {
        return Some(upper + lower);
    }
    let (at, last) = text[..upper].char_indices().rev().find(|(_, c)| is_lower(*c))?;
    Some(at + last.len_utf8())
}

/// ` ?[^\s\p{L}\p{N}]+[ENDS]*|\s*[\r\n]+|\s+(?!\S)|\s+`
fn symbols_or_space(text: &str, ends: &[char]) -> usize {
    let after_space = text.strip_prefix(' ').unwrap_or(text);
    let symbols = span(after_space, is_symbol);
    if symbols > 0 {
        let ends = span(&after_space[symbols..], |c| ends.contains(&c));
        return text.len() - after_space.len() + symbols + ends;
    }
    let space = span(text, char::is_whitespace);
    match text[..space].rfind(['\r', '\n']) {
        Some(last) => last + 1,
        None => whitespace(text),
    }
}

/// `\s+(?!\S)|\s+`: white space, but the last character belongs to the following word.
fn whitespace(text: &str) -> usize {
    let space = span(text, char::is_whitespace);
    let last = text[..space].chars().next_back().map_or(0, char::len_utf8);
    if space == text.len() || space == last { space } else { space - last }
}

/// `'s|'t|'re|'ve|'m|'ll|'d`, where `same` compares a character with a letter.
fn contraction(text: &str, same: impl Fn(char, char) -> bool) -> Option<usize> {
    let rest = text.strip_prefix('\'')?;
    ["s", "t", "re", "ve", "m", "ll", "d"].into_iter().find_map(|ending| {
        let mut chars = rest.chars();
        ending
            .chars()
            .all(|letter| chars.next().is_some_and(|c| same(c, letter)))
            .then(|| text.len() - chars.as_str().len())
    })
}

/// Length in bytes of the longest prefix whose characters are all in `class`.
fn span(text: &str, class: impl Fn(char) -> bool) -> usize {
    text.find(|c| !class(c)).unwrap_or(text.len())
}

/// `\p{L}`
fn is_letter(c: char) -> bool {
    if c.is_ascii() { c.is_ascii_alphabetic() } else { c.general_category_group() == GeneralCategoryGroup::Letter }
}

/// `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`
fn is_upper(c: char) -> bool {
    use GeneralCategory::{LowercaseLetter, ModifierLetter, OtherLetter, TitlecaseLetter, UppercaseLetter};
    match c.general_category() {
        UppercaseLetter | TitlecaseLetter | ModifierLetter | OtherLetter => true,
        LowercaseLetter => false,
        other => is_mark(other),
    }
}

/// `[\p{Ll}\p{Lm}\p{Lo}\p{M}]`
fn is_lower(c: char) -> bool {
    use GeneralCategory::{LowercaseLetter, ModifierLetter, OtherLetter};
    match c.general_category() {
        LowercaseLetter | ModifierLetter | OtherLetter => true,
        other => is_mark(other),
    }
}

/// `\p{M}`
fn is_mark(category: GeneralCategory) -> bool {
    use GeneralCategory::{EnclosingMark, NonspacingMark, SpacingMark};
    matches!(category, EnclosingMark | NonspacingMark | SpacingMark)
}

/// `[^\s\p{L}\p{N}]`
fn is_symbol(c: char) -> bool {
    !c.is_whitespace() && !c.is_numeric() && !is_letter(c)
}

/// `[\p{P}\$\+<=>\^~\|]`
fn is_default_punctuation(c: char) -> bool {
    matches!(c, '$' | '+' | '<' | '=' | '>' | '^' | '~' | '|')
        || c.general_category_group() == GeneralCategoryGroup::Punctuation
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    fn split(name: &str, text: &str) -> Vec<String> {
        let mut words = Vec::new();
        PreTokenizer::from_name(name).unwrap().for_each(text, &mut |word| words.push(word.to_string()));
        assert_eq!(words.concat(), text, "no byte may be lost");
        words
    }

    #[test]
    fn words_are_cut_as_the_names_say() {
        assert_eq!(split("gpt-2", "I'll  pay 1234!\n\nOK"), ["I", "'ll", " ", " pay", " 1234", "!", "\n", "\n", "OK"]);
        assert_eq!(
            split("llama-bpe", "I'LL  pay 1234!\n\nOK"),
            ["I", "'LL", " ", " pay", " ", "123", "4", "!\n\n", "OK"]
        );
        assert_eq!(split("qwen2", "v12 \n x"), ["v", "1", "2", " \n", " x"]);
        assert_eq!(split("smollm", "a 12b"), ["a", " ", "1", "2", "b"]);
        assert_eq!(split("default", "it's 12345"), ["it", "'", "s", " ", "123", "45"]);
        assert_eq!(split("tekken", "HTTPServer12 a/b"), ["HTTPServer", "1", "2", " a", "/b"]);
        assert_eq!(split("llama-bpe", "  "), ["  "]);
        assert_eq!(PreTokenizer::from_name("no such name"), None);
    }
}
