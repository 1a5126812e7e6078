//! Random blocks of a type, valid and with a given deviation, at the speed of memory: for files of many gigabytes.

use half::{bf16, f16};

use super::random::Random;
use crate::{GgufError, TensorType};

/// Whether [`fill`] can make blocks of this type.
pub(super) fn supports(kind: TensorType) -> bool {
    matches!(kind, TensorType::F32 | TensorType::F16 | TensorType::BF16) || scales(kind).is_some()
}

/// Where the half-precision scales of a block stand, and what a value's deviation must be multiplied with to get each.
///
/// The factors follow from uniform random bits in the rest of the block: for `Q4_0` a value is d (q - 8) with q uniform in
/// 0 to 15, whose deviation is 4.61 d. In `Q4_K` the second scale cancels the mean of the first.
fn scales(kind: TensorType) -> Option<&'static [(usize, f32)]> {
    Some(match kind {
        TensorType::Q4_0 => &[(0, 1.0 / 4.64)],
        TensorType::Q5_0 => &[(0, 1.0 / 9.25)],
        TensorType::Q5_1 => &[(0, 1.0 / 9.23), (2, -15.5 / 9.23)],
        TensorType::Q8_0 => &[(0, 1.0 / 73.9)],
        TensorType::Q4_K => &[(0, 1.0 / 258.0), (2, 7.5 / 258.0)],
        TensorType::Q5_K => &[(0, 1.0 / 530.0), (2, 15.5 / 530.0)],
        TensorType::Q6_K => &[(208, 1.0 / 1366.0)],
        TensorType::IQ4_NL => &[(0, 1.0 / 67.6)],
        TensorType::IQ4_XS => &[(0, 1.0 / 1241.0)],
        TensorType::IQ2_XXS => &[(0, 1.0 / 53.1)],
        TensorType::IQ3_XXS => &[(0, 1.0 / 143.3)],
        TensorType::TQ2_0 => &[(64, 1.0 / 1.22)],
        _ => return None,
    })
}

/// Fills `bytes`, whole blocks of `kind`, with random values of about this deviation.
pub(super) fn fill(kind: TensorType, deviation: f32, random: &mut Random, bytes: &mut [u8]) -> Result<(), GgufError> {
    // A uniform number within ±sqrt(3) has deviation 1.
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
        _ => {
            let scales = scales(kind).ok_or(GgufError::UnsupportedType { kind, action: "filled at random" })?;
            // Block sizes are small constants.
            for block in bytes.chunks_exact_mut(kind.block_bytes() as usize) {
                // Codes are not symmetric around zero: a random sign for each block is what makes the mean zero. The bytes
                // where the scales go are random until then.
                let sign = if block[scales[0].0] & 1 == 0 { 1.0 } else { -1.0 };
                for &(at, factor) in scales {
                    block[at..at + 2].copy_from_slice(&f16::from_f32(sign * deviation * factor).to_le_bytes());
                }
            }
        }
    }
    Ok(())
}
