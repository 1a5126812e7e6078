//! Where lines end between the channels of an answer.

use potluck_panel::Channel;

/// What was shown of an answer: its own text on standard output, the rest on standard error.
#[derive(Debug)]
pub(crate) struct ChannelLines {
    /// Both are seen as one text.
    is_terminal: bool,
    last: Option<Channel>,
    /// The answer's own text has begun.
    has_answer: bool,
    /// Its line has no end yet.
    is_open: bool,
}

impl ChannelLines {
    /// Nothing is shown yet. A file or a pipe gets the answer as it is, a terminal (`is_terminal`) with lines that end.
    pub fn new(is_terminal: bool) -> Self {
        Self { is_terminal, last: None, has_answer: false, is_open: false }
    }

    /// The channel whose line ends before this text is shown.
    pub fn next(&mut self, channel: Channel, text: &str) -> Option<Channel> {
        if text.is_empty() {
            return None;
        }
        let last = self.last.replace(channel).filter(|last| *last != channel);
        let ends = match last {
            Some(Channel::Answer) => self.is_terminal && self.is_open,
            Some(Channel::Reasoning | Channel::ToolCall) => true,
            None => false,
        };
        if channel == Channel::Answer {
            self.has_answer = true;
            self.is_open = !text.ends_with('\n');
        }
        last.filter(|_| ends)
    }

    /// True if some of the answer's own text was shown.
    pub fn has_answer(&self) -> bool {
        self.has_answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Channel::{Answer, Reasoning, ToolCall};

    /// The pieces of an answer, with `|` where a line is ended.
    fn shown(is_terminal: bool, pieces: &[(Channel, &str)]) -> String {
        let mut lines = ChannelLines::new(is_terminal);
        let piece = |(channel, text): &(Channel, &str)| match lines.next(*channel, text) {
            Some(_) => format!("|{text}"),
            None => (*text).to_owned(),
        };
        pieces.iter().map(piece).collect()
    }

    /// Shown before on a terminal: "hmI look.now {}".
    #[test]
    fn a_call_begins_on_a_line_of_its_own() {
        let pieces = [(Reasoning, "h"), (Reasoning, "m"), (Answer, "I "), (Answer, "look."), (ToolCall, "now {}")];
        assert_eq!(shown(true, &pieces), "hm|I look.|now {}");
        assert_eq!(shown(false, &pieces), "hm|I look.now {}", "a file gets the answer as it is");
        assert_eq!(shown(true, &[(Reasoning, "hm"), (ToolCall, "now {}")]), "hm|now {}");
        assert_eq!(shown(true, &[(Answer, "I look.\n"), (Answer, ""), (ToolCall, "now {}")]), "I look.\nnow {}");
    }

    #[test]
    fn text_of_one_channel_is_one_text() {
        for channel in [Reasoning, Answer, ToolCall] {
            assert_eq!(shown(true, &[(channel, "a"), (Answer, ""), (channel, "b")]), "ab");
        }
    }
}
