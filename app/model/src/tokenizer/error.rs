//! What can be wrong with a vocabulary.

use potluck_gguf::GgufError;
use thiserror::Error;

/// Why a vocabulary cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TokenizerError {
    /// A metadata key is missing or has another type.
    #[error(transparent)]
    Metadata(#[from] GgufError),
    /// `tokenizer.ggml.model` is neither `gpt2` nor `llama`.
    #[error(
        "The file's tokenizer is of the kind \"{0}\"; only \"gpt2\" (byte-level BPE) and \"llama\" (SentencePiece) work here."
    )]
    UnsupportedModel(String),
    /// No tokens at all, or more than ids can count.
    #[error("The file's vocabulary has {0} tokens.")]
    BadSize(usize),
    /// An array beside the tokens has another length.
    #[error("The metadata key \"{key}\" has {found} entries, but there are {expected} tokens.")]
    LengthMismatch {
        /// The key.
        key: &'static str,
        /// Its entries.
        found: usize,
        /// Tokens.
        expected: usize,
    },
    /// A special id outside the vocabulary.
    #[error("The metadata key \"{key}\" names token {id}, but there are only {tokens} tokens.")]
    IdOutOfRange {
        /// The key.
        key: &'static str,
        /// The id.
        id: u32,
        /// Tokens.
        tokens: usize,
    },
}

/// Something guessed or skipped: answers may be worse, nothing fails.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TokenizerWarning {
    /// `tokenizer.ggml.pre` is missing; old files do not have it.
    #[error("The file does not say how it splits text into words; \"default\" is assumed.")]
    NoPreTokenizer,
    /// `tokenizer.ggml.pre` is a name we do not know.
    #[error("The file splits text into words as \"{0}\", which is unknown here; \"llama-bpe\" is used instead.")]
    UnknownPreTokenizer(String),
    /// Merges whose parts or result are not tokens.
    #[error("{0} merges of the vocabulary name tokens that do not exist, and are left out.")]
    SkippedMerges(usize),
    /// Bytes that no token stands for.
    #[error("{0} of the bytes of UTF-8 have no token; text with them loses them.")]
    MissingBytes(usize),
}
