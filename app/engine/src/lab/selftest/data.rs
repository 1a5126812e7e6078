//! Random numbers and weights for the self-test.

use potluck_gguf::synthetic;
use potluck_plan::KvCacheType;
use potluck_shaders::{Format, reference};

/// SplitMix64: small, and identical on every platform.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        potluck_plan::random::step(&mut self.0)
    }

    /// In -1..1.
    pub fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }

    pub fn floats(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.unit()).collect()
    }
}

/// The shape and contents of the test matrices.
pub struct Matrices<'a> {
    /// Rows of a matrix.
    pub rows: u32,
    /// Rows of an expert's matrix.
    pub expert_rows: u32,
    /// Blocks of a row.
    pub blocks: u32,
    /// Blocks with known values to choose from; if `None`, blocks are random.
    pub known: Option<&'a [(Vec<u8>, Vec<f32>)]>,
}

impl Matrices<'static> {
    /// Random blocks. The sizes make rows begin at every alignment, and tiles and chunks end early.
    pub const ODD: Self = Matrices { rows: 37, expert_rows: 21, blocks: 3, known: None };
}

impl Matrices<'_> {
    /// The same with rows of more than 2048 values: `fused.wgsl` takes 1024 at a time, from two buffers in turn.
    pub fn long(&self, format: Format) -> Matrices<'_> {
        Matrices { blocks: self.blocks + 2048 / format.block_values().max(16), ..*self }
    }

    /// Values per row; in formats without blocks, rows end inside a chunk of 16.
    pub fn cols(&self, format: Format) -> u32 {
        if format.block_values() == 1 { 16 * self.blocks + 4 } else { self.blocks * format.block_values() }
    }

    /// Makes `rows` rows.
    pub fn weights(&self, random: &mut Random, format: Format, rows: u32) -> Weights {
        let cols = self.cols(format);
        let count = rows * cols / format.block_values();
        let (bytes, values) = match self.known {
            Some(known) => choose(random, known, count),
            None => blocks(random, format, count),
        };
        Weights { bytes, values, rows, cols }
    }
}

/// Blocks of random bits with sane scales, some of them subnormal.
fn blocks(random: &mut Random, format: Format, count: u32) -> (Vec<u8>, Vec<f32>) {
    let mut source = synthetic::Random::new(random.next(), format.name());
    let size = format.block_bytes() as usize;
    let mut bytes = vec![0; count as usize * size];
    for (index, block) in bytes.chunks_exact_mut(size).enumerate() {
        let deviation = if index % 5 == 4 { 0.3 / 4096.0 } else { 0.3 };
        synthetic::fill(format.tensor_type(), deviation, &mut source, block)
            .expect("every format holds weights, which can be made");
    }
    let values = reference::dequantize(format, &bytes);
    (bytes, values)
}

fn choose(random: &mut Random, known: &[(Vec<u8>, Vec<f32>)], count: u32) -> (Vec<u8>, Vec<f32>) {
    let (mut bytes, mut values) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let (block, means) = &known[random.next() as usize % known.len()];
        bytes.extend_from_slice(block);
        values.extend_from_slice(means);
    }
    (bytes, values)
}

/// A matrix: its stored bytes and the values they stand for.
pub struct Weights {
    pub bytes: Vec<u8>,
    pub values: Vec<f32>,
    pub rows: u32,
    pub cols: u32,
}

impl Weights {
    pub fn row(&self, row: u32) -> &[f32] {
        &self.values[(row * self.cols) as usize..][..self.cols as usize]
    }
}

/// Bytes of floats or words.
pub fn raw<T: bytemuck::Pod>(values: &[T]) -> Vec<u8> {
    bytemuck::cast_slice(values).to_vec()
}

/// Zero bytes for `count` words.
pub fn zeros(count: usize) -> Vec<u8> {
    vec![0; 4 * count]
}

/// Keys or values of many heads: the stored bytes and the values they stand for.
pub struct Cache {
    pub bytes: Vec<u8>,
    pub values: Vec<f32>,
}

impl Cache {
    /// Stores these values as heads of `dim`.
    pub fn new(kv_type: KvCacheType, dim: usize, values: &[f32]) -> Self {
        let heads: Vec<Vec<u8>> = values.chunks_exact(dim).map(|head| reference::store(kv_type, head)).collect();
        Self {
            values: heads.iter().flat_map(|head| reference::load(kv_type, head, dim)).collect(),
            bytes: heads.concat(),
        }
    }
}
