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
            quantization: potluck_gguf::quantization(metadata, &header.tensors),
            blocks: of_architecture("block_count"),
            experts: of_architecture("expert_count").filter(|count| *count > 0),
            experts_used: of_architecture("expert_used_count").filter(|count| *count > 0),
            context: of_architecture("context_length"),
            licence: string(metadata, "general.license"),
            parameters: header.tensors.iter().map(|tensor| tensor.elements()).fold(0, u64::saturating_add),
            architecture,
        }
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
