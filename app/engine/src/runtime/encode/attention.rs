//! The first half of a block: attention.

use potluck_model::{AttentionSpec, QkNorm, TensorRole};
use potluck_plan::{BlockIndex, KernelClass, WeightUnit};
use potluck_shaders::{Glu, Kernel, params};

use super::{Batch, Output, Product, attention_params, extras, fused, pairs};
use crate::runtime::core::Core;
use crate::runtime::error::{EngineError, LayoutError};
use crate::runtime::layout::{Key, Layout, Scratch, Segment, kv_owner};
use crate::runtime::memory::Slice;
use crate::runtime::recorder::Recorder;

impl Core {
    /// A block's token mixer with its norms and projections, added to the hidden vectors.
    pub fn token_mixer(
        &mut self,
        rec: &mut Recorder,
        layout: &Layout,
        block: BlockIndex,
        batch: Batch,
    ) -> Result<(), EngineError> {
        if let Some(recurrent) = self.spec.recurrent(usize::from(block.0)).cloned() {
            return self.recurrence(rec, layout, block, &recurrent, batch);
        }
        let unit = WeightUnit::TokenMixer(block);
        let a = self.spec.attention(usize::from(block.0)).clone();
        if let Some(latent) = a.latent {
            return self.latent_mixer(rec, layout, block, (&a, latent), batch);
        }
        self.project(rec, layout, unit, &a, batch)?;
        if a.qk_norm == QkNorm::Row {
            self.norm_part(rec, &self.vector(layout, unit, TensorRole::QueryNorm)?, &a, (0, a.heads), batch.n);
            self.norm_part(rec, &self.vector(layout, unit, TensorRole::KeyNorm)?, &a, (a.heads, a.kv_heads), batch.n);
        }
        self.rope(rec, layout, block, &a, batch)?;
        let sinks = match a.sinks {
            true => Some(self.vector(layout, unit, TensorRole::Sinks)?),
            false => None,
        };
        if a.output_gate {
            self.keep_gates(rec, &a, batch.n);
        }
        match batch.class {
            KernelClass::Decode => self.decode_attention(rec, block, batch, sinks.as_ref()),
            KernelClass::Prefill => self.prefill_attention(rec, block, batch, sinks.as_ref()),
        }
        let attended = self.scratch(Scratch::Attended);
        if a.output_gate {
            let (kernel, quads) = (Kernel::Glu(Glu::Sigmoid), batch.n * a.heads * a.head_dim / 4);
            let (gates, groups) = (self.scratch(Scratch::QueryGates), Self::groups(kernel, quads));
            rec.dispatch(&mut self.tools(), kernel, &[&gates, &attended], &params::Glu { quads }, groups, 1);
        }
        let out = Output {
            unit,
            matrix: TensorRole::AttentionOutput,
            bias: a.output_bias.then_some(TensorRole::AttentionOutputBias),
            norm: a.norms.after.then_some(TensorRole::AttentionPostNorm),
            x: &attended,
        };
        self.add_output(rec, layout, out, batch)
    }

    /// Copies the gates of the query heads, which attention overwrites.
    fn keep_gates(&mut self, rec: &mut Recorder, a: &AttentionSpec, n: u32) {
        let params = params::QueryGates { n, heads: a.heads, head_dim: a.head_dim, stride: a.projected() };
        let (qkv, gates) = (self.scratch(Scratch::Qkv), self.scratch(Scratch::QueryGates));
        let groups = Self::groups(Kernel::QueryGates, n * a.heads * a.head_dim);
        rec.dispatch(&mut self.tools(), Kernel::QueryGates, &[&qkv, &gates], &params, groups, 1);
    }

