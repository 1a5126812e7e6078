//! Which kernel variants the held units need on this device.

use std::collections::{BTreeMap, BTreeSet};

use potluck_model::{RopePairs, TensorRole};
use potluck_plan::WeightUnit;
use potluck_shaders::{Format, Job, Kernel, KernelVariant, Operand, Pairs, Tile, TileKind};

use crate::runtime::core::Core;
use crate::runtime::layout::ExpertPlaces;
use crate::runtime::tensors::Shape;
use crate::runtime::tuning_table::Shape as Tunable;

impl Core {
    /// Every variant that work on the held units may use.
    pub fn kernels_in_use(&self) -> BTreeSet<Kernel> {
        let mut all = BTreeSet::new();
        for &unit in &self.held {
            match unit {
                WeightUnit::Embedding => all.extend(self.formats(unit).map(|(_, format)| Kernel::Embed(format))),
                WeightUnit::LmHead => {
                    all.extend([self.profile.norm(), Kernel::Segments, self.profile.top()]);
                    let matrices = self.formats(unit).filter(|(role, _)| *role != TensorRole::OutputNorm);
                    for (_, format) in matrices {
                        self.decode_kernels(format, Some(Job::Normed), Operand::Plain, &mut all);
                    }
                }
                WeightUnit::TokenMixer(block) => self.token_mixer_kernels(unit, usize::from(block.0), &mut all),
                WeightUnit::Dense(_) | WeightUnit::SharedExpert(_) => {
                    all.extend([self.profile.norm(), Kernel::SwiGlu]);
                    self.matrix_kernels(unit, Operand::Plain, &mut all);
                }
                WeightUnit::Router(_) => {
                    all.extend([self.profile.norm(), self.profile.router(), Kernel::Combine]);
                    self.matrix_kernels(unit, Operand::Plain, &mut all);
                }
                WeightUnit::Expert(..) => {}
            }
        }
        for places in self.layout.experts.values() {
            self.expert_kernels(places, &mut all);
        }
        all
    }

    /// Kernels of a block's experts.
    fn expert_kernels(&self, places: &ExpertPlaces, all: &mut BTreeSet<Kernel>) {
        all.insert(Kernel::SwiGlu);
        for (matrix, job) in [(&places.gate, Job::GatedExpert), (&places.down, Job::ExpertDown)] {
            all.extend(self.profile.fused(matrix.shape.format, job, 1));
            all.extend(self.profile.variants(matrix.shape.format, job));
        }
        for matrix in [&places.gate, &places.up, &places.down] {
            let format = matrix.shape.format;
            all.insert(self.profile.decode(format, Operand::Expert, 1));
            let prefill = self.profile.prefill_experts(format);
            if matches!(prefill, Kernel::MatMul { .. }) {
                all.insert(self.profile.groups());
            }
            all.insert(prefill);
        }
    }

    /// Kernels to tune: each kernel in use whose kind has no measurements, with its alternatives.
    pub fn kernels_to_tune(&self) -> Vec<(Kernel, Vec<Kernel>)> {
        let tuning = self.profile.tuning();
        let decodes = |format, job| {
            let same = |shape: &Tunable| matches!(*shape, Tunable::Decode { format: f, job: j, .. } if (f, j) == (format, job));
            tuning.iter().any(|(shape, _)| same(shape))
        };
        let prefills = |format| {
            let same = |shape: &Tunable| matches!(*shape, Tunable::Prefill { format: f, .. } if f == format);
            tuning.iter().any(|(shape, _)| same(shape))
        };
        let mut all: BTreeMap<Kernel, Vec<Kernel>> = BTreeMap::new();
        for kernel in self.kernels_in_use() {
            match kernel {
                Kernel::Fused { format, rows: 1, job, variant }
                    if variant == KernelVariant::portable(job) && !decodes(format, job) =>
                {
                    let variants = KernelVariant::candidates(job, self.gpu.capabilities().subgroup).into_iter().skip(1);
                    let variants = variants.map(|variant| Kernel::Fused { format, rows: 1, job, variant });
                    all.insert(kernel, variants.collect());
                }
                Kernel::MatMul { format, operand: operand @ (Operand::Plain | Operand::Bias), tile }
                    if tile.kind() == TileKind::Shared && !prefills(format) =>
                {
                    let of = |tile| Kernel::MatMul { format, operand, tile };
                    let (portable, others) = (of(Tile::V32R32), Tile::CANDIDATES.into_iter().skip(1).map(of));
                    all.insert(portable, others.collect());
                }
                _ => {}
            }
        }
        all.into_iter().collect()
    }

