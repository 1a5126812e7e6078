//! K types: super-blocks of 256 values, divided into parts with quantized scales.

use super::half_at;

/// `scales: [u4 scale, u4 min; 16], q: [u2; 256], d: f16, dmin: f16`; value = d scale q - dmin min.
pub(super) fn q2_k(b: &[u8], y: &mut [f32]) {
    let (scales, qs) = (&b[..16], &b[16..80]);
    let (d, dmin) = (half_at(b, 80), half_at(b, 82));
    for (part, y) in y.chunks_exact_mut(16).enumerate() {
        let scale = d * f32::from(scales[part] & 15);
        let min = dmin * f32::from(scales[part] >> 4);
        // 128 values share 32 bytes: each byte holds two bits of four values that lie 32 apart.
        let (base, shift) = (part / 8 * 32 + part % 2 * 16, part % 8 / 2 * 2);
        for (y, &q) in y.iter_mut().zip(&qs[base..base + 16]) {
            *y = scale * f32::from((q >> shift) & 3) - min;
        }
    }
}

/// `high: [u1; 256], q: [u2; 256], scales: [u6; 16], d: f16`; value = d (scale - 32) (q + 4 high - 4).
pub(super) fn q3_k(b: &[u8], y: &mut [f32]) {
    let (high, qs, scales) = (&b[..32], &b[32..96], &b[96..108]);
    let d = half_at(b, 108);
    for (part, y) in y.chunks_exact_mut(16).enumerate() {
        // Eight bytes hold the low four bits of the scales as nibbles; the next four hold the high two bits.
        let low = if part < 8 { scales[part] & 15 } else { scales[part - 8] >> 4 };
        let scale = low | (((scales[8 + part % 4] >> (part / 4 * 2)) & 3) << 4);
        let scale = d * (f32::from(scale) - 32.0);
        let (column, shift) = (part % 2 * 16, part % 8 / 2 * 2);
        let base = part / 8 * 32 + column;
        for (i, y) in y.iter_mut().enumerate() {
            let q = i32::from((qs[base + i] >> shift) & 3);
            let high = i32::from((high[column + i] >> (part / 2)) & 1);
            *y = scale * (q + 4 * high - 4) as f32;
        }
    }
}

/// `d: f16, dmin: f16, scales: [u6 scale, u6 min; 8], q: [u4; 256]`; value = d scale q - dmin min.
pub(super) fn q4_k(b: &[u8], y: &mut [f32]) {
    let (d, dmin) = (half_at(b, 0), half_at(b, 2));
    let (scales, qs) = (&b[4..16], &b[16..144]);
    for (part, y) in y.chunks_exact_mut(32).enumerate() {
        let (scale, min) = scale_and_min(part, scales);
        let (scale, min) = (d * scale, dmin * min);
        let (base, shift) = (part / 2 * 32, part % 2 * 4);
        for (y, &q) in y.iter_mut().zip(&qs[base..base + 32]) {
            *y = scale * f32::from((q >> shift) & 15) - min;
        }
    }
}

/// `d: f16, dmin: f16, scales: [u6 scale, u6 min; 8], high: [u1; 256], q: [u4; 256]`; value = d scale (q + 16 high) -
/// dmin min.
pub(super) fn q5_k(b: &[u8], y: &mut [f32]) {
    let (d, dmin) = (half_at(b, 0), half_at(b, 2));
    let (scales, high, qs) = (&b[4..16], &b[16..48], &b[48..176]);
    for (part, y) in y.chunks_exact_mut(32).enumerate() {
        let (scale, min) = scale_and_min(part, scales);
        let (scale, min) = (d * scale, dmin * min);
        let (base, shift) = (part / 2 * 32, part % 2 * 4);
        for (i, y) in y.iter_mut().enumerate() {
            let q = ((qs[base + i] >> shift) & 15) | (((high[i] >> part) & 1) << 4);
            *y = scale * f32::from(q) - min;
        }
    }
}

/// `low: [u4; 256], high: [u2; 256], scales: [i8; 16], d: f16`; value = d scale (low + 16 high - 32).
pub(super) fn q6_k(b: &[u8], y: &mut [f32]) {
    let (low, high, scales) = (&b[..128], &b[128..192], &b[192..208]);
    let d = half_at(b, 208);
    for (part, y) in y.chunks_exact_mut(16).enumerate() {
        let scale = d * f32::from(scales[part] as i8);
        // 128 values take 64 bytes of low bits and 32 bytes of high bits, in four quarters of 32 values.
        let (half, quarter, column) = (part / 8, part % 8 / 2, part % 2 * 16);
        let low_base = half * 64 + quarter % 2 * 32 + column;
        let high_base = half * 32 + column;
        for (i, y) in y.iter_mut().enumerate() {
            let low = (low[low_base + i] >> (quarter / 2 * 4)) & 15;
            let high = (high[high_base + i] >> (quarter * 2)) & 3;
            *y = scale * (f32::from(low | high << 4) - 32.0);
        }
    }
}

/// The 6-bit scale and minimum of one of eight parts, packed into 12 bytes. Parts 0 to 3 use the low six bits of the
/// first eight bytes; parts 4 to 7 use nibbles of the last four bytes and the high two bits of the first eight.
fn scale_and_min(part: usize, packed: &[u8]) -> (f32, f32) {
    let (scale, min) = if part < 4 {
        (packed[part] & 63, packed[part + 4] & 63)
    } else {
        let low = packed[part + 4];
        ((low & 15) | (packed[part - 4] >> 6 << 4), (low >> 4) | (packed[part] >> 6 << 4))
    };
    (f32::from(scale), f32::from(min))
}
