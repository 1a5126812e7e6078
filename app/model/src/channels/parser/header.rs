//! Names of channels, and what to do with a text that turns out to be none.

use potluck_plan::{Channel, ChannelText};

use super::{At, Begins, ChannelParser};

/// Longest name of a channel, in bytes; what is longer is text.
const LONGEST_NAME: usize = 256;
/// Longest name that ends with its line.
const LONGEST_LABEL: usize = 32;

/// Names of channels with reasoning.
const REASONING: [&str; 5] = ["analysis", "thought", "think", "thinking", "reasoning"];
/// Other words of names.
const OTHERS: [&str; 8] = ["assistant", "commentary", "final", "json", "code", "response", "message", "tools"];

/// How a channel's name ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Header {
    /// With a marker; its text follows.
    Naming,
    /// As above. The prompt has begun it, and the answer may go without a name.
    Prompted,
    /// With a marker; the channel ends.
    Closing,
    /// With its line.
    Line,
}

impl ChannelParser {
    /// A name is complete.
    pub(super) fn enter_named(&mut self, out: &mut Vec<ChannelText>) {
        let name = std::mem::take(&mut self.held);
        let (channel, callee) = channel_of(&name);
        self.at = At::text(channel, None, Begins::AfterMarker);
        if let Some(callee) = callee {
            self.held = format!("{callee} ");
            self.advance(false, out);
        }
    }

    /// True if there is more to do.
    pub(super) fn advance_header(&mut self, header: Header, is_end: bool) -> bool {
        if header == Header::Line
            && let Some((label, rest)) = self.held.split_once('\n')
            && is_label(label.trim())
        {
            self.at = At::text(channel_of_label(label.trim()), None, Begins::AfterMarker);
            self.held = rest.to_owned();
            return true;
        }
        let text = self.mistaken(header, is_end);
        match text {
            Some(text) => self.at = text,
            None if is_end => self.held.clear(),
            None => {}
        }
        text.is_some()
    }

    /// The text found in place of a header: the held text cannot become a name, or is not one when the header ends.
    pub(super) fn mistaken(&self, header: Header, is_over: bool) -> Option<At> {
        let held = &self.held;
        let is_text = match header {
            Header::Line if is_over => !is_label(held.trim()),
            Header::Line => held.len() > LONGEST_LABEL || held.contains('\n'),
            Header::Prompted if is_over => true,
            Header::Naming if is_over && !is_name(held) => true,
            Header::Naming | Header::Prompted | Header::Closing => held.len() > LONGEST_NAME,
        };
        let text = if header == Header::Line { At::REASONING } else { At::ANSWER };
        is_text.then_some(text)
    }
}

/// The channel of this name, and the function that it calls.
fn channel_of(name: &str) -> (Channel, Option<&str>) {
    let mut words = name.split_whitespace();
    let recipient = words.clone().find_map(|word| word.strip_prefix("to="));
    match recipient {
        Some("self") => return (Channel::Reasoning, None),
        Some("user" | "assistant" | "all" | "") | None => {}
        Some(callee) => return (Channel::ToolCall, Some(callee.strip_prefix("functions.").unwrap_or(callee))),
    }
    if words.clone().next().is_some_and(|word| ["tools", "tool_calls", "call"].contains(&word)) {
        return (Channel::ToolCall, None);
    }
    (if words.any(|word| REASONING.contains(&word)) { Channel::Reasoning } else { Channel::Answer }, None)
}

/// The channel of a name that ends with its line.
fn channel_of_label(label: &str) -> Channel {
    if ["final", "answer", "response", "content"].contains(&label) { Channel::Answer } else { Channel::Reasoning }
}

/// True if this is the beginning of a channel's name, not unlabelled text.
pub(super) fn is_name(text: &str) -> bool {
    let begins = |word: &str| REASONING.iter().chain(&OTHERS).any(|name| name.starts_with(word));
    text.split_whitespace().all(|word| word.contains('=') || begins(word))
}

/// One word.
fn is_label(text: &str) -> bool {
    text.len() <= LONGEST_LABEL && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}
