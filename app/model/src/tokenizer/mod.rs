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
use special::SpecialTokens;
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
        self.encode_parts(text, special, Cow::Borrowed)
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

    /// Inserts [`SHIELD`] into the names of control tokens, so that they pass through a template as text.
    ///
    /// The reasoning tags stay intact, because templates look for them to drop earlier reasoning.
    pub(crate) fn shield(&self, text: &str) -> String {
        // Text never contains the mark, a noncharacter; replace it in case it does.
        let text = text.replace(SHIELD, "\u{fffd}");
        let mut shielded = String::with_capacity(text.len());
        let mut from = 0;
        while let Some(hit) = self.special.find(&text, from, SpecialText::Parse) {
            let name = &text[hit.start..hit.end];
            let keep = self.kind(hit.id) == Some(TokenKind::UserDefined) || REASONING.contains(&name);
            let first = name.chars().next().map_or(0, char::len_utf8);
            let end = if keep { hit.end } else { hit.start + first };
            shielded.push_str(&text[from..end]);
            if !keep {
                shielded.push(SHIELD);
            }
            from = end;
        }
        shielded.push_str(&text[from..]);
        shielded
    }

    /// Encodes a rendered prompt whose messages passed through [`Self::shield`].
    pub(crate) fn encode_shielded(&self, text: &str) -> Vec<u32> {
        self.begin(self.encode_parts(text, SpecialText::Parse, |plain| match plain.contains(SHIELD) {
            true => Cow::Owned(plain.replace(SHIELD, "")),
            false => Cow::Borrowed(plain),
        }))
    }

    /// Keeps special tokens and transforms the text between them with `plain`.
    fn encode_parts<'t>(
        &self,
        text: &'t str,
        special: SpecialText,
        plain: impl Fn(&'t str) -> Cow<'t, str>,
    ) -> Vec<u32> {
        let mut ids = Vec::with_capacity(text.len() / 3 + 4);
        let mut scratch = Scratch::default();
        let mut from = 0;
        while let Some(hit) = self.special.find(text, from, special) {
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

/// Splits the name of a control token in a message. A noncharacter, which text should not contain.
const SHIELD: char = '\u{fdd0}';
/// Control tokens that templates look for in earlier answers.
const REASONING: [&str; 2] = ["<think>", "</think>"];
/// A symbol that is not a token. No vocabulary is this large.
const NO_TOKEN: u32 = u32::MAX;
