//! Frames to the peers of a room. The target itself is in `fuzz/smoke/src/peer.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| potluck_fuzz_smoke::peer(data));
