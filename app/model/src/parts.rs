//! The tensors of each weight unit, by one walk over a model's description. The reader takes them from a file, the
//! engine checks and places them, and tests write them.

use potluck_plan::WeightUnit;

use crate::spec::RopeFactors as Factors;
use crate::{AttentionSpec, FeedForwardSpec, LatentSpec, ModelSpec, QkNorm, TensorRole};

/// A tensor that a unit must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its role.
    pub role: TensorRole,
    /// Rows, 1 for a vector.
    pub rows: u32,
    /// Values per row.
    pub cols: u32,
}

pub(crate) fn matrix(role: TensorRole, rows: u32, cols: u32) -> Part {
    Part { role, rows, cols }
}

pub(crate) fn vector(role: TensorRole, cols: u32) -> Part {
    Part { role, rows: 1, cols }
}

fn network(hidden: u32, intermediate: u32) -> [Part; 3] {
    use TensorRole::*;
    [matrix(Gate, intermediate, hidden), matrix(Up, intermediate, hidden), matrix(Down, hidden, intermediate)]
}

impl ModelSpec {
    /// The tensors of a unit in the order of its bytes; `None` if the model has no such unit.
    pub fn parts(&self, unit: WeightUnit) -> Option<Vec<Part>> {
        use TensorRole::*;
        let hidden = self.hidden;
        let block = match unit.block() {
            None => None,
            Some(block) => Some(self.blocks.get(usize::from(block.0))?),
        };
        let feed_forward = block.map(|block| &block.feed_forward);
        Some(match (unit, feed_forward) {
            (WeightUnit::Embedding, _) => {
                let mut parts = vec![matrix(TokenEmbedding, self.vocabulary, hidden)];
                if let Some(width) = self.block_inputs {
                    let all = self.all_block_inputs();
                    parts.extend([matrix(BlockEmbedding, self.vocabulary, all), matrix(BlockProjection, all, hidden)]);
                    parts.push(vector(BlockProjectionNorm, width));
                }
                parts
            }
            (WeightUnit::LmHead, _) => {
                let role = if self.tied_lm_head { TokenEmbedding } else { Output };
                vec![vector(OutputNorm, hidden), matrix(role, self.vocabulary, hidden)]
            }
            (WeightUnit::TokenMixer(index), Some(_)) => match self.recurrent(usize::from(index.0)) {
                Some(recurrent) => recurrent.parts(hidden),
                None => attention(self.attention(usize::from(index.0)), hidden),
            },
            (WeightUnit::Dense(_), Some(FeedForwardSpec::Dense(dense))) => {
                let mut parts = Vec::new();
                parts.extend(dense.norms.before.then(|| vector(FeedForwardNorm, hidden)));
                parts.extend(network(hidden, dense.intermediate));
                parts.extend(dense.norms.after.then(|| vector(FeedForwardPostNorm, hidden)));
                if let Some(width) = self.block_inputs {
                    parts.extend([matrix(InputGate, width, hidden), matrix(InputProjection, hidden, width)]);
                    parts.push(vector(InputPostNorm, hidden));
                }
                parts.extend(self.scales.of_blocks.then(|| vector(BlockScale, 1)));
                parts
            }
            (WeightUnit::Router(_), Some(FeedForwardSpec::Experts(experts))) => {
                let router = &experts.router;
                let mut parts = vec![vector(FeedForwardNorm, hidden), matrix(Router, experts.count, hidden)];
                parts.extend(router.bias.then(|| vector(RouterBias, experts.count)));
                parts.extend(router.selection_bias.then(|| vector(SelectionBias, experts.count)));
                parts.extend(router.own_norm.then(|| vector(RouterNorm, hidden)));
                parts.extend(router.expert_scales.then(|| vector(ExpertScales, experts.count)));
                if experts.apart {
                    parts.extend([vector(ExpertsPostNorm, hidden), vector(FeedForwardPostNorm, hidden)]);
                }
                parts.extend(self.scales.of_blocks.then(|| vector(BlockScale, 1)));
                parts
            }
            (WeightUnit::SharedExpert(_), Some(FeedForwardSpec::Experts(experts))) => {
                let shared = experts.shared?;
                let mut parts = network(hidden, shared.intermediate).to_vec();
                if experts.apart {
                    parts.extend([vector(FeedForwardNorm, hidden), vector(FeedForwardPostNorm, hidden)]);
                }
                parts.extend(shared.gated.then(|| matrix(SharedRouter, 1, hidden)));
                parts
            }
            (WeightUnit::Expert(_, expert), Some(FeedForwardSpec::Experts(experts)))
                if u32::from(expert.0) < experts.count =>
            {
                let inner = experts.intermediate;
                let mut parts = network(hidden, inner).to_vec();
                if experts.biases {
                    parts.extend([vector(GateBias, inner), vector(UpBias, inner), vector(DownBias, hidden)]);
                }
                parts
            }
            _ => return None,
        })
    }
}

