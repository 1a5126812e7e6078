//! Multi-step decode: each step starts from the token that the previous one left on the GPU.

use potluck_plan::{
    BatchToken, BlockIndex, BlockRange, FirstToken, KernelClass, LmHeadRequest, LmHeadTokens, LogitsRequest, Position,
    SampledSteps, SamplingWords, Then,
};

use crate::runtime::core::Core;
use crate::runtime::encode::Batch;
use crate::runtime::error::EngineError;
use crate::runtime::kv_pages::Rows;
use crate::runtime::layout::Scratch;
use crate::runtime::memory::Slice;
use crate::runtime::sampled_tokens::{Choice, sampler_state};
use crate::runtime::submit::{BufferCopy, LogitChanges, ProgramKey, Run};

impl Core {
    /// Multi-step decode: each step runs the same program on the batch row and token that the previous step left.
    /// Without a kernel that samples, it goes on with the best candidate.
    pub fn continue_decode(
        &mut self,
        row: BatchToken,
        token: FirstToken,
        steps: u16,
        sampling: Option<SampledSteps>,
        parts: &[(Scratch, u64, u64)],
        target: &wgpu::Buffer,
    ) -> Result<Vec<Run>, EngineError> {
        let BatchToken { conversation, position } = row;
        let choice = if sampling.is_some() { Choice::Sampled } else { Choice::Best };
        let slot = match token {
            FirstToken::Given(_) => None,
            FirstToken::Sampled => Some(
                self.conversations
                    .sampled_tokens()
                    .find(conversation, position, choice)
                    .ok_or(EngineError::NothingChosen { conversation, position: position.0 })?,
            ),
        };
        let blocks = BlockRange::new(0, self.model.spec.blocks.len() as u16);
        let touched: Vec<BlockIndex> = blocks.iter().collect();
        let at = |step: u16| Position(position.0.saturating_add(u32::from(step)));
        let rows: Vec<BatchToken> = (0..steps).map(|step| BatchToken { conversation, position: at(step) }).collect();
        let placed = self.conversations.place(&rows, &touched, KernelClass::Decode, Rows::Stepwise)?;
        self.model.write(Scratch::DecodeSteps, 0, bytemuck::cast_slice(&placed.rows));
        self.model.write(Scratch::KvPages, 0, bytemuck::cast_slice(&placed.table));
        let slot = slot.unwrap_or_else(|| self.conversations.sampled_tokens().slot(conversation));
        if let FirstToken::Given(token) = token {
            let next = self.model.sampled_token(slot);
            self.model.gpu.queue.write_buffer(&next.slab.buffer, next.offset, &token.to_le_bytes());
        }
        if let Some(sampling) = &sampling {
            self.write_sampler_state(slot, sampling, token, position);
        }
        let key = ProgramKey::Continue { slot, choice };
        let program = self.program(KernelClass::Decode, key, |encoder| {
            let batch = Batch { n: 1, class: KernelClass::Decode };
            let count = encoder.model().candidates_of(choice == Choice::Sampled);
            let logits = LogitsRequest::Top(count as u16);
            let then = Then::LmHead(LmHeadRequest { tokens: LmHeadTokens::Last, logits });
            encoder.embed(&encoder.model().sampled_token(slot), batch)?;
            encoder.record_forward(batch, blocks, then, LogitChanges::default(), slot)?;
            if let (Choice::Sampled, Some(kernel)) = (choice, encoder.model().profile.sampler()) {
                encoder.sample(kernel, count, slot);
            }
            Ok(())
        })?;
        self.conversations.sampled_tokens().keep(slot, at(steps), choice);
        let (rows, ahead) = (self.model.scratch(Scratch::Rows), self.model.scratch(Scratch::DecodeSteps));
        let each = parts.iter().map(|(_, _, bytes)| bytes).sum::<u64>();
        Ok((0..steps)
            .map(|step| {
                let from = Slice { offset: u64::from(step) * 16, size: 16, ..ahead.clone() };
                Run {
                    before: vec![BufferCopy { from, to: rows.slab.buffer.clone(), at: 0 }],
                    program: program.clone(),
                    reach: at(step).0 + 1,
                    after: self.model.copies(parts, target, u64::from(step) * each),
                }
            })
            .collect())
    }

    /// Writes a slot's parameters. The newest tokens before one that is still on the GPU are there too.
    fn write_sampler_state(&self, slot: usize, sampling: &SampledSteps, token: FirstToken, position: Position) {
        let mut state = sampler_state(sampling, position);
        if token == FirstToken::Sampled {
            state.truncate(SamplingWords::LEN);
        }
        let to = self.model.sampler_state(slot);
        self.model.gpu.queue.write_buffer(&to.slab.buffer, to.offset, bytemuck::cast_slice(&state));
    }
}
