//! The second half of a block: the feed-forward network.

use potluck_model::{Activation, FeedForwardSpec, TensorRole};
use potluck_plan::{BlockIndex, KernelClass, WeightUnit};
use potluck_shaders::params;

use super::{Batch, Output, Product, activation};
use crate::runtime::core::Core;
use crate::runtime::error::EngineError;
use crate::runtime::layout::{Layout, Scratch};
use crate::runtime::memory::Slice;
use crate::runtime::recorder::Recorder;

impl Core {
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
    pub(super) fn normed_gate_and_up(
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
    pub(super) fn gate_and_up(
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
    pub(super) fn activate(&mut self, rec: &mut Recorder, how: Activation, quads: u32) {
        let kernel = activation(how);
        let (gate, up) = (self.scratch(Scratch::Gate), self.scratch(Scratch::Up));
        let groups = Self::groups(kernel, quads);
        rec.dispatch(&mut self.tools(), kernel, &[&gate, &up], &params::Glu { quads }, groups, 1);
    }
}
