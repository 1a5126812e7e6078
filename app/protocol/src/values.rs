//! Vectors in a frame's tail, in the number format that the frame names.

use half::{bf16, f16};
use potluck_plan::WireType;

use crate::FrameError;

const BLOCK: usize = WireType::BLOCK;
/// A scale and at most so many bytes of values.
const BLOCK_BYTES: usize = size_of::<f32>() + BLOCK;

/// Appends values. What no number stays none, and no number becomes infinite: receivers refuse both.
pub(crate) fn push(bytes: &mut Vec<u8>, values: &[f32], wire: WireType) {
    match wire {
        WireType::F32 => push_each(bytes, values, f32::to_le_bytes),
        WireType::F16 => push_each(bytes, values, |value| to_f16(value).to_le_bytes()),
        WireType::Bf16 => push_each(bytes, values, |value| to_bf16(value).to_le_bytes()),
        WireType::Int8 => values.chunks(BLOCK).for_each(|block| push_block(bytes, block)),
    }
}

/// Makes room for all values at once: in WebAssembly, looking for room at each took 16 µs for 8 KB instead of one.
fn push_each<const N: usize>(bytes: &mut Vec<u8>, values: &[f32], to_bytes: impl Fn(f32) -> [u8; N]) {
    let begin = bytes.len();
    bytes.resize(begin + N * values.len(), 0);
    let (places, _) = bytes[begin..].as_chunks_mut::<N>();
    places.iter_mut().zip(values).for_each(|(place, value)| *place = to_bytes(*value));
}

/// Reads a whole tail.
pub(crate) fn read(tail: &[u8], wire: WireType) -> Result<Vec<f32>, FrameError> {
    match wire {
        WireType::F32 => each(tail, f32::from_le_bytes),
        WireType::F16 => each(tail, |bytes| f16::from_le_bytes(bytes).to_f32()),
        WireType::Bf16 => each(tail, |bytes| bf16::from_le_bytes(bytes).to_f32()),
        WireType::Int8 => {
            let mut values = Vec::with_capacity(tail.len());
            for block in tail.chunks(BLOCK_BYTES) {
                let (scale, block) = block
                    .split_first_chunk()
                    .filter(|(_, block)| !block.is_empty())
                    .ok_or(FrameError::Tail(tail.len()))?;
                let scale = f32::from_le_bytes(*scale);
                values.extend(block.iter().map(|byte| of_block(scale, byte.cast_signed())));
            }
            Ok(values)
        }
    }
}

/// What a receiver of these values gets.
pub fn round(values: &mut [f32], wire: WireType) {
    match wire {
        WireType::F32 => {}
        WireType::F16 => values.iter_mut().for_each(|value| *value = to_f16(*value).to_f32()),
        WireType::Bf16 => values.iter_mut().for_each(|value| *value = to_bf16(*value).to_f32()),
        WireType::Int8 => values.chunks_mut(BLOCK).for_each(|block| {
            let scale = scale(block);
            block.iter_mut().for_each(|value| *value = of_block(scale, to_block(scale, *value)));
        }),
    }
}

fn each<const N: usize>(tail: &[u8], value: impl Fn([u8; N]) -> f32) -> Result<Vec<f32>, FrameError> {
    let (chunks, rest) = tail.as_chunks::<N>();
    if rest.is_empty() {
        Ok(chunks.iter().map(|chunk| value(*chunk)).collect())
    } else {
        Err(FrameError::Tail(tail.len()))
    }
}

fn to_f16(value: f32) -> f16 {
    let most = f16::MAX.to_f32();
    f16::from_f32(if value.is_finite() { value.clamp(-most, most) } else { value })
}

fn to_bf16(value: f32) -> bf16 {
    let most = bf16::MAX.to_f32();
    bf16::from_f32(if value.is_finite() { value.clamp(-most, most) } else { value })
}

