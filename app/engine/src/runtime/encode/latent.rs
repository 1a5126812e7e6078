//! Multi-head latent attention in its absorbed form: all heads attend to one compressed key per position, which is the
//! value too. Products of each head take (token, head) pairs as if heads were experts.

use potluck_model::{AttentionSpec, LatentSpec, TensorRole};
use potluck_plan::{BlockIndex, KernelClass, WeightUnit};
use potluck_shaders::{Kernel, Operand, params};

use super::{Batch, Output, Product, pairs};
use crate::runtime::core::Core;
use crate::runtime::error::{EngineError, LayoutError};
use crate::runtime::layout::{Key, Layout, Scratch};
use crate::runtime::memory::Slice;
use crate::runtime::recorder::Recorder;
use crate::runtime::sizes::align;

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

impl Core {
    /// What [`Scratch::Heads`] holds: the places of heads whose matrices follow each other, those of the last rows of
    /// each head's queries, and the head of each (token, head) pair.
    pub fn head_tables(&self) -> Option<[Vec<u32>; 3]> {
        let blocks = 0..self.spec.blocks.len();
        let a = blocks.map(|block| self.spec.attention(block)).find(|a| a.latent.is_some())?;
        let key = a.latent?.key;
        let heads = 0..a.heads;
        let last_rows = heads.clone().map(|head| head * (key + a.rope.dims) + key).collect();
        let tokens = self.layout.prefill_tokens;
        Some([heads.collect(), last_rows, (0..tokens * a.heads).map(|pair| pair % a.heads).collect()])
    }

    /// Writes the tables of heads.
    pub fn write_head_tables(&self) {
        if !self.layout.sizes.contains_key(&Key::Scratch(Scratch::Heads)) {
            return;
        }
        let mut at = 0;
        for table in self.head_tables().into_iter().flatten() {
            self.write(Scratch::Heads, at, bytemuck::cast_slice(&table));
            at += align(table.len() as u64 * 4);
        }
    }

    /// Latent attention with its norms and projections, added to the hidden vectors.
    pub(super) fn latent_mixer(
        &mut self,
        rec: &mut Recorder,
        layout: &Layout,
        block: BlockIndex,
        (a, latent): (&AttentionSpec, LatentSpec),
        batch: Batch,
    ) -> Result<(), EngineError> {
        let unit = WeightUnit::TokenMixer(block);
        let gain = self.vector(layout, unit, TensorRole::AttentionNorm)?;
        self.norm(rec, &gain, 0, batch.n);
        self.latent_queries(rec, layout, unit, (a, latent), batch)?;
        self.latent_keys(rec, layout, unit, (a, latent), batch)?;
        self.latent_rope(rec, layout, block, a, batch.n);
        match batch.class {
            KernelClass::Decode => self.decode_attention(rec, block, batch, None),
            KernelClass::Prefill => self.prefill_attention(rec, block, batch, None),
        }
        let (attended, parts) = (self.scratch(Scratch::Attended), self.scratch(Scratch::HeadParts));
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
        self.head_product(rec, layout, unit, a, batch.n, back)?;
        let out = Output { unit, matrix: TensorRole::AttentionOutput, bias: None, norm: None, x: &parts };
        self.add_output(rec, layout, out, batch)
    }

