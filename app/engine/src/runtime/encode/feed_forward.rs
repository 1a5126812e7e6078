//! The second half of a block: the feed-forward network.

use potluck_model::{Activation, FeedForwardSpec, TensorRole};
use potluck_plan::{BlockIndex, KernelClass, WeightUnit};
use potluck_shaders::params;

use super::{Batch, Encoder, Output, Product, activation};
use crate::runtime::error::EngineError;
use crate::runtime::layout::Scratch;
use crate::runtime::memory::Slice;

impl Encoder<'_> {
    /// A dense feed-forward network with its norms, added to the hidden vectors.
    pub fn dense(&mut self, block: BlockIndex, batch: Batch) -> Result<(), EngineError> {
        let unit = WeightUnit::Dense(block);
        let FeedForwardSpec::Dense(dense) = self.model.spec.blocks[usize::from(block.0)].feed_forward.clone() else {
            return Err(EngineError::NoSuchBlock(block));
        };
        let gain = if dense.norms.before { Some(self.model.vector(unit, TensorRole::FeedForwardNorm)?) } else { None };
        match &gain {
            Some(gain) => self.normed_gate_and_up(unit, dense.activation, gain, batch)?,
            None => {
                let hidden = self.model.scratch(Scratch::Hidden);
                self.gate_and_up(unit, dense.activation, &hidden, batch)?;
            }
        }
        let up = self.model.scratch(Scratch::Up);
        let norm = dense.norms.after.then_some(TensorRole::FeedForwardPostNorm);
        let out = Output { unit, matrix: TensorRole::Down, bias: None, norm, x: &up };
        self.add_output(out, batch)?;
        self.add_block_input(block, batch)?;
        self.end_block(unit, batch.n)
    }

    /// `activation(gate) · up` of the normalized hidden vectors into `Scratch::Up`.
    pub(super) fn normed_gate_and_up(
        &mut self,
        unit: WeightUnit,
        activation: Activation,
        gain: &Slice,
        batch: Batch,
    ) -> Result<(), EngineError> {
        let fuses = batch.class == KernelClass::Decode;
        if fuses && self.fused_gate(unit, activation, gain, batch.n)? {
            return Ok(());
        }
        self.norm(gain, 0, batch.n);
        let normed = self.model.scratch(Scratch::Normed);
        self.gate_and_up(unit, activation, &normed, batch)
    }

    /// `activation(gate) · up` of some vectors into `Scratch::Up`, in separate steps.
    pub(super) fn gate_and_up(
        &mut self,
        unit: WeightUnit,
        activation: Activation,
        x: &Slice,
        batch: Batch,
    ) -> Result<(), EngineError> {
        let (gate, up) = (self.model.scratch(Scratch::Gate), self.model.scratch(Scratch::Up));
        let mut inner = 0;
        for (role, y) in [(TensorRole::Gate, &gate), (TensorRole::Up, &up)] {
            let place = self.model.place(unit, role)?;
            inner = place.shape.rows;
            let to = Product { x, y, y_stride: inner, y_offset: 0, add: false, bias: None };
            self.product(place, batch, to);
        }
        self.activate(activation, batch.n * inner / 4);
        Ok(())
    }

    /// The activation of `Scratch::Gate`, times `Scratch::Up`, in place.
    pub(super) fn activate(&mut self, how: Activation, quads: u32) {
        let kernel = activation(how);
        let (gate, up) = (self.model.scratch(Scratch::Gate), self.model.scratch(Scratch::Up));
        let groups = Self::groups(kernel, quads);
        self.dispatch(kernel, &[&gate, &up], &params::Glu { quads }, groups, 1);
    }
}
