//! A small regular-expression matcher, for the rules of [`super::rules`] only: a regex engine's tables would make up most
//! of this crate's size in a page.
//!
//! It knows alternatives, classes with `\p{…}`, ranges, `&&` and negation, `?`, `*`, `+` and `{n,m}` (also possessive), groups
//! (`(?:…)`, `(?i:…)`), lookahead and `$`. Only repeated characters backtrack; a group that has matched stays as it is, which
//! makes no difference in these rules (a test compares them all with a full engine). Time is linear in the text: an
//! alternative that fails over a run of characters is not tried again within that run.

use super::class::{Class, Parser as ClassParser};

/// A compiled pattern.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    alternatives: Vec<Vec<Item>>,
}

#[derive(Clone, Debug)]
struct Item {
    atom: Atom,
    min: usize,
    max: usize,
    possessive: bool,
}

#[derive(Clone, Debug)]
enum Atom {
    Char(Class),
    Group(Pattern),
    /// `(?!…)` if negative, else `(?=…)`.
    Ahead {
        negative: bool,
        pattern: Pattern,
    },
    /// `$`
    End,
}

impl Pattern {
    /// Compiles a rule.
    ///
    /// # Panics
    /// On syntax that this matcher does not know. Patterns are constants, and a test compiles them all.
    pub(super) fn new(source: &str) -> Self {
        let mut parser = Parser { rest: source, fold: false };
        let pattern = parser.alternatives();
        assert!(parser.rest.is_empty(), "{} is left of the pattern {source}", parser.rest);
        pattern
    }

    /// Calls `each` for every match and for the text between them, in order.
    pub(super) fn split(&self, text: &str, each: &mut dyn FnMut(&str)) {
        // Up to where each alternative cannot match.
        let mut hopeless = vec![0; self.alternatives.len()];
        let (mut gap, mut at) = (0, 0);
        while at < text.len() {
            match self.match_from(text, at, &mut hopeless).filter(|&end| end > at) {
                Some(end) => {
                    if gap < at {
                        each(&text[gap..at]);
                    }
                    each(&text[at..end]);
                    (gap, at) = (end, end);
                }
                None => at += first_char(text, at).map_or(1, char::len_utf8),
            }
        }
        if gap < text.len() {
            each(&text[gap..]);
        }
    }

    fn match_from(&self, text: &str, at: usize, hopeless: &mut [usize]) -> Option<usize> {
        for (alternative, hopeless) in self.alternatives.iter().zip(hopeless) {
            if at < *hopeless {
                continue;
            }
            let found = match_items(alternative, text, at);
            if found.is_some() {
                return found;
            }
            // The tries from a later start in the same run are a part of those that have just failed.
            if let Some(Item { atom: Atom::Char(class), max: usize::MAX, .. }) = alternative.first() {
                *hopeless = class.run_end(text, at, usize::MAX).0;
            }
        }
        None
    }

    fn match_at(&self, text: &str, at: usize) -> Option<usize> {
        self.alternatives.iter().find_map(|alternative| match_items(alternative, text, at))
    }
}

/// The end of the first match of a sequence at a byte of the text. Recursion is as deep as the sequence is long.
fn match_items(items: &[Item], text: &str, at: usize) -> Option<usize> {
    let Some((item, rest)) = items.split_first() else { return Some(at) };
    match &item.atom {
        Atom::End => (at == text.len()).then(|| match_items(rest, text, at))?,
        Atom::Ahead { negative, pattern } => {
            (pattern.match_at(text, at).is_some() != *negative).then(|| match_items(rest, text, at))?
        }
        Atom::Group(group) => {
            let (mut end, mut count) = (at, 0);
            while count < item.max {
                let Some(next) = group.match_at(text, end).filter(|&next| next > end) else { break };
                (end, count) = (next, count + 1);
            }
            (count >= item.min).then(|| match_items(rest, text, end))?
        }
        Atom::Char(class) => {
            let (mut end, mut count) = class.run_end(text, at, item.max);
            loop {
                if count < item.min {
                    return None;
                }
                let found = match_items(rest, text, end);
                if found.is_some() || item.possessive || count == item.min {
                    return found;
                }
                end -= text[..end].chars().next_back().map_or(0, char::len_utf8);
                count -= 1;
            }
        }
    }
}

