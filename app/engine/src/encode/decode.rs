//! Decode: a few rows through matrix-vector kernels.

use potluck_plan::BlockIndex;
use potluck_shaders::{Kernel, Operand};

use super::{Batch, Pairing, Product};
use crate::core::Core;
use crate::layout::{Place, Scratch};
use crate::recorder::Recorder;

impl Core {
    /// A matrix times the batch.
    pub(super) fn decode_product(&mut self, rec: &mut Recorder, place: &Place, batch: Batch, to: Product<'_>) {
        let operand = if to.bias.is_some() { Operand::Bias } else { Operand::Plain };
        let kernel = self.profile.decode(place.shape.format, operand, batch.n as usize);
        let Kernel::MatVec { rows, .. } = kernel else { return };
        self.segments_product(rec, (kernel, u32::from(rows)), place, batch.n, to);
    }

    /// Attention of the rows in scratch.
    pub(super) fn decode_attention(&mut self, rec: &mut Recorder, block: BlockIndex, batch: Batch) {
        self.rowwise_attention(rec, block, batch);
    }

    /// The networks of the chosen experts, into `Scratch::Parts`: every (row, expert) pair by itself.
    pub(super) fn decode_experts(&mut self, rec: &mut Recorder, pairing: &Pairing<'_>, batch: Batch) {
        let (slots, chosen) = (self.slot_table(pairing), self.scratch(Scratch::Chosen));
        let which = (&slots, &chosen, batch.n * pairing.used);
        let (normed, parts) = (self.scratch(Scratch::Normed), self.scratch(Scratch::Parts));
        let (gate, up) = (self.scratch(Scratch::Gate), self.scratch(Scratch::Up));
        let places = pairing.places;
        let kernel = |core: &Core, format| core.profile.decode(format, Operand::Expert, 1);
        for (matrix, y) in [(&places.gate, &gate), (&places.up, &up)] {
            let kernel = kernel(self, matrix.shape.format);
            self.expert_product(rec, pairing, batch, (kernel, matrix, false), (&normed, y), which);
        }
        self.swiglu(rec, batch.n * pairing.used * places.gate.shape.rows / 4);
        let kernel = kernel(self, places.down.shape.format);
        self.expert_product(rec, pairing, batch, (kernel, &places.down, true), (&up, &parts), which);
    }
}
