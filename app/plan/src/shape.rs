//! What a planner needs to know of a model: sizes only, no tensors.

use serde::{Deserialize, Serialize};

use crate::{BlockIndex, BlockRange, Bytes, ExpertId, KvCacheType, ModelId, WeightUnit};

/// The feed-forward half of a block, in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FeedForwardShape {
    /// One network that every token passes.
    Dense {
        /// Weight bytes of the network and its norm.
        bytes: Bytes,
    },
    /// A router and experts.
    Experts {
        /// Weight bytes of the router and the norm.
        router: Bytes,
        /// Weight bytes of one expert (all experts of a block have one size).
        expert: Bytes,
        /// How many experts the block has.
        count: u16,
        /// How many experts a token uses.
        used: u16,
        /// Weight bytes of the shared expert, zero without one; see [`WeightUnit::SharedExpert`].
        shared: Bytes,
    },
}

/// One block, in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockShape {
    /// Weight bytes of the token mixer and its norms.
    pub token_mixer: Bytes,
    /// Bytes of KV cache per position, keys and values together, in the shape's type.
    pub kv_cache_per_position: Bytes,
    /// Buffers that the KV cache lies in: keys and values in one each, or in one together.
    pub kv_buffers: u8,
    /// Bytes of recurrent state of all conversations together, zero without any; see [`crate::StateHistory`].
    pub state: Bytes,
    /// The feed-forward half.
    pub feed_forward: FeedForwardShape,
}

/// Where a model may be cut into stages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cuts {
    /// Between any two blocks.
    #[default]
    Anywhere,
    /// Nowhere: later blocks need more of earlier ones than the hidden vector, so one device has all of them. Experts may
    /// still be on others.
    Nowhere,
}

/// The sizes of a model, as bytes on the GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelShape {
    /// Which file.
    pub model: ModelId,
    /// Width of the hidden vector.
    pub hidden: u32,
    /// Entries of the vocabulary.
    pub vocabulary: u32,
    /// Bytes of the embedding table.
    pub embedding: Bytes,
    /// Bytes of the final norm and the LM head (if tied, the embedding table again).
    pub lm_head: Bytes,
    /// The LM head is the embedding table, so a peer with both holds it once.
    pub tied_lm_head: bool,
    /// How the KV cache is stored.
    pub kv_cache: KvCacheType,
    /// Where stages may begin.
    pub cuts: Cuts,
    /// The blocks in order.
    pub blocks: Vec<BlockShape>,
}

impl BlockShape {
    /// Weight bytes of everything but the experts (which may live elsewhere).
    pub fn without_experts(&self) -> Bytes {
        match &self.feed_forward {
            FeedForwardShape::Dense { bytes } => self.token_mixer.saturating_add(*bytes),
            FeedForwardShape::Experts { router, shared, .. } => [self.token_mixer, *router, *shared].into_iter().sum(),
        }
    }

    /// Weight bytes of the whole block.
    pub fn weights(&self) -> Bytes {
        let experts = self.expert_bytes().0.saturating_mul(u64::from(self.expert_count()));
        self.without_experts().saturating_add(Bytes(experts))
    }

    /// Weight bytes that one token reads.
    pub fn active_weights(&self) -> Bytes {
        match &self.feed_forward {
            FeedForwardShape::Dense { .. } => self.weights(),
            FeedForwardShape::Experts { expert, used, .. } => {
                self.without_experts().saturating_add(Bytes(expert.0.saturating_mul(u64::from(*used))))
            }
        }
    }

    /// Weight bytes of one expert, zero for a dense block.
    pub fn expert_bytes(&self) -> Bytes {
        match &self.feed_forward {
            FeedForwardShape::Dense { .. } => Bytes::ZERO,
            FeedForwardShape::Experts { expert, .. } => *expert,
        }
    }

    /// Number of experts, zero for a dense block.
    pub fn expert_count(&self) -> u16 {
        match &self.feed_forward {
            FeedForwardShape::Dense { .. } => 0,
            FeedForwardShape::Experts { count, .. } => *count,
        }
    }
}

impl ModelShape {
    /// Most blocks of a model. Today's largest have about 130.
    pub const MAX_BLOCKS: usize = 1_024;
    /// Most experts of a model, over all blocks. Today's largest have about 25,000.
    pub const MAX_EXPERTS: usize = 128 * 1024;
    /// Most bytes of a model's part, 1 PiB: sums of them do not overflow.
    pub const MAX_BYTES: Bytes = Bytes(1 << 50);

