//! Kernels of matrix products that are fused with nothing: those of decode steps, and those of prefill, by tiles.

use std::collections::BTreeSet;

use potluck_plan::Arithmetic;
use potluck_shaders::{
    Dots, Format, Kernel, MatrixTile, Operand, PackedTile, Strategy, Tile, TileKind, VectorStrategy,
};

use super::Profile;
use crate::runtime::tuning_table::{Choice, Shape};

/// A prefill product uses the largest tile that still gives this many workgroups. A large GPU runs more than a hundred
/// workgroups at once, and a small GPU loses little when a small product uses small tiles.
const ENOUGH_GROUPS: u32 = 256;

/// The same of the matrix units, whose tiles need several subgroups to keep them busy.
const ENOUGH_MATRIX_GROUPS: u32 = 100;

impl Profile {
    /// Kernel for a matrix times the `n` vectors of a decode step.
    pub fn decode(&self, format: Format, operand: Operand, n: usize) -> Kernel {
        let rows = if n == 1 || !self.rows_agree || operand == Operand::Expert { 1 } else { 4 };
        let quickest = match (self.strategy, self.lanes) {
            (Strategy::Workgroup, _) => VectorStrategy::Workgroup,
            (Strategy::PerThread, Some(_)) => VectorStrategy::Broadcast,
            (Strategy::PerThread, None) => VectorStrategy::PerThread,
        };
        let of = |strategy| Kernel::MatVec { format, strategy, rows, operand };
        self.first(&[of(quickest), of(VectorStrategy::PerThread)])
    }

    /// Kernel for a `rows` × `cols` matrix times the `n` vectors of a prefill chunk.
    pub fn prefill(&self, format: Format, operand: Operand, rows: u32, cols: u32, n: u32) -> Kernel {
        if let Some(matrix) = self.matrix(format, operand, MatrixTile::for_product(rows, n, ENOUGH_MATRIX_GROUPS)) {
            return matrix;
        }
        let shape = Shape::Packed { format, rows, cols, vectors: Shape::chunk(n) };
        let tile = match self.tuning.get(&shape).map(|tuned| tuned.choice) {
            Some(Choice::Packed(tile)) => tile,
            _ => self.portable_packed_tile(rows, n),
        };
        if let Some(packed) = self.packed(format, operand, tile) {
            return packed;
        }
        let tile = match self.strategy {
            Strategy::PerThread => self.without_barriers(format, false),
            Strategy::Workgroup => {
                let shape = Shape::Prefill { format, rows, cols, vectors: Shape::chunk(n) };
                let right = |tile: &Tile| !self.wrong.contains(&Kernel::MatMul { format, operand, tile: *tile });
                let tuned = match self.tuning.get(&shape).map(|tuned| tuned.choice) {
                    Some(Choice::Tile(tile)) => Some(tile),
                    _ => None,
                };
                tuned.filter(right).unwrap_or_else(|| self.portable_tile(rows, n))
            }
        };
        self.tiled(format, operand, tile)
    }

    /// The packed tile used without measurements.
    pub fn portable_packed_tile(&self, rows: u32, n: u32) -> PackedTile {
        PackedTile::for_product(rows, n, ENOUGH_GROUPS)
    }

    /// The packed product, if prompts are computed so and it reads this format.
    fn packed(&self, format: Format, operand: Operand, tile: PackedTile) -> Option<Kernel> {
        let used = self.arithmetic == Arithmetic::Packed && format.packing().is_some();
        let of = |dots| Kernel::Packed { format, operand, tile, dots };
        used.then(|| self.first(&[of(Dots::Packed), of(Dots::Shifts)]))
    }

    /// The product by matrix units, if prompts are computed so. Matrices of 32-bit floats, which are routers, stay exact. If
    /// any tile computes incorrectly, none is used, so that a row's result does not depend on the batch size.
    fn matrix(&self, format: Format, operand: Operand, tile: MatrixTile) -> Option<Kernel> {
        let used = self.arithmetic == Arithmetic::Matrix && format != Format::F32;
        let wrong = |kernel: &Kernel| match *kernel {
            Kernel::Matrix { format: f, operand: o, .. } => (f, o) == (format, operand),
            kernel => kernel == Kernel::Halve,
        };
        (used && !self.wrong.iter().any(wrong)).then_some(Kernel::Matrix { format, operand, tile })
    }

    /// The tile used without measurements.
    pub fn portable_tile(&self, rows: u32, n: u32) -> Tile {
        Tile::for_product(rows, n, ENOUGH_GROUPS)
    }

