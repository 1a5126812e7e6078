//! The networks of chosen experts in two dispatches, and their weighted sum in the second if all are here.

use potluck_model::{Activation, ExpertsSpec};
use potluck_plan::{BlockIndex, KernelClass};
use potluck_shaders::{Job, Kernel, params};

use super::{Batch, Encoder, Pairing};
use crate::runtime::error::EngineError;
use crate::runtime::layout::{ExpertMatrix, ExpertPlaces, Scratch};
use crate::runtime::memory::Slice;

/// The fused jobs of a block's experts: gate with up, down, and down with the weighted sum of all.
pub(crate) fn expert_jobs(activation: Activation, biased: bool) -> Option<[Job; 3]> {
    match (activation, biased) {
        (Activation::SwiGlu, false) => Some([Job::GatedExpert, Job::ExpertDown, Job::ExpertSum]),
        (Activation::GeGlu, false) => Some([Job::GeluExpert, Job::ExpertDown, Job::ExpertSum]),
        (Activation::ClampedSwiGlu, true) => Some([Job::ClampedExpert, Job::BiasedDown, Job::BiasedSum]),
        _ => None,
    }
}

/// A product of each chosen expert: one matrix, or gate and up; or the sum of a token's products.
struct FusedExperts<'a> {
    kernel: Kernel,
    matrix: &'a ExpertMatrix,
    /// Pairs that have the same input vector, or products of a sum.
    shared: u32,
    x: &'a Slice,
    y: &'a Slice,
    /// Whether a sum is added to the output.
    add: bool,
}

