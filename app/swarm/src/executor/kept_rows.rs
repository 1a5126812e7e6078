//! What a stage got and sent, kept so that the host can check it: hashes of all rows, and the rows that came in as long as there
//! is room for them.

use std::collections::{BTreeMap, BTreeSet};

use potluck_plan::{ConversationId, StageId};
use potluck_protocol::{RowRange, StageHashes};

use crate::limits;
use crate::row_hashes::Hashed;

/// The rows of a plan's stages on one device.
pub(super) struct KeptRows {
    /// Values of a row.
    width: usize,
    of: BTreeMap<(StageId, ConversationId), Kept>,
    /// Counts chunks that have arrived.
    arrivals: u64,
}

/// The rows of one conversation.
#[derive(Default)]
struct Kept {
    inputs: Hashed,
    outputs: Hashed,
    /// Exactly what the stage computes with, from the first position on, as far as it may be checked; `None` if there was no room.
    values: Option<Vec<f32>>,
    /// When its newest chunk arrived.
    newest: u64,
}

impl KeptRows {
    pub fn new(width: usize) -> Self {
        Self { width, of: BTreeMap::new(), arrivals: 0 }
    }

    /// Hidden vectors from position `base` on have arrived; the first stage gets tokens instead, which are not kept.
    pub fn arrived(&mut self, of: (StageId, ConversationId), base: usize, rows: &[f32]) {
        self.arrivals += 1;
        let kept = self.of.entry(of).or_default();
        kept.newest = self.arrivals;
        kept.inputs.put(base, rows, self.width);
        let start = base * self.width;
        if base == 0 {
            kept.values = Some(Vec::new());
        }
        if let Some(values) = &mut kept.values {
            values.truncate(start);
            // Rows behind a gap are of no use. A conversation may go back to where it was short enough.
            if values.len() == start {
                let room = limits::MAX_SHOWN_VALUES.saturating_sub(start);
                values.extend_from_slice(&rows[..rows.len().min(room)]);
            }
        }
        self.make_room();
    }

    /// Hidden vectors from position `base` on were sent, as the next stage reads them.
    pub fn sent(&mut self, of: (StageId, ConversationId), base: usize, rows: &[f32]) {
        if let Some(kept) = self.of.get_mut(&of) {
            kept.outputs.put(base, rows, self.width);
        }
    }

    /// Those that waited longest for their next chunk go first.
    fn make_room(&mut self) {
        let len = |kept: &Kept| kept.values.as_ref().map_or(0, Vec::len);
        while self.of.values().map(len).sum::<usize>() > limits::MAX_KEPT_VALUES {
            let oldest = self.of.values_mut().filter(|kept| len(kept) > 0).min_by_key(|kept| kept.newest);
            let Some(oldest) = oldest else { return };
            oldest.values = None;
        }
    }

    pub fn forget(&mut self, over: &BTreeSet<ConversationId>) {
        self.of.retain(|(_, known), _| !over.contains(known));
    }

    /// Hashes of what a stage got and sent; none if it has not got or sent so much.
    pub fn hashes(&self, range: &RowRange, embeds: bool, has_lm_head: bool) -> Option<StageHashes> {
        let kept = self.of.get(&(range.stage, range.conversation))?;
        let pages = |hashed: &Hashed, is_else: bool| match is_else {
            true => Some(Vec::new()),
            false => hashed.pages(range.positions as usize),
        };
        Some(StageHashes { inputs: pages(&kept.inputs, embeds)?, outputs: pages(&kept.outputs, has_lm_head)? })
    }

    /// A page of what a stage got, unless it is gone.
    pub fn page(&self, range: &RowRange, page: u32) -> Option<&[f32]> {
        let values = self.of.get(&(range.stage, range.conversation))?.values.as_ref()?;
        let positions = range.page(page);
        let of = |position: u32| (position as usize).saturating_mul(self.width);
        values.get(of(positions.start)..of(positions.end))
    }
}

#[cfg(test)]
mod tests {
    use potluck_plan::PlanEpoch;
    use potluck_protocol::PassId;

    use super::*;

    const STAGE: StageId = StageId(1);

    fn range(conversation: u32, positions: u32) -> RowRange {
        let (epoch, conversation, through) = (PlanEpoch(1), ConversationId(conversation), PassId(1));
        RowRange { epoch, stage: STAGE, conversation, through, positions }
    }

    #[test]
    fn a_rewound_conversation_shows_its_newest_rows() {
        let mut rows = KeptRows::new(2);
        let of = (STAGE, ConversationId(1));
        rows.arrived(of, 0, &[1.0; 8]);
        rows.arrived(of, 2, &[2.0; 2]);
        rows.sent(of, 0, &[3.0; 6]);
        assert_eq!(rows.page(&range(1, 3), 0), Some(&[1.0, 1.0, 1.0, 1.0, 2.0, 2.0][..]));
        assert!(rows.hashes(&range(1, 3), false, false).is_some_and(|hashes| hashes.outputs.len() == 1));
        assert_eq!(rows.hashes(&range(1, 4), false, false), None, "one position was taken back");
        rows.forget(&BTreeSet::from([ConversationId(1)]));
        assert_eq!(rows.page(&range(1, 3), 0), None);
    }

    #[test]
    fn the_rows_that_are_kept_have_a_limit_and_their_hashes_stay() {
        let width = limits::MAX_SHOWN_VALUES / 2;
        let mut rows = KeptRows::new(width);
        let fitting = limits::MAX_KEPT_VALUES / width;
        for conversation in 0..=fitting as u32 {
            rows.arrived((STAGE, ConversationId(conversation)), 0, &vec![0.0; width]);
        }
        assert_eq!(rows.page(&range(0, 1), 0), None, "the oldest one");
        assert!(rows.page(&range(1, 1), 0).is_some());
        assert!(rows.hashes(&range(0, 1), false, true).is_some());
        rows.arrived((STAGE, ConversationId(1)), 1, &vec![0.0; 2 * width]);
        assert_eq!(rows.page(&range(1, 3), 0), None, "a conversation that is longer than any that is checked");
        rows.arrived((STAGE, ConversationId(1)), 1, &vec![0.0; width]);
        assert!(rows.page(&range(1, 2), 0).is_some(), "it went back to where it was short enough");
    }
}
