//! Published models and llama.cpp's answers on them (`e2e/golden/real`).

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use potluck_gguf::{join, parse};
use potluck_model::{SpecialText, Tokenizer};
use potluck_plan::{KernelClass, LmHeadRequest, LmHeadTokens, LogitsRequest, Outcome, Work};
use potluck_testkit::gunzip;
use serde::Deserialize;

use crate::recipe::crc32;
use crate::{Room, Verdict, likelihoods};

/// Positions of context that the prompts need with their answers.
pub const ANSWER_CONTEXT: u32 = 512;
/// Drafted tokens that are verified at a time.
const DRAFTS: usize = 7;

/// `e2e/golden/real/NAME.json`.
#[derive(Clone, Debug, Deserialize)]
pub struct Published {
    /// Its name in the manifest.
    pub name: String,
    /// The file.
    pub file: File,
    /// Ignore positions whose margin is not above this.
    pub tolerance: f32,
    /// What perplexity is measured on.
    pub text: Text,
    /// llama.cpp's sums of negative log-likelihoods.
    pub surprise: Surprises,
    /// Prompts with greedy answers.
    pub prompts: Vec<Answer>,
}

/// A published file.
#[derive(Clone, Debug, Deserialize)]
pub struct File {
    /// Name in the folder of models.
    pub name: String,
    /// Length.
    pub bytes: u64,
}

/// How the text is cut.
#[derive(Clone, Debug, Deserialize)]
pub struct Text {
    /// Tokens of a window, without what begins every text of the model.
    pub window: usize,
    /// Tokens of the first window that the tests read.
    pub short: usize,
    /// Checksum of the tokens of all windows.
    pub ids_crc32: u32,
}

/// llama.cpp's sums on the weights in F32, and on the file as it is.
#[derive(Clone, Debug, Deserialize)]
pub struct Surprises {
    /// What ours are compared with.
    pub f32: Sums,
    /// What llama.cpp itself loses on quantized weights.
    pub quantized: Sums,
}

/// Sums of negative log-likelihoods.
#[derive(Clone, Debug, Deserialize)]
pub struct Sums {
    /// Of the beginning of the first window.
    pub short: f64,
    /// Of each window.
    pub windows: Vec<f64>,
}

/// A prompt with llama.cpp's greedy answer.
#[derive(Clone, Debug, Deserialize)]
pub struct Answer {
    /// What was asked.
    pub text: String,
    /// Tokens of the rendered prompt.
    pub prompt: Vec<u32>,
    /// Tokens of the answer.
    pub ids: Vec<u32>,
    /// The margin between each and the second best.
    pub margin: Vec<f32>,
}

/// How an answer is computed after its prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Token by token.
    Steps,
    /// Several at a time, as drafts are verified.
    Drafts,
    /// Token by token; in the middle everything is lost and replayed from the tokens.
    Recovery,
}

impl Way {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Steps, Self::Drafts, Self::Recovery];
}

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../golden/real")
}

impl Published {
    /// The answers of the model called `name`.
    ///
    /// # Errors
    /// There are none, or they cannot be read.
    pub fn read(name: &str) -> Result<Self> {
        let path = golden().join(format!("{name}.json"));
        let text = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(serde_json::from_slice(&text)?)
    }