    /// True unless the sizes are beyond every model's: they may have come in a frame.
    pub fn is_plausible(&self) -> bool {
        let experts = self.blocks.iter().map(|block| usize::from(block.expert_count())).sum::<usize>();
        let fits = |bytes: Bytes| bytes <= Self::MAX_BYTES;
        self.blocks.len() <= Self::MAX_BLOCKS
            && experts <= Self::MAX_EXPERTS
            && fits(self.embedding)
            && fits(self.lm_head)
            && self
                .blocks
                .iter()
                .all(|block| fits(block.kv_cache_per_position) && fits(block.state) && fits(block.weights()))
    }

    /// True if a stage that is not the first may begin with this block.
    pub fn may_cut_before(&self, _block: BlockIndex) -> bool {
        match self.cuts {
            Cuts::Anywhere => true,
            Cuts::Nowhere => false,
        }
    }

    /// True if one device must have all of it: no cuts, and no experts that could be elsewhere.
    pub fn is_whole(&self) -> bool {
        self.cuts == Cuts::Nowhere && self.blocks.iter().all(|block| block.expert_count() == 0)
    }

    /// How many experts a block has, none if it is dense.
    pub fn expert_count(&self, index: BlockIndex) -> usize {
        self.blocks.get(usize::from(index.0)).map_or(0, |block| usize::from(block.expert_count()))
    }

    /// All blocks, as a range.
    pub fn all_blocks(&self) -> BlockRange {
        BlockRange::new(0, self.blocks.len() as u16)
    }

    /// Bytes of KV cache of some blocks, for `context` positions, and of their recurrent states.
    pub fn kv_cache_bytes(&self, blocks: BlockRange, context: u32) -> Bytes {
        let sum = |of: fn(&BlockShape) -> Bytes| -> Bytes {
            blocks.iter().filter_map(|index| self.blocks.get(usize::from(index.0))).map(of).sum()
        };
        let positions = sum(|block| block.kv_cache_per_position).0.saturating_mul(u64::from(context));
        Bytes(positions).saturating_add(sum(|block| block.state))
    }

    /// True if some block has recurrent state, so that work cannot begin at any position.
    pub fn is_recurrent(&self) -> bool {
        self.blocks.iter().any(|block| block.state > Bytes::ZERO)
    }

    /// Weight bytes of a unit.
    pub fn unit_bytes(&self, unit: WeightUnit) -> Bytes {
        let block = |index: BlockIndex| self.blocks.get(usize::from(index.0));
        let of = |index: BlockIndex, bytes: fn(&BlockShape) -> Bytes| block(index).map_or(Bytes::ZERO, bytes);
        match unit {
            WeightUnit::Embedding => self.embedding,
            WeightUnit::LmHead => self.lm_head,
            WeightUnit::TokenMixer(index) => of(index, |block| block.token_mixer),
            WeightUnit::Router(index) => of(index, |block| match &block.feed_forward {
                FeedForwardShape::Experts { router, .. } => *router,
                FeedForwardShape::Dense { .. } => Bytes::ZERO,
            }),
            WeightUnit::Dense(index) => of(index, |block| match &block.feed_forward {
                FeedForwardShape::Dense { bytes } => *bytes,
                FeedForwardShape::Experts { .. } => Bytes::ZERO,
            }),
            WeightUnit::SharedExpert(index) => of(index, |block| match &block.feed_forward {
                FeedForwardShape::Experts { shared, .. } => *shared,
                FeedForwardShape::Dense { .. } => Bytes::ZERO,
            }),
            WeightUnit::Expert(index, _) => of(index, BlockShape::expert_bytes),
        }
    }

    /// The units of a block, without its experts.
    pub fn block_units(&self, index: BlockIndex) -> Vec<WeightUnit> {
        let mut units = vec![WeightUnit::TokenMixer(index)];
        match self.blocks.get(usize::from(index.0)).map(|block| &block.feed_forward) {
            Some(FeedForwardShape::Experts { shared, .. }) => {
                units.push(WeightUnit::Router(index));
                if *shared > Bytes::ZERO {
                    units.push(WeightUnit::SharedExpert(index));
                }
            }
            _ => units.push(WeightUnit::Dense(index)),
        }
        units
    }

    /// The experts of a block, none for a dense block.
    pub fn block_experts(&self, index: BlockIndex) -> Vec<ExpertId> {
        (0..self.expert_count(index)).map(|expert| ExpertId(expert as u16)).collect()
    }
}
