//! The Plan: stages in order, and for each expert its holders in order of preference.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{
    Arithmetic, BlockIndex, BlockRange, ExpertId, ExpertPool, HolderPool, KvCacheType, ModelId, ModelShape, PeerId,
    PlanEpoch, PooledExperts, StageId, WeightUnit, WireType,
};

/// Who can compute an expert. A list of holders is in order of preference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ExpertHolder {
    /// The peer of the stage itself.
    Own,
    /// Another peer, reached by one frame out and one back.
    Peer(PeerId),
}

impl ExpertHolder {
    /// The holder, if it is another peer than the stage's.
    pub fn peer(&self) -> Option<PeerId> {
        match self {
            Self::Own => None,
            Self::Peer(peer) => Some(*peer),
        }
    }
}

/// Experts of one block of a stage that do not live (only) on the stage's own peer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteExperts {
    /// The block.
    pub block: BlockIndex,
    /// For every expert of the block, by id, its holders in order of preference.
    pub holders: Vec<Vec<ExpertHolder>>,
}

impl RemoteExperts {
    /// True if all experts have the same holders, in the same order.
    pub fn have_same_holders(&self) -> bool {
        self.holders.windows(2).all(|pair| pair[0] == pair[1])
    }

    /// True if one device is asked first for all of them.
    pub fn have_same_first_holder(&self) -> bool {
        self.holders.windows(2).all(|pair| pair[0].first() == pair[1].first())
    }
}

/// A range of blocks on one peer, with their token mixers, norms, routers and KV cache.
///
/// The first stage of a plan also embeds, the last one also computes the LM head; either may have no block at all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stage {
    /// Id inside the plan.
    pub id: StageId,
    /// Who runs it.
    pub peer: PeerId,
    /// Which blocks.
    pub blocks: BlockRange,
    /// Blocks whose experts have holders other than `[Own]`, in block order. All other experts are the stage's own.
    pub remote: Vec<RemoteExperts>,
    /// The stage's device has slots for some of its own experts and loads the others on demand. `None`: it holds them all.
    /// An expert whose other holders are all gone is computed through these slots, too, if `Own` is named for it.
    pub pool: Option<ExpertPool>,
}

/// Where every part of one model lives. One executor runs every Plan.
///
/// ```
/// use potluck_plan::{
///     Arithmetic, BlockRange, KvCacheType, ModelId, PeerId, Plan, PlanEpoch, PlanError, Stage, StageId, WireType,
/// };
///
/// let (laptop, phone) = (PeerId([1; 16]), PeerId([2; 16]));
/// let shape = potluck_testkit::dense_shape(4);
/// let mut plan = Plan {
///     epoch: PlanEpoch(1),
///     model: shape.model,
///     stages: vec![
///         Stage::new(StageId(0), laptop, BlockRange::new(0, 3)),
///         Stage::new(StageId(1), phone, BlockRange::new(3, 4)),
///     ],
///     pools: Vec::new(),
///     wire: WireType::F32,
///     expert_wire: WireType::F32,
///     arithmetic: Arithmetic::Exact,
///     context: 4096,
///     kv_cache: shape.kv_cache,
/// };
/// assert_eq!(plan.validate(&shape), Ok(()));
/// // A token goes to the phone, and its logits come back.
/// assert_eq!(plan.network_hops(laptop), 2);
///
/// plan.stages.pop();
/// assert_eq!(plan.validate(&shape), Err(PlanError::BlockNotCovered(3)), "nobody has the last block");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Larger than that of every earlier plan of the room.
    pub epoch: PlanEpoch,
    /// Which model.
    pub model: ModelId,
    /// Stages in the order a token passes them.
    pub stages: Vec<Stage>,
    /// Holders of experts for stages elsewhere that have slots for some of theirs and load the others on demand. All other
    /// holders have all of theirs on the GPU.
    pub pools: Vec<HolderPool>,
    /// Hidden vectors on the wire.
    pub wire: WireType,
    /// Vectors to and from the holders of experts. The same for all of them, and own experts round alike: under one plan
    /// an answer does not depend on who computed it. A block whose experts are all with its stage is not rounded.
    pub expert_wire: WireType,
    /// Positions that each stage reserves in its KV cache, over all conversations.
    pub context: u32,
    /// How every stage stores the KV cache.
    pub kv_cache: KvCacheType,
    /// How every stage and every holder of experts computes products.
    pub arithmetic: Arithmetic,
}

