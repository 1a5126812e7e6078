//! Both ends of a model: embedding, LM head and sampling.

use potluck_model::TensorRole;
use potluck_plan::{KernelClass, LogitBias, WeightUnit, Work};
use potluck_shaders::{Kernel, SEGMENT, params};

use super::{Batch, Encoder, Product};
use crate::runtime::error::EngineError;
use crate::runtime::layout::Scratch;
use crate::runtime::memory::Slice;

impl Encoder<'_> {
    /// The hidden vectors of a batch's tokens, and what blocks get of them besides.
    pub fn embed(&mut self, tokens: &Slice, batch: Batch) -> Result<(), EngineError> {
        let scale = self.model.spec.scales.embedding;
        self.look_up(TensorRole::TokenEmbedding, tokens, batch.n, Scratch::Hidden, scale)?;
        self.block_inputs(tokens, batch)
    }

    /// The rows of `n` tokens in a table of the embedding, times a factor.
    pub(super) fn look_up(
        &mut self,
        table: TensorRole,
        tokens: &Slice,
        n: u32,
        to: Scratch,
        scale: f32,
    ) -> Result<(), EngineError> {
        let place = self.model.place(WeightUnit::Embedding, table)?;
        let y = self.model.scratch(to);
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
            let weights = self.model.memory.slice(segment.key, segment.offset, segment.bytes);
            let x = Self::groups(kernel, n * params.chunks);
            self.dispatch(kernel, &[&weights, tokens, &y], &params, x, 1);
        }
        Ok(())
    }

    /// Final norm and logits of `n` batch rows from `first` into rows `0..n` of `Scratch::Logits`.
    pub fn logits(&mut self, first: u32, n: u32) -> Result<(), EngineError> {
        let unit = WeightUnit::LmHead;
        let gain = self.model.vector(unit, TensorRole::OutputNorm)?;
        let role = if self.model.spec.tied_lm_head { TensorRole::TokenEmbedding } else { TensorRole::Output };
        let place = self.model.place(unit, role)?;
        if !self.fused_logits(place, &gain, (first, n)) {
            self.norm(&gain, first, n);
            let (normed, logits) = (self.model.scratch(Scratch::Normed), self.model.scratch(Scratch::Logits));
            let to = Product {
                x: &normed,
                y: &logits,
                y_stride: self.model.spec.vocabulary,
                y_offset: 0,
                add: false,
                bias: None,
            };
            self.product(place, Batch { n, class: KernelClass::Decode }, to);
        }
        if self.model.scales_logits() {
            let scales = self.model.spec.scales;
            let params = params::ScaleLogits {
                count: n * self.model.spec.vocabulary,
                scale: scales.logits,
                cap: scales.logit_cap,
            };
            let logits = self.model.scratch(Scratch::Logits);
            let groups = Self::groups(Kernel::ScaleLogits, params.count);
            self.dispatch(Kernel::ScaleLogits, &[&logits], &params, groups, 1);
        }
        Ok(())
    }

    /// Adds the biases of the rows `first..first + n` that pass the LM head to the `n` rows in `Scratch::Logits`.
    pub fn bias_logits(&mut self, first: u32, n: u32) {
        let (rows, most) = (Work::DECODE_TOKENS as u32, LogitBias::MAX_TOKENS as u32);
        let params = params::BiasLogits { n, first, vocabulary: self.model.spec.vocabulary, rows, most };
        let (biases, logits) = (self.model.scratch(Scratch::Biases), self.model.scratch(Scratch::Logits));
        let groups = Self::groups(Kernel::BiasLogits, n * most);
        self.dispatch(Kernel::BiasLogits, &[&biases, &logits], &params, groups, 1);
    }

    /// Bans what may not be chosen of the rows `first..first + n` that pass the LM head, in the `n` rows in `Scratch::Logits`.
    pub fn mask_logits(&mut self, first: u32, n: u32) {
        let vocabulary = self.model.spec.vocabulary;
        let (rows, words) = (Work::DECODE_TOKENS as u32, vocabulary.div_ceil(32));
        let params = params::MaskLogits { n, first, vocabulary, rows, words };
        let (masks, logits) = (self.model.scratch(Scratch::Masks), self.model.scratch(Scratch::Logits));
        let groups = Self::groups(Kernel::MaskLogits, n * vocabulary);
        self.dispatch(Kernel::MaskLogits, &[&masks, &logits], &params, groups, 1);
    }

    /// The log-sum-exp of the `n` rows in `Scratch::Logits` into `first..first + n` of `Scratch::LogSums`.
    pub fn log_sum_exp(&mut self, first: u32, n: u32) {
        let kernel = self.model.profile.log_sum_exp();
        let params = params::LogSumExp { n, first, vocabulary: self.model.spec.vocabulary };
        let groups = if kernel.fallback().is_some() { n } else { Self::groups(kernel, n) };
        let (logits, sums) = (self.model.scratch(Scratch::Logits), self.model.scratch(Scratch::LogSums));
        self.dispatch(kernel, &[&logits, &sums], &params, groups, 1);
    }

    /// Best `count` candidates of the `n` rows in `Scratch::Logits` into rows `first..first + n` of
    /// `Scratch::Candidates`. The last row's best token also goes into `slot`.
    pub fn select_candidates(&mut self, first: u32, n: u32, count: u32, slot: usize) {
        let vocabulary = self.model.spec.vocabulary;
        let segments = vocabulary.div_ceil(SEGMENT);
        let (logits, best) = (self.model.scratch(Scratch::Logits), self.model.scratch(Scratch::Best));
        let kernel = self.model.profile.segments();
        let params = params::Segments { n, vocabulary, segments };
        let lanes = if kernel.fallback().is_some() { Kernel::SEGMENT_LANES } else { 1 };
        let groups = Self::groups(kernel, n * segments * lanes);
        self.dispatch(kernel, &[&logits, &best], &params, groups, 1);
        let kernel = self.model.profile.top();
        let params = params::Top { n, first, vocabulary, segments, count };
        let groups = if kernel.fallback().is_some() { n } else { Self::groups(kernel, n) };
        let candidates = self.model.scratch(Scratch::Candidates);
        let next = self.model.sampled_token(slot);
        self.dispatch(kernel, &[&logits, &best, &candidates, &next], &params, groups, 1);
    }

    /// Samples the token after the only batch row from its candidates into `slot`, and behind the candidates.
    pub fn sample(&mut self, kernel: Kernel, count: u32, slot: usize) {
        let (candidates, rows) = (self.model.scratch(Scratch::Candidates), self.model.scratch(Scratch::Rows));
        let (state, token) = (self.model.sampler_state(slot), self.model.sampled_token(slot));
        let params = params::Sample { count };
        self.dispatch(kernel, &[&candidates, &rows, &state, &token], &params, 1, 1);
    }
}