    /// The bytes of its file, or `None` with a line that says so if it was not fetched.
    ///
    /// # Errors
    /// It has another length.
    pub fn bytes(&self) -> Result<Option<Vec<u8>>> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.run/models").join(&self.file.name);
        let Ok(bytes) = std::fs::read(&path) else {
            println!("skipped: {0} is out of reach. `cargo xtask models {0}` fetches it.", self.name);
            return Ok(None);
        };
        ensure!(bytes.len() as u64 == self.file.bytes, "{} has {} bytes", path.display(), bytes.len());
        Ok(Some(bytes))
    }

    /// The tokens of the text in windows, each with what begins every text of this model.
    ///
    /// # Errors
    /// The tokens are others than the reference's.
    pub fn windows(&self, file: &[u8]) -> Result<Vec<Vec<u32>>> {
        let tokenizer = Tokenizer::from_metadata(&join([parse(file)?])?.metadata)?;
        let text = gunzip(&std::fs::read(golden().join("text.txt.gz"))?);
        let begin = tokenizer.encode_prompt("", SpecialText::Parse);
        let ids = tokenizer.encode(&text, SpecialText::Literal);
        let some = ids.chunks(self.text.window).take(self.surprise.f32.windows.len());
        let windows: Vec<Vec<u32>> = some.map(|ids| [&begin, ids].concat()).collect();
        let bytes: Vec<u8> = windows.iter().flatten().flat_map(|id| id.to_le_bytes()).collect();
        ensure!(crc32(&bytes) == self.text.ids_crc32, "the text's tokens are others than llama.cpp's");
        Ok(windows)
    }

    /// The beginning of the first window.
    ///
    /// # Errors
    /// Those of [`Published::windows`].
    pub fn short(&self, file: &[u8]) -> Result<Vec<u32>> {
        let mut first = self.windows(file)?.into_iter().next().context("there is no window")?;
        let begin = first.len() - self.text.window;
        first.truncate(begin + self.text.short);
        Ok(first)
    }

    /// Compares the answers to all prompts, each teacher-forced.
    ///
    /// # Errors
    /// An error of an engine.
    pub async fn judge(&self, room: &Room, way: Way) -> Result<Verdict> {
        let mut verdict = Verdict::new(format!("{} {way:?}", self.name));
        for (index, answer) in self.prompts.iter().enumerate() {
            let ours = answer.by(room, way).await?;
            ensure!(ours.len() == answer.ids.len(), "{} tokens for {}", ours.len(), answer.ids.len());
            for (position, (ours, (theirs, margin))) in
                ours.into_iter().zip(answer.ids.iter().zip(&answer.margin)).enumerate()
            {
                verdict.count(index, position, ours, *theirs, *margin > self.tolerance);
            }
        }
        Ok(verdict)
    }
}

impl Answer {
    /// Our best token at each position of the answer.
    async fn by(&self, room: &Room, way: Way) -> Result<Vec<u32>> {
        let mut conversation = room.conversation();
        let all: Vec<u32> = self.prompt.iter().chain(&self.ids).copied().collect();
        let start = self.prompt.len();
        let mut ours = Vec::new();
        let mut base = 0;
        for chunk in self.prompt.chunks(Work::PREFILL_TOKENS) {
            ours =
                best(room.forward(conversation, base, chunk, KernelClass::Prefill, head(LmHeadTokens::Last)).await?)?;
            base += chunk.len();
        }
        let step = if way == Way::Drafts { 1 + DRAFTS } else { 1 };
        while base + 1 < all.len() {
            if way == Way::Recovery && base == start + self.ids.len() / 2 {
                room.forget(conversation);
                conversation = room.conversation();
                let (prompt, said) = all[..base].split_at(start);
                room.forward(conversation, 0, prompt, KernelClass::Prefill, head(LmHeadTokens::Last)).await?;
                for (number, chunk) in said.chunks(Work::DECODE_TOKENS).enumerate() {
                    let at = start + number * Work::DECODE_TOKENS;
                    room.forward(conversation, at, chunk, KernelClass::Decode, head(LmHeadTokens::Last)).await?;
                }
            }
            let tokens = &all[base..all.len().min(base + step + 1) - 1];
            ours.extend(best(
                room.forward(conversation, base, tokens, KernelClass::Decode, head(LmHeadTokens::All)).await?,
            )?);
            base += tokens.len();
        }
        room.forget(conversation);
        Ok(ours)
    }
}

fn head(tokens: LmHeadTokens) -> LmHeadRequest {
    LmHeadRequest { tokens, logits: LogitsRequest::Top(1) }
}

fn best(outcome: Outcome) -> Result<Vec<u32>> {
    match outcome {
        Outcome::Candidates(rows) => Ok(rows.into_iter().map(|row| row.ids[0]).collect()),
        other => bail!("no candidates came back: {other:?}"),
    }
}

/// Sum of the negative log-likelihoods of a window's tokens after the first.
///
/// # Errors
/// An error of an engine.
pub async fn surprise(room: &Room, window: &[u32], class: KernelClass) -> Result<f64> {
    Ok(likelihoods(room, window, class).await?.iter().map(|one| one.surprise).sum())
}
