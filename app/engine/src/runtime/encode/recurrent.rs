//! Recurrences: short convolutions, gated delta nets and state spaces. Their kernels take a conversation's rows one
//! after another, so decode and prefill give the same bits.

use potluck_model::{DeltaNetSpec, ModelSpec, RecurrentSpec, Rule, StateSpaceSpec, TensorRole};
use potluck_plan::{BlockIndex, KernelClass, WeightUnit};
use potluck_shaders::{ConvKind, Kernel, ScanRule, params};

use super::{Batch, Output, Product};
use crate::runtime::core::Core;
use crate::runtime::error::EngineError;
use crate::runtime::layout::{Key, Layout, Scratch};
use crate::runtime::memory::Slice;
use crate::runtime::recorder::Recorder;

/// The convolution of a recurrence.
pub(crate) fn conv(r: &RecurrentSpec) -> Kernel {
    let kind = match (&r.rule, r.conv_bias) {
        (Rule::ShortConv { .. }, _) => ConvKind::Gated,
        (_, true) => ConvKind::Biased,
        (_, false) => ConvKind::Silu,
    };
    Kernel::Conv { kind, taps: r.taps as u8 }
}

/// The rule after the convolution: its kind, width of a head, and values of state for each of a head's.
pub(crate) fn scan(r: &RecurrentSpec) -> Option<(ScanRule, u16, u16)> {
    match &r.rule {
        Rule::ShortConv { .. } => None,
        Rule::DeltaNet(net) => Some((ScanRule::Delta, net.head_dim as u16, net.head_dim as u16)),
        Rule::StateSpace(space) => Some((ScanRule::Space, space.head_dim as u16, space.state as u16)),
    }
}

/// Values from one slot of state to the next.
fn slot_values(r: &RecurrentSpec) -> u32 {
    (ModelSpec::state_slot_bytes(r) / 4) as u32
}

impl Core {
    /// A recurrence with its norm and products, added to the hidden vectors.
    pub(super) fn recurrence(
        &mut self,
        rec: &mut Recorder,
        layout: &Layout,
        block: BlockIndex,
        r: &RecurrentSpec,
        batch: Batch,
    ) -> Result<(), EngineError> {
        let unit = WeightUnit::TokenMixer(block);
        self.recurrent_inputs(rec, layout, unit, r, batch)?;
        self.convolve(rec, layout, block, r, batch.n)?;
        match &r.rule {
            Rule::ShortConv { .. } => {}
            Rule::DeltaNet(net) => {
                self.scan(rec, layout, block, (r, delta_params(r, net, batch.n)), TensorRole::StateNorm)?;
            }
            Rule::StateSpace(space) => {
                self.scan(rec, layout, block, (r, space_params(r, space, batch.n)), TensorRole::Skip)?;
                self.norm_groups(rec, layout, unit, space, batch.n)?;
            }
        }
        let x = self.scratch(Scratch::Query);
        let out = Output { unit, matrix: TensorRole::StateOutput, bias: None, norm: None, x: &x };
        self.add_output(rec, layout, out, batch)
    }

    /// The products of the normed hidden vectors into `Scratch::Qkv`.
    fn recurrent_inputs(
        &mut self,
        rec: &mut Recorder,
        layout: &Layout,
        unit: WeightUnit,
        r: &RecurrentSpec,
        batch: Batch,
    ) -> Result<(), EngineError> {
        let (inputs, y_stride) = (r.inputs(), r.projected());
        let gain = self.vector(layout, unit, TensorRole::AttentionNorm)?;
        if batch.class == KernelClass::Decode
            && self.fused_inputs(rec, layout, unit, &inputs, &gain, (y_stride, batch.n))?
        {
            return Ok(());
        }
        self.norm(rec, &gain, 0, batch.n);
        let (x, y) = (self.scratch(Scratch::Normed), self.scratch(Scratch::Qkv));
        for (role, y_offset) in inputs {
            let place = self.place(layout, unit, role)?;
            let to = Product { x: &x, y: &y, y_stride, y_offset, add: false, bias: None };
            self.product(rec, place, batch, to);
        }
        Ok(())
    }

