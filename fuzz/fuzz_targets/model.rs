//! Models, tokenizers and chat templates. The target itself is in `fuzz/smoke/src/targets.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| potluck_fuzz_smoke::model(data));
