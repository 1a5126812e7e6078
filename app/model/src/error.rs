//! Why a model cannot run here.

use potluck_gguf::{GgufError, TensorType};
use thiserror::Error;

/// Why a model cannot run here, in one sentence that names the tensor or key.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ModelError {
    /// A metadata key is missing or has another type.
    #[error(transparent)]
    Metadata(#[from] GgufError),
    /// `general.architecture` is none of ours.
    #[error("The architecture \"{0}\" is not supported; llama, qwen2, qwen3 and qwen3moe are.")]
    UnsupportedArchitecture(String),
    /// A way to stretch rotary positions that no kernel does.
    #[error(
        "The model's rotary scaling is of the type \"{0}\", which is not supported; only \"none\" and \"linear\" are."
    )]
    UnsupportedRopeScaling(String),
    /// A metadata value that makes no sense, or that no kernel can follow.
    #[error("The metadata key \"{key}\" is {value}, but {expected}.")]
    BadValue {
        /// The key.
        key: String,
        /// Its value.
        value: String,
        /// What would be right, as the end of the sentence.
        expected: String,
    },
    /// A tensor that the architecture needs is not there.
    #[error("tensor {0} is missing from the file")]
    MissingTensor(String),
    /// A tensor that the architecture does not have: leaving it out would give wrong answers.
    #[error(
        "tensor {name} has no place in the architecture {architecture}, so the model cannot be run as it was meant"
    )]
    UnexpectedTensor {
        /// The tensor.
        name: String,
        /// `general.architecture`.
        architecture: &'static str,
    },
    /// A dimension of a tensor is not what the metadata says.
    #[error("tensor {name} has {found} {what}, {expected} were expected")]
    WrongShape {
        /// The tensor.
        name: String,
        /// `rows`, `columns`, `experts` or `dimensions`.
        what: &'static str,
        /// In the file.
        found: u64,
        /// From the metadata.
        expected: u64,
    },
    /// A matrix in a type that no kernel reads: one for activations or for counting.
    #[error("tensor {name} is stored as {kind}, in which models keep no weights; choose another file of this model")]
    UnsupportedType {
        /// The tensor.
        name: String,
        /// Its type.
        kind: TensorType,
    },
    /// A norm, bias or factor that is not `F32`.
    #[error("tensor {name} is stored as {kind}, F32 was expected")]
    NotF32 {
        /// The tensor.
        name: String,
        /// Its type.
        kind: TensorType,
    },
}
