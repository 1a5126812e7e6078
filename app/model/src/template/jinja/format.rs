//! Python's ways to put values into texts: `%` and `str.format`. Here: what both need.

mod braces;
mod percent;
mod spec;

use super::{Result, fault};
pub(super) use braces::str_format;
pub(super) use percent::printf;

/// Widest field and most digits: more is a mistake or an attack. Rust's own formatting takes less than 1 << 16.
pub(super) const MAX_WIDTH: usize = 1 << 15;

/// A cursor over characters.
struct Cursor<'t> {
    rest: &'t str,
}

impl<'t> Cursor<'t> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    fn skip(&mut self, c: char) -> bool {
        let is = self.peek() == Some(c);
        if is {
            self.next();
        }
        is
    }

    /// A decimal number.
    fn number(&mut self) -> Result<Option<usize>> {
        let digits = self.rest.len() - self.rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        if digits == 0 {
            return Ok(None);
        }
        let (number, rest) = self.rest.split_at(digits);
        self.rest = rest;
        match number.parse() {
            Ok(number) if number <= MAX_WIDTH => Ok(Some(number)),
            _ => fault("a field is too wide"),
        }
    }

    /// What stands before `end`, with `open` and `end` in pairs.
    fn until(&mut self, open: char, end: char) -> Option<&'t str> {
        let mut depth = 1;
        for (at, c) in self.rest.char_indices() {
            if c == open {
                depth += 1;
            } else if c == end {
                depth -= 1;
                if depth == 0 {
                    let inner = &self.rest[..at];
                    self.rest = &self.rest[at + c.len_utf8()..];
                    return Some(inner);
                }
            }
        }
        None
    }
}

fn radix(value: u128, kind: char) -> (String, &'static str) {
    match kind {
        'x' => (format!("{value:x}"), "0x"),
        'X' => (format!("{value:X}"), "0X"),
        'o' => (format!("{value:o}"), "0o"),
        _ => (format!("{value:b}"), "0b"),
    }
}

/// Escapes what is not ASCII.
fn ascii(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        let code = u32::from(c);
        match code {
            0..=0x7f => escaped.push(c),
            0x80..=0xff => escaped.push_str(&format!("\\x{code:02x}")),
            0x100..=0xffff => escaped.push_str(&format!("\\u{code:04x}")),
            _ => escaped.push_str(&format!("\\U{code:08x}")),
        }
    }
    escaped
}
