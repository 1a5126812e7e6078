//! Experts in slots of a pool: loading and dropping them changes one entry of a table on the GPU, never a buffer, a
//! bind group or a program.

use std::collections::{BTreeMap, BTreeSet};

use potluck_plan::{BlockIndex, BlockRange, ExpertId, Outcome, Task, Then};
use potluck_shaders::NO_SLOT;

use crate::runtime::error::EngineError;
use crate::runtime::layout::Scratch;
use crate::runtime::model::Model;
use crate::runtime::slots::{ExpertKey, Keep, SlotLoad};

impl Model {
    /// Gives an expert a slot, but not that of one which is needed.
    pub fn load_expert(
        &mut self,
        expert: ExpertKey,
        keep: Keep,
        needed: &BTreeSet<ExpertKey>,
    ) -> Result<SlotLoad, EngineError> {
        let (_, count) = self.routing(expert.0)?;
        if u32::from(expert.1.0) >= count {
            return Err(EngineError::BadRoute { block: expert.0, reason: "it names an expert that does not exist" });
        }
        let Some(given) = self.weights.slots_mut().begin(expert, keep, needed)? else { return Ok(SlotLoad::Present) };
        if let Some(evicted) = given.evicted {
            self.write_slot(evicted, NO_SLOT);
        }
        Ok(SlotLoad::Begun)
    }

    /// Frees the slot of an expert that is not needed.
    pub fn drop_expert(&mut self, expert: ExpertKey, needed: &BTreeSet<ExpertKey>) -> Result<(), EngineError> {
        self.weights.slots_mut().remove(expert, needed)?;
        self.write_slot(expert, NO_SLOT);
        Ok(())
    }

    /// Writes where an expert lies into the slot table of its block. Work submitted earlier does not see it.
    fn write_slot(&self, expert: ExpertKey, slot: u32) {
        let (block, expert) = expert;
        let Some(places) = self.memory.layout().experts.get(&block) else { return };
        self.write(Scratch::Tables, places.table + u64::from(expert.0) * 4, &slot.to_le_bytes());
    }

    /// Marks an expert in a slot as completely uploaded.
    pub fn finish_expert(&mut self, expert: ExpertKey) -> Result<(), EngineError> {
        let slot = self.weights.slots_mut().finish(expert)?;
        self.write_slot(expert, slot);
        Ok(())
    }

    /// The slot of an expert: its own, or one of the pool.
    pub fn expert_slot(&self, expert: ExpertKey) -> Option<u32> {
        let (block, expert) = expert;
        let own = self.memory.layout().experts.get(&block)?.slots.get(&expert).copied();
        own.or_else(|| self.weights.slots().slot((block, expert)))
    }

    /// Fills the slot tables of pooled blocks.
    pub fn write_pool_tables(&self) {
        let loaded: BTreeMap<ExpertKey, u32> =
            self.weights.slots().loaded().map(|(expert, slot, _)| (expert, slot)).collect();
        for block in self.weights.slots().blocks() {
            let Some(places) = self.memory.layout().experts.get(&block) else { continue };
            let ids = (0..self.expert_count(block) as u16).map(ExpertId);
            let table: Vec<u32> = ids.map(|id| loaded.get(&(block, id)).copied().unwrap_or(NO_SLOT)).collect();
            self.write(Scratch::Tables, places.table, bytemuck::cast_slice(&table));
        }
    }

    /// Experts of a pooled block that the task names and that are in no slot.
    pub fn missing_experts(&self, task: &Task) -> Option<Outcome> {
        let absent: BTreeSet<ExpertKey> = named_experts(task)
            .filter(|expert| self.weights.slots().has(expert.0) && !self.weights.slots().is_loaded(*expert))
            .collect();
        let block = absent.first()?.0;
        Some(Outcome::Missing { block, experts: absent.into_iter().map(|(_, expert)| expert).collect() })
    }

    /// Notes which experts a task needs, also if it cannot begin yet.
    pub fn touch_experts(&mut self, task: &Task) {
        named_experts(task).for_each(|expert| self.weights.slots_mut().touch(expert));
    }

    /// Counts which experts a task uses.
    pub fn use_experts(&mut self, task: &Task) {
        named_experts(task).for_each(|expert| self.weights.slots_mut().used(expert));
    }

    /// Ends a forward pass at the router of its first pooled block: only the router knows which experts it needs.
    pub fn end_at_pool(&self, task: Task) -> Task {
        match task {
            Task::Forward { batch, class, input, blocks, then, biases } => {
                let pooled = blocks.iter().find(|block| self.weights.slots().has(*block));
                let (blocks, then) =
                    pooled.map_or((blocks, then), |block| (BlockRange::new(blocks.start, block.0), Then::Route(block)));
                Task::Forward { batch, class, input, blocks, then, biases }
            }
            other => other,
        }
    }
}

/// The experts that a task names.
pub fn named_experts(task: &Task) -> impl Iterator<Item = ExpertKey> {
    let (block, experts) = match task {
        Task::Experts { block, experts, .. } => (*block, experts.as_slice()),
        _ => (BlockIndex(0), [].as_slice()),
    };
    experts.iter().flatten().map(move |expert| (block, *expert))
}
