//! The sizes of a model's routing.

use potluck_plan::{BlockIndex, ExpertId};

/// The sizes of a model's routing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceShape {
    /// Blocks with experts.
    pub blocks: u16,
    /// Experts of each.
    pub experts: u16,
    /// How many of them a token uses.
    pub used: u8,
}

impl TraceShape {
    /// The place of a block's expert in a list of all.
    pub fn index(self, block: BlockIndex, expert: usize) -> usize {
        usize::from(block.0) * usize::from(self.experts) + expert
    }

    /// True if there is such a block.
    pub fn has(self, block: BlockIndex) -> bool {
        block.0 < self.blocks
    }

    /// The experts that exist: a router's choice may come from a frame.
    pub fn known(self, chosen: &[ExpertId]) -> impl Iterator<Item = usize> + '_ {
        chosen.iter().map(|expert| usize::from(expert.0)).filter(move |expert| *expert < usize::from(self.experts))
    }
}
