//! Per-layer embeddings: each block adds a vector of the token itself, gated by the hidden vector (Gemma 3n, Gemma 4).

use std::f32::consts::FRAC_1_SQRT_2;

use potluck_model::TensorRole;
use potluck_plan::{BlockIndex, WeightUnit};
use potluck_shaders::{Addition, Kernel, params};

use super::{Batch, Encoder, Output, Product};
use crate::runtime::error::EngineError;
use crate::runtime::layout::Scratch;
use crate::runtime::memory::Slice;

impl Encoder<'_> {
    /// The inputs of all blocks, from a batch's tokens and their hidden vectors; nothing if blocks have none. They are
    /// `(√width · table[token] + norm(matrix · hidden / √hidden)) / √2`.
    pub(super) fn block_inputs(&mut self, tokens: &Slice, batch: Batch) -> Result<(), EngineError> {
        let Some(width) = self.model.spec.block_inputs else { return Ok(()) };
        let scale = (width as f32).sqrt() * FRAC_1_SQRT_2;
        self.look_up(TensorRole::BlockEmbedding, tokens, batch.n, Scratch::BlockInputs, scale)?;
        let unit = WeightUnit::Embedding;
        let place = self.model.place(unit, TensorRole::BlockProjection)?;
        let [hidden, added, inputs] =
            [Scratch::Hidden, Scratch::BlockProjected, Scratch::BlockInputs].map(|name| self.model.scratch(name));
        let y_stride = place.shape.rows;
        let to = Product { x: &hidden, y: &added, y_stride, y_offset: 0, add: false, bias: None };
        self.product(place, batch, to);
        let gain = self.model.vector(unit, TensorRole::BlockProjectionNorm)?;
        let n = batch.n * self.model.spec.blocks.len() as u32;
        // The norm undoes the division by √hidden, but for its epsilon.
        let epsilon = self.model.spec.norm_epsilon * self.model.spec.hidden as f32;
        let params = params::Residual { n, width: width / 4, scale: FRAC_1_SQRT_2, epsilon };
        let kernel = self.model.profile.residual(Addition::Normed);
        let groups = if kernel.fallback().is_some() { n } else { Self::groups(kernel, n) };
        self.dispatch(kernel, &[&added, &inputs, &gain], &params, groups, 1);
        Ok(())
    }

    /// A block's input, gated by the hidden vectors and added to them; nothing if blocks have none.
    pub(super) fn add_block_input(&mut self, block: BlockIndex, batch: Batch) -> Result<(), EngineError> {
        let Some(width) = self.model.spec.block_inputs else { return Ok(()) };
        let unit = WeightUnit::Dense(block);
        let place = self.model.place(unit, TensorRole::InputGate)?;
        let [hidden, inputs, gate] =
            [Scratch::Hidden, Scratch::BlockInputs, Scratch::Gate].map(|name| self.model.scratch(name));
        let to = Product { x: &hidden, y: &gate, y_stride: width, y_offset: 0, add: false, bias: None };
        self.product(place, batch, to);
        let params = params::GateInput {
            quads: batch.n * width / 4,
            width: width / 4,
            stride: self.model.spec.all_block_inputs() / 4,
            offset: u32::from(block.0) * width / 4,
        };
        let groups = Self::groups(Kernel::GateInput, params.quads);
        self.dispatch(Kernel::GateInput, &[&inputs, &gate], &params, groups, 1);
        let norm = Some(TensorRole::InputPostNorm);
        let out = Output { unit, matrix: TensorRole::InputProjection, bias: None, norm, x: &gate };
        self.add_output(out, batch)
    }
}
