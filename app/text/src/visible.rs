//! Makes strangers' text fully visible and harmless: it must neither control a terminal nor reorder the words beside it.

use std::fmt::Write as _;

/// The stand-in for a character that has no picture of its own.
const STAND_IN: char = '\u{fffd}';

/// How many lines a text may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lines {
    /// A name, a title or a sentence: a line break in it would start a line that looks like the program's own.
    One,
    /// An answer, or the program's own text.
    Many,
}

/// The text with a stand-in for each character that would do anything but appear.
#[must_use]
pub fn visible(text: &str, lines: Lines) -> String {
    text.chars().map(|letter| visible_letter(letter, lines)).collect()
}

/// JSON with the same meaning: such characters can only occur in its strings, where they are escaped.
#[must_use]
pub fn visible_json(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for letter in json.chars() {
        if visible_letter(letter, Lines::Many) == letter {
            escaped.push(letter);
            continue;
        }
        for unit in letter.encode_utf16(&mut [0; 2]) {
            // Writing to a string cannot fail.
            let _ = write!(escaped, "\\u{unit:04x}");
        }
    }
    escaped
}

/// The same for a title that somebody else chose, cut to this many characters.
#[must_use]
pub fn strangers_title(title: &str, letters: usize) -> String {
    let title = visible(title.trim(), Lines::One);
    match title.char_indices().nth(letters) {
        Some((end, _)) => format!("{}…", title[..end].trim_end()),
        None => title,
    }
}

/// The character itself, or its stand-in.
#[must_use]
pub fn visible_letter(letter: char, lines: Lines) -> char {
    match letter {
        '\n' | '\t' if lines == Lines::Many => letter,
        '\t' => ' ',
        // Pictures of control characters, such as ␛.
        '\0'..='\x1f' => char::from_u32(0x2400 + u32::from(letter)).unwrap_or(STAND_IN),
        '\x7f' => '\u{2421}',
        _ if is_harmful(letter) => STAND_IN,
        _ => letter,
    }
}

/// Characters above ASCII that control a terminal, reorder others or are hidden. Joiners and variation selectors are not among them:
/// scripts and emoji need those, and they change only their neighbours' shapes.
fn is_harmful(letter: char) -> bool {
    matches!(letter,
        // C1: 0x9b begins a command as ESC [ does.
        '\u{80}'..='\u{9f}'
        // Embeddings, overrides and isolates of direction, and marks of it.
        | '\u{200e}' | '\u{200f}' | '\u{61c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        // Separators that some programs treat as the end of a line.
        | '\u{2028}' | '\u{2029}'
        // Nothing to see: zero width, fillers, deprecated controls, tags.
        | '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}' | '\u{200b}'
        | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff9}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_of_a_stranger_is_short_and_reorders_nothing() {
        assert_eq!(strangers_title("  Tuesday\u{202e}\n ", 40), "Tuesday\u{fffd}");
        assert_eq!(strangers_title(&"ab ".repeat(100), 6), "ab ab…");
        assert_eq!(strangers_title("日本語", 3), "日本語");
        assert_eq!(strangers_title("a\nYour own computer", 40), "a␊Your own computer");
    }
}
