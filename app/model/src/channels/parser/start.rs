//! Where an answer begins: in a channel that its prompt, or the existing part of the answer, has already opened.

use std::sync::Arc;

use potluck_plan::Channel;

use super::header::Header;
use super::{At, Begins, ChannelParser, Text};
use crate::channels::table::HeaderMarker;
use crate::channels::{Act, Channels};
use crate::{TokenKind, Tokenizer};

/// Tokens at the end of a prompt among which an answer may have begun.
const TAIL: usize = 64;

impl Channels {
    /// A parser of the answer to a prompt, which may have begun it.
    pub fn parser(self: &Arc<Self>, tokenizer: &Tokenizer, prompt: &[u32]) -> ChannelParser {
        let mut parser = self.fresh(tokenizer, At::text(Channel::Answer, None, Begins::First));
        let tail = &prompt[prompt.len().saturating_sub(TAIL)..];
        let begins = |id: &u32| match self.by_id.get(id) {
            Some(Act::Header(HeaderMarker::Header | HeaderMarker::Line)) => {
                tokenizer.kind(*id) == Some(TokenKind::Control)
            }
            _ => false,
        };
        if let Some(from) = tail.iter().rposition(begins) {
            tail[from..].iter().for_each(|id| drop(parser.push(tokenizer, *id)));
            match parser.at {
                // The role is the template's.
                At::Header(Header::Naming) => {
                    parser.held.clear();
                    parser.at = At::Header(Header::Prompted);
                }
                At::Text(Text { channel: Channel::Answer, .. }) => {
                    parser.held.clear();
                    parser.at = At::text(Channel::Answer, None, Begins::First);
                }
                _ => {}
            }
            parser.written.clear();
            parser.at_line_start = true;
            parser.detokenizer = tokenizer.detokenizer();
        } else {
            let end: Vec<u8> = tail.iter().flat_map(|id| tokenizer.piece(*id)).copied().collect();
            if let Some(index) = self.opened_by(&String::from_utf8_lossy(&end)) {
                parser.at = At::text(self.pairs[index].channel, Some(index), Begins::AfterMarker);
            }
        }
        parser
    }

    /// A parser of the rest of an answer that ends in this channel.
    pub fn parser_within(self: &Arc<Self>, tokenizer: &Tokenizer, channel: Channel) -> ChannelParser {
        let pair = if channel == Channel::Reasoning { self.reasoning } else { None };
        // The first space belongs to the text.
        let detokenizer = tokenizer.continuing_detokenizer();
        let fresh = self.fresh(tokenizer, At::text(channel, pair, Begins::Begun));
        ChannelParser { detokenizer, at_line_start: false, ..fresh }
    }

    fn fresh(self: &Arc<Self>, tokenizer: &Tokenizer, at: At) -> ChannelParser {
        let detokenizer = tokenizer.detokenizer();
        let (channels, held, written) = (self.clone(), String::new(), Vec::new());
        ChannelParser { channels, detokenizer, at, held, at_line_start: true, written }
    }
}
