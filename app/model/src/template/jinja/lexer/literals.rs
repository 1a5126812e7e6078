//! Numbers and strings in a template.

use super::{Lexer, Token};
use crate::template::jinja::Result;

impl Lexer<'_> {
    pub(super) fn number(&mut self) -> Result<()> {
        let rest = self.rest();
        let bytes = rest.as_bytes();
        // Digits, in groups that an underscore parts.
        let digits = |from: usize, is_digit: fn(&u8) -> bool| {
            let mut at = from;
            loop {
                let next = if bytes.get(at) == Some(&b'_') && at > from { at + 1 } else { at };
                match bytes.get(next) {
                    Some(digit) if is_digit(digit) => at = next + 1,
                    _ => return at,
                }
            }
        };
        let decimal = |from: usize| digits(from, u8::is_ascii_digit);
        let whole = decimal(0);
        let behind_dot = bytes.get(whole) == Some(&b'.') && bytes.get(whole + 1).is_some_and(u8::is_ascii_digit);
        let fraction = if behind_dot { decimal(whole + 1) } else { whole };
        let mut end = fraction;
        if matches!(bytes.get(fraction), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(fraction + 1), Some(b'+' | b'-')));
            let exponent = decimal(fraction + 1 + sign);
            if exponent > fraction + 1 + sign {
                end = exponent;
            }
        }
        let after_dot = self.source[..self.at].ends_with('.');
        if end > whole && !after_dot {
            let value = rest[..end].replace('_', "").parse().unwrap_or(f64::NAN);
            self.push(Token::Float(value));
            self.advance(end);
            return Ok(());
        }
        let based = |radix: u32, is_digit: fn(&u8) -> bool| {
            let from = if bytes.get(2) == Some(&b'_') { 3 } else { 2 };
            let end = digits(from, is_digit);
            (end > from).then_some((radix, end, 2))
        };
        let prefixed = match (bytes[0], bytes.get(1).map(u8::to_ascii_lowercase)) {
            (b'0', Some(b'x')) => based(16, u8::is_ascii_hexdigit),
            (b'0', Some(b'o')) => based(8, |digit| (b'0'..=b'7').contains(digit)),
            (b'0', Some(b'b')) => based(2, |digit| matches!(digit, b'0' | b'1')),
            _ => None,
        };
        // Decimal numbers do not begin with a zero, unless they are nothing else.
        let end = if bytes[0] == b'0' { digits(0, |digit| *digit == b'0') } else { whole };
        let (radix, end, from) = prefixed.unwrap_or((10, end, 0));
        let Ok(value) = i128::from_str_radix(&rest[from..end].replace('_', ""), radix) else {
            return self.error("a number is too large");
        };
        self.push(Token::Int(value));
        self.advance(end);
        Ok(())
    }

    pub(super) fn string(&mut self, quote: char) -> Result<()> {
        let rest = self.rest();
        let mut escaped = false;
        let end = rest.char_indices().skip(1).find(|&(_, c)| {
            let ends = c == quote && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        let Some((end, _)) = end else { return self.error(&format!("unexpected char {quote:?}")) };
        let Some(text) = unescape(&rest[1..end]) else { return self.error("a string with a broken escape") };
        self.push(Token::Str(text.into()));
        self.advance(end + 1);
        Ok(())
    }
}

/// Python's `unicode-escape`.
fn unescape(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    // The first half of a surrogate pair.
    let mut high: Option<u32> = None;
    while let Some(c) = chars.next() {
        let mut code = None;
        if c != '\\' {
            plain.push(c);
        } else {
            match chars.next()? {
                '\n' => {}
                'n' => plain.push('\n'),
                't' => plain.push('\t'),
                'r' => plain.push('\r'),
                'a' => plain.push('\x07'),
                'b' => plain.push('\x08'),
                'f' => plain.push('\x0c'),
                'v' => plain.push('\x0b'),
                quoted @ ('\\' | '\'' | '"') => plain.push(quoted),
                kind @ ('x' | 'u' | 'U') => {
                    let count = match kind {
                        'x' => 2,
                        'u' => 4,
                        _ => 8,
                    };
                    let mut value = 0;
                    for _ in 0..count {
                        value = value * 16 + chars.next()?.to_digit(16)?;
                    }
                    code = Some(value);
                }
                first @ '0'..='7' => {
                    let mut value = first.to_digit(8)?;
                    for _ in 0..2 {
                        let Some(digit) = chars.peek().and_then(|c| c.to_digit(8)) else { break };
                        value = value * 8 + digit;
                        chars.next();
                    }
                    code = Some(value);
                }
                'N' => return None,
                other => plain.extend(['\\', other]),
            }
        }
        match (high.take(), code) {
            (Some(first), Some(second @ 0xdc00..=0xdfff)) => {
                plain.push(char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00))?);
            }
            (None, Some(first @ 0xd800..=0xdbff)) => high = Some(first),
            (lone, code) => {
                if lone.is_some() {
                    plain.push('\u{fffd}');
                }
                if let Some(code) = code {
                    plain.push(if (0xd800..0xe000).contains(&code) { '\u{fffd}' } else { char::from_u32(code)? });
                }
            }
        }
    }
    Some(plain)
}
