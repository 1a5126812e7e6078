//! Which kernel variants the held units need on this device.

use std::collections::{BTreeMap, BTreeSet};

use potluck_model::{ExpertsSpec, FeedForwardSpec, QkNorm, RecurrentSpec, Rule, TensorRole};
use potluck_plan::{BlockIndex, ExpertId, WeightUnit};
use potluck_shaders::{Addition, Dots, Format, Glu, Job, Kernel, KernelVariant, Operand, PackedTile, Tile, TileKind};

use crate::runtime::encode::fused::gate_job;
use crate::runtime::encode::fused_experts::expert_jobs;
use crate::runtime::encode::recurrent::{conv, scan};
use crate::runtime::encode::{Encoder, activation, extras, pairs};
use crate::runtime::layout::ExpertPlaces;
use crate::runtime::model::Model;
use crate::runtime::tensors::{self, Shape};
use crate::runtime::tuning_table::Shape as Tunable;

impl Model {
    /// Every variant that work on the held units may use.
    pub fn kernels_in_use(&self) -> BTreeSet<Kernel> {
        self.kernels_of(self.weights.held())
    }

    /// Every variant that work on some of the held units may use.
    pub fn kernels_of(&self, units: &BTreeSet<WeightUnit>) -> BTreeSet<Kernel> {
        let mut all = BTreeSet::new();
        for &unit in units {
            match unit {
                WeightUnit::Embedding => self.embedding_kernels(unit, &mut all),
                WeightUnit::LmHead => {
                    all.extend([self.profile.norm(), self.profile.segments(), self.profile.top()]);
                    all.extend(self.profile.sampler());
                    all.extend([self.profile.log_sum_exp(), Kernel::BiasLogits, Kernel::MaskLogits]);
                    all.extend(self.scales_logits().then_some(Kernel::ScaleLogits));
                    let matrices = self.formats(unit).filter(|(role, _)| *role != TensorRole::OutputNorm);
                    for (_, format) in matrices {
                        self.decode_kernels(format, Some(Job::Normed), Operand::Plain, &mut all);
                    }
                }
                WeightUnit::TokenMixer(block) => self.token_mixer_kernels(unit, usize::from(block.0), &mut all),
                WeightUnit::Dense(block) => self.dense_kernels(unit, usize::from(block.0), &mut all),
                WeightUnit::Router(block) | WeightUnit::SharedExpert(block) => {
                    self.router_kernels(unit, usize::from(block.0), &mut all);
                }
                WeightUnit::Expert(..) => {}
            }
        }
        let has_experts = |block: BlockIndex, places: &ExpertPlaces| {
            // Of a pool no unit is held.
            let some = WeightUnit::Expert(block, ExpertId(0))..=WeightUnit::Expert(block, ExpertId(u16::MAX));
            places.slots.is_empty() || units.range(some).next().is_some()
        };
        for (block, places) in
            self.memory.layout().experts.iter().filter(|(block, places)| has_experts(**block, places))
        {
            if let Some(experts) = self.spec.experts(usize::from(block.0)) {
                let formats = [&places.gate, &places.up, &places.down].map(|matrix| matrix.shape.format);
                // Whoever chooses experts elsewhere also adds them up.
                let sums = self.weights.holds(WeightUnit::Router(*block)) && Encoder::can_sum(experts, places);
                self.expert_kernels(experts, formats, sums, &mut all);
            }
        }
        for (experts, formats) in self.experts_to_come() {
            self.expert_kernels(experts, formats, false, &mut all);
        }
        if all.iter().any(|kernel| matches!(kernel, Kernel::Packed { .. })) {
            all.insert(Kernel::Quantize);
        }
        if all.iter().any(|kernel| matches!(kernel, Kernel::Matrix { .. })) {
            all.insert(Kernel::Halve);
        }
        all
    }

    /// Kernels of the embedding, and of the inputs of blocks.
    fn embedding_kernels(&self, unit: WeightUnit, all: &mut BTreeSet<Kernel>) {
        let tables = self.formats(unit).filter(|(role, _)| is_table(*role));
        all.extend(tables.map(|(_, format)| Kernel::Embed(format)));
        if self.spec.block_inputs.is_some() {
            all.insert(self.profile.residual(Addition::Normed));
            self.matrix_kernels(unit, |_| (Operand::Plain, None), all);
        }
    }

