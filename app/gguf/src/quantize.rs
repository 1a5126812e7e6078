//! A simple quantizer that takes the scale from the extremes and rounds to nearest. It makes test models
//! and shadow models, whose answers nobody reads; llama.cpp searches better scales for models that answer.

use half::f16;

use crate::{GgufError, TensorType};

/// Quantizes `values` as `kind` and appends the blocks to `out`. The values must fill whole blocks.
///
/// Types: `F32 F16 Q8_0 Q4_0 Q2_K Q4_K Q6_K`.
///
/// # Errors
/// An unsupported type, or values that do not fill whole blocks.
pub fn quantize(kind: TensorType, values: &[f32], out: &mut Vec<u8>) -> Result<(), GgufError> {
    let block: fn(&[f32], &mut Vec<u8>) = match kind {
        TensorType::F32 => |x, out| out.extend(x[0].to_le_bytes()),
        TensorType::F16 => |x, out| out.extend(f16::from_f32(x[0]).to_le_bytes()),
        TensorType::Q8_0 => q8_0,
        TensorType::Q4_0 => q4_0,
        TensorType::Q2_K => q2_k,
        TensorType::Q4_K => q4_k,
        TensorType::Q6_K => q6_k,
        _ => return Err(GgufError::UnsupportedType { kind, action: "made from floats" }),
    };
    // The cast cannot truncate: block sizes are small constants.
    let elements = kind.block_elements() as usize;
    if !values.len().is_multiple_of(elements) {
        let bytes = values.len() / elements * kind.block_bytes() as usize;
        return Err(GgufError::LengthMismatch { kind, values: values.len(), bytes });
    }
    out.reserve(values.len() / elements * kind.block_bytes() as usize);
    values.chunks_exact(elements).for_each(|values| block(values, out));
    Ok(())
}

fn inverse(d: f32) -> f32 {
    if d == 0.0 { 0.0 } else { 1.0 / d }
}

/// The value with the largest magnitude, sign included.
fn extreme(values: &[f32]) -> f32 {
    values.iter().copied().fold(0.0, |extreme: f32, v| if v.abs() > extreme.abs() { v } else { extreme })
}

/// Rounds a scale to half precision, appends it, and returns the rounded value.
fn half_scale(d: f32, out: &mut Vec<u8>) -> f32 {
    let rounded = f16::from_f32(d);
    out.extend(rounded.to_le_bytes());
    rounded.to_f32()
}

fn q8_0(x: &[f32], out: &mut Vec<u8>) {
    let id = inverse(half_scale(extreme(x).abs() / 127.0, out));
    out.extend(x.iter().map(|v| (v * id).round().clamp(-127.0, 127.0) as i8 as u8));
}

fn q4_0(x: &[f32], out: &mut Vec<u8>) {
    let id = inverse(half_scale(extreme(x) / -8.0, out));
    let q = |v: f32| (v * id + 8.0).round().clamp(0.0, 15.0) as u8;
    out.extend((0..16).map(|i| q(x[i]) | q(x[i + 16]) << 4));
}

/// For each part of so many values: the step between so many levels above zero, and how far its minimum lies below zero.
fn ranges(x: &[f32], part: usize, levels: f32) -> Vec<(f32, f32)> {
    let range = |part: &[f32]| {
        let min = part.iter().copied().fold(0.0, f32::min);
        let max = part.iter().copied().fold(min, f32::max);
        ((max - min) / levels, -min)
    };
    x.chunks_exact(part).map(range).collect()
}

fn largest(values: impl Iterator<Item = f32>) -> f32 {
    values.fold(0.0, f32::max)
}

fn q2_k(x: &[f32], out: &mut Vec<u8>) {
    let parts = ranges(x, 16, 3.0);
    let mut halves = Vec::with_capacity(4);
    let d = half_scale(largest(parts.iter().map(|part| part.0)) / 15.0, &mut halves);
    let dmin = half_scale(largest(parts.iter().map(|part| part.1)) / 15.0, &mut halves);
    let mut steps = Vec::with_capacity(16);
    for (scale, min) in parts {
        let scale = (scale * inverse(d)).round().clamp(0.0, 15.0) as u8;
        let min = (min * inverse(dmin)).round().clamp(0.0, 15.0) as u8;
        out.push(scale | min << 4);
        steps.push((inverse(d * f32::from(scale)), dmin * f32::from(min)));
    }
    let q = |i: usize| {
        let (id, min) = steps[i / 16];
        ((x[i] + min) * id).round().clamp(0.0, 3.0) as u8
    };
    for half in [0, 128] {
        out.extend((half..half + 32).map(|i| q(i) | q(i + 32) << 2 | q(i + 64) << 4 | q(i + 96) << 6));
    }
    out.extend(halves);
}

fn q4_k(x: &[f32], out: &mut Vec<u8>) {
    let parts = ranges(x, 32, 15.0);
    let d = half_scale(largest(parts.iter().map(|part| part.0)) / 63.0, out);
    let dmin = half_scale(largest(parts.iter().map(|part| part.1)) / 63.0, out);
    let mut packed = [0u8; 12];
    let mut steps = Vec::with_capacity(8);
    for (i, (scale, min)) in parts.into_iter().enumerate() {
        let scale = (scale * inverse(d)).round().clamp(0.0, 63.0) as u8;
        let min = (min * inverse(dmin)).round().clamp(0.0, 63.0) as u8;
        if i < 4 {
            packed[i] |= scale;
            packed[i + 4] |= min;
        } else {
            packed[i + 4] |= (scale & 15) | (min & 15) << 4;
            packed[i - 4] |= scale >> 4 << 6;
            packed[i] |= min >> 4 << 6;
        }
        steps.push((inverse(d * f32::from(scale)), dmin * f32::from(min)));
    }
    out.extend(packed);
    let q = |i: usize| {
        let (id, min) = steps[i / 32];
        ((x[i] + min) * id).round().clamp(0.0, 15.0) as u8
    };
    for pair in 0..4 {
        out.extend((0..32).map(|i| q(pair * 64 + i) | q(pair * 64 + 32 + i) << 4));
    }
}

fn q6_k(x: &[f32], out: &mut Vec<u8>) {
    let scales: Vec<f32> = x.chunks_exact(16).map(|part| extreme(part) / -32.0).collect();
    let d = f16::from_f32(extreme(&scales) / -128.0);
    let scales: Vec<i8> =
        scales.iter().map(|scale| (scale * inverse(d.to_f32())).round().clamp(-128.0, 127.0) as i8).collect();
    let q: Vec<u8> = x
        .iter()
        .enumerate()
        .map(|(i, v)| {
            let id = inverse(d.to_f32() * f32::from(scales[i / 16]));
            (v * id + 32.0).round().clamp(0.0, 63.0) as u8
        })
        .collect();
    for half in q.chunks_exact(128) {
        out.extend((0..64).map(|i| (half[i] & 15) | (half[i + 64] & 15) << 4));
    }
    for half in q.chunks_exact(128) {
        out.extend(
            (0..32).map(|i| half[i] >> 4 | half[i + 32] >> 4 << 2 | half[i + 64] >> 4 << 4 | half[i + 96] >> 4 << 6),
        );
    }
    out.extend(scales.iter().map(|&scale| scale as u8));
    out.extend(d.to_le_bytes());
}
