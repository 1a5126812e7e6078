//! Tests, tunes and measures the runtime. Computing an answer never runs code from here.

pub mod bench;
mod microbench;
pub mod products;
pub mod rates;
#[cfg(not(target_arch = "wasm32"))]
pub mod reference;
pub mod selftest;
mod tuning;
mod upload_check;
