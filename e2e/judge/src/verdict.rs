//! Compares a room with a golden file.

use anyhow::{Result, bail, ensure};
use potluck_engine::Gpu;
use potluck_plan::{Candidates, KernelClass, LmHeadRequest, LmHeadTokens, LogitsRequest, Outcome};
use serde::Serialize;

use crate::{Golden, Prompt, Room, Split};

/// As text, because JavaScript's numbers cannot hold 64 bits.
fn as_text<S: serde::Serializer>(bits: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(bits)
}

/// Positions of context.
const CONTEXT: u32 = 1024;
const HEAD: LmHeadRequest = LmHeadRequest { tokens: LmHeadTokens::All, logits: LogitsRequest::Top(8) };

/// A room's result.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// Model and split.
    pub name: String,
    /// Positions whose reference margin is large enough to count.
    pub counted: usize,
    /// Positions that differ: prompt, position, our token, the reference's token.
    pub wrong: Vec<(usize, usize, u32, u32)>,
    /// Largest difference between logits that both list.
    pub worst: f32,
    /// A hash of all our answers: equal hashes mean bit-identical answers.
    #[serde(serialize_with = "as_text")]
    pub bits: u64,
}

/// Runs a golden file on a split: each prompt in one chunk, then token by token.
///
/// # Errors
/// An error of the engine, or an answer that cannot be read.
pub async fn judge(gpu: &Gpu, golden: &Golden, split: Split) -> Result<Verdict> {
    let file = golden.model.to_bytes()?;
    let room = Room::open(gpu, &file, split, CONTEXT).await?;
    let mut verdict = Verdict::new(format!("{} {split:?}", golden.name));
    for (index, prompt) in golden.prompts.iter().enumerate() {
        let all = prompt.ids.len();
        let chunk = forward(&room, &prompt.ids, &[(all, KernelClass::Prefill, all)]).await?;
        verdict.compare(index, prompt, &chunk, golden.tolerance);
        let single = forward(&room, &prompt.ids, &[(all, KernelClass::Decode, 1)]).await?;
        verdict.compare(index, prompt, &single, golden.tolerance);
        if index == 0 {
            // Verification and replay run several tokens at once through the decode kernels.
            let batched = forward(&room, &prompt.ids, &[(all, KernelClass::Decode, 16)]).await?;
            ensure!(single == batched, "{}: a row depends on the rows beside it", verdict.name);
        }
    }
    Ok(verdict)
}

/// Runs tokens in a conversation of their own. Each part says where it ends, its kernels, and how many rows they take at
/// once.
pub(crate) async fn forward(
    room: &Room,
    ids: &[u32],
    parts: &[(usize, KernelClass, usize)],
) -> Result<Vec<Candidates>> {
    let conversation = room.conversation();
    let mut answers: Vec<Candidates> = Vec::new();
    for &(end, class, rows) in parts {
        while answers.len() < end {
            let from = answers.len();
            let tokens = &ids[from..end.min(from + rows)];
            match room.forward(conversation, from, tokens, class, HEAD).await? {
                Outcome::Candidates(rows) if rows.len() == tokens.len() => answers.extend(rows),
                other => bail!("no candidates for {} tokens came back: {other:?}", tokens.len()),
            }
        }
    }
    room.forget(conversation);
    Ok(answers)
}

impl Verdict {
    pub(crate) fn new(name: String) -> Self {
        Self { name, counted: 0, wrong: Vec::new(), worst: 0.0, bits: 0 }
    }

    /// True if all counted positions are right.
    pub fn is_right(&self) -> bool {
        self.counted > 0 && self.wrong.is_empty()
    }

    pub(crate) fn compare(&mut self, index: usize, prompt: &Prompt, ours: &[Candidates], tolerance: f32) {
        for (position, candidates) in ours.iter().enumerate() {
            for (id, logit) in candidates.ids.iter().zip(&candidates.logits) {
                self.bits = self.bits.rotate_left(5) ^ u64::from(*id) ^ u64::from(logit.to_bits()) << 20;
                self.bits = self.bits.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let listed = prompt.top[position].iter().position(|other| other == id);
                if let Some(listed) = listed {
                    self.worst = self.worst.max((logit - prompt.logits[position][listed]).abs());
                }
            }
            let counts = prompt.margin[position] > tolerance;
            self.count(index, position, candidates.ids[0], prompt.argmax[position], counts);
        }
    }

    /// Counts one position.
    pub(crate) fn count(&mut self, prompt: usize, position: usize, ours: u32, theirs: u32, counts: bool) {
        if counts {
            self.counted += 1;
            if ours != theirs {
                self.wrong.push((prompt, position, ours, theirs));
            }
        }
    }
}