    /// Kernel for a matrix of each chosen expert times the vectors routed to it. Its tiles skip absent vectors, so one
    /// tile size serves few and many vectors.
    pub fn prefill_experts(&self, format: Format) -> Kernel {
        if let Some(matrix) = self.matrix(format, Operand::Expert, MatrixTile::V64R128) {
            return matrix;
        }
        if let Some(packed) = self.packed(format, Operand::Expert, PackedTile::V64R64) {
            return packed;
        }
        let tile = match self.strategy {
            Strategy::PerThread => self.without_barriers(format, true),
            Strategy::Workgroup => Tile::V64R64,
        };
        self.tiled(format, Operand::Expert, tile)
    }

    fn without_barriers(&self, format: Format, grouped: bool) -> Tile {
        self.lanes.map_or(Tile::per_thread(format), |lanes| Tile::broadcast(format, lanes, grouped))
    }

    /// The tiled product. If any tile of a kind computes incorrectly, all tiles of that kind are excluded, so that a
    /// batch row's result does not depend on the batch size.
    fn tiled(&self, format: Format, operand: Operand, tile: Tile) -> Kernel {
        let wrong = |kind: TileKind| {
            self.wrong.iter().any(|kernel| {
                // This tile is used only where it was measured, so its failure excludes no other tile.
                matches!(*kernel, Kernel::MatMul { format: f, operand: o, tile: t }
                    if (f, o) == (format, operand) && t.kind() == kind && t != Tile::V64R128)
            })
        };
        let mut kernel = Kernel::MatMul { format, operand, tile };
        while let Kernel::MatMul { tile, .. } = kernel
            && wrong(tile.kind())
            && let Some(next) = kernel.fallback()
        {
            kernel = next;
        }
        kernel
    }

    /// Every kernel that [`Profile::prefill`] returns for chunks of up to `max` vectors.
    pub fn every_prefill(&self, format: Format, operand: Operand, rows: u32, cols: u32, max: u32) -> BTreeSet<Kernel> {
        (1..=max).map(|n| self.prefill(format, operand, rows, cols, n)).collect()
    }
}

#[cfg(test)]
mod tests {
    use potluck_shaders::Lanes;

    use super::*;
    use crate::runtime::gpu::Tier;

    #[test]
    fn matrix_units_compute_what_is_no_float_until_that_is_wrong() {
        let mut profile = Profile::of(Tier::Full, None).with_arithmetic(Arithmetic::Matrix);
        let (format, operand, tile) = (Format::Q4_K, Operand::Plain, MatrixTile::V128R128);
        let matrix = Kernel::Matrix { format, operand, tile };
        assert_eq!(profile.prefill(format, operand, 14_336, 4096, 512), matrix);
        assert!(matches!(profile.prefill(Format::F32, operand, 14_336, 4096, 512), Kernel::MatMul { .. }));
        assert!(matches!(profile.prefill_experts(format), Kernel::Matrix { operand: Operand::Expert, .. }));
        profile.reject(matrix);
        let all: Vec<Kernel> = profile.every_prefill(format, operand, 14_336, 4096, 512).into_iter().collect();
        assert!(all.iter().all(|kernel| matches!(kernel, Kernel::MatMul { .. })), "one wrong tile stops all: {all:?}");
    }

    #[test]
    fn software_adapters_read_by_subgroups_until_that_is_wrong() {
        let (format, operand) = (Format::Q4_0, Operand::Plain);
        let mut profile = Profile::of(Tier::Software, Some(Lanes::Eight));
        let of = |tile| Kernel::MatMul { format, operand, tile };
        assert_eq!(profile.prefill(format, operand, 64, 64, 64), of(Tile::BroadcastV16R4(Lanes::Eight)));
        profile.reject(of(Tile::BroadcastV16R4(Lanes::Eight)));
        assert_eq!(profile.prefill(format, operand, 64, 64, 64), of(Tile::PerThreadV8R4));
        profile.reject(of(Tile::PerThreadV8R4));
        assert!(matches!(
            profile.prefill(format, operand, 64, 64, 64),
            Kernel::MatVec { strategy: VectorStrategy::PerThread, .. }
        ));
        let one = |strategy| Kernel::MatVec { format, strategy, rows: 1, operand };
        assert_eq!(profile.decode(format, operand, 1), one(VectorStrategy::Broadcast));
        profile.reject(one(VectorStrategy::Broadcast));
        assert_eq!(profile.decode(format, operand, 1), one(VectorStrategy::PerThread));
        let none = Profile::of(Tier::Software, None);
        assert_eq!(none.prefill(format, operand, 64, 64, 64), of(Tile::PerThreadV8R4));
        let full = Profile::of(Tier::Full, Some(Lanes::Eight));
        assert_eq!(full.prefill(format, operand, 64, 64, 64), of(Tile::V16R32), "GPUs share workgroup memory");
    }
}
