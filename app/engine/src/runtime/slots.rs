//! Which experts lie in the slots of a pool: a state machine without a GPU. A slab class has slots for experts of one
//! shape and weight type; its blocks share them.

use std::collections::{BTreeMap, BTreeSet};

use potluck_plan::{BlockIndex, ExpertId};

/// An expert of a block.
pub type ExpertKey = (BlockIndex, ExpertId);

/// Which evictable expert makes room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Eviction {
    /// The one used longest ago.
    #[default]
    Lru,
    /// The one used least often since it has its slot, and of these the one used longest ago.
    Lfu,
}

/// How long an expert stays in its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Keep {
    /// It makes room when another expert needs a slot and none is free, in the order of [`Eviction`].
    Evictable,
    /// It stays until it is dropped.
    Kept,
    /// It stays and cannot be dropped until this is changed.
    Pinned,
}

/// What loading an expert takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotLoad {
    /// Nothing: it is there, or an earlier load of it is not finished yet.
    Present,
    /// A slot is its own now: upload its tensors, then finish its unit.
    Begun,
}

/// Why a slot was not given or freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SlotError {
    /// The block has no slots.
    #[error("The experts of block {0:?} have no slots here: reserve some first.")]
    NotPooled(BlockIndex),
    /// Every slot of the block's class holds an expert that must stay.
    #[error("All {slots} slots for experts of block {block:?} are in use: drop one or reserve more.")]
    Full {
        /// The block.
        block: BlockIndex,
        /// Slots of its class.
        slots: u32,
    },
    /// The expert is in no slot.
    #[error("Expert {1:?} of block {0:?} is in no slot.")]
    Absent(BlockIndex, ExpertId),
    /// The expert is pinned.
    #[error("Expert {1:?} of block {0:?} is pinned.")]
    Pinned(BlockIndex, ExpertId),
    /// Work that waits needs the expert.
    #[error("Expert {1:?} of block {0:?} is needed by work that waits.")]
    Needed(BlockIndex, ExpertId),
}

/// A slot that was given to an expert, and the expert that made room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Given {
    pub slot: u32,
    pub evicted: Option<ExpertKey>,
}

#[derive(Clone, Copy, Debug)]
struct Tenant {
    slot: u32,
    keep: Keep,
    /// All its bytes are uploaded.
    loaded: bool,
    /// When it was used last, by the pool's count of uses.
    used: u64,
    /// How many tokens of work used it since it has its slot.
    times: u64,
}

/// The slots of every class and the experts in them.
#[derive(Clone, Debug, Default)]
pub struct Slots {
    classes: BTreeMap<BlockIndex, u16>,
    counts: Vec<u32>,
    free: Vec<BTreeSet<u32>>,
    tenants: BTreeMap<ExpertKey, Tenant>,
    uses: u64,
    eviction: Eviction,
}

impl Slots {
    /// Empty slots: the class of each block, and how many slots each class has.
    pub fn new(classes: BTreeMap<BlockIndex, u16>, counts: Vec<u32>) -> Self {
        let free = counts.iter().map(|count| (0..*count).collect()).collect();
        Self { classes, counts, free, tenants: BTreeMap::new(), uses: 0, eviction: Eviction::Lru }
    }

    /// Experts make room in this order.
    #[must_use]
    pub fn evicting(self, eviction: Eviction) -> Self {
        Self { eviction, ..self }
    }

    /// Whether experts of the block lie in slots.
    pub fn has(&self, block: BlockIndex) -> bool {
        self.classes.contains_key(&block)
    }

    /// The blocks whose experts lie in slots.
    pub fn blocks(&self) -> impl Iterator<Item = BlockIndex> {
        self.classes.keys().copied()
    }

    fn class(&self, block: BlockIndex) -> Result<u16, SlotError> {
        self.classes.get(&block).copied().ok_or(SlotError::NotPooled(block))
    }

    /// Gives the expert a slot: a free one, or that of an evictable expert which no waiting work needs. `None` if it has
    /// one already.
    pub fn begin(
        &mut self,
        expert: ExpertKey,
        keep: Keep,
        needed: &BTreeSet<ExpertKey>,
    ) -> Result<Option<Given>, SlotError> {
        let class = self.class(expert.0)?;
        self.uses += 1;
        if let Some(tenant) = self.tenants.get_mut(&expert) {
            (tenant.keep, tenant.used) = (keep, self.uses);
            return Ok(None);
        }
        let (slot, evicted) = match self.free[usize::from(class)].pop_first() {
            Some(slot) => (slot, None),
            None => {
                let full = SlotError::Full { block: expert.0, slots: self.counts[usize::from(class)] };
                let evicted = self.idlest(class, needed).ok_or(full)?;
                let tenant = self.tenants.remove(&evicted).ok_or(full)?;
                (tenant.slot, Some(evicted))
            }
        };
        self.tenants.insert(expert, Tenant { slot, keep, loaded: false, used: self.uses, times: 0 });
        Ok(Some(Given { slot, evicted }))
    }

