//! Synthetic models: all tensors and metadata of a supported architecture, generated from a seed.
//!
//! A description yields the same bytes on every machine, so tests can share a model by exchanging its description.

mod architecture;
mod blocks;
mod layout;
mod mixture;
mod random;
mod shape;
mod split;
mod tokenizer;

use std::io::Write;

use serde::{Deserialize, Serialize};

use crate::{GgufError, GgufWriter, Header, Metadata, TensorInfo, TensorType, WriteError, quantize};

use layout::{Values, rope_factors};

pub use architecture::Architecture;
pub use blocks::fill;
pub use mixture::Mixture;
pub use random::Random;
pub use shape::Shape;
pub use tokenizer::MIN_VOCABULARY;

/// How matrix values are generated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fill {
    /// Normally distributed values, quantized.
    #[default]
    Normal,
    /// Random valid blocks, generated at disk speed, for large files.
    Blocks,
}

/// A synthetic model's description.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Synthetic {
    /// The kind of blocks.
    pub architecture: Architecture,
    /// Width of the hidden vector.
    pub hidden: u32,
    /// Number of blocks.
    pub blocks: u32,
    /// Query heads.
    pub heads: u32,
    /// Key and value heads.
    pub kv_heads: u32,
    /// Width of a head.
    pub head_dim: u32,
    /// Inner width of the feed-forward network, or of an expert.
    pub intermediate: u32,
    /// Number of experts, for architectures that have them.
    pub experts: u32,
    /// Experts per token.
    pub used: u32,
    /// Vocabulary size, at least [`MIN_VOCABULARY`].
    pub vocabulary: u32,
    /// Longest context.
    pub context: u32,
    /// Base of the rotary frequencies.
    pub rope_base: f32,
    /// Add `rope_freqs.weight`, the frequency divisors of Llama 3.
    pub rope_factors: bool,
    /// Reuse the embedding table as the LM head.
    pub tied: bool,
    /// The type of each matrix; anything but uniform overrides the next three fields.
    pub mixture: Mixture,
    /// Type of the block matrices.
    pub weights: TensorType,
    /// Type of the embedding table.
    pub embedding: TensorType,
    /// Type of the LM head, if not tied.
    pub head: TensorType,
    /// Type of routers.
    pub router: TensorType,
    /// How matrix values are generated.
    pub fill: Fill,
    /// Seed of all values.
    pub seed: u64,
}

impl Default for Synthetic {
    /// A small `qwen3moe` in `F32`: four blocks, eight experts of which two are used.
    fn default() -> Self {
        Self {
            architecture: Architecture::Qwen3Moe,
            hidden: 256,
            blocks: 4,
            heads: 4,
            kv_heads: 2,
            head_dim: 64,
            intermediate: 256,
            experts: 8,
            used: 2,
            vocabulary: 512,
            context: 4096,
            rope_base: 10_000.0,
            rope_factors: false,
            tied: false,
            mixture: Mixture::Uniform,
            weights: TensorType::F32,
            embedding: TensorType::F32,
            head: TensorType::F32,
            router: TensorType::F32,
            fill: Fill::Normal,
            seed: 1,
        }
    }
}

impl Synthetic {
    /// The same model with every matrix except the routers in this type.
    pub fn with_type(self, kind: TensorType) -> Self {
        Self { mixture: Mixture::Uniform, weights: kind, embedding: kind, head: kind, ..self }
    }

    /// Builds metadata and directory, and the value distribution of each tensor.
    fn plan(&self) -> Result<(GgufWriter, Vec<Values>), GgufError> {
        let mut metadata = Metadata::new();
        self.describe(&mut metadata)?;
        let mut writer = GgufWriter::new();
        for (key, value) in metadata.iter() {
            writer.set(key, value.clone());
        }
        let mut values = Vec::new();
        for (name, kind, dims, filling) in self.tensors() {
            writer.tensor(name, kind, &dims)?;
            values.push(filling);
        }
        Ok((writer, values))
    }

    /// The header that [`Synthetic::write_to`] writes.
    ///
    /// # Errors
    /// The description is not a valid model.
    pub fn header(&self) -> Result<Header, GgufError> {
        self.plan()?.0.layout()
    }

    /// Streams the file to `out`, a few rows at a time.
    ///
    /// # Errors
    /// The description is not a valid model, or a write failed.
    pub fn write_to<W: Write>(&self, out: W) -> Result<Header, WriteError> {
        let (writer, values) = self.plan()?;
        let mut values = values.into_iter();
        let mut blocks = Vec::new();
        writer.write_to(out, |tensor, out| match values.next() {
            Some(values) => self.write_tensor(tensor, values, &mut blocks, out),
            None => Ok(()),
        })
    }

    /// Builds the file in memory.
    ///
    /// # Errors
    /// The description is not a valid model.
    pub fn to_bytes(&self) -> Result<Vec<u8>, WriteError> {
        let mut out = Vec::new();
        self.write_to(&mut out)?;
        Ok(out)
    }

    fn write_tensor(
        &self,
        tensor: &TensorInfo,
        values: Values,
        bytes: &mut Vec<u8>,
        out: &mut dyn Write,
    ) -> Result<(), WriteError> {
        let mut random = Random::new(self.seed, &tensor.name);
        let elements = tensor.kind.block_elements();
        let blocks = tensor.elements() / elements;
        // About 4 MiB at a time.
        let chunk = ((4 << 20) / tensor.kind.block_bytes()).max(1);
        let (mean, deviation) = match values {
            Values::Matrix(gain) => (0.0, gain / (tensor.cols() as f32).sqrt()),
            Values::Around0(deviation) => (0.0, deviation),
            Values::Around1(deviation) => (1.0, deviation),
            Values::RopeFactors => (1.0, 0.0),
        };
        let fast = self.fill == Fill::Blocks && tensor.dims.len() > 1 && tensor.kind.holds_weights();
        let mut floats = Vec::new();
        let mut done = 0;
        while done < blocks {
            let count = chunk.min(blocks - done);
            if fast {
                bytes.resize((count * tensor.kind.block_bytes()) as usize, 0);
                blocks::fill(tensor.kind, deviation, &mut random, bytes)?;
            } else {
                bytes.clear();
                floats.clear();
                match values {
                    Values::RopeFactors => floats.extend(rope_factors(tensor.cols())),
                    _ => floats.extend((0..count * elements).map(|_| mean + deviation * random.normal())),
                }
                quantize(tensor.kind, &floats, bytes)?;
            }
            out.write_all(bytes)?;
            done += count;
        }
        Ok(())
    }
}
