//! The feed-forward half of a block with experts: routing, the chosen experts, and their weighted sum. Each part is the
//! same whether the experts are here or elsewhere, so that the bits are too.

use potluck_model::{Activation, ExpertsSpec, SharedSpec, TensorRole};
use potluck_plan::{BlockIndex, KernelClass, WeightUnit};
use potluck_shaders::{Addition, Job, Kernel, params};

use super::attention::RowPart;
use super::{Addend, Batch, Encoder, Pairing, Product};
use crate::runtime::error::EngineError;
use crate::runtime::layout::{ExpertMatrix, Key, Place, Scratch};
use crate::runtime::memory::Slice;

/// One matrix of the chosen experts, and the vectors that it takes and gives.
pub(super) struct ExpertProduct<'a> {
    pub kernel: Kernel,
    pub matrix: &'a ExpertMatrix,
    /// Each pair has an input of its own; otherwise a token's pairs share one.
    pub by_pair: bool,
    pub x: &'a Slice,
    pub y: &'a Slice,
}

/// Which `z` pairs or tiles of pairs there are.
pub(super) struct PairList<'a> {
    pub first: &'a Slice,
    pub second: &'a Slice,
    pub z: u32,
}

/// The network beside the experts, and the router that its last product reads the scores of, which follow those of so
/// many experts.
struct SharedExpert<'a> {
    activation: Activation,
    shared: SharedSpec,
    scored: Option<(&'a Place, u32)>,
}

/// What becomes of a sum.
struct SumScale {
    /// It is multiplied by this.
    scale: f32,
    /// It is added to what is there, or written over it.
    add: bool,
}

impl<'a> Encoder<'a> {
    /// Norm and expert selection: the normed vectors, the chosen experts and their weights. A shared expert's output is
    /// added to the hidden vectors here, so that it does not matter where the others run.
    pub fn route(&mut self, block: BlockIndex, batch: Batch) -> Result<(), EngineError> {
        let unit = WeightUnit::Router(block);
        let experts = self.model.expert_spec(block)?.clone();
        let gain = self.model.vector(unit, TensorRole::FeedForwardNorm)?;
        let place = self.model.place(unit, TensorRole::Router)?;
        let (own, factor) = if experts.router.own_norm {
            (self.model.vector(unit, TensorRole::RouterNorm)?, 1.0 / (self.model.spec.hidden as f32).sqrt())
        } else {
            (gain.clone(), 1.0)
        };
        let bias = if experts.router.bias { Some(self.model.vector(unit, TensorRole::RouterBias)?) } else { None };
        let fuses = batch.class == KernelClass::Decode;
        let scored = if fuses && Self::can_score(&experts) { self.scored_by(block, batch.n)? } else { None };
        // One vector's scores lie one after the other; those of several follow in a dispatch of their own.
        let beside = scored.filter(|_| batch.n == 1);
        let fused = fuses && self.fused_scores(place, beside, bias.as_ref(), (&own, factor), batch.n);
        let scored = scored.filter(|_| fused);
        if !fused {
            self.norm_times(&own, factor, 0, batch.n);
            let (normed, scores) = (self.model.scratch(Scratch::Normed), self.model.scratch(Scratch::Scores));
            let to = Product { x: &normed, y: &scores, y_stride: experts.count, y_offset: 0, add: false, bias };
            self.product(place, batch, to);
        }
        let to_norm = (fused || experts.router.own_norm).then_some(&gain);
        self.choose(block, &experts, to_norm, batch.n)?;
        if let Some(shared) = experts.shared.filter(|_| !experts.apart) {
            let scored = scored.map(|router| (router, experts.count));
            let how = SharedExpert { activation: experts.activation, shared, scored };
            self.shared_expert(block, how, &gain, batch)?;
        }
        if experts.weigh_input {
            let (normed, gates) = (self.model.scratch(Scratch::Normed), self.model.scratch(Scratch::Gates));
            let row = self.model.spec.hidden;
            let params = params::ScaleBy { count: batch.n * row, factors: batch.n, row };
            let kernel = Kernel::ScaleBy { expert: false };
            let groups = Self::groups(kernel, params.count);
            self.dispatch(kernel, &[&gates, &normed], &params, groups, 1);
        }
        Ok(())
    }

