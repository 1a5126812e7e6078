//! Converts token ids to text, one at a time.

use super::{REASONING, TokenKind, Tokenizer};

/// Buffers the tokens' bytes and emits only complete characters.
#[derive(Clone, Debug, Default)]
pub struct Detokenizer {
    /// An incomplete character; at most three bytes.
    pending: Vec<u8>,
    /// The next visible token is the first: strip the leading space that the encoder added.
    strip_space: bool,
}

impl Detokenizer {
    pub(super) fn new(strip_space: bool) -> Self {
        Self { pending: Vec::new(), strip_space }
    }

    /// The text that this token completes; often empty, never with a partial character. Control tokens give no text, except
    /// the tags of reasoning, by which a page folds it and templates find it.
    pub fn push(&mut self, tokenizer: &Tokenizer, id: u32) -> String {
        match tokenizer.kind(id) {
            Some(TokenKind::Control) if REASONING.iter().any(|tag| tag.as_bytes() == tokenizer.piece(id)) => {
                self.strip_space = false;
                self.pending.extend_from_slice(tokenizer.piece(id));
            }
            None | Some(TokenKind::Control | TokenKind::Unused) => return String::new(),
            Some(TokenKind::Unknown) => self.pending.extend_from_slice("\u{fffd}".as_bytes()),
            Some(TokenKind::Normal | TokenKind::UserDefined | TokenKind::Byte) => {
                let mut bytes = tokenizer.piece(id);
                if std::mem::take(&mut self.strip_space) {
                    bytes = bytes.strip_prefix(b" ").unwrap_or(bytes);
                }
                self.pending.extend_from_slice(bytes);
            }
        }
        self.take(false)
    }

    /// Flushes the rest: U+FFFD if a character was cut off.
    pub fn finish(&mut self) -> String {
        self.take(true)
    }

    fn take(&mut self, all: bool) -> String {
        let mut text = String::new();
        let mut used = 0;
        for chunk in self.pending.utf8_chunks() {
            text.push_str(chunk.valid());
            used += chunk.valid().len();
            let invalid = chunk.invalid();
            let at_end = used + invalid.len() == self.pending.len();
            if invalid.is_empty() || (at_end && !all && may_continue(invalid)) {
                break;
            }
            text.push('\u{fffd}');
            used += invalid.len();
        }
        self.pending.drain(..used);
        text
    }
}

/// True if more bytes could complete a character.
fn may_continue(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}
