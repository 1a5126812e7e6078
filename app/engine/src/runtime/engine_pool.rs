//! Experts in slots of a pool, in the engine's public API.

use std::collections::{BTreeMap, BTreeSet};

use potluck_plan::{BlockIndex, ExpertId, PooledExperts, WeightUnit};

use crate::runtime::engine::Engine;
use crate::runtime::error::EngineError;
use crate::runtime::layout::Layout;
use crate::runtime::slots::{Keep, SlotError, SlotLoad};

impl Engine {
    /// As [`Engine::reserve`], with a fixed number of slots for the experts of some blocks. `units` must not name such
    /// experts. Slots keep their experts if blocks and slots stay the same, and are empty otherwise.
    ///
    /// A forward pass through a pooled block ends at its router with [`Outcome::Routed`]: submit the experts as
    /// [`Task::Experts`], then go on with `Input::Experts`. It ends with [`Outcome::Missing`] if experts are in no slot:
    /// load them and submit it again, or submit it for the other experts meanwhile.
    ///
    /// [`Outcome::Routed`]: potluck_plan::Outcome::Routed
    /// [`Outcome::Missing`]: potluck_plan::Outcome::Missing
    /// [`Task::Experts`]: potluck_plan::Task::Experts
    ///
    /// # Errors
    /// As [`Engine::reserve`]; also if a block has no experts, or there are fewer slots than kinds of experts.
    pub fn reserve_pool(&self, units: &BTreeSet<WeightUnit>, pool: &PooledExperts) -> Result<Layout, EngineError> {
        self.inner.core.borrow_mut().hold(units, pool)
    }

    /// Gives an expert of a pooled block a slot: a free one, or that of the evictable expert used longest ago. After
    /// [`SlotLoad::Begun`] upload its tensors with [`Engine::upload`] and then call [`Engine::finish`]. Other work may
    /// run meanwhile; what was submitted before still sees the evicted expert.
    ///
    /// # Errors
    /// The block is not pooled or has no such expert, every slot holds an expert that must stay, or the device is lost.
    pub fn load_expert(&self, block: BlockIndex, expert: ExpertId, keep: Keep) -> Result<SlotLoad, EngineError> {
        self.inner.core.borrow_mut().load_expert((block, expert), keep)
    }

    /// Changes how long an expert stays in its slot.
    ///
    /// # Errors
    /// The expert is in no slot.
    pub fn keep_expert(&self, block: BlockIndex, expert: ExpertId, keep: Keep) -> Result<(), EngineError> {
        Ok(self.inner.core.borrow_mut().model.weights.slots_mut().keep((block, expert), keep)?)
    }

    /// The expert makes room before all others that may: a guess that was wrong.
    pub fn age_expert(&self, block: BlockIndex, expert: ExpertId) {
        self.inner.core.borrow_mut().model.weights.slots_mut().age((block, expert));
    }

    /// The expert makes room as if it was used now, since it will be needed soon. That counts as no use
    /// ([`Eviction::Lfu`](crate::runtime::slots::Eviction::Lfu)).
    pub fn touch_expert(&self, block: BlockIndex, expert: ExpertId) {
        self.inner.core.borrow_mut().model.weights.slots_mut().touch((block, expert));
    }

    /// Frees the slot of an expert. Gives up its load if it is not finished.
    ///
    /// # Errors
    /// The expert is in no slot, pinned or needed by work that waits, or the device is lost.
    pub fn drop_expert(&self, block: BlockIndex, expert: ExpertId) -> Result<(), EngineError> {
        self.inner.core.borrow_mut().drop_expert((block, expert))
    }

    /// The loaded experts of pooled blocks, and how long they stay.
    pub fn pooled_experts(&self) -> BTreeMap<(BlockIndex, ExpertId), Keep> {
        self.inner.core.borrow().model.weights.slots().loaded().map(|(expert, _, keep)| (expert, keep)).collect()
    }

    /// Slots that a pooled block shares with all blocks whose experts have the same shapes: the most experts of it that
    /// can lie on the device at a time.
    ///
    /// # Errors
    /// The block is not pooled.
    pub fn slots_for(&self, block: BlockIndex) -> Result<u32, SlotError> {
        self.inner.core.borrow().model.weights.slots().count(block)
    }

    /// Free slots for experts of a pooled block.
    ///
    /// # Errors
    /// The block is not pooled.
    pub fn free_slots(&self, block: BlockIndex) -> Result<u32, SlotError> {
        self.inner.core.borrow().model.weights.slots().free(block)
    }
}
