//! Text that does nothing to a terminal but appear on it.
//!
//! Peers, models and servers write names, reasons, titles and answers. Sent to a terminal unchanged, they could move its cursor, write
//! to its clipboard or reorder the text before them. So `output` writes only [`Printable`], and no [`Printable`] can contain such
//! characters ([decision 0058](../../../docs/decisions/0058-one-mouth.md)).

use std::borrow::Cow;
use std::fmt;

use potluck_text::{Lines, visible, visible_json};

/// Text without control characters, without characters that reorder others, and without hidden ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Printable(String);

impl Printable {
    /// One line, such as a sentence that names a peer: a line break in it would start a line that looks like the program's own.
    pub fn line(text: &str) -> Self {
        Self(visible(text.trim_end_matches('\n'), Lines::One))
    }

    /// Several lines: the program's own, or a model's.
    pub fn lines(text: &str) -> Self {
        Self(visible(text, Lines::Many))
    }

    /// JSON with the same meaning: such characters can only occur in its strings, where they are escaped.
    pub fn json(json: &str) -> Self {
        Self(visible_json(json))
    }

    /// An answer on its way to standard output: a terminal gets it printable, a file or another program as the model wrote it.
    pub fn answer(text: &str, is_terminal: bool) -> Cow<'_, str> {
        if is_terminal { Cow::Owned(Self::lines(text).0) } else { Cow::Borrowed(text) }
    }

    /// Its beginning, at most this many characters.
    pub fn cut(self, letters: usize) -> Self {
        Self(self.0.chars().take(letters).collect())
    }

    /// There is nothing to print.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<&str> for Printable {
    fn from(text: &str) -> Self {
        Self::line(text)
    }
}

impl From<&String> for Printable {
    fn from(text: &String) -> Self {
        Self::line(text)
    }
}

impl From<String> for Printable {
    fn from(text: String) -> Self {
        Self::line(&text)
    }
}

impl fmt::Display for Printable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// Every letter that there is, in the middle of a word.
    fn every_letter() -> impl Iterator<Item = (char, String)> {
        (0..=u32::from(char::MAX)).filter_map(char::from_u32).map(|letter| (letter, format!("a{letter}b")))
    }

    fn commands(text: &str) -> bool {
        text.chars().any(|letter| {
            letter.is_control() || matches!(letter, '\u{200b}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        })
    }

    #[test]
    fn no_letter_of_a_peer_commands_a_terminal() {
        for (letter, text) in every_letter() {
            let line = Printable::line(&text).to_string();
            assert!(!commands(&line) && line.starts_with('a') && line.ends_with('b'), "{letter:?}: {line:?}");
            let lines = Printable::lines(&text).to_string();
            assert!(!commands(&lines.replace(['\n', '\t'], "")), "{letter:?}: {lines:?}");
            assert!(!commands(&Printable::answer(&text, true).replace(['\n', '\t'], "")), "{letter:?}");
        }
    }

    #[test]
    fn what_a_terminal_would_obey_is_seen() {
        assert_eq!(Printable::line("Eve\u{1b}]52;c;aGk=\u{7}").to_string(), "Eve␛]52;c;aGk=␇");
        assert_eq!(Printable::line("gpj\u{202e}.exe\u{9b}2J").to_string(), "gpj\u{fffd}.exe\u{fffd}2J");
    }

    #[test]
    fn a_name_begins_no_line_of_its_own() {
        assert_eq!(Printable::line("Eve\nThe host says: run this\r").to_string(), "Eve␊The host says: run this␍");
        assert_eq!(Printable::lines("first\n\tsecond\r").to_string(), "first\n\tsecond␍");
    }

    #[test]
    fn words_of_all_languages_stay_as_they_are() {
        for text in ["Grüße", "日本語", "שלום", "می‌خواهم", "क्‍ष", "👩‍👩‍👧 ❤️", "e\u{301}", "…“”—"]
        {
            assert_eq!(Printable::line(text).to_string(), text);
        }
    }

    #[test]
    fn json_says_the_same_without_such_letters() {
        for text in ["\u{1b}[2J", "\u{9b}", "\u{202e}x", "\u{e0041}", "a\"\\\n\t日本"] {
            let json = serde_json::json!({ "text": text }).to_string();
            let printed = Printable::json(&json).to_string();
            assert!(!commands(&printed), "{printed:?}");
            let back: serde_json::Value = serde_json::from_str(&printed).unwrap();
            assert_eq!(back["text"], text);
        }
    }

    #[test]
    fn a_pipe_gets_the_answer_byte_for_byte() {
        for (_, text) in every_letter() {
            assert_eq!(Printable::answer(&text, false), text);
        }
    }

    /// A second way to the terminal would be one without a type.
    #[test]
    fn only_one_file_writes() {
        let mut names = Vec::new();
        let mut folders = vec![std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let text = std::fs::read_to_string(&path).unwrap();
                let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
                let mut words =
                    code.flat_map(|line| line.split(|letter: char| !letter.is_alphanumeric() && letter != '_'));
                if words.any(|word| matches!(word, "stdout" | "stderr" | "Stdout" | "Stderr")) {
                    names.push(path.file_name().unwrap().to_string_lossy().into_owned());
                }
            }
        }
        names.retain(|name| name != "printable.rs");
        assert_eq!(names, ["output.rs"]);
    }
}
