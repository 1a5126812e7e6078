//! Dequantizes rows, written from the formats' definition (ggml's `block_*` structures).

use half::f16;

use crate::Format;

fn half_at(bytes: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([bytes[at], bytes[at + 1]]).to_f32()
}

/// Values of whole blocks. Bytes after the last whole block are ignored.
pub fn dequantize(format: Format, bytes: &[u8]) -> Vec<f32> {
    let blocks = bytes.chunks_exact(format.block_bytes() as usize);
    match format {
        Format::F32 => blocks.map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect(),
        Format::F16 => blocks.map(|b| half_at(b, 0)).collect(),
        Format::Q8_0 => blocks
            .flat_map(|b| {
                let d = half_at(b, 0);
                b[2..].iter().map(move |&q| d * f32::from(q as i8))
            })
            .collect(),
        Format::Q4_0 => blocks
            .flat_map(|b| {
                let d = half_at(b, 0);
                let low = b[2..].iter().map(move |&q| d * (f32::from(q & 15) - 8.0));
                low.chain(b[2..].iter().map(move |&q| d * (f32::from(q >> 4) - 8.0)))
            })
            .collect(),
        Format::Q4_K => blocks.flat_map(q4_k).collect(),
        Format::Q6_K => blocks.flat_map(q6_k).collect(),
    }
}

fn q4_k(b: &[u8]) -> Vec<f32> {
    let (d, least) = (half_at(b, 0), half_at(b, 2));
    let scales = &b[4..16];
    let mut values = Vec::with_capacity(256);
    for part in 0..8 {
        let (scale, min) = if part < 4 {
            (scales[part] & 63, scales[part + 4] & 63)
        } else {
            let both = scales[part + 4];
            ((both & 15) | ((scales[part - 4] >> 6) << 4), (both >> 4) | ((scales[part] >> 6) << 4))
        };
        let (scale, min) = (d * f32::from(scale), least * f32::from(min));
        let nibbles = &b[16 + 32 * (part / 2)..][..32];
        let shift = 4 * (part % 2);
        values.extend(nibbles.iter().map(|&q| scale * f32::from((q >> shift) & 15) - min));
    }
    values
}

fn q6_k(b: &[u8]) -> Vec<f32> {
    let (low, high, scales, d) = (&b[..128], &b[128..192], &b[192..208], half_at(b, 208));
    let mut values = Vec::with_capacity(256);
    for i in 0..256 {
        let (half, group, l) = (i / 128, i % 128 / 32, i % 32);
        let nibble = (low[64 * half + 32 * (group % 2) + l] >> (4 * (group / 2))) & 15;
        let pair = (high[32 * half + l] >> (2 * group)) & 3;
        let q = i32::from(nibble | (pair << 4)) - 32;
        values.push(d * f32::from(scales[i / 16] as i8) * q as f32);
    }
    values
}
