//! Titles of links over many lines, as in `[a](b "title")`. For each line of a title the parser walks through all lines before it, so it
//! must not see where a long one begins: 64 KB of short lines would take it a billion steps.

use std::ops::Range;

/// Lines and bytes of the longest title.
const LINES: usize = 16;
const BYTES: usize = 1 << 10;

/// The first mark of each title that is too long, in order.
pub fn too_long(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let (mut address_ends, mut corner, mut title) = (Next::default(), Next::default(), Next::default());
    let mut marks: Vec<usize> = Vec::new();
    for (at, opens) in text.match_indices("](") {
        let begin = at + opens.len() + bytes[at + opens.len()..].iter().take_while(|letter| is_blank(**letter)).count();
        let end = match bytes.get(begin) {
            Some(b'<') => corner.from(bytes, begin, |letter| b">\n\r".contains(&letter)) + 1,
            _ => address_ends.from(bytes, begin, is_blank),
        };
        let mark = title.from(bytes, end, |letter| !is_blank(letter));
        let begins = bytes.get(mark).is_some_and(|letter| b"\"'(".contains(letter));
        if begins && marks.last().is_none_or(|last| *last < mark) {
            marks.push(mark);
        }
    }
    // The last one first: a mark that is hidden no longer closes the title before it.
    let mut hidden: Vec<usize> = Vec::new();
    for mark in marks.into_iter().rev() {
        if !is_short(bytes, mark, &hidden) {
            hidden.push(mark);
        }
    }
    hidden.into_iter().rev().map(|mark| mark..mark + 1).collect()
}

const fn is_blank(letter: u8) -> bool {
    letter.is_ascii_whitespace()
}

/// True if a title that begins at `mark` ends soon, or the text does. `hidden`: marks behind it that close nothing, the last one first.
fn is_short(text: &[u8], mark: usize, hidden: &[usize]) -> bool {
    let title = &text[mark..];
    let is_hidden = |at: usize| hidden.binary_search_by(|other| at.cmp(other)).is_ok();
    let closes = if title[0] == b'(' { b')' } else { title[0] };
    let (mut at, mut lines) = (1, 0);
    while at < BYTES && lines < LINES {
        match title.get(at) {
            None => return true,
            Some(b'\\') => at += 1,
            Some(letter) if *letter == closes && !is_hidden(mark + at) => return true,
            Some(b'\n' | b'\r') => lines += 1,
            Some(_) => {}
        }
        at += 1;
    }
    false
}

/// The next byte of a kind. What lies before it is looked at once, wherever it is asked for.
#[derive(Default)]
struct Next(usize);

impl Next {
    /// Its place at `from` or behind. Places are asked for in order, none at the very beginning.
    fn from(&mut self, bytes: &[u8], from: usize, is_it: impl Fn(u8) -> bool) -> usize {
        if self.0 < from {
            self.0 = (from..bytes.len()).find(|at| is_it(bytes[*at])).unwrap_or(bytes.len());
        }
        self.0
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use crate::chat::markdown::{Block, Span, parse};

    #[test]
    fn titles_are_too_long_from_some_line_on() {
        let long = "x\n".repeat(LINES);
        for (opens, closes) in [('"', '"'), ('\'', '\''), ('(', ')')] {
            let text = format!("[a](b {opens}{long}{closes}) [a](<b c> \n{opens}\\{closes}{long}");
            let marks: Vec<usize> = too_long(&text).iter().map(|mark| mark.start).collect();
            let expected: Vec<usize> = vec![6, text.rfind(&format!("{opens}\\{closes}")).unwrap()];
            assert_eq!(marks, expected, "{text}");
        }
        for short in ["[a](b \"c\nd\")", "[a](b)", "[a](b c", "[a](", "](", "[a](b \"c", "\"x\n\n\n"] {
            assert!(too_long(short).is_empty(), "{short}: {:?}", too_long(short));
        }
    }

    #[test]
    fn a_mark_that_is_hidden_closes_no_title_before_it() {
        let text = format!("[a](b \"c [a](b \"d [a](b \"e\" [a](b \"{}", "x\n".repeat(LINES));
        let marks: Vec<usize> = too_long(&text).iter().map(|mark| mark.start).collect();
        let opens: Vec<usize> = text.match_indices("(b \"").map(|(at, _)| at + 3).collect();
        assert_eq!(marks, [opens[3]], "the title before it is closed by its own mark: {text}");
        let text = format!("[a](b \"c [a](b \"d [a](b \"{}", "x\n".repeat(LINES));
        let opens: Vec<usize> = text.match_indices("(b \"").map(|(at, _)| at + 3).collect();
        let marks: Vec<usize> = too_long(&text).iter().map(|mark| mark.start).collect();
        assert_eq!(marks, opens, "each was closed by the next one alone: {text}");
    }

    #[test]
    fn a_link_with_a_title_stays_one_and_a_long_title_is_text() {
        let is_link = |text: &str| matches!(&parse(text)[..], [Block::Paragraph(spans)] if matches!(&spans[..], [Span::Link(..)]));
        assert!(is_link("[a](https://b.example \"two\nlines\")"));
        let long = format!("[a](https://b.example \"{}\")", "x\n".repeat(LINES));
        assert!(!is_link(&long), "{:?}", parse(&long));
        assert!(
            format!("{:?}", parse(&long)).contains(r#"AsWritten("\"")"#),
            "the mark is still there: {:?}",
            parse(&long)
        );
    }
}
