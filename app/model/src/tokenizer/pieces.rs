//! The text and kind of each token.

/// The kind of a token (`tokenizer.ggml.token_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TokenKind {
    /// Text.
    Normal = 1,
    /// Replaces text that has no token.
    Unknown = 2,
    /// Steers the model; never shown, and parsed only in trusted text.
    Control = 3,
    /// Text that is always a single token.
    UserDefined = 4,
    /// A reserved id.
    Unused = 5,
    /// One byte (SentencePiece).
    Byte = 6,
}

impl TokenKind {
    /// The kind for the file's number; unknown numbers count as text.
    pub(super) fn from_number(number: i64) -> Self {
        match number {
            2 => Self::Unknown,
            3 => Self::Control,
            4 => Self::UserDefined,
            5 => Self::Unused,
            6 => Self::Byte,
            _ => Self::Normal,
        }
    }
}

/// The bytes and kind of every token, in two arrays.
#[derive(Clone, Debug, Default)]
pub(super) struct Pieces {
    bytes: Vec<u8>,
    ends: Vec<u32>,
    kinds: Vec<TokenKind>,
    longest: usize,
}

impl Pieces {
    pub(super) fn push(&mut self, bytes: &[u8], kind: TokenKind) {
        self.bytes.extend_from_slice(bytes);
        self.longest = self.longest.max(bytes.len());
        self.ends.push(self.bytes.len() as u32);
        self.kinds.push(kind);
    }

    pub(super) fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Bytes of the longest token.
    pub(super) fn longest(&self) -> usize {
        self.longest
    }

    pub(super) fn kind(&self, id: u32) -> Option<TokenKind> {
        self.kinds.get(id as usize).copied()
    }

    pub(super) fn bytes(&self, id: u32) -> &[u8] {
        let id = id as usize;
        let Some(&end) = self.ends.get(id) else { return &[] };
        let start = if id == 0 { 0 } else { self.ends[id - 1] };
        &self.bytes[start as usize..end as usize]
    }
}
