//! The first half of a block: attention.

use std::ops::Range;

use potluck_model::{AttentionSpec, QkNorm, TensorRole};
use potluck_plan::{BlockIndex, KernelClass, WeightUnit};
use potluck_shaders::{Glu, Kernel, params};

use super::{Batch, Encoder, Output, Product, attention_params, extras, fused, pairs};
use crate::runtime::error::{EngineError, LayoutError};
use crate::runtime::kv_sizes::kv_owner;
use crate::runtime::layout::{Key, Scratch, Segment};
use crate::runtime::memory::Slice;

/// A part of each vector, in values.
pub(super) struct RowPart {
    pub width: u32,
    /// From one vector to the next.
    pub stride: u32,
    /// The first value.
    pub offset: u32,
}

impl Encoder<'_> {
    /// A block's token mixer with its norms and projections, added to the hidden vectors.
    pub fn token_mixer(&mut self, block: BlockIndex, batch: Batch) -> Result<(), EngineError> {
        if let Some(recurrent) = self.model.spec.recurrent(usize::from(block.0)).cloned() {
            return self.recurrence(block, &recurrent, batch);
        }
        let unit = WeightUnit::TokenMixer(block);
        let a = self.model.spec.attention(usize::from(block.0)).clone();
        if let Some(latent) = a.latent {
            return self.latent_mixer(block, &a, latent, batch);
        }
        self.project(unit, &a, batch)?;
        if a.qk_norm == QkNorm::Row {
            self.norm_part(&self.model.vector(unit, TensorRole::QueryNorm)?, &a, 0..a.heads, batch.n);
            self.norm_part(&self.model.vector(unit, TensorRole::KeyNorm)?, &a, a.heads..a.heads + a.kv_heads, batch.n);
        }
        self.rope(block, &a, batch)?;
        let sinks = if a.sinks { Some(self.model.vector(unit, TensorRole::Sinks)?) } else { None };
        if a.output_gate {
            self.keep_gates(&a, batch.n);
        }
        match batch.class {
            KernelClass::Decode => self.decode_attention(block, batch, sinks.as_ref()),
            KernelClass::Prefill => self.prefill_attention(block, batch, sinks.as_ref()),
        }
        let attended = self.model.scratch(Scratch::Attended);
        if a.output_gate {
            let (kernel, quads) = (Kernel::Glu(Glu::Sigmoid), batch.n * a.heads * a.head_dim / 4);
            let (gates, groups) = (self.model.scratch(Scratch::QueryGates), Self::groups(kernel, quads));
            self.dispatch(kernel, &[&gates, &attended], &params::Glu { quads }, groups, 1);
        }
        let out = Output {
            unit,
            matrix: TensorRole::AttentionOutput,
            bias: a.output_bias.then_some(TensorRole::AttentionOutputBias),
            norm: a.norms.after.then_some(TensorRole::AttentionPostNorm),
            x: &attended,
        };
        self.add_output(out, batch)
    }

    /// Copies the gates of the query heads, which attention overwrites.
    fn keep_gates(&mut self, a: &AttentionSpec, n: u32) {
        let params = params::QueryGates { n, heads: a.heads, head_dim: a.head_dim, stride: a.projected() };
        let (qkv, gates) = (self.model.scratch(Scratch::Qkv), self.model.scratch(Scratch::QueryGates));
        let groups = Self::groups(Kernel::QueryGates, n * a.heads * a.head_dim);
        self.dispatch(Kernel::QueryGates, &[&qkv, &gates], &params, groups, 1);
    }

    /// Queries, keys and values of the hidden vectors into `Scratch::Qkv`.
    fn project(&mut self, unit: WeightUnit, a: &AttentionSpec, batch: Batch) -> Result<(), EngineError> {
        let (width, queries) = (a.projected(), a.query_rows());
        let all = [
            (TensorRole::Query, TensorRole::QueryBias, 0),
            (TensorRole::Key, TensorRole::KeyBias, queries),
            (
                if a.values_are_keys { TensorRole::Key } else { TensorRole::Value },
                TensorRole::ValueBias,
                queries + a.kv_heads * a.head_dim,
            ),
        ];
        let parts = if a.kv_of.is_some() { &all[..1] } else { &all };
        if a.norms.before {
            let gain = self.model.vector(unit, TensorRole::AttentionNorm)?;
            if batch.class == KernelClass::Decode && self.fused_projection(unit, parts, &gain, a, batch.n)? {
                return Ok(());
            }
            self.norm(&gain, 0, batch.n);
        }
        let x = self.model.scratch(if a.norms.before { Scratch::Normed } else { Scratch::Hidden });
        let qkv = self.model.scratch(Scratch::Qkv);
        for &(role, bias, y_offset) in parts {
            let place = self.model.place(unit, role)?;
            let bias = if a.qkv_bias { Some(self.model.vector(unit, bias)?) } else { None };
            let to = Product { x: &x, y: &qkv, y_stride: width, y_offset, add: false, bias };
            self.product(place, batch, to);
        }
        Ok(())
    }

    /// RMSNorm in place of all values of some heads of each position in `Scratch::Qkv`.
    fn norm_part(&mut self, gain: &Slice, a: &AttentionSpec, heads: Range<u32>, n: u32) {
        let qkv = self.model.scratch(Scratch::Qkv);
        let stride = (a.heads + 2 * a.kv_heads) * a.head_dim;
        let part = RowPart { width: heads.len() as u32 * a.head_dim, stride, offset: heads.start * a.head_dim };
        self.norm_in_place(&qkv, gain, part, n);
    }

    /// RMSNorm in place of a part of `n` vectors.
    pub(super) fn norm_in_place(&mut self, x: &Slice, gain: &Slice, part: RowPart, n: u32) {
        let RowPart { width, stride, offset } = part;
        let epsilon = self.model.spec.norm_epsilon;
        let params =
            params::NormPart { n, width: width / 4, stride: stride / 4, offset: offset / 4, groups: 1, epsilon };
        let kernel = self.model.profile.norm_part();
        let groups = if kernel.fallback().is_some() { n } else { Self::groups(kernel, n) };
        self.dispatch(kernel, &[x, gain], &params, groups, 1);
    }

    /// Rotates queries and keys, and stores keys and values.
    fn rope(&mut self, block: BlockIndex, a: &AttentionSpec, batch: Batch) -> Result<(), EngineError> {
        let unit = WeightUnit::TokenMixer(block);
        let kv_type = self.model.settings.kv_cache;
        let tables = Key::Scratch(Scratch::Tables);
        let mut bindings = vec![
            self.model.scratch(Scratch::Rows),
            self.model.scratch(Scratch::Qkv),
            self.model.memory.slice(tables, self.layout().rope_table[&block], (u64::from(a.rope.dims) * 2).max(4)),
            self.model.scratch(Scratch::Query),
            self.keys(block),
            self.values(block, a),
        ];
        let own = a.own_kv_heads();
        // Nothing reads the gain of keys that are another block's.
        let key_norm = if own > 0 { TensorRole::KeyNorm } else { TensorRole::QueryNorm };
        let (qk_norm, gains) = (matches!(a.qk_norm, QkNorm::Head | QkNorm::Unit), a.qk_norm == QkNorm::Head);
        let factors = self.model.rope_factors(a);
        let temperature = a.rope.temperature;
        let mut params = params::Rope {
            n: batch.n,
            heads: a.heads,
            kv_heads: own,
            value_heads: own,
            head_dim: a.head_dim,
            dims: a.rope.dims,
            epsilon: self.model.spec.norm_epsilon,
            magnitude: a.rope.magnitude,
            growth: temperature.map_or(0.0, |temperature| temperature.scale),
            step: temperature.map_or(0, |temperature| temperature.step),
            shift: temperature.map_or(0, |temperature| temperature.shift),
            gainless: u32::from(!gains),
            value_norm: u32::from(a.value_norm),
            gated: u32::from(a.output_gate),
            ..Default::default()
        };
        match (qk_norm, factors) {
            (true, Some(factors)) if !gains => bindings.push(self.model.vector(unit, factors)?),
            // Nothing is read from these.
            (true, None) if !gains => bindings.extend([bindings[2].clone(), bindings[2].clone()]),
            (true, Some(factors)) => {
                let roles = [TensorRole::QueryNorm, key_norm, factors];
                let (joined, at) = self.joined(unit, roles)?;
                bindings.push(joined);
                [params.q_gain, params.k_gain, params.factors] = at;
            }
            (true, None) => {
                bindings.push(self.model.vector(unit, TensorRole::QueryNorm)?);
                bindings.push(self.model.vector(unit, key_norm)?);
            }
            (false, Some(factors)) => bindings.push(self.model.vector(unit, factors)?),
            (false, None) => {}
        }
        let kernel = Kernel::Rope { kv_type, pairs: pairs(a), qk_norm, factors: factors.is_some() };
        let threads = batch.n * (a.heads + 2 * own) * Kernel::rope_threads(kv_type, a.head_dim);
        let bound: Vec<&Slice> = bindings.iter().collect();
        self.dispatch(kernel, &bound, &params, Self::groups(kernel, threads), 1);
        Ok(())
    }

    /// One binding that covers several vectors of a unit, and the first value of each in it.
    fn joined<const N: usize>(
        &self,
        unit: WeightUnit,
        roles: [TensorRole; N],
    ) -> Result<(Slice, [u32; N]), EngineError> {
        let mut segments: Vec<Segment> = Vec::with_capacity(N);
        for role in roles {
            segments.push(self.model.place(unit, role)?.segments[0]);
        }
        let key = segments[0].key;
        if segments.iter().any(|segment| segment.key != key) {
            let text = format!("The vectors of {unit:?} lie in several buffers, which one binding cannot cover.");
            return Err(LayoutError::UnsupportedShape(text).into());
        }
        let (from, to) = fused::span(segments.iter().copied());
        let mut at = [0; N];
        // The casts cannot truncate: vectors lie next to each other.
        at.iter_mut().zip(&segments).for_each(|(at, segment)| *at = ((segment.offset - from) / 4) as u32);
        Ok((self.model.memory.slice(key, from, to - from), at))
    }

    /// The buffer of the keys that a block attends to.
    pub(super) fn keys(&self, block: BlockIndex) -> Slice {
        self.model.memory.whole(Key::Keys(kv_owner(&self.model.spec, block)))
    }

    /// The same of its values; latent attention's keys are its values too.
    pub(super) fn values(&self, block: BlockIndex, a: &AttentionSpec) -> Slice {
        if a.latent.is_some() {
            self.keys(block)
        } else {
            self.model.memory.whole(Key::Values(kv_owner(&self.model.spec, block)))
        }
    }

    /// Bytes of one head's keys or values at one position.
    pub(super) fn head_bytes(&self, a: &AttentionSpec) -> u64 {
        4 * u64::from(self.model.settings.kv_cache.head_words(a.head_dim))
    }

    /// Attends with each query of the batch separately over the pages of its conversation.
    pub(super) fn rowwise_attention(&mut self, block: BlockIndex, batch: Batch, sinks: Option<&Slice>) {
        let a = self.model.spec.attention(usize::from(block.0)).clone();
        let kv_type = self.model.settings.kv_cache;
        let keys = self.keys(block);
        let values = self.values(block, &a);
        let (rows, query) = (self.model.scratch(Scratch::Rows), self.model.scratch(Scratch::Query));
        let kernel = self.model.profile.attention(kv_type, (a.head_dim / 4) as u16, extras(&a));
        let params = attention_params(&a, batch.n);
        let (pages, attended) = (self.model.scratch(Scratch::KvPages), self.model.scratch(Scratch::Attended));
        let (x, z) =
            if kernel.fallback().is_some() { (a.heads, batch.n) } else { (Self::groups(kernel, batch.n * a.heads), 1) };
        let mut bindings = vec![&rows, &pages, &query, &keys, &values, &attended];
        bindings.extend(sinks);
        self.dispatch(kernel, &bindings, &params, x, z);
        self.rec.cost_of_reach(2 * u64::from(batch.n * a.heads) * self.head_bytes(&a));
    }
}
