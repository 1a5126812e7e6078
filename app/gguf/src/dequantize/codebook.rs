//! Codebook types: `IQ1`, `IQ2` and `IQ3` look up groups of values in a table.
//!
//! `codebooks.bin` holds ggml's six codebooks (MIT licence, ggml-common.h), packed to two or four bits per value;
//! `e2e/golden/vectors.py` generates it.

use super::{half_at, u16_at, u32_at};
use crate::TensorType;

static CODEBOOKS: &[u8; 9216] = include_bytes!("codebooks.bin");

/// A codebook of groups of 8 or 4 values, named after the type that uses it; the two `IQ1` types share one.
#[allow(non_camel_case_types, reason = "spelled as ggml names the types")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codebook {
    /// 256 groups of 8.
    IQ2_XXS,
    /// 512 groups of 8.
    IQ2_XS,
    /// 1024 groups of 8.
    IQ2_S,
    /// 256 groups of 4.
    IQ3_XXS,
    /// 512 groups of 4.
    IQ3_S,
    /// 2048 groups of 8 ternary values.
    IQ1,
}

impl Codebook {
    /// Every codebook.
    pub const ALL: [Codebook; 6] = [Self::IQ2_XXS, Self::IQ2_XS, Self::IQ2_S, Self::IQ3_XXS, Self::IQ3_S, Self::IQ1];

    /// The codebook of a type, if it uses one.
    pub const fn of(kind: TensorType) -> Option<Codebook> {
        Some(match kind {
            TensorType::IQ2_XXS => Self::IQ2_XXS,
            TensorType::IQ2_XS => Self::IQ2_XS,
            TensorType::IQ2_S => Self::IQ2_S,
            TensorType::IQ3_XXS => Self::IQ3_XXS,
            TensorType::IQ3_S => Self::IQ3_S,
            TensorType::IQ1_S | TensorType::IQ1_M => Self::IQ1,
            _ => return None,
        })
    }

    /// All groups, concatenated.
    pub fn values(self) -> Vec<i8> {
        match self {
            Self::IQ2_XXS => IQ2_XXS.values(256),
            Self::IQ2_XS => IQ2_XS.values(512),
            Self::IQ2_S => IQ2_S.values(1024),
            Self::IQ3_XXS => IQ3_XXS.values(256),
            Self::IQ3_S => IQ3_S.values(512),
            Self::IQ1 => IQ1.values(2048),
        }
    }
}

/// A codebook as stored: groups of `N` values, each value an index into a small table.
struct Packed<const N: usize> {
    start: usize,
    /// Bits per index: 2 or 4.
    bits: usize,
    values: [f32; 8],
}

impl<const N: usize> Packed<N> {
    fn values(&self, groups: usize) -> Vec<i8> {
        (0..groups).flat_map(|index| self.group(index)).map(|value| value as i8).collect()
    }

    fn group(&self, index: usize) -> [f32; N] {
        let per_byte = 8 / self.bits;
        let first = self.start + index * N / per_byte;
        std::array::from_fn(|i| {
            let shifted = CODEBOOKS[first + i / per_byte] >> (i % per_byte * self.bits);
            // Tables hold at most eight values, so three bits suffice as an index.
            self.values[usize::from(shifted) & ((1 << self.bits) - 1) & 7]
        })
    }
}

const IQ2_VALUES: [f32; 8] = [8.0, 25.0, 43.0, 0.0, 0.0, 0.0, 0.0, 0.0];
const IQ2_XXS: Packed<8> = Packed { start: 0, bits: 2, values: IQ2_VALUES };
const IQ2_XS: Packed<8> = Packed { start: 512, bits: 2, values: IQ2_VALUES };
const IQ2_S: Packed<8> = Packed { start: 1536, bits: 2, values: IQ2_VALUES };
const IQ3_XXS: Packed<4> = Packed { start: 3584, bits: 4, values: [4.0, 12.0, 20.0, 28.0, 36.0, 44.0, 52.0, 62.0] };
const IQ3_S: Packed<4> = Packed { start: 4096, bits: 4, values: [1.0, 3.0, 5.0, 7.0, 9.0, 11.0, 13.0, 15.0] };
const IQ1: Packed<8> = Packed { start: 5120, bits: 2, values: [-1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0] };

/// Offset that `IQ1` adds to or subtracts from every value of a group.
const IQ1_DELTA: f32 = 0.125;

/// `d: f16, 8 x { four indices: [u8; 4], signs: [u7; 4], scale: u4 }`; value = d (scale + 1/2) / 4 group, with signs.
pub(super) fn iq2_xxs(b: &[u8], y: &mut [f32]) {
    let d = half_at(b, 0);
    for (part, y) in y.chunks_exact_mut(32).enumerate() {
        let base = 2 + part * 8;
        let packed = u32_at(b, base + 4);
        let scale = d * (0.5 + (packed >> 28) as f32) * 0.25;
        for (i, y) in y.chunks_exact_mut(8).enumerate() {
            let group = IQ2_XXS.group(usize::from(b[base + i]));
            put(y, scale, &group, even_signs(packed >> (7 * i)));
        }
    }
}

/// `d: f16, [u9 index, u7 signs; 32], scales: [u4; 16]`; value = d (scale + 1/2) / 4 group, with signs.
pub(super) fn iq2_xs(b: &[u8], y: &mut [f32]) {
    let d = half_at(b, 0);
    for (i, y) in y.chunks_exact_mut(8).enumerate() {
        let scale = iq2_scale(d, b[66 + i / 4], i);
        let packed = u16_at(b, 2 + i * 2);
        put(y, scale, &IQ2_XS.group(usize::from(packed & 511)), even_signs(u32::from(packed >> 9)));
    }
}

