//! Tiles of the product for chunks of a prompt.

/// What a workgroup of the tiled product makes: vectors × matrix rows. Every tile gives the same bits, so that which one
/// is used is a question of speed alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tile {
    /// 32 vectors × 32 rows, for small matrices: most workgroups.
    V32R32,
    /// 32 vectors × 64 rows, for the few vectors that share an expert.
    V32R64,
    /// 64 vectors × 64 rows.
    V64R64,
    /// 128 vectors × 64 rows: weights are dequantized least often.
    V128R64,
}

impl Tile {
    /// Every tile, smallest first.
    pub const ALL: [Tile; 4] = [Self::V32R32, Self::V32R64, Self::V64R64, Self::V128R64];

    /// Vectors of a tile.
    pub fn vectors(self) -> u32 {
        match self {
            Self::V32R32 | Self::V32R64 => 32,
            Self::V64R64 => 64,
            Self::V128R64 => 128,
        }
    }

    /// Matrix rows of a tile.
    pub fn rows(self) -> u32 {
        match self {
            Self::V32R32 => 32,
            Self::V32R64 | Self::V64R64 | Self::V128R64 => 64,
        }
    }

    /// Vectors and matrix rows that one thread makes.
    pub(crate) fn a_thread(self) -> (u32, u32) {
        match self {
            Self::V32R32 => (4, 4),
            Self::V32R64 => (4, 8),
            Self::V64R64 | Self::V128R64 => (8, 8),
        }
    }

    /// Threads along the vectors and along the matrix rows.
    pub(crate) fn threads(self) -> (u32, u32) {
        let (vectors, rows) = self.a_thread();
        (self.vectors() / vectors, self.rows() / rows)
    }

    /// In how many copies the loop over a step's quads of columns stands. Copies take software adapters long to compile, and
    /// they see only the smaller tiles.
    pub(crate) fn unrolled(self) -> u32 {
        if self == Self::V128R64 { 4 } else { 1 }
    }

    /// Workgroups that a product of `rows` × `n` vectors takes.
    pub fn groups(self, rows: u32, n: u32) -> u32 {
        rows.div_ceil(self.rows()).saturating_mul(n.div_ceil(self.vectors()))
    }

    /// The largest tile that still makes at least `groups` workgroups of a product of `rows` × `n` vectors; the smallest if
    /// none does.
    pub fn for_product(rows: u32, n: u32, groups: u32) -> Tile {
        let enough = |tile: &Tile| n > tile.vectors() / 2 && tile.groups(rows, n) >= groups;
        Self::ALL.into_iter().rev().find(enough).unwrap_or(Self::V32R32)
    }
}

#[cfg(test)]
mod tests {
    use super::Tile;

    #[test]
    fn small_products_take_small_tiles() {
        assert_eq!(Tile::for_product(8192, 512, 256), Tile::V128R64);
        assert_eq!(Tile::for_product(2048, 512, 256), Tile::V64R64);
        assert_eq!(Tile::for_product(512, 512, 256), Tile::V32R32);
        assert_eq!(Tile::for_product(200_000, 3, 256), Tile::V32R32);
    }

    #[test]
    fn a_thread_loads_whole_quads_and_no_more_than_a_row() {
        for tile in Tile::ALL {
            let (y, x) = tile.threads();
            let threads = x * y;
            assert!(threads >= tile.rows() && threads <= 256, "{tile:?}");
            assert_eq!(4 * tile.vectors() % threads, 0, "{tile:?}");
            assert_eq!(tile.a_thread().1 % 4, 0, "{tile:?}");
        }
    }
}
