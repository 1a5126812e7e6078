//! A forward pass: blocks, and what follows them.

use potluck_plan::{BlockRange, LmHeadTokens, Then};

use super::{Batch, Encoder};
use crate::runtime::error::EngineError;
use crate::runtime::sizes::lm_head_tokens;
use crate::runtime::submit::LogitChanges;

impl Encoder<'_> {
    /// Blocks and what follows them, from the hidden vectors on. `changes` of the logits are in scratch buffers.
    pub fn record_forward(
        &mut self,
        batch: Batch,
        blocks: BlockRange,
        then: Then,
        changes: LogitChanges,
        slot: usize,
    ) -> Result<(), EngineError> {
        for block in blocks.iter() {
            self.token_mixer(block, batch)?;
            if self.model.expert_count(block) == 0 {
                self.dense(block, batch)?;
            } else {
                self.route(block, batch)?;
                self.experts_added(block, batch)?;
            }
        }
        match then {
            Then::Nothing | Then::Hidden => {}
            Then::Route(block) => {
                self.token_mixer(block, batch)?;
                self.route(block, batch)?;
            }
            Then::LmHead(request) => {
                let (first, n) = if request.tokens == LmHeadTokens::Last { (batch.n - 1, 1) } else { (0, batch.n) };
                let max = lm_head_tokens(&self.model.settings);
                for done in (0..n).step_by(max as usize) {
                    let some = max.min(n - done);
                    self.logits(first + done, some)?;
                    if changes.biases {
                        self.bias_logits(done, some);
                    }
                    if changes.masks {
                        self.mask_logits(done, some);
                    }
                    if request.logits.sums() {
                        self.log_sum_exp(done, some);
                    }
                    if let Some(count) = request.logits.candidates() {
                        self.select_candidates(done, some, u32::from(count), slot);
                    }
                }
            }
        }
        Ok(())
    }
}
