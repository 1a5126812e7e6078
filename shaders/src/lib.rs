//! WGSL kernels: templates, preprocessor, variants, parameters and CPU references. No I/O.
//!
//! A [`Kernel`] names one variant of one template; [`Kernel::source`] gives its WGSL, [`Kernel::bindings`] its storage
//! bindings and [`params`] the uniform it reads. See this folder's README for how to add one.
#![forbid(unsafe_code)]
#![warn(missing_docs, clippy::missing_errors_doc)]

mod format;
mod kernel;
pub mod params;
mod preprocess;
pub mod reference;
mod tile;
mod variant;

pub use format::{CODEBOOK_BYTES, Format, codebooks};
pub use kernel::{Access, Job, Kernel, Operand, Pairs, Strategy, VectorStrategy};
pub use potluck_plan::KvCacheType;
pub use preprocess::{PreprocessError, preprocess};
pub use tile::{Lanes, Tile, TileKind};
pub use variant::KernelVariant;

/// Short work that changes nothing, for a GPU whose clock is not to fall: a buffer of 34 words, the first one the number of rounds.
pub const KEEP_ALIVE: &str = include_str!("../wgsl/keep_alive.wgsl");

/// Logits a segment of the search for the best candidates covers.
pub const SEGMENT: u32 = 128;
/// Positions whose keys and values one workgroup of the decode attention takes.
pub const SPLIT: u32 = 1024;
/// Most experts a block may have.
pub const MAX_EXPERTS: u32 = 512;
/// What a slot table holds for an expert that is not here.
pub const NO_SLOT: u32 = u32::MAX;
