//! The small models of all architectures: made from their recipe, and compared with the reference.

use anyhow::{Context, Result, bail, ensure};
use potluck_engine::Gpu;
use potluck_gguf::{join, parse};
use potluck_model::{BlockSpec, FeedForwardSpec, ModelSpec};
use potluck_plan::{Cuts, KernelClass, random};
use serde::Deserialize;
use serde_json::Value;

use crate::verdict::forward;
use crate::{Prompt, Room, Split, Verdict};

/// Bytes to which GGUF aligns its tensors.
const ALIGNMENT: usize = 32;
/// Context of the engines: longer than the original context of every scaled model, as for the reference.
const CONTEXT: u32 = 128;

/// `e2e/golden/architectures/NAME.json.gz`: how outside software made a file, and what llama.cpp answered.
#[derive(Clone, Debug, Deserialize)]
pub struct Recipe {
    /// `general.architecture`.
    pub architecture: String,
    /// Seed of all values.
    pub seed: u64,
    /// Key, type and value of each entry, in the file's order.
    pub metadata: Vec<(String, String, Value)>,
    /// The tensors, in the file's order.
    pub tensors: Vec<Tensor>,
    /// What the file must be.
    pub file: Sum,
    /// Ignore positions whose margin is below this; logits are no further off.
    pub tolerance: f32,
    /// The prompts and their reference results.
    pub prompts: Vec<Prompt>,
}

/// A tensor of `F32`.
#[derive(Clone, Debug, Deserialize)]
pub struct Tensor {
    /// Name.
    pub name: String,
    /// Dimensions, the longest rows first.
    pub shape: Vec<u64>,
    /// Mean of its values.
    pub mean: f32,
    /// Farthest from it.
    pub scale: f32,
}

/// Length and checksum of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Sum {
    /// Length.
    pub bytes: usize,
    /// CRC-32.
    pub crc32: u32,
}

impl Recipe {
    /// How the model can be split over devices. Some models run on one device only.
    ///
    /// # Errors
    /// Those of [`Recipe::to_bytes`], or the file has no model that the engine knows.
    pub fn splits(&self) -> Result<Vec<Split>> {
        let (spec, _) = ModelSpec::from_gguf(&join([parse(&self.to_bytes()?)?])?)?;
        let has_experts = |block: &BlockSpec| matches!(block.feed_forward, FeedForwardSpec::Experts(_));
        let stages = (spec.cuts() == Cuts::Anywhere).then_some(Split::ThreeStages);
        let elsewhere = spec.blocks.iter().any(has_experts).then_some(Split::ExpertsElsewhere);
        Ok([Some(Split::One), stages, elsewhere].into_iter().flatten().collect())
    }

    /// The GGUF file, as PyPI `gguf` lays it out.
    ///
    /// # Errors
    /// The recipe is damaged, or gives other bytes than the file that the reference read.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut out = Vec::from(*b"GGUF");
        out.extend(3u32.to_le_bytes());
        out.extend((self.tensors.len() as u64).to_le_bytes());
        out.extend((self.metadata.len() as u64).to_le_bytes());
        for (key, kind, value) in &self.metadata {
            text(&mut out, key);
            entry(&mut out, kind, value).with_context(|| format!("{key}: {kind} {value}"))?;
        }
        let data: Vec<Vec<u8>> = self.tensors.iter().map(|tensor| tensor.values(self.seed)).collect();
        let mut offset = 0u64;
        for (tensor, data) in self.tensors.iter().zip(&data) {
            text(&mut out, &tensor.name);
            out.extend((tensor.shape.len() as u32).to_le_bytes());
            tensor.shape.iter().for_each(|size| out.extend(size.to_le_bytes()));
            out.extend(0u32.to_le_bytes());
            out.extend(offset.to_le_bytes());
            offset += data.len().next_multiple_of(ALIGNMENT) as u64;
        }
        for data in [&Vec::new()].into_iter().chain(&data) {
            out.extend(data);
            out.resize(out.len().next_multiple_of(ALIGNMENT), 0);
        }
        let made = Sum { bytes: out.len(), crc32: crc32(&out) };
        ensure!(made == self.file, "{}: {made:?} is another file than {:?}", self.architecture, self.file);
        Ok(out)
    }
}

impl Tensor {
    /// Uniform around the mean, from the seed and the name.
    fn values(&self, seed: u64) -> Vec<u8> {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(u64::from(crc32(self.name.as_bytes())));
        let mut unit = || (random::step(&mut state) >> 40) as f32 / (1u64 << 24) as f32;
        let count: u64 = self.shape.iter().product();
        (0..count).flat_map(|_| (self.mean + self.scale * (2.0 * unit() - 1.0)).to_le_bytes()).collect()
    }
}

pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| crc >> 1 ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 })
    })
}

fn text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

/// A metadata value with its type.
fn entry(out: &mut Vec<u8>, kind: &str, value: &Value) -> Result<()> {
    let element = kind.strip_prefix('[').and_then(|kind| kind.strip_suffix(']'));
    let Some(element) = element else {
        out.extend(number_of(kind)?.to_le_bytes());
        return plain(out, kind, value);
    };
    let values = value.as_array().context("it is no list")?;
    out.extend(9u32.to_le_bytes());
    out.extend(number_of(element)?.to_le_bytes());
    out.extend((values.len() as u64).to_le_bytes());
    values.iter().try_for_each(|value| plain(out, element, value))
}

/// GGUF's number of a type.
fn number_of(kind: &str) -> Result<u32> {
    Ok(match kind {
        "u32" => 4,
        "i32" => 5,
        "f32" => 6,
        "bool" => 7,
        "string" => 8,
        _ => bail!("recipes have no such type"),
    })
}

fn plain(out: &mut Vec<u8>, kind: &str, value: &Value) -> Result<()> {
    let other = "its value has another type";
    match kind {
        "u32" => out.extend((value.as_u64().context(other)? as u32).to_le_bytes()),
        "i32" => out.extend((value.as_i64().context(other)? as i32).to_le_bytes()),
        "f32" => out.extend((value.as_f64().context(other)? as f32).to_le_bytes()),
        "bool" => out.push(u8::from(value.as_bool().context(other)?)),
        _ => text(out, value.as_str().context(other)?),
    }
    Ok(())
}

/// Runs a recipe's first prompt on a split: a chunk, a few tokens at a time, then single tokens, so that every kind of
/// kernel computes some positions. Stages only decode: compiling the kernels of chunks again for each stage takes long.
///
/// # Errors
/// An error of the engine, or a recipe that makes another file.
pub async fn judge_recipe(gpu: &Gpu, recipe: &Recipe, split: Split) -> Result<Verdict> {
    let prompt = recipe.prompts.first().context("there is no prompt")?;
    let room = Room::open(gpu, &recipe.to_bytes()?, split, CONTEXT).await?;
    let mut verdict = Verdict::new(format!("{} {split:?}", recipe.architecture));
    let first = match split {
        Split::One => (37, KernelClass::Prefill, 37),
        Split::ThreeStages | Split::ExpertsElsewhere => (37, KernelClass::Decode, 16),
    };
    let parts = [first, (53, KernelClass::Decode, 16), (prompt.ids.len(), KernelClass::Decode, 1)];
    let answers = forward(&room, &prompt.ids, &parts).await?;
    verdict.compare(0, prompt, &answers, recipe.tolerance);
    Ok(verdict)
}
