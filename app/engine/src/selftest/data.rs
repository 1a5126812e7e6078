//! Random numbers and random weights for the self-test.

use potluck_shaders::{Format, reference};

/// SplitMix64: small, and the same everywhere.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// In -1..1.
    pub fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }

    pub fn floats(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.unit()).collect()
    }

    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }

    /// Blocks of a format with any bits but sane scales; some scales are subnormal.
    pub fn weights(&mut self, format: Format, rows: u32, cols: u32) -> Weights {
        let blocks = rows * cols / format.block_values();
        let mut bytes = Vec::new();
        for block in 0..blocks {
            let small = if block % 5 == 4 { 1.0 / 4096.0 } else { 1.0 };
            let scale = half::f16::from_f32(small * 0.02 * (1.5 + self.unit())).to_le_bytes();
            match format {
                Format::F32 => bytes.extend(self.unit().to_le_bytes()),
                Format::F16 => bytes.extend(half::f16::from_f32(self.unit()).to_le_bytes()),
                Format::Q8_0 | Format::Q4_0 => {
                    bytes.extend(scale);
                    bytes.extend(self.bytes(format.block_bytes() as usize - 2));
                }
                Format::Q4_K => {
                    bytes.extend(scale);
                    bytes.extend(half::f16::from_f32(0.01 * (1.5 + self.unit())).to_le_bytes());
                    bytes.extend(self.bytes(140));
                }
                Format::Q6_K => {
                    bytes.extend(self.bytes(208));
                    bytes.extend(scale);
                }
            }
        }
        let values = reference::dequantize(format, &bytes);
        Weights { bytes, values, rows, cols }
    }
}

/// A random matrix: as stored, and as it means.
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
