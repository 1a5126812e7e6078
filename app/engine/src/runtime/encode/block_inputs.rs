//! Per-layer embeddings: each block adds a vector of the token itself, gated by the hidden vector (Gemma 3n, Gemma 4).

use std::f32::consts::FRAC_1_SQRT_2;

use potluck_model::TensorRole;
use potluck_plan::{BlockIndex, WeightUnit};
use potluck_shaders::{Addition, Kernel, params};

use super::{Batch, Output, Product};
use crate::runtime::core::Core;
use crate::runtime::error::EngineError;
use crate::runtime::layout::{Layout, Scratch};
use crate::runtime::memory::Slice;
use crate::runtime::recorder::Recorder;

impl Core {
    /// The inputs of all blocks, from a batch's tokens and their hidden vectors; nothing if blocks have none. They are
    /// `(√width · table[token] + norm(matrix · hidden / √hidden)) / √2`.
    pub(super) fn block_inputs(
        &mut self,
        rec: &mut Recorder,
        layout: &Layout,
        tokens: &Slice,
        batch: Batch,
    ) -> Result<(), EngineError> {
        let Some(width) = self.spec.block_inputs else { return Ok(()) };
        let scale = (width as f32).sqrt() * FRAC_1_SQRT_2;
        let rows = (tokens, batch.n);
        self.look_up(rec, layout, TensorRole::BlockEmbedding, rows, (Scratch::BlockInputs, scale))?;
        let unit = WeightUnit::Embedding;
        let place = self.place(layout, unit, TensorRole::BlockProjection)?;
        let [hidden, added, inputs] =
            [Scratch::Hidden, Scratch::BlockProjected, Scratch::BlockInputs].map(|name| self.scratch(name));
        let y_stride = place.shape.rows;
        let to = Product { x: &hidden, y: &added, y_stride, y_offset: 0, add: false, bias: None };
        self.product(rec, place, batch, to);
        let gain = self.vector(layout, unit, TensorRole::BlockProjectionNorm)?;
        let n = batch.n * self.spec.blocks.len() as u32;
        // The norm undoes the division by √hidden, but for its epsilon.
        let epsilon = self.spec.norm_epsilon * self.spec.hidden as f32;
        let params = params::Residual { n, width: width / 4, scale: FRAC_1_SQRT_2, epsilon };
        let kernel = self.profile.residual(Addition::Normed);
        let groups = if kernel.fallback().is_some() { n } else { Self::groups(kernel, n) };
        rec.dispatch(&mut self.tools(), kernel, &[&added, &inputs, &gain], &params, groups, 1);
        Ok(())
    }

    /// A block's input, gated by the hidden vectors and added to them; nothing if blocks have none.
    pub(super) fn add_block_input(
        &mut self,
        rec: &mut Recorder,
        layout: &Layout,
        block: BlockIndex,
        batch: Batch,
    ) -> Result<(), EngineError> {
        let Some(width) = self.spec.block_inputs else { return Ok(()) };
        let unit = WeightUnit::Dense(block);
        let place = self.place(layout, unit, TensorRole::InputGate)?;
        let [hidden, inputs, gate] =
            [Scratch::Hidden, Scratch::BlockInputs, Scratch::Gate].map(|name| self.scratch(name));
        let to = Product { x: &hidden, y: &gate, y_stride: width, y_offset: 0, add: false, bias: None };
        self.product(rec, place, batch, to);
        let params = params::GateInput {
            quads: batch.n * width / 4,
            width: width / 4,
            stride: self.spec.all_block_inputs() / 4,
            offset: u32::from(block.0) * width / 4,
        };
        let groups = Self::groups(Kernel::GateInput, params.quads);
        rec.dispatch(&mut self.tools(), Kernel::GateInput, &[&inputs, &gate], &params, groups, 1);
        let norm = Some(TensorRole::InputPostNorm);
        let out = Output { unit, matrix: TensorRole::InputProjection, bias: None, norm, x: &gate };
        self.add_output(rec, layout, out, batch)
    }
}
