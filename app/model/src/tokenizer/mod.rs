//! Text to token ids and back, from the vocabulary inside the GGUF file.
//!
//! Two families: byte-level BPE (`tokenizer.ggml.model = gpt2`), and SentencePiece BPE (`llama`), whose merges follow
//! from the scores of the pieces. Both end in one [`MergeTable`].

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

/// What to do with the text of control tokens (`<|im_end|>`) inside a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpecialText {
    /// It means the token: for rendered templates.
    Parse,
    /// It is ordinary text: for what a person typed.
    Literal,
}

/// Turns text into token ids and ids into text.
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

/// How a stretch of text without special tokens becomes symbols to merge.
#[derive(Clone, Debug)]
enum Family {
    /// Bytes of one word at a time.
    ByteLevel {
        split: PreTokenizer,
        /// The token of each byte; a byte without one is dropped.
        bytes: Box<[Option<u32>; 256]>,
        /// Words that are tokens as they stand, whatever the merges say (Llama 3).
        whole: Option<FxHashMap<Box<[u8]>, u32>>,
    },
    /// Characters of the whole stretch.
    SentencePiece {
        /// Put a space before each stretch.
        space_prefix: bool,
        chars: FxHashMap<char, u32>,
        /// `<0x00>` to `<0xFF>`, for characters without a piece.
        bytes: Box<[Option<u32>; 256]>,
        /// For characters without a piece if there are no byte tokens.
        unknown: Option<u32>,
    },
}

impl Tokenizer {
    /// The ids of a text, nothing added.
    pub fn encode(&self, text: &str, special: SpecialText) -> Vec<u32> {
        self.encode_parts(text, special, Cow::Borrowed)
    }

    /// The ids of a prompt: with the beginning-of-sequence token in front if the file asks for it and the text does
    /// not already start with it.
    pub fn encode_prompt(&self, text: &str, special: SpecialText) -> Vec<u32> {
        self.begin(self.encode(text, special))
    }

    /// The text of some ids; control tokens are left out, bytes that are not UTF-8 become U+FFFD.
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

    /// The bytes a token stands for; empty for an id outside the vocabulary. A control token has its name.
    pub fn piece(&self, id: u32) -> &[u8] {
        self.pieces.bytes(id)
    }

    /// The bytes of a token as text, for messages and templates.
    pub fn name(&self, id: u32) -> String {
        String::from_utf8_lossy(self.piece(id)).into_owned()
    }

    /// What a token is, `None` for an id outside the vocabulary.
    pub fn kind(&self, id: u32) -> Option<TokenKind> {
        self.pieces.kind(id)
    }

    /// How many tokens there are.
    pub fn len(&self) -> usize {
        self.pieces.len()
    }

    /// True if there are no tokens; a tokenizer read from a file always has some.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The id of a special (control, user-defined or unknown) token by its exact text.
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

    /// What was guessed or skipped while the vocabulary was read, to be shown once.
    pub fn warnings(&self) -> &[TokenizerWarning] {
        &self.warnings
    }

    /// The text with [`SHIELD`] inside the names of control tokens, so that they survive a template as text.
    ///
    /// The marks around a model's reasoning stay whole: templates look for them to leave old reasoning out.
    pub(crate) fn shield(&self, text: &str) -> String {
        // Nobody's text has the mark, because it is no character for interchange; to be sure it is replaced.
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

    /// The ids of a rendered prompt whose messages went through [`Self::shield`].
    pub(crate) fn encode_shielded(&self, text: &str) -> Vec<u32> {
        self.begin(self.encode_parts(text, SpecialText::Parse, |plain| match plain.contains(SHIELD) {
            true => Cow::Owned(plain.replace(SHIELD, "")),
            false => Cow::Borrowed(plain),
        }))
    }

    /// Special tokens as they are, what lies between as `plain` changes it.
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
                // A symbol of `NO_TOKEN` stands for a character without a piece: it never merges, so its place in the
                // text is found again by counting.
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

/// Parts the name of a control token in a message. A noncharacter, which no text should have.
const SHIELD: char = '\u{fdd0}';
/// Control tokens that templates look for in old answers.
const REASONING: [&str; 2] = ["<think>", "</think>"];
/// A symbol that is no token. No vocabulary is this large.
const NO_TOKEN: u32 = u32::MAX;
