//! The kernels of each half of a block, in order. `decode` and `prefill` contain what differs by kernel class.

use potluck_model::{Activation, AttentionSpec, FeedForwardSpec, QkNorm, RopeFactors, RopePairs, TensorRole};
use potluck_plan::{BlockIndex, KernelClass, WeightUnit};
use potluck_shaders::{Addition, Extras, Glu, Kernel, Pairs, params};

use crate::runtime::core::Core;
use crate::runtime::error::{EngineError, LayoutError};
use crate::runtime::layout::{ExpertPlaces, Key, Layout, Scratch, Segment, kv_owner};
use crate::runtime::memory::Slice;
use crate::runtime::recorder::Recorder;

mod block_inputs;
mod decode;
mod ends;
mod experts;
pub(crate) mod fused;
pub(crate) mod fused_experts;
mod latent;
mod prefill;
mod products;
pub(crate) mod recurrent;

/// Number of tokens in a batch and their kernel class.
#[derive(Clone, Copy, Debug)]
pub struct Batch {
    pub n: u32,
    pub class: KernelClass,
}

/// Inputs and outputs of a matrix product.
struct Product<'a> {
    x: &'a Slice,
    y: &'a Slice,
    y_stride: u32,
    y_offset: u32,
    add: bool,
    bias: Option<Slice>,
}

/// The (token, expert) pairs of a block.
struct Pairing<'a> {
    places: &'a ExpertPlaces,
    used: u32,
    experts: u32,
    activation: Activation,
}

/// The last product of a half of a block, whose result goes into the hidden vectors.
struct Output<'a> {
    unit: WeightUnit,
    matrix: TensorRole,
    bias: Option<TensorRole>,
    /// Norm of the result.
    norm: Option<TensorRole>,
    x: &'a Slice,
}

/// What attention does besides the softmax.
pub(crate) fn extras(a: &AttentionSpec) -> Extras {
    Extras { window: a.window.is_some(), cap: a.score_cap > 0.0, sinks: a.sinks }
}

/// Which values of a head rotate together.
pub(crate) fn pairs(a: &AttentionSpec) -> Pairs {
    match a.rope.pairs {
        RopePairs::Adjacent => Pairs::Adjacent,
        RopePairs::Halves => Pairs::Halves,
    }
}

/// The kernel of an activation.
pub(crate) fn activation(activation: Activation) -> Kernel {
    match activation {
        Activation::SwiGlu => Kernel::Glu(Glu::Silu),
        Activation::GeGlu => Kernel::Glu(Glu::Gelu),
        Activation::ClampedSwiGlu => Kernel::Glu(Glu::Clamped),
    }
}

/// Uniform of the attention kernels that take whole contexts.
fn attention_params(a: &AttentionSpec, n: u32) -> params::Attention {
    params::Attention {
        n,
        heads: a.heads,
        kv_heads: a.kv_heads,
        scale: a.scale,
        window: a.window.unwrap_or(0),
        cap: a.score_cap,
        chunked: u32::from(a.chunked),
    }
}

impl Core {
    /// Number of workgroups for `threads` threads.
    fn groups(kernel: Kernel, threads: u32) -> u32 {
        threads.div_ceil(kernel.threads())
    }

    /// RMSNorm of `n` batch rows from `first` into `Scratch::Normed`.
    fn norm(&mut self, rec: &mut Recorder, gain: &Slice, first: u32, n: u32) {
        self.norm_times(rec, gain, 1.0, (first, n));
    }

    /// The same, times a factor.
    fn norm_times(&mut self, rec: &mut Recorder, gain: &Slice, factor: f32, (first, n): (u32, u32)) {
        let params = params::Norm { n, first, width: self.spec.hidden / 4, epsilon: self.spec.norm_epsilon, factor };
        let kernel = self.profile.norm();
        let groups = if kernel.fallback().is_some() { n } else { Self::groups(kernel, n) };
        let (x, y) = (self.scratch(Scratch::Hidden), self.scratch(Scratch::Normed));
        rec.dispatch(&mut self.tools(), kernel, &[&x, gain, &y], &params, groups, 1);
    }

