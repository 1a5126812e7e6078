//! The kernels of each half of a block, in order. `decode` and `prefill` contain what differs by kernel class.

use potluck_model::{Activation, AttentionSpec, RopePairs, TensorRole};
use potluck_plan::{KernelClass, WeightUnit};
use potluck_shaders::{Addition, Extras, Glu, Kernel, Pairs, params};

use crate::runtime::error::EngineError;
use crate::runtime::layout::{ExpertPlaces, Scratch};
use crate::runtime::memory::Slice;

mod attention;
mod block_inputs;
mod decode;
mod encoder;
mod ends;
mod experts;
mod feed_forward;
mod forward;
pub(crate) mod fused;
pub(crate) mod fused_experts;
mod latent;
mod prefill;
mod products;
pub(crate) mod recurrent;

pub use encoder::Encoder;

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

/// Vectors that are added to others.
struct Addend<'a> {
    how: Addition,
    /// The gain of a norm, or scores.
    operand: Option<&'a Slice>,
    x: &'a Slice,
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

impl Encoder<'_> {
    /// RMSNorm of `n` batch rows from `first` into `Scratch::Normed`.
    fn norm(&mut self, gain: &Slice, first: u32, n: u32) {
        self.norm_times(gain, 1.0, first, n);
    }

    /// The same, times a factor.
    fn norm_times(&mut self, gain: &Slice, factor: f32, first: u32, n: u32) {
        let params =
            params::Norm { n, first, width: self.model.spec.hidden / 4, epsilon: self.model.spec.norm_epsilon, factor };
        let kernel = self.model.profile.norm();
        let groups = if kernel.fallback().is_some() { n } else { Self::groups(kernel, n) };
        let (x, y) = (self.model.scratch(Scratch::Hidden), self.model.scratch(Scratch::Normed));
        self.dispatch(kernel, &[&x, gain, &y], &params, groups, 1);
    }

    /// The last product of a half of a block, added to the hidden vectors: at once if nothing comes between.
    fn add_output(&mut self, out: Output<'_>, batch: Batch) -> Result<(), EngineError> {
        let place = self.model.place(out.unit, out.matrix)?;
        let bias = out.bias.map(|bias| self.model.vector(out.unit, bias)).transpose()?;
        let width = self.model.spec.hidden;
        let direct = out.norm.is_none() && self.model.spec.scales.residual == 1.0;
        let y = self.model.scratch(if direct { Scratch::Hidden } else { Scratch::Normed });
        let to = Product { x: out.x, y: &y, y_stride: width, y_offset: 0, add: direct, bias };
        self.product(place, batch, to);
        if direct {
            return Ok(());
        }
        match out.norm {
            Some(norm) => {
                let gain = self.model.vector(out.unit, norm)?;
                self.residual(Addend { how: Addition::Normed, operand: Some(&gain), x: &y }, batch.n);
            }
            None => self.residual(Addend { how: Addition::Scaled, operand: None, x: &y }, batch.n),
        }
        Ok(())
    }

    /// Adds `n` vectors to the hidden ones.
    fn residual(&mut self, addend: Addend<'_>, n: u32) {
        let (hidden, scale) = (self.model.scratch(Scratch::Hidden), self.model.spec.scales.residual);
        self.add_to(addend, &hidden, scale, n);
    }

    /// Adds `n` vectors, times a factor, to others.
    fn add_to(&mut self, addend: Addend<'_>, y: &Slice, scale: f32, n: u32) {
        let params =
            params::Residual { n, width: self.model.spec.hidden / 4, scale, epsilon: self.model.spec.norm_epsilon };
        let kernel = self.model.profile.residual(addend.how);
        let groups = if kernel.fallback().is_some() { n } else { Self::groups(kernel, n) };
        let mut bindings = vec![addend.x, y];
        bindings.extend(addend.operand);
        self.dispatch(kernel, &bindings, &params, groups, 1);
    }

    /// The learned factor at the end of a block, of a unit that has one.
    fn end_block(&mut self, unit: WeightUnit, n: u32) -> Result<(), EngineError> {
        if self.model.spec.scales.of_blocks {
            let factor = self.model.vector(unit, TensorRole::BlockScale)?;
            let hidden = self.model.scratch(Scratch::Hidden);
            let count = n * self.model.spec.hidden;
            let params = params::ScaleBy { count, factors: 1, row: count };
            let kernel = Kernel::ScaleBy { expert: false };
            let groups = Self::groups(kernel, params.count);
            self.dispatch(kernel, &[&factor, &hidden], &params, groups, 1);
        }
        Ok(())
    }
}
