//! Attention, and the rotation before it.

use potluck_plan::KvCacheType;

use super::{Definition, Values, by};
use crate::kernel::Access::{self, Read, Write};
use crate::kernel::{Extras, Kernel, Pairs, Strategy};
use crate::params::{self, Params};

impl Extras {
    fn name(self) -> String {
        let all = [(self.window, " window"), (self.cap, " cap"), (self.sinks, " sinks")];
        all.iter().filter(|(on, _)| *on).map(|(_, name)| *name).collect()
    }

    /// The bindings of an attention with these extras: `own`, then the sinks.
    fn bindings(self, mut own: Vec<Access>) -> Vec<Access> {
        own.extend(self.sinks.then_some(Read));
        own
    }
}

impl Values {
    /// How a context is cut.
    fn splits(self) -> Self {
        self.numbers([("SPLIT", crate::SPLIT), ("OCTAVE", crate::OCTAVE), ("PAGE", potluck_plan::KV_PAGE_TOKENS)])
    }

    /// The type of the KV cache.
    fn kv_type(self, kv_type: KvCacheType) -> Self {
        let values = self.with("KV_TYPE", format!("{kv_type:?}"));
        if !kv_type.is_quantized() {
            return values;
        }
        let quads = if kv_type == KvCacheType::Q8_0 { 1 } else { 2 };
        values.flags([("QUANTIZED", true)]).numbers([("WORD_QUADS", quads)])
    }

    /// What every kernel that reads keys has.
    fn attention(self, kv_type: KvCacheType, quads: u16, extras: Extras) -> Self {
        let head_dim = u32::from(quads) * 4;
        self.kv_type(kv_type)
            .splits()
            .numbers([
                ("QUADS", u32::from(quads)),
                ("HEAD_WORDS", kv_type.head_words(head_dim)),
                ("SCALE_WORDS", kv_type.scale_words(head_dim)),
            ])
            .flags([("WINDOW", extras.window), ("CAP", extras.cap), ("SINKS", extras.sinks)])
    }
}

pub fn split(kv_type: KvCacheType, quads: u16, heads: u8, extras: Extras) -> Definition {
    // Steps through a head, and quads of a step for each of the threads that share a key.
    let steps = u32::from(quads).div_ceil(64);
    let shares = if steps > 1 { 8 } else { u32::from(quads).div_ceil(8) };
    Definition {
        name: format!("attention split {kv_type:?} {} ×{heads}{}", u32::from(quads) * 4, extras.name()),
        template: "split",
        params: params::Split::WGSL,
        bindings: extras.bindings(vec![Read, Read, Read, Read, Read, Write, Write]),
        values: Values::none()
            .attention(kv_type, quads, extras)
            .numbers([("HEADS", u32::from(heads)), ("SHARES", shares), ("STEPS", steps)])
            .flags([("RAGGED", u32::from(quads) != steps * shares * 8), ("DEEP", steps > 1)]),
    }
}

pub fn merge(quads: u16) -> Definition {
    Definition {
        name: format!("attention merge {}", u32::from(quads) * 4),
        template: "merge",
        params: params::Split::WGSL,
        bindings: vec![Read, Read, Write],
        values: Values::none().splits().numbers([("QUADS", u32::from(quads))]),
    }
}

/// Quads of a head that a thread alone takes in one iteration of a loop: the most of up to 16 that divide the head.
fn together(quads: u32) -> u32 {
    (1..=16).rev().find(|count| quads.is_multiple_of(*count)).unwrap_or(1)
}

pub fn attention(kv_type: KvCacheType, strategy: Strategy, quads: u16, extras: Extras) -> Definition {
    Definition {
        name: format!("attention {kv_type:?} {} {}{}", by(strategy), u32::from(quads) * 4, extras.name()),
        template: "attention",
        params: params::Attention::WGSL,
        bindings: extras.bindings(vec![Read, Read, Read, Read, Read, Write]),
        values: Values::none()
            .attention(kv_type, quads, extras)
            .with("STRATEGY", format!("{strategy:?}"))
            .numbers([("TOGETHER", together(u32::from(quads)))]),
    }
}

pub fn flash(kv_type: KvCacheType, quads: u16, extras: Extras) -> Definition {
    let (rows, widths) = (Kernel::flash_rows(quads), u32::from(quads).div_ceil(16));
    Definition {
        name: format!("flash attention {kv_type:?} {}{}", u32::from(quads) * 4, extras.name()),
        template: "flash",
        params: params::Attention::WGSL,
        bindings: extras.bindings(vec![Read, Read, Read, Read, Read, Write]),
        values: Values::none().attention(kv_type, quads, extras).numbers([
            ("ROWS", rows),
            // A thread's keys, vectors of four rows, quads of the output, and queries it loads at a time.
            ("SK", rows / 16),
            ("PARTS", rows / 32),
            ("VT", widths),
            ("LOADS", rows / 16),
            // Positions whose values fit into workgroup memory.
            (
                "VK",
                match widths {
                    1 => 16,
                    2 => 8,
                    _ => 4,
                },
            ),
        ]),
    }
}

pub fn rope(kv_type: KvCacheType, pairs: Pairs, qk_norm: bool, factors: bool) -> Definition {
    // Gains of queries and keys, and factors. With all of them, one binding has them.
    let operands = match (qk_norm, factors) {
        (false, false) => 0,
        (false, true) | (true, true) => 1,
        (true, false) => 2,
    };
    let mut bindings = vec![Read, Read, Read, Write, Write, Write];
    bindings.extend(std::iter::repeat_n(Read, operands));
    Definition {
        name: format!(
            "rope {kv_type:?} {pairs:?}{}{}",
            if qk_norm { " norm" } else { "" },
            if factors { " factors" } else { "" }
        ),
        template: if kv_type.is_quantized() { "rope_blocks" } else { "rope" },
        params: params::Rope::WGSL,
        bindings,
        values: Values::none().kv_type(kv_type).with("PAIRS", format!("{pairs:?}")).flags([
            ("QK_NORM", qk_norm),
            ("FACTORS", factors),
            ("JOINED", qk_norm && factors),
        ]),
    }
}