    /// The convolution: in place, or of a short convolution into `Scratch::Query`.
    fn convolve(
        &mut self,
        rec: &mut Recorder,
        layout: &Layout,
        block: BlockIndex,
        r: &RecurrentSpec,
        n: u32,
    ) -> Result<(), EngineError> {
        let unit = WeightUnit::TokenMixer(block);
        let offset = match &r.rule {
            Rule::ShortConv { .. } | Rule::DeltaNet(_) => 0,
            // The gates come first.
            Rule::StateSpace(_) => r.mixed(),
        };
        let params = params::Conv { channels: r.channels(), stride: r.projected(), offset, slot: slot_values(r) };
        let kernel = conv(r);
        let mut bindings = vec![
            self.scratch(Scratch::Rows),
            self.vector(layout, unit, TensorRole::ConvTaps)?,
            self.memory.whole(Key::State(block)),
            self.scratch(Scratch::Qkv),
        ];
        match kernel {
            Kernel::Conv { kind: ConvKind::Gated, .. } => bindings.push(self.scratch(Scratch::Query)),
            Kernel::Conv { kind: ConvKind::Biased, .. } => {
                bindings.push(self.vector(layout, unit, TensorRole::ConvBias)?);
            }
            _ => {}
        }
        let bound: Vec<&Slice> = bindings.iter().collect();
        let x = Self::groups(kernel, params.channels);
        rec.dispatch(&mut self.tools(), kernel, &bound, &params, x, n);
        Ok(())
    }

    /// The rule, from `Scratch::Qkv` into `Scratch::Query`.
    fn scan(
        &mut self,
        rec: &mut Recorder,
        layout: &Layout,
        block: BlockIndex,
        (r, params): (&RecurrentSpec, params::Scan),
        last: TensorRole,
    ) -> Result<(), EngineError> {
        let unit = WeightUnit::TokenMixer(block);
        let Some(kernel) = scan(r).map(|scan| self.profile.scan(scan)) else { return Ok(()) };
        let bindings = [
            self.scratch(Scratch::Rows),
            self.scratch(Scratch::Qkv),
            self.vector(layout, unit, TensorRole::TimeBias)?,
            self.vector(layout, unit, TensorRole::DecayRate)?,
            self.vector(layout, unit, last)?,
            self.memory.whole(Key::State(block)),
            self.scratch(Scratch::Query),
        ];
        let n = params.n;
        let params = params::Scan { epsilon: self.spec.norm_epsilon, ..params };
        let (x, z) = match kernel.fallback() {
            Some(_) => (params.heads, n),
            None => (Self::groups(kernel, n * params.heads), 1),
        };
        rec.dispatch(&mut self.tools(), kernel, &bindings.each_ref(), &params, x, z);
        rec.cost(2 * 4 * u64::from(r.state_values()));
        Ok(())
    }

    /// RMSNorm of each group of a state space's values in `Scratch::Query`.
    fn norm_groups(
        &mut self,
        rec: &mut Recorder,
        layout: &Layout,
        unit: WeightUnit,
        space: &StateSpaceSpec,
        n: u32,
    ) -> Result<(), EngineError> {
        let gain = self.vector(layout, unit, TensorRole::StateNorm)?;
        let stride = space.heads * space.head_dim / 4;
        let (width, groups) = (stride / space.groups, space.groups);
        let params = params::NormPart { n, width, stride, offset: 0, groups, epsilon: self.spec.norm_epsilon };
        let kernel = self.profile.norm_part();
        let parts = n * groups;
        let x = if kernel.fallback().is_some() { parts } else { Self::groups(kernel, parts) };
        let values = self.scratch(Scratch::Query);
        rec.dispatch(&mut self.tools(), kernel, &[&values, &gain], &params, x, 1);
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
