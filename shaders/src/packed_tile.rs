//! Tiles of the product of quantized weights and quantized vectors.

use std::fmt;

/// What one workgroup of the packed product computes: vectors × matrix rows, and how many results a thread makes. Every
/// tile gives the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PackedTile {
    vectors: u32,
    rows: u32,
    a_thread: (u32, u32),
}

/// `vectors` × `rows` with `a_thread` vectors × rows a thread.
const fn tile((vectors, rows): (u32, u32), a_thread: (u32, u32)) -> PackedTile {
    PackedTile { vectors, rows, a_thread }
}

impl PackedTile {
    /// For small matrices.
    pub const V32R32: PackedTile = tile((32, 32), (4, 4));
    /// For few vectors.
    pub const V32R64: PackedTile = tile((32, 64), (4, 4));
    /// 64 vectors × 64 rows.
    pub const V64R64: PackedTile = tile((64, 64), (8, 4));
    /// 128 vectors × 64 rows, 64 results a thread: reads workgroup memory least often.
    pub const V128R64: PackedTile = tile((128, 64), (8, 8));

    /// Every tile.
    pub const ALL: [PackedTile; 7] = [
        Self::V32R32,
        Self::V32R64,
        Self::V64R64,
        Self::V128R64,
        tile((128, 64), (16, 4)),
        tile((64, 128), (8, 8)),
        tile((128, 128), (8, 8)),
    ];
    /// Tiles used without measurements, smallest first.
    pub const PORTABLE: [PackedTile; 4] = [Self::V32R32, Self::V32R64, Self::V64R64, Self::V128R64];

    /// Vectors per tile.
    pub fn vectors(self) -> u32 {
        self.vectors
    }

    /// Matrix rows per tile.
    pub fn rows(self) -> u32 {
        self.rows
    }

    /// Vectors and matrix rows per thread.
    pub(crate) fn a_thread(self) -> (u32, u32) {
        self.a_thread
    }

    /// Threads along the vectors, and along the matrix rows.
    pub(crate) fn threads(self) -> (u32, u32) {
        (self.vectors / self.a_thread.0, self.rows / self.a_thread.1)
    }

    /// Buffers in workgroup memory: as many as fit. With two, a step has one barrier less.
    pub(crate) fn buffers(self) -> u32 {
        // 32 bytes of columns and two numbers for each vector and row.
        if (self.vectors + self.rows) * 40 * 2 <= 16 << 10 { 2 } else { 1 }
    }

    /// The largest portable tile that still gives at least `groups` workgroups for a product of `rows` × `n` vectors;
    /// the smallest tile if none does.
    pub fn for_product(rows: u32, n: u32, groups: u32) -> PackedTile {
        let count = |tile: &PackedTile| rows.div_ceil(tile.rows()).saturating_mul(n.div_ceil(tile.vectors()));
        let enough = |tile: &PackedTile| n > tile.vectors() / 2 && count(tile) >= groups;
        Self::PORTABLE.into_iter().rev().find(enough).unwrap_or(Self::V32R32)
    }
}

impl fmt::Display for PackedTile {
    /// `128x64/16x4`: vectors × rows of the tile and of a thread.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}/{}x{}", self.vectors, self.rows, self.a_thread.0, self.a_thread.1)
    }
}

#[cfg(test)]
mod tests {
    use super::PackedTile;
    use crate::Tile;

    #[test]
    fn threads_fill_patches_and_load_whole_lines() {
        for tile in PackedTile::ALL {
            let (y, x) = tile.threads();
            let threads = x * y;
            assert!(threads <= 256 && y % 4 == 0 && x % 8 == 0, "{tile}: {y} × {x} threads");
            for lines in [tile.rows(), tile.vectors()] {
                assert!(2 * lines <= threads || 2 * lines % threads == 0, "{tile}: {lines} lines");
            }
            assert_eq!(tile.a_thread().1 % 4, 0, "{tile}");
            assert!((tile.vectors() + tile.rows()) * 40 * tile.buffers() <= 16 << 10, "{tile}: too much memory");
            assert!(tile.vectors() >= Tile::MIN_VECTORS, "{tile}: its lists of tiles are longer than the buffer");
        }
    }

    #[test]
    fn small_products_take_small_tiles() {
        assert_eq!(PackedTile::for_product(14_336, 512, 256), PackedTile::V128R64);
        assert_eq!(PackedTile::for_product(2048, 512, 256), PackedTile::V64R64);
        assert_eq!(PackedTile::for_product(200_000, 3, 256), PackedTile::V32R32);
    }
}