    /// Queries, keys and values of the hidden vectors into `Scratch::Qkv`.
    fn project(
        &mut self,
        rec: &mut Recorder,
        layout: &Layout,
        unit: WeightUnit,
        a: &AttentionSpec,
        batch: Batch,
    ) -> Result<(), EngineError> {
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
            let gain = self.vector(layout, unit, TensorRole::AttentionNorm)?;
            if batch.class == KernelClass::Decode
                && self.fused_projection(rec, layout, unit, parts, &gain, (a, batch.n))?
            {
                return Ok(());
            }
            self.norm(rec, &gain, 0, batch.n);
        }
        let x = self.scratch(if a.norms.before { Scratch::Normed } else { Scratch::Hidden });
        let qkv = self.scratch(Scratch::Qkv);
        for &(role, bias, y_offset) in parts {
            let place = self.place(layout, unit, role)?;
            let bias = if a.qkv_bias { Some(self.vector(layout, unit, bias)?) } else { None };
            let to = Product { x: &x, y: &qkv, y_stride: width, y_offset, add: false, bias };
            self.product(rec, place, batch, to);
        }
        Ok(())
    }

    /// RMSNorm in place of all values of some heads of each position in `Scratch::Qkv`.
    fn norm_part(&mut self, rec: &mut Recorder, gain: &Slice, a: &AttentionSpec, (first, count): (u32, u32), n: u32) {
        let qkv = self.scratch(Scratch::Qkv);
        let stride = (a.heads + 2 * a.kv_heads) * a.head_dim;
        self.norm_in_place(rec, (&qkv, gain), (count * a.head_dim, stride, first * a.head_dim), n);
    }

    /// RMSNorm in place of a part of `n` vectors: its width, values from one vector to the next, and its first value.
    pub(super) fn norm_in_place(
        &mut self,
        rec: &mut Recorder,
        (x, gain): (&Slice, &Slice),
        (width, stride, offset): (u32, u32, u32),
        n: u32,
    ) {
        let epsilon = self.spec.norm_epsilon;
        let params =
            params::NormPart { n, width: width / 4, stride: stride / 4, offset: offset / 4, groups: 1, epsilon };
        let kernel = self.profile.norm_part();
        let groups = if kernel.fallback().is_some() { n } else { Self::groups(kernel, n) };
        rec.dispatch(&mut self.tools(), kernel, &[x, gain], &params, groups, 1);
    }

    /// Rotates queries and keys, and stores keys and values.
    fn rope(
        &mut self,
        rec: &mut Recorder,
        layout: &Layout,
        block: BlockIndex,
        a: &AttentionSpec,
        batch: Batch,
    ) -> Result<(), EngineError> {
        let unit = WeightUnit::TokenMixer(block);
        let kv_type = self.settings.kv_cache;
        let tables = Key::Scratch(Scratch::Tables);
        let mut bindings = vec![
            self.scratch(Scratch::Rows),
            self.scratch(Scratch::Qkv),
            self.memory.slice(tables, layout.rope_table[&block], (u64::from(a.rope.dims) * 2).max(4)),
            self.scratch(Scratch::Query),
            self.keys(block),
            self.values(block, a),
        ];
        let own = a.own_kv_heads();
        // Nothing reads the gain of keys that are another block's.
        let key_norm = if own > 0 { TensorRole::KeyNorm } else { TensorRole::QueryNorm };
        let (qk_norm, gains) = (matches!(a.qk_norm, QkNorm::Head | QkNorm::Unit), a.qk_norm == QkNorm::Head);
        let factors = self.rope_factors(a);
        let temperature = a.rope.temperature;
        let mut params = params::Rope {
            n: batch.n,
            heads: a.heads,
            kv_heads: own,
            value_heads: own,
            head_dim: a.head_dim,
            dims: a.rope.dims,
            epsilon: self.spec.norm_epsilon,
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
            (true, Some(factors)) if !gains => bindings.push(self.vector(layout, unit, factors)?),
            // Nothing is read from these.
            (true, None) if !gains => bindings.extend([bindings[2].clone(), bindings[2].clone()]),
            (true, Some(factors)) => {
                let roles = [TensorRole::QueryNorm, key_norm, factors];
                let (joined, at) = self.joined(layout, unit, roles)?;
                bindings.push(joined);
                [params.q_gain, params.k_gain, params.factors] = at;
            }
            (true, None) => {
                bindings.push(self.vector(layout, unit, TensorRole::QueryNorm)?);
                bindings.push(self.vector(layout, unit, key_norm)?);
            }
            (false, Some(factors)) => bindings.push(self.vector(layout, unit, factors)?),
            (false, None) => {}
        }
        let kernel = Kernel::Rope { kv_type, pairs: pairs(a), qk_norm, factors: factors.is_some() };
        let threads = batch.n * (a.heads + 2 * own) * Kernel::rope_threads(kv_type, a.head_dim);
        let bound: Vec<&Slice> = bindings.iter().collect();
        rec.dispatch(&mut self.tools(), kernel, &bound, &params, Self::groups(kernel, threads), 1);
        Ok(())
    }

    /// One binding that covers several vectors of a unit, and the first value of each in it.
    fn joined<const N: usize>(
        &self,
        layout: &Layout,
        unit: WeightUnit,
        roles: [TensorRole; N],
    ) -> Result<(Slice, [u32; N]), EngineError> {
        let mut segments: Vec<Segment> = Vec::with_capacity(N);
        for role in roles {
            segments.push(self.place(layout, unit, role)?.segments[0]);
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
        Ok((self.memory.slice(key, from, to - from), at))
    }

    /// The buffer of the keys that a block attends to.
    pub(super) fn keys(&self, block: BlockIndex) -> Slice {
        self.memory.whole(Key::Keys(kv_owner(&self.spec, block)))
    }

    /// The same of its values; latent attention's keys are its values too.
    pub(super) fn values(&self, block: BlockIndex, a: &AttentionSpec) -> Slice {
        if a.latent.is_some() { self.keys(block) } else { self.memory.whole(Key::Values(kv_owner(&self.spec, block))) }
    }

    /// Bytes of one head's keys or values at one position.
    pub(super) fn head_bytes(&self, a: &AttentionSpec) -> u64 {
        4 * u64::from(self.settings.kv_cache.head_words(a.head_dim))
    }

    /// Attends with each query of the batch separately over the pages of its conversation.
    pub(super) fn rowwise_attention(
        &mut self,
        rec: &mut Recorder,
        block: BlockIndex,
        batch: Batch,
        sinks: Option<&Slice>,
    ) {
        let a = self.spec.attention(usize::from(block.0)).clone();
        let kv_type = self.settings.kv_cache;
        let keys = self.keys(block);
        let values = self.values(block, &a);
        let (rows, query) = (self.scratch(Scratch::Rows), self.scratch(Scratch::Query));
        let kernel = self.profile.attention(kv_type, (a.head_dim / 4) as u16, extras(&a));
        let params = attention_params(&a, batch.n);
        let (pages, attended) = (self.scratch(Scratch::KvPages), self.scratch(Scratch::Attended));
        let (x, z) =
            if kernel.fallback().is_some() { (a.heads, batch.n) } else { (Self::groups(kernel, batch.n * a.heads), 1) };
        let mut bindings = vec![&rows, &pages, &query, &keys, &values, &attended];
        bindings.extend(sinks);
        rec.dispatch(&mut self.tools(), kernel, &bindings, &params, x, z);
        rec.cost_of_reach(2 * u64::from(batch.n * a.heads) * self.head_bytes(&a));
    }
}
