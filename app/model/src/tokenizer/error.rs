//! Errors of vocabularies.

use potluck_gguf::GgufError;
use thiserror::Error;

/// Why a vocabulary cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TokenizerError {
    /// A metadata key is missing or has the wrong type.
    #[error(transparent)]
    Metadata(#[from] GgufError),
    /// `tokenizer.ggml.model` names another family.
    #[error(
        "The file's tokenizer is of the kind \"{0}\"; only \"gpt2\" (byte-level BPE), \"gemma4\" (BPE of raw text), \"llama\" \
         (SentencePiece BPE) and \"t5\" (SentencePiece unigram) work here, so choose another model."
    )]
    UnsupportedModel(String),
    /// `tokenizer.ggml.pre` has an unknown name.
    #[error(
        "The file splits text into words as \"{0}\", which is unknown here and would give wrong answers; choose \
         another file of this model, or a newer version of this program."
    )]
    UnknownPreTokenizer(String),
    /// No tokens at all, or more than ids can number.
    #[error("The file's vocabulary has {0} tokens; choose another file of this model.")]
    BadSize(usize),
    /// An array's length differs from the number of tokens.
    #[error(
        "The metadata key \"{key}\" has {found} entries, but there are {expected} tokens; choose another file of this model."
    )]
    LengthMismatch {
        /// The key.
        key: &'static str,
        /// Its entries.
        found: usize,
        /// Tokens.
        expected: usize,
    },
}

/// Something was guessed or skipped. Nothing fails, but answers may be worse.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TokenizerWarning {
    /// `tokenizer.ggml.pre` is missing, as in old files.
    #[error("The file does not say how it splits text into words; \"default\" is assumed.")]
    NoPreTokenizer,
    /// Merges whose parts or result are not tokens.
    #[error("{0} merges of the vocabulary name tokens that do not exist, and are left out.")]
    SkippedMerges(usize),
    /// The beginning or the end of texts is a token that does not exist.
    #[error("The metadata key \"{key}\" names token {id}, but there are only {tokens}; it is left out.")]
    AbsentToken {
        /// The key.
        key: &'static str,
        /// The id.
        id: u32,
        /// Tokens.
        tokens: usize,
    },
    /// Bytes without a token.
    #[error("{0} of the bytes of UTF-8 have no token; text with them loses them.")]
    MissingBytes(usize),
}
