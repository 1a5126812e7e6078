//! Vectors as scaled half floats, as the product by matrix units reads them.

use half::f16;

use crate::MatrixTile;

/// The exponent that stands for a vector with a value that is not finite.
const LOST: i32 = 1000;

/// The power of two that brings the largest value of a vector into [2^14, 2^15).
fn exponent(x: &[f32]) -> i32 {
    let largest = x.iter().map(|v| v.to_bits() & 0x7fff_ffff).max().unwrap_or(0);
    if largest >= 0x7f80_0000 { LOST } else { ((largest >> 23) as i32 - 141).clamp(-100, 113) }
}

fn scaled(x: &[f32]) -> Vec<f16> {
    let exponent = exponent(x);
    let factor = if exponent == LOST { 0.0 } else { 2f32.powi(-exponent) };
    x.iter().map(|v| if exponent == LOST { f16::ZERO } else { f16::from_f32(v * factor) }).collect()
}

/// The bits of a vector: its scaled values, filled up with zeros to whole steps, then four times its exponent and four
/// unused ones.
pub fn halve(x: &[f32]) -> Vec<u16> {
    let mut all: Vec<u16> = scaled(x).into_iter().map(f16::to_bits).collect();
    all.resize(x.len().next_multiple_of(MatrixTile::STEP as usize), 0);
    all.extend([f16::from_f32(exponent(x) as f32).to_bits(); 4]);
    all.extend([0; 4]);
    all
}

/// The values that [`halve`] leaves of a vector.
pub fn halved(x: &[f32]) -> Vec<f32> {
    let factor = if exponent(x) == LOST { f32::NAN } else { 2f32.powi(exponent(x)) };
    scaled(x).into_iter().map(|v| v.to_f32() * factor).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_overflows_and_small_vectors_stay_exact() {
        for scale in [1e-30f32, 1e-6, 1.0, 1e6, 1e38] {
            let x = [1.0, -0.5, 0.25, 0.001].map(|v| v * scale);
            for (value, half) in x.iter().zip(halved(&x)) {
                assert!((value - half).abs() <= value.abs() / 2048.0, "{value} became {half}");
            }
        }
        assert!(halved(&[1.0, f32::INFINITY]).iter().all(|v| v.is_nan()));
        assert_eq!(halved(&[0.0; 4]), [0.0; 4]);
    }
}
