//! The model as this device computes it: its description, the kernels in use, and where its weights lie.

use std::collections::{BTreeMap, BTreeSet};

use potluck_model::{AttentionSpec, ExpertsSpec, FeedForwardSpec, ModelSpec, RopeFactors, TensorRole, UnitMap};
use potluck_plan::{
    AllowedTokens, BiasedTokens, BlockIndex, LmHeadTokens, LogitBias, LogitsRequest, Then, WeightUnit, Work,
};
use potluck_shaders::{Format, Kernel};

use crate::runtime::error::EngineError;
use crate::runtime::gpu::Gpu;
use crate::runtime::layout::{ALIGNMENT, Key, Place, Scratch};
use crate::runtime::memory::{Memory, Slice};
use crate::runtime::profile::Profile;
use crate::runtime::sampled_tokens::SampledTokens;
use crate::runtime::settings::Settings;
use crate::runtime::submit::{BufferCopy, LogitChanges};
use crate::runtime::weights::Weights;

/// What checks and recording look at. Only [`crate::runtime::core::Core`] changes it.
pub struct Model {
    pub gpu: Gpu,
    pub spec: ModelSpec,
    pub units: UnitMap,
    pub settings: Settings,
    /// The kernels in use.
    pub profile: Profile,
    /// Kernels that may be faster than those in use, and whether they compute correctly on this device.
    pub tried: BTreeMap<Kernel, bool>,
    pub memory: Memory,
    pub weights: Weights,
}

impl Model {
    /// Experts used per token, and experts of the block.
    pub fn routing(&self, block: BlockIndex) -> Result<(u32, u32), EngineError> {
        let experts = self.expert_spec(block)?;
        Ok((experts.used, experts.count))
    }

    /// The description of a block's experts.
    pub fn expert_spec(&self, block: BlockIndex) -> Result<&ExpertsSpec, EngineError> {
        match self.spec.blocks.get(usize::from(block.0)).map(|block| &block.feed_forward) {
            Some(FeedForwardSpec::Experts(experts)) => Ok(experts),
            Some(FeedForwardSpec::Dense(_)) => Err(EngineError::NoExperts(block)),
            None => Err(EngineError::NoSuchBlock(block)),
        }
    }

    /// Number of experts in a block, 0 if it has none.
    pub fn expert_count(&self, block: BlockIndex) -> u32 {
        self.spec.experts(usize::from(block.0)).map_or(0, |experts| experts.count)
    }

    /// The weight format with the most held bytes; `Q4_K` if nothing is held.
    pub fn main_format(&self) -> Format {
        let mut bytes: BTreeMap<Format, u64> = BTreeMap::new();
        for place in self.memory.layout().places.values() {
            *bytes.entry(place.shape.format).or_default() += place.shape.bytes();
        }
        let mut pools = BTreeSet::new();
        for (block, places) in &self.memory.layout().experts {
            // Blocks of a slab class share its slots.
            let slots = match self.memory.layout().classes.get(block) {
                None => places.slots.len() as u64,
                Some(&class) if pools.insert(class) => u64::from(self.memory.layout().pool_slots[usize::from(class)]),
                Some(_) => continue,
            };
            for matrix in [&places.gate, &places.up, &places.down] {
                *bytes.entry(matrix.shape.format).or_default() += matrix.shape.bytes() * slots;
            }
        }
        bytes.into_iter().max_by_key(|(_, bytes)| *bytes).map_or(Format::Q4_K, |(format, _)| format)
    }

    /// The tensor with a block's rotary factors for the reserved context.
    pub(crate) fn rope_factors(&self, a: &AttentionSpec) -> Option<TensorRole> {
        match a.rope.factors {
            RopeFactors::None => None,
            _ if a.rope.dims == 0 => None,
            RopeFactors::ByContext { original } if self.settings.context > original => {
                Some(TensorRole::RopeFactorsLong)
            }
            RopeFactors::Fixed | RopeFactors::ByContext { .. } => Some(TensorRole::RopeFactors),
        }
    }

    /// Whether logits have a factor or a soft cap.
    pub(crate) fn scales_logits(&self) -> bool {
        self.spec.scales.logits != 1.0 || self.spec.scales.logit_cap > 0.0
    }

    /// Candidates of a step.
    pub fn candidates_of(&self, sampled: bool) -> u32 {
        if sampled { u32::from(LogitsRequest::MAX_TOP).min(self.spec.vocabulary) } else { 1 }
    }