/// Why a plan cannot run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlanError {
    /// A plan needs at least one stage.
    #[error("the plan has no stage")]
    NoStage,
    /// Stages must cover every block once, in order.
    #[error("block {0} is missing from the plan or covered twice")]
    BlockNotCovered(u16),
    /// A stage begins where the model must not be cut.
    #[error("the model must not be cut before block {0}: it runs on one device")]
    CutForbidden(u16),
    /// Two stages with one id.
    #[error("stage {0} appears twice in the plan")]
    DuplicateStage(u16),
    /// An expert nobody holds.
    #[error("expert {expert} of block {block} has no holder")]
    NoHolder {
        /// The block.
        block: u16,
        /// The expert.
        expert: u16,
    },
    /// More parts than any model or room has.
    #[error("the plan or the model's sizes are larger than any model's")]
    TooLarge,
    /// Holders for a block outside the stage, or not one list per expert.
    #[error("the experts of block {0} do not match the model")]
    ExpertsMismatch(u16),
    /// A pool for a stage whose blocks have no experts.
    #[error("stage {0} has a pool of experts but no experts of its own for it")]
    NothingToPool(u16),
    /// A pool for a device that holds no experts for others, or two of one device.
    #[error("a device has a pool of experts that are not its own, or two pools")]
    StrayPool,
    /// A token's experts of one block do not fit.
    #[error("the pool has {slots} slots for experts, and a token needs {needed}: {} more", needed - slots)]
    PoolTooSmall {
        /// Slots of the pool.
        slots: u32,
        /// Slots that it needs at least.
        needed: u32,
    },
}

/// Stages of one plan: a device may have several, and a token passes each.
const MAX_STAGES: usize = 1_024;
/// Holders of experts that a plan may list in all: eight for each of the most experts that a model may have.
const MAX_HOLDERS: usize = 8 * ModelShape::MAX_EXPERTS;

impl Stage {
    /// A stage whose experts are all its own.
    pub fn new(id: StageId, peer: PeerId, blocks: BlockRange) -> Self {
        Self { id, peer, blocks, remote: Vec::new(), pool: None }
    }

    /// The holders of a block's experts, if any of them live elsewhere.
    pub fn remote_experts(&self, block: BlockIndex) -> Option<&RemoteExperts> {
        self.remote.iter().find(|remote| remote.block == block)
    }
}

impl Plan {
    /// Checks the plan against the model: every block once and in order, every expert with a holder, and no more of
    /// anything than a model can have. Whatever arrives in a frame is checked before its parts are listed.
    ///
    /// # Errors
    /// The first rule that does not hold.
    pub fn validate(&self, shape: &ModelShape) -> Result<(), PlanError> {
        if self.stages.is_empty() {
            return Err(PlanError::NoStage);
        }
        let parts = self.stages.iter().flat_map(|stage| &stage.remote).flat_map(|remote| &remote.holders);
        let holders = parts.fold(0usize, |sum, holders| sum.saturating_add(holders.len().max(1)));
        if self.stages.len() > MAX_STAGES || holders > MAX_HOLDERS || !shape.is_plausible() {
            return Err(PlanError::TooLarge);
        }
        let mut ids = BTreeSet::new();
        let mut next = 0;
        for (place, stage) in self.stages.iter().enumerate() {
            if !ids.insert(stage.id) {
                return Err(PlanError::DuplicateStage(stage.id.0));
            }
            if stage.blocks.start != next || stage.blocks.end < next {
                return Err(PlanError::BlockNotCovered(next));
            }
            if place > 0 && !shape.may_cut_before(BlockIndex(stage.blocks.start)) {
                return Err(PlanError::CutForbidden(stage.blocks.start));
            }
            next = stage.blocks.end;
            check_pool(stage, shape)?;
            for remote in &stage.remote {
                let count = shape.expert_count(remote.block);
                if !stage.blocks.contains(remote.block) || remote.holders.len() != count || count == 0 {
                    return Err(PlanError::ExpertsMismatch(remote.block.0));
                }
                if let Some(expert) = remote.holders.iter().position(Vec::is_empty) {
                    return Err(PlanError::NoHolder { block: remote.block.0, expert: expert as u16 });
                }
            }
        }
        if next != shape.all_blocks().end {
            return Err(PlanError::BlockNotCovered(next));
        }
        self.check_holder_pools(shape)
    }

