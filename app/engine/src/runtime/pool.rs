//! Experts in slots of a pool: loading and dropping them changes one entry of a table on the GPU, never a buffer, a
//! bind group or a program.

use std::collections::{BTreeMap, BTreeSet};

use potluck_plan::{BlockIndex, BlockRange, ExpertId, Outcome, PooledExperts, Task, Then, WeightUnit};
use potluck_shaders::NO_SLOT;

use crate::runtime::core::Core;
use crate::runtime::engine::Engine;
use crate::runtime::error::EngineError;
use crate::runtime::layout::{Layout, Scratch};
use crate::runtime::slots::{ExpertKey, Keep, SlotError, SlotLoad};

impl Core {
    /// Experts that work in the engine's queue names: their slots must not change.
    fn needed_experts(&self) -> BTreeSet<ExpertKey> {
        self.waiting.iter().flat_map(|work| named_experts(&work.task)).collect()
    }

    /// Writes where an expert lies into the slot table of its block. Work submitted earlier does not see it.
    fn write_slot(&self, (block, expert): ExpertKey, slot: u32) {
        let Some(places) = self.layout.experts.get(&block) else { return };
        self.write(Scratch::Tables, places.table + u64::from(expert.0) * 4, &slot.to_le_bytes());
    }

    fn load_expert(&mut self, expert: ExpertKey, keep: Keep) -> Result<SlotLoad, EngineError> {
        self.check_alive()?;
        let (_, count) = self.routing(expert.0)?;
        if u32::from(expert.1.0) >= count {
            return Err(EngineError::BadRoute { block: expert.0, reason: "it names an expert that does not exist" });
        }
        let needed = self.needed_experts();
        let Some(given) = self.slots.begin(expert, keep, &needed)? else { return Ok(SlotLoad::Present) };
        if let Some(evicted) = given.evicted {
            self.write_slot(evicted, NO_SLOT);
        }
        Ok(SlotLoad::Begun)
    }

    fn drop_expert(&mut self, expert: ExpertKey) -> Result<(), EngineError> {
        self.check_alive()?;
        let needed = self.needed_experts();
        self.slots.remove(expert, &needed)?;
        self.write_slot(expert, NO_SLOT);
        Ok(())
    }

    /// Marks an expert in a slot as completely uploaded.
    pub fn finish_expert(&mut self, expert: ExpertKey) -> Result<(), EngineError> {
        let slot = self.slots.finish(expert)?;
        self.write_slot(expert, slot);
        Ok(())
    }

    /// Whether the unit is an expert in a slot whose bytes are not complete yet.
    pub fn is_loading(&self, unit: WeightUnit) -> bool {
        let WeightUnit::Expert(block, expert) = unit else { return false };
        self.slots.slot((block, expert)).is_some() && !self.slots.is_loaded((block, expert))
    }

    /// The slot of an expert: its own, or one of the pool.
    pub fn expert_slot(&self, layout: &Layout, (block, expert): ExpertKey) -> Option<u32> {
        let own = layout.experts.get(&block)?.slots.get(&expert).copied();
        own.or_else(|| self.slots.slot((block, expert)))
    }

    /// Fills the slot tables of pooled blocks.
    pub fn write_pool_tables(&self) {
        let loaded: BTreeMap<ExpertKey, u32> = self.slots.loaded().map(|(expert, slot, _)| (expert, slot)).collect();
        for block in self.slots.blocks() {
            let Some(places) = self.layout.experts.get(&block) else { continue };
            let ids = (0..self.expert_count(block) as u16).map(ExpertId);
            let table: Vec<u32> = ids.map(|id| loaded.get(&(block, id)).copied().unwrap_or(NO_SLOT)).collect();
            self.write(Scratch::Tables, places.table, bytemuck::cast_slice(&table));
        }
    }

    /// Experts of a pooled block that the task names and that are in no slot.
    pub fn missing_experts(&self, task: &Task) -> Option<Outcome> {
        let absent: BTreeSet<ExpertKey> =
            named_experts(task).filter(|expert| self.slots.has(expert.0) && !self.slots.is_loaded(*expert)).collect();
        let block = absent.first()?.0;
        Some(Outcome::Missing { block, experts: absent.into_iter().map(|(_, expert)| expert).collect() })
    }

    /// Notes which experts a task needs, also if it cannot begin yet.
    pub fn touch_experts(&mut self, task: &Task) {
        named_experts(task).for_each(|expert| self.slots.touch(expert));
    }

    /// Counts which experts a task uses.
    pub fn use_experts(&mut self, task: &Task) {
        named_experts(task).for_each(|expert| self.slots.used(expert));
    }

    /// Ends a forward pass at the router of its first pooled block: only the router knows which experts it needs.
    pub fn end_at_pool(&self, task: Task) -> Task {
        match task {
            Task::Forward { batch, class, input, blocks, then } => {
                let pooled = blocks.iter().find(|block| self.slots.has(*block));
                let (blocks, then) =
                    pooled.map_or((blocks, then), |block| (BlockRange::new(blocks.start, block.0), Then::Route(block)));
                Task::Forward { batch, class, input, blocks, then }
            }
            other => other,
        }
    }
}

/// The experts that a task names.
fn named_experts(task: &Task) -> impl Iterator<Item = ExpertKey> {
    let (block, experts) = match task {
        Task::Experts { block, experts, .. } => (*block, experts.as_slice()),
        _ => (BlockIndex(0), [].as_slice()),
    };
    experts.iter().flatten().map(move |expert| (block, *expert))
}

impl Engine {
    /// As [`Engine::reserve`], with a fixed number of slots for the experts of some blocks. `units` must not name such
    /// experts. Slots keep their experts if blocks and slots stay the same, and are empty otherwise.
    ///
    /// A forward pass through a pooled block ends at its router with [`Outcome::Routed`]: submit the experts as
    /// [`Task::Experts`], then go on with `Input::Experts`. It ends with [`Outcome::Missing`] if experts are in no slot:
    /// load them and submit it again, or submit it for the other experts meanwhile.
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
        Ok(self.inner.core.borrow_mut().slots.keep((block, expert), keep)?)
    }

    /// The expert makes room before all others that may: a guess that was wrong.
    pub fn age_expert(&self, block: BlockIndex, expert: ExpertId) {
        self.inner.core.borrow_mut().slots.age((block, expert));
    }

    /// The expert makes room as if it was used now, since it will be needed soon. That counts as no use ([`Eviction::Lfu`]).
    pub fn touch_expert(&self, block: BlockIndex, expert: ExpertId) {
        self.inner.core.borrow_mut().slots.touch((block, expert));
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
        self.inner.core.borrow().slots.loaded().map(|(expert, _, keep)| (expert, keep)).collect()
    }

    /// Slots that a pooled block shares with all blocks whose experts have the same shapes: the most experts of it that
    /// can lie on the device at a time.
    ///
    /// # Errors
    /// The block is not pooled.
    pub fn slots_for(&self, block: BlockIndex) -> Result<u32, SlotError> {
        self.inner.core.borrow().slots.count(block)
    }

    /// Free slots for experts of a pooled block.
    ///
    /// # Errors
    /// The block is not pooled.
    pub fn free_slots(&self, block: BlockIndex) -> Result<u32, SlotError> {
        self.inner.core.borrow().slots.free(block)
    }
}
