//! Finds calls in an answer while it is written.

use std::cmp::Reverse;

use potluck_plan::Channel;

use super::{Functions, json, read, with_objects};
use crate::ToolCall;
use crate::channels::{TOOL_CALLS, Tags, tags};
use crate::stop::overlap;

/// Tags around calls that no model's maker meant: those of the list of functions (Qwen2.5-Coder), and calls without the tags around
/// them (Qwen3-Coder).
const MISTAKEN: [Tags; 2] = [tags("<tools>", "</tools>"), tags("<function=", "</function>")];
const FENCE: &str = "```";
/// The language of a code block with calls.
const LABELS: [&str; 3] = ["", "json", "tool_call"];
/// With which a call in JSON may begin.
const KEYS: [&str; 7] = ["name", "arguments", "parameters", "function", "type", "id", "tool_name"];

/// A piece of an answer with calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallPart {
    /// Text, also that of a call which cannot be read.
    Text(Channel, String),
    /// A call, complete.
    Call(ToolCall),
}

/// Finds the calls in an answer whose question offered functions: in the channel of calls, in tags that the model wrote as text, and
/// where the whole answer is JSON or a code block of JSON that calls functions which were offered. What cannot be read stays text.
///
/// ```
/// use potluck_model::{CallPart, CallStream};
/// use potluck_plan::Channel;
///
/// let mut calls = CallStream::new([r#"{"type": "function", "function": {"name": "now"}}"#]);
/// assert_eq!(calls.push(Channel::ToolCall, "{\"name\": \"now\", \"argu"), []);
/// let parts = calls.push(Channel::ToolCall, "ments\": {\"zone\": \"UTC\"}}");
/// let [CallPart::Call(call)] = &parts[..] else { panic!("{parts:?}") };
/// assert_eq!((call.name.as_str(), call.arguments.as_str()), ("now", "{\"zone\": \"UTC\"}"));
/// assert_eq!(calls.finish(), []);
/// ```
#[derive(Clone, Debug)]
pub struct CallStream {
    functions: Functions,
    /// Text of the channel of calls that is not read yet.
    calls: String,
    scan: Scan,
    /// Text of the answer that may be a call.
    held: String,
    at: At,
}

/// Where the answer's text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// All of it may be calls.
    Whole,
    /// The line has nothing but white space so far, or something else.
    Text { is_line_blank: bool },
    /// White space belongs to the call in front of it.
    AfterCall,
    /// Behind the tag of this index; the text up to this place has no end of it.
    Tagged { tag: usize, searched: usize },
}

fn all_tags() -> impl Iterator<Item = &'static Tags> + Clone {
    TOOL_CALLS.iter().chain(&MISTAKEN)
}

/// Bytes of an answer that are read at once.
const MOST_AT_ONCE: usize = 1_024;