    /// Location of a tensor of a held unit. Experts lie in slots instead.
    pub fn place(&self, unit: WeightUnit, role: TensorRole) -> Result<&Place, EngineError> {
        let tensor = self.weights.tensor(unit, role);
        tensor.and_then(|tensor| self.memory.layout().places.get(&(unit, tensor))).ok_or(EngineError::NotResident(unit))
    }

    /// Binding of a vector, such as a norm's gain or a bias.
    pub fn vector(&self, unit: WeightUnit, role: TensorRole) -> Result<Slice, EngineError> {
        let segment = self.place(unit, role)?.segments[0];
        Ok(self.memory.slice(segment.key, segment.offset, segment.bytes))
    }

    /// The whole buffer that contains a scratch vector.
    pub fn scratch(&self, scratch: Scratch) -> Slice {
        self.memory.whole(Key::Scratch(scratch.home()))
    }

    /// The slot of a sampled token.
    pub fn sampled_token(&self, slot: usize) -> Slice {
        self.memory.slice(Key::Scratch(Scratch::SampledTokens), slot as u64 * ALIGNMENT, 4)
    }

    /// The sampler's parameters and newest tokens of a slot.
    pub fn sampler_state(&self, slot: usize) -> Slice {
        let stride = SampledTokens::STRIDE;
        self.memory.slice(Key::Scratch(Scratch::Sampling), slot as u64 * stride, stride)
    }

    /// Copies parts of scratch buffers to consecutive offsets starting at `at`.
    pub(crate) fn copies(&self, parts: &[(Scratch, u64, u64)], target: &wgpu::Buffer, mut at: u64) -> Vec<BufferCopy> {
        parts
            .iter()
            .map(|&(scratch, offset, size)| {
                let slab = self.memory.slab(Key::Scratch(scratch.home())).clone();
                let copy = BufferCopy { from: Slice { slab, offset, size }, to: target.clone(), at };
                at += size;
                copy
            })
            .collect()
    }

    /// Writes the biases and masks of a batch of `rows` tokens for those that pass the LM head. Says which of both there are.
    pub(crate) fn write_changes(&self, rows: usize, then: Then, biases: &[BiasedTokens]) -> LogitChanges {
        let Then::LmHead(request) = then else { return LogitChanges::default() };
        let passing = if request.tokens == LmHeadTokens::Last { rows.saturating_sub(1)..rows } else { 0..rows };
        let biases = BiasedTokens::within(biases, &passing);
        LogitChanges { biases: self.write_biases(&biases), masks: self.write_masks(&biases) }
    }

    /// False if no row has a bias.
    fn write_biases(&self, biases: &[BiasedTokens]) -> bool {
        const PAIR: u64 = 8;
        let mut counts = [[0u32; 2]; Work::DECODE_TOKENS];
        for BiasedTokens { tokens, bias, .. } in biases {
            let pairs: Vec<[u32; 2]> = bias.tokens().iter().map(|(id, bias)| [*id, bias.to_bits()]).collect();
            for (row, count) in counts.iter_mut().enumerate().filter(|(row, _)| tokens.contains(&(*row as u32))) {
                *count = [pairs.len() as u32, 0];
                let first = Work::DECODE_TOKENS + row * LogitBias::MAX_TOKENS;
                self.write(Scratch::Biases, first as u64 * PAIR, bytemuck::cast_slice(&pairs));
            }
        }
        let has_some = counts.iter().any(|[count, _]| *count > 0);
        if has_some {
            self.write(Scratch::Biases, 0, bytemuck::cast_slice(&counts));
        }
        has_some
    }

    /// False if every token may be chosen in each row.
    fn write_masks(&self, biases: &[BiasedTokens]) -> bool {
        const WORD: u64 = 4;
        let mut has_mask = [0u32; Work::DECODE_TOKENS];
        for BiasedTokens { tokens, allowed, .. } in biases {
            let words = allowed.as_ref().filter(|allowed| !allowed.are_all()).map(AllowedTokens::words);
            for (row, has_mask) in has_mask.iter_mut().enumerate().filter(|(row, _)| tokens.contains(&(*row as u32))) {
                *has_mask = u32::from(words.is_some());
                if let Some(words) = &words {
                    let first = Work::DECODE_TOKENS + row * words.len();
                    self.write(Scratch::Masks, first as u64 * WORD, bytemuck::cast_slice(words));
                }
            }
        }
        let has_some = has_mask.contains(&1);
        if has_some {
            self.write(Scratch::Masks, 0, bytemuck::cast_slice(&has_mask));
        }
        has_some
    }

    /// Writes to a scratch buffer, from byte `at` on.
    pub(crate) fn write(&self, scratch: Scratch, at: u64, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.gpu.queue.write_buffer(&self.scratch(scratch).slab.buffer, at, bytes);
        }
    }
}
