//! Multi-head latent attention in its absorbed form: all heads attend to one compressed key per position, which is the
//! value too. Products of each head take (token, head) pairs as if heads were experts.

use potluck_model::{AttentionSpec, LatentSpec, TensorRole};
use potluck_plan::{BlockIndex, KernelClass, WeightUnit};
use potluck_shaders::{Kernel, Operand, params};

use super::attention::RowPart;
use super::{Batch, Encoder, Output, Product, pairs};
use crate::runtime::error::{EngineError, LayoutError};
use crate::runtime::layout::{Key, Scratch, align};
use crate::runtime::memory::Slice;

/// A product with a matrix of each head.
struct HeadProduct<'a> {
    role: TensorRole,
    /// Rows of a head's matrix, and rows from one head to the next.
    rows: (u32, u32),
    /// The second rows of each head: those after the first `rows.1 - rows.0`.
    last_rows: bool,
    x: &'a Slice,
    /// Values from one input vector to the next; heads of a token may share one.
    x_stride: u32,
    by_head: bool,
    y: &'a Slice,
    y_stride: u32,
    y_offset: u32,
}

impl Encoder<'_> {
    /// Latent attention with its norms and projections, added to the hidden vectors.
    pub(super) fn latent_mixer(
        &mut self,
        block: BlockIndex,
        a: &AttentionSpec,
        latent: LatentSpec,
        batch: Batch,
    ) -> Result<(), EngineError> {
        let unit = WeightUnit::TokenMixer(block);
        let gain = self.model.vector(unit, TensorRole::AttentionNorm)?;
        self.norm(&gain, 0, batch.n);
        self.latent_queries(unit, a, latent, batch)?;
        self.latent_keys(unit, a, latent, batch)?;
        self.latent_rope(block, a, batch.n);
        match batch.class {
            KernelClass::Decode => self.decode_attention(block, batch, None),
            KernelClass::Prefill => self.prefill_attention(block, batch, None),
        }
        let (attended, parts) = (self.model.scratch(Scratch::Attended), self.model.scratch(Scratch::HeadParts));
        let back = HeadProduct {
            role: TensorRole::ValueUp,
            rows: (latent.value, latent.value),
            last_rows: false,
            x: &attended,
            x_stride: a.head_dim,
            by_head: true,
            y: &parts,
            y_stride: latent.value,
            y_offset: 0,
        };
        self.head_product(unit, a, batch.n, back)?;
        let out = Output { unit, matrix: TensorRole::AttentionOutput, bias: None, norm: None, x: &parts };
        self.add_output(out, batch)
    }

    /// Each head's query in the space of the compressed keys, then its rotated part, into `Scratch::Qkv`.
    fn latent_queries(
        &mut self,
        unit: WeightUnit,
        a: &AttentionSpec,
        latent: LatentSpec,
        batch: Batch,
    ) -> Result<(), EngineError> {
        let (normed, qkv) = (self.model.scratch(Scratch::Normed), self.model.scratch(Scratch::Qkv));
        let (compressed, parts) = (self.model.scratch(Scratch::LatentQueries), self.model.scratch(Scratch::HeadParts));
        let (x, x_stride) = match latent.query_rank {
            None => (&normed, self.model.spec.hidden),
            Some(rank) => {
                let place = self.model.place(unit, TensorRole::QueryDown)?;
                let to = Product { x: &normed, y: &compressed, y_stride: rank, y_offset: 0, add: false, bias: None };
                self.product(place, batch, to);
                let gain = self.model.vector(unit, TensorRole::QueryDownNorm)?;
                self.norm_in_place(&compressed, &gain, RowPart { width: rank, stride: rank, offset: 0 }, batch.n);
                (&compressed, rank)
            }
        };
        let whole = latent.key + a.rope.dims;
        let query = HeadProduct {
            role: TensorRole::Query,
            rows: (latent.key, whole),
            last_rows: false,
            x,
            x_stride,
            by_head: false,
            y: &parts,
            y_stride: latent.key,
            y_offset: 0,
        };
        let rotated = HeadProduct {
            rows: (a.rope.dims, whole),
            last_rows: true,
            y: &qkv,
            y_stride: a.head_dim,
            y_offset: latent.rank,
            ..query
        };
        let up = HeadProduct {
            role: TensorRole::KeyUp,
            rows: (latent.rank, latent.rank),
            last_rows: false,
            x: &parts,
            x_stride: latent.key,
            by_head: true,
            y: &qkv,
            y_stride: a.head_dim,
            y_offset: 0,
        };
        for product in [query, rotated, up] {
            self.head_product(unit, a, batch.n, product)?;
        }
        Ok(())
    }

    /// The compressed keys, normalized, and their rotated part, into `Scratch::LatentKeys`.
    fn latent_keys(
        &mut self,
        unit: WeightUnit,
        a: &AttentionSpec,
        latent: LatentSpec,
        batch: Batch,
    ) -> Result<(), EngineError> {
        let (normed, keys) = (self.model.scratch(Scratch::Normed), self.model.scratch(Scratch::LatentKeys));
        for (role, y_offset) in [(TensorRole::Latent, 0), (TensorRole::LatentRotated, latent.rank)] {
            let place = self.model.place(unit, role)?;
            let to = Product { x: &normed, y: &keys, y_stride: a.head_dim, y_offset, add: false, bias: None };
            self.product(place, batch, to);
        }
        let gain = self.model.vector(unit, TensorRole::LatentNorm)?;
        self.norm_in_place(&keys, &gain, RowPart { width: latent.rank, stride: a.head_dim, offset: 0 }, batch.n);
        Ok(())
    }

    /// Rotates the last part of queries and keys, and stores the keys.
    fn latent_rope(&mut self, block: BlockIndex, a: &AttentionSpec, n: u32) {
        let kv_type = self.model.settings.kv_cache;
        let kernel = Kernel::Rope { kv_type, pairs: pairs(a), qk_norm: false, factors: false };
        let bytes = (u64::from(a.rope.dims) * 2).max(4);
        let table = self.model.memory.slice(Key::Scratch(Scratch::Tables), self.layout().rope_table[&block], bytes);
        let (rows, cache) = (self.model.scratch(Scratch::Rows), self.model.memory.whole(Key::Keys(block)));
        let [qkv, query, keys] =
            [Scratch::Qkv, Scratch::Query, Scratch::LatentKeys].map(|name| self.model.scratch(name));
        // No values are written: another buffer stands in for theirs.
        for (heads, kv_heads, from, unused) in [(a.heads, 0, &qkv, &keys), (0, 1, &keys, &qkv)] {
            let params = params::Rope {
                n,
                heads,
                kv_heads,
                value_heads: 0,
                head_dim: a.head_dim,
                start: a.rope_start(),
                dims: a.rope.dims,
                epsilon: self.model.spec.norm_epsilon,
                magnitude: a.rope.magnitude,
                ..Default::default()
            };
            let threads = n * (heads + kv_heads) * Kernel::rope_threads(kv_type, a.head_dim);
            let bindings = [&rows, from, &table, &query, &cache, unused];
            self.dispatch(kernel, &bindings, &params, Self::groups(kernel, threads), 1);
        }
    }

    /// A product with a matrix of each head for each (token, head) pair.
    fn head_product(
        &mut self,
        unit: WeightUnit,
        a: &AttentionSpec,
        n: u32,
        of: HeadProduct<'_>,
    ) -> Result<(), EngineError> {
        let place = self.model.place(unit, of.role)?;
        let [segment] = place.segments[..] else {
            let text = format!("{:?} of {unit:?} does not fit one binding.", of.role);
            return Err(LayoutError::UnsupportedShape(text).into());
        };
        let shape = place.shape;
        let (rows, stride) = of.rows;
        let table = u64::from(a.heads) * 4;
        let heads = Key::Scratch(Scratch::Heads);
        let slots = self.model.memory.slice(heads, if of.last_rows { align(table) } else { 0 }, table);
        // All of it, whatever the batch: bind groups are kept by the first byte of what they bind.
        let chosen = self.model.memory.slice(heads, 2 * align(table), u64::from(self.layout().prefill_tokens) * table);
        let params = params::MatVec {
            rows,
            row_bytes: shape.row_bytes,
            cols: shape.cols,
            chunks: shape.chunks(),
            n: n * a.heads,
            x_stride: of.x_stride / 4,
            y_stride: of.y_stride,
            y_offset: of.y_offset,
            add: 0,
            experts: a.heads,
            used: a.heads,
            by_pair: u32::from(of.by_head),
            slot_first: 0,
            slot_count: u32::MAX,
            // Places of last rows are counted in rows, others in heads.
            expert_bytes: shape.row_bytes * if of.last_rows { 1 } else { stride },
        };
        let weights = self.model.memory.slice(segment.key, segment.offset, segment.bytes);
        let kernel = self.model.profile.decode(shape.format, Operand::Expert, 1);
        let groups = rows.div_ceil(kernel.matrix_rows());
        let bindings = [&weights, of.x, of.y, &slots, &chosen];
        self.dispatch(kernel, &bindings, &params, groups, n * a.heads);
        self.rec.cost(u64::from(n) * u64::from(a.heads * rows) * u64::from(shape.row_bytes));
        Ok(())
    }
}
