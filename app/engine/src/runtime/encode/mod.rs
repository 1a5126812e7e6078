//! The kernels of each half of a block, in order. `decode` and `prefill` contain what differs by kernel class.

use potluck_model::{AttentionSpec, RopePairs, TensorRole};
use potluck_plan::{BlockIndex, KernelClass, WeightUnit};
use potluck_shaders::{Kernel, Pairs, SEGMENT, params};

use crate::runtime::core::Core;
use crate::runtime::error::EngineError;
use crate::runtime::layout::{ALIGNMENT, ExpertPlaces, Key, Layout, Place, Scratch};
use crate::runtime::memory::Slice;
use crate::runtime::recorder::Recorder;

mod decode;
mod experts;
mod fused;
mod prefill;

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
}

impl Core {
    /// Number of workgroups for `threads` threads.
    fn groups(kernel: Kernel, threads: u32) -> u32 {
        threads.div_ceil(kernel.threads())
    }

    /// RMSNorm of `n` batch rows from `first` into `Scratch::Normed`.
    fn norm(&mut self, rec: &mut Recorder, gain: &Slice, first: u32, n: u32) {
        let params = params::Norm { n, first, width: self.spec.hidden / 4, epsilon: self.spec.norm_epsilon };
        let kernel = self.profile.norm();
        let groups = if kernel.fallback().is_some() { n } else { Self::groups(kernel, n) };
        let (x, y) = (self.scratch(Scratch::Hidden), self.scratch(Scratch::Normed));
        rec.dispatch(&mut self.tools(), kernel, &[&x, gain, &y], &params, groups, 1);
    }

    /// Matrix times the batch.
    fn product(&mut self, rec: &mut Recorder, place: &Place, batch: Batch, to: Product<'_>) {
        match batch.class {
            KernelClass::Decode => self.decode_product(rec, place, batch, to),
            KernelClass::Prefill => self.prefill_product(rec, place, batch, to),
        }
    }

    /// Matrix times `n` vectors, segment by segment, with a kernel that takes `vectors` at a time.
    fn segments_product(
        &mut self,
        rec: &mut Recorder,
        (kernel, vectors): (Kernel, u32),
        place: &Place,
        n: u32,
        to: Product<'_>,
    ) {
        let shape = place.shape;
        for segment in &place.segments {
            let params = params::MatVec {
                rows: segment.rows,
                row_bytes: shape.row_bytes,
                cols: shape.cols,
                chunks: shape.chunks(),
                n,
                x_stride: shape.cols / 4,
                y_stride: to.y_stride,
                y_offset: to.y_offset + segment.first_row,
                add: u32::from(to.add),
                ..Default::default()
            };
            let weights = self.memory.slice(segment.key, segment.offset, segment.bytes);
            let bias = to.bias.as_ref().map(|bias| Slice {
                slab: bias.slab.clone(),
                offset: bias.offset + u64::from(segment.first_row) * 4,
                size: bias.size - u64::from(segment.first_row) * 4,
            });
            let mut bindings = vec![&weights, to.x, to.y];
            bindings.extend(&bias);
            let x = segment.rows.div_ceil(kernel.matrix_rows());
            let z = n.div_ceil(vectors);
            rec.dispatch(&mut self.tools(), kernel, &bindings, &params, x, z);
            rec.cost(segment.bytes * u64::from(z));
        }
    }

    /// The slot of a sampled token.
    pub fn sampled_token(&self, slot: usize) -> Slice {
        self.memory.slice(Key::Scratch(Scratch::SampledTokens), slot as u64 * ALIGNMENT, 4)
    }

    /// Embedding lookup of `n` tokens.
    pub fn embed(&mut self, rec: &mut Recorder, layout: &Layout, tokens: &Slice, n: u32) -> Result<(), EngineError> {
        let place = self.place(layout, WeightUnit::Embedding, TensorRole::TokenEmbedding)?;
        let y = self.scratch(Scratch::Hidden);
        let kernel = Kernel::Embed(place.shape.format);
        for segment in &place.segments {
            let params = params::Embed {
                n,
                first: segment.first_row,
                rows: segment.rows,
                row_bytes: place.shape.row_bytes,
                cols: place.shape.cols,
                chunks: place.shape.chunks(),
            };
            let weights = self.memory.slice(segment.key, segment.offset, segment.bytes);
            let x = Self::groups(kernel, n * params.chunks);
            rec.dispatch(&mut self.tools(), kernel, &[&weights, tokens, &y], &params, x, 1);
        }
        Ok(())
    }

