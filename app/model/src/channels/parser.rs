//! Reads an answer token by token. Here: texts and their markers; in the submodules: how an answer begins, and names of channels.

mod header;
mod start;

use std::sync::Arc;

use potluck_plan::{Channel, ChannelText};

use super::{Act, Channels, Pair, table::HeaderMarker};
use crate::stop::overlap;
use crate::{Detokenizer, TokenKind, Tokenizer};
use header::{Header, is_name};

/// Around texts in Gemma 4's calls: they could not be read without it.
const QUOTE: &[u8] = b"<|\"|>";

/// Splits an answer into channels while it is written.
#[derive(Clone, Debug)]
pub struct ChannelParser {
    channels: Arc<Channels>,
    detokenizer: Detokenizer,
    at: At,
    /// Text that may turn out to be a marker, a name, or white space in front of a marker.
    held: String,
    /// Nothing but spaces is behind the last marker or end of a line.
    at_line_start: bool,
    /// Channels with text.
    written: Vec<Channel>,
}

#[derive(Clone, Copy, Debug)]
enum At {
    Text(Text),
    Header(Header),
}

#[derive(Clone, Copy, Debug)]
struct Text {
    channel: Channel,
    /// Index of the markers around it.
    pair: Option<usize>,
    begins: Begins,
}

/// How a text begins; white space does not count as its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begins {
    /// With the answer.
    First,
    /// Behind a marker: white space belongs to the marker.
    AfterMarker,
    /// It has begun.
    Begun,
}

impl At {
    const fn text(channel: Channel, pair: Option<usize>, begins: Begins) -> Self {
        Self::Text(Text { channel, pair, begins })
    }

    /// The answer, behind a marker.
    const ANSWER: Self = Self::text(Channel::Answer, None, Begins::AfterMarker);
    /// Reasoning without markers around it, behind another one.
    const REASONING: Self = Self::text(Channel::Reasoning, None, Begins::AfterMarker);
}

impl Text {
    /// True if the opening marker of a pair may come before this text begins.
    fn may_begin_with(self, pair: &Pair) -> bool {
        match self.channel {
            Channel::Answer => true,
            // Some models repeat what their prompt has begun.
            Channel::Reasoning => pair.channel == Channel::Reasoning,
            Channel::ToolCall => false,
        }
    }
}

impl ChannelParser {
    /// The channel that the answer is in; `None`: in the name of one.
    #[must_use]
    pub fn channel(&self) -> Option<Channel> {
        match self.at {
            At::Text(text) => Some(text.channel),
            At::Header(_) => None,
        }
    }

    /// The text that is complete after this token; often none.
    pub fn push(&mut self, tokenizer: &Tokenizer, id: u32) -> Vec<ChannelText> {
        let mut out = Vec::new();
        let is_control = tokenizer.kind(id) == Some(TokenKind::Control);
        let act = self.channels.by_id.get(&id).copied().filter(|act| self.counts(*act, is_control));
        if let Some(act) = act {
            self.held += &self.detokenizer.finish();
            self.advance(false, &mut out);
            self.act(act, &mut out);
            self.at_line_start = true;
        } else {
            let text = self.detokenizer.push(tokenizer, id);
            let is_text = matches!(self.at, At::Text(Text { channel: Channel::Reasoning | Channel::Answer, .. }));
            self.held += match tokenizer.piece(id) {
                _ if !is_control || is_text => &text,
                QUOTE => "<|\"|>",
                // Within names and calls, control tokens separate words.
                _ => " ",
            };
            if let Some(last) = text.trim_end_matches([' ', '\t', '\r']).chars().next_back() {
                self.at_line_start = last == '\n';
            }
        }
        self.advance(false, &mut out);
        out
    }

    /// What is left at the end.
    pub fn finish(&mut self) -> Vec<ChannelText> {
        let mut out = Vec::new();
        self.held += &self.detokenizer.finish();
        self.advance(true, &mut out);
        out
    }

    /// True if a token does where it stands what it is there for. A tag that is a token for text may be a quotation as well, and
    /// counts where a tag of letters would; that of a call also at the beginning of a line.
    fn counts(&self, act: Act, is_control: bool) -> bool {
        let At::Text(text) = self.at else { return true };
        let pairs = &self.channels.pairs;
        let is_beginning = text.begins != Begins::Begun && self.held.trim().is_empty();
        match act {
            Act::Header(_) => true,
            Act::Open(index) => {
                let pair = &pairs[index];
                let is_call = pair.channel == Channel::ToolCall;
                match text.channel {
                    Channel::ToolCall if !is_call => false,
                    _ if is_control || !pair.open.is_tag() => true,
                    Channel::Answer | Channel::ToolCall if is_call => is_beginning || self.at_line_start,
                    _ => is_beginning && text.may_begin_with(pair),
                }
            }
            Act::Close(index) => {
                let pair = &pairs[index];
                match text.channel {
                    // A call ends where it began: the end of another pair is part of its text.
                    Channel::ToolCall if pair.channel != Channel::ToolCall => false,
                    _ if is_control || !pair.close.is_tag() => true,
                    // The prompt or a call has ended it already.
                    Channel::Answer if is_beginning => true,
                    _ => text.pair.is_some_and(|of| pairs[of].close.text == pair.close.text),
                }
            }
        }
    }

