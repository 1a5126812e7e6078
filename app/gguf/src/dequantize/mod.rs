//! The reference dequantizer: converts any block type to floats in a fixed order of operations.
//!
//! Layouts and multiplication order follow ggml's reference (ggml-quants.c, `dequantize_row_*`), so results match ggml
//! and the Python package `gguf` bit for bit.

mod codebook;
mod k_quants;
mod simple;
mod small;

pub use codebook::Codebook;
pub(crate) use small::half_of_e4m3;

use half::{bf16, f16};

use crate::{GgufError, TensorType};

/// Dequantizes `bytes` into `out`. Both must cover the same whole number of blocks.
///
/// # Errors
/// A type that holds no weights, or lengths that do not match.
pub fn dequantize(kind: TensorType, bytes: &[u8], out: &mut [f32]) -> Result<(), GgufError> {
    let block: fn(&[u8], &mut [f32]) = match kind {
        TensorType::F32 => |b, y| y[0] = f32::from_le_bytes([b[0], b[1], b[2], b[3]]),
        TensorType::F16 => |b, y| y[0] = half_at(b, 0),
        TensorType::BF16 => |b, y| y[0] = bf16::from_le_bytes([b[0], b[1]]).to_f32(),
        TensorType::Q4_0 => simple::q4_0,
        TensorType::Q4_1 => simple::q4_1,
        TensorType::Q5_0 => simple::q5_0,
        TensorType::Q5_1 => simple::q5_1,
        TensorType::Q8_0 => simple::q8_0,
        TensorType::Q2_K => k_quants::q2_k,
        TensorType::Q3_K => k_quants::q3_k,
        TensorType::Q4_K => k_quants::q4_k,
        TensorType::Q5_K => k_quants::q5_k,
        TensorType::Q6_K => k_quants::q6_k,
        TensorType::IQ4_NL => small::iq4_nl,
        TensorType::IQ4_XS => small::iq4_xs,
        TensorType::TQ1_0 => small::tq1_0,
        TensorType::TQ2_0 => small::tq2_0,
        TensorType::MXFP4 => small::mxfp4,
        TensorType::NVFP4 => small::nvfp4,
        TensorType::Q1_0 => small::q1_0,
        TensorType::Q2_0 => small::q2_0,
        TensorType::IQ1_S => codebook::iq1_s,
        TensorType::IQ1_M => codebook::iq1_m,
        TensorType::IQ2_XXS => codebook::iq2_xxs,
        TensorType::IQ2_XS => codebook::iq2_xs,
        TensorType::IQ2_S => codebook::iq2_s,
        TensorType::IQ3_XXS => codebook::iq3_xxs,
        TensorType::IQ3_S => codebook::iq3_s,
        TensorType::Q8_1
        | TensorType::Q8_K
        | TensorType::I8
        | TensorType::I16
        | TensorType::I32
        | TensorType::I64
        | TensorType::F64 => return Err(GgufError::UnsupportedType { kind, action: "turned into floats" }),
    };
    // The casts cannot truncate: block sizes are small constants.
    let (elements, size) = (kind.block_elements() as usize, kind.block_bytes() as usize);
    if !out.len().is_multiple_of(elements) || out.len() / elements * size != bytes.len() {
        return Err(GgufError::LengthMismatch { kind, values: out.len(), bytes: bytes.len() });
    }
    for (bytes, out) in bytes.chunks_exact(size).zip(out.chunks_exact_mut(elements)) {
        block(bytes, out);
    }
    Ok(())
}

/// The half-precision float at a byte offset.
fn half_at(bytes: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([bytes[at], bytes[at + 1]]).to_f32()
}

/// The 16-bit number at a byte offset.
fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

/// The 32-bit number at a byte offset.
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