    /// Roles and formats of a unit's tensors.
    fn formats(&self, unit: WeightUnit) -> impl Iterator<Item = (TensorRole, potluck_shaders::Format)> {
        self.units.tensors(unit).iter().enumerate().filter_map(move |(index, tensor)| {
            self.layout.places.get(&(unit, index)).map(|place| (tensor.role, place.shape.format))
        })
    }

    /// A signature that is equal for units whose tensors have the same roles, types and sizes.
    pub fn signature(&self, unit: WeightUnit) -> String {
        format!("{:?}", self.matrices(unit).collect::<Vec<_>>())
    }

    /// Roles and shapes of a unit's tensors.
    fn matrices(&self, unit: WeightUnit) -> impl Iterator<Item = (TensorRole, Shape)> {
        self.units.tensors(unit).iter().enumerate().filter_map(move |(index, tensor)| {
            self.layout.places.get(&(unit, index)).map(|place| (tensor.role, place.shape))
        })
    }

    /// Kernels of a unit's matrices; its norms and biases are vectors.
    fn matrix_kernels(&self, unit: WeightUnit, operand: Operand, all: &mut BTreeSet<Kernel>) {
        use TensorRole::{AttentionOutput, Down, Gate, Key, Query, Router, Up, Value};
        for (role, shape) in self.matrices(unit) {
            let format = shape.format;
            let (operand, job) = match role {
                Query | Key | Value if operand == Operand::Bias => (operand, Some(Job::NormedBias)),
                Query | Key | Value => (operand, Some(Job::Normed)),
                AttentionOutput | Down => (Operand::Plain, Some(Job::Added)),
                Gate | Up => (Operand::Plain, Some(Job::Gated)),
                Router => (Operand::Plain, Some(Job::Normed)),
                _ => continue,
            };
            self.decode_kernels(format, job, operand, all);
            all.extend(self.profile.every_prefill(
                format,
                operand,
                (shape.rows, shape.cols),
                self.layout.prefill_tokens,
            ));
        }
    }

    /// Decode kernels of a matrix: the fused kernel if it computes correctly on this device.
    fn decode_kernels(&self, format: Format, job: Option<Job>, operand: Operand, all: &mut BTreeSet<Kernel>) {
        all.extend([1, 4].map(|n| {
            let fused = job.and_then(|job| self.profile.fused(format, job, n));
            fused.unwrap_or_else(|| self.profile.decode(format, operand, n))
        }));
        all.extend(job.into_iter().flat_map(|job| self.profile.variants(format, job)));
    }

    fn token_mixer_kernels(&self, unit: WeightUnit, block: usize, all: &mut BTreeSet<Kernel>) {
        let a = self.spec.attention(block);
        let kv_type = self.settings.kv_cache;
        let pairs = match a.rope.pairs {
            RopePairs::Adjacent => Pairs::Adjacent,
            RopePairs::Halves => Pairs::Halves,
        };
        all.insert(self.profile.norm());
        all.insert(Kernel::Rope { kv_type, pairs, qk_norm: a.qk_norm, factors: a.rope.factors });
        let quads = (a.head_dim / 4) as u16;
        all.insert(self.profile.attention(kv_type, quads));
        all.extend(self.profile.split(kv_type, quads, a.heads / a.kv_heads.max(1)).into_iter().flatten());
        all.extend(self.profile.flash_attention(kv_type, quads));
        self.matrix_kernels(unit, if a.qkv_bias { Operand::Bias } else { Operand::Plain }, all);
    }
}
