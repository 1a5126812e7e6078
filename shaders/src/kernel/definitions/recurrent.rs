//! Token mixers with a state: convolutions and recurrences.

use super::{Definition, Values, by};
use crate::kernel::Access::{Read, Write};
use crate::kernel::{ConvKind, Kernel, ScanRule, Strategy};
use crate::params::{self, Params};

pub fn conv(kind: ConvKind, taps: u8) -> Definition {
    Definition {
        name: format!("convolution {} ×{taps}", format!("{kind:?}").to_lowercase()),
        template: "conv",
        params: params::Conv::WGSL,
        bindings: match kind {
            ConvKind::Gated => vec![Read, Read, Write, Read, Write],
            ConvKind::Silu => vec![Read, Read, Write, Write],
            ConvKind::Biased => vec![Read, Read, Write, Write, Read],
        },
        values: Values::none().with("CONV", format!("{kind:?}")).numbers([("PAST", u32::from(taps) - 1)]),
    }
}

pub fn scan(strategy: Strategy, rule: ScanRule, width: u16, state: u16) -> Definition {
    let (quads, parts) = Kernel::scan_threads(width, state);
    let rule_name = if rule == ScanRule::Delta { "delta net" } else { "state space" };
    Definition {
        name: format!("{rule_name} {width}×{state} {}", by(strategy)),
        template: match strategy {
            Strategy::Workgroup => "scan",
            Strategy::PerThread => "scan_per_thread",
        },
        params: params::Scan::WGSL,
        bindings: vec![Read, Read, Read, Read, Read, Write, Write],
        values: Values::none().with("STRATEGY", format!("{strategy:?}")).with("RULE", format!("{rule:?}")).numbers([
            ("WIDTH", u32::from(width)),
            ("STATE", u32::from(state)),
            // The keys and queries of two rows.
            ("STATES", 2 * u32::from(state)),
            ("QUADS", quads),
            ("PARTS", parts),
            ("EACH", u32::from(state) / parts),
            ("LOADS", u32::from(state).div_ceil(quads * parts)),
        ]),
    }
}
