//! The feed-forward half of a block with experts: routing, the chosen experts, and their weighted sum. Each part is the
//! same whether the experts are here or elsewhere, so that the bits are too.

use potluck_model::{FeedForwardSpec, TensorRole};
use potluck_plan::{BlockIndex, KernelClass, WeightUnit};
use potluck_shaders::{Kernel, params};

use super::{Batch, Pairing, Product};
use crate::runtime::core::Core;
use crate::runtime::error::EngineError;
use crate::runtime::layout::{ExpertMatrix, Key, Layout, Scratch};
use crate::runtime::memory::Slice;
use crate::runtime::recorder::Recorder;

impl Core {
    /// Experts used per token, experts of the block, and whether the weights are normalized.
    pub fn routing(&self, block: BlockIndex) -> Result<(u32, u32, bool), EngineError> {
        match self.spec.blocks.get(usize::from(block.0)).map(|block| &block.feed_forward) {
            Some(&FeedForwardSpec::Experts { count, used, normalize, .. }) => Ok((used, count, normalize)),
            Some(_) => Err(EngineError::NoExperts(block)),
            None => Err(EngineError::NoSuchBlock(block)),
        }
    }

    /// Norm and expert selection: the normed vectors, the chosen experts and their weights.
    pub fn route(
        &mut self,
        rec: &mut Recorder,
        layout: &Layout,
        block: BlockIndex,
        batch: Batch,
    ) -> Result<(), EngineError> {
        let unit = WeightUnit::Router(block);
        let (used, experts, normalize) = self.routing(block)?;
        let gain = self.vector(layout, unit, TensorRole::FeedForwardNorm)?;
        self.norm(rec, &gain, 0, batch.n);
        let place = self.place(layout, unit, TensorRole::Router)?;
        if batch.class == KernelClass::Prefill || !self.fused_scores(rec, place, &gain, batch.n) {
            let (normed, scores) = (self.scratch(Scratch::Normed), self.scratch(Scratch::Scores));
            let to = Product { x: &normed, y: &scores, y_stride: experts, y_offset: 0, add: false, bias: None };
            self.product(rec, place, batch, to);
        }
        self.choose(rec, params::Router { n: batch.n, experts, used, normalize: u32::from(normalize) });
        Ok(())
    }

    /// Selects the best experts from each token's scores.
    pub(super) fn choose(&mut self, rec: &mut Recorder, params: params::Router) {
        let scores = self.scratch(Scratch::Scores);
        let (chosen, gates) = (self.scratch(Scratch::Chosen), self.scratch(Scratch::Gates));
        let kernel = self.profile.router();
        let groups = if kernel.fallback().is_some() { params.n } else { Self::groups(kernel, params.n) };
        rec.dispatch(&mut self.tools(), kernel, &[&scores, &chosen, &gates], &params, groups, 1);
    }

    /// Outputs of the experts held here, from `Scratch::Normed` and `Scratch::Chosen` into `Scratch::Parts`: one vector
    /// per (token, expert) pair, unweighted.
    pub fn experts(
        &mut self,
        rec: &mut Recorder,
        layout: &Layout,
        block: BlockIndex,
        batch: Batch,
    ) -> Result<(), EngineError> {
        let (used, experts, _) = self.routing(block)?;
        let first = WeightUnit::Expert(block, potluck_plan::ExpertId(0));
        let places = layout.experts.get(&block).ok_or(EngineError::NotResident(first))?;
        let pairing = Pairing { places, used, experts };
        match batch.class {
            KernelClass::Decode => self.decode_experts(rec, &pairing, batch),
            KernelClass::Prefill => self.prefill_experts(rec, &pairing, batch),
        }
        Ok(())
    }

    /// Adds the weighted sum of the experts' outputs in `Scratch::Parts` to the hidden vectors.
    pub fn combine(&mut self, rec: &mut Recorder, block: BlockIndex, n: u32) -> Result<(), EngineError> {
        let (used, experts, _) = self.routing(block)?;
        let (chosen, gates) = (self.scratch(Scratch::Chosen), self.scratch(Scratch::Gates));
        let (parts, hidden) = (self.scratch(Scratch::Parts), self.scratch(Scratch::Hidden));
        let width = self.spec.hidden / 4;
        let params = params::Combine { n, width, experts, used };
        let kernel = Kernel::Combine;
        let groups = Self::groups(kernel, n * width);
        rec.dispatch(&mut self.tools(), kernel, &[&chosen, &gates, &parts, &hidden], &params, groups, 1);
        Ok(())
    }

    pub(super) fn slot_table(&self, pairing: &Pairing<'_>) -> Slice {
        let bytes = u64::from(pairing.experts) * 4;
        self.memory.slice(Key::Scratch(Scratch::Tables), pairing.places.table, bytes)
    }

    /// One matrix of the chosen experts, with a kernel that takes `z` pairs or tiles described by `first` and `second`.
    pub(super) fn expert_product(
        &mut self,
        rec: &mut Recorder,
        pairing: &Pairing<'_>,
        batch: Batch,
        (kernel, matrix, by_pair): (Kernel, &ExpertMatrix, bool),
        (x, y): (&Slice, &Slice),
        (first, second, z): (&Slice, &Slice, u32),
    ) {
        let shape = matrix.shape;
        for &(slot_first, slot_count, key) in &matrix.chunks {
            let params = params::MatVec {
                rows: shape.rows,
                row_bytes: shape.row_bytes,
                cols: shape.cols,
                chunks: shape.chunks(),
                n: batch.n * pairing.used,
                x_stride: shape.cols / 4,
                y_stride: shape.rows,
                y_offset: 0,
                add: 0,
                experts: pairing.experts,
                used: pairing.used,
                by_pair: u32::from(by_pair),
                slot_first,
                slot_count,
                expert_bytes: matrix.stride as u32,
            };
            let mut weights = self.memory.whole(key);
            weights.offset += matrix.inside;
            weights.size -= matrix.inside;
            let groups = shape.rows.div_ceil(kernel.matrix_rows());
            rec.dispatch(&mut self.tools(), kernel, &[&weights, x, y, first, second], &params, groups, z);
            rec.cost(shape.bytes() * u64::from(z));
        }
    }
}
