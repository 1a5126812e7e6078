//! The embedded model's reference answers (`train/eval/reference.jsonl.gz`): chat prompts, teacher-forced by llama.cpp on
//! the shipped file's weights in F32.

use anyhow::{Result, bail};
use potluck_engine::Gpu;
use potluck_plan::{KernelClass, LmHeadRequest, LmHeadTokens, LogitsRequest, Outcome};
use serde::Deserialize;

use crate::{Room, Split, Verdict};

const HEAD: LmHeadRequest = LmHeadRequest { tokens: LmHeadTokens::All, logits: LogitsRequest::Top(1) };
/// Tokens per prefill chunk, as the coordinator splits a prompt.
const CHUNK: usize = 64;
/// Positions of context; no reference is longer.
const CONTEXT: u32 = 1024;

/// A prompt and its reference answer.
#[derive(Clone, Debug, Deserialize)]
pub struct Reference {
    /// Tokens of the rendered prompt.
    pub prompt: Vec<u32>,
    /// The reference's answer, which is teacher-forced.
    pub ids: Vec<u32>,
    /// The reference's best token at each position of the answer.
    pub best: Vec<u32>,
    /// The reference's margin between its best and second token.
    pub margin: Vec<f32>,
}

/// Compares a model file with its reference answers.
///
/// # Errors
/// An error of the file or the engine.
pub async fn compare(
    gpu: &Gpu,
    file: &[u8],
    references: &[Reference],
    split: Split,
    tolerance: f32,
) -> Result<Verdict> {
    let room = Room::open(gpu, file, split, CONTEXT).await?;
    let mut verdict = Verdict::new(format!("embedded model {split:?}"));
    for (index, reference) in references.iter().enumerate() {
        let conversation = room.conversation();
        let tokens: Vec<u32> = reference.prompt.iter().chain(&reference.ids).copied().collect();
        let mut ours = Vec::new();
        for (chunk, rows) in tokens[..tokens.len() - 1].chunks(CHUNK).enumerate() {
            match room.forward(conversation, chunk * CHUNK, rows, KernelClass::Prefill, HEAD).await? {
                Outcome::Candidates(rows) => ours.extend(rows.into_iter().map(|row| row.ids[0])),
                other => bail!("no candidates came back: {other:?}"),
            }
        }
        let answer = &ours[reference.prompt.len() - 1..];
        for (position, (ours, (best, margin))) in
            answer.iter().zip(reference.best.iter().zip(&reference.margin)).enumerate()
        {
            verdict.count(index, position, *ours, *best, *margin > tolerance);
        }
        room.forget(conversation);
    }
    Ok(verdict)
}
