//! Small models, as sizes.

use potluck_plan::{BlockShape, Bytes, Cuts, FeedForwardShape, KvCacheType, ModelId, ModelShape, PeerId};

/// The peer whose id consists of one byte, repeated.
#[must_use]
pub fn peer(id: u8) -> PeerId {
    PeerId([id; 16])
}

/// A block without experts, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DenseBlock {
    /// Weights of the token mixer and its norms.
    pub token_mixer: u64,
    /// Weights of the feed-forward network and its norm.
    pub feed_forward: u64,
    /// KV cache per position.
    pub kv_cache_per_position: u64,
}

impl From<DenseBlock> for BlockShape {
    fn from(block: DenseBlock) -> Self {
        Self {
            token_mixer: Bytes(block.token_mixer),
            kv_cache_per_position: Bytes(block.kv_cache_per_position),
            kv_buffers: 2,
            state: Bytes::ZERO,
            feed_forward: FeedForwardShape::Dense { bytes: Bytes(block.feed_forward) },
        }
    }
}

/// A model of these blocks: hidden width 8, 8 tokens, embedding and LM head of 50 bytes each, a KV cache in F32. Tests
/// set the fields that matter to them.
#[must_use]
pub fn shape(blocks: Vec<BlockShape>) -> ModelShape {
    ModelShape {
        model: ModelId([1; 32]),
        hidden: 8,
        vocabulary: 8,
        embedding: Bytes(50),
        lm_head: Bytes(50),
        tied_lm_head: false,
        cuts: Cuts::Anywhere,
        kv_cache: KvCacheType::F32,
        blocks,
    }
}

/// Blocks of 40 + 60 bytes and one byte of KV cache per position; embedding and LM head have 50 bytes each.
#[must_use]
pub fn dense_shape(blocks: usize) -> ModelShape {
    let block = DenseBlock { token_mixer: 40, feed_forward: 60, kv_cache_per_position: 1 };
    shape(vec![block.into(); blocks])
}

/// Blocks of 40 + 10 bytes and four experts of 100 bytes, of which a token uses two.
#[must_use]
pub fn moe_shape(blocks: usize) -> ModelShape {
    let mut shape = dense_shape(blocks);
    for block in &mut shape.blocks {
        block.feed_forward =
            FeedForwardShape::Experts { router: Bytes(10), expert: Bytes(100), count: 4, used: 2, shared: Bytes::ZERO };
    }
    shape
}
