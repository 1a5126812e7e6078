//! Errors of GGUF files, each phrased so that a person can act on it.

use thiserror::Error;

use crate::{ForeignFile, TensorType, fork_types};

/// What is wrong with a GGUF file or with a request about one.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum GgufError {
    /// There are no bytes.
    #[error("This file is empty: download it again, or choose another one.")]
    Empty,
    /// The first four bytes are not `GGUF`.
    #[error("This is not a GGUF file: {}.", not_gguf(.found, .is.as_ref()))]
    NotGguf {
        /// The bytes found instead.
        found: [u8; 4],
        /// What the file is, if that is known.
        is: Option<ForeignFile>,
    },
    /// Written for a big-endian machine.
    #[error("This GGUF file is big-endian: choose a little-endian file of this model, as almost all are.")]
    BigEndian,
    /// A version other than 2 and 3.
    #[error("This is GGUF version {version}; versions 2 and 3 can be read here, so {}.", version_advice(*.version))]
    UnsupportedVersion {
        /// The file's version.
        version: u32,
    },
    /// The file ends inside its header or inside a tensor.
    #[error(
        "The file is truncated: {what} needs {needed} bytes, but the file has {length}; its download did not finish, or it is \
         one part of several, so download all of it again."
    )]
    Truncated {
        /// What is cut off.
        what: String,
        /// Bytes the file needs.
        needed: u64,
        /// Bytes it has.
        length: u64,
    },
    /// A size or count in the header that no valid file has.
    #[error(
        "The file is corrupt: {what} is {value}, the most that is accepted is {limit}; download it again, or choose another file."
    )]
    TooLarge {
        /// Which size or count.
        what: String,
        /// Its value.
        value: u64,
        /// The bound.
        limit: u64,
    },
    /// Bytes that should be text are not UTF-8.
    #[error("The file is corrupt: {what} is not valid UTF-8; download it again, or choose another file.")]
    NotText {
        /// Which text.
        what: String,
    },
    /// A metadata value has an unknown type.
    #[error(
        "The metadata key \"{key}\" has the unknown value type {id}; download the file again, or choose another one."
    )]
    UnknownValueType {
        /// The key.
        key: String,
        /// The number in the file.
        id: u32,
    },
    /// Two metadata pairs share a key.
    #[error("The metadata key \"{key}\" appears twice; choose another file of this model.")]
    DuplicateKey {
        /// The key.
        key: String,
    },
    /// A required metadata key is missing.
    #[error("The file's metadata lacks the key \"{key}\"; choose another file of this model.")]
    MissingKey {
        /// The key.
        key: String,
    },
    /// A metadata value has the wrong type.
    #[error("The metadata key \"{key}\" should be {expected}, but it is {found}; choose another file of this model.")]
    WrongType {
        /// The key.
        key: String,
        /// What the reader needs.
        expected: &'static str,
        /// What the file has.
        found: String,
    },
    /// `general.alignment` is not usable.
    #[error(
        "The alignment {alignment} (general.alignment) is not a power of two of at most 1048576; choose another file of this model."
    )]
    BadAlignment {
        /// The value in the file.
        alignment: u64,
    },
    /// Two tensors share a name.
    #[error("The tensor \"{name}\" appears twice; choose another file of this model.")]
    DuplicateTensor {
        /// The name.
        name: String,
    },
    /// A tensor has a type that this build does not know.
    #[error(
        "The tensor \"{name}\" has the type {}; choose another quantization of the model, such as Q4_K_M or Q8_0.",
        fork_types::describe(*.id)
    )]
    UnknownTensorType {
        /// The tensor.
        name: String,
        /// The number in the file.
        id: u32,
    },
    /// A tensor's dimensions are invalid.
    #[error(
        "The tensor \"{name}\" of type {kind} has the impossible shape {dims:?}: {why}; download the file again, or choose another one."
    )]
    BadShape {
        /// The tensor.
        name: String,
        /// Its type.
        kind: TensorType,
        /// The dimensions in the file.
        dims: Vec<u64>,
        /// What is wrong with them.
        why: &'static str,
    },
    /// A tensor's offset is not a multiple of the alignment, or lies beyond any file.
    #[error(
        "The tensor \"{name}\" lies at offset {offset}, which is not a multiple of the alignment {alignment} or beyond any file; \
         download it again, or choose another one."
    )]
    BadOffset {
        /// The tensor.
        name: String,
        /// Its offset in the data section.
        offset: u64,
        /// The file's alignment.
        alignment: u64,
    },
    /// A tensor does not begin where the one before it ends: a type, a shape or an offset is wrong, or a type's number means
    /// another type to the program that wrote the file.
    #[error(
        "The tensor \"{name}\" lies at byte {offset} of the data, but {} ends at {expected}, so a type or shape in the header is \
         wrong or means something else to the program that wrote it: download the file again, or choose another one.",
        .before.as_ref().map_or_else(|| "the header".to_string(), |(name, kind)| format!("\"{name}\" ({kind}) before it"))
    )]
    Misplaced {
        /// The tensor.
        name: String,
        /// Its offset in the data section.
        offset: u64,
        /// Where the tensor before it ends, rounded up to the alignment.
        expected: u64,
        /// That tensor and its type; `None` for the first one.
        before: Option<(String, TensorType)>,
    },
    /// A file of a split model is missing, duplicated or out of order.
    #[error(
        "The model is split into {count} files, but file number {expected} is missing or out of order ({found}); choose all of them \
         together, from \"…-00001-of-{count:05}.gguf\" on."
    )]
    BadSplit {
        /// `split.count`.
        count: u32,
        /// The number (from 1) that was expected.
        expected: u32,
        /// What was found instead.
        found: String,
    },
    /// The tensor count of a split model does not match its metadata.
    #[error(
        "The split model should have {expected} tensors (split.tensors.count), but its files have {found}; download all of them again."
    )]
    SplitTensorCount {
        /// `split.tensors.count`.
        expected: u64,
        /// The sum over the files.
        found: u64,
    },
    /// Values of this type cannot be converted to floats, or floats to this type.
    #[error("Values of type {kind} cannot be {action} here.")]
    UnsupportedType {
        /// The type.
        kind: TensorType,
        /// `read` or `written`.
        action: &'static str,
    },
    /// A buffer's length does not match the number of values.
    #[error("{values} values of type {kind} do not fit {bytes} bytes.")]
    LengthMismatch {
        /// The type.
        kind: TensorType,
        /// Number of values.
        values: usize,
        /// Bytes given.
        bytes: usize,
    },
    /// Bytes were pushed after the header was complete.
    #[error("The header was already complete.")]
    AlreadyDone,
}

/// What a file is, or how it begins.
fn not_gguf(found: &[u8; 4], is: Option<&ForeignFile>) -> String {
    match is {
        Some(is) => format!("it is {is}"),
        None => format!("it starts with {}, not with \"GGUF\"; choose a file that ends in \".gguf\"", printable(found)),
    }
}

fn version_advice(version: u32) -> &'static str {
    if version < 2 {
        "choose a newer file of this model, or convert it again with newer software"
    } else {
        "choose another file of this model, or use a newer version of this program"
    }
}

fn printable(bytes: &[u8; 4]) -> String {
    if bytes.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ') {
        format!("\"{}\"", String::from_utf8_lossy(bytes))
    } else {
        format!("the bytes {bytes:02x?}")
    }
}
