//! Experts on demand: slots for some of the experts of a stage's blocks, where its device does not hold them all.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::{BlockIndex, BlockRange, Bytes, FeedForwardShape, ModelShape, PeerId};

/// A stage's experts come on demand: its device has slots for some of them and loads the others when a router chooses
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpertPool {
    /// Slots for the experts of all blocks of the stage together.
    pub slots: u32,
}

/// A device holds experts for the stages of others in slots: it loads those that are called and have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HolderPool {
    /// Who.
    pub peer: PeerId,
    /// Slots for all experts that the plan names it for.
    pub slots: u32,
}

/// Blocks whose experts lie in slots instead of places of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PooledExperts {
    /// The blocks.
    pub blocks: BTreeSet<BlockIndex>,
    /// Slots for the experts of all these blocks together. Blocks whose experts have the same shapes and weight types
    /// share theirs; the slots are divided among such classes in proportion to their experts.
    pub slots: u32,
}

/// Experts of one size.
#[derive(Clone, Copy, Debug)]
struct ExpertClass {
    bytes: Bytes,
    experts: u32,
    /// Most experts of a block that one token uses.
    used: u32,
}

/// Divides slots among classes in proportion to their experts: at least one each, and no more than there are experts.
/// `None` if there are fewer slots than classes.
pub fn divide_slots(slots: u32, experts: &[u32]) -> Option<Vec<u32>> {
    let classes = u32::try_from(experts.len()).ok().filter(|classes| *classes <= slots)?;
    let total: u64 = experts.iter().map(|count| u64::from(*count)).sum();
    let spare = u64::from(slots - classes);
    let mut counts: Vec<u32> =
        experts.iter().map(|&count| count.min(1 + (spare * u64::from(count) / total.max(1)) as u32)).collect();
    // What rounding left over goes to the classes in order.
    let mut left = slots.saturating_sub(counts.iter().sum());
    for (count, &experts) in counts.iter_mut().zip(experts) {
        let more = left.min(experts - *count);
        *count += more;
        left -= more;
    }
    Some(counts)
}

impl ModelShape {
    /// Bytes of the slots of a pool for the experts of these blocks.
    pub fn pool_bytes(&self, blocks: BlockRange, pool: ExpertPool) -> Bytes {
        slot_bytes(&self.expert_classes(blocks.iter()), pool)
    }

    /// Bytes of a device's slots.
    pub fn pooled_bytes(&self, pooled: &PooledExperts) -> Bytes {
        let pool = ExpertPool { slots: pooled.slots };
        slot_bytes(&self.expert_classes(pooled.blocks.iter().copied()), pool)
    }

    /// The pool with the fewest slots that has room for all experts that a token uses in any of these blocks. `None` if
    /// the blocks have no experts.
    pub fn smallest_pool(&self, blocks: BlockRange) -> Option<ExpertPool> {
        smallest(&self.expert_classes(blocks.iter()))
    }

    /// The same for blocks that need not follow each other.
    pub fn smallest_pool_for(&self, blocks: &BTreeSet<BlockIndex>) -> Option<ExpertPool> {
        smallest(&self.expert_classes(blocks.iter().copied()))
    }

    /// The pool with the most slots in this many bytes, and no more than there are experts. `None` if not even
    /// [`ModelShape::smallest_pool`] fits.
    pub fn largest_pool(&self, blocks: BlockRange, bytes: Bytes) -> Option<ExpertPool> {
        largest(&self.expert_classes(blocks.iter()), bytes)
    }

    /// The same for blocks that need not follow each other.
    pub fn largest_pool_for(&self, blocks: &BTreeSet<BlockIndex>, bytes: Bytes) -> Option<ExpertPool> {
        largest(&self.expert_classes(blocks.iter().copied()), bytes)
    }

    /// The sizes of the experts of these blocks, in the order of the blocks.
    fn expert_classes(&self, blocks: impl Iterator<Item = BlockIndex>) -> Vec<ExpertClass> {
        let mut classes: Vec<ExpertClass> = Vec::new();
        for block in blocks.filter_map(|index| self.blocks.get(usize::from(index.0))) {
            let FeedForwardShape::Experts { expert, count, used, .. } = block.feed_forward else { continue };
            match classes.iter_mut().find(|class| class.bytes == expert) {
                Some(class) => {
                    class.experts += u32::from(count);
                    class.used = class.used.max(u32::from(used));
                }
                None => {
                    classes.push(ExpertClass { bytes: expert, experts: u32::from(count), used: u32::from(used) });
                }
            }
        }
        classes
    }
}

fn slot_bytes(classes: &[ExpertClass], pool: ExpertPool) -> Bytes {
    let counts = slots_of(classes, pool).unwrap_or_default();
    counts.iter().zip(classes).map(|(slots, class)| Bytes(class.bytes.0.saturating_mul(u64::from(*slots)))).sum()
}