    /// The evictable expert of a class that makes room first. One whose upload runs is not evictable.
    fn idlest(&self, class: u16, needed: &BTreeSet<ExpertKey>) -> Option<ExpertKey> {
        let evictable = self.tenants.iter().filter(|(expert, tenant)| {
            self.classes.get(&expert.0) == Some(&class)
                && tenant.loaded
                && tenant.keep == Keep::Evictable
                && !needed.contains(expert)
        });
        let order = |tenant: &Tenant| match self.eviction {
            Eviction::Lru => (0, tenant.used),
            Eviction::Lfu => (tenant.times, tenant.used),
        };
        evictable.min_by_key(|(_, tenant)| order(tenant)).map(|(expert, _)| *expert)
    }

    /// Marks the expert as completely uploaded; returns its slot.
    pub fn finish(&mut self, expert: ExpertKey) -> Result<u32, SlotError> {
        let tenant = self.tenants.get_mut(&expert).ok_or(SlotError::Absent(expert.0, expert.1))?;
        tenant.loaded = true;
        Ok(tenant.slot)
    }

    /// Frees the slot of an expert, whether it is loaded or being loaded.
    pub fn remove(&mut self, expert: ExpertKey, needed: &BTreeSet<ExpertKey>) -> Result<(), SlotError> {
        let class = self.class(expert.0)?;
        let tenant = self.tenants.get(&expert).ok_or(SlotError::Absent(expert.0, expert.1))?;
        if tenant.keep == Keep::Pinned {
            return Err(SlotError::Pinned(expert.0, expert.1));
        }
        if needed.contains(&expert) {
            return Err(SlotError::Needed(expert.0, expert.1));
        }
        self.free[usize::from(class)].insert(tenant.slot);
        self.tenants.remove(&expert);
        Ok(())
    }

    /// Changes how long an expert stays.
    pub fn keep(&mut self, expert: ExpertKey, keep: Keep) -> Result<(), SlotError> {
        let tenant = self.tenants.get_mut(&expert).ok_or(SlotError::Absent(expert.0, expert.1))?;
        tenant.keep = keep;
        Ok(())
    }

    /// Notes that the expert is needed now or soon. That counts as no use.
    pub fn touch(&mut self, expert: ExpertKey) {
        self.uses += 1;
        if let Some(tenant) = self.tenants.get_mut(&expert) {
            tenant.used = self.uses;
        }
    }

    /// Counts that a token of work uses the expert.
    pub fn used(&mut self, expert: ExpertKey) {
        if let Some(tenant) = self.tenants.get_mut(&expert) {
            tenant.times += 1;
        }
    }

    /// The expert counts as unused for longest: it makes room first.
    pub fn age(&mut self, expert: ExpertKey) {
        if let Some(tenant) = self.tenants.get_mut(&expert) {
            (tenant.used, tenant.times) = (0, 0);
        }
    }

    /// Forgets all bytes: every slot is free.
    pub fn clear(&mut self) {
        let (classes, counts) = (std::mem::take(&mut self.classes), std::mem::take(&mut self.counts));
        *self = Self::new(classes, counts).evicting(self.eviction);
    }

    /// Whether all bytes of the expert are in its slot.
    pub fn is_loaded(&self, expert: ExpertKey) -> bool {
        self.tenants.get(&expert).is_some_and(|tenant| tenant.loaded)
    }

    /// The slot of an expert that is loaded or being loaded.
    pub fn slot(&self, expert: ExpertKey) -> Option<u32> {
        self.tenants.get(&expert).map(|tenant| tenant.slot)
    }

    /// The loaded experts with their slots and how long they stay.
    pub fn loaded(&self) -> impl Iterator<Item = (ExpertKey, u32, Keep)> {
        self.tenants
            .iter()
            .filter(|(_, tenant)| tenant.loaded)
            .map(|(expert, tenant)| (*expert, tenant.slot, tenant.keep))
    }

    /// Slots of a block's class.
    pub fn count(&self, block: BlockIndex) -> Result<u32, SlotError> {
        Ok(self.counts[usize::from(self.class(block)?)])
    }

