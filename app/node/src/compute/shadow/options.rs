//! Which shadow a device has.

#[cfg(not(target_arch = "wasm32"))]
use std::path::PathBuf;

use potluck_gguf::TensorType;
use potluck_predict::Alignment;

/// What a shadow is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShadowSource {
    /// A file of its own.
    #[cfg(not(target_arch = "wasm32"))]
    File(PathBuf),
    /// The room's model, requantized to this type; by default to one of far fewer bits than it has.
    Own(Option<TensorType>),
}

/// Which shadow, and when it takes over what its base did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShadowOptions {
    /// What it is made from.
    pub source: ShadowSource,
    /// Every how many tokens it takes over its base's token and KV cache.
    pub alignment: Alignment,
    /// For tests: the shadow is gone after so many tokens of answers.
    pub tokens: Option<u32>,
}
