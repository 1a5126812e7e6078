//! Splits text into words before byte-level BPE, by a rule of [`super::rules`].

use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

use super::pattern::Pattern;
use super::rules::{self, Rule, Step};

/// A rule, ready to use.
#[derive(Clone, Debug)]
pub(super) struct PreTokenizer {
    steps: Vec<Compiled>,
}

#[derive(Clone, Debug)]
enum Compiled {
    Pattern(Pattern),
    NumbersFromRight,
    DecimalsFromRight,
    WholeNumbersFromRight,
}

impl PreTokenizer {
    pub(super) fn new(rule: &Rule) -> Self {
        let compile = |step: &Step| match step {
            Step::Pattern(source) => Compiled::Pattern(Pattern::new(source)),
            Step::NumbersFromRight => Compiled::NumbersFromRight,
            Step::DecimalsFromRight => Compiled::DecimalsFromRight,
            Step::WholeNumbersFromRight => Compiled::WholeNumbersFromRight,
        };
        Self { steps: rule.steps.iter().map(compile).collect() }
    }

    /// The rule that old files without a name mean.
    pub(super) fn unnamed() -> Self {
        Self::new(&rules::RULES[0])
    }

    /// Calls `each` for every word in order; the words concatenate to the text.
    pub(super) fn for_each(&self, text: &str, each: &mut dyn FnMut(&str)) {
        apply(&self.steps, text, each);
    }
}

fn apply(steps: &[Compiled], text: &str, each: &mut dyn FnMut(&str)) {
    let Some((step, rest)) = steps.split_first() else { return each(text) };
    match step {
        Compiled::Pattern(pattern) => pattern.split(text, &mut |piece| apply(rest, piece, each)),
        Compiled::NumbersFromRight => runs(text, char::is_numeric, &mut |run, numeric, _| {
            if numeric { threes(run, &mut |piece| apply(rest, piece, each)) } else { apply(rest, run, each) }
        }),
        Compiled::DecimalsFromRight => {
            let mut from = 0;
            let mut cut = |at: usize| {
                if from < at {
                    apply(rest, &text[from..at], each);
                    from = at;
                }
            };
            runs(text, is_digit, &mut |run, digits, end| {
                let count = run.chars().count();
                let indices = run.char_indices().enumerate();
                let starts = indices.filter(|(index, _)| digits && (count - index).is_multiple_of(3));
                starts.for_each(|(_, (at, _))| cut(end - run.len() + at));
            });
            cut(text.len());
        }
        Compiled::WholeNumbersFromRight => {
            // Digits before a letter stay with what surrounds them.
            let mut from = 0;
            runs(text, is_digit, &mut |run, digits, end| {
                if digits && !text[end..].starts_with(is_word_character) {
                    let start = end - run.len();
                    if from < start {
                        apply(rest, &text[from..start], each);
                    }
                    threes(run, &mut |piece| apply(rest, piece, each));
                    from = end;
                }
            });
            if from < text.len() {
                apply(rest, &text[from..], each);
            }
        }
    }
}

/// Splits a text into runs of characters inside and outside of one class; also says where each ends.
fn runs(text: &str, class: impl Fn(char) -> bool, each: &mut dyn FnMut(&str, bool, usize)) {
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let of_class = class(first);
        let end = text[at..].find(|c| class(c) != of_class).map_or(text.len(), |len| at + len);
        each(&text[at..end], of_class, end);
        at = end;
    }
}

/// Pieces of three characters, counted from the end.
fn threes(run: &str, each: &mut dyn FnMut(&str)) {
    let count = run.chars().count();
    let mut start = 0;
    for (index, (at, _)) in run.char_indices().enumerate().skip(1) {
        if (count - index).is_multiple_of(3) {
            each(&run[start..at]);
            start = at;
        }
    }
    each(&run[start..]);
}

/// `\d`
fn is_digit(c: char) -> bool {
    c.general_category() == GeneralCategory::DecimalNumber
}

