//! What a picker tells about a model before it is chosen.

use std::collections::BTreeMap;

use potluck_gguf::{Metadata, Model, TensorInfo};
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
            quantization: quantization(file),
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

/// The name of the file's mixture, else the type that most bytes have.
fn quantization(file: &Model) -> String {
    let named = file.metadata.optional("general.file_type", Metadata::u32).ok().flatten().and_then(file_type_name);
    if let Some(name) = named {
        return name.to_string();
    }
    let mut bytes = BTreeMap::new();
    for tensor in &file.tensors {
        *bytes.entry(tensor.kind).or_insert(0u64) += tensor.bytes;
    }
    bytes
        .into_iter()
        .max_by_key(|(_, bytes)| *bytes)
        .map_or_else(|| "unknown".to_string(), |(kind, _)| kind.to_string())
}

/// `enum llama_ftype` of llama.cpp.
fn file_type_name(number: u32) -> Option<&'static str> {
    Some(match number {
        0 => "F32",
        1 => "F16",
        2 => "Q4_0",
        3 => "Q4_1",
        7 => "Q8_0",
        8 => "Q5_0",
        9 => "Q5_1",
        10 => "Q2_K",
        11 => "Q3_K_S",
        12 => "Q3_K_M",
        13 => "Q3_K_L",
        14 => "Q4_K_S",
        15 => "Q4_K_M",
        16 => "Q5_K_S",
        17 => "Q5_K_M",
        18 => "Q6_K",
        19 => "IQ2_XXS",
        20 => "IQ2_XS",
        21 => "Q2_K_S",
        22 => "IQ3_XS",
        23 => "IQ3_XXS",
        24 => "IQ1_S",
        25 => "IQ4_NL",
        26 => "IQ3_S",
        27 => "IQ3_M",
        28 => "IQ2_S",
        29 => "IQ2_M",
        30 => "IQ4_XS",
        31 => "IQ1_M",
        32 => "BF16",
        36 => "TQ1_0",
        37 => "TQ2_0",
        38 => "MXFP4",
        _ => return None,
    })
}
