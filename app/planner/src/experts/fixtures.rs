//! Models for the tests of this folder.

use potluck_plan::{BlockShape, Bytes, Cuts, FeedForwardShape, KvCacheType, ModelId, ModelShape};

use super::placement::ExpertKey;

/// Equal blocks with experts of 100 bytes.
pub fn shape(blocks: usize, count: u16, used: u16) -> ModelShape {
    let block = BlockShape {
        token_mixer: Bytes(40),
        kv_cache_per_position: Bytes(1),
        kv_buffers: 2,
        state: Bytes::ZERO,
        feed_forward: FeedForwardShape::Experts {
            router: Bytes(10),
            expert: Bytes(100),
            count,
            used,
            shared: Bytes::ZERO,
        },
    };
    ModelShape {
        model: ModelId([0; 32]),
        hidden: 8,
        vocabulary: 8,
        embedding: Bytes(50),
        lm_head: Bytes(50),
        tied_lm_head: false,
        cuts: Cuts::Anywhere,
        kv_cache: KvCacheType::F32,
        blocks: vec![block; blocks],
    }
}

/// All its experts.
pub fn keys(shape: &ModelShape) -> impl Iterator<Item = ExpertKey> {
    shape
        .all_blocks()
        .iter()
        .flat_map(|block| shape.block_experts(block).into_iter().map(move |expert| (block, expert)))
}
