//! Calls as Python writes them: `[now(zone="UTC", days=[1, 2])]` (LFM2, Llama 4), and `web.call(query="…")` (Llama 3's own tools).

use super::{is_json, is_name, object, quoted};
use crate::ToolCall;

/// Depth of lists and objects: what is deeper is no call.
const DEPTH: usize = 32;

/// The calls in a text: a list of them, or one in a line.
pub(super) fn read(text: &str) -> Option<Vec<ToolCall>> {
    let text = text.trim();
    let mut at = Reader(text.strip_prefix('[').and_then(|list| list.strip_suffix(']')).unwrap_or(text));
    let mut calls = Vec::new();
    while !at.is_empty() {
        calls.push(at.call()?);
        at.take(",");
    }
    Some(calls)
}

/// The rest of a text.
struct Reader<'a>(&'a str);

impl<'a> Reader<'a> {
    fn is_empty(&mut self) -> bool {
        self.0 = self.0.trim_start();
        self.0.is_empty()
    }

    /// Takes this, if it is next.
    fn take(&mut self, sign: &str) -> bool {
        self.0 = self.0.trim_start();
        let behind = self.0.strip_prefix(sign);
        self.0 = behind.unwrap_or(self.0);
        behind.is_some()
    }

    fn word(&mut self) -> Option<&'a str> {
        self.0 = self.0.trim_start();
        let end = self.0.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.' | '-')))?;
        let (word, rest) = self.0.split_at(end);
        self.0 = rest;
        is_name(word).then_some(word)
    }

    fn call(&mut self) -> Option<ToolCall> {
        let name = self.word()?;
        let mut fields = Vec::new();
        self.take("(").then_some(())?;
        while !self.take(")") {
            let key = self.word()?.to_owned();
            self.take("=").then_some(())?;
            fields.push((key, self.value(DEPTH)?));
            if !self.take(",") {
                self.take(")").then_some(())?;
                break;
            }
        }
        Some(ToolCall::new(name.strip_suffix(".call").unwrap_or(name), object(&fields)))
    }

    /// A value as JSON.
    fn value(&mut self, depth: usize) -> Option<String> {
        let depth = depth.checked_sub(1)?;
        self.0 = self.0.trim_start();
        match self.0.chars().next()? {
            quote @ ('"' | '\'') => self.text(quote).map(|text| quoted(&text)),
            '[' => self.list("[", "]", depth),
            '(' => self.list("(", ")", depth),
            '{' => {
                self.take("{");
                let mut fields = Vec::new();
                while !self.take("}") {
                    self.0 = self.0.trim_start();
                    let quote = self.0.chars().next().filter(|c| matches!(c, '"' | '\''))?;
                    let key = self.text(quote)?;
                    self.take(":").then_some(())?;
                    fields.push((key, self.value(depth)?));
                    if !self.take(",") {
                        self.take("}").then_some(())?;
                        break;
                    }
                }
                Some(object(&fields))
            }
            _ => {
                let end = self.0.find([',', ')', ']', '}'])?;
                let (bare, rest) = self.0.split_at(end);
                self.0 = rest;
                match bare.trim() {
                    "True" => Some("true".to_owned()),
                    "False" => Some("false".to_owned()),
                    "None" => Some("null".to_owned()),
                    bare => is_json(bare).then(|| bare.to_owned()),
                }
            }
        }
    }

    fn list(&mut self, open: &str, close: &str, depth: usize) -> Option<String> {
        self.take(open);
        let mut items = Vec::new();
        while !self.take(close) {
            items.push(self.value(depth)?);
            if !self.take(",") {
                self.take(close).then_some(())?;
                break;
            }
        }
        Some(format!("[{}]", items.join(", ")))
    }

    /// A text in these quotes, with Python's usual escapes.
    fn text(&mut self, quote: char) -> Option<String> {
        let mut text = String::new();
        let mut letters = self.0.char_indices().skip(1);
        while let Some((at, letter)) = letters.next() {
            if letter == quote {
                self.0 = &self.0[at + letter.len_utf8()..];
                return Some(text);
            }
            if letter != '\\' {
                text.push(letter);
                continue;
            }
            match letters.next()?.1 {
                'n' => text.push('\n'),
                't' => text.push('\t'),
                'r' => text.push('\r'),
                'u' => {
                    let digits: String = letters.by_ref().take(4).map(|(_, digit)| digit).collect();
                    text.push(char::from_u32(u32::from_str_radix(&digits, 16).ok()?)?);
                }
                escaped @ ('\\' | '"' | '\'' | '/') => text.push(escaped),
                other => text.extend(['\\', other]),
            }
        }
        None
    }
}
