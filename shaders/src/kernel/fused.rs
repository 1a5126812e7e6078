//! Fused decode kernels: their variants, and the definitions of their templates.

use super::{Dots, Job, Kernel};
use crate::{Format, KernelVariant, Packing};

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

    /// The definitions of a fused decode kernel.
    pub(super) fn define_fused(self, define: &mut impl FnMut(&str, String)) {
        let Self::Fused { format, rows, job, variant, dots } = self else { return };
        define("FORMAT", format.name().into());
        let (vectors, pairs, halves) = (u32::from(rows), u32::from(variant.results), if job.gates() { 2 } else { 1 });
        let (packed, alone, team) = (dots.is_some(), rows == 1, self.team());
        // Two teams share an expert's rows, where vectors are quantized and products are summed.
        let each = if packed && job.sums() { pairs / 2 } else { pairs };
        let shuffle = u32::from(variant.shuffle).min(team);
        // Steps of a team through a chunk of a vector. Packed: those for which there is memory.
        let units = match packed {
            true if alone && !job.sums() => 2,
            true => 1,
            false => 1024 / team / self.unit_values(),
        };
        // Places of a chunk in packed workgroup memory: a step's units and two more for each vector, or those of two chunks.
        let places = if units == 1 { team + 2 } else { units * team };
        let kept = match (job.sums(), alone) {
            (true, _) => u32::from(variant.teams) * places,
            (_, true) => 2 * places,
            (_, false) => vectors * places,
        };
        for (name, value) in [
            ("ROWS", vectors),
            ("PAIRS", pairs),
            ("EACH", each),
            ("HALVES", halves),
            ("PARTIALS", vectors * each * halves * self.threads()),
            ("VECTOR_PARTIALS", vectors * self.threads()),
            ("QUADS", self.unit_values() / 4),
            ("UNITS", units),
            // Quads (packed: octets) of a chunk for each thread of the workgroup, or of an expert.
            ("LOADS", if packed && job.sums() { 4 } else { 256 / self.threads() }),
            ("SQUARES", vectors * 256),
            ("OCTETS", 128 * units),
            ("BLOCKS", 32 * units),
            ("PLACES_OF_CHUNK", places),
            ("PLACES", kept + 2),
            ("SHUFFLE", shuffle),
            ("MAX_USED", Self::MAX_SUMMED),
            ("OUTPUTS", Self::MAX_SUMMED * pairs),
        ] {
            define(name, value.to_string());
        }
        if shuffle > 1 {
            define("SHUFFLES", shuffle.ilog2().to_string());
        }
        if let Some(glu) = job.activation() {
            define("GLU", format!("{glu:?}"));
        }
        define("BIAS_AT", self.own_bindings().len().to_string());
        let packing = format.packing().filter(|_| packed);
        let flags = [
            ("PACKED", packed),
            ("SHIFTS", dots == Some(Dots::Shifts)),
            ("LEAST", packing == Some(Packing::ScaleAndLeast)),
            ("TWO_SCALES", packing == Some(Packing::TwoScales)),
            ("ALONE", alone),
            ("TOGETHER", packed && alone && shuffle >= 4),
            ("SHARES", shuffle < team),
            ("WIDE", self.is_wide()),
            ("STAGED", alone && !job.sums()),
            ("SUMS", format == Format::Q4_K && !packed),
            ("NORM", job.norms()),
            ("BIAS", job.is_biased()),
            ("SCORED", job == Job::Scored),
            ("GATED", job.gates()),
            ("EXPERT", job.of_experts()),
        ];
        flags.into_iter().filter(|(_, on)| *on).for_each(|(name, _)| define(name, String::new()));
    }
}