/// `\w` of Oniguruma, which adds the superscripts and fractions of Latin-1.
fn is_word_character(c: char) -> bool {
    use GeneralCategory::{ConnectorPunctuation, DecimalNumber, EnclosingMark, NonspacingMark, SpacingMark};
    c.is_alphabetic()
        || matches!(c, '²' | '³' | '¹' | '¼'..='¾')
        || matches!(
            c.general_category(),
            ConnectorPunctuation | DecimalNumber | EnclosingMark | NonspacingMark | SpacingMark
        )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use proptest::prelude::*;
    use std::sync::LazyLock;
    use tokenizers::{OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer as _};

    fn words(split: &PreTokenizer, text: &str) -> Vec<String> {
        let mut words = Vec::new();
        split.for_each(text, &mut |word| words.push(word.to_string()));
        assert_eq!(words.concat(), text, "no byte may be lost");
        words
    }

    fn split(name: &str, text: &str) -> Vec<String> {
        words(&PreTokenizer::new(rules::find(name).unwrap()), text)
    }

    #[test]
    fn words_are_cut_as_the_names_say() {
        assert_eq!(split("gpt-2", "I'll  pay 1234!\n\nOK"), ["I", "'ll", " ", " pay", " 1234", "!", "\n", "\n", "OK"]);
        assert_eq!(
            split("llama-bpe", "I'LL  pay 1234!\n\nOK"),
            ["I", "'LL", " ", " pay", " ", "123", "4", "!\n\n", "OK"]
        );
        assert_eq!(split("qwen2", "v12 \n x"), ["v", "1", "2", " \n", " x"]);
        assert_eq!(split("qwen2", "e\u{301}a"), ["e", "\u{301}a"]);
        assert_eq!(split("qwen35", "e\u{301}a"), ["e\u{301}a"], "marks belong to words");
        assert_eq!(split("smollm", "a 12b"), ["a", " ", "1", "2", "b"]);
        assert_eq!(split("default", "it's 12345"), ["it", "'", "s", " ", "123", "45"]);
        assert_eq!(split("tekken", "HTTPServer12 a/b"), ["HTTPServer", "1", "2", " a", "/b"]);
        assert_eq!(split("gpt-4o", "theyLL'll 1234"), ["they", "LL'll", " ", "123", "4"]);
        assert_eq!(split("llama-bpe", "  "), ["  "]);
        assert_eq!(split("deepseek-v3", "x12345年!ab"), ["x", "123", "45", "年", "!ab"]);
        assert_eq!(split("kimi-k2", "a年b"), ["a", "年", "b"]);
        assert_eq!(split("exaone-moe", "a b  c"), ["a b", " ", " c"]);
        assert_eq!(split("afmoe", "12345 678"), ["12", "345", " ", "678"]);
        assert_eq!(split("tiny_aya", "12345 1234a 1234_"), ["12", "345", " ", "123", "4", "a", " ", "123", "4", "_"]);
        assert_eq!(rules::find("no such name"), None);
    }

    #[test]
    fn every_rule_has_names_of_its_own_and_compiles() {
        let mut names: Vec<&str> = rules::RULES.iter().flat_map(|rule| rule.names.iter().copied()).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "a name stands for two rules");
        for rule in rules::RULES {
            PreTokenizer::new(rule);
        }
    }

    /// Takes a second; if a rule looked at a run again from each of its characters, it would take an hour.
    #[test]
    fn no_rule_is_slow_on_long_runs() {
        let runs =
            [" ", "a", "A", "1", "'", "\n", "e\u{301}", "\u{301}", "年", " \n", "a ", "1a", "२", "\u{3000}", "!", "ſ'"];
        for rule in rules::RULES {
            let split = PreTokenizer::new(rule);
            for run in runs {
                for end in ["", "x", "1"] {
                    let text = run.repeat(20_000) + end;
                    let mut bytes = 0;
                    split.for_each(&text, &mut |word| bytes += word.len());
                    assert_eq!(bytes, text.len(), "{:?}: {run:?}", rule.names);
                }
            }
        }
    }

    /// The same rule in a full engine.
    fn reference(rule: &Rule) -> Vec<tokenizers::pre_tokenizers::split::Split> {
        use tokenizers::SplitDelimiterBehavior::Isolated;
        use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
        let regexes = rule.steps.iter().flat_map(|step| match step {
            Step::Pattern(source) => vec![*source],
            Step::NumbersFromRight => vec![r"\p{N}+", r"\p{N}{1,3}(?=(?:\p{N}{3})*$)"],
            Step::DecimalsFromRight => vec![r"(?=(\d{3})+(?!\d))"],
            Step::WholeNumbersFromRight => vec![r"\d{1,3}(?=(?:\d{3})*(?![[\w²³¹¼-¾]--[\x{200c}\x{200d}]]))"],
        });
        regexes.map(|regex| Split::new(SplitPattern::Regex(regex.into()), Isolated, false).unwrap()).collect()
    }

    fn reference_words(steps: &[tokenizers::pre_tokenizers::split::Split], text: &str) -> Vec<String> {
        let mut pieces = PreTokenizedString::from(text);
        for step in steps {
            step.pre_tokenize(&mut pieces).unwrap();
        }
        let splits = pieces.get_splits(OffsetReferential::Original, OffsetType::Byte);
        splits.into_iter().map(|(word, ..)| word.to_owned()).filter(|word| !word.is_empty()).collect()
    }

    /// Random Unicode among the characters that rules are about.
    fn text() -> impl Strategy<Value = String> {
        "(\\PC|\\s|[ '\r\na-z0-9A-Z_]|'[sStTmMdD]|'ll|'RE| the|[0-9]{4,7}|[ \n]{3,9}|[\u{301}ſ١½Ⅷ年の가ÀéǅʰΑα!/\\[،]){0,50}"
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn every_rule_splits_as_a_full_engine_does(text in text()) {
            static RULES: LazyLock<Vec<(PreTokenizer, Vec<tokenizers::pre_tokenizers::split::Split>)>> =
                LazyLock::new(|| rules::RULES.iter().map(|rule| (PreTokenizer::new(rule), reference(rule))).collect());
            for ((own, reference), rule) in RULES.iter().zip(rules::RULES) {
                prop_assert_eq!(words(own, &text), reference_words(reference, &text), "{:?}: {:?}", rule.names, text);
            }
        }
    }
}
