//! Chat templates and the texts in them. The target itself is in `fuzz/smoke/src/targets.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| potluck_fuzz_smoke::template(data));
