//! Prefill: prompt chunks through tiled matrix kernels, with tokens grouped by expert.

use potluck_plan::BlockIndex;
use potluck_shaders::{Kernel, Operand, params};

use super::experts::{ExpertProduct, PairList};
use super::{Batch, Encoder, Pairing, Product, attention_params, extras};
use crate::runtime::layout::{Place, Scratch};
use crate::runtime::memory::Slice;
use crate::runtime::sizes::tile_count;

impl Encoder<'_> {
    /// Matrix times the batch.
    pub(super) fn prefill_product(&mut self, place: &Place, batch: Batch, to: Product<'_>) {
        let operand = if to.bias.is_some() { Operand::Bias } else { Operand::Plain };
        let shape = place.shape;
        let kernel = self.model.profile.prefill(shape.format, operand, shape.rows, shape.cols, batch.n);
        self.segments_product(kernel, kernel.vectors(), place, batch.n, to);
    }

    /// Attention of the batch in scratch: in tiles, or token by token where barriers are prohibitively slow.
    pub(super) fn prefill_attention(&mut self, block: BlockIndex, batch: Batch, sinks: Option<&Slice>) {
        let a = self.model.spec.attention(usize::from(block.0)).clone();
        let (kv_type, quads) = (self.model.settings.kv_cache, (a.head_dim / 4) as u16);
        let Some(kernel) = self.model.profile.flash_attention(kv_type, quads, extras(&a)) else {
            return self.rowwise_attention(block, batch, sinks);
        };
        let params = attention_params(&a, batch.n);
        let mut bindings = vec![
            self.model.scratch(Scratch::Rows),
            self.model.scratch(Scratch::KvPages),
            self.model.scratch(Scratch::Query),
            self.keys(block),
            self.values(block, &a),
            self.model.scratch(Scratch::Attended),
        ];
        // The query heads of a key head are rows of one tile.
        let tiles = (batch.n * (a.heads / a.kv_heads.max(1))).div_ceil(Kernel::flash_rows(quads));
        bindings.extend(sinks.cloned());
        let bound: Vec<&Slice> = bindings.iter().collect();
        self.dispatch(kernel, &bound, &params, a.kv_heads, tiles);
        self.rec.cost_of_reach(2 * u64::from(tiles * a.kv_heads) * self.head_bytes(&a));
    }

    /// Feed-forward networks of the chosen experts into `Scratch::Parts`.
    pub(super) fn prefill_experts(&mut self, pairing: &Pairing<'_>, batch: Batch) {
        let places = pairing.places;
        let pairs = batch.n * pairing.used;
        let [gate, up, down] = [&places.gate, &places.up, &places.down]
            .map(|matrix| (self.model.profile.prefill_experts(matrix.shape.format), matrix));
        let (normed, parts) = (self.model.scratch(Scratch::Normed), self.model.scratch(Scratch::Parts));
        let (gates, ups) = (self.model.scratch(Scratch::Gate), self.model.scratch(Scratch::Up));
        let mut lists = None;
        let of = |(kernel, matrix), by_pair, x, y| ExpertProduct { kernel, matrix, by_pair, x, y };
        self.prefill_expert_product(pairing, batch, &mut lists, &of(gate, false, &normed, &gates));
        self.prefill_expert_product(pairing, batch, &mut lists, &of(up, false, &normed, &ups));
        self.expert_biases(pairing, &[(0, &gates), (1, &ups)], pairs);
        self.activate(pairing.activation, pairs * places.gate.shape.rows / 4);
        self.prefill_expert_product(pairing, batch, &mut lists, &of(down, true, &ups, &parts));
        self.expert_biases(pairing, &[(2, &parts)], pairs);
    }

    /// Groups the pairs by expert into tiles of `vectors` pairs; returns the maximum number of tiles.
    fn group(&mut self, pairing: &Pairing<'_>, pairs: u32, vectors: u32) -> u32 {
        let count = tile_count(vectors, u64::from(pairs), u64::from(pairing.experts)) as u32;
        let params = params::Groups { experts: pairing.experts, pairs, tiles: count, tile: vectors };
        let slots = self.slot_table(pairing);
        let (chosen, tiles, list) = (
            self.model.scratch(Scratch::Chosen),
            self.model.scratch(Scratch::Tiles),
            self.model.scratch(Scratch::Pairs),
        );
        let kernel = self.model.profile.groups();
        self.dispatch(kernel, &[&slots, &chosen, &tiles, &list], &params, 1, 1);
        count
    }

    /// One matrix of the chosen experts: by tiles of pairs that share an expert, or pair by pair. `lists` are the vectors
    /// per tile and the number of tiles that the pairs are listed in, if they are.
    fn prefill_expert_product(
        &mut self,
        pairing: &Pairing<'_>,
        batch: Batch,
        lists: &mut Option<(u32, u32)>,
        product: &ExpertProduct<'_>,
    ) {
        let (first, second, z) = if product.kernel.is_tiled() {
            let vectors = product.kernel.vectors();
            let tiles = match *lists {
                Some((listed, tiles)) if listed == vectors => tiles,
                _ => self.group(pairing, batch.n * pairing.used, vectors),
            };
            *lists = Some((vectors, tiles));
            (self.model.scratch(Scratch::Tiles), self.model.scratch(Scratch::Pairs), tiles)
        } else {
            (self.slot_table(pairing), self.model.scratch(Scratch::Chosen), batch.n * pairing.used)
        };
        self.expert_product(pairing, batch, product, &PairList { first: &first, second: &second, z });
    }
}
