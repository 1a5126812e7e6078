//! Kernel names for reports.

use super::{Dots, Extras, Glu, Job, Kernel, Operand, ScanRule, Strategy, VectorStrategy};
use crate::{KernelVariant, Lanes, TileKind};

impl Extras {
    fn name(self) -> String {
        let all = [(self.window, " window"), (self.cap, " cap"), (self.sinks, " sinks")];
        all.iter().filter(|(on, _)| *on).map(|(_, name)| *name).collect()
    }
}

impl Kernel {
    /// A short name for reports, like `matvec Q4_K workgroup ×4`.
    pub fn name(self) -> String {
        let how = |strategy| if strategy == Strategy::Workgroup { "workgroup" } else { "per-thread" };
        let with = |operand| match operand {
            Operand::Plain => "",
            Operand::Bias => " bias",
            Operand::Expert => " expert",
        };
        let by = |dots| match dots {
            None => "",
            Some(Dots::Packed) => " packed",
            Some(Dots::Shifts) => " packed shifts",
        };
        match self {
            Self::Embed(format) => format!("embed {}", format.name()),
            Self::Norm(strategy) => format!("norm {}", how(strategy)),
            Self::MatVec { format, strategy, rows, operand } => {
                let how = match strategy {
                    VectorStrategy::PerThread => "per-thread",
                    VectorStrategy::Broadcast => "broadcast",
                    VectorStrategy::Workgroup => "workgroup",
                };
                format!("matvec {} {how} ×{rows}{}", format.name(), with(operand))
            }
            Self::MatMul { format, operand, tile } => {
                let kind = match tile.kind() {
                    TileKind::Shared => "",
                    TileKind::PerThread => " per-thread",
                    TileKind::Broadcast(Lanes::Four) => " by 4",
                    TileKind::Broadcast(Lanes::Eight) => " by 8",
                };
                format!("matmul {}{kind} {}×{}{}", format.name(), tile.vectors(), tile.rows(), with(operand))
            }
            Self::Quantize => "quantize".into(),
            Self::Halve => "halve".into(),
            Self::Matrix { format, operand, tile } => {
                format!("matrix {} {}×{}{}", format.name(), tile.vectors(), tile.rows(), with(operand))
            }
            Self::Packed { format, operand, tile, dots } => {
                let how = if dots == Dots::Shifts { " shifts" } else { "" };
                format!("packed {}{how} {tile}{}", format.name(), with(operand))
            }
            Self::Fused { format, rows, job, variant, dots } => {
                let how = if variant == KernelVariant::portable(job) { String::new() } else { format!(" {variant}") };
                format!("fused{} {} {job:?} ×{rows}{how}", by(dots), format.name())
            }
            Self::Joined { first, second, variant, dots } => {
                let portable = KernelVariant::portable(Job::Normed);
                let how = if variant == portable { String::new() } else { format!(" {variant}") };
                format!("fused{} {} + {} Normed{how}", by(dots), first.name(), second.name())
            }
            Self::Split { kv_type, quads, heads, extras } => {
                format!("attention split {kv_type:?} {} ×{heads}{}", u32::from(quads) * 4, extras.name())
            }
            Self::Merge { quads } => format!("attention merge {}", u32::from(quads) * 4),
            Self::Groups(strategy) => format!("groups {}", how(strategy)),
            Self::Rope { kv_type, pairs, qk_norm, factors } => format!(
                "rope {kv_type:?} {pairs:?}{}{}",
                if qk_norm { " norm" } else { "" },
                if factors { " factors" } else { "" }
            ),
            Self::Attention { kv_type, strategy, quads, extras } => {
                format!("attention {kv_type:?} {} {}{}", how(strategy), u32::from(quads) * 4, extras.name())
            }
            Self::FlashAttention { kv_type, quads, extras } => {
                format!("flash attention {kv_type:?} {}{}", u32::from(quads) * 4, extras.name())
            }
            Self::NormPart(strategy) => format!("norm of a part {}", how(strategy)),
            Self::Residual { strategy, addition } => {
                format!("residual {} {}", format!("{addition:?}").to_lowercase(), how(strategy))
            }
            Self::Beside => "end of a block with a network beside experts".into(),
            Self::Glu(Glu::Silu) => "swiglu".into(),
            Self::Glu(glu) => format!("glu {}", format!("{glu:?}").to_lowercase()),
            Self::QueryGates => "gates of queries".into(),
            Self::GateInput => "gated input of a block".into(),
            Self::Conv { kind, taps } => format!("convolution {} ×{taps}", format!("{kind:?}").to_lowercase()),
            Self::Scan { strategy, rule, width, state } => {
                let rule = if rule == ScanRule::Delta { "delta net" } else { "state space" };
                format!("{rule} {width}×{state} {}", how(strategy))
            }
            Self::Route => "router and norm".into(),
            Self::Router(strategy) => format!("router {}", how(strategy)),
            Self::Choose { strategy, sigmoid, biased } => format!(
                "router by {}{} {}",
                if sigmoid { "sigmoid" } else { "softmax" },
                if biased { " with bias" } else { "" },
                how(strategy)
            ),
            Self::ExpertBias => "bias of experts".into(),
            Self::ScaleLogits => "scale of logits".into(),
            Self::ScaleBy { expert } => format!("factors of {}", if expert { "experts" } else { "rows" }),
            Self::Combine => "combine".into(),
            Self::Segments(strategy) => format!("segments {}", how(strategy)),
            Self::Top(strategy) => format!("top {}", how(strategy)),
            Self::Sample => "sample".into(),
            Self::Stream => "stream".into(),
            Self::Peak { dots } => format!("peak {}", if dots { "dot4I8Packed" } else { "fma" }),
        }
    }
}
