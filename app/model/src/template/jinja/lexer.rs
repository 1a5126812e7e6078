//! Source to tokens, with the rules of `trim_blocks` and `lstrip_blocks` for the text between tags.

mod literals;

use std::sync::Arc;

use super::ast::Text;
use super::strings::is_space;
use super::{Result, fault};

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Data(Text),
    BlockBegin,
    BlockEnd,
    VariableBegin,
    VariableEnd,
    Name(Text),
    Str(Text),
    Int(i128),
    Float(f64),
    /// One of [`OPERATORS`].
    Op(&'static str),
}

/// Longer ones first.
const OPERATORS: [&str; 27] = [
    "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}", ">", "<", "=", ".",
    ":", "|", ",", ";", "!",
];

/// Tokens with their lines.
pub(super) fn tokens(source: &str) -> Result<Vec<(Token, usize)>> {
    let source = source.replace("\r\n", "\n").replace('\r', "\n");
    let source = source.strip_suffix('\n').unwrap_or(&source);
    let mut lexer = Lexer { source, at: 0, line: 1, line_starting: true, tokens: Vec::new() };
    while lexer.at < source.len() {
        lexer.root()?;
    }
    Ok(lexer.tokens)
}

struct Lexer<'s> {
    source: &'s str,
    at: usize,
    line: usize,
    /// What was read last ended with a line break, or nothing was read yet.
    line_starting: bool,
    tokens: Vec<(Token, usize)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Tag {
    Block,
    Variable,
    Comment,
}