    /// Experts of other blocks, with the formats of gate, up and down. A device that computes experts for a stage elsewhere may
    /// be told to hold any others while answers go on, and must not compile kernels then.
    fn experts_to_come(&self) -> impl Iterator<Item = (&ExpertsSpec, [Format; 3])> {
        let serves = self.memory.layout().experts.iter().any(|(block, places)| {
            let all = self.spec.experts(usize::from(block.0)).map_or(0, |experts| experts.count);
            let is_part = (1..all as usize).contains(&places.slots.len());
            is_part || !places.slots.is_empty() && !self.weights.holds(WeightUnit::Router(*block))
        });
        let blocks = (0..self.spec.blocks.len()).filter(move |_| serves);
        let others = blocks.filter(|block| !self.memory.layout().experts.contains_key(&BlockIndex(*block as u16)));
        others.filter_map(|block| Some((self.spec.experts(block)?, self.expert_formats(BlockIndex(block as u16))?)))
    }

    /// The formats of gate, up and down of a block's experts, held or not.
    fn expert_formats(&self, block: BlockIndex) -> Option<[Format; 3]> {
        let unit = WeightUnit::Expert(block, ExpertId(0));
        let format = |role| {
            let tensor = self.units.tensors(unit).iter().find(|tensor| tensor.role == role)?;
            tensors::shape(&self.spec, unit, tensor).ok().map(|shape| shape.format)
        };
        Some([format(TensorRole::Gate)?, format(TensorRole::Up)?, format(TensorRole::Down)?])
    }

    /// Kernels of experts with these formats of gate, up and down, and of their sum.
    fn expert_kernels(
        &self,
        experts: &ExpertsSpec,
        [gate, up, down]: [Format; 3],
        sums: bool,
        all: &mut BTreeSet<Kernel>,
    ) {
        all.insert(activation(experts.activation));
        all.extend(experts.biases.then_some(Kernel::ExpertBias));
        if let Some([gated, product, sum]) = expert_jobs(experts.activation, experts.biases) {
            for (format, job) in [(gate, gated), (down, product)].into_iter().chain(sums.then_some((down, sum))) {
                all.extend(self.profile.fused(format, job, 1));
                all.extend(self.profile.variants(format, job));
            }
        }
        for format in [gate, up, down] {
            all.insert(self.profile.decode(format, Operand::Expert, 1));
            let prefill = self.profile.prefill_experts(format);
            if prefill.is_tiled() {
                all.insert(self.profile.groups());
            }
            all.insert(prefill);
        }
    }

    /// Kernels to tune: each kernel in use whose kind has no measurements, with its alternatives.
    pub fn kernels_to_tune(&self) -> Vec<(Kernel, Vec<Kernel>)> {
        let tuning = self.profile.tuning();
        let decodes = |format, job, dots: Option<Dots>| {
            let same = |shape: &Tunable| {
                matches!(*shape, Tunable::Decode { format: f, packed, job: j, .. }
                    if (f, packed, j) == (format, dots.is_some(), job))
            };
            tuning.iter().any(|(shape, _)| same(shape))
        };
        let prefills = |format| {
            let same = |shape: &Tunable| matches!(*shape, Tunable::Prefill { format: f, .. } if f == format);
            tuning.iter().any(|(shape, _)| same(shape))
        };
        let packed = |format| {
            let same = |shape: &Tunable| matches!(*shape, Tunable::Packed { format: f, .. } if f == format);
            tuning.iter().any(|(shape, _)| same(shape))
        };
        let mut all: BTreeMap<Kernel, Vec<Kernel>> = BTreeMap::new();
        for kernel in self.kernels_in_use() {
            match kernel {
                Kernel::Fused { format, rows: 1, job, variant, dots }
                    if variant == KernelVariant::portable(job) && !decodes(format, job, dots) =>
                {
                    all.insert(kernel, kernel.variants(self.gpu.capabilities().subgroup).split_off(1));
                }
                Kernel::Joined { first, dots, .. } if !decodes(first, Job::Normed, dots) => {
                    let mut variants = kernel.variants(self.gpu.capabilities().subgroup);
                    all.insert(variants.remove(0), variants);
                }
                Kernel::MatMul { format, operand: operand @ (Operand::Plain | Operand::Bias), tile }
                    if tile.kind() == TileKind::Shared && !prefills(format) =>
                {
                    let of = |tile| Kernel::MatMul { format, operand, tile };
                    let (portable, others) = (of(Tile::V32R32), Tile::CANDIDATES.into_iter().skip(1).map(of));
                    all.insert(portable, others.collect());
                }
                Kernel::Packed { format, operand: operand @ (Operand::Plain | Operand::Bias), dots, .. }
                    if !packed(format) =>
                {
                    let of = |tile| Kernel::Packed { format, operand, tile, dots };
                    let [portable, others @ ..] = PackedTile::ALL.map(of);
                    all.insert(portable, others.into());
                }
                _ => {}
            }
        }
        all.into_iter().collect()
    }

