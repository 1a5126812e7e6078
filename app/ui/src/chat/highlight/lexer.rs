//! Tells the parts of code apart, line by line.

use std::ops::Range;

use super::{
    Kind,
    grammar::{Form, Grammar, Quotes, Reach},
};

/// Longer lines, in bytes, are not highlighted: they are generated.
const LONGEST_LINE: usize = 2_000;

/// A piece of a line, in bytes.
pub type Piece = (Kind, Range<usize>);

/// What the next line begins in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Within {
    /// Nothing.
    #[default]
    Nothing,
    /// A comment.
    Comment,
    /// The string with this index among the grammar's quotes.
    Literal(usize),
    /// A tag.
    Tag,
}

/// The pieces of a line, in order and apart from each other, and what the next line begins in.
pub fn lex(grammar: &Grammar, line: &str, within: Within) -> (Vec<Piece>, Within) {
    if line.len() > LONGEST_LINE {
        return (Vec::new(), within);
    }
    if grammar.form == Form::Diff {
        return (diff(line).map(|kind| (kind, 0..line.len())).into_iter().collect(), Within::Nothing);
    }
    let mut lexer = Lexer { grammar, line, at: 0, pieces: Vec::new(), within };
    lexer.carry_on();
    if lexer.at == 0 {
        lexer.beginning();
    }
    while lexer.at < line.len() {
        lexer.step();
    }
    (lexer.pieces, lexer.within)
}

fn diff(line: &str) -> Option<Kind> {
    match line.as_bytes().first()? {
        b'+' => Some(Kind::Added),
        b'-' => Some(Kind::Removed),
        b'@' => Some(Kind::Comment),
        _ => None,
    }
}

struct Lexer<'a> {
    grammar: &'a Grammar,
    line: &'a str,
    at: usize,
    pieces: Vec<Piece>,
    within: Within,
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        self.line.get(self.at..).unwrap_or_default()
    }

    fn take(&mut self, kind: Kind, bytes: usize) {
        let end = (self.at + bytes).min(self.line.len());
        if self.at < end {
            self.pieces.push((kind, self.at..end));
            self.at = end;
        }
    }

    fn skip(&mut self) {
        self.at += self.rest().chars().next().map_or(1, char::len_utf8);
    }

    /// What an earlier line began.
    fn carry_on(&mut self) {
        match self.within {
            Within::Comment => self.comment(0),
            Within::Literal(index) => {
                if let Some(quotes) = self.grammar.quotes.get(index) {
                    self.literal(index, quotes, 0);
                }
            }
            Within::Nothing | Within::Tag => {}
        }
    }

    /// A directive or a key.
    fn beginning(&mut self) {
        let indented = self.line.len() - self.line.trim_start_matches([' ', '\t', '-']).len();
        let rest = &self.line[indented..];
        if self.grammar.directive.is_some_and(|letter| rest.as_bytes().first() == Some(&letter)) {
            self.at = indented;
            self.take(Kind::Keyword, 1 + word(&rest[1..]));
        } else if let Form::Keys(signs) = self.grammar.form {
            let key = rest.len()
                - rest.trim_start_matches(|letter: char| letter.is_alphanumeric() || "_-.".contains(letter)).len();
            // A colon within a word makes no key: `a:hover`, `http://…`.
            let is_key = ends_key(&rest[key..], signs).is_some_and(|sign| {
                let after = &rest.as_bytes()[key..];
                after[sign - 1] != b':' || after.get(sign).is_none_or(u8::is_ascii_whitespace)
            });
            if key > 0 && is_key {
                self.at = indented;
                self.take(Kind::Keyword, key);
            } else if signs.contains(&b'=') && rest.starts_with('[') && rest.trim_end().ends_with(']') {
                self.at = indented;
                self.take(Kind::Keyword, rest.len());
            }
        }
    }

    fn step(&mut self) {
        if self.within == Within::Tag {
            return self.in_tag();
        }
        let before = self.line[..self.at].chars().next_back();
        let is_apart = before.is_none_or(|letter| !is_part_of_word(letter));
        let is_comment = |sign: &&'static str| {
            self.rest().starts_with(*sign) && (*sign != "#" || before.is_none_or(char::is_whitespace))
        };
        if let Some((open, _)) = self.grammar.block_comment.filter(|(open, _)| self.rest().starts_with(open)) {
            return self.comment(open.len());
        }
        if self.grammar.line_comments.iter().any(is_comment) {
            return self.take(Kind::Comment, usize::MAX - self.at);
        }
        if self.grammar.form == Form::Markup {
            return self.outside_of_tags();
        }
        let opened = self.grammar.quotes.iter().enumerate().find(|(_, quotes)| self.rest().starts_with(quotes.open));
        if let Some((index, quotes)) = opened {
            return self.literal(index, quotes, quotes.open.len());
        }
        let length = word(self.rest());
        match self.rest().as_bytes().first() {
            Some(b'0'..=b'9') if is_apart => {
                let number = self
                    .rest()
                    .trim_start_matches(|letter: char| letter.is_ascii_alphanumeric() || "._".contains(letter));
                self.take(Kind::Number, self.rest().len() - number.len());
            }
            _ if length > 0 && self.grammar.is_keyword(&self.rest()[..length]) => self.take(Kind::Keyword, length),
            _ if length > 0 => self.at += length,
            _ => self.skip(),
        }
    }

    /// A comment that goes on, or whose beginning has this many bytes.
    fn comment(&mut self, opening: usize) {
        let Some((_, close)) = self.grammar.block_comment else {
            self.within = Within::Nothing;
            return;
        };
        let end = self.rest().get(opening..).and_then(|rest| rest.find(close)).map(|end| opening + end + close.len());
        self.within = if end.is_some() { Within::Nothing } else { Within::Comment };
        self.take(Kind::Comment, end.unwrap_or(self.line.len()));
    }

    /// A string that goes on, or whose beginning has this many bytes.
    fn literal(&mut self, index: usize, quotes: &Quotes, opening: usize) {
        let end = end_of(quotes, self.rest(), opening);
        match (end, quotes.reach) {
            (None, Reach::Letter) => return self.skip(),
            (Some(end), Reach::Letter) if !is_letter(&self.rest()[opening..end - quotes.close.len()]) => {
                return self.skip();
            }
            (None, Reach::Lines) => self.within = Within::Literal(index),
            (None, Reach::Line) | (Some(_), _) => self.within = Within::Nothing,
        }
        let end = end.unwrap_or(self.rest().len());
        let is_key = match self.grammar.form {
            Form::Keys(signs) => ends_key(self.rest().get(end..).unwrap_or_default(), signs).is_some(),
            Form::Program | Form::Markup | Form::Diff => false,
        };
        self.take(if is_key { Kind::Keyword } else { Kind::Literal }, end);
    }

    fn outside_of_tags(&mut self) {
        let name = self.rest().strip_prefix('<').map(|rest| rest.trim_start_matches(['/', '!', '?']));
        match name.map(word) {
            Some(length @ 1..) => {
                let signs = self.rest().len() - name.map_or(0, str::len);
                self.at += signs;
                self.take(Kind::Keyword, length);
                self.within = Within::Tag;
            }
            _ => self.skip(),
        }
    }

    fn in_tag(&mut self) {
        let opened = self.grammar.quotes.iter().find(|quotes| self.rest().starts_with(quotes.open));
        if let Some(quotes) = opened {
            let end = self.rest()[1..].find(quotes.close).map_or(self.rest().len(), |end| end + 2);
            return self.take(Kind::Literal, end);
        }
        if self.rest().starts_with('>') {
            self.within = Within::Nothing;
        }
        self.skip();
    }
}

