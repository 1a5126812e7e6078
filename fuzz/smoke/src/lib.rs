//! Fuzz targets: functions that take any bytes and must not panic. The targets for libFuzzer call them, and so does this
//! crate's binary, which runs on stable Rust:
//!
//! ```text
//! cargo run --release -p potluck-fuzz-smoke -- SECONDS [TARGET…]
//! ```
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod mutate;
mod page;
mod peer;
mod relay;
mod sessions;
mod targets;

pub use mutate::mutate;
pub use page::{links, page_text, room_view};
pub use peer::peer;
pub use relay::{range, relay_messages};
pub use sessions::sessions;
pub use targets::{TARGETS, Target, dequantize_blocks, frame, gguf_header, model, template, tokenizer};