    /// The last product of a half of a block, added to the hidden vectors: at once if nothing comes between.
    fn add_output(
        &mut self,
        rec: &mut Recorder,
        layout: &Layout,
        out: Output<'_>,
        batch: Batch,
    ) -> Result<(), EngineError> {
        let place = self.place(layout, out.unit, out.matrix)?;
        let bias = out.bias.map(|bias| self.vector(layout, out.unit, bias)).transpose()?;
        let width = self.spec.hidden;
        let direct = out.norm.is_none() && self.spec.scales.residual == 1.0;
        let y = self.scratch(if direct { Scratch::Hidden } else { Scratch::Normed });
        let to = Product { x: out.x, y: &y, y_stride: width, y_offset: 0, add: direct, bias };
        self.product(rec, place, batch, to);
        if direct {
            return Ok(());
        }
        match out.norm {
            Some(norm) => {
                let gain = self.vector(layout, out.unit, norm)?;
                self.residual(rec, (Addition::Normed, Some(&gain)), &y, batch.n);
            }
            None => self.residual(rec, (Addition::Scaled, None), &y, batch.n),
        }
        Ok(())
    }

    /// Adds `n` vectors to the hidden ones, by way of a norm's gain or of scores.
    fn residual(&mut self, rec: &mut Recorder, how: (Addition, Option<&Slice>), x: &Slice, n: u32) {
        let (hidden, scale) = (self.scratch(Scratch::Hidden), self.spec.scales.residual);
        self.add_to(rec, how, (x, &hidden), scale, n);
    }

    /// Adds `n` vectors, times a factor, to others.
    fn add_to(
        &mut self,
        rec: &mut Recorder,
        (how, operand): (Addition, Option<&Slice>),
        (x, y): (&Slice, &Slice),
        scale: f32,
        n: u32,
    ) {
        let params = params::Residual { n, width: self.spec.hidden / 4, scale, epsilon: self.spec.norm_epsilon };
        let kernel = self.profile.residual(how);
        let groups = if kernel.fallback().is_some() { n } else { Self::groups(kernel, n) };
        let mut bindings = vec![x, y];
        bindings.extend(operand);
        rec.dispatch(&mut self.tools(), kernel, &bindings, &params, groups, 1);
    }

