//! Rooms and catalogues. The target itself is in `fuzz/smoke/src/page.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| potluck_fuzz_smoke::room_view(data));
