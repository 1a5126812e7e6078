//! Blocks of any type and any bytes become floats without a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use potluck_gguf::{TensorType, dequantize};

fuzz_target!(|data: &[u8]| {
    let Some((&kind, bytes)) = data.split_first() else {
        return;
    };
    let kind = TensorType::ALL[usize::from(kind) % TensorType::ALL.len()];
    let blocks = bytes.len() / kind.block_bytes() as usize;
    let mut out = vec![0.0; blocks * kind.block_elements() as usize];
    // Types without weights are errors, which is fine too.
    let _ = dequantize(kind, &bytes[..blocks * kind.block_bytes() as usize], &mut out);
});
