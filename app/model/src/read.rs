//! Reads a model's architecture and weight units from its GGUF file(s).

use potluck_gguf::{Metadata, Model};
use potluck_plan::{BlockIndex, ExpertId, WeightUnit};

use crate::keys::Keys;
use crate::tensors::Tensors;
use crate::{
    Architecture, AttentionSpec, BlockSpec, FeedForwardSpec, ModelError, ModelSpec, RopePairs, RopeSpec, TensorRole,
    TokenMixerSpec, UnitMap, UnitTensor,
};

/// Limit on experts per block, far above any real model.
const MAX_EXPERTS: u32 = 4096;
/// Limit on widths, so that a product of two fits 64 bits and a sum fits 32 bits.
const MAX_WIDTH: u32 = 1 << 20;

impl ModelSpec {
    /// Reads the architecture and the location of each weight unit from a file's header, or from all headers of a
    /// split.
    ///
    /// # Errors
    /// The first reason why the model cannot run here: an architecture, RoPE scaling or weight type without kernels, a
    /// missing key, or a tensor that is missing, unexpected, or of a shape that contradicts the metadata.
    pub fn from_gguf(file: &Model) -> Result<(ModelSpec, UnitMap), ModelError> {
        let metadata = &file.metadata;
        let name = metadata.str("general.architecture")?;
        let architecture =
            Architecture::from_name(name).ok_or_else(|| ModelError::UnsupportedArchitecture(name.to_string()))?;
        let mut reader = Reader { keys: Keys { metadata, architecture }, tensors: Tensors::new(file) };
        let (spec, units) = reader.model()?;
        match reader.tensors.left_over() {
            None => Ok((spec, units)),
            Some(name) => {
                Err(ModelError::UnexpectedTensor { name: name.to_string(), architecture: architecture.name() })
            }
        }
    }
}

struct Reader<'a> {
    keys: Keys<'a>,
    tensors: Tensors<'a>,
}

