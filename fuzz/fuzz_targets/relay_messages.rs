//! Messages to the relay. The target itself is in `fuzz/smoke/src/relay.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| potluck_fuzz_smoke::relay_messages(data));