    /// Roles and formats of a unit's tensors.
    fn formats(&self, unit: WeightUnit) -> impl Iterator<Item = (TensorRole, potluck_shaders::Format)> {
        self.units.tensors(unit).iter().enumerate().filter_map(move |(index, tensor)| {
            self.memory.layout().places.get(&(unit, index)).map(|place| (tensor.role, place.shape.format))
        })
    }

    /// A signature that is equal for units whose tensors have the same roles, types and sizes.
    pub fn signature(&self, unit: WeightUnit) -> String {
        format!("{:?}", self.matrices(unit).collect::<Vec<_>>())
    }

    /// Roles and shapes of a unit's tensors.
    fn matrices(&self, unit: WeightUnit) -> impl Iterator<Item = (TensorRole, Shape)> {
        self.units.tensors(unit).iter().enumerate().filter_map(move |(index, tensor)| {
            self.memory.layout().places.get(&(unit, index)).map(|place| (tensor.role, place.shape))
        })
    }

    /// Kernels of a unit's matrices; its norms and biases are vectors. `how` tells the operand and the fused job of each.
    fn matrix_kernels(
        &self,
        unit: WeightUnit,
        how: impl Fn(TensorRole) -> (Operand, Option<Job>),
        all: &mut BTreeSet<Kernel>,
    ) {
        for (role, shape) in self.matrices(unit).filter(|(role, _)| !role.is_vector() && !is_table(*role)) {
            let (operand, job) = how(role);
            self.decode_kernels(shape.format, job, operand, all);
            all.extend(self.profile.every_prefill(
                shape.format,
                operand,
                shape.rows,
                shape.cols,
                self.memory.layout().prefill_tokens,
            ));
        }
        let normed = self.matrices(unit).filter(|(role, _)| !role.is_vector() && how(*role).1 == Some(Job::Normed));
        let formats: BTreeSet<Format> = normed.map(|(_, shape)| shape.format).collect();
        let pairs = Kernel::JOINED.into_iter().filter(|(first, second)| first != second);
        let pairs = pairs.filter(|(first, second)| formats.contains(first) && formats.contains(second));
        all.extend(pairs.flat_map(|pair| self.profile.all_joined(pair)));
    }

    /// Kernel of an output that is not added to the hidden vectors by its product.
    fn addition_kernel(&self, normed: bool) -> Option<Kernel> {
        if normed {
            Some(self.profile.residual(Addition::Normed))
        } else if self.spec.scales.residual != 1.0 {
            Some(self.profile.residual(Addition::Scaled))
        } else {
            None
        }
    }

    fn dense_kernels(&self, unit: WeightUnit, block: usize, all: &mut BTreeSet<Kernel>) {
        let FeedForwardSpec::Dense(dense) = &self.spec.blocks[block].feed_forward else { return };
        let addition = self.addition_kernel(dense.norms.after);
        let gate = gate_job(dense.activation).filter(|_| dense.norms.before);
        all.extend(dense.norms.before.then(|| self.profile.norm()));
        all.insert(activation(dense.activation));
        all.extend(addition);
        all.extend(self.spec.scales.of_blocks.then_some(Kernel::ScaleBy { expert: false }));
        if self.spec.block_inputs.is_some() {
            all.extend([Kernel::GateInput, self.profile.residual(Addition::Normed)]);
        }
        let how = |role| match role {
            TensorRole::Down | TensorRole::InputGate | TensorRole::InputProjection => (Operand::Plain, None),
            _ => (Operand::Plain, gate),
        };
        self.matrix_kernels(unit, how, all);
    }

    /// Kernels of a router or a shared expert.
    fn router_kernels(&self, unit: WeightUnit, block: usize, all: &mut BTreeSet<Kernel>) {
        let Some(experts) = self.spec.experts(block) else { return };
        if let (WeightUnit::SharedExpert(_), Some(shared)) = (unit, experts.shared) {
            let gated = shared.gated.then(|| self.profile.residual(Addition::Gated));
            let addition = gated.or_else(|| self.addition_kernel(experts.apart));
            all.insert(activation(experts.activation));
            all.extend(addition);
            let has = |(role, format)| match role {
                TensorRole::Down => self.profile.fused(format, Job::Scored, 1).is_some(),
                TensorRole::SharedRouter => self.profile.fused(format, Job::Normed, 1).is_some(),
                _ => true,
            };
            let scores = Encoder::can_score(experts) && self.formats(unit).all(has);
            if scores {
                // The routers of both.
                all.extend(self.profile.all_joined((Format::F32, Format::F32)));
            }
            let how = |role| match role {
                TensorRole::Down => (Operand::Plain, scores.then_some(Job::Scored)),
                TensorRole::SharedRouter => (Operand::Plain, scores.then_some(Job::Normed)),
                _ => (Operand::Plain, gate_job(experts.activation)),
            };
            return self.matrix_kernels(unit, how, all);
        }
        all.extend([self.profile.norm(), self.profile.router(&experts.router), Kernel::Combine]);
        all.extend(self.profile.route(&experts.router));
        all.extend(experts.router.expert_scales.then_some(Kernel::ScaleBy { expert: true }));
        all.extend(experts.weigh_input.then_some(Kernel::ScaleBy { expert: false }));
        all.extend(self.spec.scales.of_blocks.then_some(Kernel::ScaleBy { expert: false }));
        all.extend(experts.apart.then(|| self.profile.beside()).flatten());
        all.extend(experts.apart.then(|| self.profile.norm_part()));
        all.extend(experts.apart.then(|| self.profile.residual(Addition::Normed)));
        let how = |_| {
            if experts.router.bias {
                (Operand::Bias, Some(Job::NormedBias))
            } else {
                (Operand::Plain, Some(Job::Normed))
            }
        };
        self.matrix_kernels(unit, how, all);
    }

