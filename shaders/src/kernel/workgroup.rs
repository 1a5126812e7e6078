//! How many threads a workgroup of each kernel has, and how much they compute.

use potluck_plan::KvCacheType;

use super::{Kernel, Strategy, VectorStrategy};
use crate::{Format, KernelVariant};

impl Kernel {
    /// Threads that share a matrix row in the workgroup matrix-vector kernels.
    pub const LANES: u32 = 16;
    /// Threads that share a segment of logits.
    pub const SEGMENT_LANES: u32 = 32;

    /// Workgroup size.
    pub fn threads(self) -> u32 {
        match self {
            Self::MatVec { strategy: VectorStrategy::PerThread | VectorStrategy::Broadcast, .. }
            | Self::Norm(Strategy::PerThread)
            | Self::NormPart(Strategy::PerThread)
            | Self::Residual { strategy: Strategy::PerThread, .. }
            | Self::Router(Strategy::PerThread)
            | Self::Choose { strategy: Strategy::PerThread, .. }
            | Self::Top(Strategy::PerThread)
            | Self::LogSumExp(Strategy::PerThread)
            | Self::Scan { strategy: Strategy::PerThread, .. }
            | Self::Attention { strategy: Strategy::PerThread, .. } => 8,
            Self::Fused { variant, .. } | Self::Joined { variant, .. } => variant.threads(),
            Self::Scan { width, state, .. } => {
                let (quads, parts) = Self::scan_threads(width, state);
                quads * parts
            }
            Self::Split { .. } | Self::FlashAttention { .. } | Self::Sample => 128,
            // So that the threads of a head of 512 values lie in one workgroup.
            Self::Rope { kv_type, qk_norm: true, .. } if !kv_type.is_quantized() => 128,
            Self::Norm(Strategy::Workgroup)
            | Self::NormPart(Strategy::Workgroup)
            | Self::Residual { strategy: Strategy::Workgroup, .. }
            | Self::Beside
            | Self::Router(Strategy::Workgroup)
            | Self::Route
            | Self::Segments(Strategy::Workgroup)
            | Self::Merge { .. }
            | Self::Top(Strategy::Workgroup)
            | Self::LogSumExp(Strategy::Workgroup)
            | Self::Stream
            | Self::Peak { .. } => 256,
            Self::MatMul { tile, .. } => tile.threads().0 * tile.threads().1,
            Self::Packed { tile, .. } => tile.threads().0 * tile.threads().1,
            Self::Matrix { tile, .. } => tile.threads(),
            Self::Halve => 256,
            Self::Attention { quads, .. } => u32::from(quads.max(64)),
            Self::Groups(Strategy::PerThread) => 1,
            Self::Groups(Strategy::Workgroup) => 128,
            _ => 64,
        }
    }

    /// Quads of columns of a head's state in the workgroup kernel of a recurrence, and threads that share each of them: as
    /// many as the largest workgroup has.
    pub(super) fn scan_threads(width: u16, state: u16) -> (u32, u32) {
        let quads = u32::from(width).div_ceil(4);
        let most = 1 << (256 / quads).ilog2();
        (quads, most.min(1 << state.trailing_zeros()))
    }

    /// Whether a workgroup can share a head of a recurrence: it reads four values at a time, and every value of a head
    /// needs a thread.
    pub fn can_share_scan(width: u16, state: u16) -> bool {
        width.is_multiple_of(4) && state.is_multiple_of(4) && u32::from(width) * u32::from(state) <= 1 << 15
    }

    /// Matrix rows per workgroup of a matrix kernel.
    pub fn matrix_rows(self) -> u32 {
        match self {
            Self::MatMul { tile, .. } => tile.rows(),
            Self::Packed { tile, .. } => tile.rows(),
            Self::Fused { job, variant, .. } if job.sums() => u32::from(variant.results),
            Self::Matrix { tile, .. } => tile.rows(),
            Self::Fused { variant, .. } | Self::Joined { variant, .. } => {
                variant.all_results() * (KernelVariant::TEAM / self.team())
            }
            Self::MatVec { strategy: VectorStrategy::Workgroup, .. } => self.threads() / Self::LANES,
            Self::MatVec { format, rows, .. } => self.threads() * Self::rows_a_thread(format, rows),
            _ => self.threads(),
        }
    }

    /// Vectors per workgroup of a matrix kernel.
    pub fn vectors(self) -> u32 {
        match self {
            Self::MatMul { tile, .. } => tile.vectors(),
            Self::Packed { tile, .. } => tile.vectors(),
            Self::Matrix { tile, .. } => tile.vectors(),
            Self::MatVec { rows, .. } => u32::from(rows),
            _ => 1,
        }
    }

    /// Rows per workgroup of the flash attention, where each query head of a batch row is a row: as many as its threads
    /// have registers for.
    pub fn flash_rows(quads: u16) -> u32 {
        if quads > 32 { 32 } else { 64 }
    }

    /// Matrix rows per thread of a per-thread matrix-vector kernel with this number of vectors.
    pub(super) fn rows_a_thread(format: Format, vectors: u8) -> u32 {
        // Software adapters take minutes to compile longer kernels.
        match (format, vectors) {
            (Format::Q6_K, 8) => 1,
            (Format::Q6_K, _) | (_, 8) => 2,
            _ => 4,
        }
    }

    /// Threads per head in the RoPE kernel: each computes four values, and quantized blocks come in pairs.
    pub fn rope_threads(kv_type: KvCacheType, head_dim: u32) -> u32 {
        if kv_type.is_quantized() { kv_type.scale_words(head_dim) * 2 * KvCacheType::BLOCK / 4 } else { head_dim / 4 }
    }
}
