//! Finds numbers that are not finite among the bytes of a tensor, without dequantizing: of a quantized type only its scales can be
//! infinite or no number at all, and there are few of them.

use crate::TensorType;

/// A little-endian number of a block which is not finite if all these bits are set: those of its exponent.
#[derive(Clone, Copy, Debug)]
struct Exponent {
    /// First byte in the block.
    at: usize,
    /// Bytes: 1, 2 or 4.
    bytes: usize,
    mask: u32,
}

const fn number(at: usize, bytes: usize, mask: u32) -> Exponent {
    Exponent { at, bytes, mask }
}

/// A half-precision float.
const fn half(at: usize) -> Exponent {
    number(at, 2, 0x7c00)
}

/// The floats of a block, as the reference dequantizer reads them.
const fn exponents(kind: TensorType) -> &'static [Exponent] {
    use TensorType as T;
    match kind {
        T::F32 => const { &[number(0, 4, 0x7f80_0000)] },
        T::BF16 => const { &[number(0, 2, 0x7f80)] },
        T::F16
        | T::Q4_0
        | T::Q5_0
        | T::Q8_0
        | T::IQ1_S
        | T::IQ2_XXS
        | T::IQ2_XS
        | T::IQ2_S
        | T::IQ3_XXS
        | T::IQ3_S
        | T::IQ4_NL
        | T::IQ4_XS
        | T::Q1_0
        | T::Q2_0 => const { &[half(0)] },
        T::Q4_1 | T::Q5_1 | T::Q4_K | T::Q5_K => const { &[half(0), half(2)] },
        T::Q2_K => const { &[half(80), half(82)] },
        T::Q3_K => const { &[half(108)] },
        T::Q6_K => const { &[half(208)] },
        T::TQ1_0 => const { &[half(52)] },
        T::TQ2_0 => const { &[half(64)] },
        // The scale's nibbles lie in four words; its exponent is in the last two.
        T::IQ1_M => const { &[number(52, 4, 0x7000_c000)] },
        // A power of two whose largest exponent means "not a number".
        T::MXFP4 => const { &[number(0, 1, 0xff)] },
        // The reference reads that pattern of an E4M3 scale as zero; integers are finite; activations are in no file.
        T::NVFP4 | T::I8 | T::I16 | T::I32 | T::I64 | T::F64 | T::Q8_1 | T::Q8_K => &[],
    }
}

/// The offset in its tensor of the first number that is infinite or not a number, if there is one among `bytes`, which begin at
/// `offset` in the tensor. Both ends lie at multiples of 4, as those of all pieces do, so no number is cut.
pub fn first_not_finite(kind: TensorType, offset: u64, bytes: &[u8]) -> Option<u64> {
    let block = kind.block_bytes() as usize;
    let in_block = (offset % block as u64) as usize;
    let found = exponents(kind).iter().filter_map(|exponent| {
        let first = (exponent.at + block - in_block) % block;
        let from = bytes.get(first..)?;
        has_bad(from, block, *exponent)
            .then(|| find(from, block, *exponent))
            .flatten()
            .map(|at| offset + (first + at) as u64)
    });
    found.min()
}

/// Whether one of the numbers that begin every `block` bytes is not finite. It has no branch for each number: every byte of a
/// model passes here.
fn has_bad(bytes: &[u8], block: usize, exponent: Exponent) -> bool {
    let Exponent { mask, .. } = exponent;
    let half = mask as u16;
    match (exponent.bytes, block) {
        (4, 4) => {
            let numbers = bytes.as_chunks::<4>().0.iter();
            numbers.fold(false, |bad, number| bad | (u32::from_le_bytes(*number) & mask == mask))
        }
        (2, 2) => {
            let numbers = bytes.as_chunks::<2>().0.iter();
            numbers.fold(false, |bad, number| bad | (u16::from_le_bytes(*number) & half == half))
        }
        (2, _) => bytes.chunks(block).fold(false, |bad, block| match block {
            [low, high, ..] => bad | (u16::from_le_bytes([*low, *high]) & half == half),
            _ => bad,
        }),
        _ => find(bytes, block, exponent).is_some(),
    }
}

