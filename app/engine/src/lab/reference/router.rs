//! Routers on the CPU: what they choose for a vector, also for one of an earlier block.

use std::collections::BTreeMap;

use potluck_model::{ExpertsSpec, FeedForwardSpec, ModelSpec, Scoring, TensorRole, UnitMap};
use potluck_plan::{BlockIndex, ExpertId, ExpertRoute, WeightUnit};
use potluck_shaders::{Format, reference as kernels};

use super::{Choice, Source};

/// The input of a block's experts and the router's choice, from the residual stream after the token mixer.
pub(super) fn choose<'a>(
    experts: &ExpertsSpec,
    epsilon: f32,
    tensor: impl Fn(TensorRole) -> &'a [f32],
    x: &[f32],
) -> (Vec<f32>, Choice) {
    let router = &experts.router;
    let normed = kernels::norm(x, tensor(TensorRole::FeedForwardNorm), epsilon);
    let mut scores = if router.own_norm {
        let mut own = kernels::norm(x, tensor(TensorRole::RouterNorm), epsilon);
        own.iter_mut().for_each(|v| *v /= (x.len() as f32).sqrt());
        kernels::matvec(tensor(TensorRole::Router), &own)
    } else {
        kernels::matvec(tensor(TensorRole::Router), &normed)
    };
    if router.bias {
        scores = super::plus(scores, tensor(TensorRole::RouterBias));
    }
    let rule = kernels::Choice {
        used: experts.used as usize,
        sigmoid: router.scoring == Scoring::Sigmoid,
        bias: if router.selection_bias { tensor(TensorRole::SelectionBias) } else { &[] },
        normalize: router.normalize,
        scale: router.scale,
        groups: router.groups.map_or((1, 1), |groups| (groups.count as usize, groups.used as usize)),
    };
    let mut chosen = kernels::choose(&scores, rule);
    if router.expert_scales {
        let factors = tensor(TensorRole::ExpertScales);
        chosen.iter_mut().for_each(|(expert, weight)| *weight *= factors[*expert as usize]);
    }
    (normed, chosen)
}

/// The routers of a model alone, with their weights as 32-bit floats.
pub struct Routers {
    spec: ModelSpec,
    tensors: BTreeMap<(BlockIndex, TensorRole), Vec<f32>>,
}

impl Routers {
    /// Dequantizes the routers.
    pub fn new(spec: &ModelSpec, units: &UnitMap, source: &Source<'_>) -> Self {
        let mut tensors = BTreeMap::new();
        for unit in units.units() {
            let WeightUnit::Router(block) = unit else { continue };
            for (index, tensor) in units.tensors(unit).iter().enumerate() {
                let format = Format::of(tensor.kind).expect("the reference runs models of supported types only");
                tensors.insert((block, tensor.role), kernels::dequantize(format, &source(unit, index)));
            }
        }
        Self { spec: spec.clone(), tensors }
    }

    fn experts(&self, block: BlockIndex) -> Option<&ExpertsSpec> {
        match &self.spec.blocks.get(usize::from(block.0))?.feed_forward {
            FeedForwardSpec::Experts(experts) => Some(experts),
            FeedForwardSpec::Dense(_) => None,
        }
    }

    /// What a block's router would choose for this residual stream, the likeliest first; nothing if the block has no
    /// experts.
    pub fn choose(&self, block: BlockIndex, x: &[f32]) -> Vec<ExpertId> {
        let Some(experts) = self.experts(block).filter(|_| x.len() == self.spec.hidden as usize) else {
            return Vec::new();
        };
        let tensor = |role| self.tensors.get(&(block, role)).map(Vec::as_slice).unwrap_or_default();
        super::ids(&choose(experts, self.spec.norm_epsilon, tensor, x).1)
    }

    /// A block's output: what its experts say of a token, weighted, added to the residual stream after its token mixer.
    /// Norms behind the experts, which a few models have, are left out: the next router is only asked for a guess.
    pub fn output(&self, block: BlockIndex, residual: &[f32], route: &ExpertRoute, outputs: &[f32]) -> Vec<f32> {
        let mut x = residual.to_vec();
        let weighs_input = self.experts(block).is_some_and(|experts| experts.weigh_input);
        for ((_, gate), output) in route.experts.iter().zip(outputs.chunks_exact(x.len().max(1))) {
            let weight = self.spec.scales.residual * if weighs_input { 1.0 } else { *gate };
            x.iter_mut().zip(output).for_each(|(x, y)| *x += weight * y);
        }
        x
    }
}
