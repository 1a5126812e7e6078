//! Keys and values of one head as the KV cache stores them. Scales and steps follow ggml (`quantize_row_q8_0_ref` and
//! `quantize_row_q4_0_ref` of ggml-quants.c); only the layout is our own.

use half::f16;
use potluck_plan::KvCacheType;

const BLOCK: usize = KvCacheType::BLOCK as usize;

/// The value of the largest magnitude, with its sign.
fn furthest(values: &[f32]) -> f32 {
    values.iter().copied().fold(0.0, |max: f32, v| if v.abs() > max.abs() { v } else { max })
}

/// The step size of a block, and its values in steps.
fn steps(kv_type: KvCacheType, block: &[f32]) -> (f32, Vec<u8>) {
    let max = furthest(block);
    let step = if kv_type == KvCacheType::Q8_0 { max.abs() / 127.0 } else { max / -8.0 };
    let inverse = if step.abs() > 1e-30 { 1.0 / step } else { 0.0 };
    let quantized = block.iter().map(|v| match kv_type {
        KvCacheType::Q8_0 => (v * inverse).round().clamp(-127.0, 127.0) as i8 as u8,
        _ => v.mul_add(inverse, 8.5).clamp(0.0, 15.0) as u8,
    });
    (step, quantized.collect())
}

/// Encodes one head at one position.
pub fn store(kv_type: KvCacheType, head: &[f32]) -> Vec<u8> {
    match kv_type {
        KvCacheType::F32 => head.iter().flat_map(|v| v.to_le_bytes()).collect(),
        KvCacheType::F16 => head.iter().flat_map(|&v| f16::from_f32(v).to_le_bytes()).collect(),
        KvCacheType::Q8_0 | KvCacheType::Q4_0 => {
            let blocks: Vec<(f32, Vec<u8>)> = head.chunks_exact(BLOCK).map(|block| steps(kv_type, block)).collect();
            let clamped = |step: f32| f16::from_f32(step.clamp(-65504.0, 65504.0));
            let mut bytes: Vec<u8> = blocks.iter().flat_map(|(step, _)| clamped(*step).to_le_bytes()).collect();
            bytes.resize(4 * kv_type.scale_words(head.len() as u32) as usize, 0);
            let values = blocks.into_iter().flat_map(|(_, steps)| steps);
            if kv_type == KvCacheType::Q8_0 {
                bytes.extend(values);
            } else {
                let values: Vec<u8> = values.collect();
                bytes.extend(values.chunks_exact(2).map(|pair| pair[0] | pair[1] << 4));
            }
            bytes
        }
    }
}

/// Decodes the `head_dim` values of a head.
pub fn load(kv_type: KvCacheType, bytes: &[u8], head_dim: usize) -> Vec<f32> {
    let half = |at: usize| f16::from_le_bytes([bytes[at], bytes[at + 1]]).to_f32();
    match kv_type {
        KvCacheType::F32 => bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect(),
        KvCacheType::F16 => (0..head_dim).map(|i| half(2 * i)).collect(),
        KvCacheType::Q8_0 | KvCacheType::Q4_0 => {
            let first = 4 * kv_type.scale_words(head_dim as u32) as usize;
            let steps = |i: usize| match kv_type {
                KvCacheType::Q8_0 => f32::from(bytes[first + i] as i8),
                _ => f32::from(bytes[first + i / 2] >> (4 * (i % 2)) & 15) - 8.0,
            };
            (0..head_dim).map(|i| half(2 * (i / BLOCK)) * steps(i)).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_has_the_planned_size_and_is_near() {
        let head: Vec<f32> = (0..96).map(|i| ((i * 37 % 96) as f32 - 40.0) / 7.0).collect();
        for (kv_type, near) in
            [(KvCacheType::F32, 0.0), (KvCacheType::F16, 4e-3), (KvCacheType::Q8_0, 0.04), (KvCacheType::Q4_0, 1.0)]
        {
            let bytes = store(kv_type, &head);
            assert_eq!(bytes.len(), 4 * kv_type.head_words(96) as usize, "{kv_type}");
            let again = load(kv_type, &bytes, 96);
            let worst = head.iter().zip(&again).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(again.len() == 96 && worst <= near, "{kv_type}: {worst}");
            assert_eq!(store(kv_type, &again), bytes, "{kv_type}: what was loaded is stored as it was");
        }
    }

    #[test]
    fn a_block_of_zeros_is_zeros() {
        for kv_type in KvCacheType::ALL {
            assert_eq!(load(kv_type, &store(kv_type, &[0.0; 32]), 32), [0.0; 32]);
        }
    }
}
