//! The feed-forward half of a block with experts: routing, the chosen experts, and their weighted sum. Each part is the
//! same whether the experts are here or elsewhere, so that the bits are too.

use potluck_model::{Activation, ExpertsSpec, FeedForwardSpec, SharedSpec, TensorRole};
use potluck_plan::{BlockIndex, KernelClass, WeightUnit};
use potluck_shaders::{Addition, Job, Kernel, params};

use super::{Batch, Pairing, Product};
use crate::runtime::core::Core;
use crate::runtime::error::EngineError;
use crate::runtime::layout::{ExpertMatrix, Key, Layout, Place, Scratch};
use crate::runtime::memory::Slice;
use crate::runtime::recorder::Recorder;

impl Core {
    /// Experts used per token, and experts of the block.
    pub fn routing(&self, block: BlockIndex) -> Result<(u32, u32), EngineError> {
        let experts = self.expert_spec(block)?;
        Ok((experts.used, experts.count))
    }

    /// The description of a block's experts.
    pub(super) fn expert_spec(&self, block: BlockIndex) -> Result<&ExpertsSpec, EngineError> {
        match self.spec.blocks.get(usize::from(block.0)).map(|block| &block.feed_forward) {
            Some(FeedForwardSpec::Experts(experts)) => Ok(experts),
            Some(FeedForwardSpec::Dense(_)) => Err(EngineError::NoExperts(block)),
            None => Err(EngineError::NoSuchBlock(block)),
        }
    }

    /// Norm and expert selection: the normed vectors, the chosen experts and their weights. A shared expert's output is
    /// added to the hidden vectors here, so that it does not matter where the others run.
    pub fn route(
        &mut self,
        rec: &mut Recorder,
        layout: &Layout,
        block: BlockIndex,
        batch: Batch,
    ) -> Result<(), EngineError> {
        let unit = WeightUnit::Router(block);
        let experts = self.expert_spec(block)?.clone();
        let gain = self.vector(layout, unit, TensorRole::FeedForwardNorm)?;
        let place = self.place(layout, unit, TensorRole::Router)?;
        let (own, factor) = match experts.router.own_norm {
            true => (self.vector(layout, unit, TensorRole::RouterNorm)?, 1.0 / (self.spec.hidden as f32).sqrt()),
            false => (gain.clone(), 1.0),
        };
        let bias = match experts.router.bias {
            true => Some(self.vector(layout, unit, TensorRole::RouterBias)?),
            false => None,
        };
        let fuses = batch.class == KernelClass::Decode;
        let scored = match fuses && Self::can_score(&experts) {
            true => self.scored_by(layout, block, batch.n)?,
            false => None,
        };
        // One vector's scores lie one after the other; those of several follow in a dispatch of their own.
        let routers = (place, scored.filter(|_| batch.n == 1));
        let fused = fuses && self.fused_scores(rec, routers, bias.as_ref(), (&own, factor), batch.n);
        let scored = scored.filter(|_| fused);
        if !fused {
            self.norm_times(rec, &own, factor, (0, batch.n));
            let (normed, scores) = (self.scratch(Scratch::Normed), self.scratch(Scratch::Scores));
            let to = Product { x: &normed, y: &scores, y_stride: experts.count, y_offset: 0, add: false, bias };
            self.product(rec, place, batch, to);
        }
        let to_norm = (fused || experts.router.own_norm).then_some(&gain);
        self.choose(rec, layout, block, (&experts, to_norm), batch.n)?;
        if let Some(shared) = experts.shared.filter(|_| !experts.apart) {
            let how = (experts.activation, shared, scored.map(|router| (router, experts.count)));
            self.shared_expert(rec, layout, block, how, &gain, batch)?;
        }
        if experts.weigh_input {
            let (normed, gates) = (self.scratch(Scratch::Normed), self.scratch(Scratch::Gates));
            let row = self.spec.hidden;
            let params = params::ScaleBy { count: batch.n * row, factors: batch.n, row };
            let kernel = Kernel::ScaleBy { expert: false };
            let groups = Self::groups(kernel, params.count);
            rec.dispatch(&mut self.tools(), kernel, &[&gates, &normed], &params, groups, 1);
        }
        Ok(())
    }

