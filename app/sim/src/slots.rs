//! The slots of a simulated device that loads experts on demand: which of them are there, and what had to be loaded.

use std::collections::BTreeMap;

use potluck_plan::{BlockIndex, ExpertId, PooledExperts};

/// An expert of a block.
type Key = (BlockIndex, ExpertId);

/// Slots for experts. The one used longest ago makes room.
#[derive(Default)]
pub(crate) struct SimSlots {
    pool: PooledExperts,
    /// What is there, and when it was used last.
    used: BTreeMap<Key, u64>,
    uses: u64,
    /// Loaded since it was asked last.
    missed: Vec<Key>,
}

impl SimSlots {
    /// Other slots are empty; the same ones keep what is in them.
    pub fn set(&mut self, pool: &PooledExperts) {
        if self.pool != *pool {
            *self = Self { pool: pool.clone(), ..Self::default() };
        }
    }

    /// Work needs an expert, which is loaded if it has no slot. False if experts of the block do not lie in slots.
    pub fn use_expert(&mut self, block: BlockIndex, expert: ExpertId) -> bool {
        let is_pooled = self.pool.blocks.contains(&block);
        if is_pooled && self.touch((block, expert)) {
            self.missed.push((block, expert));
        }
        is_pooled
    }

    /// Loads guesses, at most as many as a quarter of the slots and one; which ones were not there.
    pub fn load_ahead(&mut self, experts: &[Key]) -> Vec<Key> {
        let most = 1 + self.pool.slots as usize / 4;
        let pooled: Vec<Key> = experts.iter().copied().filter(|(block, _)| self.pool.blocks.contains(block)).collect();
        let absent: Vec<Key> = pooled.into_iter().filter(|key| !self.used.contains_key(key)).take(most).collect();
        absent.iter().for_each(|key| {
            self.touch(*key);
        });
        absent
    }

    /// What work had to wait for since this was asked last.
    pub fn take_missed(&mut self) -> Vec<Key> {
        std::mem::take(&mut self.missed)
    }

    /// True if the expert was not there.
    fn touch(&mut self, key: Key) -> bool {
        self.uses += 1;
        let is_absent = self.used.insert(key, self.uses).is_none();
        while self.used.len() > self.pool.slots as usize {
            let Some(idlest) = self.used.iter().min_by_key(|(_, used)| **used).map(|(key, _)| *key) else { break };
            self.used.remove(&idlest);
        }
        is_absent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_expert_used_longest_ago_makes_room() {
        let mut slots = SimSlots::default();
        let block = BlockIndex(1);
        assert!(!slots.use_expert(block, ExpertId(0)), "no slots");
        slots.set(&PooledExperts { blocks: [block].into(), slots: 2 });
        for expert in [0, 1, 0, 2, 0, 1] {
            assert!(slots.use_expert(block, ExpertId(expert)));
        }
        let missed: Vec<u16> = slots.take_missed().iter().map(|(_, expert)| expert.0).collect();
        assert_eq!(missed, [0, 1, 2, 1], "2 took the slot of 1");
        assert!(slots.take_missed().is_empty());
    }
}
