//! What most architectures share: RMSNorm before each half, grouped-query attention with RoPE, and a gated network or
//! experts. An architecture starts from this and changes what differs.

use std::collections::BTreeMap;

use potluck_gguf::Metadata;

use super::{Description, Source};
use crate::{
    AttentionSpec, BlockSpec, DenseSpec, ExpertsSpec, FeedForwardSpec, GroupsSpec, ModelError, ModelSpec, RopeFactors,
    RopePairs, RopeSpec, Scales, Scoring, SharedSpec, TensorRole, TokenMixerSpec, Yarn,
};

/// Limit on experts per block, far above any real model.
const MAX_EXPERTS: u32 = 4096;
/// Limit on widths, so that a product of two fits 64 bits and a sum fits 32 bits.
pub(super) const MAX_WIDTH: u32 = 1 << 20;
/// Most groups of experts that kernels take.
const MAX_GROUPS: u32 = 32;
/// YaRN's limits where a file names none (Peng et al. 2023, section 3.2).
const YARN_TURNS: (f32, f32) = (32.0, 1.0);

/// `expert_gating_func` in a file.
const SOFTMAX: u32 = 1;
const SIGMOID: u32 = 2;

impl Source<'_> {
    /// A description of plain blocks, as the file's keys and tensors size them.
    pub(super) fn standard(&self, pairs: RopePairs) -> Result<Description, ModelError> {
        let keys = &self.keys;
        let hidden = keys.size("embedding_length", MAX_WIDTH)?;
        // Blocks that only draft further tokens come last.
        let all = keys.size("block_count", u32::from(u16::MAX))?;
        let drafting = keys.optional_u32("nextn_predict_layers")?.unwrap_or(0);
        let block_count = all.checked_sub(drafting).filter(|&count| count > 0);
        let block_count = block_count
            .ok_or_else(|| keys.bad("nextn_predict_layers", drafting, format!("the model has {all} blocks")))?;
        self.check_drafting(block_count, all)?;
        let epsilon = "attention.layer_norm_rms_epsilon";
        let norm_epsilon = keys.positive(epsilon, keys.metadata.f32(&keys.key(epsilon))?)?;
        let context = self.context()?;
        let attentions = self.attentions(hidden, block_count, pairs)?;
        let experts = self.experts()?;
        let widths = self.optional_sizes("feed_forward_length", block_count)?;
        // A single zero means "not set".
        let width_key = "expert_feed_forward_length";
        let own_width = keys.metadata.get(&keys.key(width_key)).is_some_and(|width| width.as_u64() != Some(0));
        let expert_widths = if own_width { self.optional_sizes(width_key, block_count)? } else { Vec::new() };
        let mut blocks = Vec::new();
        for (number, attention) in attentions.into_iter().enumerate() {
            let routed = self.has_in(number, "ffn_gate_inp.weight");
            let feed_forward = match &experts {
                Some(experts) if routed => {
                    let width = expert_widths.get(number).or(widths.get(number)).copied();
                    let intermediate = width.map_or_else(|| keys.size(width_key, MAX_WIDTH), Ok)?;
                    FeedForwardSpec::Experts(ExpertsSpec { intermediate, ..experts.clone() })
                }
                _ => {
                    let width = widths.get(number).copied();
                    FeedForwardSpec::Dense(DenseSpec::new(width.map_or_else(|| keys.u32("feed_forward_length"), Ok)?))
                }
            };
            blocks.push(BlockSpec { token_mixer: TokenMixerSpec::Attention(attention), feed_forward });
        }
        let spec = ModelSpec {
            architecture: keys.architecture,
            name: self.name(),
            hidden,
            vocabulary: self.vocabulary()?,
            context,
            norm_epsilon,
            tied_lm_head: !self.tensors.has("output.weight"),
            scales: Scales::default(),
            block_inputs: None,
            blocks,
        };
        let names = if self.tensors.has("rope_factors_short.weight") {
            vec![(TensorRole::RopeFactors, "rope_factors_short.weight")]
        } else {
            Vec::new()
        };
        let left_out = (block_count..all).map(|block| format!("blk.{block}.")).collect();
        Ok(Description { spec, names, left_out })
    }

    /// Refuses blocks that only draft, as the file says, but look like all others: without them answers would be wrong. Some files
    /// count blocks that were left out of them.
    fn check_drafting(&self, first: u32, all: u32) -> Result<(), ModelError> {
        // Whether a block that is in the file has tensors for drafts.
        let mut drafts: BTreeMap<u32, bool> = BTreeMap::new();
        for name in self.tensors.names() {
            let Some((block, part)) = name.strip_prefix("blk.").and_then(|rest| rest.split_once('.')) else { continue };
            if let Some(block) = block.parse().ok().filter(|block| (first..all).contains(block)) {
                *drafts.entry(block).or_default() |= part.starts_with("nextn.");
            }
        }
        match drafts.into_iter().find_map(|(block, drafts)| (!drafts).then_some(block)) {
            None => Ok(()),
            Some(block) => Err(self.keys.bad(
                "nextn_predict_layers",
                all - first,
                format!("block {block} of {all} is not for drafts"),
            )),
        }
    }

    /// Whether a block has a tensor.
    pub(super) fn has_in(&self, block: usize, name: &str) -> bool {
        self.tensors.has(&format!("blk.{block}.{name}"))
    }

    /// One size per block; none if the key is absent.
    pub(super) fn optional_sizes(&self, key: &str, blocks: u32) -> Result<Vec<u32>, ModelError> {
        if self.keys.has(key) { self.keys.sizes(key, blocks, MAX_WIDTH) } else { Ok(Vec::new()) }
    }

    fn name(&self) -> String {
        let text = |key| self.keys.metadata.str(key).ok().filter(|text| !text.trim().is_empty());
        let name = text("general.name").or_else(|| text("general.basename"));
        name.unwrap_or(self.keys.architecture.name()).to_string()
    }

    /// Longest context. A shorter sliding window limits it where the architecture does not say which blocks have it,
    /// because only up to there the window has no effect.
    fn context(&self) -> Result<u32, ModelError> {
        let context = self.keys.size("context_length", u32::MAX)?;
        let window = self.keys.nonzero_u32("attention.sliding_window")?;
        Ok(window.map_or(context, |window| context.min(window)))
    }

    /// Rows of the embedding table. There must be one for every token of the tokenizer; extra rows are padding.
    fn vocabulary(&self) -> Result<u32, ModelError> {
        let name = "token_embd.weight";
        let rows = self.tensors.rows(name);
        let tokens = self.keys.metadata.optional("tokenizer.ggml.tokens", Metadata::strings)?.unwrap_or(&[]);
        if self.tensors.has(name) && tokens.len() > rows as usize {
            let (found, expected) = (u64::from(rows), tokens.len() as u64);
            return Err(ModelError::WrongShape { name: name.to_string(), what: "rows", found, expected });
        }
        Ok(rows)
    }

    fn attentions(&self, hidden: u32, blocks: u32, pairs: RopePairs) -> Result<Vec<AttentionSpec>, ModelError> {
        let keys = &self.keys;
        let heads = keys.sizes("attention.head_count", blocks, MAX_WIDTH)?;
        let kv_key = "attention.head_count_kv";
        let kv_heads = if !keys.has(kv_key) {
            heads.clone()
        } else if keys.architecture.is_hybrid() {
            // A block without key heads does not attend; its attention is replaced.
            let given = keys.metadata.u32_per_block(&keys.key(kv_key), blocks as usize)?;
            given.iter().zip(&heads).map(|(&given, &heads)| if given == 0 { heads } else { given }).collect()
        } else {
            keys.sizes(kv_key, blocks, MAX_WIDTH)?
        };
        let key_length = keys.optional_u32("attention.key_length")?;
        let value_length = keys.optional_u32("attention.value_length")?;
        let mut attentions = Vec::with_capacity(heads.len());
        for (number, (&heads, &kv_heads)) in heads.iter().zip(&kv_heads).enumerate() {
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
            // Latent attention reads its widths itself.
            let latent = keys.nonzero_u32("attention.kv_lora_rank")?.is_some();
            if let Some(length) = value_length.filter(|&length| length != head_dim && !latent) {
                return Err(keys.bad("attention.value_length", length, format!("keys have {head_dim} values")));
            }
            let mut attention = AttentionSpec::new(heads, kv_heads, head_dim, self.rope(head_dim, pairs)?);
            attention.qkv_bias = self.has_in(number, "attn_q.bias") || self.has_in(number, "attn_qkv.bias");
            attentions.push(attention);
        }
        Ok(attentions)
    }

    fn rope(&self, head_dim: u32, pairs: RopePairs) -> Result<RopeSpec, ModelError> {
        let keys = &self.keys;
        let dims = keys.optional_u32("rope.dimension_count")?.unwrap_or(head_dim);
        if dims == 0 || dims % 2 != 0 || dims > head_dim {
            return Err(keys.bad("rope.dimension_count", dims, format!("it must be even and at most {head_dim}")));
        }
        // Ollama's converter has names of its own for this and what follows.
        let base = match keys.nonzero_f32_of("rope.freq_base", "rope.global.freq_base")? {
            Some(base) => base,
            None => keys.optional_f32("rope.freq_base")?.unwrap_or(10_000.0),
        };
        let base = keys.positive("rope.freq_base", base)?;
        let mut rope = RopeSpec::new(dims, base, pairs);
        let original = match keys.nonzero_u32("rope.scaling.original_context_length")? {
            Some(original) => original,
            None => keys.size("context_length", u32::MAX)?,
        };
        // Older files have no scaling type, only a linear factor under another key. Zero means "not set".
        let factor = keys.optional_f32("rope.scaling.factor")?.or(keys.optional_f32("rope.scale_linear")?);
        let factor = factor.filter(|&factor| factor != 0.0).unwrap_or(1.0);
        let attention = keys.nonzero_f32("rope.scaling.attn_factor")?.unwrap_or(1.0);
        let scaling = keys.optional_str("rope.scaling.type")?;
        match scaling {
            Some("none") => {}
            None | Some("linear" | "longrope" | "yarn") => {
                rope.linear_scale = keys.positive("rope.scaling.factor", factor)?;
                rope.magnitude = keys.positive("rope.scaling.attn_factor", attention)?;
            }
            Some(other) => return Err(ModelError::UnsupportedRopeScaling(other.to_string())),
        }
        if scaling == Some("yarn") {
            let fast = keys.nonzero_f32("rope.scaling.yarn_beta_fast")?.unwrap_or(YARN_TURNS.0);
            let slow = keys.nonzero_f32("rope.scaling.yarn_beta_slow")?.unwrap_or(YARN_TURNS.1);
            rope.yarn = Some(Yarn {
                original,
                fast: keys.positive("rope.scaling.yarn_beta_fast", fast)?,
                slow: keys.positive("rope.scaling.yarn_beta_slow", slow)?,
            });
            rope.magnitude *= yarn_magnitude(rope.linear_scale, 1.0);
        }
        let has = |name: &str| self.tensors.has(name);
        rope.factors = match (has("rope_factors_short.weight"), has("rope_factors_long.weight")) {
            (true, _) | (_, true) => RopeFactors::ByContext { original },
            _ if has("rope_freqs.weight") => RopeFactors::Fixed,
            _ => RopeFactors::None,
        };
        Ok(rope)
    }

    /// The metadata about experts, for a softmax router; `None` if the model has none. The inner width is set per block.
    fn experts(&self) -> Result<Option<ExpertsSpec>, ModelError> {
        let keys = &self.keys;
        let Some(count) = keys.nonzero_u32("expert_count")? else { return Ok(None) };
        let count = keys.checked_size("expert_count", count, MAX_EXPERTS)?;
        let used = keys.size("expert_used_count", count)?;
        let (normalize, alias) = ("expert_weights_norm", "norm_top_k_prob");
        let normalize = match (keys.optional_bool(normalize)?, keys.optional_bool(alias)?) {
            (Some(own), Some(other)) if own != other => {
                return Err(keys.bad(alias, other, format!("\"{normalize}\" is {own}")));
            }
            // llama.cpp saves this for architectures that always normalize.
            (Some(false), None) if keys.saved_by_llama_cpp() => true,
            (own, other) => own.or(other).unwrap_or(true),
        };
        let mut experts = ExpertsSpec::new(count, used, 0, normalize);
        if let Some(groups) = keys.optional_u32("expert_group_count")?.filter(|&groups| groups > 1) {
            if groups > MAX_GROUPS || count % groups != 0 || count / groups < 2 {
                let expected =
                    format!("it must be at most {MAX_GROUPS} and give groups of two or more of the {count} experts");
                return Err(keys.bad("expert_group_count", groups, expected));
            }
            let taking_part = keys.size("expert_group_used_count", groups)?;
            if taking_part * (count / groups) < used {
                return Err(keys.bad("expert_group_used_count", taking_part, format!("a token uses {used} experts")));
            }
            experts.router.groups = Some(GroupsSpec { count: groups, used: taking_part });
        }
        Ok(Some(experts))
    }

    /// Refuses routers that an architecture with a plain softmax does not have.
    pub(super) fn softmax_only(&self) -> Result<(), ModelError> {
        let keys = &self.keys;
        if let Some(function) = keys.nonzero_u32("expert_gating_func")?.filter(|&function| function != SOFTMAX) {
            return Err(keys.bad("expert_gating_func", function, "only 1 (softmax) is supported"));
        }
        if let Some(scale) = keys.nonzero_f32("expert_weights_scale")?.filter(|&scale| scale != 1.0) {
            return Err(keys.bad("expert_weights_scale", scale, "only 1 is supported"));
        }
        Ok(())
    }

    /// The router's scoring as the file names it, or `usual`.
    pub(super) fn scoring(&self, usual: Scoring) -> Result<Scoring, ModelError> {
        match self.keys.nonzero_u32("expert_gating_func")? {
            None => Ok(usual),
            Some(SOFTMAX) => Ok(Scoring::Softmax),
            Some(SIGMOID) => Ok(Scoring::Sigmoid),
            Some(other) => Err(self.keys.bad("expert_gating_func", other, "only 1 and 2 are supported")),
        }
    }

    /// The factor of the experts' weights.
    pub(super) fn weights_scale(&self) -> Result<f32, ModelError> {
        let scale = self.keys.nonzero_f32("expert_weights_scale")?.unwrap_or(1.0);
        self.keys.positive("expert_weights_scale", scale)
    }

    /// A shared expert with the file's width, or as wide as its number of experts together; `None` without one.
    pub(super) fn shared(&self, expert_width: u32) -> Result<Option<SharedSpec>, ModelError> {
        let own = self.keys.nonzero_u32("expert_shared_feed_forward_length")?;
        let count = self.keys.optional_u32("expert_shared_count")?.unwrap_or(0);
        self.shared_of(own.unwrap_or_else(|| count.saturating_mul(expert_width)))
    }

    /// A shared expert of this width; `None` if it is 0.
    pub(super) fn shared_of(&self, width: u32) -> Result<Option<SharedSpec>, ModelError> {
        if width == 0 {
            return Ok(None);
        }
        let intermediate = self.keys.checked_size("expert_shared_feed_forward_length", width, MAX_WIDTH)?;
        Ok(Some(SharedSpec { intermediate, gated: false }))
    }

    /// Which blocks have a sliding window, and its length; `None` if the file has none.
    pub(super) fn windows(&self, blocks: usize, period: u32) -> Result<Option<(u32, Vec<bool>)>, ModelError> {
        let window = self.keys.nonzero_u32("attention.sliding_window")?;
        let pattern = self.keys.pattern("attention.sliding_window_pattern", blocks, period)?;
        Ok(window.map(|window| (window, pattern)))
    }
}