impl CallStream {
    /// An answer to a question that offers these functions, each as JSON text.
    pub fn new<'a>(functions: impl IntoIterator<Item = &'a str>) -> Self {
        let functions = Functions::new(functions);
        Self { functions, calls: String::new(), scan: Scan::default(), held: String::new(), at: At::Whole }
    }

    /// What is certain after this text.
    pub fn push(&mut self, channel: Channel, text: &str) -> Vec<CallPart> {
        let (mut out, mut rest) = (Vec::new(), text);
        loop {
            // Much may be found in a long text, and each time what is behind it moves.
            let (part, behind) = rest.split_at(rest.floor_char_boundary(MOST_AT_ONCE));
            self.push_part(channel, part, &mut out);
            rest = behind;
            if rest.is_empty() {
                return out;
            }
        }
    }

    fn push_part(&mut self, channel: Channel, text: &str, out: &mut Vec<CallPart>) {
        if channel != Channel::Answer {
            self.settle_answer(out);
        }
        if channel != Channel::ToolCall {
            self.settle_calls(out);
        }
        match channel {
            Channel::Reasoning => out.push(CallPart::Text(channel, text.to_owned())),
            Channel::ToolCall => {
                self.calls.push_str(text);
                self.advance_calls(out);
            }
            Channel::Answer => {
                self.held.push_str(text);
                self.advance_answer(out);
            }
        }
    }

    /// What is left at the end.
    pub fn finish(&mut self) -> Vec<CallPart> {
        let mut out = Vec::new();
        self.settle_answer(&mut out);
        self.settle_calls(&mut out);
        out
    }

    /// Reads each call in JSON as soon as it is complete.
    fn advance_calls(&mut self, out: &mut Vec<CallPart>) {
        while let Some(end) = self.scan.next_end(&self.calls) {
            match json::read(&self.calls[..end]).and_then(with_objects) {
                Some(calls) if !calls.is_empty() => {
                    out.extend(calls.into_iter().map(CallPart::Call));
                    self.calls.drain(..end);
                    self.scan = Scan::default();
                }
                // It has another form, which is read at its end.
                _ => return self.scan.is_stuck = true,
            }
        }
    }

    fn settle_calls(&mut self, out: &mut Vec<CallPart>) {
        self.scan = Scan::default();
        let text = std::mem::take(&mut self.calls);
        match read(&text, &self.functions) {
            Some(calls) => out.extend(calls.into_iter().map(CallPart::Call)),
            None => out.push(CallPart::Text(Channel::ToolCall, text)),
        }
    }

    fn advance_answer(&mut self, out: &mut Vec<CallPart>) {
        if self.at == At::Whole {
            if may_be_calls(&self.held) {
                return;
            }
            self.at = At::Text { is_line_blank: true };
        }
        while match self.at {
            At::Whole => false,
            At::AfterCall => self.skip_white_space(),
            At::Text { is_line_blank } => self.find_tag(is_line_blank, out),
            At::Tagged { tag, searched } => self.find_end(tag, searched, out),
        } {}
    }

    /// True if there is more to do.
    fn skip_white_space(&mut self) -> bool {
        let white = self.held.len() - self.held.trim_start().len();
        self.held.drain(..white);
        if !self.held.is_empty() {
            self.at = At::Text { is_line_blank: true };
        }
        !self.held.is_empty()
    }

    /// Tags count where a line begins: elsewhere they are quoted. True if there is more to do.
    fn find_tag(&mut self, is_line_blank: bool, out: &mut Vec<CallPart>) -> bool {
        let places = all_tags().enumerate().filter_map(|(index, tag)| {
            let at = self.held.find(tag.open)?;
            Some((at, Reverse(tag.open.len()), index))
        });
        let found = places.min();
        let certain = match found {
            Some((at, Reverse(length), _)) if !is_blank(&self.held[..at], is_line_blank) => at + length,
            Some((at, ..)) => at,
            None => self.held.len() - all_tags().map(|tag| overlap(&self.held, tag.open)).max().unwrap_or(0),
        };
        let rest = self.held.split_off(certain);
        let said = std::mem::replace(&mut self.held, rest);
        self.at = At::Text { is_line_blank: is_blank(&said, is_line_blank) };
        say(Channel::Answer, said, out);
        match found {
            Some((at, Reverse(length), tag)) if at == certain => {
                self.held.drain(..length);
                self.at = At::Tagged { tag, searched: 0 };
                true
            }
            found => found.is_some(),
        }
    }

    /// True if there is more to do.
    fn find_end(&mut self, tag: usize, searched: usize, out: &mut Vec<CallPart>) -> bool {
        let close = all_tags().nth(tag).map_or("", |tag| tag.close);
        let mut from = searched.saturating_sub(close.len());
        while !self.held.is_char_boundary(from) {
            from -= 1;
        }
        match self.held[from..].find(close).filter(|_| !close.is_empty()) {
            None => {
                self.at = At::Tagged { tag, searched: self.held.len() };
                false
            }
            Some(at) => {
                let behind = self.held.split_off(from + at + close.len());
                let mut body = std::mem::replace(&mut self.held, behind);
                body.truncate(from + at);
                self.read_tagged(tag, &body, close, out);
                true
            }
        }
    }

    /// Reads what was between tags.
    fn read_tagged(&mut self, tag: usize, body: &str, close: &str, out: &mut Vec<CallPart>) {
        let Some(Tags { open, .. }) = all_tags().nth(tag) else { return };
        let whole = format!("{open}{body}{close}");
        let calls = read(body, &self.functions).or_else(|| read(&whole, &self.functions));
        let is_meant = |call: &ToolCall| tag < TOOL_CALLS.len() || self.functions.has(&call.name);
        match calls.filter(|calls| !calls.is_empty() && calls.iter().all(is_meant)) {
            Some(calls) => {
                out.extend(calls.into_iter().map(CallPart::Call));
                self.at = At::AfterCall;
            }
            None => {
                say(Channel::Answer, whole, out);
                self.at = At::Text { is_line_blank: false };
            }
        }
    }

    /// Nothing more of the answer comes for now.
    fn settle_answer(&mut self, out: &mut Vec<CallPart>) {
        let held = std::mem::take(&mut self.held);
        match self.at {
            At::Whole => {
                let is_offered = |call: &ToolCall| self.functions.has(&call.name);
                let calls = json::read(without_fence(&held)).and_then(with_objects);
                match calls.filter(|calls| !calls.is_empty() && calls.iter().all(is_offered)) {
                    Some(calls) => {
                        out.extend(calls.into_iter().map(CallPart::Call));
                        self.at = At::AfterCall;
                    }
                    None => {
                        if !held.trim().is_empty() {
                            self.at = At::Text { is_line_blank: held.ends_with('\n') };
                        }
                        say(Channel::Answer, held, out);
                    }
                }
            }
            At::AfterCall => {}
            At::Text { .. } => say(Channel::Answer, held, out),
            At::Tagged { tag, .. } => self.read_tagged(tag, &held, "", out),
        }
    }
}

