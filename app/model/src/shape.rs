//! A model's sizes for the planner.

use potluck_plan::{
    BlockIndex, BlockShape, Bytes, ExpertId, FeedForwardShape, KvCacheType, ModelId, ModelShape, WeightUnit,
};

use crate::{FeedForwardSpec, ModelSpec, UnitMap};

impl ModelSpec {
    /// True if every block's KV cache can use this type: values that share a scale must not cross heads.
    pub fn takes(&self, kv_cache: KvCacheType) -> bool {
        (0..self.blocks.len()).all(|block| kv_cache.takes(self.attention(block).head_dim))
    }

    /// The sizes the planner needs. Weights keep the file's types on the GPU; the KV cache has type `kv_cache`, which
    /// [`ModelSpec::takes`] must accept.
    pub fn shape(&self, units: &UnitMap, model: ModelId, kv_cache: KvCacheType) -> ModelShape {
        let blocks = (0..).map(BlockIndex).zip(&self.blocks);
        let blocks = blocks.map(|(index, block)| {
            let attention = self.attention(usize::from(index.0));
            let row = u64::from(attention.kv_heads) * 4 * u64::from(kv_cache.head_words(attention.head_dim));
            let feed_forward = match &block.feed_forward {
                FeedForwardSpec::Dense(_) => FeedForwardShape::Dense { bytes: units.bytes(WeightUnit::Dense(index)) },
                FeedForwardSpec::Experts(experts) => {
                    // The cast cannot truncate: reading the file checks expert ids and counts.
                    let ids = (0..experts.count as u16).map(ExpertId);
                    let largest = ids.map(|expert| units.bytes(WeightUnit::Expert(index, expert))).max();
                    FeedForwardShape::Experts {
                        router: units.bytes(WeightUnit::Router(index)),
                        expert: largest.unwrap_or(Bytes::ZERO),
                        count: experts.count as u16,
                        used: experts.used as u16,
                        shared: units.bytes(WeightUnit::SharedExpert(index)),
                    }
                }
            };
            BlockShape {
                token_mixer: units.bytes(WeightUnit::TokenMixer(index)),
                kv_cache_per_position: Bytes(u64::from(attention.cached()) * row),
                // One or two.
                kv_buffers: attention.cached() as u8,
                state: self.state_bytes(usize::from(index.0)),
                feed_forward,
            }
        });
        ModelShape {
            model,
            hidden: self.hidden,
            vocabulary: self.vocabulary,
            embedding: units.bytes(WeightUnit::Embedding),
            lm_head: units.bytes(WeightUnit::LmHead),
            tied_lm_head: self.tied_lm_head,
            kv_cache,
            cuts: self.cuts(),
            blocks: blocks.collect(),
        }
    }
}
