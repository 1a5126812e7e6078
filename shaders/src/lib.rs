//! WGSL kernels: templates, preprocessor, variants, parameters and CPU references. No I/O.
//!
//! A [`Kernel`] names one variant of one template; [`Kernel::source`] gives its WGSL, [`Kernel::bindings`] its storage
//! bindings and [`params`] the uniform it reads. See this folder's README for how to add one.
#![forbid(unsafe_code)]
#![warn(missing_docs, clippy::missing_errors_doc)]

mod format;
mod kernel;
mod matrix_tile;
mod packed_tile;
pub mod params;
mod preprocess;
pub mod reference;
mod tile;
mod variant;

pub use format::{CODEBOOK_BYTES, Format, Packing, codebooks};
pub use kernel::{
    Access, Addition, ConvKind, Dots, Extras, Glu, Job, Kernel, Operand, Pairs, ScanRule, Strategy, VectorStrategy,
    joined_params,
};
pub use matrix_tile::MatrixTile;
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
/// Positions that one workgroup of the decode attention covers at first: a page of the KV cache.
pub const SPLIT: u32 = potluck_plan::KV_PAGE_TOKENS;
/// Splits of the first `SPLIT × OCTAVE` positions, and of each later doubling of the position: enough workgroups for a
/// large device at any depth, and never many results to merge.
pub const OCTAVE: u32 = 32;

/// First position of a split of a context. The same on every device, so that no result depends on the device's size.
pub fn split_start(split: u32) -> u32 {
    if split < OCTAVE { split * SPLIT } else { ((OCTAVE + split % OCTAVE) * SPLIT) << (split / OCTAVE - 1) }
}

/// The split that holds a position.
pub fn split_of(position: u32) -> u32 {
    let Some(octave) = (position / (SPLIT * OCTAVE)).checked_ilog2() else { return position / SPLIT };
    OCTAVE * octave + (position >> octave) / SPLIT
}

/// Number of splits of a context of this many positions; at least one.
pub fn split_count(positions: u32) -> u32 {
    split_of(positions.saturating_sub(1)) + 1
}
/// Largest number of experts per block.
pub const MAX_EXPERTS: u32 = 512;
/// Slot table entry of an expert that this device does not hold.
pub const NO_SLOT: u32 = u32::MAX;

#[cfg(test)]
mod tests {
    use super::{OCTAVE, SPLIT, split_count, split_of, split_start};

    #[test]
    fn splits_follow_each_other_and_grow_with_the_position() {
        for split in 0..8 * OCTAVE {
            let (first, next) = (split_start(split), split_start(split + 1));
            assert_eq!((next - first) % SPLIT, 0, "split {split} ends inside a page");
            assert_eq!([first, next - 1].map(split_of), [split; 2], "positions {first} and {}", next - 1);
        }
        // Lengths at some positions.
        let length = |position| split_start(split_of(position) + 1) - split_start(split_of(position));
        assert_eq!([0, 4095, 4096, 8192, 32768, 131_071].map(length), [64, 64, 128, 256, 1024, 2048]);
        assert_eq!([0, 1, 64, 65, 2048, 8192, 131_072].map(split_count), [1, 1, 1, 2, 32, 96, 224]);
    }
}
