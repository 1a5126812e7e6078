//! The model that is measured: its sizes, so that budgets can be shares of it.

use std::io::Read;
use std::path::{Path, PathBuf};

use potluck_gguf::{join, parse};
use potluck_model::ModelSpec;
use potluck_node::open::settings;
use potluck_plan::{BlockShape, Bytes, KvCacheType, ModelId};

/// Positions of context in every room.
pub const CONTEXT: u32 = 256;
/// Headers are shorter.
const HEADER: u64 = 64 << 20;

/// A model file.
pub struct Measured {
    /// Name on the relay.
    pub name: String,
    /// The folder that the relay serves.
    pub folder: PathBuf,
    /// Weights and KV cache of the whole model.
    pub whole: Bytes,
    /// Weights and KV cache of each block.
    pub blocks: Vec<u64>,
    /// Weights of embedding and head.
    pub ends: Bytes,
    /// What each device needs besides.
    pub overhead: Bytes,
}

impl Measured {
    /// Reads the header.
    ///
    /// # Errors
    /// One sentence: the file cannot be read, or is no model.
    pub fn open(path: &Path) -> Result<Self, String> {
        let sentence = |error: &dyn std::error::Error| format!("{}: {error}", path.display());
        let path = path.canonicalize().map_err(|error| sentence(&error))?;
        let mut header = Vec::new();
        let file = std::fs::File::open(&path).map_err(|error| sentence(&error))?;
        file.take(HEADER).read_to_end(&mut header).map_err(|error| sentence(&error))?;
        let header = parse(&header).map_err(|error| sentence(&error))?;
        let joined = join([header]).map_err(|error| sentence(&error))?;
        let (spec, units) = ModelSpec::from_gguf(&joined).map_err(|error| sentence(&error))?;
        let overhead = potluck_engine::fixed_overhead(&spec, &settings(Bytes(u64::MAX), CONTEXT, KvCacheType::F32));
        let shape = spec.shape(&units, ModelId([0; 32]), KvCacheType::F32);
        let block = |block: &BlockShape| block.weights().0 + block.kv_cache_per_position.0 * u64::from(CONTEXT);
        let blocks: Vec<u64> = shape.blocks.iter().map(block).collect();
        let ends = Bytes(shape.embedding.0 + shape.lm_head.0);
        let whole = Bytes(ends.0 + blocks.iter().sum::<u64>());
        let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let folder = path.parent().map(Path::to_owned);
        match (stem, folder) {
            (Some(name), Some(folder)) => Ok(Self { name, folder, whole, blocks, ends, overhead }),
            _ => Err(format!("{} is no file.", path.display())),
        }
    }

    /// The bytes that one of `devices` contributes so that each gets as many blocks (the first ones one more, if they do not
    /// divide), and both ends find room. With blocks of one size no other cut fits.
    pub fn equal_budget(&self, index: usize, devices: usize) -> u64 {
        let (count, rest) = (self.blocks.len() / devices.max(1), self.blocks.len() % devices.max(1));
        let count = count + usize::from(index < rest);
        let block = self.blocks.iter().copied().max().unwrap_or(0);
        self.overhead.0 + self.ends.0 + count as u64 * block
    }

    /// The bytes that a device contributes to hold a share of the model.
    pub fn budget(&self, share: f64) -> u64 {
        self.overhead.0 + (self.whole.0 as f64 * share) as u64
    }
}
