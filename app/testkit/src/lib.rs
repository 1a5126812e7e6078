//! Fixtures that tests of several crates share. A dev-dependency only: nothing here is part of the product.
//!
//! Unit tests of a crate that this one depends on (`plan`, `planner`, `gguf`) cannot use fixtures made of that crate's
//! types, because Cargo compiles the crate twice. Such tests are integration tests, in the crate's `tests` folder.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod gguf_file;
mod golden;
mod room;
mod shape;

pub use gguf_file::GgufFile;
pub use golden::{gunzip, read_golden, unbrotli};
pub use potluck_plan::random::Random;
pub use room::{RoomFixture, device, star};
pub use shape::{DenseBlock, dense_shape, moe_shape, peer, shape};
