//! The storage bindings of each kernel.

use super::{Addition, ConvKind, Job, Kernel, Operand};
use crate::Format;

/// How a storage binding is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Access {
    /// Read only.
    Read,
    /// Read and written.
    Write,
}

impl Kernel {
    /// The storage bindings in order, numbered from 1 (0 is the uniform).
    pub fn bindings(self) -> Vec<Access> {
        let mut all = self.own_bindings();
        if self.has_codebook() {
            all.push(Access::Read);
        }
        all
    }

    /// The storage bindings without the codebooks.
    pub(super) fn own_bindings(self) -> Vec<Access> {
        use Access::{Read, Write};
        match self {
            Self::Embed(_) | Self::Norm(_) => vec![Read, Read, Write],
            Self::Quantize | Self::Halve => vec![Read, Write],
            Self::MatVec { operand, .. }
            | Self::MatMul { operand, .. }
            | Self::Packed { operand, .. }
            | Self::Matrix { operand, .. } => match operand {
                Operand::Plain => vec![Read, Read, Write],
                Operand::Bias => vec![Read, Read, Write, Read],
                Operand::Expert => vec![Read, Read, Write, Read, Read],
            },
            Self::Fused { job, .. } => {
                let mut all = vec![Read, Read, Write];
                all.extend((job.norms() || job == Job::Scored).then_some(Read));
                all.extend(job.of_experts().then_some([Read, Read]).into_iter().flatten());
                all.extend(job.sums().then_some(Read));
                all.extend(job.is_biased().then_some(Read));
                all
            }
            Self::Joined { .. } => vec![Read, Read, Write, Read, Read],
            Self::Split { extras, .. } => {
                let mut all = vec![Read, Read, Read, Read, Read, Write, Write];
                all.extend(extras.sinks.then_some(Read));
                all
            }
            Self::Merge { .. } => vec![Read, Read, Write],
            Self::Groups(_) => vec![Read, Read, Write, Write],
            Self::Rope { qk_norm, factors, .. } => {
                let mut all = vec![Read, Read, Read, Write, Write, Write];
                if qk_norm && factors {
                    all.push(Read);
                    return all;
                }
                if qk_norm {
                    all.extend([Read, Read]);
                }
                if factors {
                    all.push(Read);
                }
                all
            }
            Self::Attention { extras, .. } | Self::FlashAttention { extras, .. } => {
                let mut all = vec![Read, Read, Read, Read, Read, Write];
                all.extend(extras.sinks.then_some(Read));
                all
            }
            Self::NormPart(_) => vec![Write, Read],
            Self::Residual { addition: Addition::Scaled, .. } => vec![Read, Write],
            Self::Residual { .. } => vec![Read, Write, Read],
            Self::Beside => vec![Read, Write, Write, Read, Read, Read, Read],
            Self::Glu(_) | Self::QueryGates | Self::GateInput => vec![Read, Write],
            Self::Conv { kind: ConvKind::Gated, .. } => vec![Read, Read, Write, Read, Write],
            Self::Conv { kind: ConvKind::Silu, .. } => vec![Read, Read, Write, Write],
            Self::Conv { kind: ConvKind::Biased, .. } => vec![Read, Read, Write, Write, Read],
            Self::Scan { .. } => vec![Read, Read, Read, Read, Read, Write, Write],
            Self::Router(_) | Self::Choose { biased: false, .. } => vec![Read, Write, Write],
            Self::Choose { .. } => vec![Read, Write, Write, Read],
            Self::Route => vec![Read, Write, Write, Read, Read, Write, Read],
            Self::ExpertBias => vec![Read, Write, Read, Read],
            Self::ScaleLogits => vec![Write],
            Self::ScaleBy { expert: false } => vec![Read, Write],
            Self::ScaleBy { expert: true } => vec![Read, Write, Read],
            Self::Combine => vec![Read, Read, Read, Write],
            Self::Segments(_) => vec![Read, Write],
            Self::Top(_) => vec![Read, Write, Write, Write],
            Self::Sample => vec![Write, Read, Write, Write],
            Self::Stream => vec![Read, Write],
            Self::Peak { .. } => vec![Write],
        }
    }

    /// Whether the kernel reads the [`crate::codebooks`], which are then its last storage binding.
    pub fn has_codebook(self) -> bool {
        self.format().is_some_and(|format| format.codebook_at().is_some())
    }

    /// Whether the weights are bound as `vec4<u32>`, which works because each block is a whole number of them.
    pub(super) fn is_wide(self) -> bool {
        match self {
            Self::Packed { format, .. } | Self::Fused { format, dots: Some(_), .. } => {
                [Format::Q4_K, Format::Q5_K].contains(&format)
            }
            Self::Fused { format, .. } | Self::Matrix { format, .. } => format == Format::Q4_K,
            _ => false,
        }
    }
}