    /// Each head's query in the space of the compressed keys, then its rotated part, into `Scratch::Qkv`.
    fn latent_queries(
        &mut self,
        rec: &mut Recorder,
        layout: &Layout,
        unit: WeightUnit,
        (a, latent): (&AttentionSpec, LatentSpec),
        batch: Batch,
    ) -> Result<(), EngineError> {
        let (normed, qkv) = (self.scratch(Scratch::Normed), self.scratch(Scratch::Qkv));
        let (compressed, parts) = (self.scratch(Scratch::LatentQueries), self.scratch(Scratch::HeadParts));
        let (x, x_stride) = match latent.query_rank {
            None => (&normed, self.spec.hidden),
            Some(rank) => {
                let place = self.place(layout, unit, TensorRole::QueryDown)?;
                let to = Product { x: &normed, y: &compressed, y_stride: rank, y_offset: 0, add: false, bias: None };
                self.product(rec, place, batch, to);
                let gain = self.vector(layout, unit, TensorRole::QueryDownNorm)?;
                self.norm_in_place(rec, (&compressed, &gain), (rank, rank, 0), batch.n);
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
            self.head_product(rec, layout, unit, a, batch.n, product)?;
        }
        Ok(())
    }

    /// The compressed keys, normalized, and their rotated part, into `Scratch::LatentKeys`.
    fn latent_keys(
        &mut self,
        rec: &mut Recorder,
        layout: &Layout,
        unit: WeightUnit,
        (a, latent): (&AttentionSpec, LatentSpec),
        batch: Batch,
    ) -> Result<(), EngineError> {
        let (normed, keys) = (self.scratch(Scratch::Normed), self.scratch(Scratch::LatentKeys));
        for (role, y_offset) in [(TensorRole::Latent, 0), (TensorRole::LatentRotated, latent.rank)] {
            let place = self.place(layout, unit, role)?;
            let to = Product { x: &normed, y: &keys, y_stride: a.head_dim, y_offset, add: false, bias: None };
            self.product(rec, place, batch, to);
        }
        let gain = self.vector(layout, unit, TensorRole::LatentNorm)?;
        self.norm_in_place(rec, (&keys, &gain), (latent.rank, a.head_dim, 0), batch.n);
        Ok(())
    }

    /// Rotates the last part of queries and keys, and stores the keys.
    fn latent_rope(&mut self, rec: &mut Recorder, layout: &Layout, block: BlockIndex, a: &AttentionSpec, n: u32) {
        let kv_type = self.settings.kv_cache;
        let kernel = Kernel::Rope { kv_type, pairs: pairs(a), qk_norm: false, factors: false };
        let bytes = (u64::from(a.rope.dims) * 2).max(4);
        let table = self.memory.slice(Key::Scratch(Scratch::Tables), layout.rope_table[&block], bytes);
        let (rows, cache) = (self.scratch(Scratch::Rows), self.memory.whole(Key::Keys(block)));
        let [qkv, query, keys] = [Scratch::Qkv, Scratch::Query, Scratch::LatentKeys].map(|name| self.scratch(name));
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
                epsilon: self.spec.norm_epsilon,
                magnitude: a.rope.magnitude,
                ..Default::default()
            };
            let threads = n * (heads + kv_heads) * Kernel::rope_threads(kv_type, a.head_dim);
            let bindings = [&rows, from, &table, &query, &cache, unused];
            rec.dispatch(&mut self.tools(), kernel, &bindings, &params, Self::groups(kernel, threads), 1);
        }
    }

    /// A product with a matrix of each head for each (token, head) pair.
    fn head_product(
        &mut self,
        rec: &mut Recorder,
        layout: &Layout,
        unit: WeightUnit,
        a: &AttentionSpec,
        n: u32,
        of: HeadProduct<'_>,
    ) -> Result<(), EngineError> {
        let place = self.place(layout, unit, of.role)?;
        let [segment] = place.segments[..] else {
            let text = format!("{:?} of {unit:?} does not fit one binding.", of.role);
            return Err(LayoutError::UnsupportedShape(text).into());
        };
        let shape = place.shape;
        let (rows, stride) = of.rows;
        let table = u64::from(a.heads) * 4;
        let heads = Key::Scratch(Scratch::Heads);
        let slots = self.memory.slice(heads, if of.last_rows { align(table) } else { 0 }, table);
        // All of it, whatever the batch: bind groups are kept by the first byte of what they bind.
        let chosen = self.memory.slice(heads, 2 * align(table), u64::from(self.layout.prefill_tokens) * table);
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
        let weights = self.memory.slice(segment.key, segment.offset, segment.bytes);
        let kernel = self.profile.decode(shape.format, Operand::Expert, 1);
        let groups = rows.div_ceil(kernel.matrix_rows());
        let bindings = [&weights, of.x, of.y, &slots, &chosen];
        rec.dispatch(&mut self.tools(), kernel, &bindings, &params, groups, n * a.heads);
        rec.cost(u64::from(n) * u64::from(a.heads * rows) * u64::from(shape.row_bytes));
        Ok(())
    }
}