    fn act(&mut self, act: Act, out: &mut Vec<ChannelText>) {
        if let (At::Header(header), Act::Header(marker)) = (self.at, act) {
            match (header, marker) {
                (Header::Naming, HeaderMarker::Header) => return self.held.push(' '),
                (Header::Prompted, HeaderMarker::Header) if is_name(&self.held) => {
                    self.at = At::Header(Header::Naming);
                    return self.held.push(' ');
                }
                (Header::Naming | Header::Prompted, HeaderMarker::Body) => return self.enter_named(out),
                (Header::Closing, HeaderMarker::Body) => {
                    self.held.clear();
                    self.at = At::ANSWER;
                    return;
                }
                _ => {}
            }
        }
        self.settle(out);
        self.at = match act {
            Act::Header(HeaderMarker::Header) => At::Header(Header::Naming),
            Act::Header(HeaderMarker::Closing) => At::Header(Header::Closing),
            Act::Header(HeaderMarker::Line) => At::Header(Header::Line),
            Act::Header(HeaderMarker::Body) => self.at,
            Act::Header(HeaderMarker::End | HeaderMarker::Answer) => At::ANSWER,
            Act::Header(HeaderMarker::Reasoning) => At::REASONING,
            Act::Header(HeaderMarker::ToolCall) => At::text(Channel::ToolCall, None, Begins::AfterMarker),
            Act::Open(index) => self.open(index),
            Act::Close(index) => self.after(index),
        };
    }

    /// Behind the end of this pair.
    fn after(&self, index: usize) -> At {
        At::text(Channel::Answer, self.channels.after(index), Begins::AfterMarker)
    }

    fn open(&self, index: usize) -> At {
        At::text(self.channels.pairs[index].channel, Some(index), Begins::AfterMarker)
    }

    /// A marker follows: what was held is no marker.
    fn settle(&mut self, out: &mut Vec<ChannelText>) {
        match self.at {
            At::Header(header) => match self.mistaken(header, true) {
                Some(text) => {
                    self.at = text;
                    self.settle(out);
                }
                None => self.held.clear(),
            },
            At::Text(text) => {
                let mut held = std::mem::take(&mut self.held);
                let is_bare = text.begins != Begins::Begun || text.channel != Channel::Answer;
                if is_bare {
                    held.truncate(held.trim_end().len());
                }
                if !held.trim().is_empty() || !is_bare {
                    self.begin(text, out);
                    let from = if text.begins == Begins::AfterMarker { held.trim_start() } else { &held };
                    self.emit(text.channel, from, out);
                }
            }
        }
    }

    /// Emits what is certain of the held text; at the end, all.
    fn advance(&mut self, is_end: bool, out: &mut Vec<ChannelText>) {
        while match self.at {
            At::Header(header) => self.advance_header(header, is_end),
            At::Text(text) if text.begins == Begins::Begun => self.advance_begun(text, is_end, out),
            At::Text(text) => self.advance_beginning(text, is_end, out),
        } {}
    }

    /// The text has not begun: a marker may come, with white space in front of it. True if there is more to do.
    fn advance_beginning(&mut self, text: Text, is_end: bool, out: &mut Vec<ChannelText>) -> bool {
        let front = self.held.len() - self.held.trim_start().len();
        let rest = &self.held[front..];
        if rest.is_empty() {
            if is_end && text.begins == Begins::First {
                let held = std::mem::take(&mut self.held);
                self.emit(text.channel, &held, out);
            }
            return false;
        }
        let is_opener = |pair: &Pair| pair.open.is_text && text.may_begin_with(pair);
        let mut openers = self.channels.pairs.iter().enumerate().filter(|(_, pair)| is_opener(pair));
        if let Some((index, pair)) = openers.clone().find(|(_, pair)| rest.starts_with(&pair.open.text)) {
            self.held = rest[pair.open.text.len()..].to_owned();
            self.at = self.open(index);
            return true;
        }
        if !is_end && openers.any(|(_, pair)| pair.open.text.starts_with(rest)) {
            return false;
        }
        if text.begins == Begins::AfterMarker {
            self.held.drain(..front);
        }
        self.begin(text, out);
        true
    }

    fn begin(&mut self, text: Text, out: &mut Vec<ChannelText>) {
        let separator = if text.channel == Channel::ToolCall { "\n" } else { "\n\n" };
        if text.begins == Begins::AfterMarker && self.written.contains(&text.channel) {
            self.emit(text.channel, separator, out);
        }
        self.at = At::Text(Text { begins: Begins::Begun, ..text });
    }

    /// The text has begun: its end may come. True if there is more to do.
    fn advance_begun(&mut self, text: Text, is_end: bool, out: &mut Vec<ChannelText>) -> bool {
        let close = text.pair.map(|index| &self.channels.pairs[index].close);
        let close = close.filter(|close| close.is_text).map(|close| close.text.as_str());
        let trims = text.channel != Channel::Answer || close.is_some();
        if let Some((before, after)) = close.and_then(|close| self.held.split_once(close)) {
            let (before, after) = (before.trim_end().to_owned(), after.to_owned());
            self.emit(text.channel, &before, out);
            self.held = after;
            self.at = text.pair.map_or(At::ANSWER, |index| self.after(index));
            return true;
        }
        let mut certain = self.held.len() - close.map_or(0, |close| overlap(&self.held, close));
        if trims {
            certain = self.held[..certain].trim_end().len();
        }
        let rest = if is_end { String::new() } else { self.held.split_off(certain) };
        let held = std::mem::replace(&mut self.held, rest);
        self.emit(text.channel, &held, out);
        false
    }

    fn emit(&mut self, channel: Channel, text: &str, out: &mut Vec<ChannelText>) {
        if text.is_empty() {
            return;
        }
        if !self.written.contains(&channel) {
            self.written.push(channel);
        }
        match out.last_mut() {
            Some(last) if last.channel == channel => last.text.push_str(text),
            _ => out.push(ChannelText { channel, text: text.to_owned() }),
        }
    }
}
