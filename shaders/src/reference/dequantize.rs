//! Dequantizes rows with `potluck_gguf`, whose values are those of ggml and of PyPI `gguf` bit for bit.

use crate::Format;

/// Values of whole blocks. Bytes after the last whole block are ignored.
pub fn dequantize(format: Format, bytes: &[u8]) -> Vec<f32> {
    let (size, count) = (format.block_bytes() as usize, format.block_values() as usize);
    let blocks = bytes.len() / size;
    let mut values = vec![0.0; blocks * count];
    potluck_gguf::dequantize(format.tensor_type(), &bytes[..blocks * size], &mut values)
        .expect("a format is a type that can be dequantized, and the blocks are whole");
    values
}
