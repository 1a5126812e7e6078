//! Tiles of the product by the device's matrix units.

/// What one workgroup of the product by matrix units computes: vectors × matrix rows. Every tile gives the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MatrixTile {
    /// 64 vectors × 64 rows, for small products.
    V64R64,
    /// 64 vectors × 128 rows, for the few vectors that share an expert.
    V64R128,
    /// 128 vectors × 128 rows.
    V128R128,
}

impl MatrixTile {
    /// Every tile.
    pub const ALL: [MatrixTile; 3] = [Self::V64R64, Self::V64R128, Self::V128R128];
    /// Vectors, rows and columns that a matrix unit multiplies at once.
    pub const FRAGMENT: u32 = 16;
    /// Threads of a subgroup, which computes a part of a tile.
    pub const SUBGROUP: u32 = 32;
    /// Columns a step. Vectors are filled up to whole steps with zeros.
    pub const STEP: u32 = 64;

    /// Fragments of a subgroup along the vectors, and along the matrix rows.
    pub(crate) fn fragments(self) -> (u32, u32) {
        match self {
            Self::V64R64 | Self::V64R128 => (2, 2),
            Self::V128R128 => (4, 2),
        }
    }

    /// Subgroups along the vectors, and along the matrix rows.
    pub(crate) fn subgroups(self) -> (u32, u32) {
        match self {
            Self::V64R64 => (2, 2),
            Self::V64R128 | Self::V128R128 => (2, 4),
        }
    }

    /// Vectors per tile.
    pub fn vectors(self) -> u32 {
        Self::FRAGMENT * self.fragments().0 * self.subgroups().0
    }

    /// Matrix rows per tile.
    pub fn rows(self) -> u32 {
        Self::FRAGMENT * self.fragments().1 * self.subgroups().1
    }

    /// Threads per workgroup.
    pub(crate) fn threads(self) -> u32 {
        Self::SUBGROUP * self.subgroups().0 * self.subgroups().1
    }

    /// Buffers of a step's values in workgroup memory. With two, a step has one barrier less.
    pub(crate) fn buffers(self) -> u32 {
        if self == Self::V64R64 { 2 } else { 1 }
    }

    /// Bytes of workgroup memory: half floats with two more quads a row, a fragment of each subgroup, and an
    /// entry of the list of tiles.
    pub fn memory(self) -> u32 {
        let fragment = Self::FRAGMENT * Self::FRAGMENT * 4;
        self.buffers() * (self.vectors() + self.rows()) * 2 * (Self::STEP + 8)
            + fragment * self.threads() / Self::SUBGROUP
            + 16
    }

    /// Bytes of workgroup memory that every tile fits into.
    pub fn most_memory() -> u32 {
        Self::ALL.into_iter().map(Self::memory).max().unwrap_or(0)
    }

    /// The largest tile that still gives at least `groups` workgroups for a product of `rows` × `n` vectors; the smallest
    /// that covers the vectors if none does.
    pub fn for_product(rows: u32, n: u32, groups: u32) -> MatrixTile {
        let large = Self::V128R128;
        let count = rows.div_ceil(large.rows()).saturating_mul(n.div_ceil(large.vectors()));
        match n {
            65.. if count >= groups => large,
            0..=64 if rows.div_ceil(Self::V64R128.rows()) >= groups => Self::V64R128,
            _ => Self::V64R64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::MatrixTile;
    use crate::Tile;

    #[test]
    fn every_thread_loads_whole_chunks_and_fits() {
        for tile in MatrixTile::ALL {
            for parts in [2, MatrixTile::STEP / 16] {
                assert_eq!(tile.rows() * parts % tile.threads(), 0, "{tile:?}: rows of a step");
            }
            assert_eq!(tile.vectors() * MatrixTile::STEP / 4 % tile.threads(), 0, "{tile:?}: vectors of a step");
            assert!(tile.threads() <= 256 && tile.memory() <= 49_152, "{tile:?}");
            assert!(tile.vectors() >= Tile::MIN_VECTORS, "{tile:?}: its lists of tiles are longer than the buffer");
        }
    }

    #[test]
    fn small_products_take_small_tiles() {
        assert_eq!(MatrixTile::for_product(14_336, 512, 128), MatrixTile::V128R128);
        assert_eq!(MatrixTile::for_product(1024, 512, 128), MatrixTile::V64R64);
        assert_eq!(MatrixTile::for_product(200_000, 3, 128), MatrixTile::V64R128);
    }
}
