//! The architectures of synthetic models.

use serde::{Deserialize, Serialize};

/// The kind of blocks a model has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Architecture {
    /// `llama`, dense.
    Llama,
    /// `llama` with experts.
    Mixtral,
    /// `qwen2`: biases on query, key and value.
    Qwen2,
    /// `qwen3`: norms on query and key heads.
    Qwen3,
    /// `qwen3moe`.
    Qwen3Moe,
}

impl Architecture {
    /// All of them.
    pub const ALL: [Architecture; 5] =
        [Architecture::Llama, Architecture::Mixtral, Architecture::Qwen2, Architecture::Qwen3, Architecture::Qwen3Moe];

    /// The name of this variant; `mixtral` is a `llama` file with experts.
    pub fn name(self) -> &'static str {
        match self {
            Architecture::Llama => "llama",
            Architecture::Mixtral => "mixtral",
            Architecture::Qwen2 => "qwen2",
            Architecture::Qwen3 => "qwen3",
            Architecture::Qwen3Moe => "qwen3moe",
        }
    }

    /// Looks up a variant by name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|architecture| architecture.name() == name)
    }

    /// Value of `general.architecture`.
    pub fn key(self) -> &'static str {
        match self {
            Architecture::Mixtral => "llama",
            other => other.name(),
        }
    }

    /// Whether blocks have a router and experts.
    pub fn has_experts(self) -> bool {
        matches!(self, Architecture::Mixtral | Architecture::Qwen3Moe)
    }

    /// Whether query and key heads are normalized.
    pub(super) fn has_qk_norm(self) -> bool {
        matches!(self, Architecture::Qwen3 | Architecture::Qwen3Moe)
    }

    /// Value of `tokenizer.ggml.pre`.
    pub(super) fn pre_tokenizer(self) -> &'static str {
        if self.key() == "llama" { "llama-bpe" } else { "qwen2" }
    }
}
