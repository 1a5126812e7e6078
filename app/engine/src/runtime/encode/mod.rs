//! The kernels of each half of a block, in order. `decode` and `prefill` contain what differs by kernel class.

use potluck_model::{Activation, AttentionSpec, RopeFactors, RopePairs, TensorRole};
use potluck_plan::{KernelClass, WeightUnit};
use potluck_shaders::{Addition, Extras, Glu, Kernel, Pairs, params};

use crate::runtime::core::Core;
use crate::runtime::error::EngineError;
use crate::runtime::layout::{ExpertPlaces, Layout, Scratch};
use crate::runtime::memory::Slice;
use crate::runtime::recorder::Recorder;

mod attention;
mod block_inputs;
mod decode;
mod ends;
mod experts;
mod feed_forward;
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
}