fn attention(a: &AttentionSpec, hidden: u32) -> Vec<Part> {
    use TensorRole::*;
    if let Some(latent) = a.latent {
        return latent_attention(a, latent, hidden);
    }
    let (queries, keys) = (a.heads * a.head_dim, a.kv_heads * a.head_dim);
    let mut parts = Vec::new();
    parts.extend(a.norms.before.then(|| vector(AttentionNorm, hidden)));
    let own_keys = a.kv_of.is_none();
    parts.push(matrix(Query, a.query_rows(), hidden));
    parts.extend(own_keys.then(|| matrix(Key, keys, hidden)));
    parts.extend((own_keys && !a.values_are_keys).then(|| matrix(Value, keys, hidden)));
    parts.push(matrix(AttentionOutput, hidden, queries));
    if a.qkv_bias {
        parts.extend([vector(QueryBias, queries), vector(KeyBias, keys), vector(ValueBias, keys)]);
    }
    match a.qk_norm {
        QkNorm::None | QkNorm::Unit => {}
        QkNorm::Head => {
            parts.push(vector(QueryNorm, a.head_dim));
            parts.extend(own_keys.then(|| vector(KeyNorm, a.head_dim)));
        }
        QkNorm::Row => parts.extend([vector(QueryNorm, queries), vector(KeyNorm, keys)]),
    }
    match a.rope.factors {
        Factors::None => {}
        Factors::Fixed => parts.push(vector(RopeFactors, a.rope.dims / 2)),
        Factors::ByContext { .. } => {
            parts.extend([vector(RopeFactors, a.rope.dims / 2), vector(RopeFactorsLong, a.rope.dims / 2)]);
        }
    }
    parts.extend(a.output_bias.then(|| vector(AttentionOutputBias, hidden)));
    parts.extend(a.sinks.then(|| vector(Sinks, a.heads)));
    parts.extend(a.norms.after.then(|| vector(AttentionPostNorm, hidden)));
    parts
}

fn latent_attention(a: &AttentionSpec, latent: LatentSpec, hidden: u32) -> Vec<Part> {
    use TensorRole::*;
    let LatentSpec { query_rank, rank, key, value } = latent;
    let mut parts = vec![vector(AttentionNorm, hidden)];
    if let Some(rank) = query_rank {
        parts.extend([matrix(QueryDown, rank, hidden), vector(QueryDownNorm, rank)]);
    }
    parts.extend([
        matrix(Query, a.heads * (key + a.rope.dims), query_rank.unwrap_or(hidden)),
        matrix(Latent, rank, hidden),
        matrix(LatentRotated, a.rope.dims, hidden),
        vector(LatentNorm, rank),
        matrix(KeyUp, a.heads * rank, key),
        matrix(ValueUp, a.heads * value, rank),
        matrix(AttentionOutput, hidden, a.heads * value),
    ]);
    parts
}