impl Reader<'_> {
    fn model(&mut self) -> Result<(ModelSpec, UnitMap), ModelError> {
        let keys = &self.keys;
        let hidden = keys.size("embedding_length", MAX_WIDTH)?;
        let block_count = keys.size("block_count", u32::from(u16::MAX))?;
        let epsilon = "attention.layer_norm_rms_epsilon";
        let norm_epsilon = keys.positive(epsilon, keys.metadata.f32(&keys.key(epsilon))?)?;
        let context = self.context()?;
        let attentions = self.attentions(hidden, block_count)?;
        let experts = self.experts()?;
        let widths = keys.metadata.contains(&keys.key("feed_forward_length"));
        let widths = if widths { keys.sizes("feed_forward_length", block_count, MAX_WIDTH)? } else { Vec::new() };

        let mut units = UnitMap::default();
        let table = self.tensors.table(TensorRole::TokenEmbedding, "token_embd.weight", hidden)?;
        let vocabulary = table.rows;
        self.check_vocabulary(vocabulary)?;
        let tied_lm_head = !self.tensors.has("output.weight");
        let head = vec![
            self.tensors.vector(TensorRole::OutputNorm, "output_norm.weight", hidden)?,
            match tied_lm_head {
                true => table.clone(),
                false => self.tensors.matrix(TensorRole::Output, "output.weight", hidden, vocabulary)?,
            },
        ];
        units.insert(WeightUnit::Embedding, vec![table]);
        units.insert(WeightUnit::LmHead, head);

        let mut blocks = Vec::new();
        for (number, attention) in (0..).zip(attentions) {
            let index = BlockIndex(number);
            let attention = self.token_mixer(index, hidden, attention, &mut units)?;
            let routed = experts.is_some() && self.tensors.has(&format!("blk.{number}.ffn_gate_inp.weight"));
            let feed_forward = match &experts {
                Some(experts) if routed => self.expert_block(index, hidden, experts, &widths, &mut units)?,
                _ => {
                    let width = widths.get(usize::from(number)).copied();
                    let width = width.map_or_else(|| self.keys.u32("feed_forward_length"), Ok)?;
                    self.dense_block(index, hidden, width, &mut units)?
                }
            };
            blocks.push(BlockSpec { token_mixer: TokenMixerSpec::Attention(attention), feed_forward });
        }
        let name = self.name();
        let architecture = self.keys.architecture;
        Ok((ModelSpec { architecture, name, hidden, vocabulary, context, norm_epsilon, tied_lm_head, blocks }, units))
    }

    fn name(&self) -> String {
        let text = |key| self.keys.metadata.str(key).ok().filter(|text| !text.trim().is_empty());
        let name = text("general.name").or_else(|| text("general.basename"));
        name.unwrap_or(self.keys.architecture.name()).to_string()
    }

    /// Longest context. A shorter sliding window limits it, because only up to there the window has no effect.
    fn context(&self) -> Result<u32, ModelError> {
        let context = self.keys.size("context_length", u32::MAX)?;
        let window = self.keys.optional_u32("attention.sliding_window")?.filter(|&window| window > 0);
        Ok(window.map_or(context, |window| context.min(window)))
    }

    /// The embedding table must have a row for every token of the tokenizer; extra rows are padding.
    fn check_vocabulary(&self, rows: u32) -> Result<(), ModelError> {
        let tokens = self.keys.metadata.optional("tokenizer.ggml.tokens", Metadata::strings)?.unwrap_or(&[]);
        if tokens.len() > rows as usize {
            let (name, found, expected) = ("token_embd.weight".to_string(), u64::from(rows), tokens.len() as u64);
            return Err(ModelError::WrongShape { name, what: "rows", found, expected });
        }
        Ok(())
    }

    fn attentions(&self, hidden: u32, blocks: u32) -> Result<Vec<AttentionSpec>, ModelError> {
        let keys = &self.keys;
        let heads = keys.sizes("attention.head_count", blocks, MAX_WIDTH)?;
        let kv_key = "attention.head_count_kv";
        let kv_heads = match keys.metadata.contains(&keys.key(kv_key)) {
            true => keys.sizes(kv_key, blocks, MAX_WIDTH)?,
            false => heads.clone(),
        };
        let key_length = keys.optional_u32("attention.key_length")?;
        let value_length = keys.optional_u32("attention.value_length")?;
        let mut attentions = Vec::with_capacity(heads.len());
        for (&heads, &kv_heads) in heads.iter().zip(&kv_heads) {
            if heads % kv_heads != 0 {
                return Err(keys.bad(kv_key, kv_heads, format!("it must divide the {heads} query heads")));
            }
            let head_dim = match key_length {
                Some(length) => length,
                None if hidden.is_multiple_of(heads) => hidden / heads,
                None => {
                    return Err(keys.bad("attention.head_count", heads, format!("it must divide the width {hidden}")));
                }
            };
            if head_dim == 0 || head_dim % 2 != 0 || u64::from(head_dim) * u64::from(heads) > u64::from(MAX_WIDTH) {
                return Err(keys.bad(
                    "attention.key_length",
                    head_dim,
                    "it must be even and not larger than the model",
                ));
            }
            if let Some(length) = value_length.filter(|&length| length != head_dim) {
                return Err(keys.bad("attention.value_length", length, format!("keys have {head_dim} values")));
            }
            let rope = self.rope(head_dim)?;
            attentions.push(AttentionSpec { heads, kv_heads, head_dim, qk_norm: false, qkv_bias: false, rope });
        }
        Ok(attentions)
    }

    fn rope(&self, head_dim: u32) -> Result<RopeSpec, ModelError> {
        let keys = &self.keys;
        let dims = keys.optional_u32("rope.dimension_count")?.unwrap_or(head_dim);
        if dims == 0 || dims % 2 != 0 || dims > head_dim {
            return Err(keys.bad("rope.dimension_count", dims, format!("it must be even and at most {head_dim}")));
        }
        let base = keys.optional_f32("rope.freq_base")?.unwrap_or(10_000.0);
        // Older files have no scaling type, only a linear factor under another key.
        let factor = keys.optional_f32("rope.scaling.factor")?.or(keys.optional_f32("rope.scale_linear")?);
        let linear_scale = match keys.optional_str("rope.scaling.type")? {
            Some("none") => 1.0,
            // Zero means "not set".
            None | Some("linear") => factor.filter(|&factor| factor != 0.0).unwrap_or(1.0),
            Some(other) => return Err(ModelError::UnsupportedRopeScaling(other.to_string())),
        };
        if self.tensors.has("rope_factors_long.weight") || self.tensors.has("rope_factors_short.weight") {
            return Err(ModelError::UnsupportedRopeScaling("longrope".to_string()));
        }
        let pairs = match keys.architecture {
            Architecture::Llama => RopePairs::Adjacent,
            Architecture::Qwen2 | Architecture::Qwen3 | Architecture::Qwen3Moe => RopePairs::Halves,
        };
        Ok(RopeSpec {
            dims,
            base: keys.positive("rope.freq_base", base)?,
            pairs,
            linear_scale: keys.positive("rope.scaling.factor", linear_scale)?,
            factors: self.tensors.has("rope_freqs.weight"),
        })
    }

    fn experts(&self) -> Result<Option<Experts>, ModelError> {
        let keys = &self.keys;
        let Some(count) = keys.optional_u32("expert_count")?.filter(|&count| count > 0) else {
            return Ok(None);
        };
        let count = keys.checked_size("expert_count", count, MAX_EXPERTS)?;
        let used = keys.size("expert_used_count", count)?;
        // 1 is softmax, 0 means "not set".
        if let Some(function) = keys.optional_u32("expert_gating_func")?.filter(|&function| function > 1) {
            return Err(keys.bad("expert_gating_func", function, "only 1 (softmax) is supported"));
        }
        if let Some(scale) = keys.optional_f32("expert_weights_scale")?.filter(|&scale| scale != 0.0 && scale != 1.0) {
            return Err(keys.bad("expert_weights_scale", scale, "only 1 is supported"));
        }
        let normalize = keys.metadata.optional(&keys.key("expert_weights_norm"), Metadata::bool)?.unwrap_or(true);
        let width = keys.optional_u32("expert_feed_forward_length")?;
        let width = width.map(|width| keys.checked_size("expert_feed_forward_length", width, MAX_WIDTH)).transpose()?;
        Ok(Some(Experts { count: count as u16, used, width, normalize }))
    }

    /// Takes a block's attention tensors and fills in the details that only they reveal.
    fn token_mixer(
        &mut self,
        index: BlockIndex,
        hidden: u32,
        mut attention: AttentionSpec,
        units: &mut UnitMap,
    ) -> Result<AttentionSpec, ModelError> {
        let name = |part: &str| format!("blk.{}.{part}", index.0);
        let (query, key_value) = (attention.heads * attention.head_dim, attention.kv_heads * attention.head_dim);
        let tensors = &mut self.tensors;
        let mut unit = vec![
            tensors.vector(TensorRole::AttentionNorm, &name("attn_norm.weight"), hidden)?,
            tensors.matrix(TensorRole::Query, &name("attn_q.weight"), hidden, query)?,
            tensors.matrix(TensorRole::Key, &name("attn_k.weight"), hidden, key_value)?,
            tensors.matrix(TensorRole::Value, &name("attn_v.weight"), hidden, key_value)?,
            tensors.matrix(TensorRole::AttentionOutput, &name("attn_output.weight"), query, hidden)?,
        ];
        attention.qkv_bias = self.keys.architecture == Architecture::Qwen2 || tensors.has(&name("attn_q.bias"));
        if attention.qkv_bias {
            unit.push(tensors.vector(TensorRole::QueryBias, &name("attn_q.bias"), query)?);
            unit.push(tensors.vector(TensorRole::KeyBias, &name("attn_k.bias"), key_value)?);
            unit.push(tensors.vector(TensorRole::ValueBias, &name("attn_v.bias"), key_value)?);
        }
        attention.qk_norm = matches!(self.keys.architecture, Architecture::Qwen3 | Architecture::Qwen3Moe);
        if attention.qk_norm {
            unit.push(tensors.vector(TensorRole::QueryNorm, &name("attn_q_norm.weight"), attention.head_dim)?);
            unit.push(tensors.vector(TensorRole::KeyNorm, &name("attn_k_norm.weight"), attention.head_dim)?);
        }
        if attention.rope.factors {
            unit.push(tensors.vector(TensorRole::RopeFactors, "rope_freqs.weight", attention.rope.dims / 2)?);
        }
        units.insert(WeightUnit::TokenMixer(index), unit);
        Ok(attention)
    }

    fn dense_block(
        &mut self,
        index: BlockIndex,
        hidden: u32,
        intermediate: u32,
        units: &mut UnitMap,
    ) -> Result<FeedForwardSpec, ModelError> {
        let name = |part: &str| format!("blk.{}.{part}.weight", index.0);
        let tensors = &mut self.tensors;
        let unit = vec![
            tensors.vector(TensorRole::FeedForwardNorm, &name("ffn_norm"), hidden)?,
            tensors.matrix(TensorRole::Gate, &name("ffn_gate"), hidden, intermediate)?,
            tensors.matrix(TensorRole::Up, &name("ffn_up"), hidden, intermediate)?,
            tensors.matrix(TensorRole::Down, &name("ffn_down"), intermediate, hidden)?,
        ];
        units.insert(WeightUnit::Dense(index), unit);
        Ok(FeedForwardSpec::Dense { intermediate })
    }

    fn expert_block(
        &mut self,
        index: BlockIndex,
        hidden: u32,
        experts: &Experts,
        widths: &[u32],
        units: &mut UnitMap,
    ) -> Result<FeedForwardSpec, ModelError> {
        let Experts { count, used, width, normalize } = *experts;
        let intermediate = width.or(widths.get(usize::from(index.0)).copied());
        let intermediate = intermediate.map_or_else(|| self.keys.u32("expert_feed_forward_length"), Ok)?;
        let stem = |part: &str| format!("blk.{}.{part}", index.0);
        let tensors = &mut self.tensors;
        let router = vec![
            tensors.vector(TensorRole::FeedForwardNorm, &stem("ffn_norm.weight"), hidden)?,
            tensors.matrix(TensorRole::Router, &stem("ffn_gate_inp.weight"), hidden, u32::from(count))?,
        ];
        units.insert(WeightUnit::Router(index), router);
        let gates = tensors.expert_matrices(TensorRole::Gate, &stem("ffn_gate"), hidden, intermediate, count)?;
        let ups = tensors.expert_matrices(TensorRole::Up, &stem("ffn_up"), hidden, intermediate, count)?;
        let downs = tensors.expert_matrices(TensorRole::Down, &stem("ffn_down"), intermediate, hidden, count)?;
        for (expert, ((gate, up), down)) in (0..).zip(gates.into_iter().zip(ups).zip(downs)) {
            let unit: Vec<UnitTensor> = vec![gate, up, down];
            units.insert(WeightUnit::Expert(index, ExpertId(expert)), unit);
        }
        Ok(FeedForwardSpec::Experts { count: u32::from(count), used, intermediate, normalize })
    }
}

/// The metadata about experts.
struct Experts {
    count: u16,
    used: u32,
    /// Inner width of an expert, if it differs from that of a dense block.
    width: Option<u32>,
    normalize: bool,
}