fn push_block(bytes: &mut Vec<u8>, block: &[f32]) {
    let scale = scale(block);
    bytes.extend_from_slice(&scale.to_le_bytes());
    bytes.extend(block.iter().map(|value| to_block(scale, *value).cast_unsigned()));
}

/// The largest value is 127 times the scale. Not a number if one of the values is none.
fn scale(block: &[f32]) -> f32 {
    if block.iter().all(|value| value.is_finite()) {
        block.iter().fold(0f32, |most, value| most.max(value.abs())) / 127.0
    } else {
        f32::NAN
    }
}

/// Saturates; 0 where the scale is 0 or no number.
fn to_block(scale: f32, value: f32) -> i8 {
    (value / scale).round() as i8
}

fn of_block(scale: f32, value: i8) -> f32 {
    if scale.is_finite() { (scale * f32::from(value)).clamp(f32::MIN, f32::MAX) } else { f32::NAN }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use proptest::prelude::*;

    use super::*;

    fn sent(values: &[f32], wire: WireType) -> Vec<f32> {
        let mut bytes = Vec::new();
        push(&mut bytes, values, wire);
        assert_eq!(bytes.len() as u64, wire.bytes(values.len() as u64), "{wire:?}");
        read(&bytes, wire).unwrap()
    }

    proptest! {
        #[test]
        fn values_are_off_by_no_more_than_stated(values in prop::collection::vec(any::<f32>().prop_filter("a number", |value| value.is_finite()), 0..100)) {
            for wire in WireType::ALL {
                let (got, mut rounded) = (sent(&values, wire), values.clone());
                round(&mut rounded, wire);
                prop_assert_eq!(&got, &rounded, "own experts round like others: {:?}", wire);
                for (got, values) in got.chunks(WireType::BLOCK).zip(values.chunks(WireType::BLOCK)) {
                    let most = values.iter().fold(0f64, |most, value| most.max(f64::from(value.abs())));
                    for (got, value) in got.iter().zip(values) {
                        prop_assert!(got.is_finite(), "{wire:?}: {value} became {got}");
                        let tolerance = match wire {
                            WireType::F32 => 0.0,
                            WireType::F16 if value.abs() > 65_504.0 => f64::from(value.abs()) - 65_504.0,
                            WireType::F16 => (f64::from(value.abs()) / 2_048.0).max(3e-8),
                            WireType::Bf16 if value.abs() > bf16::MAX.to_f32() => f64::from(value.abs()) / 250.0,
                            WireType::Bf16 => f64::from(value.abs()) / 256.0,
                            WireType::Int8 => most / 253.9,
                        };
                        let off = (f64::from(*got) - f64::from(*value)).abs();
                        prop_assert!(off <= tolerance + f64::from(f32::MIN_POSITIVE), "{wire:?}: {value} became {got}");
                    }
                }
            }
        }

        #[test]
        fn any_tail_is_values_or_an_error(tail in prop::collection::vec(any::<u8>(), 0..200)) {
            for wire in WireType::ALL {
                if let Ok(values) = read(&tail, wire) {
                    prop_assert_eq!(wire.bytes(values.len() as u64), tail.len() as u64, "{:?}", wire);
                }
            }
        }
    }

    #[test]
    fn what_is_no_number_arrives_as_none() {
        for wire in WireType::ALL {
            for wrong in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                let got = sent(&[1.0, wrong, 2.0], wire);
                assert!(!got[1].is_finite(), "{wire:?}: {wrong} became {}", got[1]);
            }
        }
    }

    #[test]
    fn a_tail_that_is_cut_short_is_refused() {
        for (wire, lengths) in [
            (WireType::F32, &[1, 2, 3, 5][..]),
            (WireType::F16, &[1, 3]),
            (WireType::Bf16, &[1, 3]),
            (WireType::Int8, &[1, 4, 37, 40]),
        ] {
            for length in lengths {
                assert_eq!(read(&vec![0; *length], wire), Err(FrameError::Tail(*length)), "{wire:?}");
            }
        }
    }
}
