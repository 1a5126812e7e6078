//! Vectors in blocks of 32 signed bytes, as the packed product reads them.

/// Values that share a scale.
const BLOCK: usize = 32;

/// The words of a vector of `32 · k` values: 8 words of bytes a block, then each block's scale and scale · sum of its
/// bytes, filled up to a multiple of four words.
pub fn quantize(x: &[f32]) -> Vec<u32> {
    let blocks: Vec<([i8; BLOCK], f32, f32)> = x.chunks_exact(BLOCK).map(block).collect();
    let words = blocks.iter().flat_map(|(bytes, ..)| {
        bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0] as u8, b[1] as u8, b[2] as u8, b[3] as u8]))
    });
    let scales = blocks.iter().flat_map(|(_, scale, sum)| [scale.to_bits(), sum.to_bits()]);
    let mut all: Vec<u32> = words.chain(scales).collect();
    all.resize(all.len().next_multiple_of(4), 0);
    all
}

/// The values that [`quantize`] leaves of a vector.
pub fn quantized(x: &[f32]) -> Vec<f32> {
    x.chunks_exact(BLOCK)
        .flat_map(|values| {
            let (bytes, scale, _) = block(values);
            bytes.map(|byte| scale * f32::from(byte))
        })
        .collect()
}

/// The bytes of a block, their scale, and scale · sum. A value that is not finite makes both NaN.
fn block(values: &[f32]) -> ([i8; BLOCK], f32, f32) {
    let most = values.iter().fold(0.0f32, |most, v| most.max(v.abs()));
    if values.iter().any(|v| !v.is_finite()) {
        return ([0; BLOCK], f32::from_bits(0x7fc0_0000), f32::from_bits(0x7fc0_0000));
    }
    if most.to_bits() < 0x0800_0000 {
        return ([0; BLOCK], 0.0, 0.0);
    }
    let (scale, inverse) = (most * (1.0 / 127.0), 127.0 / most);
    let mut bytes = [0; BLOCK];
    bytes.iter_mut().zip(values).for_each(|(byte, v)| *byte = (v * inverse).round_ties_even() as i8);
    let sum: i32 = bytes.iter().map(|&byte| i32::from(byte)).sum();
    (bytes, scale, scale * sum as f32)
}

#[cfg(test)]
mod tests {
    use super::{quantize, quantized};

    #[test]
    fn a_block_keeps_its_extremes_and_its_sum() {
        let x: Vec<f32> = (0..32).map(|i| i as f32 - 16.0).collect();
        let words = quantize(&x);
        assert_eq!(words.len(), 12, "8 words, 2 numbers, filled up");
        assert_eq!(words[0] as u8 as i8, -127);
        assert!((quantized(&x)[0] + 16.0).abs() < 1e-5);
        let sum: f32 = quantized(&x).iter().sum();
        assert!((f32::from_bits(words[9]) - sum).abs() < 1e-3, "scale · sum");
    }

    #[test]
    fn what_is_no_number_stays_none_and_zeros_stay_zeros() {
        let mut x = [0.0f32; 64];
        x[40] = f32::INFINITY;
        assert_eq!(quantized(&x)[..32], [0.0; 32]);
        assert!(quantized(&x)[32..].iter().all(|v| v.is_nan()));
    }
}