impl Encoder<'_> {
    /// Networks of the chosen experts, from the normed vectors into `Scratch::Parts`.
    pub(super) fn fused_experts(&mut self, pairing: &Pairing<'_>, n: u32) -> bool {
        let (gate, down) = (&pairing.places.gate, &pairing.places.down);
        let jobs = expert_jobs(pairing.activation, pairing.places.biases.is_some());
        let (Some([gated, product, _]), true) = (jobs, Self::can_fuse(pairing.places)) else { return false };
        let gated = self.model.profile.fused(gate.shape.format, gated, 1);
        let product = self.model.profile.fused(down.shape.format, product, 1);
        let (Some(gated), Some(product)) = (gated, product) else { return false };
        let [normed, inner, parts] =
            [Scratch::Normed, Scratch::Up, Scratch::Parts].map(|name| self.model.scratch(name));
        let pairs = n * pairing.used;
        let gates =
            FusedExperts { kernel: gated, matrix: gate, shared: pairing.used, x: &normed, y: &inner, add: false };
        self.fused_expert_product(pairing, &gates, pairs);
        let downs = FusedExperts { kernel: product, matrix: down, shared: 1, x: &inner, y: &parts, add: false };
        self.fused_expert_product(pairing, &downs, pairs);
        true
    }

    /// Whether one binding has both gate and up of each expert, and another all biases.
    fn can_fuse(places: &ExpertPlaces) -> bool {
        let (gate, up) = (&places.gate, &places.up);
        let biases = places.biases.as_ref().is_none_or(|biases| biases[0].chunks.len() == 1);
        gate.shape == up.shape && gate.chunks == up.chunks && biases
    }

    /// Whether one dispatch may compute the last products of a token's experts, their weighted sum and its addition.
    pub(crate) fn can_sum(experts: &ExpertsSpec, places: &ExpertPlaces) -> bool {
        let fuses = Self::can_fuse(places) && expert_jobs(experts.activation, experts.biases).is_some();
        let together = fuses && places.down.chunks.len() == 1;
        together && !experts.weigh_input && experts.used <= Kernel::MAX_SUMMED
    }

    /// Networks of the chosen experts and their weighted sum, added to the hidden vectors or into `Scratch::Sum`.
    pub fn fused_sum(&mut self, block: BlockIndex, batch: Batch) -> Result<bool, EngineError> {
        let pairing = self.pairing(block)?;
        let experts = self.model.expert_spec(block)?;
        // The sum of experts apart has a norm of its own before it is added to anything.
        let apart = experts.apart;
        let sum = if apart { Scratch::Sum } else { Scratch::Hidden };
        let jobs = expert_jobs(experts.activation, experts.biases);
        let can_sum = batch.class == KernelClass::Decode && Self::can_sum(experts, pairing.places);
        let (Some([gated, alone, summed]), true) = (jobs, can_sum) else { return Ok(false) };
        let (gate, down, used) = (&pairing.places.gate, &pairing.places.down, pairing.used);
        let gated = self.model.profile.fused(gate.shape.format, gated, 1);
        let summed = self.model.profile.fused(down.shape.format, summed, 1);
        // Experts elsewhere are computed without the sum, by kernels that give the bits of this one.
        let alone = self.model.profile.fused(down.shape.format, alone, 1);
        let (Some(gated), Some(summed), Some(_)) = (gated, summed, alone) else { return Ok(false) };
        let [normed, inner, sum] = [Scratch::Normed, Scratch::Up, sum].map(|name| self.model.scratch(name));
        let gates = FusedExperts { kernel: gated, matrix: gate, shared: used, x: &normed, y: &inner, add: false };
        self.fused_expert_product(&pairing, &gates, batch.n * used);
        let sums = FusedExperts { kernel: summed, matrix: down, shared: used, x: &inner, y: &sum, add: !apart };
        self.fused_expert_product(&pairing, &sums, batch.n);
        Ok(true)
    }

    /// The biases of all experts of a block, the first one of gate and up or of down in a slot, and values of a slot.
    fn biases_of_experts(&self, pairing: &Pairing<'_>, gates: bool) -> Option<(Slice, [u32; 3])> {
        let [gate, up, down] = pairing.places.biases.as_ref()?;
        let &(_, _, key) = gate.chunks.first()?;
        let (first, second) = if gates { (gate, up) } else { (down, down) };
        // The casts cannot truncate: a binding has fewer bytes.
        let at = [first.inside, second.inside, gate.stride].map(|bytes| (bytes / 4) as u32);
        Some((self.model.memory.whole(key), at))
    }

    /// A product of each chosen expert for each of `pairs` pairs, or the sum of a token's for each of `pairs` tokens.
    fn fused_expert_product(&mut self, pairing: &Pairing<'_>, product: &FusedExperts<'_>, pairs: u32) {
        let &FusedExperts { kernel, matrix, shared, x, y, add } = product;
        let shape = matrix.shape;
        let kernel = self.model.profile.tuned_variant(kernel, shape.rows, shape.cols);
        let (slots, chosen) = (self.slot_table(pairing), self.model.scratch(Scratch::Chosen));
        let gates = self.model.scratch(Scratch::Gates);
        let Kernel::Fused { job, .. } = kernel else { return };
        let (sums, gates_up) = (job.sums(), job.gates());
        let matrices = match (gates_up, sums) {
            (true, _) => 2,
            (_, true) => u64::from(shared),
            _ => 1,
        };
        let bias = self.biases_of_experts(pairing, gates_up);
        let [bias_0, bias_1, bias_stride] = bias.as_ref().map_or([0; 3], |(_, at)| *at);
        for &(slot_first, slot_count, key) in &matrix.chunks {
            let params = params::Fused {
                n: pairs,
                experts: pairing.experts,
                used: shared,
                slot_first,
                slot_count,
                expert_bytes: matrix.stride as u32,
                base_0: matrix.inside as u32,
                up: (pairing.places.up.inside as u32).wrapping_sub(matrix.inside as u32),
                y_stride: shape.rows,
                add: u32::from(add),
                scale: if add { self.model.spec.scales.residual } else { 1.0 },
                bias_0,
                bias_1,
                bias_stride,
                ..self.fused_params(kernel, shape)
            };
            let weights = self.model.memory.whole(key);
            let mut bindings = vec![&weights, x, y, &slots, &chosen];
            bindings.extend(sums.then_some(&gates));
            bindings.extend(bias.as_ref().map(|(biases, _)| biases));
            let groups = shape.rows.div_ceil(kernel.matrix_rows());
            self.dispatch(kernel, &bindings, &params, groups, pairs);
            self.rec.cost(matrices * shape.bytes() * u64::from(pairs));
        }
    }
}
