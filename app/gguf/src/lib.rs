//! GGUF: header, tensor directory, block layouts, reference dequantizer and a writer. No I/O.
//!
//! - [`HeaderParser`] reads a header from bytes that arrive in pieces; [`join`] makes a [`Model`] of one or several files.
//! - [`dequantize`] turns the bytes of any tensor type into floats, slowly and exactly: the reference for kernels.
//! - [`quantize`] and [`GgufWriter`] make files; [`synthetic`] makes whole models from a seed.
//!
//! Everything in a file is untrusted: sums and products are checked, counts are bounded before anything is allocated,
//! and each error is a sentence that names the key, the tensor or the type.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod cursor;
mod dequantize;
mod error;
mod header;
mod metadata;
mod mixture;
mod model;
mod parser;
mod quantize;
pub mod synthetic;
mod tensor_type;
mod value;
mod writer;

pub use dequantize::{Codebook, dequantize};
pub use error::GgufError;
pub use header::{ALIGNMENT_KEY, DEFAULT_ALIGNMENT, Header, MAGIC, MAX_ALIGNMENT, MAX_DIMS, TensorInfo};
pub use metadata::Metadata;
pub use mixture::quantization;
pub use model::{Model, SPLIT_COUNT_KEY, SPLIT_NO_KEY, SPLIT_TENSORS_KEY, join, split_count};
pub use parser::{HeaderParser, MAX_HEADER_BYTES, MAX_NAME_BYTES, MAX_VALUE_BYTES};
pub use quantize::quantize;
pub use tensor_type::TensorType;
pub use value::{Array, Value};
pub use writer::{GgufWriter, WriteError};

/// What a parser has after some bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress {
    /// The header is longer than what came so far.
    NeedMore {
        /// At least this many more bytes; a good size for the next request.
        at_least: u64,
    },
    /// The header is complete.
    Done(Box<Header>),
}

/// Reads the header at the start of `bytes`, which may be a whole file or only its beginning.
///
/// # Errors
/// [`GgufError::Truncated`] if the header is longer than `bytes`, else its first fault.
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
