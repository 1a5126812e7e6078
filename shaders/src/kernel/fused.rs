//! Fused decode kernels: their variants.

use super::{Dots, Job, Kernel};
use crate::{Format, KernelVariant};

impl Kernel {
    /// Most experts of a token that [`Job::ExpertSum`] adds.
    pub const MAX_SUMMED: u32 = 32;

    /// The fused kernel in its portable variant.
    pub fn fused(format: Format, rows: u8, job: Job) -> Kernel {
        Self::Fused { format, rows, job, variant: KernelVariant::portable(job), dots: None }
    }

    /// The same with quantized vectors.
    pub fn fused_packed(format: Format, rows: u8, job: Job, dots: Dots) -> Kernel {
        Self::Fused { format, rows, job, variant: KernelVariant::portable(job), dots: Some(dots) }
    }

    /// Whether a fused kernel quantizes its vectors.
    pub fn quantizes(self) -> bool {
        matches!(self, Self::Fused { dots: Some(_), .. } | Self::Joined { dots: Some(_), .. })
    }

    /// A fused or joined kernel in every variant worth trying, the portable one first; `subgroup` is the device's minimum subgroup size.
    pub fn variants(self, subgroup: u32) -> Vec<Kernel> {
        let of = |job, dots: Option<Dots>| match dots {
            None => KernelVariant::candidates(job, subgroup).into_iter(),
            Some(_) => KernelVariant::packed_candidates(job, subgroup).into_iter(),
        };
        match self {
            Self::Fused { format, rows, job, dots, .. } => {
                of(job, dots).map(|variant| Self::Fused { format, rows, job, variant, dots }).collect()
            }
            Self::Joined { first, second, dots, .. } => {
                of(Job::Normed, dots).map(|variant| Self::Joined { first, second, variant, dots }).collect()
            }
            other => vec![other],
        }
    }

    /// Threads that share a result of a fused kernel.
    pub(super) fn team(self) -> u32 {
        if self.quantizes() { KernelVariant::TEAM / 2 } else { KernelVariant::TEAM }
    }

    /// Values that a thread of a fused kernel reads per step.
    pub fn unit_values(self) -> u32 {
        match self {
            Self::Fused { dots: Some(_), .. } => 64,
            Self::Fused { format: Format::Q4_K | Format::Q6_K | Format::MXFP4, .. } => 32,
            _ => 16,
        }
    }
}