    /// Each pool is that of a holder, and has room for what one token uses of a block.
    fn check_holder_pools(&self, shape: &ModelShape) -> Result<(), PlanError> {
        let mut peers = BTreeSet::new();
        for pool in &self.pools {
            let blocks = self.held_for_others(pool.peer);
            let needed = shape.smallest_pool_for(&blocks).ok_or(PlanError::StrayPool)?;
            if !peers.insert(pool.peer) {
                return Err(PlanError::StrayPool);
            }
            if pool.slots < needed.slots {
                return Err(PlanError::PoolTooSmall { slots: pool.slots, needed: needed.slots });
            }
        }
        Ok(())
    }

    /// Blocks with experts of the stages for which a device holds some. All of them, also those of which it holds none, so
    /// that its slots do not depend on the draw: experts of several sizes share slots by their number.
    pub fn held_for_others(&self, peer: PeerId) -> BTreeSet<BlockIndex> {
        let is_held =
            |remote: &RemoteExperts| remote.holders.iter().any(|holders| holders.contains(&ExpertHolder::Peer(peer)));
        let stages = self.stages.iter().filter(|stage| stage.remote.iter().any(is_held));
        stages.flat_map(|stage| &stage.remote).map(|remote| remote.block).collect()
    }

    /// Experts that a device holds for other stages.
    pub fn experts_held(&self, peer: PeerId) -> u32 {
        self.pooled().filter(|(.., holders)| holders.contains(&ExpertHolder::Peer(peer))).count() as u32
    }

    /// The slots of a device that holds experts for others and loads them on demand.
    pub fn holder_pool(&self, peer: PeerId) -> Option<ExpertPool> {
        self.pools.iter().find(|pool| pool.peer == peer).map(|pool| ExpertPool { slots: pool.slots })
    }

    /// The stage with this id, and its place in the chain.
    pub fn stage(&self, id: StageId) -> Option<(usize, &Stage)> {
        self.stages.iter().enumerate().find(|(_, stage)| stage.id == id)
    }

    /// True if the stage is the first: it embeds.
    pub fn embeds(&self, id: StageId) -> bool {
        self.stages.first().is_some_and(|stage| stage.id == id)
    }

    /// True if the stage is the last: it computes the LM head.
    pub fn has_lm_head(&self, id: StageId) -> bool {
        self.stages.last().is_some_and(|stage| stage.id == id)
    }

    /// A device has both ends: it embeds, computes the first and the last block with all their experts, and the LM head. No
    /// other device gets token ids or logits.
    pub fn has_ends_on(&self, peer: PeerId) -> bool {
        let is_whole = |stage: &Stage, block: Option<u16>| {
            let block = block.map(BlockIndex).filter(|block| stage.blocks.contains(*block));
            stage.peer == peer && block.is_some_and(|block| stage.remote_experts(block).is_none())
        };
        let (first, last) = (self.stages.first(), self.stages.last());
        first.is_some_and(|stage| is_whole(stage, Some(stage.blocks.start)))
            && last.is_some_and(|stage| is_whole(stage, stage.blocks.end.checked_sub(1)))
    }