    /// Norm, attention and output projection, added to the hidden vectors.
    pub fn token_mixer(
        &mut self,
        rec: &mut Recorder,
        layout: &Layout,
        block: BlockIndex,
        batch: Batch,
    ) -> Result<(), EngineError> {
        let unit = WeightUnit::TokenMixer(block);
        let a = self.spec.attention(usize::from(block.0)).clone();
        let width = (a.heads + 2 * a.kv_heads) * a.head_dim;
        let gain = self.vector(layout, unit, TensorRole::AttentionNorm)?;
        let qkv = self.scratch(Scratch::Qkv);
        let parts = [
            (TensorRole::Query, TensorRole::QueryBias, 0),
            (TensorRole::Key, TensorRole::KeyBias, a.heads * a.head_dim),
            (TensorRole::Value, TensorRole::ValueBias, (a.heads + a.kv_heads) * a.head_dim),
        ];
        let fused = batch.class == KernelClass::Decode
            && self.fused_projection(rec, layout, unit, &parts, &gain, (&a, batch.n))?;
        if !fused {
            self.norm(rec, &gain, 0, batch.n);
            let normed = self.scratch(Scratch::Normed);
            for (role, bias, y_offset) in parts {
                let place = self.place(layout, unit, role)?;
                let bias = if a.qkv_bias { Some(self.vector(layout, unit, bias)?) } else { None };
                let to = Product { x: &normed, y: &qkv, y_stride: width, y_offset, add: false, bias };
                self.product(rec, place, batch, to);
            }
        }

        let kv_type = self.settings.kv_cache;
        let keys = self.memory.whole(Key::Keys(block));
        let values = self.memory.whole(Key::Values(block));
        let rows = self.scratch(Scratch::Rows);
        let query = self.scratch(Scratch::Query);
        let rope_table = self.memory.slice(
            Key::Scratch(Scratch::Tables),
            layout.rope_table[&block],
            (u64::from(a.rope.dims) * 2).max(4),
        );
        let mut bindings = vec![rows.clone(), qkv, rope_table, query.clone(), keys.clone(), values.clone()];
        if a.qk_norm {
            bindings.push(self.vector(layout, unit, TensorRole::QueryNorm)?);
            bindings.push(self.vector(layout, unit, TensorRole::KeyNorm)?);
        }
        if a.rope.factors {
            bindings.push(self.vector(layout, unit, TensorRole::RopeFactors)?);
        }
        let pairs = match a.rope.pairs {
            RopePairs::Adjacent => Pairs::Adjacent,
            RopePairs::Halves => Pairs::Halves,
        };
        let kernel = Kernel::Rope { kv_type, pairs, qk_norm: a.qk_norm, factors: a.rope.factors };
        let params = params::Rope {
            n: batch.n,
            heads: a.heads,
            kv_heads: a.kv_heads,
            head_dim: a.head_dim,
            dims: a.rope.dims,
            epsilon: self.spec.norm_epsilon,
        };
        let threads = batch.n * (a.heads + 2 * a.kv_heads) * Kernel::rope_threads(kv_type, a.head_dim);
        let bound: Vec<&Slice> = bindings.iter().collect();
        rec.dispatch(&mut self.tools(), kernel, &bound, &params, Self::groups(kernel, threads), 1);

        match batch.class {
            KernelClass::Decode => self.decode_attention(rec, block, batch),
            KernelClass::Prefill => self.prefill_attention(rec, block, batch),
        }
        let attended = self.scratch(Scratch::Attended);
        let hidden = self.scratch(Scratch::Hidden);
        let place = self.place(layout, unit, TensorRole::AttentionOutput)?;
        let to = Product { x: &attended, y: &hidden, y_stride: self.spec.hidden, y_offset: 0, add: true, bias: None };
        self.product(rec, place, batch, to);
        Ok(())
    }

    /// Bytes of one head's keys or values at one position.
    fn head_bytes(&self, a: &AttentionSpec) -> u64 {
        4 * u64::from(self.settings.kv_cache.head_words(a.head_dim))
    }

    /// Attends with each query of the batch separately over the pages of its conversation.
    fn rowwise_attention(&mut self, rec: &mut Recorder, block: BlockIndex, batch: Batch) {
        let a = self.spec.attention(usize::from(block.0)).clone();
        let kv_type = self.settings.kv_cache;
        let keys = self.memory.whole(Key::Keys(block));
        let values = self.memory.whole(Key::Values(block));
        let (rows, query) = (self.scratch(Scratch::Rows), self.scratch(Scratch::Query));
        let kernel = self.profile.attention(kv_type, (a.head_dim / 4) as u16);
        let params = params::Attention {
            n: batch.n,
            heads: a.heads,
            kv_heads: a.kv_heads,
            scale: 1.0 / (a.head_dim as f32).sqrt(),
        };
        let (pages, attended) = (self.scratch(Scratch::KvPages), self.scratch(Scratch::Attended));
        let (x, z) =
            if kernel.fallback().is_some() { (a.heads, batch.n) } else { (Self::groups(kernel, batch.n * a.heads), 1) };
        let bindings = [&rows, &pages, &query, &keys, &values, &attended];
        rec.dispatch(&mut self.tools(), kernel, &bindings, &params, x, z);
        rec.cost_of_reach(2 * u64::from(batch.n * a.heads) * self.head_bytes(&a));
    }

