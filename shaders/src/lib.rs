//! WGSL kernels: templates, preprocessor, variants, parameters and CPU references. No I/O.
//!
//! A [`Kernel`] names one variant of one template; [`Kernel::source`] gives its WGSL, [`Kernel::bindings`] its storage
//! bindings and [`params`] the uniform it reads. See this folder's README for how to add one.
#![forbid(unsafe_code)]
#![warn(missing_docs, clippy::missing_errors_doc)]

mod format;
mod kernel;
mod packed_tile;
pub mod params;
mod preprocess;
pub mod reference;
mod tile;
mod variant;

pub use format::{CODEBOOK_BYTES, Format, Packing, codebooks};
pub use kernel::{
    Access, Addition, ConvKind, Dots, Extras, Glu, Job, Kernel, Operand, Pairs, ScanRule, Strategy, VectorStrategy,
};
pub use packed_tile::PackedTile;
pub use potluck_plan::KvCacheType;
pub use preprocess::{PreprocessError, preprocess};
pub use tile::{Lanes, Tile, TileKind};
pub use variant::KernelVariant;

/// Keeps the GPU clock up with short work whose result nobody reads. Needs one buffer of 34 words; the first word is
/// the number of rounds.
pub const KEEP_ALIVE: &str = include_str!("../wgsl/keep_alive.wgsl");

/// Logits per segment in the search for the best candidates.
pub const SEGMENT: u32 = 128;
/// Positions that one workgroup of the decode attention covers, up to [`NEAR`].
pub const SPLIT: u32 = 128;
/// Positions of a context that are split finely, because a short context gives too few workgroups otherwise.
pub const NEAR: u32 = 4096;
/// Positions that one workgroup covers beyond [`NEAR`], where many small splits would cost more to merge.
pub const FAR_SPLIT: u32 = 512;

/// First position of a split of a context. The same on every device, so that no result depends on the device's size.
pub fn split_start(split: u32) -> u32 {
    let near = NEAR / SPLIT;
    if split <= near { split * SPLIT } else { NEAR + (split - near) * FAR_SPLIT }
}

/// Number of splits of a context of this many positions; at least one.
pub fn split_count(positions: u32) -> u32 {
    if positions <= NEAR {
        positions.div_ceil(SPLIT).max(1)
    } else {
        NEAR / SPLIT + (positions - NEAR).div_ceil(FAR_SPLIT)
    }
}
/// Largest number of experts per block.
pub const MAX_EXPERTS: u32 = 512;
/// Slot table entry of an expert that this device does not hold.
pub const NO_SLOT: u32 = u32::MAX;
