//! Converts text to token ids and back, using the vocabulary in the GGUF file.
//!
//! Supports two families: byte-level BPE (`tokenizer.ggml.model = gpt2`) and SentencePiece BPE (`llama`), whose merges
//! derive from the scores of the pieces. Both use one [`MergeTable`].

mod bytes;
mod detokenize;
mod error;
mod merge;
mod pieces;
mod read;
mod special;
mod split;

use std::borrow::Cow;

pub use detokenize::Detokenizer;
pub use error::{TokenizerError, TokenizerWarning};
pub use pieces::TokenKind;

use merge::{MergeTable, Scratch};
use pieces::Pieces;
use rustc_hash::FxHashMap;
use special::{Hit, SpecialTokens};
use split::PreTokenizer;

/// How to treat the names of control tokens (`<|im_end|>`) in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpecialText {
    /// Encode them as the tokens: for rendered templates.
    Parse,
    /// Encode them as ordinary text: for user input.
    Literal,
}

/// Converts text to token ids and back.
#[derive(Clone, Debug)]
pub struct Tokenizer {
    pieces: Pieces,
    family: Family,
    merges: MergeTable,
    special: SpecialTokens,
    bos: Option<u32>,
    eos: Option<u32>,
    add_bos: bool,
    warnings: Vec<TokenizerWarning>,
}

/// How a span of text without special tokens becomes symbols to merge.
#[derive(Clone, Debug)]
enum Family {
    /// Each word separately, as bytes.
    ByteLevel {
        split: PreTokenizer,
        /// The token of each byte; bytes without a token are dropped.
        bytes: Box<[Option<u32>; 256]>,
        /// Words that are tokens themselves and skip the merges (Llama 3).
        whole: Option<FxHashMap<Box<[u8]>, u32>>,
    },
    /// The whole span at once, as characters.
    SentencePiece {
        /// Put a space in front of each span.
        space_prefix: bool,
        chars: FxHashMap<char, u32>,
        /// `<0x00>` to `<0xFF>`, for characters without a piece.
        bytes: Box<[Option<u32>; 256]>,
        /// Replaces characters without a piece if there are no byte tokens.
        unknown: Option<u32>,
    },
}

impl Tokenizer {
    /// Encodes a text without adding tokens.
    pub fn encode(&self, text: &str, special: SpecialText) -> Vec<u32> {
        self.encode_parts(text, |from| self.special.find(text, from, special), Cow::Borrowed)
    }

    /// Encodes a prompt: prepends the beginning-of-sequence token if the file asks for it and the text does not start
    /// with it already.
    pub fn encode_prompt(&self, text: &str, special: SpecialText) -> Vec<u32> {
        self.begin(self.encode(text, special))
    }

    /// Decodes ids to text; omits control tokens and replaces invalid UTF-8 by U+FFFD.
    pub fn decode(&self, ids: &[u32]) -> String {
        let mut detokenizer = self.detokenizer();
        let mut text: String = ids.iter().map(|&id| detokenizer.push(self, id)).collect();
        text.push_str(&detokenizer.finish());
        text
    }

    /// A streaming [`Self::decode`].
    pub fn detokenizer(&self) -> Detokenizer {
        Detokenizer::new(matches!(self.family, Family::SentencePiece { space_prefix: true, .. }))
    }

    /// The bytes of a token; empty for an id outside the vocabulary. For a control token, its name.
    pub fn piece(&self, id: u32) -> &[u8] {
        self.pieces.bytes(id)
    }

    /// The bytes of a token as text, for messages and templates.
    pub fn name(&self, id: u32) -> String {
        String::from_utf8_lossy(self.piece(id)).into_owned()
    }

    /// The kind of a token, `None` for an id outside the vocabulary.
    pub fn kind(&self, id: u32) -> Option<TokenKind> {
        self.pieces.kind(id)
    }

    /// Number of tokens.
    pub fn len(&self) -> usize {
        self.pieces.len()
    }

    /// True if there are no tokens, which never happens for a tokenizer read from a file.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of the longest token.
    pub fn longest_piece(&self) -> usize {
        self.pieces.longest()
    }

    /// Looks up a special (control, user-defined or unknown) token by its exact text.
    pub fn special_id(&self, text: &str) -> Option<u32> {
        self.special.id(text)
    }

    /// The beginning-of-sequence token.
    pub fn bos(&self) -> Option<u32> {
        self.bos
    }

    /// The end-of-sequence token.
    pub fn eos(&self) -> Option<u32> {
        self.eos
    }

    /// Guesses and omissions made while reading the vocabulary; show them once.
    pub fn warnings(&self) -> &[TokenizerWarning] {
        &self.warnings
    }

