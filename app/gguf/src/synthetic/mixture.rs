//! Mixtures of types, as llama.cpp's quantizer chooses them tensor by tensor.

use serde::{Deserialize, Serialize};

use crate::TensorType;

/// Which type each matrix gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(non_camel_case_types, reason = "spelled as llama.cpp names them")]
pub enum Mixture {
    /// The types the description names.
    #[default]
    #[serde(rename = "uniform")]
    Uniform,
    /// `Q4_K`, and more bits where they count most: in the head, and in half of the value and down projections.
    Q4_K_M,
}

/// A matrix as the mixture sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The embedding table, and whether it is the head too.
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
    /// The type of a matrix with rows of `cols` values in a model of `blocks` blocks; `None` if the description decides.
    ///
    /// Source: `llama_tensor_get_type` in llama.cpp's `llama-quant.cpp`.
    pub(super) fn kind(self, part: Part, blocks: u32, experts: u32, cols: u64) -> Option<TensorType> {
        let Mixture::Q4_K_M = self else { return None };
        // Files with eight experts keep what all of them share in more bits.
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

/// The first and the last eighth of the blocks, and every third between.
fn use_more_bits(block: u32, blocks: u32) -> bool {
    block < blocks / 8 || block >= 7 * blocks / 8 || (block - blocks / 8) % 3 == 2
}

/// What rows that are not whole super-blocks get instead.
fn narrower(kind: TensorType) -> TensorType {
    match kind {
        TensorType::Q4_K => TensorType::Q5_0,
        TensorType::Q5_K => TensorType::Q5_1,
        _ => TensorType::Q8_0,
    }
}
