//! What a person wants to know of a model before it is loaded, read from the headers of its files. The relay looks at
//! names and counts only.

use potluck_gguf::{Header, Metadata};
use serde::Serialize;

/// What one file's header says. In a split model the first file says the most, the others add their parameters.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Facts {
    /// The name its makers gave it.
    pub title: Option<String>,
    /// `general.architecture`.
    pub architecture: Option<String>,
    /// As people name it: `Q4_K_M`, `F16`.
    pub quantization: Option<String>,
    /// Blocks (layers).
    pub blocks: Option<u64>,
    /// Experts of a block; `None` for a dense model.
    pub experts: Option<u64>,
    /// Experts that a token uses in a block.
    pub experts_used: Option<u64>,
    /// Positions it was made for.
    pub context: Option<u64>,
    /// Licence, as the file spells it.
    pub licence: Option<String>,
    /// Weights, counted one by one.
    pub parameters: u64,
}

impl Facts {
    /// Reads a header.
    pub fn of(header: &Header) -> Self {
        let metadata = &header.metadata;
        let architecture = string(metadata, "general.architecture");
        let of_architecture = |key: &str| number(metadata, &format!("{}.{key}", architecture.as_deref()?));
        Self {
            title: string(metadata, "general.name"),
            quantization: number(metadata, "general.file_type").and_then(file_type).map(str::to_owned),
            blocks: of_architecture("block_count"),
            experts: of_architecture("expert_count").filter(|count| *count > 0),
            experts_used: of_architecture("expert_used_count").filter(|count| *count > 0),
            context: of_architecture("context_length"),
            licence: string(metadata, "general.license"),
            parameters: header.tensors.iter().map(|tensor| tensor.elements()).fold(0, u64::saturating_add),
            architecture,
        }
        .with_quantization_of(header)
    }

    /// Without a file type in the metadata: the type of the most bytes.
    fn with_quantization_of(mut self, header: &Header) -> Self {
        if self.quantization.is_none() {
            let mut by_type: Vec<(String, u64)> = Vec::new();
            for tensor in &header.tensors {
                let name = tensor.kind.to_string();
                match by_type.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, bytes)) => *bytes = bytes.saturating_add(tensor.bytes),
                    None => by_type.push((name, tensor.bytes)),
                }
            }
            self.quantization = by_type.into_iter().max_by_key(|(_, bytes)| *bytes).map(|(name, _)| name);
        }
        self
    }

    /// Adds another part of the same model.
    pub fn add(mut self, part: &Self) -> Self {
        self.parameters = self.parameters.saturating_add(part.parameters);
        self
    }
}

fn string(metadata: &Metadata, key: &str) -> Option<String> {
    metadata.str(key).ok().map(str::to_owned)
}

fn number(metadata: &Metadata, key: &str) -> Option<u64> {
    metadata.u64(key).ok()
}

/// `general.file_type`, as llama.cpp numbers them (`enum llama_ftype`).
fn file_type(number: u64) -> Option<&'static str> {
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
        38 => "MXFP4_MOE",
        _ => return None,
    })
}