    /// Everyone with work in this plan.
    pub fn peers(&self) -> BTreeSet<PeerId> {
        self.stages.iter().map(|stage| stage.peer).chain(self.expert_holders()).collect()
    }

    /// Everyone who holds experts of a stage beside it, each once.
    pub fn expert_holders(&self) -> Vec<PeerId> {
        let mut peers: Vec<PeerId> = Vec::new();
        let mut before: &[ExpertHolder] = &[];
        for holders in self.stages.iter().flat_map(|stage| &stage.remote).flat_map(|remote| &remote.holders) {
            // Thousands of experts often have the same holders as the one before.
            if before != holders {
                for peer in holders.iter().filter_map(|holder| holder.peer()) {
                    // They are few, so this is quicker than a set.
                    if !peers.contains(&peer) {
                        peers.push(peer);
                    }
                }
                before = holders;
            }
        }
        peers
    }

    /// A device has one of the stages.
    pub fn has_stage(&self, peer: PeerId) -> bool {
        self.stages.iter().any(|stage| stage.peer == peer)
    }

    /// Every expert that does not lie with its block's stage alone, with its holders.
    pub fn pooled(&self) -> impl Iterator<Item = (BlockIndex, ExpertId, &[ExpertHolder])> {
        self.stages.iter().flat_map(|stage| &stage.remote).flat_map(|remote| {
            let experts = remote.holders.iter().enumerate();
            let pooled = experts.filter(|(_, holders)| **holders != [ExpertHolder::Own]);
            pooled.map(|(expert, holders)| (remote.block, ExpertId(expert as u16), &holders[..]))
        })
    }

    /// The plan can go on without this device: it has no stage, and each of its experts another holder that `is_here`.
    pub fn can_spare(&self, peer: PeerId, is_here: impl Fn(PeerId) -> bool) -> bool {
        let is_other = |holder: &ExpertHolder| match holder {
            ExpertHolder::Own => true,
            ExpertHolder::Peer(other) => *other != peer && is_here(*other),
        };
        let mut held = self.pooled().filter(|(.., holders)| holders.contains(&ExpertHolder::Peer(peer)));
        !self.has_stage(peer) && held.all(|(.., holders)| holders.iter().any(is_other))
    }

    /// Adds a holder of an expert, after all others. Nothing changes if the expert is not pooled or the device has it.
    pub fn add_holder(&mut self, block: BlockIndex, expert: ExpertId, peer: PeerId) {
        for stage in &mut self.stages {
            let holder = if stage.peer == peer { ExpertHolder::Own } else { ExpertHolder::Peer(peer) };
            let remote = stage.remote.iter_mut().find(|remote| remote.block == block);
            let holders = remote.and_then(|remote| remote.holders.get_mut(usize::from(expert.0)));
            if let Some(holders) = holders.filter(|holders| !holders.contains(&holder)) {
                holders.push(holder);
            }
        }
    }

    /// A device holds no expert for others any more.
    pub fn drop_holder(&mut self, peer: PeerId) {
        let lists = self.stages.iter_mut().flat_map(|stage| &mut stage.remote).flat_map(|remote| &mut remote.holders);
        lists.for_each(|holders| holders.retain(|holder| *holder != ExpertHolder::Peer(peer)));
        self.pools.retain(|pool| pool.peer != peer);
    }

    /// Network messages per decoded token, seen from `coordinator`: token to the first stage, stage to stage, result
    /// back, and a round trip per block with remote experts.
    pub fn network_hops(&self, coordinator: PeerId) -> u32 {
        let mut at = coordinator;
        let mut network_hops = 0;
        for stage in &self.stages {
            network_hops += u32::from(stage.peer != at);
            at = stage.peer;
            let remote = stage.remote.iter().filter(|remote| {
                remote.holders.iter().any(|holders| matches!(holders.first(), Some(ExpertHolder::Peer(_))))
            });
            network_hops += 2 * remote.count() as u32;
        }
        network_hops + u32::from(at != coordinator)
    }

