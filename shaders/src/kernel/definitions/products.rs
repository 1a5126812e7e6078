//! Products of a matrix and vectors, and the vectors that some of them take.

use super::{Definition, Values, and};
use crate::kernel::Access::{self, Read, Write};
use crate::kernel::{Dots, Kernel, Operand, VectorStrategy};
use crate::params::{self, Params};
use crate::{Format, Lanes, MatrixTile, PackedTile, Packing, Tile, TileKind};

/// The bindings of a product: weights, in, out; then bias, or two lists of experts.
fn bindings(operand: Operand) -> Vec<Access> {
    match operand {
        Operand::Plain => vec![Read, Read, Write],
        Operand::Bias => vec![Read, Read, Write, Read],
        Operand::Expert => vec![Read, Read, Write, Read, Read],
    }
}

pub fn matvec(threads: u32, format: Format, strategy: VectorStrategy, rows: u8, operand: Operand) -> Definition {
    let how = match strategy {
        VectorStrategy::PerThread => "per-thread",
        VectorStrategy::Broadcast => "broadcast",
        VectorStrategy::Workgroup => "workgroup",
    };
    let shares = strategy == VectorStrategy::Workgroup;
    Definition {
        name: format!("matvec {} {how} ×{rows}{}", format.name(), and(operand)),
        template: "matvec",
        params: params::MatVec::WGSL,
        bindings: bindings(operand),
        values: Values::none()
            .with("FORMAT", format.name())
            .with("STRATEGY", format!("{strategy:?}"))
            .numbers([
                ("ROWS", u32::from(rows)),
                ("LANES", Kernel::LANES),
                ("OUT", if shares { 1 } else { Kernel::rows_a_thread(format, rows) }),
                ("PARTIALS", u32::from(rows) * threads),
            ])
            .flags([
                ("BROADCAST", strategy == VectorStrategy::Broadcast),
                ("BIAS", operand == Operand::Bias),
                ("EXPERT", operand == Operand::Expert),
            ]),
    }
}

pub fn matmul(format: Format, operand: Operand, tile: Tile) -> Definition {
    let kind = match tile.kind() {
        TileKind::Shared => "",
        TileKind::PerThread => " per-thread",
        TileKind::Broadcast(Lanes::Four) => " by 4",
        TileKind::Broadcast(Lanes::Eight) => " by 8",
    };
    let ((vectors, rows), (y, x)) = (tile.a_thread(), tile.threads());
    // Vectors that one load by all threads covers.
    let a_read = if let TileKind::Broadcast(lanes) = tile.kind() { lanes.count() / 4 } else { 1 };
    Definition {
        name: format!("matmul {}{kind} {}×{}{}", format.name(), tile.vectors(), tile.rows(), and(operand)),
        template: if tile.kind() == TileKind::Shared { "matmul" } else { "matmul_per_thread" },
        params: params::MatVec::WGSL,
        bindings: bindings(operand),
        values: Values::none()
            .with("FORMAT", format.name())
            .numbers([
                ("VECTORS", tile.vectors()),
                ("ROWS", tile.rows()),
                ("VT", vectors),
                ("MT", rows),
                ("MQ", rows / 4),
                ("TX", x),
                ("TY", y),
                ("CHUNKS", tile.chunks()),
                ("ROW_LOADS", (tile.chunks() * tile.rows()).div_ceil(x * y)),
                ("LOADS", 4 * tile.chunks() * tile.vectors() / (x * y)),
                ("UNROLLED", tile.unrolled()),
                ("A_READ", a_read),
                ("READS", vectors / a_read),
            ])
            .flags([
                ("BROADCAST", matches!(tile.kind(), TileKind::Broadcast(_))),
                ("BIAS", operand == Operand::Bias),
                ("GROUPED", operand == Operand::Expert),
            ]),
    }
}

pub fn quantize() -> Definition {
    Definition {
        name: "quantize".to_owned(),
        template: "quantize",
        params: params::Quantize::WGSL,
        bindings: vec![Read, Write],
        values: Values::none(),
    }
}

pub fn packed(format: Format, operand: Operand, tile: PackedTile, dots: Dots, is_wide: bool) -> Definition {
    let ((vectors, rows), (y, x)) = (tile.a_thread(), tile.threads());
    let packing = format.packing();
    let how = if dots == Dots::Shifts { " shifts" } else { "" };
    Definition {
        name: format!("packed {}{how} {tile}{}", format.name(), and(operand)),
        template: "packed",
        params: params::MatVec::WGSL,
        bindings: bindings(operand),
        values: Values::none()
            .with("FORMAT", format.name())
            .numbers([
                ("VECTORS", tile.vectors()),
                ("ROWS", tile.rows()),
                ("VT", vectors),
                ("MT", rows),
                ("MQ", rows / 4),
                ("TX", x),
                ("TY", y),
                // 16 columns of that many matrix rows and vectors a thread.
                ("ROW_LOADS", (2 * tile.rows()).div_ceil(x * y)),
                ("VECTOR_LOADS", (2 * tile.vectors()).div_ceil(x * y)),
                ("BUFFERS", tile.buffers()),
            ])
            .flags([
                ("PACKED", true),
                ("WIDE", is_wide),
                ("SOME_ROWS", 2 * tile.rows() < x * y),
                ("SOME_VECTORS", 2 * tile.vectors() < x * y),
                ("SECOND", packing != Some(Packing::Scale)),
                ("LEAST", packing == Some(Packing::ScaleAndLeast)),
                ("HALVES", packing == Some(Packing::TwoScales)),
                ("SHIFTS", dots == Dots::Shifts),
                ("BIAS", operand == Operand::Bias),
                ("GROUPED", operand == Operand::Expert),
            ]),
    }
}

pub fn halve() -> Definition {
    Definition {
        name: "halve".to_owned(),
        template: "halve",
        params: params::Halve::WGSL,
        bindings: vec![Read, Write],
        values: Values::none(),
    }
}

pub fn matrix(format: Format, operand: Operand, tile: MatrixTile, is_wide: bool) -> Definition {
    let ((vectors, rows), (down, along)) = (tile.fragments(), tile.subgroups());
    // Threads that load a matrix row's part of a step, and quads that each of them loads.
    let chunks = MatrixTile::STEP / 16;
    let (parts, quads) = if is_wide { (2, 8) } else { (chunks, 4) };
    Definition {
        name: format!("matrix {} {}×{}{}", format.name(), tile.vectors(), tile.rows(), and(operand)),
        template: "matrix",
        params: params::MatVec::WGSL,
        bindings: bindings(operand),
        values: Values::none()
            .with("FORMAT", format.name())
            .numbers([
                ("VECTORS", tile.vectors()),
                ("ROWS", tile.rows()),
                ("FV", vectors),
                ("FR", rows),
                ("ALONG", along),
                ("SUBGROUPS", down * along),
                ("STEP", MatrixTile::STEP),
                ("CHUNKS", chunks),
                ("WLOADS", tile.rows() * parts / tile.threads()),
                ("WQUADS", quads),
                ("XLOADS", tile.vectors() * (MatrixTile::STEP / 4) / tile.threads()),
                ("BUFFERS", tile.buffers()),
            ])
            .flags([
                ("MATRIX", true),
                ("WIDE", is_wide),
                ("BIAS", operand == Operand::Bias),
                ("GROUPED", operand == Operand::Expert),
            ]),
    }
}
