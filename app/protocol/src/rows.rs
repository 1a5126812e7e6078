//! Frames with which the host checks the work of stages: hashes of rows first, and of few conversations the rows.

use potluck_plan::{ConversationId, PlanEpoch, StageId};
use serde::{Deserialize, Serialize};

use crate::PassId;

/// A BLAKE3 hash of the rows of up to [`RowRange::PAGE`] positions: each value as a little-endian `f32`, as the next stage reads it.
pub type RowsHash = [u8; 32];

/// The first positions of a conversation, as a stage has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RowRange {
    /// The plan.
    pub epoch: PlanEpoch,
    /// The stage.
    pub stage: StageId,
    /// The conversation.
    pub conversation: ConversationId,
    /// The newest chunk of the conversation. A stage that has got another one since has other rows, and says that it
    /// has none.
    pub through: PassId,
    /// How many positions.
    pub positions: u32,
}

impl RowRange {
    /// Positions that are hashed together, and that come in one frame.
    pub const PAGE: u32 = 64;

    /// Its pages.
    pub fn pages(&self) -> u32 {
        self.positions.div_ceil(Self::PAGE)
    }

    /// Positions of a page: the last one may have fewer.
    pub fn page(&self, page: u32) -> std::ops::Range<u32> {
        let end = |page: u32| page.saturating_mul(Self::PAGE).min(self.positions);
        end(page)..end(page.saturating_add(1))
    }
}

/// What a stage commits to before it can know whether it will be checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowHashes {
    /// Of the request.
    pub range: RowRange,
    /// What it got and sent; `None` if it has other rows by now.
    pub hashes: Option<StageHashes>,
}

/// One hash for each page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageHashes {
    /// Of the hidden vectors that the stage got; none of the first stage, whose tokens the host knows.
    pub inputs: Vec<RowsHash>,
    /// Of those that it sent; none of the last stage, whose results the host has.
    pub outputs: Vec<RowsHash>,
}

/// Asks for the hidden vectors that a stage got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowsRequest {
    /// Whose.
    pub range: RowRange,
    /// Those of this page.
    pub page: u32,
}

/// Answer to [`RowsRequest`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rows {
    /// Of the request.
    pub request: RowsRequest,
    /// The hidden vectors exactly as the stage computed with them; empty if it does not have them any more.
    #[serde(skip)]
    pub values: Vec<f32>,
}
