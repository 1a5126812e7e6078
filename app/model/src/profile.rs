//! Describes a model to the model picker.

use potluck_gguf::{Model, TensorInfo, quantization};
use serde::{Deserialize, Serialize};

/// A short description of a model. Any GGUF file has one, even if the model cannot run here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    /// `general.name`, if the file has one.
    pub name: Option<String>,
    /// `general.architecture`, empty if the file has none.
    pub architecture: String,
    /// Common name of the quantization: `Q4_K_M`.
    pub quantization: String,
    /// Total number of weights.
    pub parameters: u64,
    /// Weights that one token uses: all except the experts that the router does not choose.
    pub active_parameters: u64,
    /// Bytes of all tensors.
    pub bytes: u64,
    /// Longest context the model was trained for, 0 if unknown.
    pub context: u32,
    /// `general.license`, if present.
    pub licence: Option<String>,
    /// Blocks.
    pub blocks: u32,
    /// Experts per block, 0 for a dense model.
    pub experts: u32,
    /// Experts per token.
    pub experts_used: u32,
}

impl Profile {
    /// Reads the profile from the header of a file or the joined headers of a split.
    pub fn from_gguf(file: &Model) -> Self {
        let metadata = &file.metadata;
        let text = |key| metadata.str(key).ok().filter(|text| !text.trim().is_empty()).map(str::to_string);
        let architecture = text("general.architecture").unwrap_or_default();
        let number = |key: &str| metadata.u32(&format!("{architecture}.{key}")).unwrap_or(0);
        let (experts, experts_used) = (number("expert_count"), number("expert_used_count"));
        let sum = |wanted: fn(&TensorInfo) -> bool| {
            let tensors = file.tensors.iter().filter(|tensor| wanted(tensor));
            tensors.fold(0u64, |sum, tensor| sum.saturating_add(tensor.elements()))
        };
        let parameters = sum(|_| true);
        let in_experts = sum(is_expert);
        let idle =
            u128::from(in_experts) * u128::from(experts.saturating_sub(experts_used)) / u128::from(experts.max(1));
        Self {
            name: text("general.name"),
            quantization: quantization(&file.metadata, &file.tensors).unwrap_or_else(|| "unknown".to_owned()),
            parameters,
            // Cannot underflow: `idle` is at most `in_experts`, which is at most `parameters`.
            active_parameters: parameters - idle as u64,
            bytes: file.tensor_bytes(),
            context: number("context_length"),
            licence: text("general.license"),
            blocks: number("block_count"),
            experts,
            experts_used,
            architecture,
        }
    }
}

/// True for `blk.N.ffn_gate_exps.weight`, and for `blk.N.ffn_gate.E.weight` in old files.
fn is_expert(tensor: &TensorInfo) -> bool {
    let mut parts = tensor.name.split('.').skip(2);
    let (Some(kind), Some(next)) = (parts.next(), parts.next()) else { return false };
    kind.ends_with("_exps") || (kind.starts_with("ffn_") && next.parse::<u32>().is_ok())
}
