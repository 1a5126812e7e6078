//! Mixtures of types, assigned per tensor as llama.cpp's quantizer does.

use serde::{Deserialize, Serialize};

use crate::TensorType;

/// How each matrix gets its type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(non_camel_case_types, reason = "spelled as llama.cpp names them")]
pub enum Mixture {
    /// The types given in the description.
    #[default]
    #[serde(rename = "uniform")]
    Uniform,
    /// `Q4_K`, with more bits where precision matters most: the LM head and half of the value and down projections.
    Q4_K_M,
}

/// A matrix's role, which decides its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The embedding table; records whether it is also the LM head.
    Embedding {
        tied: bool,
    },
    Head,
    Key,
    Value {
        block: u32,
    },
    AttentionOutput,
    Down {
        block: u32,
    },
    Other,
}

impl Mixture {
    /// The type of a matrix with rows of `cols` values in a model of `blocks` blocks; `None` leaves it to the
    /// description.
    ///
    /// Source: `llama_tensor_get_type` in llama.cpp's `llama-quant.cpp`.
    pub(super) fn kind(self, part: Part, blocks: u32, experts: u32, cols: u64) -> Option<TensorType> {
        let Mixture::Q4_K_M = self else { return None };
        // With eight experts, the tensors that all experts share get more bits.
        let eight = experts == 8;
        let kind = match part {
            Part::Embedding { tied: true } | Part::Head => TensorType::Q6_K,
            Part::Key | Part::Value { .. } if eight => TensorType::Q8_0,
            Part::AttentionOutput if eight => TensorType::Q5_K,
            Part::Value { block } | Part::Down { block } if use_more_bits(block, blocks) => TensorType::Q6_K,
            _ => TensorType::Q4_K,
        };
        Some(if cols.is_multiple_of(kind.block_elements()) { kind } else { narrower(kind) })
    }
}

/// The first and last eighth of the blocks, and every third block in between.
fn use_more_bits(block: u32, blocks: u32) -> bool {
    block < blocks / 8 || block >= 7 * blocks / 8 || (block - blocks / 8) % 3 == 2
}

/// Replacement for rows that do not fill whole super-blocks.
fn narrower(kind: TensorType) -> TensorType {
    match kind {
        TensorType::Q4_K => TensorType::Q5_0,
        TensorType::Q5_K => TensorType::Q5_1,
        _ => TensorType::Q8_0,
    }
}
