//! Generates a kernel's WGSL from its template and the definitions of the variant.

use potluck_plan::KvCacheType;

use super::{Addition, Dots, Kernel, Operand, Strategy, VectorStrategy};
use crate::params::{self, Params};
use crate::preprocess::{Definitions, preprocess};
use crate::{Format, MAX_EXPERTS, MatrixTile, Packing, TileKind};

fn template(name: &str) -> Option<&'static str> {
    Some(match name {
        "weights" => include_str!("../../wgsl/weights.wgsl"),
        "activation" => include_str!("../../wgsl/activation.wgsl"),
        "floats" => include_str!("../../wgsl/formats/floats.wgsl"),
        "simple" => include_str!("../../wgsl/formats/simple.wgsl"),
        "k_quants" => include_str!("../../wgsl/formats/k_quants.wgsl"),
        "k_scales" => include_str!("../../wgsl/formats/k_scales.wgsl"),
        "four_bit" => include_str!("../../wgsl/formats/four_bit.wgsl"),
        "iq4_values" => include_str!("../../wgsl/formats/iq4_values.wgsl"),
        "e2m1" => include_str!("../../wgsl/formats/e2m1.wgsl"),
        "ternary" => include_str!("../../wgsl/formats/ternary.wgsl"),
        "codebooks" => include_str!("../../wgsl/formats/codebooks.wgsl"),
        "packed_formats" => include_str!("../../wgsl/formats/packed_formats.wgsl"),
        "grid" => include_str!("../../wgsl/grid.wgsl"),
        "numbers" => include_str!("../../wgsl/numbers.wgsl"),
        "kv_cache" => include_str!("../../wgsl/kv_cache.wgsl"),
        "rotation" => include_str!("../../wgsl/rotation.wgsl"),
        "runs" => include_str!("../../wgsl/runs.wgsl"),
        "conv" => include_str!("../../wgsl/conv.wgsl"),
        "recurrence" => include_str!("../../wgsl/recurrence.wgsl"),
        "scan" => include_str!("../../wgsl/scan.wgsl"),
        "scan_per_thread" => include_str!("../../wgsl/scan_per_thread.wgsl"),
        "query_gates" => include_str!("../../wgsl/query_gates.wgsl"),
        "gate_input" => include_str!("../../wgsl/gate_input.wgsl"),
        "product" => include_str!("../../wgsl/product.wgsl"),
        "lists" => include_str!("../../wgsl/lists.wgsl"),
        "embed" => include_str!("../../wgsl/embed.wgsl"),
        "norm" => include_str!("../../wgsl/norm.wgsl"),
        "matvec" => include_str!("../../wgsl/matvec.wgsl"),
        "matmul_per_thread" => include_str!("../../wgsl/matmul_per_thread.wgsl"),
        "quantize" => include_str!("../../wgsl/quantize.wgsl"),
        "halve" => include_str!("../../wgsl/halve.wgsl"),
        "matrix_any" => include_str!("../../wgsl/formats/matrix_any.wgsl"),
        "matrix_q4_k" => include_str!("../../wgsl/formats/matrix_q4_k.wgsl"),
        "matrix" => include_str!("../../wgsl/matrix.wgsl"),
        "packed" => include_str!("../../wgsl/packed.wgsl"),
        "matmul" => include_str!("../../wgsl/matmul.wgsl"),
        "sixteen" => include_str!("../../wgsl/sixteen.wgsl"),
        "fused" => include_str!("../../wgsl/fused.wgsl"),
        "fused_bindings" => include_str!("../../wgsl/fused_bindings.wgsl"),
        "fused_parts" => include_str!("../../wgsl/fused_parts.wgsl"),
        "fused_begin" => include_str!("../../wgsl/fused_begin.wgsl"),
        "fused_end" => include_str!("../../wgsl/fused_end.wgsl"),
        "fused_packed" => include_str!("../../wgsl/fused_packed.wgsl"),
        "staged_packed" => include_str!("../../wgsl/staged_packed.wgsl"),
        "q8_1" => include_str!("../../wgsl/q8_1.wgsl"),
        "dots" => include_str!("../../wgsl/dots.wgsl"),
        "units" => include_str!("../../wgsl/units.wgsl"),
        "units_q4_k" => include_str!("../../wgsl/units_q4_k.wgsl"),
        "units_q6_k" => include_str!("../../wgsl/units_q6_k.wgsl"),
        "units_any" => include_str!("../../wgsl/units_any.wgsl"),
        "wide_q4_k" => include_str!("../../wgsl/wide_q4_k.wgsl"),
        "wide_q6_k" => include_str!("../../wgsl/wide_q6_k.wgsl"),
        "wide_mxfp4" => include_str!("../../wgsl/wide_mxfp4.wgsl"),
        "split" => include_str!("../../wgsl/split.wgsl"),
        "splits" => include_str!("../../wgsl/splits.wgsl"),
        "merge" => include_str!("../../wgsl/merge.wgsl"),
        "groups_per_thread" => include_str!("../../wgsl/groups_per_thread.wgsl"),
        "groups" => include_str!("../../wgsl/groups.wgsl"),
        "scores" => include_str!("../../wgsl/scores.wgsl"),
        "norm_part" => include_str!("../../wgsl/norm_part.wgsl"),
        "residual" => include_str!("../../wgsl/residual.wgsl"),
        "beside" => include_str!("../../wgsl/beside.wgsl"),
        "glu" => include_str!("../../wgsl/glu.wgsl"),
        "choose" => include_str!("../../wgsl/choose.wgsl"),
        "expert_bias" => include_str!("../../wgsl/expert_bias.wgsl"),
        "scale_by" => include_str!("../../wgsl/scale_by.wgsl"),
        "scale_logits" => include_str!("../../wgsl/scale_logits.wgsl"),
        "rope" => include_str!("../../wgsl/rope.wgsl"),
        "rope_blocks" => include_str!("../../wgsl/rope_blocks.wgsl"),
        "attention" => include_str!("../../wgsl/attention.wgsl"),
        "flash" => include_str!("../../wgsl/flash.wgsl"),
        "router" => include_str!("../../wgsl/router.wgsl"),
        "choice" => include_str!("../../wgsl/choice.wgsl"),
        "experts_sum" => include_str!("../../wgsl/experts_sum.wgsl"),
        "route" => include_str!("../../wgsl/route.wgsl"),
        "norm_row" => include_str!("../../wgsl/norm_row.wgsl"),
        "row_sum" => include_str!("../../wgsl/row_sum.wgsl"),
        "combine" => include_str!("../../wgsl/combine.wgsl"),
        "segments" => include_str!("../../wgsl/segments.wgsl"),
        "top" => include_str!("../../wgsl/top.wgsl"),
        "sample" => include_str!("../../wgsl/sample.wgsl"),
        "peak" => include_str!("../../wgsl/peak.wgsl"),
        "stream" => include_str!("../../wgsl/stream.wgsl"),
        _ => return None,
    })
}