/// `d: f16, low: [u8; 32], signs: [u8; 32], high: [u2; 32], scales: [u4; 16]`; value = d (scale + 1/2) / 4 group, with
/// signs.
pub(super) fn iq2_s(b: &[u8], y: &mut [f32]) {
    let d = half_at(b, 0);
    for (i, y) in y.chunks_exact_mut(8).enumerate() {
        let scale = iq2_scale(d, b[74 + i / 4], i);
        let high = usize::from(b[66 + i / 4] >> (i % 4 * 2) & 3);
        put(y, scale, &IQ2_S.group(usize::from(b[2 + i]) | high << 8), b[34 + i]);
    }
}

/// `d: f16, indices: [u8; 64], 8 x { signs: [u7; 4], scale: u4 }`; value = d (scale + 1/2) / 2 group, with signs.
pub(super) fn iq3_xxs(b: &[u8], y: &mut [f32]) {
    let d = half_at(b, 0);
    for (part, y) in y.chunks_exact_mut(32).enumerate() {
        let packed = u32_at(b, 66 + part * 4);
        let scale = d * (0.5 + (packed >> 28) as f32) * 0.5;
        for (i, y) in y.chunks_exact_mut(8).enumerate() {
            let signs = even_signs(packed >> (7 * i));
            for (j, y) in y.chunks_exact_mut(4).enumerate() {
                let index = b[2 + part * 8 + i * 2 + j];
                put(y, scale, &IQ3_XXS.group(usize::from(index)), signs >> (4 * j));
            }
        }
    }
}

/// `d: f16, low: [u8; 64], high: [u1; 64], signs: [u1; 256], scales: [u4; 8]`; value = d (2 scale + 1) group, with
/// signs.
pub(super) fn iq3_s(b: &[u8], y: &mut [f32]) {
    let d = half_at(b, 0);
    for (i, y) in y.chunks_exact_mut(4).enumerate() {
        let part = i / 8;
        let scale = d * (1.0 + 2.0 * f32::from(b[106 + part / 2] >> (part % 2 * 4) & 15));
        let high = usize::from(b[66 + part] >> (i % 8) & 1);
        let signs = b[74 + i / 2] >> (i % 2 * 4);
        put(y, scale, &IQ3_S.group(usize::from(b[2 + i]) | high << 8), signs);
    }
}

/// `d: f16, low: [u8; 32], 8 x { high: [u3; 4], scale: u3, minus: u1 }`; value = d (2 scale + 1) (group ± 1/8).
pub(super) fn iq1_s(b: &[u8], y: &mut [f32]) {
    let d = half_at(b, 0);
    for (part, y) in y.chunks_exact_mut(32).enumerate() {
        let packed = u16_at(b, 34 + part * 2);
        let scale = d * f32::from(2 * (packed >> 12 & 7) + 1);
        let delta = if packed & 0x8000 == 0 { IQ1_DELTA } else { -IQ1_DELTA };
        for (i, y) in y.chunks_exact_mut(8).enumerate() {
            let index = usize::from(b[2 + part * 4 + i]) | usize::from(packed >> (3 * i) & 7) << 8;
            for (y, value) in y.iter_mut().zip(IQ1.group(index)) {
                *y = scale * (value + delta);
            }
        }
    }
}

/// `low: [u8; 32], [u3 high, u1 minus; 32], scales: [u3; 16]` and the four nibbles of d in between; value = d (2 scale
/// + 1) (group ± 1/8).
pub(super) fn iq1_m(b: &[u8], y: &mut [f32]) {
    let word = |i: usize| u16_at(b, 48 + i * 2);
    let d = half::f16::from_bits((0..4).fold(0, |bits, i| bits | word(i) >> 12 << (4 * i))).to_f32();
    for (i, y) in y.chunks_exact_mut(8).enumerate() {
        let scale = d * f32::from(2 * (word(i / 8) >> (3 * (i / 2 % 4)) & 7) + 1);
        let packed = b[32 + i / 2] >> (i % 2 * 4);
        let delta = if packed & 8 == 0 { IQ1_DELTA } else { -IQ1_DELTA };
        let index = usize::from(b[i]) | usize::from(packed & 7) << 8;
        for (y, value) in y.iter_mut().zip(IQ1.group(index)) {
            *y = scale * (value + delta);
        }
    }
}

/// The scale of the `i`-th group of eight: two groups share a nibble.
fn iq2_scale(d: f32, packed: u8, i: usize) -> f32 {
    d * (0.5 + f32::from(packed >> (i % 4 / 2 * 4) & 15)) * 0.25
}

/// Expands seven sign bits to eight; the eighth makes the parity even.
fn even_signs(packed: u32) -> u8 {
    let seven = (packed & 127) as u8;
    seven | ((seven.count_ones() as u8 & 1) << 7)
}

/// Writes a scaled group; a set sign bit negates its value.
fn put(y: &mut [f32], scale: f32, group: &[f32], signs: u8) {
    for (i, (y, value)) in y.iter_mut().zip(group).enumerate() {
        let value = scale * value;
        *y = if signs >> i & 1 == 0 { value } else { -value };
    }
}