/// Bytes to the end of a string.
fn end_of(quotes: &Quotes, text: &str, opening: usize) -> Option<usize> {
    let mut at = opening;
    while at < text.len() {
        let rest = text.get(at..)?;
        if rest.starts_with(quotes.close) {
            return Some(at + quotes.close.len());
        }
        let mut letters = rest.chars();
        let letter = letters.next()?;
        at += letter.len_utf8();
        if quotes.escapes && letter == '\\' {
            at += letters.next().map_or(0, char::len_utf8);
        }
    }
    None
}

/// One letter, or one that a backslash stands before.
fn is_letter(inside: &str) -> bool {
    inside.starts_with('\\') || inside.chars().count() == 1
}

/// A sign that makes what stands before it a key.
fn ends_key(after: &str, signs: &[u8]) -> Option<usize> {
    let blanks = after.len() - after.trim_start().len();
    after.as_bytes().get(blanks).filter(|letter| signs.contains(letter)).map(|_| blanks + 1)
}

const fn is_part_of_word_byte(letter: u8) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, b'_' | b'$') || letter >= 0x80
}

fn is_part_of_word(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '$')
}

/// Bytes of the word at the beginning of a text; a word does not begin with a digit.
fn word(text: &str) -> usize {
    if text.as_bytes().first().is_none_or(u8::is_ascii_digit) {
        return 0;
    }
    text.bytes().take_while(|letter| is_part_of_word_byte(*letter)).count()
}

