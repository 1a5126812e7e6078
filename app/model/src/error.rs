//! Errors of models that cannot run here.

use potluck_gguf::{GgufError, TensorType};
use thiserror::Error;

use crate::Architecture;

/// Why a model cannot run here: one sentence that names the tensor or key.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ModelError {
    /// A metadata key is missing or has the wrong type.
    #[error(transparent)]
    Metadata(#[from] GgufError),
    /// `general.architecture` is not supported.
    #[error("The architecture \"{0}\" is not supported; {list} are.", list = Architecture::list())]
    UnsupportedArchitecture(String),
    /// The model needs an operation that does not exist here.
    #[error("Models of the architecture \"{architecture}\" need {operation}, which does not exist here yet.")]
    MissingOperation {
        /// `general.architecture`.
        architecture: String,
        /// The operation, with its article.
        operation: &'static str,
    },
    /// No kernel implements this RoPE scaling.
    #[error(
        "The model's rotary scaling is of the type \"{0}\", which is not supported; none, linear, yarn and longrope are."
    )]
    UnsupportedRopeScaling(String),
    /// A metadata value is invalid, or no kernel supports it.
    #[error("The metadata key \"{key}\" is {value}, but {expected}.")]
    BadValue {
        /// The key.
        key: String,
        /// Its value.
        value: String,
        /// What is expected, phrased as the end of the sentence.
        expected: String,
    },
    /// A tensor that the architecture requires is missing.
    #[error("tensor {0} is missing from the file")]
    MissingTensor(String),
    /// A tensor that the architecture does not have. Ignoring it would give wrong answers.
    #[error(
        "tensor {name} has no place in the architecture {architecture}, so the model cannot be run as it was meant"
    )]
    UnexpectedTensor {
        /// The tensor.
        name: String,
        /// `general.architecture`.
        architecture: &'static str,
    },
    /// A tensor's dimension does not match the metadata.
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
    /// A matrix in a type that no kernel reads: a type for activations or integers.
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