fn say(channel: Channel, text: String, out: &mut Vec<CallPart>) {
    if !text.is_empty() {
        out.push(CallPart::Text(channel, text));
    }
}

/// The last line of this text has nothing but white space; `before`: so has what is in front of it.
fn is_blank(text: &str, before: bool) -> bool {
    match text.rsplit_once('\n') {
        Some((_, line)) => line.trim().is_empty(),
        None => before && text.trim().is_empty(),
    }
}

/// The text begins as JSON does, or a code block of it, that is nothing but calls.
fn may_be_calls(text: &str) -> bool {
    let mut rest = text.trim_start();
    if FENCE.starts_with(rest) {
        return true;
    }
    if let Some(block) = rest.strip_prefix(FENCE) {
        match block.split_once('\n') {
            None => return LABELS.iter().any(|label| label.starts_with(block.trim_end())),
            Some((label, _)) if !LABELS.contains(&label.trim()) => return false,
            Some((_, block)) => rest = block.trim_start(),
        }
    }
    rest = rest.strip_prefix('[').unwrap_or(rest).trim_start();
    let Some(object) = rest.strip_prefix('{').map(str::trim_start) else { return rest.is_empty() };
    let Some(key) = object.strip_prefix('"') else { return object.is_empty() };
    match key.split_once('"') {
        Some((key, _)) => KEYS.contains(&key),
        None => KEYS.iter().any(|known| known.starts_with(key)),
    }
}

/// What is in a code block that is all of this text, or the text.
fn without_fence(text: &str) -> &str {
    let text = text.trim();
    let block = text.strip_prefix(FENCE).and_then(|block| block.split_once('\n')).map(|(_, block)| block.trim_end());
    block.map_or(text, |block| block.strip_suffix(FENCE).unwrap_or(block))
}

/// Finds the ends of JSON values in a text that grows.
#[derive(Clone, Copy, Debug, Default)]
struct Scan {
    /// Bytes that were looked at.
    at: usize,
    depth: u32,
    is_text: bool,
    is_escaped: bool,
    is_stuck: bool,
}

impl Scan {
    /// Behind the next object or list that is complete.
    fn next_end(&mut self, text: &str) -> Option<usize> {
        if self.is_stuck {
            return None;
        }
        for byte in &text.as_bytes()[self.at..] {
            self.at += 1;
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' if self.is_text => self.is_escaped = true,
                b'"' => self.is_text = !self.is_text,
                b'{' | b'[' if !self.is_text => self.depth += 1,
                b'}' | b']' if !self.is_text => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        return Some(self.at);
                    }
                }
                _ => {}
            }
        }
        None
    }
}