    /// The router of the network beside the experts, if the product that reads its scores has a kernel here.
    fn scored_by<'a>(&self, layout: &'a Layout, block: BlockIndex, n: u32) -> Result<Option<&'a Place>, EngineError> {
        let unit = WeightUnit::SharedExpert(block);
        let (router, down) =
            (self.place(layout, unit, TensorRole::SharedRouter)?, self.place(layout, unit, TensorRole::Down)?);
        let jobs = [(router, Job::Normed), (down, Job::Scored)];
        let can = jobs.iter().all(|(place, job)| self.profile.fused(place.shape.format, *job, n as usize).is_some());
        Ok((can && down.segments.len() == 1).then_some(router))
    }

    /// Selects the best experts from each token's scores, and normalizes the hidden vectors for them if it gets the
    /// gain.
    fn choose(
        &mut self,
        rec: &mut Recorder,
        layout: &Layout,
        block: BlockIndex,
        (spec, gain): (&ExpertsSpec, Option<&Slice>),
        n: u32,
    ) -> Result<(), EngineError> {
        let (experts, used, router) = (spec.count, spec.used, &spec.router);
        let scores = self.scratch(Scratch::Scores);
        let (chosen, gates) = (self.scratch(Scratch::Chosen), self.scratch(Scratch::Gates));
        let kernel = self.profile.router(router);
        let normalize = u32::from(router.normalize);
        if let (Some(gain), Some(kernel)) = (gain, self.profile.route(router)) {
            let (hidden, normed) = (self.scratch(Scratch::Hidden), self.scratch(Scratch::Normed));
            let (width, epsilon) = (self.spec.hidden / 4, self.spec.norm_epsilon);
            let factors = match router.expert_scales {
                true => self.vector(layout, WeightUnit::Router(block), TensorRole::ExpertScales)?,
                // Nothing is read from it.
                false => gain.clone(),
            };
            let scaled = u32::from(router.expert_scales);
            let params = params::Route { n, experts, used, normalize, width, epsilon, scaled };
            let bindings = [&scores, &chosen, &gates, &hidden, gain, &normed, &factors];
            rec.dispatch(&mut self.tools(), kernel, &bindings, &params, n, 2);
            return Ok(());
        }
        if let Some(gain) = gain {
            self.norm(rec, gain, 0, n);
        }
        let groups = if kernel.fallback().is_some() { n } else { Self::groups(kernel, n) };
        let unit = WeightUnit::Router(block);
        if let Kernel::Choose { .. } = kernel {
            let (groups_of, used_groups) = router.groups.map_or((1, 1), |groups| (groups.count, groups.used));
            let params =
                params::Choose { n, experts, used, normalize, scale: router.scale, groups: groups_of, used_groups };
            let bias = match router.selection_bias {
                true => Some(self.vector(layout, unit, TensorRole::SelectionBias)?),
                false => None,
            };
            let mut bindings = vec![&scores, &chosen, &gates];
            bindings.extend(&bias);
            rec.dispatch(&mut self.tools(), kernel, &bindings, &params, groups, 1);
        } else {
            let params = params::Router { n, experts, used, normalize };
            rec.dispatch(&mut self.tools(), kernel, &[&scores, &chosen, &gates], &params, groups, 1);
        }
        if router.expert_scales {
            let factors = self.vector(layout, unit, TensorRole::ExpertScales)?;
            let params = params::ScaleBy { count: n * used, factors: experts, row: 1 };
            let kernel = Kernel::ScaleBy { expert: true };
            let groups = Self::groups(kernel, params.count);
            rec.dispatch(&mut self.tools(), kernel, &[&factors, &gates, &chosen], &params, groups, 1);
        }
        Ok(())
    }

    /// The network beside the experts, from the normed vectors, added to the hidden ones.
    fn shared_expert(
        &mut self,
        rec: &mut Recorder,
        layout: &Layout,
        block: BlockIndex,
        (activation, shared, scored): (Activation, SharedSpec, Option<(&Place, u32)>),
        gain: &Slice,
        batch: Batch,
    ) -> Result<(), EngineError> {
        let unit = WeightUnit::SharedExpert(block);
        let normed = self.scratch(Scratch::Normed);
        let fuses = batch.class == KernelClass::Decode;
        if let Some((router, _)) = scored.filter(|_| batch.n > 1) {
            self.fused_scores(rec, (router, None), None, (gain, 1.0), batch.n);
        }
        if !fuses || !self.fused_gate(rec, layout, unit, (activation, gain), batch.n)? {
            self.gate_and_up(rec, layout, unit, activation, &normed, batch)?;
        }
        let (up, parts) = (self.scratch(Scratch::Up), self.scratch(Scratch::Parts));
        let width = self.spec.hidden;
        let down = self.place(layout, unit, TensorRole::Down)?;
        if let Some((_, experts)) = scored {
            let first = if batch.n == 1 { experts } else { 0 };
            self.fused_scored(rec, down, (&up, first), batch.n);
            return Ok(());
        }
        let direct = !shared.gated && self.spec.scales.residual == 1.0;
        let hidden = self.scratch(Scratch::Hidden);
        let y = if direct { &hidden } else { &parts };
        let to = Product { x: &up, y, y_stride: width, y_offset: 0, add: direct, bias: None };
        self.product(rec, down, batch, to);
        if shared.gated {
            let scores = self.scratch(Scratch::Scores);
            let place = self.place(layout, unit, TensorRole::SharedRouter)?;
            let to = Product { x: &normed, y: &scores, y_stride: 1, y_offset: 0, add: false, bias: None };
            self.product(rec, place, batch, to);
            self.residual(rec, (Addition::Gated, Some(&scores)), &parts, batch.n);
        } else if !direct {
            self.residual(rec, (Addition::Scaled, None), &parts, batch.n);
        }
        Ok(())
    }

    /// Adds biases of the chosen experts (0: gate, 1: up, 2: down) to the vectors of their pairs.
    pub(super) fn expert_biases(
        &mut self,
        rec: &mut Recorder,
        pairing: &Pairing<'_>,
        which: &[(usize, &Slice)],
        pairs: u32,
    ) {
        let Some(biases) = &pairing.places.biases else { return };
        let (slots, chosen) = (self.slot_table(pairing), self.scratch(Scratch::Chosen));
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
                let values = self.memory.whole(key);
                let kernel = Kernel::ExpertBias;
                let groups = Self::groups(kernel, pairs * params.width);
                rec.dispatch(&mut self.tools(), kernel, &[&values, y, &slots, &chosen], &params, groups, 1);
            }
        }
    }

    /// The (token, expert) pairs of a block whose experts are held here.
    pub(super) fn pairing<'a>(&self, layout: &'a Layout, block: BlockIndex) -> Result<Pairing<'a>, EngineError> {
        let &ExpertsSpec { used, count: experts, activation, .. } = self.expert_spec(block)?;
        let first = WeightUnit::Expert(block, potluck_plan::ExpertId(0));
        let places = layout.experts.get(&block).ok_or(EngineError::NotResident(first))?;
        Ok(Pairing { places, used, experts, activation })
    }

    /// Outputs of the experts held here, from `Scratch::Normed` and `Scratch::Chosen` into `Scratch::Parts`: one vector
    /// per (token, expert) pair, unweighted.
    pub fn experts(
        &mut self,
        rec: &mut Recorder,
        layout: &Layout,
        block: BlockIndex,
        batch: Batch,
    ) -> Result<(), EngineError> {
        let pairing = self.pairing(layout, block)?;
        match batch.class {
            KernelClass::Decode => self.decode_experts(rec, &pairing, batch),
            KernelClass::Prefill => self.prefill_experts(rec, &pairing, batch),
        }
        Ok(())
    }

    /// The chosen experts and their weighted sum, when all are here.
    pub fn experts_added(
        &mut self,
        rec: &mut Recorder,
        layout: &Layout,
        block: BlockIndex,
        batch: Batch,
    ) -> Result<(), EngineError> {
        if self.fused_sum(rec, layout, block, batch)? {
            return self.end_experts(rec, layout, block, batch);
        }
        self.experts(rec, layout, block, batch)?;
        self.combine(rec, layout, block, batch)
    }

    /// Adds the weighted sum of the experts' outputs in `Scratch::Parts` to the hidden vectors.
    pub fn combine(
        &mut self,
        rec: &mut Recorder,
        layout: &Layout,
        block: BlockIndex,
        batch: Batch,
    ) -> Result<(), EngineError> {
        let &ExpertsSpec { used, count: experts, apart, weigh_input, .. } = self.expert_spec(block)?;
        let (chosen, gates) = (self.scratch(Scratch::Chosen), self.scratch(Scratch::Gates));
        let parts = self.scratch(Scratch::Parts);
        let y = self.scratch(if apart { Scratch::Sum } else { Scratch::Hidden });
        let (n, width, scale) = (batch.n, self.spec.hidden / 4, if apart { 1.0 } else { self.spec.scales.residual });
        let (add, weighted) = (u32::from(!apart), u32::from(!weigh_input));
        let params = params::Combine { n, width, experts, used, scale, add, weighted };
        let kernel = Kernel::Combine;
        let groups = Self::groups(kernel, n * width);
        rec.dispatch(&mut self.tools(), kernel, &[&chosen, &gates, &parts, &y], &params, groups, 1);
        self.end_experts(rec, layout, block, batch)
    }

    /// What follows the experts' weighted sum.
    fn end_experts(
        &mut self,
        rec: &mut Recorder,
        layout: &Layout,
        block: BlockIndex,
        batch: Batch,
    ) -> Result<(), EngineError> {
        if self.expert_spec(block)?.apart {
            return self.add_beside(rec, layout, block, batch);
        }
        self.end_block(rec, layout, WeightUnit::Router(block), batch.n)
    }

    /// Normalizes the experts' sum in `Scratch::Sum` and the output of the network beside them, adds the norm of both
    /// together to the hidden vectors, and ends the block. The network runs here, after the experts, because its output
    /// is not a part of what travels to other devices.
    fn add_beside(
        &mut self,
        rec: &mut Recorder,
        layout: &Layout,
        block: BlockIndex,
        batch: Batch,
    ) -> Result<(), EngineError> {
        let (unit, shared) = (WeightUnit::Router(block), WeightUnit::SharedExpert(block));
        let activation = self.expert_spec(block)?.activation;
        let (sum, normed) = (self.scratch(Scratch::Sum), self.scratch(Scratch::Normed));
        let (hidden, up) = (self.scratch(Scratch::Hidden), self.scratch(Scratch::Up));
        let width = self.spec.hidden;
        let before = self.vector(layout, shared, TensorRole::FeedForwardNorm)?;
        self.normed_gate_and_up(rec, layout, shared, (activation, &before), batch)?;
        let down = self.place(layout, shared, TensorRole::Down)?;
        let to = Product { x: &up, y: &normed, y_stride: width, y_offset: 0, add: false, bias: None };
        self.product(rec, down, batch, to);

        let of_experts = self.vector(layout, unit, TensorRole::ExpertsPostNorm)?;
        let after = self.vector(layout, shared, TensorRole::FeedForwardPostNorm)?;
        let gain = self.vector(layout, unit, TensorRole::FeedForwardPostNorm)?;
        if let Some(kernel) = self.profile.beside() {
            let scales = &self.spec.scales;
            let params = params::Beside {
                width: width / 4,
                scale: scales.residual,
                epsilon: self.spec.norm_epsilon,
                scaled: u32::from(scales.of_blocks),
            };
            let factor = match scales.of_blocks {
                true => self.vector(layout, unit, TensorRole::BlockScale)?,
                // Nothing is read from it.
                false => gain.clone(),
            };
            let bindings = [&normed, &sum, &hidden, &after, &of_experts, &gain, &factor];
            rec.dispatch(&mut self.tools(), kernel, &bindings, &params, batch.n, 1);
            return Ok(());
        }
        self.norm_in_place(rec, (&sum, &of_experts), (width, width, 0), batch.n);
        self.add_to(rec, (Addition::Normed, Some(&after)), (&normed, &sum), 1.0, batch.n);
        self.residual(rec, (Addition::Normed, Some(&gain)), &sum, batch.n);
        self.end_block(rec, layout, unit, batch.n)
    }

    pub(super) fn slot_table(&self, pairing: &Pairing<'_>) -> Slice {
        let bytes = u64::from(pairing.experts) * 4;
        self.memory.slice(Key::Scratch(Scratch::Tables), pairing.places.table, bytes)
    }

    /// One matrix of the chosen experts, with a kernel that takes `z` pairs or tiles described by `first` and `second`.
    pub(super) fn expert_product(
        &mut self,
        rec: &mut Recorder,
        pairing: &Pairing<'_>,
        batch: Batch,
        (kernel, matrix, by_pair): (Kernel, &ExpertMatrix, bool),
        (x, y): (&Slice, &Slice),
        (first, second, z): (&Slice, &Slice, u32),
    ) {
        let shape = matrix.shape;
        let vectors = if by_pair { batch.n * pairing.used } else { batch.n };
        let (x, x_stride) = self.input(rec, kernel, x, (vectors, shape.cols));
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
            let mut weights = self.memory.whole(key);
            weights.offset += matrix.inside;
            weights.size -= matrix.inside;
            let groups = shape.rows.div_ceil(kernel.matrix_rows());
            rec.dispatch(&mut self.tools(), kernel, &[&weights, &x, y, first, second], &params, groups, z);
            rec.cost(shape.bytes() * u64::from(z));
        }
    }
}
