//! Prefill: prompt chunks through tiled matrix kernels, with tokens grouped by expert.

use potluck_plan::BlockIndex;
use potluck_shaders::{Kernel, Operand, params};

use super::{Batch, Pairing, Product, attention_params, extras};
use crate::runtime::core::Core;
use crate::runtime::layout::{ExpertMatrix, Place, Scratch};
use crate::runtime::memory::Slice;
use crate::runtime::recorder::Recorder;
use crate::runtime::sizes::tile_count;

impl Core {
    /// Matrix times the batch.
    pub(super) fn prefill_product(&mut self, rec: &mut Recorder, place: &Place, batch: Batch, to: Product<'_>) {
        let operand = if to.bias.is_some() { Operand::Bias } else { Operand::Plain };
        let shape = place.shape;
        let kernel = self.profile.prefill(shape.format, operand, (shape.rows, shape.cols), batch.n);
        self.segments_product(rec, (kernel, kernel.vectors()), place, batch.n, to);
    }

    /// Attention of the batch in scratch: in tiles, or token by token where barriers are prohibitively slow.
    pub(super) fn prefill_attention(
        &mut self,
        rec: &mut Recorder,
        block: BlockIndex,
        batch: Batch,
        sinks: Option<&Slice>,
    ) {
        let a = self.spec.attention(usize::from(block.0)).clone();
        let (kv_type, quads) = (self.settings.kv_cache, (a.head_dim / 4) as u16);
        let Some(kernel) = self.profile.flash_attention(kv_type, quads, extras(&a)) else {
            return self.rowwise_attention(rec, block, batch, sinks);
        };
        let params = attention_params(&a, batch.n);
        let mut bindings = vec![
            self.scratch(Scratch::Rows),
            self.scratch(Scratch::KvPages),
            self.scratch(Scratch::Query),
            self.keys(block),
            self.values(block, &a),
            self.scratch(Scratch::Attended),
        ];
        // The query heads of a key head are rows of one tile.
        let tiles = (batch.n * (a.heads / a.kv_heads.max(1))).div_ceil(Kernel::flash_rows(quads));
        bindings.extend(sinks.cloned());
        let bound: Vec<&Slice> = bindings.iter().collect();
        rec.dispatch(&mut self.tools(), kernel, &bound, &params, a.kv_heads, tiles);
        rec.cost_of_reach(2 * u64::from(tiles * a.kv_heads) * self.head_bytes(&a));
    }

    /// Feed-forward networks of the chosen experts into `Scratch::Parts`.
    pub(super) fn prefill_experts(&mut self, rec: &mut Recorder, pairing: &Pairing<'_>, batch: Batch) {
        let places = pairing.places;
        let pairs = batch.n * pairing.used;
        let [gate, up, down] = [&places.gate, &places.up, &places.down]
            .map(|matrix| (self.profile.prefill_experts(matrix.shape.format), matrix));
        let (normed, parts) = (self.scratch(Scratch::Normed), self.scratch(Scratch::Parts));
        let (gates, ups) = (self.scratch(Scratch::Gate), self.scratch(Scratch::Up));
        let mut lists = None;
        self.prefill_expert_product(rec, pairing, (batch, &mut lists), (gate.0, gate.1, false), (&normed, &gates));
        self.prefill_expert_product(rec, pairing, (batch, &mut lists), (up.0, up.1, false), (&normed, &ups));
        self.expert_biases(rec, pairing, &[(0, &gates), (1, &ups)], pairs);
        self.activate(rec, pairing.activation, pairs * places.gate.shape.rows / 4);
        self.prefill_expert_product(rec, pairing, (batch, &mut lists), (down.0, down.1, true), (&ups, &parts));
        self.expert_biases(rec, pairing, &[(2, &parts)], pairs);
    }

    /// Groups the pairs by expert into tiles of `vectors` pairs; returns the maximum number of tiles.
    fn group(&mut self, rec: &mut Recorder, pairing: &Pairing<'_>, pairs: u32, vectors: u32) -> u32 {
        let count = tile_count(vectors, u64::from(pairs), u64::from(pairing.experts)) as u32;
        let params = params::Groups { experts: pairing.experts, pairs, tiles: count, tile: vectors };
        let slots = self.slot_table(pairing);
        let (chosen, tiles, list) =
            (self.scratch(Scratch::Chosen), self.scratch(Scratch::Tiles), self.scratch(Scratch::Pairs));
        let kernel = self.profile.groups();
        rec.dispatch(&mut self.tools(), kernel, &[&slots, &chosen, &tiles, &list], &params, 1, 1);
        count
    }

    /// One matrix of the chosen experts: by tiles of pairs that share an expert, or pair by pair. `lists` are the vectors
    /// per tile and the number of tiles that the pairs are listed in, if they are.
    fn prefill_expert_product(
        &mut self,
        rec: &mut Recorder,
        pairing: &Pairing<'_>,
        (batch, lists): (Batch, &mut Option<(u32, u32)>),
        matrix: (Kernel, &ExpertMatrix, bool),
        vectors: (&Slice, &Slice),
    ) {
        let (first, second, z) = if matrix.0.is_tiled() {
            let vectors = matrix.0.vectors();
            let tiles = match *lists {
                Some((listed, tiles)) if listed == vectors => tiles,
                _ => self.group(rec, pairing, batch.n * pairing.used, vectors),
            };
            *lists = Some((vectors, tiles));
            (self.scratch(Scratch::Tiles), self.scratch(Scratch::Pairs), tiles)
        } else {
            (self.slot_table(pairing), self.scratch(Scratch::Chosen), batch.n * pairing.used)
        };
        self.expert_product(rec, pairing, batch, matrix, vectors, (&first, &second, z));
    }
}
