//! The ends of the model on the host: which layers it has at least, and what that costs a token.

use potluck_plan::{BlockIndex, Bytes, Ends};

use crate::layers::LayerRange;
use crate::planned::best_stages;
use crate::{Room, cost::predict, placement};

/// What a host has at least that keeps both ends. Every token passes it twice, unless it has all of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HostEnds {
    /// The embedding and the first block, or more where the model must not be cut behind that.
    pub head: LayerRange,
    /// The last block and the LM head, or more; nothing if the head is the whole model.
    pub tail: LayerRange,
}

impl HostEnds {
    pub fn of(room: &Room<'_>) -> Self {
        let (blocks, all) = (room.shape.blocks.len(), room.layers.all());
        let may_cut = |at: &usize| room.shape.may_cut_before(BlockIndex(*at as u16));
        // One block at least lies between them: otherwise the host has them all.
        let first = (1..blocks).find(may_cut);
        let last = (1..blocks).rev().find(may_cut);
        match (first, last) {
            (Some(first), Some(last)) if first < last => {
                let head = LayerRange { start: 0, end: first + 1 };
                Self { head, tail: LayerRange { start: last + 1, end: all.end } }
            }
            _ => Self { head: all, tail: LayerRange { start: all.end, end: all.end } },
        }
    }

    /// Nothing lies between the ends: the host has all blocks.
    pub fn is_all(&self) -> bool {
        self.tail.start == self.tail.end
    }

    /// Bytes of the tail on a device that has the embedding: a tied LM head takes none.
    pub fn tail_memory(&self, room: &Room<'_>) -> Bytes {
        room.layers.memory(self.tail).saturating_sub(room.layers.tied(room.layers.all()))
    }

    /// Bytes of both, at least.
    pub fn memory(&self, room: &Room<'_>) -> Bytes {
        let head = room.layers.memory(self.head);
        if !self.is_all() {
            return head.saturating_add(self.tail_memory(room));
        }
        // Other devices may have experts of a model that must not be cut.
        let given = room.shape.all_blocks().iter().filter(|block| !room.keeps_experts(*block));
        let given = given.filter_map(|block| room.shape.blocks.get(usize::from(block.0)));
        head.saturating_sub(given.map(|block| block.weights().saturating_sub(block.without_experts())).sum())
    }
}

/// Milliseconds that a token would take in this room if the ends of the model could be anywhere. `None` if they may be, or if
/// there is no such plan.
pub fn free_millis(room: &Room<'_>) -> Option<f64> {
    if room.ends == Ends::Anywhere {
        return None;
    }
    let free = Room { ends: Ends::Anywhere, ..room.clone() };
    let stages = best_stages(&free)?;
    Some(predict(&free, &placement::plan(&free, stages)).token_millis)
}
