//! Fused decode kernels: a product with the steps before and after it.

use super::{Definition, Values};
use crate::kernel::Access::{Read, Write};
use crate::kernel::{Dots, Job, Kernel};
use crate::params::{self, Params};
use crate::{Format, KernelVariant, Packing};

/// The parameters of [`Kernel::Fused`].
pub struct Fused {
    pub format: Format,
    pub rows: u8,
    pub job: Job,
    pub variant: KernelVariant,
    pub dots: Option<Dots>,
}

/// How quantized vectors are multiplied, in a name.
fn by(dots: Option<Dots>) -> &'static str {
    match dots {
        None => "",
        Some(Dots::Packed) => " packed",
        Some(Dots::Shifts) => " packed shifts",
    }
}

/// A variant other than the portable one, in a name.
fn how(variant: KernelVariant, job: Job) -> String {
    if variant == KernelVariant::portable(job) { String::new() } else { format!(" {variant}") }
}

/// The kernel itself, and its parameters.
pub fn fused(kernel: Kernel, of: Fused) -> Definition {
    let Fused { format, rows, job, variant, dots } = of;
    let mut bindings = vec![Read, Read, Write];
    bindings.extend((job.norms() || job == Job::Scored).then_some(Read));
    bindings.extend(job.of_experts().then_some([Read, Read]).into_iter().flatten());
    bindings.extend(job.sums().then_some(Read));
    bindings.extend(job.is_biased().then_some(Read));
    Definition {
        name: format!("fused{} {} {job:?} ×{rows}{}", by(dots), format.name(), how(variant, job)),
        template: match dots {
            _ if job.sums() => "experts_sum",
            Some(_) => "fused_packed",
            None => "fused",
        },
        params: params::Fused::WGSL,
        values: values(kernel, &of).numbers([("BIAS_AT", bindings.len() as u32)]),
        bindings,
    }
}

/// Two products in one module: the template is that of each.
pub fn joined(first: Format, second: Format, variant: KernelVariant, dots: Option<Dots>) -> Definition {
    let job = Job::Normed;
    let kernel = Kernel::Fused { format: first, rows: 1, job, variant, dots };
    Definition {
        name: format!("fused{} {} + {} Normed{}", by(dots), first.name(), second.name(), how(variant, job)),
        bindings: vec![Read, Read, Write, Read, Read],
        ..kernel.definition()
    }
}

fn values(kernel: Kernel, of: &Fused) -> Values {
    let &Fused { format, rows, job, variant, dots } = of;
    let (vectors, pairs, halves) = (u32::from(rows), u32::from(variant.results), if job.gates() { 2 } else { 1 });
    let (packed, alone, team) = (dots.is_some(), rows == 1, kernel.team());
    // Two teams share an expert's rows, where vectors are quantized and products are summed.
    let each = if packed && job.sums() { pairs / 2 } else { pairs };
    let shuffle = u32::from(variant.shuffle).min(team);
    // Steps of a team through a chunk of a vector. Packed: those for which there is memory.
    let units = if !packed {
        1024 / team / kernel.unit_values()
    } else if alone && !job.sums() {
        2
    } else {
        1
    };
    // Places of a chunk in packed workgroup memory: a step's units and two more for each vector, or those of two chunks.
    let places = if units == 1 { team + 2 } else { units * team };
    let kept = match (job.sums(), alone) {
        (true, _) => u32::from(variant.teams) * places,
        (_, true) => 2 * places,
        (_, false) => vectors * places,
    };
    let packing = format.packing().filter(|_| packed);
    let mut values = Values::none().with("FORMAT", format.name()).numbers([
        ("ROWS", vectors),
        ("PAIRS", pairs),
        ("EACH", each),
        ("HALVES", halves),
        ("PARTIALS", vectors * each * halves * kernel.threads()),
        ("VECTOR_PARTIALS", vectors * kernel.threads()),
        ("QUADS", kernel.unit_values() / 4),
        ("UNITS", units),
        // Quads (packed: octets) of a chunk for each thread of the workgroup, or of an expert.
        ("LOADS", if packed && job.sums() { 4 } else { 256 / kernel.threads() }),
        ("SQUARES", vectors * 256),
        ("OCTETS", 128 * units),
        ("BLOCKS", 32 * units),
        ("PLACES_OF_CHUNK", places),
        ("PLACES", kept + 2),
        ("SHUFFLE", shuffle),
        ("MAX_USED", Kernel::MAX_SUMMED),
        ("OUTPUTS", Kernel::MAX_SUMMED * pairs),
    ]);
    if shuffle > 1 {
        values.set("SHUFFLES", shuffle.ilog2());
    }
    if let Some(glu) = job.activation() {
        values.set("GLU", format!("{glu:?}"));
    }
    values.flags([
        ("PACKED", packed),
        ("SHIFTS", dots == Some(Dots::Shifts)),
        ("LEAST", packing == Some(Packing::ScaleAndLeast)),
        ("TWO_SCALES", packing == Some(Packing::TwoScales)),
        ("ALONE", alone),
        ("TOGETHER", packed && alone && shuffle >= 4),
        ("SHARES", shuffle < team),
        ("WIDE", kernel.is_wide()),
        ("STAGED", alone && !job.sums()),
        ("SUMS", format == Format::Q4_K && !packed),
        ("NORM", job.norms()),
        ("BIAS", job.is_biased()),
        ("SCORED", job == Job::Scored),
        ("GATED", job.gates()),
        ("EXPERT", job.of_experts()),
    ])
}
