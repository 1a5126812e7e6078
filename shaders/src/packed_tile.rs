//! Tiles of the product of quantized weights and quantized vectors.

/// What one workgroup of the packed product computes: vectors × matrix rows. Every tile gives the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PackedTile {
    /// 32 vectors × 32 rows, for small matrices.
    V32R32,
    /// 32 vectors × 64 rows, for few vectors.
    V32R64,
    /// 64 vectors × 64 rows.
    V64R64,
    /// 128 vectors × 64 rows.
    V128R64,
    /// 64 vectors × 128 rows.
    V64R128,
    /// 128 vectors × 128 rows, 64 results a thread: reads workgroup memory least often.
    V128R128,
}

impl PackedTile {
    /// Every tile.
    pub const ALL: [PackedTile; 6] =
        [Self::V32R32, Self::V32R64, Self::V64R64, Self::V128R64, Self::V64R128, Self::V128R128];
    /// Tiles used without measurements, smallest first.
    pub const PORTABLE: [PackedTile; 4] = [Self::V32R32, Self::V32R64, Self::V64R64, Self::V128R64];

    /// Vectors per tile.
    pub fn vectors(self) -> u32 {
        match self {
            Self::V32R32 | Self::V32R64 => 32,
            Self::V64R64 | Self::V64R128 => 64,
            Self::V128R64 | Self::V128R128 => 128,
        }
    }

    /// Matrix rows per tile.
    pub fn rows(self) -> u32 {
        match self {
            Self::V32R32 => 32,
            Self::V32R64 | Self::V64R64 | Self::V128R64 => 64,
            Self::V64R128 | Self::V128R128 => 128,
        }
    }

    /// Vectors and matrix rows per thread.
    pub(crate) fn a_thread(self) -> (u32, u32) {
        match self {
            Self::V32R32 | Self::V32R64 => (4, 4),
            Self::V64R64 | Self::V128R64 | Self::V64R128 => (8, 4),
            Self::V128R128 => (8, 8),
        }
    }

    /// Threads along the vectors, and along the matrix rows.
    pub(crate) fn threads(self) -> (u32, u32) {
        let (vectors, rows) = self.a_thread();
        (self.vectors() / vectors, self.rows() / rows)
    }

    /// Buffers in workgroup memory: as many as fit. With two, a step has one barrier less.
    pub(crate) fn buffers(self) -> u32 {
        if self == Self::V128R128 { 1 } else { 2 }
    }

    /// The largest portable tile that still gives at least `groups` workgroups for a product of `rows` × `n` vectors;
    /// the smallest tile if none does.
    pub fn for_product(rows: u32, n: u32, groups: u32) -> PackedTile {
        let count = |tile: &PackedTile| rows.div_ceil(tile.rows()).saturating_mul(n.div_ceil(tile.vectors()));
        let enough = |tile: &PackedTile| n > tile.vectors() / 2 && count(tile) >= groups;
        Self::PORTABLE.into_iter().rev().find(enough).unwrap_or(Self::V32R32)
    }
}

#[cfg(test)]
mod tests {
    use super::PackedTile;
    use crate::Tile;

    #[test]
    fn every_value_of_a_step_has_a_thread_that_loads_it() {
        for tile in PackedTile::ALL {
            let (y, x) = tile.threads();
            assert!(2 * tile.rows() <= x * y && 2 * tile.vectors() <= x * y && x * y <= 256, "{tile:?}");
            assert_eq!(tile.a_thread().1 % 4, 0, "{tile:?}");
            assert!(tile.vectors() >= Tile::MIN_VECTORS, "{tile:?}: its lists of tiles are longer than the buffer");
        }
    }

    #[test]
    fn small_products_take_small_tiles() {
        assert_eq!(PackedTile::for_product(14_336, 512, 256), PackedTile::V128R64);
        assert_eq!(PackedTile::for_product(2048, 512, 256), PackedTile::V64R64);
        assert_eq!(PackedTile::for_product(200_000, 3, 256), PackedTile::V32R32);
    }
}