/// What YaRN multiplies rotated values by (section 3.4 of its paper), with `mscale` as DeepSeek added it.
pub(crate) fn yarn_magnitude(factor: f32, mscale: f32) -> f32 {
    if factor <= 1.0 { 1.0 } else { 0.1 * mscale * factor.ln() + 1.0 }
}

impl Description {
    /// Each block's number and attention, to be changed.
    pub(super) fn attentions(&mut self) -> impl Iterator<Item = (usize, &mut AttentionSpec)> {
        self.spec.blocks.iter_mut().enumerate().filter_map(|(number, block)| match &mut block.token_mixer {
            TokenMixerSpec::Attention(attention) => Some((number, attention)),
            TokenMixerSpec::Recurrent(_) => None,
        })
    }

    /// Each dense network, to be changed.
    pub(super) fn dense(&mut self) -> impl Iterator<Item = &mut DenseSpec> {
        self.spec.blocks.iter_mut().filter_map(|block| match &mut block.feed_forward {
            FeedForwardSpec::Dense(dense) => Some(dense),
            FeedForwardSpec::Experts(_) => None,
        })
    }

    /// Each block's number and experts, to be changed.
    pub(super) fn experts(&mut self) -> impl Iterator<Item = (usize, &mut ExpertsSpec)> {
        self.spec.blocks.iter_mut().enumerate().filter_map(|(number, block)| match &mut block.feed_forward {
            FeedForwardSpec::Experts(experts) => Some((number, experts)),
            FeedForwardSpec::Dense(_) => None,
        })
    }

    /// Gives blocks their sliding windows, which then no longer limit the context.
    pub(super) fn set_windows(&mut self, source: &Source<'_>, period: u32) -> Result<(), ModelError> {
        if let Some((window, pattern)) = source.windows(self.spec.blocks.len(), period)? {
            self.spec.context = source.keys.size("context_length", u32::MAX)?;
            for (number, attention) in self.attentions() {
                attention.window = pattern[number].then_some(window);
            }
        }
        Ok(())
    }
}