    /// Norm and dense feed-forward network, added to the hidden vectors.
    pub fn dense(
        &mut self,
        rec: &mut Recorder,
        layout: &Layout,
        block: BlockIndex,
        batch: Batch,
    ) -> Result<(), EngineError> {
        let unit = WeightUnit::Dense(block);
        let gain = self.vector(layout, unit, TensorRole::FeedForwardNorm)?;
        let (gate, up) = (self.scratch(Scratch::Gate), self.scratch(Scratch::Up));
        let fused = batch.class == KernelClass::Decode && self.fused_gate(rec, layout, unit, &gain, batch.n)?;
        if !fused {
            self.norm(rec, &gain, 0, batch.n);
            let normed = self.scratch(Scratch::Normed);
            let mut inner = 0;
            for (role, y) in [(TensorRole::Gate, &gate), (TensorRole::Up, &up)] {
                let place = self.place(layout, unit, role)?;
                inner = place.shape.rows;
                let to = Product { x: &normed, y, y_stride: inner, y_offset: 0, add: false, bias: None };
                self.product(rec, place, batch, to);
            }
            self.swiglu(rec, batch.n * inner / 4);
        }
        let hidden = self.scratch(Scratch::Hidden);
        let place = self.place(layout, unit, TensorRole::Down)?;
        let to = Product { x: &up, y: &hidden, y_stride: self.spec.hidden, y_offset: 0, add: true, bias: None };
        self.product(rec, place, batch, to);
        Ok(())
    }

    fn swiglu(&mut self, rec: &mut Recorder, quads: u32) {
        let kernel = Kernel::SwiGlu;
        let (gate, up) = (self.scratch(Scratch::Gate), self.scratch(Scratch::Up));
        let groups = Self::groups(kernel, quads);
        rec.dispatch(&mut self.tools(), kernel, &[&gate, &up], &params::SwiGlu { quads }, groups, 1);
    }

    /// Final norm and logits of `n` batch rows from `first` into rows `0..n` of `Scratch::Logits`.
    pub fn logits(&mut self, rec: &mut Recorder, layout: &Layout, first: u32, n: u32) -> Result<(), EngineError> {
        let unit = WeightUnit::LmHead;
        let gain = self.vector(layout, unit, TensorRole::OutputNorm)?;
        let role = if self.spec.tied_lm_head { TensorRole::TokenEmbedding } else { TensorRole::Output };
        let place = self.place(layout, unit, role)?;
        if self.fused_logits(rec, place, &gain, (first, n)) {
            return Ok(());
        }
        self.norm(rec, &gain, first, n);
        let (normed, logits) = (self.scratch(Scratch::Normed), self.scratch(Scratch::Logits));
        let to =
            Product { x: &normed, y: &logits, y_stride: self.spec.vocabulary, y_offset: 0, add: false, bias: None };
        self.product(rec, place, Batch { n, class: KernelClass::Decode }, to);
        Ok(())
    }

    /// Best `count` candidates of the `n` rows in `Scratch::Logits` into rows `first..first + n` of
    /// `Scratch::Candidates`. The last row's best token also goes into `slot`.
    pub fn select_candidates(&mut self, rec: &mut Recorder, (first, n): (u32, u32), count: u32, slot: usize) {
        let vocabulary = self.spec.vocabulary;
        let segments = vocabulary.div_ceil(SEGMENT);
        let (logits, best) = (self.scratch(Scratch::Logits), self.scratch(Scratch::Best));
        let kernel = Kernel::Segments;
        let params = params::Segments { n, vocabulary, segments };
        let groups = Self::groups(kernel, n * segments);
        rec.dispatch(&mut self.tools(), kernel, &[&logits, &best], &params, groups, 1);
        let kernel = self.profile.top();
        let params = params::Top { n, first, vocabulary, segments, count };
        let groups = if kernel.fallback().is_some() { n } else { Self::groups(kernel, n) };
        let candidates = self.scratch(Scratch::Candidates);
        let next = self.sampled_token(slot);
        rec.dispatch(&mut self.tools(), kernel, &[&logits, &best, &candidates, &next], &params, groups, 1);
    }
}