impl<'s> Lexer<'s> {
    fn rest(&self) -> &'s str {
        &self.source[self.at..]
    }

    fn error<T>(&self, message: &str) -> Result<T> {
        fault(format!("syntax error: {message}, line {}", self.line))
    }

    fn advance(&mut self, bytes: usize) -> &'s str {
        let read = &self.rest()[..bytes];
        self.line += read.matches('\n').count();
        self.at += bytes;
        self.line_starting = read.ends_with('\n');
        read
    }

    fn push(&mut self, token: Token) {
        self.tokens.push((token, self.line));
    }

    /// Text up to the next tag, and the tag.
    fn root(&mut self) -> Result<()> {
        let rest = self.rest();
        let found = rest.match_indices('{').find_map(|(at, _)| match rest.as_bytes().get(at + 1) {
            Some(b'%') => Some((at, Tag::Block)),
            Some(b'{') => Some((at, Tag::Variable)),
            Some(b'#') => Some((at, Tag::Comment)),
            _ => None,
        });
        let Some((at, tag)) = found else {
            self.push(Token::Data(rest.into()));
            self.advance(rest.len());
            return Ok(());
        };
        let sign = rest.as_bytes().get(at + 2).copied().filter(|sign| matches!(sign, b'-' | b'+'));
        let text = self.stripped(&rest[..at], sign, tag);
        if !text.is_empty() {
            self.push(Token::Data(text.into()));
        }
        self.advance(at + 2 + usize::from(sign.is_some()));
        match tag {
            Tag::Comment => self.comment(),
            Tag::Variable => {
                self.push(Token::VariableBegin);
                self.expression(Tag::Variable)
            }
            Tag::Block => match self.raw_begin() {
                Some(bytes) => {
                    self.advance(bytes);
                    self.raw()
                }
                None => {
                    self.push(Token::BlockBegin);
                    self.expression(Tag::Block)
                }
            },
        }
    }

    /// The text in front of a tag without the white space that belongs to the tag.
    fn stripped<'t>(&self, text: &'t str, sign: Option<u8>, tag: Tag) -> &'t str {
        match sign {
            Some(b'-') => text.trim_end_matches(is_space),
            None if tag != Tag::Variable => {
                let line = text.rfind('\n').map_or(0, |at| at + 1);
                let is_blank = text[line..].chars().all(is_space);
                if (line > 0 || self.line_starting) && is_blank { &text[..line] } else { text }
            }
            _ => text,
        }
    }

    fn spaces(text: &str) -> usize {
        text.len() - text.trim_start_matches(is_space).len()
    }

    /// Bytes of `raw %}` behind the beginning of a block.
    fn raw_begin(&self) -> Option<usize> {
        let rest = self.rest();
        let name = Self::spaces(rest);
        let after = rest[name..].strip_prefix("raw")?;
        let end = name + 3 + Self::spaces(after);
        if rest[end..].starts_with("%}") {
            return Some(end + 2);
        }
        rest[end..].starts_with("-%}").then(|| end + 3 + Self::spaces(&rest[end + 3..]))
    }

    fn raw(&mut self) -> Result<()> {
        let rest = self.rest();
        let end = rest.match_indices("{%").find_map(|(at, _)| {
            let inner = &rest[at + 2..];
            let sign = inner.bytes().next().filter(|sign| matches!(sign, b'-' | b'+'));
            let name = usize::from(sign.is_some());
            let name = name + Self::spaces(&inner[name..]);
            let after = inner[name..].strip_prefix("endraw")?;
            let close = Self::spaces(after);
            let closed = self.block_end(&after[close..])?;
            Some((at, sign, at + 2 + name + 6 + close + closed))
        });
        let Some((at, sign, bytes)) = end else { return self.error("Missing end of raw directive") };
        let text = self.stripped(&rest[..at], sign, Tag::Block);
        if !text.is_empty() {
            self.push(Token::Data(text.into()));
        }
        self.advance(bytes);
        Ok(())
    }

    /// Bytes of the end of a block with the white space that belongs to it.
    fn block_end(&self, rest: &str) -> Option<usize> {
        if rest.starts_with("+%}") {
            Some(3)
        } else if let Some(after) = rest.strip_prefix("-%}") {
            Some(3 + Self::spaces(after))
        } else {
            let after = rest.strip_prefix("%}")?;
            Some(2 + usize::from(after.starts_with('\n')))
        }
    }

    fn comment(&mut self) -> Result<()> {
        let rest = self.rest();
        let Some(end) = rest.find("#}") else { return self.error("Missing end of comment tag") };
        let bytes = match rest[..end].bytes().next_back() {
            Some(b'-') => end + 2 + Self::spaces(&rest[end + 2..]),
            Some(b'+') => end + 2,
            _ => end + 2 + usize::from(rest[end + 2..].starts_with('\n')),
        };
        self.advance(bytes);
        Ok(())
    }

    /// The tokens inside a tag, and its end.
    fn expression(&mut self, tag: Tag) -> Result<()> {
        let mut open: Vec<&'static str> = Vec::new();
        loop {
            let rest = self.rest();
            if open.is_empty() {
                let end = if tag == Tag::Block {
                    self.block_end(rest)
                } else if let Some(after) = rest.strip_prefix("-}}") {
                    Some(3 + Self::spaces(after))
                } else {
                    rest.starts_with("}}").then_some(2)
                };
                if let Some(bytes) = end {
                    self.push(if tag == Tag::Block { Token::BlockEnd } else { Token::VariableEnd });
                    self.advance(bytes);
                    return Ok(());
                }
            }
            let Some(first) = rest.chars().next() else { return self.error("unexpected end of template") };
            if is_space(first) {
                self.advance(Self::spaces(rest));
            } else if first.is_ascii_digit() {
                self.number()?;
            } else if first == '_' || first.is_alphanumeric() {
                let bytes = rest.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(rest.len());
                self.push(Token::Name(rest[..bytes].into()));
                self.advance(bytes);
            } else if first == '"' || first == '\'' {
                self.string(first)?;
            } else {
                self.operator(&mut open)?;
            }
        }
    }

    fn operator(&mut self, open: &mut Vec<&'static str>) -> Result<()> {
        let rest = self.rest();
        let Some(operator) = OPERATORS.into_iter().find(|operator| rest.starts_with(operator)) else {
            return self.error(&format!("unexpected char {:?}", rest.chars().next().unwrap_or_default()));
        };
        match operator {
            "(" => open.push(")"),
            "[" => open.push("]"),
            "{" => open.push("}"),
            ")" | "]" | "}" if open.pop() != Some(operator) => {
                return self.error(&format!("unexpected '{operator}'"));
            }
            "!" => return self.error("unexpected char '!'"),
            _ => {}
        }
        self.push(Token::Op(operator));
        self.advance(operator.len());
        Ok(())
    }
}

/// A name of a template, shared.
pub(super) fn name(text: &str) -> Text {
    Arc::from(text)
}
