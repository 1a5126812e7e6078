//! Decode: a few tokens through matrix-vector kernels.

use potluck_plan::BlockIndex;
use potluck_shaders::{Kernel, Operand, params};

use super::experts::{ExpertProduct, PairList};
use super::fused::{Sum, Vectors};
use super::{Batch, Encoder, Pairing, Product, extras};
use crate::runtime::layout::{Place, Scratch};
use crate::runtime::memory::Slice;
use crate::runtime::recorder::Size;
use crate::runtime::sizes::split_count;

impl Encoder<'_> {
    /// Matrix times the batch.
    pub(super) fn decode_product(&mut self, place: &Place, batch: Batch, to: Product<'_>) {
        let vectors = Vectors { x: to.x, rows: (0, batch.n), y: to.y, y_stride: to.y_stride, gain: None };
        let sum = Sum { add: to.add, bias: to.bias.as_ref(), offset: to.y_offset };
        if self.fused_product(place, &vectors, &sum) {
            return;
        }
        let operand = if to.bias.is_some() { Operand::Bias } else { Operand::Plain };
        let kernel = self.model.profile.decode(place.shape.format, operand, batch.n as usize);
        let Kernel::MatVec { rows, .. } = kernel else { return };
        self.segments_product(kernel, u32::from(rows), place, batch.n, to);
    }

    /// Attention of the batch in scratch, over splits of the context or query by query.
    pub(super) fn decode_attention(&mut self, block: BlockIndex, batch: Batch, sinks: Option<&Slice>) {
        let a = self.model.spec.attention(usize::from(block.0)).clone();
        let kv_type = self.model.settings.kv_cache;
        // Query heads per key head, and workgroups that share them.
        let queries = a.heads / a.kv_heads.max(1);
        let Some([split, merge]) = self.model.profile.split(kv_type, (a.head_dim / 4) as u16, queries, extras(&a))
        else {
            return self.rowwise_attention(block, batch, sinks);
        };
        let Kernel::Split { heads: at_once, .. } = split else { return };
        let groups = a.kv_heads * queries.div_ceil(u32::from(at_once));
        let params = params::Split {
            heads: a.heads,
            kv_heads: a.kv_heads,
            scale: a.scale,
            splits: split_count(&self.model.settings),
            window: a.window.unwrap_or(0),
            cap: a.score_cap,
            chunked: u32::from(a.chunked),
        };
        let params = bytemuck::bytes_of(&params);
        let keys = self.keys(block);
        let values = self.values(block, &a);
        let [rows, pages, query, attended, parts] =
            [Scratch::Rows, Scratch::KvPages, Scratch::Query, Scratch::Attended, Scratch::Splits]
                .map(|scratch| self.model.scratch(scratch));
        let mut bindings = vec![&rows, &pages, &query, &keys, &values, &attended, &parts];
        bindings.extend(sinks);
        let size = Size::Splits { x: groups, z: batch.n };
        self.dispatch_sized(split, &bindings, params, size);
        self.rec.cost_of_reach(2 * u64::from(batch.n * groups) * self.head_bytes(&a));
        let size = Size::Merge { x: a.heads, z: batch.n };
        self.dispatch_sized(merge, &[&rows, &parts, &attended], params, size);
    }

    /// Feed-forward networks of the chosen experts into `Scratch::Parts`, each (token, expert) pair separately.
    pub(super) fn decode_experts(&mut self, pairing: &Pairing<'_>, batch: Batch) {
        if self.fused_experts(pairing, batch.n) {
            return;
        }
        let (slots, chosen) = (self.slot_table(pairing), self.model.scratch(Scratch::Chosen));
        let which = PairList { first: &slots, second: &chosen, z: batch.n * pairing.used };
        let (normed, parts) = (self.model.scratch(Scratch::Normed), self.model.scratch(Scratch::Parts));
        let (gate, up) = (self.model.scratch(Scratch::Gate), self.model.scratch(Scratch::Up));
        let places = pairing.places;
        let kernel = |encoder: &Encoder<'_>, format| encoder.model.profile.decode(format, Operand::Expert, 1);
        for (matrix, y) in [(&places.gate, &gate), (&places.up, &up)] {
            let kernel = kernel(self, matrix.shape.format);
            let product = ExpertProduct { kernel, matrix, by_pair: false, x: &normed, y };
            self.expert_product(pairing, batch, &product, &which);
        }
        let pairs = batch.n * pairing.used;
        self.expert_biases(pairing, &[(0, &gate), (1, &up)], pairs);
        self.activate(pairing.activation, pairs * places.gate.shape.rows / 4);
        let kernel = kernel(self, places.down.shape.format);
        let product = ExpertProduct { kernel, matrix: &places.down, by_pair: true, x: &up, y: &parts };
        self.expert_product(pairing, batch, &product, &which);
        self.expert_biases(pairing, &[(2, &parts)], pairs);
    }
}
