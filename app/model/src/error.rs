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
    /// A GGUF file that is not a whole model of language.
    #[error("This file is {what}; {instead}.")]
    OtherKind {
        /// What it is, with its article.
        what: &'static str,
        /// What to do.
        instead: &'static str,
    },
    /// Metadata that may change what the weights mean or what is computed, and that nothing here reads.
    #[error(
        "The file's metadata has \"{key}\", which may change what the model computes and is unknown here, so its answers could be \
         wrong; choose another file of this model."
    )]
    UnknownKey {
        /// The key.
        key: String,
    },
    /// `general.architecture` is not supported.
    #[error("The architecture \"{0}\" is not supported; choose a model of {list}.", list = Architecture::list())]
    UnsupportedArchitecture(String),
    /// `general.architecture` is one of llama.cpp's that nobody has described here yet.
    #[error("Models of the architecture \"{0}\" are known, but do not run here yet; choose another model.")]
    NotYet(String),
    /// The model needs an operation that does not exist here.
    #[error(
        "Models of the architecture \"{architecture}\" need {operation}, which does not exist here yet; choose another model."
    )]
    MissingOperation {
        /// `general.architecture`.
        architecture: String,
        /// The operation, with its article.
        operation: &'static str,
    },
    /// No kernel implements this RoPE scaling.
    #[error(
        "The model's rotary scaling is of the type \"{0}\", which is not supported; none, linear, yarn and longrope are, so \
         choose another file of this model."
    )]
    UnsupportedRopeScaling(String),
    /// A metadata value is invalid, or no kernel supports it.
    #[error("The metadata key \"{key}\" is {value}, but {expected}; choose another file of this model.")]
    BadValue {
        /// The key.
        key: String,
        /// Its value.
        value: String,
        /// What is expected, phrased as the end of the sentence.
        expected: String,
    },
    /// A tensor that the architecture requires is missing.
    #[error("The tensor \"{0}\" is missing from the file; download it again, or choose another file of this model.")]
    MissingTensor(String),
    /// A tensor that the architecture does not have. Ignoring it would give wrong answers.
    #[error(
        "The tensor \"{name}\" has no place in the architecture {architecture}, and answers without it would be wrong; choose \
         another file of this model."
    )]
    UnexpectedTensor {
        /// The tensor.
        name: String,
        /// `general.architecture`.
        architecture: &'static str,
    },
    /// A tensor's dimension does not match the metadata.
    #[error("The tensor \"{name}\" has {found} {what} instead of {expected}; choose another file of this model.")]
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
    #[error(
        "The tensor \"{name}\" is stored as {kind}, in which models keep no weights; choose another file of this model."
    )]
    UnsupportedType {
        /// The tensor.
        name: String,
        /// Its type.
        kind: TensorType,
    },
    /// A norm, bias or factor that is not `F32`.
    #[error("The tensor \"{name}\" is stored as {kind} instead of F32; choose another file of this model.")]
    NotF32 {
        /// The tensor.
        name: String,
        /// Its type.
        kind: TensorType,
    },
}