    /// Free slots for experts of a block.
    pub fn free(&self, block: BlockIndex) -> Result<u32, SlotError> {
        Ok(self.free[usize::from(self.class(block)?)].len() as u32)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;
    use proptest::prelude::*;

    const NONE: BTreeSet<ExpertKey> = BTreeSet::new();

    #[test]
    fn an_aged_expert_makes_room_first() {
        let mut slots = slots();
        for id in [1, 2] {
            slots.begin(expert(0, id), Keep::Evictable, &NONE).unwrap();
            slots.finish(expert(0, id)).unwrap();
        }
        slots.age(expert(0, 2));
        let given = slots.begin(expert(0, 3), Keep::Evictable, &NONE).unwrap().unwrap();
        assert_eq!(given.evicted, Some(expert(0, 2)), "expert 1 was used before it");
    }

    fn expert(block: u16, id: u16) -> ExpertKey {
        (BlockIndex(block), ExpertId(id))
    }

    /// Blocks 0 and 2 share a class of two slots, block 1 has one of its own.
    fn slots() -> Slots {
        Slots::new(BTreeMap::from([(BlockIndex(0), 0), (BlockIndex(1), 1), (BlockIndex(2), 0)]), vec![2, 1])
    }

    fn load(slots: &mut Slots, expert: ExpertKey, keep: Keep) -> Option<ExpertKey> {
        let given = slots.begin(expert, keep, &NONE).unwrap().unwrap();
        slots.finish(expert).unwrap();
        given.evicted
    }

    #[test]
    fn blocks_of_a_class_share_slots_and_the_idlest_expert_makes_room() {
        let mut slots = slots();
        assert_eq!(load(&mut slots, expert(0, 4), Keep::Evictable), None);
        assert_eq!(load(&mut slots, expert(2, 5), Keep::Evictable), None);
        assert_eq!(slots.free(BlockIndex(0)), Ok(0));
        assert_eq!(slots.free(BlockIndex(1)), Ok(1), "another class");
        slots.touch(expert(0, 4));
        assert_eq!(load(&mut slots, expert(0, 6), Keep::Evictable), Some(expert(2, 5)));
        assert_eq!(load(&mut slots, expert(1, 0), Keep::Evictable), None);
        assert_eq!(slots.begin(expert(3, 0), Keep::Kept, &NONE), Err(SlotError::NotPooled(BlockIndex(3))));
    }

    #[test]
    fn the_expert_used_least_often_makes_room_if_that_is_chosen() {
        for (eviction, first) in [(Eviction::Lru, 1), (Eviction::Lfu, 2)] {
            let mut slots = slots().evicting(eviction);
            slots.clear();
            load(&mut slots, expert(0, 1), Keep::Evictable);
            (0..2).for_each(|_| slots.used(expert(0, 1)));
            load(&mut slots, expert(0, 2), Keep::Evictable);
            slots.used(expert(0, 2));
            // As hints do: needed soon, but not used.
            (0..2).for_each(|_| slots.touch(expert(0, 2)));
            let evicted = load(&mut slots, expert(0, 3), Keep::Evictable);
            assert_eq!(evicted, Some(expert(0, first)), "{eviction:?}");
        }
    }

    #[test]
    fn what_must_stay_is_not_evicted() {
        let mut slots = slots();
        load(&mut slots, expert(0, 0), Keep::Pinned);
        load(&mut slots, expert(0, 1), Keep::Kept);
        let full = Err(SlotError::Full { block: BlockIndex(2), slots: 2 });
        assert_eq!(slots.begin(expert(2, 0), Keep::Evictable, &NONE), full);
        slots.keep(expert(0, 1), Keep::Evictable).unwrap();
        let needed = BTreeSet::from([expert(0, 1)]);
        assert_eq!(slots.begin(expert(2, 0), Keep::Evictable, &needed), full);
        let given = slots.begin(expert(2, 0), Keep::Evictable, &NONE).unwrap().unwrap();
        assert_eq!(given.evicted, Some(expert(0, 1)));
        assert!(!slots.is_loaded(expert(2, 0)), "its upload runs");
        assert_eq!(
            slots.begin(expert(2, 1), Keep::Evictable, &NONE),
            full.map_err(|_| SlotError::Full { block: BlockIndex(2), slots: 2 })
        );
    }

    #[test]
    fn pinned_or_needed_experts_are_not_dropped_and_others_are() {
        let mut slots = slots();
        load(&mut slots, expert(0, 0), Keep::Pinned);
        assert_eq!(slots.remove(expert(0, 0), &NONE), Err(SlotError::Pinned(BlockIndex(0), ExpertId(0))));
        slots.keep(expert(0, 0), Keep::Kept).unwrap();
        let needed = BTreeSet::from([expert(0, 0)]);
        assert_eq!(slots.remove(expert(0, 0), &needed), Err(SlotError::Needed(BlockIndex(0), ExpertId(0))));
        assert_eq!(slots.remove(expert(0, 0), &NONE), Ok(()));
        assert_eq!(slots.remove(expert(0, 0), &NONE), Err(SlotError::Absent(BlockIndex(0), ExpertId(0))));
        slots.begin(expert(0, 1), Keep::Evictable, &NONE).unwrap();
        assert_eq!(slots.remove(expert(0, 1), &NONE), Ok(()), "a load is given up");
        assert_eq!(slots.finish(expert(0, 1)), Err(SlotError::Absent(BlockIndex(0), ExpertId(1))));
        assert_eq!(slots.free(BlockIndex(0)), Ok(2));
    }

    #[derive(Clone, Debug)]
    enum Step {
        Begin(ExpertKey, Keep, BTreeSet<ExpertKey>),
        Finish(ExpertKey),
        Remove(ExpertKey, BTreeSet<ExpertKey>),
        Keep(ExpertKey, Keep),
        Touch(ExpertKey),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let who = || (0..3u16, 0..5u16).prop_map(|(block, id)| expert(block, id));
        let keep = || prop_oneof![3 => Just(Keep::Evictable), 1 => Just(Keep::Kept), 1 => Just(Keep::Pinned)];
        let needed = || proptest::collection::btree_set(who(), 0..4);
        let step = prop_oneof![
            4 => (who(), keep(), needed()).prop_map(|(e, k, n)| Step::Begin(e, k, n)),
            4 => who().prop_map(Step::Finish),
            1 => (who(), needed()).prop_map(|(e, n)| Step::Remove(e, n)),
            2 => (who(), keep()).prop_map(|(e, k)| Step::Keep(e, k)),
            2 => who().prop_map(Step::Touch),
        ];
        proptest::collection::vec(step, 1..80)
    }

    /// No slot has two tenants, none is lost, and each is of its tenant's class.
    fn assert_whole(slots: &Slots) {
        for (class, &count) in slots.counts.iter().enumerate() {
            let tenants = slots.tenants.iter().filter(|(who, _)| usize::from(slots.classes[&who.0]) == class);
            let taken: Vec<u32> = tenants.map(|(_, tenant)| tenant.slot).collect();
            let mut all: Vec<u32> = taken.iter().chain(&slots.free[class]).copied().collect();
            all.sort_unstable();
            assert_eq!(all, (0..count).collect::<Vec<_>>(), "the slots of class {class}");
        }
    }

    proptest! {
        #[test]
        fn no_slot_is_shared_or_lost_and_nothing_needed_is_evicted(steps in steps()) {
            let mut slots = slots();
            for step in steps {
                let before = slots.tenants.clone();
                match step {
                    Step::Begin(who, keep, needed) => match slots.begin(who, keep, &needed) {
                        Ok(Some(given)) => {
                            prop_assert!(!slots.is_loaded(who), "its bytes are not there yet");
                            if let Some(evicted) = given.evicted {
                                let tenant = before[&evicted];
                                prop_assert!(tenant.loaded && tenant.keep == Keep::Evictable);
                                prop_assert!(!needed.contains(&evicted));
                                prop_assert_eq!(tenant.slot, given.slot);
                                let idler = before.iter().find(|(other, other_tenant)| {
                                    slots.classes[&other.0] == slots.classes[&evicted.0]
                                        && other_tenant.loaded
                                        && other_tenant.keep == Keep::Evictable
                                        && !needed.contains(other)
                                        && other_tenant.used < tenant.used
                                });
                                prop_assert!(idler.is_none(), "{idler:?} was used before {evicted:?}");
                            }
                        }
                        Ok(None) => prop_assert!(before.contains_key(&who)),
                        Err(error) => {
                            let full = matches!(error, SlotError::Full { .. });
                            prop_assert!(full && !slots.tenants.contains_key(&who));
                        }
                    },
                    Step::Finish(who) => prop_assert_eq!(slots.finish(who).is_ok(), before.contains_key(&who)),
                    Step::Remove(who, needed) => {
                        let may = before.get(&who).is_some_and(|tenant| tenant.keep != Keep::Pinned);
                        prop_assert_eq!(slots.remove(who, &needed).is_ok(), may && !needed.contains(&who));
                    }
                    Step::Keep(who, keep) => prop_assert_eq!(slots.keep(who, keep).is_ok(), before.contains_key(&who)),
                    Step::Touch(who) => slots.touch(who),
                }
                assert_whole(&slots);
            }
        }
    }
}
