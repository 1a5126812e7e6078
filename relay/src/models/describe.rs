//! What a person wants to know about a model before loading it, from the headers of its files.

use potluck_gguf::{Header, Metadata};

/// What the header of one file says. In a split model the first file says most; the others add their parameters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelFacts {
    /// `general.name`.
    pub title: Option<String>,
    /// `general.architecture`.
    pub architecture: Option<String>,
    /// As people name it: `Q4_K_M`, `F16`.
    pub quantization: Option<String>,
    /// Blocks (layers).
    pub blocks: Option<u32>,
    /// Experts per block; `None` for a dense model.
    pub experts: Option<u32>,
    /// Experts that a token uses per block.
    pub experts_used: Option<u32>,
    /// Tokens of context it was trained for.
    pub context: Option<u32>,
    /// The licence, as the file spells it.
    pub licence: Option<String>,
    /// All parameters.
    pub parameters: u64,
    /// Bytes of KV cache in 32-bit floats per token, over all blocks; `None` where the header does not say.
    pub kv_cache_bytes_per_position: Option<u64>,
}

/// No model has more blocks: a header that says so is wrong.
const MAX_BLOCKS: u64 = 4_096;

impl ModelFacts {
    /// Reads a header.
    pub fn of(header: &Header) -> Self {
        let metadata = &header.metadata;
        let architecture = string(metadata, "general.architecture");
        let of_architecture =
            |key: &str| number(metadata, &format!("{}.{key}", architecture.as_deref()?))?.try_into().ok();
        Self {
            title: string(metadata, "general.name"),
            quantization: potluck_gguf::quantization(metadata, &header.tensors),
            blocks: of_architecture("block_count"),
            experts: of_architecture("expert_count").filter(|count| *count > 0),
            experts_used: of_architecture("expert_used_count").filter(|count| *count > 0),
            context: of_architecture("context_length"),
            licence: string(metadata, "general.license"),
            kv_cache_bytes_per_position: kv_cache_bytes(metadata, architecture.as_deref()),
            parameters: header.tensors.iter().map(|tensor| tensor.elements()).fold(0, u64::saturating_add),
            architecture,
        }
    }

    /// Adds the parameters of another part of the same model.
    pub fn add(mut self, part: &Self) -> Self {
        self.parameters = self.parameters.saturating_add(part.parameters);
        self
    }
}

fn kv_cache_bytes(metadata: &Metadata, architecture: Option<&str>) -> Option<u64> {
    let key = |key: &str| Some(format!("{}.{key}", architecture?));
    let of = |name: &str| number(metadata, &key(name)?);
    let per_block = |name: &str, blocks: u64| metadata.u32_per_block(&key(name)?, blocks.try_into().ok()?).ok();
    let blocks = of("block_count").filter(|count| *count <= MAX_BLOCKS)?;
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
    use potluck_gguf::Value;

    use super::*;

    fn metadata(values: &[(&str, Value)]) -> Metadata {
        let mut metadata = Metadata::new();
        values.iter().for_each(|(key, value)| _ = metadata.insert(format!("llama.{key}"), value.clone()));
        metadata
    }

    #[test]
    fn the_kv_cache_of_all_blocks_is_counted() {
        let blocks = ("block_count", Value::from(2u32));
        let heads = ("attention.head_count", Value::from(8u32));
        let width = ("embedding_length", Value::from(512u32));
        let few = ("attention.head_count_kv", Value::from(2u32));
        let of = |values: &[(&str, Value)]| kv_cache_bytes(&metadata(values), Some("llama"));
        // 64 numbers a head, 4 bytes each, keys and values, 2 blocks.
        assert_eq!(of(&[blocks.clone(), heads.clone(), width.clone(), few.clone()]), Some(2 * 64 * 4 * 2 * 2));
        assert_eq!(
            of(&[blocks.clone(), heads.clone(), width.clone()]),
            Some(8 * 64 * 4 * 2 * 2),
            "each head has its own"
        );
        let long = ("attention.key_length", Value::from(128u32));
        assert_eq!(of(&[blocks.clone(), heads.clone(), few, long]), Some(2 * 128 * 4 * 2 * 2));
        assert_eq!(of(&[blocks, width.clone()]), None, "unknown without the number of heads");
        assert_eq!(of(&[("block_count", Value::from(u32::MAX)), heads, width]), None, "no model has so many blocks");
    }
}
