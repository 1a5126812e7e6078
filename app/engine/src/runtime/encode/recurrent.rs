//! Recurrences: short convolutions, gated delta nets and state spaces. Their kernels take a conversation's rows one
//! after another, so decode and prefill give the same bits.

use potluck_model::{DeltaNetSpec, ModelSpec, RecurrentSpec, Rule, StateSpaceSpec, TensorRole};
use potluck_plan::{BlockIndex, KernelClass, WeightUnit};
use potluck_shaders::{ConvKind, Kernel, ScanRule, params};

use super::{Batch, Encoder, Output, Product};
use crate::runtime::error::EngineError;
use crate::runtime::layout::{Key, Scratch};
use crate::runtime::memory::Slice;
use crate::runtime::profile::Recurrence;

/// The convolution of a recurrence.
pub(crate) fn conv(r: &RecurrentSpec) -> Kernel {
    let kind = match (&r.rule, r.conv_bias) {
        (Rule::ShortConv { .. }, _) => ConvKind::Gated,
        (_, true) => ConvKind::Biased,
        (_, false) => ConvKind::Silu,
    };
    Kernel::Conv { kind, taps: r.taps as u8 }
}

/// The rule after the convolution.
pub(crate) fn scan(r: &RecurrentSpec) -> Option<Recurrence> {
    match &r.rule {
        Rule::ShortConv { .. } => None,
        Rule::DeltaNet(net) => {
            let width = net.head_dim as u16;
            Some(Recurrence { rule: ScanRule::Delta, width, state: width })
        }
        Rule::StateSpace(space) => {
            Some(Recurrence { rule: ScanRule::Space, width: space.head_dim as u16, state: space.state as u16 })
        }
    }
}

/// Values from one slot of state to the next.
fn slot_values(r: &RecurrentSpec) -> u32 {
    (ModelSpec::state_slot_bytes(r) / 4) as u32
}