fn find(bytes: &[u8], block: usize, Exponent { bytes: len, mask, .. }: Exponent) -> Option<usize> {
    let is_bad = |block: &[u8]| {
        let number =
            block.get(..len).map(|number| number.iter().rev().fold(0, |all, byte| all << 8 | u32::from(*byte)));
        number.is_some_and(|number| number & mask == mask)
    };
    bytes.chunks(block).position(is_bad).map(|index| index * block)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use crate::dequantize;
    use crate::synthetic::{Random, fill};

    const BLOCKS: usize = 6;

    /// Types whose blocks hold floats.
    fn types() -> impl Iterator<Item = TensorType> {
        TensorType::ALL.into_iter().filter(|kind| !exponents(*kind).is_empty())
    }

    /// Sound blocks of a type.
    fn sound(kind: TensorType) -> Vec<u8> {
        let mut bytes = vec![0; BLOCKS * kind.block_bytes() as usize];
        fill(kind, 0.02, &mut Random::new(7, kind.name()), &mut bytes).unwrap();
        bytes
    }

    fn is_finite(kind: TensorType, bytes: &[u8]) -> bool {
        let mut values = vec![0.0; bytes.len() / kind.block_bytes() as usize * kind.block_elements() as usize];
        dequantize(kind, bytes, &mut values).unwrap();
        values.iter().all(|value| value.is_finite())
    }

    #[test]
    fn every_type_that_holds_weights_is_looked_at() {
        let others: Vec<_> = TensorType::ALL.into_iter().filter(|kind| exponents(*kind).is_empty()).collect();
        assert!(others.iter().all(|kind| !kind.holds_weights() || *kind == TensorType::NVFP4), "{others:?}");
    }

    #[test]
    fn a_broken_scale_is_found_wherever_it_lies_and_nothing_else_is() {
        for kind in types() {
            let (bytes, block) = (sound(kind), kind.block_bytes() as usize);
            assert!(is_finite(kind, &bytes));
            assert_eq!(first_not_finite(kind, 0, &bytes), None, "{kind}");
            for exponent in exponents(kind) {
                for broken in 0..BLOCKS {
                    let mut bytes = bytes.clone();
                    let at = broken * block + exponent.at;
                    for (byte, mask) in bytes[at..at + exponent.bytes].iter_mut().zip(exponent.mask.to_le_bytes()) {
                        *byte |= mask;
                    }
                    assert!(kind == TensorType::MXFP4 || !is_finite(kind, &bytes), "{kind}: the reference agrees");
                    assert_eq!(first_not_finite(kind, 0, &bytes), Some(at as u64), "{kind}");
                    // Whatever pieces the tensor comes in.
                    for piece in [4, 12, 64, 100] {
                        let pieces = bytes.chunks(piece).enumerate();
                        let found: Vec<u64> = pieces
                            .filter_map(|(index, bytes)| first_not_finite(kind, (index * piece) as u64, bytes))
                            .collect();
                        assert_eq!(found, [at as u64], "{kind} in pieces of {piece}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_largest_and_the_smallest_numbers_are_finite() {
        for (kind, number) in [
            (TensorType::F32, f32::MAX.to_le_bytes().to_vec()),
            (TensorType::F32, 1e-42f32.to_le_bytes().to_vec()),
            (TensorType::F16, half::f16::MAX.to_le_bytes().to_vec()),
            (TensorType::F16, half::f16::MIN_POSITIVE_SUBNORMAL.to_le_bytes().to_vec()),
            (TensorType::BF16, half::bf16::MIN.to_le_bytes().to_vec()),
        ] {
            assert_eq!(first_not_finite(kind, 0, &number), None, "{kind} {number:?}");
        }
    }
}