    /// The weight units a peer must have loaded before the plan can run, in the order a token needs them. Experts that
    /// come on demand are not among them.
    pub fn units_for(&self, peer: PeerId, shape: &ModelShape) -> Vec<WeightUnit> {
        let mut units = Vec::new();
        for stage in &self.stages {
            let own = stage.peer == peer;
            let is_resident = if own { stage.pool.is_none() } else { self.holder_pool(peer).is_none() };
            if own && self.embeds(stage.id) {
                units.push(WeightUnit::Embedding);
            }
            for block in stage.blocks.iter() {
                if own {
                    units.extend(shape.block_units(block));
                }
                let remote = stage.remote_experts(block);
                let is_held = |expert: &ExpertId| is_resident && holds(stage, remote, *expert, peer);
                let experts = shape.block_experts(block).into_iter().filter(is_held);
                units.extend(experts.map(|expert| WeightUnit::Expert(block, expert)));
            }
            if own && self.has_lm_head(stage.id) {
                units.push(WeightUnit::LmHead);
            }
        }
        units
    }

    /// The blocks whose experts a peer loads on demand, and its slots for them.
    pub fn pool_for(&self, peer: PeerId, shape: &ModelShape) -> PooledExperts {
        let mut pooled = PooledExperts::default();
        for (stage, pool) in self.stages.iter().filter_map(|stage| Some((stage, stage.pool?))) {
            if stage.peer == peer {
                pooled.blocks.extend(stage.blocks.iter().filter(|block| shape.expert_count(*block) > 0));
                pooled.slots = pooled.slots.saturating_add(pool.slots);
            }
        }
        if let Some(pool) = self.holder_pool(peer) {
            pooled.blocks.extend(self.held_for_others(peer));
            pooled.slots = pooled.slots.saturating_add(pool.slots);
        }
        pooled
    }

    /// Experts that share a peer's slots: all of its own stages with slots, and those that it holds for others.
    pub fn pool_experts(&self, peer: PeerId, shape: &ModelShape) -> u32 {
        let own = self.stages.iter().filter(|stage| stage.peer == peer && stage.pool.is_some());
        let own: usize = own.flat_map(|stage| stage.blocks.iter()).map(|block| shape.expert_count(block)).sum();
        let others = if self.holder_pool(peer).is_some() { self.experts_held(peer) } else { 0 };
        others.saturating_add(own as u32)
    }

    /// Some device loads experts on demand.
    pub fn is_on_demand(&self) -> bool {
        !self.pools.is_empty() || self.stages.iter().any(|stage| stage.pool.is_some())
    }

    /// Devices that load experts on demand: their memory is full of slots.
    pub fn loads_on_demand(&self) -> impl Iterator<Item = PeerId> {
        let stages = self.stages.iter().filter(|stage| stage.pool.is_some()).map(|stage| stage.peer);
        stages.chain(self.pools.iter().map(|pool| pool.peer))
    }
}

/// A peer has an expert of a stage's block, whose holders are `remote` unless they all lie with the stage.
fn holds(stage: &Stage, remote: Option<&RemoteExperts>, expert: ExpertId, peer: PeerId) -> bool {
    match remote {
        None => stage.peer == peer,
        Some(remote) => remote.holders.get(usize::from(expert.0)).is_some_and(|holders| {
            holders.iter().any(|holder| match holder {
                ExpertHolder::Own => stage.peer == peer,
                ExpertHolder::Peer(other) => *other == peer,
            })
        }),
    }
}

/// A stage's pool has room for the experts of one token.
fn check_pool(stage: &Stage, shape: &ModelShape) -> Result<(), PlanError> {
    let Some(pool) = stage.pool else { return Ok(()) };
    match shape.smallest_pool(stage.blocks) {
        None => Err(PlanError::NothingToPool(stage.id.0)),
        Some(needed) if pool.slots < needed.slots => {
            Err(PlanError::PoolTooSmall { slots: pool.slots, needed: needed.slots })
        }
        Some(_) => Ok(()),
    }
}