impl Kernel {
    /// The WGSL for a browser, which requires `enable subgroups`; naga rejects that line.
    pub fn browser_source(self) -> String {
        let enabled = if self.uses_subgroups() { "enable subgroups;\n" } else { "" };
        format!("{enabled}{}", self.source())
    }

    /// The WGSL as naga accepts it.
    pub fn source(self) -> String {
        if let Some(parts) = self.parts() {
            return super::joined::source(parts);
        }
        let (name, wgsl) = match self {
            Self::Joined { .. } => unreachable!("a joined kernel is its parts"),
            Self::Embed(_) => ("embed", params::Embed::WGSL),
            Self::Norm(_) => ("norm", params::Norm::WGSL),
            Self::MatVec { .. } => ("matvec", params::MatVec::WGSL),
            Self::MatMul { tile, .. } if tile.kind() == TileKind::Shared => ("matmul", params::MatVec::WGSL),
            Self::MatMul { .. } => ("matmul_per_thread", params::MatVec::WGSL),
            Self::Quantize => ("quantize", params::Quantize::WGSL),
            Self::Halve => ("halve", params::Halve::WGSL),
            Self::Matrix { .. } => ("matrix", params::MatVec::WGSL),
            Self::Packed { .. } => ("packed", params::MatVec::WGSL),
            Self::Fused { job, .. } if job.sums() => ("experts_sum", params::Fused::WGSL),
            Self::Fused { dots: Some(_), .. } => ("fused_packed", params::Fused::WGSL),
            Self::Fused { .. } => ("fused", params::Fused::WGSL),
            Self::Split { .. } => ("split", params::Split::WGSL),
            Self::Merge { .. } => ("merge", params::Split::WGSL),
            Self::Groups(Strategy::PerThread) => ("groups_per_thread", params::Groups::WGSL),
            Self::Groups(Strategy::Workgroup) => ("groups", params::Groups::WGSL),
            Self::Rope { kv_type, .. } if kv_type.is_quantized() => ("rope_blocks", params::Rope::WGSL),
            Self::Rope { .. } => ("rope", params::Rope::WGSL),
            Self::Attention { .. } => ("attention", params::Attention::WGSL),
            Self::FlashAttention { .. } => ("flash", params::Attention::WGSL),
            Self::NormPart(_) => ("norm_part", params::NormPart::WGSL),
            Self::Residual { .. } => ("residual", params::Residual::WGSL),
            Self::Beside => ("beside", params::Beside::WGSL),
            Self::Glu(_) => ("glu", params::Glu::WGSL),
            Self::QueryGates => ("query_gates", params::QueryGates::WGSL),
            Self::GateInput => ("gate_input", params::GateInput::WGSL),
            Self::Conv { .. } => ("conv", params::Conv::WGSL),
            Self::Scan { strategy: Strategy::Workgroup, .. } => ("scan", params::Scan::WGSL),
            Self::Scan { strategy: Strategy::PerThread, .. } => ("scan_per_thread", params::Scan::WGSL),
            Self::Choose { .. } => ("choose", params::Choose::WGSL),
            Self::ExpertBias => ("expert_bias", params::ExpertBias::WGSL),
            Self::ScaleLogits => ("scale_logits", params::ScaleLogits::WGSL),
            Self::ScaleBy { .. } => ("scale_by", params::ScaleBy::WGSL),
            Self::Router(_) => ("router", params::Router::WGSL),
            Self::Route => ("route", params::Route::WGSL),
            Self::Combine => ("combine", params::Combine::WGSL),
            Self::Segments(_) => ("segments", params::Segments::WGSL),
            Self::Top(_) => ("top", params::Top::WGSL),
            Self::Sample => ("sample", params::Sample::WGSL),
            Self::Stream => ("stream", params::Stream::WGSL),
            Self::Peak { .. } => ("peak", params::Peak::WGSL),
        };
        let mut definitions = Definitions::new();
        let mut define = |name: &str, value: String| {
            definitions.insert(name.to_owned(), value);
        };
        define("PARAMS", wgsl.to_owned());
        define("THREADS", self.threads().to_string());
        if let Some(at) = self.format().and_then(Format::codebook_at) {
            define("CODEBOOK_AT", at.to_string());
            define("CODEBOOKS", self.bindings().len().to_string());
        }
        if let Some(kv_type) = self.kv_type() {
            define("KV_TYPE", format!("{kv_type:?}"));
            if kv_type.is_quantized() {
                define("QUANTIZED", String::new());
                define("WORD_QUADS", if kv_type == KvCacheType::Q8_0 { "1" } else { "2" }.into());
            }
        }
        if let Self::Split { kv_type, quads, .. }
        | Self::Attention { kv_type, quads, .. }
        | Self::FlashAttention { kv_type, quads, .. } = self
        {
            let head_dim = u32::from(quads) * 4;
            define("HEAD_WORDS", kv_type.head_words(head_dim).to_string());
            define("SCALE_WORDS", kv_type.scale_words(head_dim).to_string());
        }
        let extras = self.extras();
        for (name, on) in [("WINDOW", extras.window), ("CAP", extras.cap), ("SINKS", extras.sinks)] {
            if on {
                define(name, String::new());
            }
        }
        if matches!(
            self,
            Self::Split { .. } | Self::Merge { .. } | Self::Attention { .. } | Self::FlashAttention { .. }
        ) {
            for (name, value) in
                [("SPLIT", crate::SPLIT), ("OCTAVE", crate::OCTAVE), ("PAGE", potluck_plan::KV_PAGE_TOKENS)]
            {
                define(name, value.to_string());
            }
        }
        match self {
            Self::Embed(format) => define("FORMAT", format.name().into()),
            Self::Norm(strategy) | Self::NormPart(strategy) | Self::Segments(strategy) | Self::Top(strategy) => {
                define("STRATEGY", format!("{strategy:?}"));
            }
            Self::Residual { strategy, addition } => {
                define("STRATEGY", format!("{strategy:?}"));
                match addition {
                    Addition::Scaled => {}
                    Addition::Normed => define("NORM", String::new()),
                    Addition::Gated => define("GATE", String::new()),
                }
            }
            Self::ScaleBy { expert: true } => define("EXPERT", String::new()),
            Self::ScaleBy { expert: false } => {}
            Self::Conv { kind, taps } => {
                define("CONV", format!("{kind:?}"));
                define("PAST", (taps - 1).to_string());
            }
            Self::Scan { strategy, rule, width, state } => {
                define("STRATEGY", format!("{strategy:?}"));
                define("RULE", format!("{rule:?}"));
                let (quads, parts) = Self::scan_threads(width, state);
                for (name, value) in [
                    ("WIDTH", u32::from(width)),
                    ("STATE", u32::from(state)),
                    // The keys and queries of two rows.
                    ("STATES", 2 * u32::from(state)),
                    ("QUADS", quads),
                    ("PARTS", parts),
                    ("EACH", u32::from(state) / parts),
                    ("LOADS", u32::from(state).div_ceil(quads * parts)),
                ] {
                    define(name, value.to_string());
                }
            }
            Self::Glu(glu) => define("GLU", format!("{glu:?}")),
            Self::Choose { strategy, sigmoid, biased } => {
                define("STRATEGY", format!("{strategy:?}"));
                define("EXPERTS", MAX_EXPERTS.to_string());
                define("GROUPS", Self::MAX_GROUPS.to_string());
                let flags = [("SIGMOID", sigmoid), ("BIASED", biased)];
                flags.into_iter().filter(|(_, on)| *on).for_each(|(name, _)| define(name, String::new()));
            }
            Self::Router(strategy) => {
                define("STRATEGY", format!("{strategy:?}"));
                define("EXPERTS", MAX_EXPERTS.to_string());
                define("EXPERT_QUADS", MAX_EXPERTS.div_ceil(4).to_string());
            }
            Self::Route => {
                define("FACTORS", String::new());
                define("EXPERTS", MAX_EXPERTS.to_string());
                define("EXPERT_QUADS", MAX_EXPERTS.div_ceil(4).to_string());
            }
            Self::MatVec { format, strategy, rows, operand } => {
                define("FORMAT", format.name().into());
                define("STRATEGY", format!("{strategy:?}"));
                define("ROWS", rows.to_string());
                define("LANES", Self::LANES.to_string());
                let shares = strategy == VectorStrategy::Workgroup;
                define("OUT", if shares { 1 } else { Self::rows_a_thread(format, rows) }.to_string());
                if strategy == VectorStrategy::Broadcast {
                    define("BROADCAST", String::new());
                }
                define("PARTIALS", (u32::from(rows) * self.threads()).to_string());
                match operand {
                    Operand::Plain => {}
                    Operand::Bias => define("BIAS", String::new()),
                    Operand::Expert => define("EXPERT", String::new()),
                }
            }
            Self::MatMul { format, operand, tile } => {
                define("FORMAT", format.name().into());
                let ((vectors, rows), (y, x)) = (tile.a_thread(), tile.threads());
                for (name, value) in [
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
                ] {
                    define(name, value.to_string());
                }
                // Vectors that one load by all threads covers.
                let mut a_read = 1;
                if let TileKind::Broadcast(lanes) = tile.kind() {
                    a_read = lanes.count() / 4;
                    define("BROADCAST", String::new());
                }
                define("A_READ", a_read.to_string());
                define("READS", (vectors / a_read).to_string());
                match operand {
                    Operand::Plain => {}
                    Operand::Bias => define("BIAS", String::new()),
                    Operand::Expert => define("GROUPED", String::new()),
                }
            }
            Self::Packed { format, operand, tile, dots } => {
                define("FORMAT", format.name().into());
                let ((vectors, rows), (y, x)) = (tile.a_thread(), tile.threads());
                for (name, value) in [
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
                ] {
                    define(name, value.to_string());
                }
                let packing = format.packing();
                let flags = [
                    ("PACKED", true),
                    ("WIDE", self.is_wide()),
                    ("SOME_ROWS", 2 * tile.rows() < x * y),
                    ("SOME_VECTORS", 2 * tile.vectors() < x * y),
                    ("SECOND", packing != Some(Packing::Scale)),
                    ("LEAST", packing == Some(Packing::ScaleAndLeast)),
                    ("HALVES", packing == Some(Packing::TwoScales)),
                    ("SHIFTS", dots == Dots::Shifts),
                    ("BIAS", operand == Operand::Bias),
                    ("GROUPED", operand == Operand::Expert),
                ];
                flags.into_iter().filter(|(_, on)| *on).for_each(|(name, _)| define(name, String::new()));
            }
            Self::Matrix { format, operand, tile } => {
                define("FORMAT", format.name().into());
                let ((vectors, rows), (down, along)) = (tile.fragments(), tile.subgroups());
                // Threads that load a matrix row's part of a step, and quads that each of them loads.
                let chunks = MatrixTile::STEP / 16;
                let (parts, quads) = if self.is_wide() { (2, 8) } else { (chunks, 4) };
                for (name, value) in [
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
                ] {
                    define(name, value.to_string());
                }
                let flags = [
                    ("MATRIX", true),
                    ("WIDE", self.is_wide()),
                    ("BIAS", operand == Operand::Bias),
                    ("GROUPED", operand == Operand::Expert),
                ];
                flags.into_iter().filter(|(_, on)| *on).for_each(|(name, _)| define(name, String::new()));
            }
            Self::Fused { .. } => self.define_fused(&mut define),
            Self::Split { quads, heads, .. } => {
                let (quads, heads) = (u32::from(quads), u32::from(heads));
                // Steps through a head, and quads of a step for each of the threads that share a key.
                let steps = quads.div_ceil(64);
                let shares = if steps > 1 { 8 } else { quads.div_ceil(8) };
                for (name, value) in [("QUADS", quads), ("HEADS", heads), ("SHARES", shares), ("STEPS", steps)] {
                    define(name, value.to_string());
                }
                for (name, on) in [("RAGGED", quads != steps * shares * 8), ("DEEP", steps > 1)] {
                    if on {
                        define(name, String::new());
                    }
                }
            }
            Self::Merge { quads } => define("QUADS", quads.to_string()),
            Self::Groups(_) => {
                define("EXPERTS", MAX_EXPERTS.to_string());
                define("BITMAPS", (MAX_EXPERTS * self.threads() / 32).to_string());
            }
            Self::Rope { pairs, qk_norm, factors, .. } => {
                define("PAIRS", format!("{pairs:?}"));
                if qk_norm {
                    define("QK_NORM", String::new());
                }
                if factors {
                    define("FACTORS", String::new());
                }
                if qk_norm && factors {
                    define("JOINED", String::new());
                }
            }
            Self::Attention { strategy, quads, .. } => {
                define("STRATEGY", format!("{strategy:?}"));
                define("QUADS", quads.to_string());
            }
            Self::FlashAttention { quads, .. } => {
                let (rows, widths) = (Self::flash_rows(quads), u32::from(quads).div_ceil(16));
                for (name, value) in [
                    ("QUADS", u32::from(quads)),
                    ("ROWS", rows),
                    // A thread's keys, vectors of four rows, quads of the output, and queries it loads at a time.
                    ("SK", rows / 16),
                    ("PARTS", rows / 32),
                    ("VT", widths),
                    ("LOADS", rows / 16),
                    // Positions whose values fit into workgroup memory.
                    (
                        "VK",
                        if widths == 1 {
                            16
                        } else if widths == 2 {
                            8
                        } else {
                            4
                        },
                    ),
                ] {
                    define(name, value.to_string());
                }
            }
            Self::Peak { dots: true } => define("DOTS", String::new()),
            Self::Peak { dots: false }
            | Self::Quantize
            | Self::Halve
            | Self::QueryGates
            | Self::GateInput
            | Self::Combine
            | Self::Beside
            | Self::Sample
            | Self::Stream
            | Self::ExpertBias
            | Self::ScaleLogits
            | Self::Joined { .. } => {}
        }
        let text = template(name).expect("every kernel names an existing template");
        preprocess(text, &definitions, &template).expect("templates are checked for every variant by a test")
    }
}