    /// The learned factor at the end of a block, of a unit that has one.
    fn end_block(&mut self, rec: &mut Recorder, layout: &Layout, unit: WeightUnit, n: u32) -> Result<(), EngineError> {
        if self.spec.scales.of_blocks {
            let factor = self.vector(layout, unit, TensorRole::BlockScale)?;
            let hidden = self.scratch(Scratch::Hidden);
            let count = n * self.spec.hidden;
            let params = params::ScaleBy { count, factors: 1, row: count };
            let kernel = Kernel::ScaleBy { expert: false };
            let groups = Self::groups(kernel, params.count);
            rec.dispatch(&mut self.tools(), kernel, &[&factor, &hidden], &params, groups, 1);
        }
        Ok(())
    }

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
    fn norm_in_place(
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
    fn keys(&self, block: BlockIndex) -> Slice {
        self.memory.whole(Key::Keys(kv_owner(&self.spec, block)))
    }

    /// The same of its values; latent attention's keys are its values too.
    fn values(&self, block: BlockIndex, a: &AttentionSpec) -> Slice {
        if a.latent.is_some() { self.keys(block) } else { self.memory.whole(Key::Values(kv_owner(&self.spec, block))) }
    }

    /// Bytes of one head's keys or values at one position.
    fn head_bytes(&self, a: &AttentionSpec) -> u64 {
        4 * u64::from(self.settings.kv_cache.head_words(a.head_dim))
    }

    /// Attends with each query of the batch separately over the pages of its conversation.
    fn rowwise_attention(&mut self, rec: &mut Recorder, block: BlockIndex, batch: Batch, sinks: Option<&Slice>) {
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

    /// A dense feed-forward network with its norms, added to the hidden vectors.
    pub fn dense(
        &mut self,
        rec: &mut Recorder,
        layout: &Layout,
        block: BlockIndex,
        batch: Batch,
    ) -> Result<(), EngineError> {
        let unit = WeightUnit::Dense(block);
        let FeedForwardSpec::Dense(dense) = self.spec.blocks[usize::from(block.0)].feed_forward.clone() else {
            return Err(EngineError::NoSuchBlock(block));
        };
        let gain = match dense.norms.before {
            true => Some(self.vector(layout, unit, TensorRole::FeedForwardNorm)?),
            false => None,
        };
        match &gain {
            Some(gain) => self.normed_gate_and_up(rec, layout, unit, (dense.activation, gain), batch)?,
            None => {
                let hidden = self.scratch(Scratch::Hidden);
                self.gate_and_up(rec, layout, unit, dense.activation, &hidden, batch)?;
            }
        }
        let up = self.scratch(Scratch::Up);
        let norm = dense.norms.after.then_some(TensorRole::FeedForwardPostNorm);
        let out = Output { unit, matrix: TensorRole::Down, bias: None, norm, x: &up };
        self.add_output(rec, layout, out, batch)?;
        self.add_block_input(rec, layout, block, batch)?;
        self.end_block(rec, layout, unit, batch.n)
    }

    /// `activation(gate) · up` of the normalized hidden vectors into `Scratch::Up`.
    fn normed_gate_and_up(
        &mut self,
        rec: &mut Recorder,
        layout: &Layout,
        unit: WeightUnit,
        (activation, gain): (Activation, &Slice),
        batch: Batch,
    ) -> Result<(), EngineError> {
        let fuses = batch.class == KernelClass::Decode;
        if fuses && self.fused_gate(rec, layout, unit, (activation, gain), batch.n)? {
            return Ok(());
        }
        self.norm(rec, gain, 0, batch.n);
        let normed = self.scratch(Scratch::Normed);
        self.gate_and_up(rec, layout, unit, activation, &normed, batch)
    }

    /// `activation(gate) · up` of some vectors into `Scratch::Up`, in separate steps.
    fn gate_and_up(
        &mut self,
        rec: &mut Recorder,
        layout: &Layout,
        unit: WeightUnit,
        activation: Activation,
        x: &Slice,
        batch: Batch,
    ) -> Result<(), EngineError> {
        let (gate, up) = (self.scratch(Scratch::Gate), self.scratch(Scratch::Up));
        let mut inner = 0;
        for (role, y) in [(TensorRole::Gate, &gate), (TensorRole::Up, &up)] {
            let place = self.place(layout, unit, role)?;
            inner = place.shape.rows;
            let to = Product { x, y, y_stride: inner, y_offset: 0, add: false, bias: None };
            self.product(rec, place, batch, to);
        }
        self.activate(rec, activation, batch.n * inner / 4);
        Ok(())
    }

    /// The activation of `Scratch::Gate`, times `Scratch::Up`, in place.
    fn activate(&mut self, rec: &mut Recorder, how: Activation, quads: u32) {
        let kernel = activation(how);
        let (gate, up) = (self.scratch(Scratch::Gate), self.scratch(Scratch::Up));
        let groups = Self::groups(kernel, quads);
        rec.dispatch(&mut self.tools(), kernel, &[&gate, &up], &params::Glu { quads }, groups, 1);
    }

    /// Whether logits have a factor or a soft cap.
    pub(crate) fn scales_logits(&self) -> bool {
        self.spec.scales.logits != 1.0 || self.spec.scales.logit_cap > 0.0
    }
}
