//! Shapes of published models, for benchmarks: real sizes, random weights.

use super::{Architecture, Fill, Mixture, Synthetic};

/// A published model's shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(non_camel_case_types, reason = "spelled as the models are named")]
pub enum Shape {
    /// `JackFram/llama-160m`: about 100 MB, for software adapters.
    Llama160M,
    /// `Qwen/Qwen3-0.6B`.
    Qwen3_0_6B,
    /// `meta-llama/Llama-3.2-1B`.
    Llama3_2_1B,
    /// `meta-llama/Llama-3.1-8B`.
    Llama3_1_8B,
    /// `Qwen/Qwen3-30B-A3B`: 128 experts, 8 per token. All 48 blocks take 18 GB; reduce `blocks`.
    Qwen3_30B_A3B,
}

impl Shape {
    /// All shapes, smallest first.
    pub const ALL: [Shape; 5] =
        [Shape::Llama160M, Shape::Qwen3_0_6B, Shape::Llama3_2_1B, Shape::Llama3_1_8B, Shape::Qwen3_30B_A3B];

    /// The model's name in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Shape::Llama160M => "llama-160m",
            Shape::Qwen3_0_6B => "qwen3-0.6b",
            Shape::Llama3_2_1B => "llama-3.2-1b",
            Shape::Llama3_1_8B => "llama-3.1-8b",
            Shape::Qwen3_30B_A3B => "qwen3-30b-a3b",
        }
    }

    /// Looks up a shape by name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|shape| shape.name() == name)
    }

    /// A `Q4_K_M` model of this shape with random blocks. Lower `blocks` to shrink it; set `mixture` for other types.
    ///
    /// Sizes come from the published `config.json`.
    pub fn synthetic(self) -> Synthetic {
        let common = Synthetic { fill: Fill::Blocks, mixture: Mixture::Q4_K_M, ..Synthetic::default() };
        match self {
            Shape::Llama160M => Synthetic {
                architecture: Architecture::Llama,
                hidden: 768,
                blocks: 12,
                heads: 12,
                kv_heads: 12,
                head_dim: 64,
                intermediate: 3072,
                vocabulary: 32_000,
                context: 2048,
                ..common
            },
            Shape::Qwen3_0_6B => Synthetic {
                architecture: Architecture::Qwen3,
                hidden: 1024,
                blocks: 28,
                heads: 16,
                kv_heads: 8,
                head_dim: 128,
                intermediate: 3072,
                vocabulary: 151_936,
                context: 40_960,
                rope_base: 1e6,
                tied: true,
                ..common
            },
            Shape::Llama3_2_1B => Synthetic {
                architecture: Architecture::Llama,
                hidden: 2048,
                blocks: 16,
                heads: 32,
                kv_heads: 8,
                head_dim: 64,
                intermediate: 8192,
                vocabulary: 128_256,
                context: 131_072,
                rope_base: 5e5,
                rope_factors: true,
                tied: true,
                ..common
            },
            Shape::Llama3_1_8B => Synthetic {
                architecture: Architecture::Llama,
                hidden: 4096,
                blocks: 32,
                heads: 32,
                kv_heads: 8,
                head_dim: 128,
                intermediate: 14_336,
                vocabulary: 128_256,
                context: 131_072,
                rope_base: 5e5,
                rope_factors: true,
                ..common
            },
            Shape::Qwen3_30B_A3B => Synthetic {
                architecture: Architecture::Qwen3Moe,
                hidden: 2048,
                blocks: 48,
                heads: 32,
                kv_heads: 4,
                head_dim: 128,
                intermediate: 768,
                experts: 128,
                used: 8,
                vocabulary: 151_936,
                context: 40_960,
                rope_base: 1e6,
                ..common
            },
        }
    }
}
