//! Which variants the held units need on this device.

use std::collections::BTreeSet;

use potluck_model::{FeedForwardSpec, RopePairs, TensorRole};
use potluck_plan::WeightUnit;
use potluck_shaders::{Kernel, Operand, Pairs};

use crate::core::Core;

impl Core {
    /// Every variant that work for the held units may use.
    pub fn kernels_in_use(&self) -> BTreeSet<Kernel> {
        let mut all = BTreeSet::new();
        for &unit in &self.held {
            match unit {
                WeightUnit::Embedding => all.extend(self.formats(unit).map(|(_, format)| Kernel::Embed(format))),
                WeightUnit::Head => {
                    all.extend([self.profile.norm(), Kernel::Segments, self.profile.top()]);
                    let matrices = self.formats(unit).filter(|(role, _)| *role != TensorRole::OutputNorm);
                    for (_, format) in matrices {
                        all.extend([1, 4].map(|n| self.profile.decode(format, Operand::Plain, n)));
                    }
                }
                WeightUnit::Mixer(block) => self.mixer_kernels(unit, usize::from(block.0), &mut all),
                WeightUnit::Dense(_) | WeightUnit::SharedExpert(_) => {
                    all.extend([self.profile.norm(), Kernel::SwiGlu]);
                    self.matrix_kernels(unit, Operand::Plain, &mut all);
                }
                WeightUnit::Router(_) => {
                    all.extend([self.profile.norm(), self.profile.router()]);
                    self.matrix_kernels(unit, Operand::Plain, &mut all);
                }
                WeightUnit::Expert(block, _) => {
                    all.extend([Kernel::SwiGlu, Kernel::Combine]);
                    if let Some(places) = self.layout.experts.get(&block) {
                        for matrix in [&places.gate, &places.up, &places.down] {
                            let format = matrix.shape.format;
                            all.insert(self.profile.decode(format, Operand::Expert, 1));
                            let prefill = self.profile.prefill(format, Operand::Expert);
                            all.insert(prefill);
                            if matches!(prefill, Kernel::MatMul { .. }) {
                                all.insert(Kernel::Groups);
                            }
                        }
                    }
                }
            }
        }
        all
    }

    /// Roles and formats of a unit's tensors.
    fn formats(&self, unit: WeightUnit) -> impl Iterator<Item = (TensorRole, potluck_shaders::Format)> {
        self.units.tensors(unit).iter().enumerate().filter_map(move |(index, tensor)| {
            self.layout.places.get(&(unit, index)).map(|place| (tensor.role, place.shape.format))
        })
    }

    /// Kernels of a unit's matrices (its norms and biases are no matrices).
    fn matrix_kernels(&self, unit: WeightUnit, operand: Operand, all: &mut BTreeSet<Kernel>) {
        use TensorRole::{AttentionOutput, Down, Gate, Key, Query, Router, Up, Value};
        for (role, format) in self.formats(unit) {
            let operand = match role {
                Query | Key | Value => operand,
                AttentionOutput | Gate | Up | Down | Router => Operand::Plain,
                _ => continue,
            };
            all.extend([1, 4].map(|n| self.profile.decode(format, operand, n)));
            all.insert(self.profile.prefill(format, operand));
        }
    }

    fn mixer_kernels(&self, unit: WeightUnit, block: usize, all: &mut BTreeSet<Kernel>) {
        let a = self.spec.attention(block);
        let state = self.settings.state.kernel();
        let pairs = match a.rope.pairs {
            RopePairs::Adjacent => Pairs::Adjacent,
            RopePairs::Halves => Pairs::Halves,
        };
        all.insert(self.profile.norm());
        all.insert(Kernel::Rope { state, pairs, qk_norm: a.qk_norm, factors: a.rope.factors });
        all.insert(self.profile.attention(state, (a.head_dim / 4) as u16));
        self.matrix_kernels(unit, if a.qkv_bias { Operand::Bias } else { Operand::Plain }, all);
        if let Some(FeedForwardSpec::Experts { .. }) = self.spec.blocks.get(block).map(|block| &block.feed_forward) {
            all.insert(Kernel::Combine);
        }
    }
}
