//! Tiles of the matrix product for prompt chunks.

use crate::Format;

/// Subgroup size of a device whose subgroups all have the same size. Lists only the sizes of software adapters: GPUs
/// share through workgroup memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lanes {
    /// Four, as on SwiftShader.
    Four,
    /// Eight, as on lavapipe.
    Eight,
}

impl Lanes {
    /// Every size.
    pub const ALL: [Lanes; 2] = [Self::Four, Self::Eight];

    /// The size for a device with this minimum and maximum subgroup size; `None` unless both are the same known size.
    pub fn of(min: u32, max: u32) -> Option<Lanes> {
        Self::ALL.into_iter().find(|lanes| (min, max) == (lanes.count(), lanes.count()))
    }

    /// Number of threads.
    pub const fn count(self) -> u32 {
        match self {
            Self::Four => 4,
            Self::Eight => 8,
        }
    }
}

/// Which threads of a tile share the values they read. The tiles of one kind are either all correct or all wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TileKind {
    /// The threads of a workgroup, through its memory.
    Shared,
    /// The threads of a subgroup: each reads different values and broadcasts them to the others. No barriers.
    Broadcast(Lanes),
    /// No threads share. No barriers.
    PerThread,
}

/// What one workgroup of the tiled product computes: vectors × matrix rows. Every tile gives the same bits, so the
/// choice affects only speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tile {
    /// 16 vectors × 32 rows, 64 columns a step: for so few rows and vectors (routers) that each thread waits for memory in
    /// every step.
    V16R32,
    /// 32 vectors × 32 rows, for small matrices.
    V32R32,
    /// 32 vectors × 64 rows, for the few vectors that share an expert.
    V32R64,
    /// 64 vectors × 64 rows.
    V64R64,
    /// 128 vectors × 64 rows: dequantizes the weights least often.
    V128R64,
    /// 64 vectors × 128 rows: every thread dequantizes a row. Used only where measured to be faster.
    V64R128,
    /// 8 vectors × 2 rows per thread, without barriers: for formats that take long to compile.
    PerThreadV8R2,
    /// The same with 4 rows.
    PerThreadV8R4,
    /// 8 vectors × 2 rows per thread, without barriers; a subgroup loads the vectors together.
    BroadcastV8R2(Lanes),
    /// The same with 4 rows.
    BroadcastV8R4(Lanes),
    /// The same with 16 vectors × 2 rows.
    BroadcastV16R2(Lanes),
    /// The same with 16 vectors × 4 rows.
    BroadcastV16R4(Lanes),
}

impl Tile {
    /// Tiles that share workgroup memory, smallest first; not the one for routers.
    pub const SHARED: [Tile; 4] = [Self::V32R32, Self::V32R64, Self::V64R64, Self::V128R64];
    /// Shared tiles worth trying for a product.
    pub const CANDIDATES: [Tile; 6] =
        [Self::V32R32, Self::V32R64, Self::V64R64, Self::V128R64, Self::V64R128, Self::V16R32];
    /// Tiles without barriers.
    pub const PER_THREAD: [Tile; 2] = [Self::PerThreadV8R2, Self::PerThreadV8R4];
    /// Vectors of the smallest tile. It needs the longest tile lists.
    pub const MIN_VECTORS: u32 = 8;
    /// Workgroup size of the barrier-free tiles.
    const THREADS_WITHOUT_BARRIERS: u32 = 8;

    /// The barrier-free tile for matrices of a format. Four rows per thread take half the time of two, because loading
    /// the vectors is what costs a software adapter most. Two rows remain for formats that are expensive to dequantize,
    /// whose kernels would compile too slowly, and for F32: F32 matrices are routers, which have too few rows to fill
    /// more threads.
    pub fn per_thread(format: Format) -> Tile {
        use Format::{BF16, F16, Q4_0, Q4_1, Q4_K, Q5_0, Q5_1, Q5_K, Q8_0};
        match format {
            F16 | BF16 | Q4_0 | Q4_1 | Q5_0 | Q5_1 | Q8_0 | Q4_K | Q5_K => Self::PerThreadV8R4,
            _ => Self::PerThreadV8R2,
        }
    }

    /// The broadcast tile for matrices of a format; `grouped`: for chosen experts. On lavapipe 16 vectors are up to 1.5
    /// times as fast as 8; SwiftShader would take twice as long to compile them. Grouped products keep 8, because few
    /// vectors share an expert and all expert products must use tile lists of the same length.
    pub fn broadcast(format: Format, lanes: Lanes, grouped: bool) -> Tile {
        match (Self::per_thread(format), lanes == Lanes::Eight && !grouped) {
            (Self::PerThreadV8R4, true) => Self::BroadcastV16R4(lanes),
            (Self::PerThreadV8R4, false) => Self::BroadcastV8R4(lanes),
            (_, true) => Self::BroadcastV16R2(lanes),
            (_, false) => Self::BroadcastV8R2(lanes),
        }
    }

    /// Which threads share the values they read.
    pub fn kind(self) -> TileKind {
        match self {
            Self::V16R32 | Self::V32R32 | Self::V32R64 | Self::V64R64 | Self::V128R64 | Self::V64R128 => {
                TileKind::Shared
            }
            Self::PerThreadV8R2 | Self::PerThreadV8R4 => TileKind::PerThread,
            Self::BroadcastV8R2(lanes)
            | Self::BroadcastV8R4(lanes)
            | Self::BroadcastV16R2(lanes)
            | Self::BroadcastV16R4(lanes) => TileKind::Broadcast(lanes),
        }
    }