fn smallest(classes: &[ExpertClass]) -> Option<ExpertPool> {
    let suffices = |slots: u32| {
        let counts = slots_of(classes, ExpertPool { slots });
        counts.is_some_and(|counts| counts.iter().zip(classes).all(|(slots, class)| *slots >= class.used))
    };
    first(experts_in(classes), suffices).map(|slots| ExpertPool { slots })
}

fn largest(classes: &[ExpertClass], bytes: Bytes) -> Option<ExpertPool> {
    let smallest = smallest(classes)?;
    let all = experts_in(classes);
    let is_too_large = |slots: u32| slot_bytes(classes, ExpertPool { slots }) > bytes;
    let slots = first(all, is_too_large).map_or(all, |slots| slots - 1);
    (slots >= smallest.slots).then_some(ExpertPool { slots })
}

fn slots_of(classes: &[ExpertClass], pool: ExpertPool) -> Option<Vec<u32>> {
    divide_slots(pool.slots, &classes.iter().map(|class| class.experts).collect::<Vec<_>>())
}

fn experts_in(classes: &[ExpertClass]) -> u32 {
    classes.iter().map(|class| class.experts).sum()
}

/// The least number from 1 to `max` that meets a condition which all larger ones meet too.
fn first(max: u32, meets: impl Fn(u32) -> bool) -> Option<u32> {
    let (mut low, mut high) = (1, max.checked_add(1)?);
    while low < high {
        let middle = low + (high - low) / 2;
        if meets(middle) { high = middle } else { low = middle + 1 }
    }
    (low <= max).then_some(low)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;
    use crate::{BlockShape, Cuts, KvCacheType, ModelId};

    /// Blocks of 16 experts of these sizes, of which a token uses four.
    fn shape(experts: &[u64]) -> ModelShape {
        let block = |expert: &u64| BlockShape {
            token_mixer: Bytes(100),
            kv_cache_per_position: Bytes(1),
            kv_buffers: 2,
            state: Bytes::ZERO,
            feed_forward: FeedForwardShape::Experts {
                router: Bytes(10),
                expert: Bytes(*expert),
                count: 16,
                used: 4,
                shared: Bytes::ZERO,
            },
        };
        ModelShape {
            model: ModelId([0; 32]),
            hidden: 8,
            vocabulary: 8,
            embedding: Bytes(64),
            lm_head: Bytes(64),
            tied_lm_head: false,
            cuts: Cuts::Anywhere,
            kv_cache: KvCacheType::F32,
            blocks: experts.iter().map(block).collect(),
        }
    }

    #[test]
    fn a_pool_takes_the_bytes_of_its_slots_by_size() {
        let shape = shape(&[10, 30, 10]);
        assert_eq!(shape.pool_bytes(BlockRange::new(0, 1), ExpertPool { slots: 5 }), Bytes(50));
        // 32 experts of one size, 16 of the other.
        assert_eq!(shape.pool_bytes(BlockRange::new(0, 3), ExpertPool { slots: 12 }), Bytes(8 * 10 + 4 * 30));
        let all = shape.pool_bytes(BlockRange::new(0, 3), ExpertPool { slots: u32::MAX });
        assert_eq!(all, Bytes(32 * 10 + 16 * 30), "no more slots than experts");
    }

    #[test]
    fn the_smallest_pool_has_room_for_a_tokens_experts_of_each_size() {
        let shape = shape(&[10, 30, 10]);
        assert_eq!(shape.smallest_pool(BlockRange::new(0, 1)), Some(ExpertPool { slots: 4 }));
        let both = shape.smallest_pool(BlockRange::new(0, 3)).unwrap();
        let counts = |slots| divide_slots(slots, &[32, 16]).unwrap();
        assert!(counts(both.slots)[1] >= 4 && counts(both.slots - 1)[1] < 4, "{both:?}");
        assert_eq!(shape.smallest_pool(BlockRange::new(3, 3)), None);
    }

    #[test]
    fn the_largest_pool_fills_the_bytes() {
        let shape = shape(&[10, 30, 10]);
        let blocks = BlockRange::new(0, 3);
        for bytes in [250, 333, 799, 800, 5_000] {
            let pool = shape.largest_pool(blocks, Bytes(bytes)).unwrap();
            assert!(shape.pool_bytes(blocks, pool) <= Bytes(bytes));
            let more = ExpertPool { slots: pool.slots + 1 };
            assert!(pool.slots == 48 || shape.pool_bytes(blocks, more) > Bytes(bytes), "{bytes}: {pool:?}");
        }
        assert_eq!(shape.largest_pool(blocks, Bytes(100)), None, "less than a token's experts");
    }

    #[test]
    fn slots_are_divided_by_experts() {
        assert_eq!(divide_slots(10, &[10]), Some(vec![10]));
        assert_eq!(divide_slots(12, &[10]), Some(vec![10]), "no more slots than experts");
        assert_eq!(divide_slots(8, &[30, 10]), Some(vec![6, 2]));
        assert_eq!(divide_slots(2, &[1000, 1]), Some(vec![1, 1]), "one each at least");
        assert_eq!(divide_slots(1, &[8, 8]), None);
        assert_eq!(divide_slots(3, &[]), Some(vec![]));
    }
}
