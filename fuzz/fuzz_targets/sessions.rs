//! Handshakes and sealed sessions. The target itself is in `fuzz/smoke/src/sessions.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| potluck_fuzz_smoke::sessions(data));