    /// Vectors per tile.
    pub fn vectors(self) -> u32 {
        match self {
            Self::V16R32 => 16,
            Self::V32R32 | Self::V32R64 => 32,
            Self::V64R64 | Self::V64R128 => 64,
            Self::V128R64 => 128,
            _ => self.a_thread().0,
        }
    }

    /// Matrix rows per tile.
    pub fn rows(self) -> u32 {
        match self {
            Self::V16R32 | Self::V32R32 => 32,
            Self::V32R64 | Self::V64R64 | Self::V128R64 => 64,
            Self::V64R128 => 128,
            _ => self.a_thread().1 * Self::THREADS_WITHOUT_BARRIERS,
        }
    }

    /// Vectors and matrix rows per thread.
    pub(crate) fn a_thread(self) -> (u32, u32) {
        match self {
            Self::V16R32 => (2, 4),
            Self::V32R32 => (4, 4),
            Self::V32R64 => (4, 8),
            Self::V64R64 | Self::V128R64 | Self::V64R128 => (8, 8),
            Self::PerThreadV8R2 | Self::BroadcastV8R2(_) => (8, 2),
            Self::PerThreadV8R4 | Self::BroadcastV8R4(_) => (8, 4),
            Self::BroadcastV16R2(_) => (16, 2),
            Self::BroadcastV16R4(_) => (16, 4),
        }
    }

    /// Threads along the vectors, and along the matrix rows.
    pub(crate) fn threads(self) -> (u32, u32) {
        let (vectors, rows) = self.a_thread();
        (self.vectors() / vectors, self.rows() / rows)
    }

    /// How many times 16 columns a step of a shared tile brings.
    pub(crate) fn chunks(self) -> u32 {
        if self == Self::V16R32 { 4 } else { 1 }
    }

    /// Unroll factor of the loop over a step's quads of columns. Software adapters compile unrolled copies slowly, but
    /// they only get the smaller tiles.
    pub(crate) fn unrolled(self) -> u32 {
        if matches!(self, Self::V128R64 | Self::V64R128) { 4 } else { 1 }
    }

    /// Workgroups for a product of `rows` × `n` vectors.
    pub fn groups(self, rows: u32, n: u32) -> u32 {
        rows.div_ceil(self.rows()).saturating_mul(n.div_ceil(self.vectors()))
    }

    /// The largest shared tile that still gives at least `groups` workgroups for a product of `rows` × `n` vectors; if none
    /// does, 32 × 32 unless that gives less than half as many.
    pub fn for_product(rows: u32, n: u32, groups: u32) -> Tile {
        let enough = |tile: &Tile| n > tile.vectors() / 2 && tile.groups(rows, n) >= groups;
        let small = if Self::V32R32.groups(rows, n) < groups / 2 { Self::V16R32 } else { Self::V32R32 };
        Self::SHARED.into_iter().rev().find(enough).unwrap_or(small)
    }
}

#[cfg(test)]
mod tests {
    use super::{Lanes, Tile, TileKind};
    use crate::Format;

    #[test]
    fn small_products_take_small_tiles() {
        assert_eq!(Tile::for_product(8192, 512, 256), Tile::V128R64);
        assert_eq!(Tile::for_product(2048, 512, 256), Tile::V64R64);
        assert_eq!(Tile::for_product(512, 512, 256), Tile::V32R32);
        assert_eq!(Tile::for_product(200_000, 3, 256), Tile::V32R32);
        assert_eq!(Tile::for_product(128, 512, 256), Tile::V16R32, "a router");
    }

    #[test]
    fn a_thread_loads_whole_quads_and_no_more_than_a_row() {
        for tile in Tile::CANDIDATES {
            let (y, x) = tile.threads();
            let threads = x * y;
            assert!(threads >= tile.rows() && threads <= 256, "{tile:?}");
            assert_eq!(4 * tile.vectors() % threads, 0, "{tile:?}");
            assert_eq!(tile.a_thread().1 % 4, 0, "{tile:?}");
        }
        for tile in Tile::PER_THREAD {
            assert_eq!(tile.threads(), (1, 8), "{tile:?}");
        }
    }

    #[test]
    fn only_subgroups_of_one_known_size_read_together() {
        assert_eq!(Lanes::of(8, 8), Some(Lanes::Eight));
        assert_eq!(Lanes::of(4, 4), Some(Lanes::Four));
        for (min, max) in [(0, 0), (4, 8), (8, 32), (32, 32), (4, 128)] {
            assert_eq!(Lanes::of(min, max), None, "{min} to {max}");
        }
    }

    #[test]
    fn a_subgroup_reads_whole_vectors_and_experts_have_one_length_of_lists() {
        for format in Format::ALL {
            for lanes in Lanes::ALL {
                for grouped in [false, true] {
                    let tile = Tile::broadcast(format, lanes, grouped);
                    assert_eq!(tile.kind(), TileKind::Broadcast(lanes));
                    assert_eq!(4 * tile.vectors() % lanes.count(), 0, "{tile:?}");
                    assert_eq!(tile.threads().1 % lanes.count(), 0, "{tile:?}: a part of a subgroup");
                    assert!(!grouped || tile.vectors() == Tile::per_thread(format).vectors(), "{tile:?}");
                }
            }
        }
    }

    #[test]
    fn no_list_is_longer_than_that_of_the_smallest_tile() {
        assert_eq!(
            Tile::CANDIDATES.into_iter().chain(Tile::PER_THREAD).map(Tile::vectors).min(),
            Some(Tile::MIN_VECTORS)
        );
    }
}
