//! The weights: which models there are, their hashes, and their bytes by HTTP range.

mod body;
mod cache;
mod catalog;
mod content;
mod describe;
mod file;
pub mod groups;
mod library;
pub mod origin;
pub mod range;
pub mod serve;

pub use cache::HashCache;
pub use library::Library;
