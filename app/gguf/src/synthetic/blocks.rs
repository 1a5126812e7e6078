//! Generates valid random blocks with a given standard deviation at memory speed, for files of many gigabytes.

use half::{bf16, f16};

use super::random::Random;
use crate::dequantize::half_of_e4m3;
use crate::{GgufError, TensorType};

/// Standard deviation of uniformly random nibbles read as E2M1 floats, doubled.
const E2M1_DEVIATION: f32 = 5.852;

/// Offsets of a block's half-precision scales, and the factors that give each scale from the values' standard
/// deviation.
///
/// The factors assume uniformly random bits in the rest of the block: a `Q4_0` value is d (q - 8) with q uniform in 0
/// to 15, so its deviation is 4.61 d. In `Q4_K` the second scale cancels the mean of the first.
fn scales(kind: TensorType) -> Option<&'static [(usize, f32)]> {
    Some(match kind {
        TensorType::Q4_0 => &[(0, 1.0 / 4.64)],
        TensorType::Q4_1 => &[(0, 1.0 / 4.61), (2, -7.5 / 4.61)],
        TensorType::Q5_0 => &[(0, 1.0 / 9.25)],
        TensorType::Q5_1 => &[(0, 1.0 / 9.23), (2, -15.5 / 9.23)],
        TensorType::Q8_0 => &[(0, 1.0 / 73.9)],
        TensorType::Q2_K => &[(80, 1.0 / 13.87), (82, 1.5 / 13.87)],
        TensorType::Q3_K => &[(108, 1.0 / 43.3)],
        TensorType::Q4_K => &[(0, 1.0 / 258.0), (2, 7.5 / 258.0)],
        TensorType::Q5_K => &[(0, 1.0 / 530.0), (2, 15.5 / 530.0)],
        TensorType::Q6_K => &[(208, 1.0 / 1366.0)],
        TensorType::IQ4_NL => &[(0, 1.0 / 67.6)],
        TensorType::IQ4_XS => &[(0, 1.0 / 1241.0)],
        TensorType::IQ2_XXS => &[(0, 1.0 / 53.1)],
        TensorType::IQ2_XS => &[(0, 1.0 / 55.9)],
        TensorType::IQ2_S => &[(0, 1.0 / 56.4)],
        TensorType::IQ3_XXS => &[(0, 1.0 / 143.3)],
        TensorType::IQ3_S => &[(0, 1.0 / 140.2)],
        TensorType::IQ1_S => &[(0, 1.0 / 7.2)],
        TensorType::TQ1_0 => &[(52, 1.0 / 0.817)],
        TensorType::TQ2_0 => &[(64, 1.0 / 1.22)],
        TensorType::Q1_0 => &[(0, 1.0)],
        TensorType::Q2_0 => &[(0, 1.0 / 1.22)],
        _ => return None,
    })
}

/// Fills `bytes` with random blocks of `kind`, whose values have about this standard deviation. Works for every weight
/// type.
///
/// # Errors
/// A type without weights, or a length that is not whole blocks.
pub fn fill(kind: TensorType, deviation: f32, random: &mut Random, bytes: &mut [u8]) -> Result<(), GgufError> {
    // A uniform number within ±sqrt(3) has standard deviation 1.
    let uniform = |bits: u16| (f32::from(bits) - 32_767.5) * (deviation * 1.732_050_8 / 32_767.5);
    random.fill(bytes);
    match kind {
        TensorType::F32 => {
            for value in bytes.chunks_exact_mut(4) {
                let bits = u16::from_le_bytes([value[0], value[1]]);
                value.copy_from_slice(&uniform(bits).to_le_bytes());
            }
        }
        TensorType::F16 => {
            for value in bytes.chunks_exact_mut(2) {
                let bits = u16::from_le_bytes([value[0], value[1]]);
                value.copy_from_slice(&f16::from_f32(uniform(bits)).to_le_bytes());
            }
        }
        TensorType::BF16 => {
            for value in bytes.chunks_exact_mut(2) {
                let bits = u16::from_le_bytes([value[0], value[1]]);
                value.copy_from_slice(&bf16::from_f32(uniform(bits)).to_le_bytes());
            }
        }
        TensorType::IQ1_M => {
            for block in bytes.chunks_exact_mut(56) {
                let sign = u16::from(block[55] & 0x80) << 8;
                let scale = f16::from_f32(deviation / 7.2).to_bits() | sign;
                // The top nibbles of the last four words.
                for (i, byte) in block[48..].iter_mut().skip(1).step_by(2).enumerate() {
                    *byte = *byte & 15 | ((scale >> (4 * i)) as u8 & 15) << 4;
                }
            }
        }
        TensorType::MXFP4 => {
            let (low, chance) = power_of_two(deviation / E2M1_DEVIATION);
            for block in bytes.chunks_exact_mut(17) {
                block[0] = low + u8::from(f32::from(block[0]) < chance * 256.0);
            }
        }
        TensorType::NVFP4 => {
            let (low, chance) = e4m3(deviation / E2M1_DEVIATION);
            for block in bytes.chunks_exact_mut(36) {
                for scale in &mut block[..4] {
                    *scale = low + u8::from(f32::from(*scale) < chance * 256.0);
                }
            }
        }
        _ => {
            let scales = scales(kind).ok_or(GgufError::UnsupportedType { kind, action: "filled at random" })?;
            // The cast cannot truncate: block sizes are small constants.
            for block in bytes.chunks_exact_mut(kind.block_bytes() as usize) {
                // Codes are not symmetric around zero, so a random sign per block makes the mean zero. It comes from
                // the scale's bytes, which are still random here.
                let sign = if block[scales[0].0] & 1 == 0 { 1.0 } else { -1.0 };
                for &(at, factor) in scales {
                    block[at..at + 2].copy_from_slice(&f16::from_f32(sign * deviation * factor).to_le_bytes());
                }
            }
        }
    }
    Ok(())
}

/// The E8M0 exponent of `MXFP4` just below a scale, and how often to pick the next one to match the mean square.
fn power_of_two(scale: f32) -> (u8, f32) {
    let exponent = (scale.to_bits() >> 23).min(250);
    let ratio = scale / f32::from_bits(exponent << 23);
    // A block exponent e stands for the scale 2^(e - 128).
    (exponent as u8 + 1, (ratio * ratio - 1.0) / 3.0)
}

/// The same for the E4M3 scales of `NVFP4`, which stand for half their value.
fn e4m3(scale: f32) -> (u8, f32) {
    let low = (0..125).rev().find(|&bits| half_of_e4m3(bits) <= scale).unwrap_or(0);
    let [below, above] = [low, low + 1].map(|bits| half_of_e4m3(bits).powi(2));
    (low, (scale * scale - below) / (above - below))
}
