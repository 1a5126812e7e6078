//! What a picker shows of a model before it is chosen.

use potluck_gguf::{Model, TensorInfo, quantization};
use serde::{Deserialize, Serialize};

/// A model in a few words and numbers. Made for any GGUF file, also for one that cannot run here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    /// `general.name`, if the file has one.
    pub name: Option<String>,
    /// `general.architecture`, empty if the file has none.
    pub architecture: String,
    /// Quantization as people call it: `Q4_K_M`.
    pub quantization: String,
    /// Weights in all.
    pub parameters: u64,
    /// Weights that one token uses: all but those of the experts it leaves out.
    pub active_parameters: u64,
    /// Bytes of all tensors.
    pub bytes: u64,
    /// Longest context the model was trained for, 0 if unknown.
    pub context: u32,
    /// `general.license`, if the file says.
    pub licence: Option<String>,
    /// Blocks.
    pub blocks: u32,
    /// Experts of a block, 0 for a dense model.
    pub experts: u32,
    /// Experts that a token uses.
    pub experts_used: u32,
}

impl Profile {
    /// Reads the profile from a file's header (or those of a split).
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
            // At most `in_experts`, which is at most `parameters`.
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

/// `blk.N.ffn_gate_exps.weight`, or `blk.N.ffn_gate.E.weight` of old files.
fn is_expert(tensor: &TensorInfo) -> bool {
    let mut parts = tensor.name.split('.').skip(2);
    let (Some(kind), Some(next)) = (parts.next(), parts.next()) else { return false };
    kind.ends_with("_exps") || (kind.starts_with("ffn_") && next.parse::<u32>().is_ok())
}