    /// Marks a person's text, so that no name of a control token in it survives a template: the text keeps a mark behind
    /// every character with which a name may begin, and one in front if it could end a name that the template began.
    /// [`Self::encode_shielded`] removes the marks. Text without such characters stays as it is, so templates see what they
    /// always saw. User-defined tokens are text and stay whole; so do the reasoning tags of an answer with `reasoning`,
    /// because templates look for them to drop earlier reasoning.
    pub(crate) fn shield(&self, text: &str, reasoning: bool) -> String {
        // Text never contains the marks, which are noncharacters; replace them in case it does.
        let text = text.replace([BREAK, FRONT], "\u{fffd}");
        let mut shielded = String::with_capacity(text.len() + text.len() / 16);
        // Behind white space, because templates strip it.
        let front = text.len() - text.trim_start().len();
        let mut guard = text[front..].starts_with(|c| self.special.may_continue(c));
        let mut at = 0;
        while let Some(c) = text[at..].chars().next() {
            if guard && at >= front {
                shielded.push(FRONT);
                guard = false;
            }
            let whole = self.special.find_at(&text, at, SpecialText::Parse).filter(|hit| {
                let is_tag = reasoning && REASONING.contains(&&text[hit.start..hit.end]);
                is_tag || self.kind(hit.id) == Some(TokenKind::UserDefined)
            });
            let end = whole.map_or(at + c.len_utf8(), |hit| hit.end);
            let may_begin = whole.is_none() && self.special.may_begin(c);
            // A name of one character is marked on both sides, because nothing can be put into it.
            if may_begin && self.special.id(&text[at..end]).is_some() {
                shielded.push(FRONT);
            }
            shielded.push_str(&text[at..end]);
            if may_begin {
                shielded.push(BREAK);
            }
            at = end;
        }
        shielded
    }

    /// Encodes a rendered prompt whose messages passed through [`Self::shield`].
    pub(crate) fn encode_shielded(&self, text: &str) -> Vec<u32> {
        let next = |from: usize| {
            let mut from = from;
            loop {
                let hit = self.special.find(text, from, SpecialText::Parse)?;
                let is_shielded = text[hit.end..].starts_with(BREAK) || text[..hit.start].ends_with(FRONT);
                if !is_shielded {
                    return Some(hit);
                }
                from = hit.start + text[hit.start..].chars().next().map_or(1, char::len_utf8);
            }
        };
        self.begin(self.encode_parts(text, next, |plain| match plain.contains([BREAK, FRONT]) {
            true => Cow::Owned(plain.replace([BREAK, FRONT], "")),
            false => Cow::Borrowed(plain),
        }))
    }

    /// Keeps the special tokens that `next` finds from a byte on, and transforms the text between them with `plain`.
    fn encode_parts<'t>(
        &self,
        text: &'t str,
        next: impl Fn(usize) -> Option<Hit>,
        plain: impl Fn(&'t str) -> Cow<'t, str>,
    ) -> Vec<u32> {
        let mut ids = Vec::with_capacity(text.len() / 3 + 4);
        let mut scratch = Scratch::default();
        let mut from = 0;
        while let Some(hit) = next(from) {
            self.encode_plain(&plain(&text[from..hit.start]), &mut ids, &mut scratch);
            ids.push(hit.id);
            from = hit.end;
        }
        self.encode_plain(&plain(&text[from..]), &mut ids, &mut scratch);
        ids
    }

    fn begin(&self, mut ids: Vec<u32>) -> Vec<u32> {
        if let Some(bos) = self.bos.filter(|bos| self.add_bos && ids.first() != Some(bos)) {
            ids.insert(0, bos);
        }
        ids
    }

    fn encode_plain(&self, text: &str, ids: &mut Vec<u32>, scratch: &mut Scratch) {
        if text.is_empty() {
            return;
        }
        match &self.family {
            Family::ByteLevel { split, bytes, whole } => split.for_each(text, &mut |word| {
                if let Some(&id) = whole.as_ref().and_then(|whole| whole.get(word.as_bytes())) {
                    ids.push(id);
                    return;
                }
                scratch.symbols.clear();
                scratch.symbols.extend(word.bytes().filter_map(|byte| bytes[usize::from(byte)]));
                self.merges.apply(scratch);
                ids.extend_from_slice(&scratch.symbols);
            }),
            Family::SentencePiece { space_prefix, chars, bytes, unknown } => {
                // `NO_TOKEN` marks a character without a piece: it never merges, so counting characters finds its place
                // in the text again.
                scratch.symbols.clear();
                let spaced = space_prefix.then_some(' ').into_iter().chain(text.chars());
                let symbols = spaced.clone().map(|c| chars.get(&c).copied().unwrap_or(NO_TOKEN));
                scratch.symbols.extend(symbols);
                self.merges.apply(scratch);
                let mut missing = spaced.filter(|c| !chars.contains_key(c));
                let mut after_unknown = false;
                for &symbol in &scratch.symbols {
                    if symbol != NO_TOKEN {
                        ids.push(symbol);
                        after_unknown = false;
                    } else if let Some(c) = missing.next() {
                        let mut buffer = [0; 4];
                        let encoded = c.encode_utf8(&mut buffer).as_bytes();
                        if encoded.iter().all(|&byte| bytes[usize::from(byte)].is_some()) {
                            ids.extend(encoded.iter().filter_map(|&byte| bytes[usize::from(byte)]));
                        } else if !after_unknown {
                            ids.extend(*unknown);
                            after_unknown = true;
                        }
                    }
                }
            }
        }
    }
}

/// Follows a character of a message with which the name of a control token may begin. A noncharacter, which text should not
/// contain.
const BREAK: char = '\u{fdd0}';
/// Precedes a message with whose text the name of a control token may go on, and a character that is such a name.
const FRONT: char = '\u{fdd1}';
/// Control tokens that templates look for in earlier answers.
const REASONING: [&str; 2] = ["<think>", "</think>"];
/// A symbol that is not a token. No vocabulary is this large.
const NO_TOKEN: u32 = u32::MAX;