impl Encoder<'_> {
    /// A recurrence with its norm and products, added to the hidden vectors.
    pub(super) fn recurrence(&mut self, block: BlockIndex, r: &RecurrentSpec, batch: Batch) -> Result<(), EngineError> {
        let unit = WeightUnit::TokenMixer(block);
        self.recurrent_inputs(unit, r, batch)?;
        self.convolve(block, r, batch.n)?;
        match &r.rule {
            Rule::ShortConv { .. } => {}
            Rule::DeltaNet(net) => {
                self.scan(block, r, delta_params(r, net, batch.n), TensorRole::StateNorm)?;
            }
            Rule::StateSpace(space) => {
                self.scan(block, r, space_params(r, space, batch.n), TensorRole::Skip)?;
                self.norm_groups(unit, space, batch.n)?;
            }
        }
        let x = self.model.scratch(Scratch::Query);
        let out = Output { unit, matrix: TensorRole::StateOutput, bias: None, norm: None, x: &x };
        self.add_output(out, batch)
    }

    /// The products of the normed hidden vectors into `Scratch::Qkv`.
    fn recurrent_inputs(&mut self, unit: WeightUnit, r: &RecurrentSpec, batch: Batch) -> Result<(), EngineError> {
        let (inputs, y_stride) = (r.inputs(), r.projected());
        let gain = self.model.vector(unit, TensorRole::AttentionNorm)?;
        if batch.class == KernelClass::Decode && self.fused_inputs(unit, &inputs, &gain, y_stride, batch.n)? {
            return Ok(());
        }
        self.norm(&gain, 0, batch.n);
        let (x, y) = (self.model.scratch(Scratch::Normed), self.model.scratch(Scratch::Qkv));
        for (role, y_offset) in inputs {
            let place = self.model.place(unit, role)?;
            let to = Product { x: &x, y: &y, y_stride, y_offset, add: false, bias: None };
            self.product(place, batch, to);
        }
        Ok(())
    }

    /// The convolution: in place, or of a short convolution into `Scratch::Query`.
    fn convolve(&mut self, block: BlockIndex, r: &RecurrentSpec, n: u32) -> Result<(), EngineError> {
        let unit = WeightUnit::TokenMixer(block);
        let offset = match &r.rule {
            Rule::ShortConv { .. } | Rule::DeltaNet(_) => 0,
            // The gates come first.
            Rule::StateSpace(_) => r.mixed(),
        };
        let params = params::Conv { channels: r.channels(), stride: r.projected(), offset, slot: slot_values(r) };
        let kernel = conv(r);
        let mut bindings = vec![
            self.model.scratch(Scratch::Rows),
            self.model.vector(unit, TensorRole::ConvTaps)?,
            self.model.memory.whole(Key::State(block)),
            self.model.scratch(Scratch::Qkv),
        ];
        match kernel {
            Kernel::Conv { kind: ConvKind::Gated, .. } => bindings.push(self.model.scratch(Scratch::Query)),
            Kernel::Conv { kind: ConvKind::Biased, .. } => {
                bindings.push(self.model.vector(unit, TensorRole::ConvBias)?);
            }
            _ => {}
        }
        let bound: Vec<&Slice> = bindings.iter().collect();
        let x = Self::groups(kernel, params.channels);
        self.dispatch(kernel, &bound, &params, x, n);
        Ok(())
    }

    /// The rule, from `Scratch::Qkv` into `Scratch::Query`.
    fn scan(
        &mut self,
        block: BlockIndex,
        r: &RecurrentSpec,
        params: params::Scan,
        last: TensorRole,
    ) -> Result<(), EngineError> {
        let unit = WeightUnit::TokenMixer(block);
        let Some(kernel) = scan(r).map(|scan| self.model.profile.scan(scan)) else { return Ok(()) };
        let bindings = [
            self.model.scratch(Scratch::Rows),
            self.model.scratch(Scratch::Qkv),
            self.model.vector(unit, TensorRole::TimeBias)?,
            self.model.vector(unit, TensorRole::DecayRate)?,
            self.model.vector(unit, last)?,
            self.model.memory.whole(Key::State(block)),
            self.model.scratch(Scratch::Query),
        ];
        let n = params.n;
        let params = params::Scan { epsilon: self.model.spec.norm_epsilon, ..params };
        let (x, z) = match kernel.fallback() {
            Some(_) => (params.heads, n),
            None => (Self::groups(kernel, n * params.heads), 1),
        };
        self.dispatch(kernel, &bindings.each_ref(), &params, x, z);
        self.rec.cost(2 * 4 * u64::from(r.state_values()));
        Ok(())
    }

    /// RMSNorm of each group of a state space's values in `Scratch::Query`.
    fn norm_groups(&mut self, unit: WeightUnit, space: &StateSpaceSpec, n: u32) -> Result<(), EngineError> {
        let gain = self.model.vector(unit, TensorRole::StateNorm)?;
        let stride = space.heads * space.head_dim / 4;
        let (width, groups) = (stride / space.groups, space.groups);
        let params = params::NormPart { n, width, stride, offset: 0, groups, epsilon: self.model.spec.norm_epsilon };
        let kernel = self.model.profile.norm_part();
        let parts = n * groups;
        let x = if kernel.fallback().is_some() { parts } else { Self::groups(kernel, parts) };
        let values = self.model.scratch(Scratch::Query);
        self.dispatch(kernel, &[&values, &gain], &params, x, 1);
        Ok(())
    }
}

/// Rows are queries, keys and values (all convolved), gates, and the numbers of the heads.
fn delta_params(r: &RecurrentSpec, net: &DeltaNetSpec, n: u32) -> params::Scan {
    let keys = net.key_heads * net.head_dim;
    params::Scan {
        n,
        heads: net.heads,
        shared_heads: net.key_heads,
        grouped: u32::from(net.grouped),
        stride: r.projected(),
        reads: 0,
        writes: keys,
        values: 2 * keys,
        gate: r.channels(),
        beta: r.channels() + r.mixed(),
        slot: slot_values(r),
        tail: r.tail_values(),
        ..Default::default()
    }
}

/// Rows are gates, values and what they write and read (all convolved), and time steps.
fn space_params(r: &RecurrentSpec, space: &StateSpaceSpec, n: u32) -> params::Scan {
    let inner = r.mixed();
    params::Scan {
        n,
        heads: space.heads,
        shared_heads: space.groups,
        grouped: 1,
        stride: r.projected(),
        gate: 0,
        values: inner,
        writes: 2 * inner,
        reads: 2 * inner + space.groups * space.state,
        beta: inner + r.channels(),
        slot: slot_values(r),
        tail: r.tail_values(),
        ..Default::default()
    }
}
