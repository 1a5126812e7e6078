//! Both ends of a model: embedding, LM head and sampling.

use potluck_model::TensorRole;
use potluck_plan::{KernelClass, WeightUnit};
use potluck_shaders::{Kernel, SEGMENT, params};

use super::{Batch, Product};
use crate::runtime::core::Core;
use crate::runtime::error::EngineError;
use crate::runtime::layout::{ALIGNMENT, Key, Layout, Scratch};
use crate::runtime::memory::Slice;
use crate::runtime::recorder::Recorder;
use crate::runtime::sampled_tokens::SampledTokens;

impl Core {
    /// The slot of a sampled token.
    pub fn sampled_token(&self, slot: usize) -> Slice {
        self.memory.slice(Key::Scratch(Scratch::SampledTokens), slot as u64 * ALIGNMENT, 4)
    }

    /// The sampler's parameters and newest tokens of a slot.
    pub fn sampler_state(&self, slot: usize) -> Slice {
        let stride = SampledTokens::STRIDE;
        self.memory.slice(Key::Scratch(Scratch::Sampling), slot as u64 * stride, stride)
    }

    /// The hidden vectors of a batch's tokens, and what blocks get of them besides.
    pub fn embed(
        &mut self,
        rec: &mut Recorder,
        layout: &Layout,
        tokens: &Slice,
        batch: Batch,
    ) -> Result<(), EngineError> {
        let hidden = (Scratch::Hidden, self.spec.scales.embedding);
        self.look_up(rec, layout, TensorRole::TokenEmbedding, (tokens, batch.n), hidden)?;
        self.block_inputs(rec, layout, tokens, batch)
    }

    /// The rows of `n` tokens in a table of the embedding, times a factor.
    pub(super) fn look_up(
        &mut self,
        rec: &mut Recorder,
        layout: &Layout,
        table: TensorRole,
        (tokens, n): (&Slice, u32),
        (to, scale): (Scratch, f32),
    ) -> Result<(), EngineError> {
        let place = self.place(layout, WeightUnit::Embedding, table)?;
        let y = self.scratch(to);
        let kernel = Kernel::Embed(place.shape.format);
        for segment in &place.segments {
            let params = params::Embed {
                n,
                first: segment.first_row,
                rows: segment.rows,
                row_bytes: place.shape.row_bytes,
                cols: place.shape.cols,
                chunks: place.shape.chunks(),
                scale,
            };
            let weights = self.memory.slice(segment.key, segment.offset, segment.bytes);
            let x = Self::groups(kernel, n * params.chunks);
            rec.dispatch(&mut self.tools(), kernel, &[&weights, tokens, &y], &params, x, 1);
        }
        Ok(())
    }

    /// Final norm and logits of `n` batch rows from `first` into rows `0..n` of `Scratch::Logits`.
    pub fn logits(&mut self, rec: &mut Recorder, layout: &Layout, first: u32, n: u32) -> Result<(), EngineError> {
        let unit = WeightUnit::LmHead;
        let gain = self.vector(layout, unit, TensorRole::OutputNorm)?;
        let role = if self.spec.tied_lm_head { TensorRole::TokenEmbedding } else { TensorRole::Output };
        let place = self.place(layout, unit, role)?;
        if !self.fused_logits(rec, place, &gain, (first, n)) {
            self.norm(rec, &gain, first, n);
            let (normed, logits) = (self.scratch(Scratch::Normed), self.scratch(Scratch::Logits));
            let to =
                Product { x: &normed, y: &logits, y_stride: self.spec.vocabulary, y_offset: 0, add: false, bias: None };
            self.product(rec, place, Batch { n, class: KernelClass::Decode }, to);
        }
        if self.scales_logits() {
            let scales = self.spec.scales;
            let params =
                params::ScaleLogits { count: n * self.spec.vocabulary, scale: scales.logits, cap: scales.logit_cap };
            let logits = self.scratch(Scratch::Logits);
            let groups = Self::groups(Kernel::ScaleLogits, params.count);
            rec.dispatch(&mut self.tools(), Kernel::ScaleLogits, &[&logits], &params, groups, 1);
        }
        Ok(())
    }

    /// Best `count` candidates of the `n` rows in `Scratch::Logits` into rows `first..first + n` of
    /// `Scratch::Candidates`. The last row's best token also goes into `slot`.
    pub fn select_candidates(&mut self, rec: &mut Recorder, (first, n): (u32, u32), count: u32, slot: usize) {
        let vocabulary = self.spec.vocabulary;
        let segments = vocabulary.div_ceil(SEGMENT);
        let (logits, best) = (self.scratch(Scratch::Logits), self.scratch(Scratch::Best));
        let kernel = self.profile.segments();
        let params = params::Segments { n, vocabulary, segments };
        let lanes = if kernel.fallback().is_some() { Kernel::SEGMENT_LANES } else { 1 };
        let groups = Self::groups(kernel, n * segments * lanes);
        rec.dispatch(&mut self.tools(), kernel, &[&logits, &best], &params, groups, 1);
        let kernel = self.profile.top();
        let params = params::Top { n, first, vocabulary, segments, count };
        let groups = if kernel.fallback().is_some() { n } else { Self::groups(kernel, n) };
        let candidates = self.scratch(Scratch::Candidates);
        let next = self.sampled_token(slot);
        rec.dispatch(&mut self.tools(), kernel, &[&logits, &best, &candidates, &next], &params, groups, 1);
    }

    /// Samples the token after the only batch row from its candidates into `slot`, and behind the candidates.
    pub fn sample(&mut self, rec: &mut Recorder, kernel: Kernel, count: u32, slot: usize) {
        let (candidates, rows) = (self.scratch(Scratch::Candidates), self.scratch(Scratch::Rows));
        let (state, token) = (self.sampler_state(slot), self.sampled_token(slot));
        let params = params::Sample { count };
        rec.dispatch(&mut self.tools(), kernel, &[&candidates, &rows, &state, &token], &params, 1, 1);
    }
}
