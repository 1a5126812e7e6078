//! Types with few distinct values: 4-bit tables and floats, ternary, two-bit and one-bit values.

use super::{half_at, u16_at};

/// The values of `IQ4_NL` and `IQ4_XS` (ggml-common.h, `kvalues_iq4nl`).
const IQ4_VALUES: [f32; 16] =
    [-127.0, -104.0, -83.0, -65.0, -49.0, -35.0, -22.0, -10.0, 1.0, 13.0, 25.0, 38.0, 53.0, 69.0, 89.0, 113.0];

/// The E2M1 float values, doubled (ggml-common.h, `kvalues_mxfp4`).
const E2M1_DOUBLED: [f32; 16] =
    [0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 0.0, -1.0, -2.0, -3.0, -4.0, -6.0, -8.0, -12.0];

/// `d: f16, q: [u4; 32]`; value = d table[q].
pub(super) fn iq4_nl(b: &[u8], y: &mut [f32]) {
    table_block(half_at(b, 0), &IQ4_VALUES, &b[2..18], y);
}

/// `d: f16, scales high: [u2; 8], scales low: [u4; 8], q: [u4; 256]`; value = d (scale - 32) table[q].
pub(super) fn iq4_xs(b: &[u8], y: &mut [f32]) {
    let (d, high) = (half_at(b, 0), u16_at(b, 2));
    for (part, y) in y.chunks_exact_mut(32).enumerate() {
        let low = (b[4 + part / 2] >> (part % 2 * 4)) & 15;
        let scale = low | ((((high >> (2 * part)) & 3) as u8) << 4);
        let base = 8 + part * 16;
        table_block(d * (f32::from(scale) - 32.0), &IQ4_VALUES, &b[base..base + 16], y);
    }
}

/// `e: u8, q: [u4; 32]`; value = 2^(e - 128) doubled[q].
pub(super) fn mxfp4(b: &[u8], y: &mut [f32]) {
    // Half of 2^(e - 127), which is subnormal for the two smallest exponents.
    let bits = if b[0] < 2 { 0x0020_0000 << b[0] } else { (u32::from(b[0]) - 1) << 23 };
    table_block(f32::from_bits(bits), &E2M1_DOUBLED, &b[1..17], y);
}

/// `scales: [E4M3; 4], q: [u4; 64]`; value = scale / 2 doubled[q], with one scale per 16 values.
pub(super) fn nvfp4(b: &[u8], y: &mut [f32]) {
    for (part, y) in y.chunks_exact_mut(16).enumerate() {
        let base = 4 + part * 8;
        table_block(half_of_e4m3(b[part]), &E2M1_DOUBLED, &b[base..base + 8], y);
    }
}

/// Half the value of an unsigned E4M3 float; the NaN pattern counts as zero.
pub(crate) fn half_of_e4m3(bits: u8) -> f32 {
    if bits == 0 || bits == 0x7f {
        return 0.0;
    }
    let (exponent, mantissa) = (i32::from(bits >> 3 & 15), f32::from(bits & 7));
    let value = if exponent == 0 { mantissa * 2f32.powi(-9) } else { (1.0 + mantissa / 8.0) * 2f32.powi(exponent - 7) };
    value * 0.5
}

/// `q: 48 bytes of five ternary digits and 4 bytes of four, d: f16`; value = (digit - 1) d.
pub(super) fn tq1_0(b: &[u8], y: &mut [f32]) {
    const POWERS: [u8; 5] = [1, 3, 9, 27, 81];
    let d = half_at(b, 52);
    let mut out = y.iter_mut();
    for (range, digits) in [(0..32, 5), (32..48, 5), (48..52, 4)] {
        for power in &POWERS[..digits] {
            // Each byte is a base-3 fraction: after multiplying by 3^n, the overflow of another factor 3 is the next
            // digit.
            for (byte, y) in b[range.clone()].iter().zip(&mut out) {
                let digit = (u16::from(byte.wrapping_mul(*power)) * 3) >> 8;
                *y = (f32::from(digit) - 1.0) * d;
            }
        }
    }
}

/// `q: [u2; 256], d: f16`; value = (q - 1) d.
pub(super) fn tq2_0(b: &[u8], y: &mut [f32]) {
    let d = half_at(b, 64);
    for (part, y) in y.chunks_exact_mut(32).enumerate() {
        let (base, shift) = (part / 4 * 32, part % 4 * 2);
        for (y, &q) in y.iter_mut().zip(&b[base..base + 32]) {
            *y = (f32::from((q >> shift) & 3) - 1.0) * d;
        }
    }
}

/// `d: f16, q: [u1; 128]`; value = d for one, -d for zero.
pub(super) fn q1_0(b: &[u8], y: &mut [f32]) {
    let d = half_at(b, 0);
    for (i, y) in y.iter_mut().enumerate() {
        *y = if b[2 + i / 8] >> (i % 8) & 1 == 1 { d } else { -d };
    }
}

/// `d: f16, q: [u2; 64]`; value = (q - 1) d.
pub(super) fn q2_0(b: &[u8], y: &mut [f32]) {
    let d = half_at(b, 0);
    for (i, y) in y.iter_mut().enumerate() {
        *y = (f32::from(b[2 + i / 4] >> (i % 4 * 2) & 3) - 1.0) * d;
    }
}

/// Low nibbles hold the first half of the values, high nibbles the second.
fn table_block(scale: f32, table: &[f32; 16], qs: &[u8], y: &mut [f32]) {
    let half = qs.len();
    for (i, &q) in qs.iter().enumerate() {
        y[i] = scale * table[usize::from(q & 15)];
        y[i + half] = scale * table[usize::from(q >> 4)];
    }
}