    /// Decode kernels of a matrix: the fused kernel if it computes correctly on this device. Without a job: a product
    /// by itself, perhaps with a bias or added to the output.
    fn decode_kernels(&self, format: Format, job: Option<Job>, operand: Operand, all: &mut BTreeSet<Kernel>) {
        let job = job.or(match operand {
            Operand::Plain => Some(Job::Added),
            Operand::Bias => Some(Job::AddedBias),
            Operand::Expert => None,
        });
        all.extend([1, 4].map(|n| {
            let fused = job.and_then(|job| self.profile.fused(format, job, n));
            fused.unwrap_or_else(|| self.profile.decode(format, operand, n))
        }));
        all.extend(job.into_iter().flat_map(|job| self.profile.variants(format, job)));
    }

    /// Kernels of a recurrence.
    fn recurrent_kernels(&self, unit: WeightUnit, r: &RecurrentSpec, all: &mut BTreeSet<Kernel>) {
        all.extend([self.profile.norm(), conv(r)]);
        all.extend(scan(r).map(|scan| self.profile.scan(scan)));
        all.extend(matches!(r.rule, Rule::StateSpace(_)).then(|| self.profile.norm_part()));
        all.extend(self.addition_kernel(false));
        let how = |role| match role {
            TensorRole::StateOutput => (Operand::Plain, None),
            _ => (Operand::Plain, Some(Job::Normed)),
        };
        self.matrix_kernels(unit, how, all);
    }

    fn token_mixer_kernels(&self, unit: WeightUnit, block: usize, all: &mut BTreeSet<Kernel>) {
        if let Some(recurrent) = self.spec.recurrent(block) {
            return self.recurrent_kernels(unit, recurrent, all);
        }
        let a = self.spec.attention(block);
        let kv_type = self.settings.kv_cache;
        let (qk_norm, factors) = (matches!(a.qk_norm, QkNorm::Head | QkNorm::Unit), self.rope_factors(a).is_some());
        all.extend(a.norms.before.then(|| self.profile.norm()));
        all.extend((a.qk_norm == QkNorm::Row).then(|| self.profile.norm_part()));
        all.insert(Kernel::Rope { kv_type, pairs: pairs(a), qk_norm, factors });
        all.extend(a.latent.map(|_| self.profile.norm_part()));
        all.extend(a.output_gate.then_some([Kernel::QueryGates, Kernel::Glu(Glu::Sigmoid)]).into_iter().flatten());
        let (quads, extras) = ((a.head_dim / 4) as u16, extras(a));
        all.insert(self.profile.attention(kv_type, quads, extras));
        all.extend(self.profile.split(kv_type, quads, a.heads / a.kv_heads.max(1), extras).into_iter().flatten());
        all.extend(self.profile.flash_attention(kv_type, quads, extras));
        all.extend(self.addition_kernel(a.norms.after));
        let job = if a.qkv_bias { Job::NormedBias } else { Job::Normed };
        let operand = |bias| if bias { Operand::Bias } else { Operand::Plain };
        let how = |role| match role {
            TensorRole::AttentionOutput => (operand(a.output_bias), None),
            TensorRole::KeyUp | TensorRole::ValueUp => (Operand::Expert, None),
            TensorRole::Query if a.latent.is_some() => (Operand::Expert, None),
            _ if a.latent.is_some() => (Operand::Plain, None),
            _ => (operand(a.qkv_bias), a.norms.before.then_some(job)),
        };
        self.matrix_kernels(unit, how, all);
    }
}

/// Tensors of which tokens look up rows.
fn is_table(role: TensorRole) -> bool {
    matches!(role, TensorRole::TokenEmbedding | TensorRole::BlockEmbedding)
}
