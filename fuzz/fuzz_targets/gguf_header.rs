//! GGUF headers, whole and in pieces. The target itself is in `fuzz/smoke/src/targets.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| potluck_fuzz_smoke::gguf_header(data));
