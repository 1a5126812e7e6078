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
    /// Bytes of exact keys and values that a position takes in all blocks together, so that a page can say what fits before it
    /// reads a file; `None` where the header does not tell.
    pub state_bytes_per_position: Option<u64>,
}

/// More blocks than any model has: a header that says so is not believed.
const MOST_BLOCKS: u64 = 4_096;

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
            state_bytes_per_position: state_bytes(metadata, architecture.as_deref()),
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

/// Keys and values as 32-bit numbers.
fn state_bytes(metadata: &Metadata, architecture: Option<&str>) -> Option<u64> {
    let key = |key: &str| Some(format!("{}.{key}", architecture?));
    let of = |name: &str| number(metadata, &key(name)?);
    let per_block = |name: &str, blocks: u64| metadata.u32_per_block(&key(name)?, blocks.try_into().ok()?).ok();
    let blocks = of("block_count").filter(|count| *count <= MOST_BLOCKS)?;
    let heads = per_block("attention.head_count", blocks)?;
    let kv_heads = per_block("attention.head_count_kv", blocks).unwrap_or_else(|| heads.clone());
    let width = |heads: u32| match of("attention.key_length") {
        Some(length) => Some(length),
        None => of("embedding_length")?.checked_div(heads.into()),
    };
    let of_block =
        |(heads, kv_heads): (&u32, &u32)| width(*heads)?.checked_mul(u64::from(*kv_heads))?.checked_mul(2 * 4);
    heads.iter().zip(&kv_heads).map(of_block).try_fold(0_u64, |sum, bytes| sum.checked_add(bytes?))
}

fn string(metadata: &Metadata, key: &str) -> Option<String> {
    metadata.str(key).ok().map(str::to_owned)
}

fn number(metadata: &Metadata, key: &str) -> Option<u64> {
    metadata.u64(key).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use potluck_gguf::Value;

    use super::*;

    fn metadata(values: &[(&str, Value)]) -> Metadata {
        let mut metadata = Metadata::new();
        values.iter().for_each(|(key, value)| _ = metadata.insert(format!("llama.{key}"), value.clone()));
        metadata
    }

    #[test]
    fn keys_and_values_of_all_blocks_are_counted() {
        let blocks = ("block_count", Value::from(2u32));
        let heads = ("attention.head_count", Value::from(8u32));
        let width = ("embedding_length", Value::from(512u32));
        let few = ("attention.head_count_kv", Value::from(2u32));
        let of = |values: &[(&str, Value)]| state_bytes(&metadata(values), Some("llama"));
        // 64 numbers a head, 4 bytes each, keys and values, 2 blocks.
        assert_eq!(of(&[blocks.clone(), heads.clone(), width.clone(), few.clone()]), Some(2 * 64 * 4 * 2 * 2));
        assert_eq!(
            of(&[blocks.clone(), heads.clone(), width.clone()]),
            Some(8 * 64 * 4 * 2 * 2),
            "each head has its own"
        );
        let long = ("attention.key_length", Value::from(128u32));
        assert_eq!(of(&[blocks.clone(), heads.clone(), few, long]), Some(2 * 128 * 4 * 2 * 2));
        assert_eq!(of(&[blocks, width.clone()]), None, "nothing is invented");
        assert_eq!(of(&[("block_count", Value::from(u32::MAX)), heads, width]), None, "no model has so many");
    }
}
