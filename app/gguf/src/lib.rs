//! Reads and writes GGUF: header, tensor directory, block layouts, reference dequantizer, writer. No I/O.
//!
//! - [`HeaderParser`] parses a header incrementally; [`join`] combines the headers of one or several files into a
//!   [`Model`].
//! - [`dequantize`] converts any tensor type to floats, slowly and exactly: the reference for the kernels.
//! - [`first_not_finite`] finds broken numbers without dequantizing.
//! - [`quantize`] and [`GgufWriter`] write files, [`Requantized`] the same model in another type; [`synthetic`] generates
//!   whole models from a seed.
//!
//! Files are untrusted: arithmetic is checked, counts are bounded before anything is allocated, and every error names
//! the key, tensor or type at fault.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod cursor;
mod dequantize;
mod error;
mod finite;
mod foreign;
mod fork_types;
mod header;
mod metadata;
mod mixture;
mod model;
mod parser;
mod quantize;
mod requantize;
pub mod synthetic;
mod tensor_type;
mod value;
mod writer;

pub use dequantize::{Codebook, dequantize};
pub use error::GgufError;
pub use finite::first_not_finite;
pub use foreign::ForeignFile;
pub use header::{ALIGNMENT_KEY, DEFAULT_ALIGNMENT, Header, MAGIC, MAX_ALIGNMENT, MAX_DIMS, TensorInfo};
pub use metadata::Metadata;
pub use mixture::quantization;
pub use model::{Model, SPLIT_COUNT_KEY, SPLIT_NO_KEY, SPLIT_TENSORS_KEY, first_split_count, join, split_count};
pub use parser::{HeaderParser, MAX_HEADER_BYTES, MAX_NAME_BYTES, MAX_VALUE_BYTES};
pub use quantize::quantize;
pub use requantize::{Requantized, fitting, requantize_rows};
pub use tensor_type::TensorType;
pub use value::{Array, Value};
pub use writer::{GgufWriter, WriteError};

/// The parser's progress after a push.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress {
    /// The header continues beyond the bytes pushed so far.
    NeedMore {
        /// At least this many more bytes are needed; a good size for the next request.
        at_least: u64,
    },
    /// The header is complete.
    Done(Box<Header>),
}

/// Parses the header at the start of `bytes`, which may be the complete file or only a prefix.
///
/// # Errors
/// [`GgufError::Truncated`] if the header is longer than `bytes`, otherwise the first fault found.
pub fn parse(bytes: &[u8]) -> Result<Header, GgufError> {
    match HeaderParser::new().push(bytes)? {
        Progress::Done(header) => Ok(*header),
        Progress::NeedMore { at_least } => Err(GgufError::Truncated {
            what: "the header".to_string(),
            needed: (bytes.len() as u64).saturating_add(at_least),
            length: bytes.len() as u64,
        }),
    }
}
