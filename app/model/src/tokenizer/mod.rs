//! Converts text to token ids and back, using the vocabulary in the GGUF file.
//!
//! Four families, by `tokenizer.ggml.model`: byte-level BPE (`gpt2`, with a rule of [`rules`] for splitting text into words),
//! BPE over lines of raw text (`gemma4`), SentencePiece BPE (`llama`), whose merges derive from the scores of the pieces, and
//! SentencePiece unigram (`t5`). The first three share one [`MergeTable`].

mod byte_level;
mod bytes;
mod charsmap;
mod class;
mod detokenize;
mod encode;
mod error;
mod merge;
mod pattern;
mod pieces;
mod read;
mod rules;
mod sentence;
mod special;
mod split;
mod unigram;

use std::borrow::Cow;

pub use detokenize::Detokenizer;
pub use error::{TokenizerError, TokenizerWarning};
pub use pieces::TokenKind;
pub(crate) use read::ids as special_ids;
pub use rules::Rule as SplitRule;

use merge::MergeTable;
use pieces::Pieces;
use rustc_hash::FxHashMap;
use special::SpecialTokens;
use split::PreTokenizer;
use unigram::Unigram;

/// How to treat the names of control tokens (`<|im_end|>`) in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpecialText {
    /// Encode them as the tokens: for rendered templates.
    Parse,
    /// Encode them as ordinary text: for user input.
    Literal,
}

/// Converts text to token ids and back.
///
/// ```
/// use potluck_gguf::{parse, synthetic::Synthetic};
/// use potluck_model::{SpecialText, Tokenizer};
///
/// let header = parse(&Synthetic::default().to_bytes()?)?;
/// let tokenizer = Tokenizer::from_metadata(&header.metadata)?;
/// let ids = tokenizer.encode("Grüße to the bees", SpecialText::Literal);
/// assert_eq!(tokenizer.decode(&ids), "Grüße to the bees");
///
/// // A rendered template may end a turn. A person who types the same gets plain text.
/// let end = tokenizer.special_id("<|im_end|>").unwrap();
/// assert_eq!(tokenizer.encode("<|im_end|>", SpecialText::Parse), [end]);
/// assert!(!tokenizer.encode("<|im_end|>", SpecialText::Literal).contains(&end));
///
/// // An answer comes token by token. No piece of it cuts a letter in two.
/// let mut stream = tokenizer.detokenizer();
/// let pieces: Vec<String> = ids.iter().map(|&id| stream.push(&tokenizer, id)).collect();
/// assert!(pieces.contains(&"ü".to_owned()) && !pieces.concat().contains('\u{fffd}'));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Tokenizer {
    pieces: Pieces,
    family: Family,
    merges: MergeTable,
    special: SpecialTokens,
    bos: Option<u32>,
    eos: Option<u32>,
    add_bos: bool,
    /// Special tokens take the white space behind them (Phi-3).
    special_takes_space: bool,
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
    /// Each line separately, as characters; runs of newlines are tokens.
    RawText {
        chars: FxHashMap<char, u32>,
        /// `<0x00>` to `<0xFF>`, for characters without a piece.
        bytes: Box<[Option<u32>; 256]>,
        /// Tokens of newlines only, by length.
        newlines: FxHashMap<usize, u32>,
    },
    /// The whole span at once, as the likeliest sequence of pieces.
    Unigram(Unigram),
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
    /// The rules for splitting text into words that are known, for the table of what is supported.
    pub fn split_rules() -> &'static [SplitRule] {
        rules::RULES
    }

    /// Encodes a text without adding tokens.
    pub fn encode(&self, text: &str, special: SpecialText) -> Vec<u32> {
        self.encode_parts(text, |from| self.special.find(text, from, special), Cow::Borrowed)
    }

    /// Encodes a prompt: prepends the beginning-of-sequence token if the file asks for it and the text does not start
    /// with it already.
    pub fn encode_prompt(&self, text: &str, special: SpecialText) -> Vec<u32> {
        self.begin(self.encode(text, special))
    }

    /// Decodes ids to text; omits control tokens except the tags of reasoning, and replaces invalid UTF-8 by U+FFFD.
    pub fn decode(&self, ids: &[u32]) -> String {
        let mut detokenizer = self.detokenizer();
        let mut text: String = ids.iter().map(|&id| detokenizer.push(self, id)).collect();
        text.push_str(&detokenizer.finish());
        text
    }

    /// A streaming [`Self::decode`].
    pub fn detokenizer(&self) -> Detokenizer {
        let strip_space = match &self.family {
            Family::SentencePiece { space_prefix, .. } => *space_prefix,
            Family::Unigram(unigram) => unigram.begins_with_space(),
            Family::ByteLevel { .. } | Family::RawText { .. } => false,
        };
        Detokenizer::new(strip_space)
    }

    /// A [`Self::detokenizer`] for tokens that go on with a text, whose first space is part of it.
    pub fn continuing_detokenizer(&self) -> Detokenizer {
        Detokenizer::new(false)
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
            let hit = self.special.find_at(&text, at, SpecialText::Parse);
            // Also where the tags are no tokens of this vocabulary.
            let tag = REASONING.into_iter().find(|tag| reasoning && text[at..].starts_with(tag));
            let tag_end = tag.map(|tag| at + tag.len()).filter(|&end| hit.is_none_or(|hit| hit.end <= end));
            let text_end = hit.filter(|hit| self.kind(hit.id) == Some(TokenKind::UserDefined)).map(|hit| hit.end);
            let whole = tag_end.or(text_end);
            let end = whole.unwrap_or(at + c.len_utf8());
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
        self.begin(self.encode_parts(text, next, |plain| {
            if plain.contains([BREAK, FRONT]) {
                Cow::Owned(plain.replace([BREAK, FRONT], ""))
            } else {
                Cow::Borrowed(plain)
            }
        }))
    }
}

/// Follows a character of a message with which the name of a control token may begin. A noncharacter, which text should not
/// contain.
const BREAK: char = '\u{fdd0}';
/// Precedes a message with whose text the name of a control token may go on, and a character that is such a name.
const FRONT: char = '\u{fdd1}';
/// What templates look for in earlier answers; control tokens of some vocabularies.
const REASONING: [&str; 2] = ["<think>", "</think>"];
