//! Prefill: chunks of a prompt through tiled matrix kernels, experts grouped by id.

use potluck_plan::BlockIndex;
use potluck_shaders::{Kernel, Operand, params};

use super::{Batch, Pairing, Product};
use crate::core::Core;
use crate::layout::{ExpertMatrix, Place, Scratch};
use crate::memory::Slice;
use crate::recorder::Recorder;
use crate::sizes::tile_count;

impl Core {
    /// A matrix times the batch.
    pub(super) fn prefill_product(&mut self, rec: &mut Recorder, place: &Place, batch: Batch, to: Product<'_>) {
        let operand = if to.bias.is_some() { Operand::Bias } else { Operand::Plain };
        let kernel = self.profile.prefill(place.shape.format, operand);
        let vectors = match kernel {
            Kernel::MatVec { rows, .. } => u32::from(rows),
            _ => potluck_shaders::TILE,
        };
        self.segments_product(rec, (kernel, vectors), place, batch.n, to);
    }

    /// Attention of the rows in scratch.
    pub(super) fn prefill_attention(&mut self, rec: &mut Recorder, block: BlockIndex, batch: Batch) {
        self.rowwise_attention(rec, block, batch);
    }

    /// The networks of the chosen experts, into `Scratch::Parts`.
    pub(super) fn prefill_experts(&mut self, rec: &mut Recorder, pairing: &Pairing<'_>, batch: Batch) {
        let places = pairing.places;
        let grouped = [&places.gate, &places.up, &places.down]
            .into_iter()
            .any(|matrix| matches!(self.profile.prefill(matrix.shape.format, Operand::Expert), Kernel::MatMul { .. }));
        if grouped {
            self.group(rec, pairing, batch);
        }
        let (normed, parts) = (self.scratch(Scratch::Normed), self.scratch(Scratch::Parts));
        let (gate, up) = (self.scratch(Scratch::Gate), self.scratch(Scratch::Up));
        self.prefill_expert_product(rec, pairing, batch, (&places.gate, false), (&normed, &gate));
        self.prefill_expert_product(rec, pairing, batch, (&places.up, false), (&normed, &up));
        self.swiglu(rec, batch.n * pairing.used * places.gate.shape.rows / 4);
        self.prefill_expert_product(rec, pairing, batch, (&places.down, true), (&up, &parts));
    }

    /// Lists the pairs by expert.
    fn group(&mut self, rec: &mut Recorder, pairing: &Pairing<'_>, batch: Batch) {
        let pairs = batch.n * pairing.used;
        let tiles = tile_count(u64::from(pairs), u64::from(pairing.experts)) as u32;
        let params = params::Groups { experts: pairing.experts, pairs, tiles };
        let slots = self.slot_table(pairing);
        let (chosen, tiles, list) =
            (self.scratch(Scratch::Chosen), self.scratch(Scratch::Tiles), self.scratch(Scratch::Pairs));
        rec.dispatch(&mut self.tools(), Kernel::Groups, &[&slots, &chosen, &tiles, &list], &params, 1, 1);
    }

    /// One matrix of the chosen experts: tile by tile of those that share an expert, or pair by pair.
    fn prefill_expert_product(
        &mut self,
        rec: &mut Recorder,
        pairing: &Pairing<'_>,
        batch: Batch,
        (matrix, by_pair): (&ExpertMatrix, bool),
        vectors: (&Slice, &Slice),
    ) {
        let kernel = self.profile.prefill(matrix.shape.format, Operand::Expert);
        let pairs = batch.n * pairing.used;
        let (first, second, z) = if matches!(kernel, Kernel::MatMul { .. }) {
            let tiles = tile_count(u64::from(pairs), u64::from(pairing.experts)) as u32;
            (self.scratch(Scratch::Tiles), self.scratch(Scratch::Pairs), tiles)
        } else {
            (self.slot_table(pairing), self.scratch(Scratch::Chosen), pairs)
        };
        self.expert_product(rec, pairing, batch, (kernel, matrix, by_pair), vectors, (&first, &second, z));
    }
}
