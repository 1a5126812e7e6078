//! What Python knows about texts: their parts, fields and escapes.

mod cases;
mod characters;

pub(super) use cases::{capitalize, casefold, filter_title, swapcase, title};
pub(super) use characters::{count_words, decimal_digit, is_printable, is_space, predicate};

/// Splits at white space, at most so often.
pub(super) fn split_space(text: &str, max: Option<usize>) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text.trim_start_matches(is_space);
    while !rest.is_empty() {
        if max.is_some_and(|max| parts.len() >= max) {
            parts.push(rest);
            break;
        }
        let end = rest.find(is_space).unwrap_or(rest.len());
        parts.push(&rest[..end]);
        rest = rest[end..].trim_start_matches(is_space);
    }
    parts
}

/// Splits at white space from the right.
pub(super) fn rsplit_space(text: &str, max: Option<usize>) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text.trim_end_matches(is_space);
    while !rest.is_empty() {
        if max.is_some_and(|max| parts.len() >= max) {
            parts.push(rest);
            break;
        }
        let start = rest.char_indices().rev().find(|(_, c)| is_space(*c)).map_or(0, |(at, c)| at + c.len_utf8());
        parts.push(&rest[start..]);
        rest = rest[..start].trim_end_matches(is_space);
    }
    parts.reverse();
    parts
}

/// What ends a line.
pub(super) fn is_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\x0b' | '\x0c' | '\x1c'..='\x1e' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// `splitlines(keepends)`.
pub(super) fn lines(text: &str, keep: bool) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(is_break) {
        let c = rest[at..].chars().next().unwrap_or_default();
        let end = at + if rest[at..].starts_with("\r\n") { 2 } else { c.len_utf8() };
        lines.push(&rest[..if keep { end } else { at }]);
        rest = &rest[end..];
    }
    if !rest.is_empty() {
        lines.push(rest);
    }
    lines
}

/// `expandtabs(size)`.
pub(super) fn expand_tabs(text: &str, size: usize) -> String {
    let mut expanded = String::with_capacity(text.len());
    let mut column = 0;
    for c in text.chars() {
        match c {
            '\t' if size > 0 => {
                let spaces = size - column % size;
                expanded.extend(std::iter::repeat_n(' ', spaces));
                column += spaces;
            }
            '\t' => {}
            _ => {
                expanded.push(c);
                column = if matches!(c, '\n' | '\r') { 0 } else { column + 1 };
            }
        }
    }
    expanded
}

/// Where a text is put in a wider field.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Right,
    /// `str.center`: what is left over goes to the left if the width is odd.
    Center,
    /// `format(…, "^")`: what is left over goes to the right.
    Middle,
}

/// A text in a field of at least so many characters.
pub(super) fn pad(text: &str, width: usize, fill: char, align: Align) -> String {
    let length = text.chars().count();
    let missing = width.saturating_sub(length);
    if missing == 0 {
        return text.to_owned();
    }
    let left = match align {
        Align::Left => 0,
        Align::Right => missing,
        Align::Center => missing / 2 + (missing & width & 1),
        Align::Middle => missing / 2,
    };
    let fills = |count: usize| String::from(fill).repeat(count);
    fills(left) + text + &fills(missing - left)
}

/// `zfill(width)`.
pub(super) fn zero_fill(text: &str, width: usize) -> String {
    let (sign, digits) = match text.chars().next() {
        Some(sign @ ('+' | '-')) => (Some(sign), &text[1..]),
        _ => (None, text),
    };
    let width = width.saturating_sub(usize::from(sign.is_some()));
    sign.into_iter().chain(pad(digits, width, '0', Align::Right).chars()).collect()
}

/// `urllib.parse.quote`.
pub(super) fn percent_encode(text: &str, for_query: bool) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'.' | b'-' | b'~' => encoded.push(char::from(byte)),
            b'/' if !for_query => encoded.push('/'),
            b' ' if for_query => encoded.push('+'),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

/// HTML escapes, as MarkupSafe writes them.
pub(super) fn escape_html(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '\'' => escaped.push_str("&#39;"),
            '"' => escaped.push_str("&#34;"),
            _ => escaped.push(c),
        }
    }
    escaped
}
