//! Dequantizes rows with `potluck_gguf`, which matches ggml and PyPI `gguf` bit for bit.

use crate::Format;

/// Dequantizes whole blocks; ignores bytes after the last whole block.
pub fn dequantize(format: Format, bytes: &[u8]) -> Vec<f32> {
    let (size, count) = (format.block_bytes() as usize, format.block_values() as usize);
    let blocks = bytes.len() / size;
    let mut values = vec![0.0; blocks * count];
    potluck_gguf::dequantize(format.tensor_type(), &bytes[..blocks * size], &mut values)
        .expect("a format is a type that can be dequantized, and the blocks are whole");
    values
}
