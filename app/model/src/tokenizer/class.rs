//! Character classes of [`super::pattern`].

use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

/// A set of characters.
#[derive(Clone, Debug, Default)]
pub(super) struct Class {
    /// Characters below 128, with the negation and the intersection applied.
    ascii: u128,
    members: Members,
    negated: bool,
    /// `[…&&…]`
    and: Option<Box<Class>>,
}

#[derive(Clone, Debug, Default)]
struct Members {
    ranges: Vec<(char, char)>,
    /// A bit for each general category.
    categories: u32,
    whitespace: bool,
    not_whitespace: bool,
    han: bool,
}

impl Class {
    pub(super) fn contains(&self, c: char) -> bool {
        if c.is_ascii() { self.ascii >> u32::from(c) & 1 == 1 } else { self.contains_slow(c) }
    }

    fn contains_slow(&self, c: char) -> bool {
        let members = &self.members;
        let inside = members.ranges.iter().any(|&(from, to)| (from..=to).contains(&c))
            || (members.categories != 0 && members.categories & bit(c.general_category()) != 0)
            || (members.whitespace && c.is_whitespace())
            || (members.not_whitespace && !c.is_whitespace())
            || (members.han && is_han(c));
        inside != self.negated && self.and.as_ref().is_none_or(|and| and.contains_slow(c))
    }

    /// The end of the characters of this class from a byte on, at most `max`, and their number.
    pub(super) fn run_end(&self, text: &str, at: usize, max: usize) -> (usize, usize) {
        let (mut end, mut count) = (at, 0);
        for c in text[at..].chars().take(max).take_while(|&c| self.contains(c)) {
            end += c.len_utf8();
            count += 1;
        }
        (end, count)
    }

    fn finish(mut self) -> Self {
        self.ascii = (0..128u8).filter(|&c| self.contains_slow(char::from(c))).fold(0, |set, c| set | 1 << c);
        self
    }
}

/// Parses one class or character at the start of a pattern.
pub(super) struct Parser<'a> {
    pub(super) rest: &'a str,
    /// Letters stand for both cases.
    pub(super) fold: bool,
}

impl Parser<'_> {
    /// `[…]`, `\s`, `\p{L}`, or a character.
    pub(super) fn atom(&mut self) -> Class {
        if self.take("[") {
            return self.set();
        }
        let mut class = Class::default();
        self.member(&mut class.members);
        class.finish()
    }

    /// What follows `[`.
    fn set(&mut self) -> Class {
        let mut class = Class { negated: self.take("^"), ..Class::default() };
        while !self.take("]") {
            if self.take("&&[") {
                class.and = Some(Box::new(self.set()));
            } else {
                self.member(&mut class.members);
            }
        }
        class.finish()
    }

    fn member(&mut self, members: &mut Members) {
        if self.take(r"\p{") {
            let (name, rest) = self.rest.split_once('}').unwrap_or((self.rest, ""));
            self.rest = rest;
            match categories(name) {
                Some(categories) => members.categories |= categories,
                None if name == "Han" => members.han = true,
                None => panic!("{name} is an unknown category"),
            }
        } else if self.take(r"\s") {
            members.whitespace = true;
        } else if self.take(r"\S") {
            members.not_whitespace = true;
        } else {
            let from = self.char();
            let is_range = self.rest.starts_with('-') && !self.rest.starts_with("-]");
            let to = if is_range && self.take("-") { self.char() } else { from };
            members.ranges.push((from, to));
            if self.fold && from == to {
                members.ranges.extend(cases(from).map(|c| (c, c)));
            }
        }
    }

    fn char(&mut self) -> char {
        let escaped = self.take("\\");
        let mut chars = self.rest.chars();
        let c = chars.next().unwrap_or_else(|| panic!("the pattern ends too early"));
        self.rest = chars.as_str();
        match c {
            'r' if escaped => '\r',
            'n' if escaped => '\n',
            c => {
                assert!(!(escaped && c.is_ascii_alphanumeric()), "\\{c} is unknown");
                c
            }
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

/// The other case of a letter; Unicode's simple folding also maps the long s to s.
fn cases(c: char) -> impl Iterator<Item = char> {
    [c.to_ascii_uppercase(), c.to_ascii_lowercase()].into_iter().chain((c == 's').then_some('ſ'))
}

fn bit(category: GeneralCategory) -> u32 {
    1 << category as u32
}

/// The general categories of a name.
fn categories(name: &str) -> Option<u32> {
    use GeneralCategory::*;
    let list: &[GeneralCategory] = match name {
        "L" => &[UppercaseLetter, LowercaseLetter, TitlecaseLetter, ModifierLetter, OtherLetter],
        "Lu" => &[UppercaseLetter],
        "Ll" => &[LowercaseLetter],
        "Lt" => &[TitlecaseLetter],
        "Lm" => &[ModifierLetter],
        "Lo" => &[OtherLetter],
        "M" => &[NonspacingMark, SpacingMark, EnclosingMark],
        "N" => &[DecimalNumber, LetterNumber, OtherNumber],
        "Nd" => &[DecimalNumber],
        "P" => &[
            ConnectorPunctuation,
            DashPunctuation,
            OpenPunctuation,
            ClosePunctuation,
            InitialPunctuation,
            FinalPunctuation,
            OtherPunctuation,
        ],
        "S" => &[MathSymbol, CurrencySymbol, ModifierSymbol, OtherSymbol],
        _ => return None,
    };
    Some(list.iter().fold(0, |set, &category| set | bit(category)))
}

/// The script Han (Unicode 16, Scripts.txt).
fn is_han(c: char) -> bool {
    matches!(u32::from(c),
        0x2e80..=0x2e99 | 0x2e9b..=0x2ef3 | 0x2f00..=0x2fd5 | 0x3005 | 0x3007 | 0x3021..=0x3029 | 0x3038..=0x303b
        | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xf900..=0xfa6d | 0xfa70..=0xfad9 | 0x16fe2..=0x16fe3 | 0x16ff0..=0x16ff1
        | 0x20000..=0x2a6df | 0x2a700..=0x2b739 | 0x2b740..=0x2b81d | 0x2b820..=0x2cea1 | 0x2ceb0..=0x2ebe0
        | 0x2ebf0..=0x2ee5d | 0x2f800..=0x2fa1d | 0x30000..=0x3134a | 0x31350..=0x323af)
}
