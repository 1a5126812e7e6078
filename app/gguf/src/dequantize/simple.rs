//! Types with one scale per 32 values. In the 4-bit and 5-bit types, low nibbles hold the first 16 values of a block,
//! high nibbles the last 16.

use super::{half_at, u32_at};

/// `d: f16, q: [u4; 32]`; value = (q - 8) d.
pub(super) fn q4_0(b: &[u8], y: &mut [f32]) {
    let d = half_at(b, 0);
    for (i, &q) in b[2..18].iter().enumerate() {
        y[i] = (f32::from(q & 15) - 8.0) * d;
        y[i + 16] = (f32::from(q >> 4) - 8.0) * d;
    }
}

/// `d: f16, m: f16, q: [u4; 32]`; value = q d + m.
pub(super) fn q4_1(b: &[u8], y: &mut [f32]) {
    let (d, m) = (half_at(b, 0), half_at(b, 2));
    for (i, &q) in b[4..20].iter().enumerate() {
        y[i] = f32::from(q & 15) * d + m;
        y[i + 16] = f32::from(q >> 4) * d + m;
    }
}

/// `d: f16, high: [u1; 32], q: [u4; 32]`; value = (q + 16 high - 16) d.
pub(super) fn q5_0(b: &[u8], y: &mut [f32]) {
    let (d, high) = (half_at(b, 0), u32_at(b, 2));
    for (i, &q) in b[6..22].iter().enumerate() {
        y[i] = (five_bits(q & 15, high, i) - 16.0) * d;
        y[i + 16] = (five_bits(q >> 4, high, i + 16) - 16.0) * d;
    }
}

/// `d: f16, m: f16, high: [u1; 32], q: [u4; 32]`; value = (q + 16 high) d + m.
pub(super) fn q5_1(b: &[u8], y: &mut [f32]) {
    let (d, m, high) = (half_at(b, 0), half_at(b, 2), u32_at(b, 4));
    for (i, &q) in b[8..24].iter().enumerate() {
        y[i] = five_bits(q & 15, high, i) * d + m;
        y[i + 16] = five_bits(q >> 4, high, i + 16) * d + m;
    }
}

/// `d: f16, q: [i8; 32]`; value = q d.
pub(super) fn q8_0(b: &[u8], y: &mut [f32]) {
    let d = half_at(b, 0);
    for (y, &q) in y.iter_mut().zip(&b[2..34]) {
        *y = f32::from(q as i8) * d;
    }
}

/// A nibble extended by its fifth bit.
fn five_bits(nibble: u8, high: u32, i: usize) -> f32 {
    f32::from(nibble | (((high >> i) & 1) as u8) << 4)
}