    /// The router of the network beside the experts, if the product that reads its scores has a kernel here.
    fn scored_by(&self, block: BlockIndex, n: u32) -> Result<Option<&'a Place>, EngineError> {
        let unit = WeightUnit::SharedExpert(block);
        let (router, down) =
            (self.model.place(unit, TensorRole::SharedRouter)?, self.model.place(unit, TensorRole::Down)?);
        let jobs = [(router, Job::Normed), (down, Job::Scored)];
        let can =
            jobs.iter().all(|(place, job)| self.model.profile.fused(place.shape.format, *job, n as usize).is_some());
        Ok((can && down.segments.len() == 1).then_some(router))
    }

    /// Selects the best experts from each token's scores, and normalizes the hidden vectors for them if it gets the
    /// gain.
    fn choose(
        &mut self,
        block: BlockIndex,
        spec: &ExpertsSpec,
        gain: Option<&Slice>,
        n: u32,
    ) -> Result<(), EngineError> {
        let (experts, used, router) = (spec.count, spec.used, &spec.router);
        let scores = self.model.scratch(Scratch::Scores);
        let (chosen, gates) = (self.model.scratch(Scratch::Chosen), self.model.scratch(Scratch::Gates));
        let kernel = self.model.profile.router(router);
        let normalize = u32::from(router.normalize);
        if let (Some(gain), Some(kernel)) = (gain, self.model.profile.route(router)) {
            let (hidden, normed) = (self.model.scratch(Scratch::Hidden), self.model.scratch(Scratch::Normed));
            let (width, epsilon) = (self.model.spec.hidden / 4, self.model.spec.norm_epsilon);
            let factors = if router.expert_scales {
                self.model.vector(WeightUnit::Router(block), TensorRole::ExpertScales)?
            } else {
                // Nothing is read from it.
                gain.clone()
            };
            let scaled = u32::from(router.expert_scales);
            let params = params::Route { n, experts, used, normalize, width, epsilon, scaled };
            let bindings = [&scores, &chosen, &gates, &hidden, gain, &normed, &factors];
            self.dispatch(kernel, &bindings, &params, n, 2);
            return Ok(());
        }
        if let Some(gain) = gain {
            self.norm(gain, 0, n);
        }
        let groups = if kernel.fallback().is_some() { n } else { Self::groups(kernel, n) };
        let unit = WeightUnit::Router(block);
        if let Kernel::Choose { .. } = kernel {
            let (groups_of, used_groups) = router.groups.map_or((1, 1), |groups| (groups.count, groups.used));
            let params =
                params::Choose { n, experts, used, normalize, scale: router.scale, groups: groups_of, used_groups };
            let bias =
                if router.selection_bias { Some(self.model.vector(unit, TensorRole::SelectionBias)?) } else { None };
            let mut bindings = vec![&scores, &chosen, &gates];
            bindings.extend(&bias);
            self.dispatch(kernel, &bindings, &params, groups, 1);
        } else {
            let params = params::Router { n, experts, used, normalize };
            self.dispatch(kernel, &[&scores, &chosen, &gates], &params, groups, 1);
        }
        if router.expert_scales {
            let factors = self.model.vector(unit, TensorRole::ExpertScales)?;
            let params = params::ScaleBy { count: n * used, factors: experts, row: 1 };
            let kernel = Kernel::ScaleBy { expert: true };
            let groups = Self::groups(kernel, params.count);
            self.dispatch(kernel, &[&factors, &gates, &chosen], &params, groups, 1);
        }
        Ok(())
    }

    /// The network beside the experts, from the normed vectors, added to the hidden ones.
    fn shared_expert(
        &mut self,
        block: BlockIndex,
        how: SharedExpert<'_>,
        gain: &Slice,
        batch: Batch,
    ) -> Result<(), EngineError> {
        let SharedExpert { activation, shared, scored } = how;
        let unit = WeightUnit::SharedExpert(block);
        let normed = self.model.scratch(Scratch::Normed);
        let fuses = batch.class == KernelClass::Decode;
        if let Some((router, _)) = scored.filter(|_| batch.n > 1) {
            self.fused_scores(router, None, None, (gain, 1.0), batch.n);
        }
        if !fuses || !self.fused_gate(unit, activation, gain, batch.n)? {
            self.gate_and_up(unit, activation, &normed, batch)?;
        }
        let (up, parts) = (self.model.scratch(Scratch::Up), self.model.scratch(Scratch::Parts));
        let width = self.model.spec.hidden;
        let down = self.model.place(unit, TensorRole::Down)?;
        if let Some((_, experts)) = scored {
            let first = if batch.n == 1 { experts } else { 0 };
            self.fused_scored(down, &up, first, batch.n);
            return Ok(());
        }
        let direct = !shared.gated && self.model.spec.scales.residual == 1.0;
        let hidden = self.model.scratch(Scratch::Hidden);
        let y = if direct { &hidden } else { &parts };
        let to = Product { x: &up, y, y_stride: width, y_offset: 0, add: direct, bias: None };
        self.product(down, batch, to);
        if shared.gated {
            let scores = self.model.scratch(Scratch::Scores);
            let place = self.model.place(unit, TensorRole::SharedRouter)?;
            let to = Product { x: &normed, y: &scores, y_stride: 1, y_offset: 0, add: false, bias: None };
            self.product(place, batch, to);
            self.residual(Addend { how: Addition::Gated, operand: Some(&scores), x: &parts }, batch.n);
        } else if !direct {
            self.residual(Addend { how: Addition::Scaled, operand: None, x: &parts }, batch.n);
        }
        Ok(())
    }

    /// Adds biases of the chosen experts (0: gate, 1: up, 2: down) to the vectors of their pairs.
    pub(super) fn expert_biases(&mut self, pairing: &Pairing<'_>, which: &[(usize, &Slice)], pairs: u32) {
        let Some(biases) = &pairing.places.biases else { return };
        let (slots, chosen) = (self.slot_table(pairing), self.model.scratch(Scratch::Chosen));
        for &(index, y) in which {
            let bias = &biases[index];
            for &(slot_first, slot_count, key) in &bias.chunks {
                let params = params::ExpertBias {
                    pairs,
                    width: bias.shape.cols,
                    experts: pairing.experts,
                    slot_first,
                    slot_count,
                    stride: (bias.stride / 4) as u32,
                    inside: (bias.inside / 4) as u32,
                };
                let values = self.model.memory.whole(key);
                let kernel = Kernel::ExpertBias;
                let groups = Self::groups(kernel, pairs * params.width);
                self.dispatch(kernel, &[&values, y, &slots, &chosen], &params, groups, 1);
            }
        }
    }

    /// The (token, expert) pairs of a block whose experts are held here.
    pub(super) fn pairing(&self, block: BlockIndex) -> Result<Pairing<'a>, EngineError> {
        let &ExpertsSpec { used, count: experts, activation, .. } = self.model.expert_spec(block)?;
        let first = WeightUnit::Expert(block, potluck_plan::ExpertId(0));
        let places = self.layout().experts.get(&block).ok_or(EngineError::NotResident(first))?;
        Ok(Pairing { places, used, experts, activation })
    }

    /// Outputs of the experts held here, from `Scratch::Normed` and `Scratch::Chosen` into `Scratch::Parts`: one vector
    /// per (token, expert) pair, unweighted.
    pub fn experts(&mut self, block: BlockIndex, batch: Batch) -> Result<(), EngineError> {
        let pairing = self.pairing(block)?;
        match batch.class {
            KernelClass::Decode => self.decode_experts(&pairing, batch),
            KernelClass::Prefill => self.prefill_experts(&pairing, batch),
        }
        Ok(())
    }

    /// The weighted sum of the experts held here, into `Scratch::Hidden`: the bits that [`Self::combine`] adds if all experts of a token are
    /// here.
    pub fn expert_sums(&mut self, block: BlockIndex, batch: Batch) -> Result<(), EngineError> {
        self.experts(block, batch)?;
        let hidden = self.model.scratch(Scratch::Hidden);
        self.weighted_sum(block, batch, &hidden, SumScale { scale: 1.0, add: false })
    }

    /// The chosen experts and their weighted sum, when all are here.
    pub fn experts_added(&mut self, block: BlockIndex, batch: Batch) -> Result<(), EngineError> {
        if self.fused_sum(block, batch)? {
            return self.end_experts(block, batch);
        }
        self.experts(block, batch)?;
        self.combine(block, batch)
    }

    /// Adds the weighted sum of the experts' outputs in `Scratch::Parts` to the hidden vectors.
    pub fn combine(&mut self, block: BlockIndex, batch: Batch) -> Result<(), EngineError> {
        let apart = self.model.expert_spec(block)?.apart;
        let y = self.model.scratch(if apart { Scratch::Sum } else { Scratch::Hidden });
        let scale = if apart { 1.0 } else { self.model.spec.scales.residual };
        self.weighted_sum(block, batch, &y, SumScale { scale, add: !apart })?;
        self.end_experts(block, batch)
    }

    /// The weighted sum of the experts' outputs in `Scratch::Parts`, in `y`.
    fn weighted_sum(&mut self, block: BlockIndex, batch: Batch, y: &Slice, to: SumScale) -> Result<(), EngineError> {
        let &ExpertsSpec { used, count: experts, weigh_input, .. } = self.model.expert_spec(block)?;
        let (chosen, gates) = (self.model.scratch(Scratch::Chosen), self.model.scratch(Scratch::Gates));
        let parts = self.model.scratch(Scratch::Parts);
        let (n, width) = (batch.n, self.model.spec.hidden / 4);
        let (add, weighted) = (u32::from(to.add), u32::from(!weigh_input));
        let params = params::Combine { n, width, experts, used, scale: to.scale, add, weighted };
        let kernel = Kernel::Combine;
        let groups = Self::groups(kernel, n * width);
        self.dispatch(kernel, &[&chosen, &gates, &parts, y], &params, groups, 1);
        Ok(())
    }

    /// What follows the experts' weighted sum.
    fn end_experts(&mut self, block: BlockIndex, batch: Batch) -> Result<(), EngineError> {
        if self.model.expert_spec(block)?.apart {
            return self.add_beside(block, batch);
        }
        self.end_block(WeightUnit::Router(block), batch.n)
    }

    /// Normalizes the experts' sum in `Scratch::Sum` and the output of the network beside them, adds the norm of both
    /// together to the hidden vectors, and ends the block. The network runs here, after the experts, because its output
    /// is not a part of what travels to other devices.
    fn add_beside(&mut self, block: BlockIndex, batch: Batch) -> Result<(), EngineError> {
        let (unit, shared) = (WeightUnit::Router(block), WeightUnit::SharedExpert(block));
        let activation = self.model.expert_spec(block)?.activation;
        let (sum, normed) = (self.model.scratch(Scratch::Sum), self.model.scratch(Scratch::Normed));
        let (hidden, up) = (self.model.scratch(Scratch::Hidden), self.model.scratch(Scratch::Up));
        let width = self.model.spec.hidden;
        let before = self.model.vector(shared, TensorRole::FeedForwardNorm)?;
        self.normed_gate_and_up(shared, activation, &before, batch)?;
        let down = self.model.place(shared, TensorRole::Down)?;
        let to = Product { x: &up, y: &normed, y_stride: width, y_offset: 0, add: false, bias: None };
        self.product(down, batch, to);

        let of_experts = self.model.vector(unit, TensorRole::ExpertsPostNorm)?;
        let after = self.model.vector(shared, TensorRole::FeedForwardPostNorm)?;
        let gain = self.model.vector(unit, TensorRole::FeedForwardPostNorm)?;
        if let Some(kernel) = self.model.profile.beside() {
            let scales = &self.model.spec.scales;
            let params = params::Beside {
                width: width / 4,
                scale: scales.residual,
                epsilon: self.model.spec.norm_epsilon,
                scaled: u32::from(scales.of_blocks),
            };
            let factor = if scales.of_blocks {
                self.model.vector(unit, TensorRole::BlockScale)?
            } else {
                // Nothing is read from it.
                gain.clone()
            };
            let bindings = [&normed, &sum, &hidden, &after, &of_experts, &gain, &factor];
            self.dispatch(kernel, &bindings, &params, batch.n, 1);
            return Ok(());
        }
        self.norm_in_place(&sum, &of_experts, RowPart { width, stride: width, offset: 0 }, batch.n);
        self.add_to(Addend { how: Addition::Normed, operand: Some(&after), x: &normed }, &sum, 1.0, batch.n);
        self.residual(Addend { how: Addition::Normed, operand: Some(&gain), x: &sum }, batch.n);
        self.end_block(unit, batch.n)
    }

    pub(super) fn slot_table(&self, pairing: &Pairing<'_>) -> Slice {
        let bytes = u64::from(pairing.experts) * 4;
        self.model.memory.slice(Key::Scratch(Scratch::Tables), pairing.places.table, bytes)
    }

    /// One matrix of the chosen experts, for listed pairs.
    pub(super) fn expert_product(
        &mut self,
        pairing: &Pairing<'_>,
        batch: Batch,
        product: &ExpertProduct<'_>,
        pairs: &PairList<'_>,
    ) {
        let &ExpertProduct { kernel, matrix, by_pair, x, y } = product;
        let &PairList { first, second, z } = pairs;
        let shape = matrix.shape;
        let vectors = if by_pair { batch.n * pairing.used } else { batch.n };
        let (x, x_stride) = self.input(kernel, x, vectors, shape.cols);
        for &(slot_first, slot_count, key) in &matrix.chunks {
            let params = params::MatVec {
                rows: shape.rows,
                row_bytes: shape.row_bytes,
                cols: shape.cols,
                chunks: shape.chunks(),
                n: batch.n * pairing.used,
                x_stride,
                y_stride: shape.rows,
                y_offset: 0,
                add: 0,
                experts: pairing.experts,
                used: pairing.used,
                by_pair: u32::from(by_pair),
                slot_first,
                slot_count,
                expert_bytes: matrix.stride as u32,
            };
            let mut weights = self.model.memory.whole(key);
            weights.offset += matrix.inside;
            weights.size -= matrix.inside;
            let groups = shape.rows.div_ceil(kernel.matrix_rows());
            self.dispatch(kernel, &[&weights, &x, y, first, second], &params, groups, z);
            self.rec.cost(shape.bytes() * u64::from(z));
        }
    }
}