/// Bytes of code that are highlighted; for fuzzing.
#[cfg(feature = "fuzz")]
pub fn highlighted_bytes(language: &str, code: &str) -> usize {
    let Some(grammar) = Grammar::of(language) else { return 0 };
    let mut within = Within::Nothing;
    let mut bytes = 0;
    for line in code.split('\n') {
        let (pieces, next) = lex(grammar, line, within);
        within = next;
        let mut end = 0;
        for (_, range) in pieces {
            assert!(end <= range.start && line.get(range.clone()).is_some(), "{range:?} of {line:?}");
            end = range.end;
            bytes += range.len();
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is highlighted, by its first letter: c, l, n, k, a, r.
    fn shown(language: &str, code: &str) -> Vec<String> {
        let grammar = Grammar::of(language).unwrap_or_else(|| panic!("no grammar for {language}"));
        let (mut within, mut shown) = (Within::Nothing, Vec::new());
        for line in code.split('\n') {
            let (pieces, next) = lex(grammar, line, within);
            within = next;
            for (kind, range) in pieces {
                let letter = format!("{kind:?}").chars().next().map(|letter| letter.to_ascii_lowercase());
                shown.push(format!("{} {}", letter.unwrap_or_default(), &line[range]));
            }
        }
        shown
    }

    #[test]
    fn programs() {
        assert_eq!(
            shown(
                "python",
                "@cache\ndef f(x):  # twice\n    \"\"\"Docs\n    over lines\"\"\"\n    return x * 2.5e3 + len('a\\'b')"
            ),
            [
                "k @cache",
                "k def",
                "c # twice",
                "l \"\"\"Docs",
                "l     over lines\"\"\"",
                "k return",
                "n 2.5e3",
                "l 'a\\'b'"
            ]
        );
        assert_eq!(
            shown("rust", "fn f<'a>(x: &'a str) -> char { /* no\nend */ 'x' } // r#\nlet s = r#\"a \" b\"#;"),
            ["k fn", "c /* no", "c end */", "l 'x'", "c // r#", "k let", "l r#\"a \" b\"#"]
        );
        assert_eq!(shown("c", "#include <stdio.h>\nchar c = '\\n';"), ["k #include", "k char", "l '\\n'"]);
        assert_eq!(shown("bash", "for f in *; do echo \"$#\" ${f#a}; done # all")[..3], ["k for", "k in", "k do"]);
        assert_eq!(shown("sql", "Select 1 -- one"), ["k Select", "n 1", "c -- one"]);
    }

    #[test]
    fn keys_and_values() {
        assert_eq!(shown("json", "{\"a\": 1, \"b\":[true, \"c\"]}")[..4], ["k \"a\"", "n 1", "k \"b\"", "k true"]);
        assert_eq!(shown("yaml", "name: x # y\n- url: http://a"), ["k name", "c # y", "k url"]);
        assert_eq!(shown("toml", "[package]\nname = \"a\""), ["k [package]", "k name", "l \"a\""]);
        assert_eq!(shown("css", "a:hover {\n  color: red; /* warm */\n}"), ["k color", "c /* warm */"]);
    }

    #[test]
    fn tags_and_diffs() {
        assert_eq!(shown("html", "<!-- a -->\n<p class=\"b\">for</p>"), ["c <!-- a -->", "k p", "l \"b\"", "k p"]);
        assert_eq!(shown("diff", "@@ 1 @@\n-a\n+b\n c"), ["c @@ 1 @@", "r -a", "a +b"]);
    }

    #[test]
    fn what_does_not_end_ends_with_its_line_or_the_code() {
        assert_eq!(shown("js", "let a = \"b\nlet c"), ["k let", "l \"b", "k let"]);
        assert_eq!(shown("js", "`a\nb"), ["l `a", "l b"]);
        assert_eq!(shown("java", "/* a\nclass"), ["c /* a", "c class"]);
    }

    #[test]
    fn a_very_long_line_is_not_highlighted() {
        assert_eq!(shown("js", &"if ".repeat(2_000)), Vec::<String>::new());
    }

    #[test]
    fn pieces_are_in_order_and_end_between_letters() {
        let signs = [
            "'", "\"", "/*", "*/", "#", " ", "a", "é", "😀", "\\", "<", ">", ": ", "1", "`", "r#\"", "@", "[", "]",
            "--",
        ];
        for language in ["python", "js", "rust", "html", "json", "toml", "css", "sql", "diff", "bash"] {
            let Some(grammar) = Grammar::of(language) else { panic!("no grammar for {language}") };
            for code in 0..signs.len().pow(3) {
                let line: String = [1, 20, 400].iter().map(|place| signs[code / place % signs.len()]).collect();
                for within in [Within::Nothing, Within::Comment, Within::Literal(0), Within::Tag] {
                    let mut end = 0;
                    for (_, range) in lex(grammar, &line, within).0 {
                        let is_right =
                            end <= range.start && range.start < range.end && line.get(range.clone()).is_some();
                        assert!(is_right, "{language}, {line:?}: {range:?} after {end}");
                        end = range.end;
                    }
                }
            }
        }
    }
}
