//! Which kernel replaces one that computes wrongly on a device.

use potluck_plan::KvCacheType;

use super::{Addition, Dots, Extras, Job, Kernel, Operand, Strategy, VectorStrategy};
use crate::{KernelVariant, Tile, TileKind};

impl Kernel {
    /// The replacement for a kernel that fails the self-test: a barrier-free variant, a row-by-row kernel, or the
    /// separate steps of a fused one.
    pub fn fallback(self) -> Option<Kernel> {
        match self {
            Self::Norm(Strategy::Workgroup) => Some(Self::Norm(Strategy::PerThread)),
            Self::Router(Strategy::Workgroup) => Some(Self::Router(Strategy::PerThread)),
            Self::Route => Some(Self::Router(Strategy::Workgroup)),
            Self::Choose { strategy: Strategy::Workgroup, sigmoid, biased } => {
                Some(Self::Choose { strategy: Strategy::PerThread, sigmoid, biased })
            }
            Self::NormPart(Strategy::Workgroup) => Some(Self::NormPart(Strategy::PerThread)),
            Self::Scan { strategy: Strategy::Workgroup, rule, width, state } => {
                Some(Self::Scan { strategy: Strategy::PerThread, rule, width, state })
            }
            Self::Residual { strategy: Strategy::Workgroup, addition } => {
                Some(Self::Residual { strategy: Strategy::PerThread, addition })
            }
            Self::Beside => Some(Self::Residual { strategy: Strategy::Workgroup, addition: Addition::Normed }),
            Self::Segments(Strategy::Workgroup) => Some(Self::Segments(Strategy::PerThread)),
            Self::Top(Strategy::Workgroup) => Some(Self::Top(Strategy::PerThread)),
            Self::LogSumExp(Strategy::Workgroup) => Some(Self::LogSumExp(Strategy::PerThread)),
            Self::Groups(Strategy::Workgroup) => Some(Self::Groups(Strategy::PerThread)),
            Self::MatVec { format, strategy: VectorStrategy::Workgroup | VectorStrategy::Broadcast, rows, operand } => {
                Some(Self::MatVec { format, strategy: VectorStrategy::PerThread, rows, operand })
            }
            Self::Fused { format, rows, job, variant, dots } if variant != KernelVariant::portable(job) => {
                Some(Self::Fused { format, rows, job, variant: KernelVariant::portable(job), dots })
            }
            Self::Fused { format, rows, job, dots: Some(Dots::Packed), .. } => {
                Some(Self::fused_packed(format, rows, job, Dots::Shifts))
            }
            Self::Fused { format, rows, job, dots: Some(Dots::Shifts), .. } => Some(Self::fused(format, rows, job)),
            Self::Fused { format, rows, job, .. } => {
                let operand = match job {
                    job if job.of_experts() => Operand::Expert,
                    job if job.is_biased() => Operand::Bias,
                    _ => Operand::Plain,
                };
                Some(Self::MatVec { format, strategy: VectorStrategy::Workgroup, rows, operand })
            }
            Self::Joined { first, dots, .. } => {
                let (job, variant) = (Job::Normed, KernelVariant::portable(Job::Normed));
                Some(Self::Fused { format: first, rows: 1, job, variant, dots })
            }
            Self::Split { kv_type, quads, extras, .. } => {
                Some(Self::Attention { kv_type, strategy: Strategy::Workgroup, quads, extras })
            }
            Self::Merge { quads } => {
                let (kv_type, extras) = (KvCacheType::F32, Extras::NONE);
                Some(Self::Attention { kv_type, strategy: Strategy::Workgroup, quads, extras })
            }
            Self::Attention { kv_type, strategy: Strategy::Workgroup, quads, extras } => {
                Some(Self::Attention { kv_type, strategy: Strategy::PerThread, quads, extras })
            }
            Self::MatMul { format, operand, tile } if tile.kind() != TileKind::PerThread => {
                Some(Self::MatMul { format, operand, tile: Tile::per_thread(format) })
            }
            Self::MatMul { format, operand, .. } => {
                let rows = if operand == Operand::Expert { 1 } else { 8 };
                Some(Self::MatVec { format, strategy: VectorStrategy::PerThread, rows, operand })
            }
            Self::Packed { format, operand, tile, dots: Dots::Packed } => {
                Some(Self::Packed { format, operand, tile, dots: Dots::Shifts })
            }
            Self::Matrix { format, operand, .. } => Some(Self::MatMul { format, operand, tile: Tile::V64R64 }),
            Self::FlashAttention { kv_type, quads, extras } => {
                Some(Self::Attention { kv_type, strategy: Strategy::Workgroup, quads, extras })
            }
            _ => None,
        }
    }
}