fn first_char(text: &str, at: usize) -> Option<char> {
    text[at..].chars().next()
}

/// A parser by recursive descent.
struct Parser<'a> {
    rest: &'a str,
    /// Inside `(?i:…)`.
    fold: bool,
}

impl Parser<'_> {
    fn alternatives(&mut self) -> Pattern {
        let mut alternatives = vec![self.sequence()];
        while self.take("|") {
            alternatives.push(self.sequence());
        }
        Pattern { alternatives }
    }

    fn sequence(&mut self) -> Vec<Item> {
        let mut items = Vec::new();
        while !self.rest.is_empty() && !self.rest.starts_with(['|', ')']) {
            let atom = self.atom();
            let (min, max) = self.repeats();
            let possessive = self.take("+");
            items.push(Item { atom, min, max, possessive });
        }
        items
    }

    fn atom(&mut self) -> Atom {
        let fold = self.fold;
        for (opening, ahead) in [("(?!", Some(true)), ("(?=", Some(false)), ("(?i:", None), ("(?:", None), ("(", None)]
        {
            if !self.take(opening) {
                continue;
            }
            self.fold |= opening == "(?i:";
            let pattern = self.alternatives();
            self.fold = fold;
            assert!(self.take(")"), "a group is open before {}", self.rest);
            return match ahead {
                Some(negative) => Atom::Ahead { negative, pattern },
                None => Atom::Group(pattern),
            };
        }
        if self.take("$") {
            return Atom::End;
        }
        let mut classes = ClassParser { rest: self.rest, fold };
        let class = classes.atom();
        self.rest = classes.rest;
        Atom::Char(class)
    }

    /// `?`, `*`, `+`, `{n}`, `{n,m}` or once.
    fn repeats(&mut self) -> (usize, usize) {
        for (sign, range) in [("?", (0, 1)), ("*", (0, usize::MAX)), ("+", (1, usize::MAX))] {
            if self.take(sign) {
                return range;
            }
        }
        let Some((range, rest)) = self.rest.strip_prefix('{').and_then(|rest| rest.split_once('}')) else {
            return (1, 1);
        };
        let (min, max) = range.split_once(',').unwrap_or((range, range));
        match (min.parse(), max.parse()) {
            (Ok(min), Ok(max)) => {
                self.rest = rest;
                (min, max)
            }
            _ => panic!("{{{range}}} is no number of repeats"),
        }
    }

    fn take(&mut self, prefix: &str) -> bool {
        match self.rest.strip_prefix(prefix) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(pattern: &str, text: &str) -> Vec<String> {
        let mut parts = Vec::new();
        Pattern::new(pattern).split(text, &mut |part| parts.push(part.to_owned()));
        parts
    }

    #[test]
    fn matches_and_gaps_alternate() {
        assert_eq!(split("b+", "abbcb"), ["a", "bb", "c", "b"]);
        assert_eq!(split(r"\s+(?!\S)|\s+", "a   b "), ["a", "  ", " ", "b", " "]);
        assert_eq!(split(r"\p{N}{1,3}", "x12345"), ["x", "123", "45"]);
        assert_eq!(split(r"(?i:'s|'ll)?x", "'LLx'sx'x"), ["'LLx", "'sx", "'", "x"]);
        assert_eq!(split(r"\s+$", " a  "), [" a", "  "]);
        assert_eq!(split(r"[a-z&&[^c]]+", "abcd"), ["ab", "c", "d"]);
        assert_eq!(split(r"a?+ab", "aab ab"), ["aab", " ab"]);
        assert_eq!(split("", "ab"), ["ab"]);
        assert_eq!(split("x", ""), [""; 0]);
    }

    /// Each of these would be tried again from every space; the whole takes milliseconds if it is not.
    #[test]
    fn a_run_that_fails_is_not_tried_again_within_it() {
        let text = " ".repeat(400_000) + "x";
        assert_eq!(split(r"\s+$", &text).len(), 1);
        assert_eq!(split(r"\s*[\r\n]+|\s{4}(?!\S)|\s{1}", &text).len(), 100_000 + 3 + 1);
    }
}
