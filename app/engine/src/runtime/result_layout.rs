//! What a piece of work leaves in scratch buffers to be read back.

use potluck_plan::{LmHeadTokens, LogitsRequest, Task, Then, Work};

use crate::runtime::error::EngineError;
use crate::runtime::layout::Scratch;
use crate::runtime::model::Model;
use crate::runtime::pieces::rows_of;
use crate::runtime::result_kind::Kind;

/// Parts of a result, in order: scratch buffer, first byte, number of bytes.
pub struct ResultLayout {
    pub kind: Kind,
    pub parts: Vec<(Scratch, u64, u64)>,
    /// Repetitions of the parts: once per step of a continuation.
    times: u64,
}

impl ResultLayout {
    fn new(kind: Kind, parts: Vec<(Scratch, u64, u64)>) -> Self {
        Self { kind, parts, times: 1 }
    }

    /// Bytes of the whole result.
    pub fn bytes(&self) -> u64 {
        (self.times * self.parts.iter().map(|(_, _, bytes)| bytes).sum::<u64>()).max(4)
    }
}

impl Model {
    /// Layout of a task's result.
    pub fn result(&self, task: &Task) -> Result<ResultLayout, EngineError> {
        let rows = rows_of(task) as u32;
        let hidden = self.spec.hidden;
        let vectors = u64::from(rows) * u64::from(hidden) * 4;
        let then = match task {
            Task::Experts { sum: Some(_), .. } => {
                let kind = Kind::ExpertOutputs { bytes: vectors };
                return Ok(ResultLayout::new(kind, vec![(Scratch::Hidden, 0, vectors)]));
            }
            Task::Experts { block, experts, sum: None, .. } => {
                let ranges = self.output_ranges(*block, experts.iter().map(Vec::len))?;
                let kind = Kind::ExpertOutputs { bytes: ranges.iter().map(|(_, bytes)| bytes).sum() };
                let parts = ranges.into_iter().map(|(at, bytes)| (Scratch::Parts, at, bytes));
                return Ok(ResultLayout::new(kind, parts.collect()));
            }
            Task::Continue { steps, sampling, .. } => {
                let (rows, count) = (u32::from(*steps), self.candidates_of(sampling.is_some()));
                let (kind, entries) = match (sampling, self.profile.sampler()) {
                    (Some(_), Some(_)) => (Kind::Sampled { rows, count }, count + 1),
                    _ => (Kind::Candidates { rows, count }, count),
                };
                let parts = vec![(Scratch::Candidates, 0, u64::from(entries) * 8)];
                return Ok(ResultLayout { kind, parts, times: u64::from(rows) });
            }
            Task::Forward { then, .. } => then,
        };
        Ok(match then {
            Then::Nothing => ResultLayout::new(Kind::Done, vec![(Scratch::Hidden, 0, 4)]),
            Then::Hidden => ResultLayout::new(Kind::Hidden, vec![(Scratch::Hidden, 0, vectors)]),
            Then::Route(block) => {
                let (used, _) = self.routing(*block)?;
                let pairs = u64::from(rows) * u64::from(used) * 4;
                let parts = vec![
                    (Scratch::Hidden, 0, vectors),
                    (Scratch::Normed, 0, vectors),
                    (Scratch::Chosen, 0, pairs),
                    (Scratch::Gates, 0, pairs),
                ];
                ResultLayout::new(Kind::Routed { rows, hidden, used }, parts)
            }
            Then::LmHead(request) => {
                let rows = if request.tokens == LmHeadTokens::Last { 1 } else { rows };
                match request.logits {
                    LogitsRequest::Top(count) => {
                        let count = u32::from(count);
                        let bytes = u64::from(rows) * u64::from(count) * 8;
                        ResultLayout::new(Kind::Candidates { rows, count }, vec![(Scratch::Candidates, 0, bytes)])
                    }
                    LogitsRequest::TopWithSum(count) => {
                        let count = u32::from(count);
                        let bytes = u64::from(rows) * u64::from(count) * 8;
                        let parts = vec![(Scratch::Candidates, 0, bytes), (Scratch::LogSums, 0, u64::from(rows) * 4)];
                        ResultLayout::new(Kind::Summed { rows, count }, parts)
                    }
                    LogitsRequest::Logits => {
                        let bytes = u64::from(rows) * u64::from(self.spec.vocabulary) * 4;
                        ResultLayout::new(Kind::Logits, vec![(Scratch::Logits, 0, bytes)])
                    }
                }
            }
        })
    }

    /// Batch tokens of a task that fit scratch memory and a result buffer; a longer task is cut.
    pub fn tokens_at_once(&self, task: &Task) -> Result<usize, EngineError> {
        let scratch = (self.memory.layout().prefill_tokens as usize).max(Work::DECODE_TOKENS);
        let (rows, result) = (rows_of(task) as u64, self.result(task)?);
        let room = match result.kind {
            Kind::Logits => self.memory.layout().logits_bytes.max(self.memory.layout().readback_bytes),
            _ => self.memory.layout().readback_bytes,
        };
        if result.bytes() <= room {
            return Ok(scratch);
        }
        let a_token = match task {
            // Tokens differ in their experts, so that every piece fits only if it would with the most of them.
            Task::Experts { experts, sum: None, .. } => {
                let most = experts.iter().map(Vec::len).max().unwrap_or(0) as u64;
                (most * u64::from(self.spec.hidden) * 4).max(1)
            }
            _ => result.bytes().div_ceil(rows.max(1)),
        };
        let fitting = room / a_token;
        Ok(scratch.min(fitting.max(1) as usize))
    }
}
