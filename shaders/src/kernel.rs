//! Variants: a typed key for each, its source, bindings and workgroup.

use std::collections::BTreeSet;

use potluck_plan::KvCacheType;

use crate::params::{self, Params};
use crate::preprocess::{Definitions, preprocess};
use crate::{Format, KernelVariant, Lanes, MAX_EXPERTS, Tile, TileKind};

/// How a kernel divides its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Strategy {
    /// Every thread on its own: no barriers, no workgroup memory. For software adapters, and as the fallback.
    PerThread,
    /// A workgroup shares the work of a row.
    Workgroup,
}

/// How a matrix-vector kernel divides its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VectorStrategy {
    /// As [`Strategy::PerThread`].
    PerThread,
    /// Every thread makes rows of its own, but a subgroup reads the vectors together. No barriers, and the bits of
    /// [`VectorStrategy::PerThread`]. Subgroups are of 4 threads or a multiple, all in use.
    Broadcast,
    /// As [`Strategy::Workgroup`].
    Workgroup,
}

/// What a matrix kernel adds, or where it finds its matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operand {
    /// One matrix.
    Plain,
    /// One matrix and a bias.
    Bias,
    /// The matrix of a chosen expert.
    Expert,
}

/// What a fused decode kernel does besides the product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Job {
    /// Norms the vectors first.
    Normed,
    /// Norms them first, and adds a bias.
    NormedBias,
    /// Adds the result to what is there.
    Added,
    /// Norms the vectors first, and makes `silu(gate) · up` of two matrices.
    Gated,
    /// The same with the matrices of chosen experts.
    GatedExpert,
    /// The weighted sum over the chosen experts, added to what is there.
    ExpertSum,
}

impl Job {
    /// All of them.
    pub const ALL: [Job; 6] =
        [Self::Normed, Self::NormedBias, Self::Added, Self::Gated, Self::GatedExpert, Self::ExpertSum];

    /// The vectors are normed on the way.
    pub fn norms(self) -> bool {
        !matches!(self, Self::Added | Self::ExpertSum)
    }

    /// Two matrices make one result.
    pub fn gates(self) -> bool {
        matches!(self, Self::Gated | Self::GatedExpert)
    }

    /// The matrices are those of chosen experts.
    pub fn of_experts(self) -> bool {
        matches!(self, Self::GatedExpert | Self::ExpertSum)
    }
}

/// Which values of a head rotate together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pairs {
    /// `(2i, 2i + 1)`.
    Adjacent,
    /// `(i, i + dims / 2)`.
    Halves,
}

/// How a storage binding is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Access {
    /// Read only.
    Read,
    /// Read and written.
    Write,
}

/// One variant of one template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kernel {
    /// Embedding lookup: table, tokens, out.
    Embed(Format),
    /// RMSNorm: in, gain, out.
    Norm(Strategy),
    /// Matrix times `rows` vectors at a time: weights, in, out; then bias, or slots and chosen.
    MatVec {
        /// Of the matrix.
        format: Format,
        /// How.
        strategy: VectorStrategy,
        /// Vectors that share one reading of the weights; 1 for experts.
        rows: u8,
        /// Bias or expert.
        operand: Operand,
    },
    /// Matrix times `rows` vectors at a time, with what comes before and after: weights, in, out; then gain; then bias, or
    /// slots and chosen; then gates.
    Fused {
        /// Of the matrix.
        format: Format,
        /// Vectors that share one reading of the weights; 1 for experts.
        rows: u8,
        /// What else.
        job: Job,
        /// Among which threads. All forms give the same bits.
        variant: KernelVariant,
    },
    /// Attention by splits of the context: rows, pages, q, keys, values, out, parts.
    Split {
        /// Of the cache.
        kv_type: KvCacheType,
        /// Quads of values in a head, at most 64.
        quads: u16,
    },
    /// Splits made one: rows, parts, out.
    Merge {
        /// Quads of values in a head, at most 64.
        quads: u16,
    },
    /// Tiled product: weights, in, out; then bias, or tiles and pairs.
    MatMul {
        /// Of the matrix.
        format: Format,
        /// Bias or expert.
        operand: Operand,
        /// What a workgroup makes. All tiles give the same bits.
        tile: Tile,
    },
    /// Pairs by expert: slots, chosen, tiles, pairs.
    Groups(Strategy),
    /// Rotation: rows, qkv, turns, q, keys, values; then both gains; then factors.
    Rope {
        /// Of the cache.
        kv_type: KvCacheType,
        /// Of the rotation.
        pairs: Pairs,
        /// Queries and keys are normed.
        qk_norm: bool,
        /// There are frequency divisors.
        factors: bool,
    },
    /// Attention: rows, pages, q, keys, values, out.
    Attention {
        /// Of the cache.
        kv_type: KvCacheType,
        /// How.
        strategy: Strategy,
        /// Quads of values in a head, at most 64.
        quads: u16,
    },
    /// Attention of a chunk of a prompt: rows, pages, q, keys, values, out.
    FlashAttention {
        /// Of the cache.
        kv_type: KvCacheType,
        /// Quads of values in a head, at most 64.
        quads: u16,
    },
    /// SwiGLU: gate, up.
    SwiGlu,
    /// Choice of experts: scores, chosen, gates.
    Router(Strategy),
    /// Weighted sum: slots, chosen, gates, parts, out.
    Combine,
    /// Segment maxima: logits, best.
    Segments,
    /// Best candidates: logits, best, candidates, token (the last row's best).
    Top(Strategy),
    /// Streaming rate: data, out.
    Stream,
}

fn template(name: &str) -> Option<&'static str> {
    Some(match name {
        "weights" => include_str!("../wgsl/weights.wgsl"),
        "floats" => include_str!("../wgsl/formats/floats.wgsl"),
        "simple" => include_str!("../wgsl/formats/simple.wgsl"),
        "k_quants" => include_str!("../wgsl/formats/k_quants.wgsl"),
        "k_scales" => include_str!("../wgsl/formats/k_scales.wgsl"),
        "four_bit" => include_str!("../wgsl/formats/four_bit.wgsl"),
        "iq4_values" => include_str!("../wgsl/formats/iq4_values.wgsl"),
        "e2m1" => include_str!("../wgsl/formats/e2m1.wgsl"),
        "ternary" => include_str!("../wgsl/formats/ternary.wgsl"),
        "codebooks" => include_str!("../wgsl/formats/codebooks.wgsl"),
        "numbers" => include_str!("../wgsl/numbers.wgsl"),
        "kv_cache" => include_str!("../wgsl/kv_cache.wgsl"),
        "rotation" => include_str!("../wgsl/rotation.wgsl"),
        "product" => include_str!("../wgsl/product.wgsl"),
        "lists" => include_str!("../wgsl/lists.wgsl"),
        "embed" => include_str!("../wgsl/embed.wgsl"),
        "norm" => include_str!("../wgsl/norm.wgsl"),
        "matvec" => include_str!("../wgsl/matvec.wgsl"),
        "matmul_per_thread" => include_str!("../wgsl/matmul_per_thread.wgsl"),
        "matmul" => include_str!("../wgsl/matmul.wgsl"),
        "fused" => include_str!("../wgsl/fused.wgsl"),
        "wide_q4_k" => include_str!("../wgsl/wide_q4_k.wgsl"),
        "wide_q6_k" => include_str!("../wgsl/wide_q6_k.wgsl"),
        "split" => include_str!("../wgsl/split.wgsl"),
        "merge" => include_str!("../wgsl/merge.wgsl"),
        "groups_per_thread" => include_str!("../wgsl/groups_per_thread.wgsl"),
        "groups" => include_str!("../wgsl/groups.wgsl"),
        "rope" => include_str!("../wgsl/rope.wgsl"),
        "rope_blocks" => include_str!("../wgsl/rope_blocks.wgsl"),
        "attention" => include_str!("../wgsl/attention.wgsl"),
        "flash" => include_str!("../wgsl/flash.wgsl"),
        "swiglu" => include_str!("../wgsl/swiglu.wgsl"),
        "router" => include_str!("../wgsl/router.wgsl"),
        "combine" => include_str!("../wgsl/combine.wgsl"),
        "segments" => include_str!("../wgsl/segments.wgsl"),
        "top" => include_str!("../wgsl/top.wgsl"),
        "stream" => include_str!("../wgsl/stream.wgsl"),
        _ => return None,
    })
}

impl Kernel {
    /// Entry point of every kernel.
    pub const ENTRY: &'static str = "main";
    /// Threads that share a matrix row in the cooperative matrix-vector kernels.
    pub const LANES: u32 = 16;
    /// Longest head of the attention kernels, in quads.
    pub const MAX_QUADS: u16 = 64;
    /// Rows a workgroup of the flash attention takes.
    pub const FLASH_QUERIES: u32 = 32;

    /// Threads of a workgroup.
    pub fn threads(self) -> u32 {
        match self {
            Self::MatVec { strategy: VectorStrategy::PerThread | VectorStrategy::Broadcast, .. }
            | Self::Norm(Strategy::PerThread)
            | Self::Router(Strategy::PerThread)
            | Self::Top(Strategy::PerThread)
            | Self::Attention { strategy: Strategy::PerThread, .. } => 8,
            Self::Fused { variant, .. } => variant.threads(),
            Self::Split { .. } => 256,
            Self::MatMul { tile, .. } => tile.threads().0 * tile.threads().1,
            Self::Groups(Strategy::PerThread) => 1,
            Self::Groups(Strategy::Workgroup) => 128,
            _ => 64,
        }
    }

    /// The fused kernel of the portable form.
    pub fn fused(format: Format, rows: u8, job: Job) -> Kernel {
        Self::Fused { format, rows, job, variant: KernelVariant::portable(job) }
    }

    /// Values that a thread of a fused kernel reads at a time.
    pub fn unit_values(self) -> u32 {
        if matches!(self, Self::Fused { format: Format::Q4_K | Format::Q6_K, .. }) { 32 } else { 16 }
    }

    /// Binds the weights as vectors of four words, because the format's blocks are whole ones.
    fn is_wide(self) -> bool {
        matches!(self, Self::Fused { format: Format::Q4_K, .. })
    }

    /// Matrix rows a workgroup of a matrix kernel covers.
    pub fn matrix_rows(self) -> u32 {
        match self {
            Self::MatMul { tile, .. } => tile.rows(),
            Self::Fused { variant, .. } => variant.all_results(),
            Self::MatVec { strategy: VectorStrategy::Workgroup, .. } => self.threads() / Self::LANES,
            Self::MatVec { format, rows, .. } => self.threads() * Self::rows_a_thread(format, rows),
            _ => self.threads(),
        }
    }

    /// Vectors a workgroup of a matrix kernel covers.
    pub fn vectors(self) -> u32 {
        match self {
            Self::MatMul { tile, .. } => tile.vectors(),
            Self::MatVec { rows, .. } => u32::from(rows),
            _ => 1,
        }
    }

    /// Keys that the flash attention brings into workgroup memory at a time: as many as fit, and a divisor of a page.
    fn flash_keys(quads: u16) -> u32 {
        match quads {
            ..=16 => 32,
            17..=32 => 16,
            _ => 8,
        }
    }

    /// Matrix rows that a thread of a lone matrix-vector kernel makes for so many vectors.
    fn rows_a_thread(format: Format, vectors: u8) -> u32 {
        // Longer kernels take software adapters minutes to compile.
        match (format, vectors) {
            (Format::Q6_K, 8) => 1,
            (Format::Q6_K, _) | (_, 8) => 2,
            _ => 4,
        }
    }

    /// The format of the weights it reads, if it reads any.
    pub fn format(self) -> Option<Format> {
        match self {
            Self::Embed(format)
            | Self::MatVec { format, .. }
            | Self::Fused { format, .. }
            | Self::MatMul { format, .. } => Some(format),
            _ => None,
        }
    }

    /// The type of the keys and values it writes or reads, if it does.
    pub fn kv_type(self) -> Option<KvCacheType> {
        match self {
            Self::Split { kv_type, .. }
            | Self::Rope { kv_type, .. }
            | Self::Attention { kv_type, .. }
            | Self::FlashAttention { kv_type, .. } => Some(kv_type),
            _ => None,
        }
    }

    /// Threads that the rotation takes for a head: one makes four values, and blocks come in pairs.
    pub fn rope_threads(kv_type: KvCacheType, head_dim: u32) -> u32 {
        if kv_type.is_quantized() { kv_type.scale_words(head_dim) * 2 * KvCacheType::BLOCK / 4 } else { head_dim / 4 }
    }

    /// Whether it looks values up in the [`crate::codebooks`]: they are its last storage binding.
    pub fn has_codebook(self) -> bool {
        self.format().is_some_and(|format| format.codebook_at().is_some())
    }

    /// The storage bindings, in order; they are numbered from 1 (0 is the uniform).
    pub fn bindings(self) -> Vec<Access> {
        let mut all = self.own_bindings();
        if self.has_codebook() {
            all.push(Access::Read);
        }
        all
    }

    /// The storage bindings without the codebooks.
    fn own_bindings(self) -> Vec<Access> {
        use Access::{Read, Write};
        match self {
            Self::Embed(_) | Self::Norm(_) => vec![Read, Read, Write],
            Self::MatVec { operand, .. } | Self::MatMul { operand, .. } => match operand {
                Operand::Plain => vec![Read, Read, Write],
                Operand::Bias => vec![Read, Read, Write, Read],
                Operand::Expert => vec![Read, Read, Write, Read, Read],
            },
            Self::Fused { job, .. } => match job {
                Job::Added => vec![Read, Read, Write],
                Job::Normed | Job::Gated => vec![Read, Read, Write, Read],
                Job::NormedBias => vec![Read, Read, Write, Read, Read],
                Job::GatedExpert | Job::ExpertSum => vec![Read, Read, Write, Read, Read, Read],
            },
            Self::Split { .. } => vec![Read, Read, Read, Read, Read, Write, Write],
            Self::Merge { .. } => vec![Read, Read, Write],
            Self::Groups(_) => vec![Read, Read, Write, Write],
            Self::Rope { qk_norm, factors, .. } => {
                let mut all = vec![Read, Read, Read, Write, Write, Write];
                if qk_norm {
                    all.extend([Read, Read]);
                }
                if factors {
                    all.push(Read);
                }
                all
            }
            Self::Attention { .. } | Self::FlashAttention { .. } => vec![Read, Read, Read, Read, Read, Write],
            Self::SwiGlu => vec![Read, Write],
            Self::Router(_) => vec![Read, Write, Write],
            Self::Combine => vec![Read, Read, Read, Read, Write],
            Self::Segments => vec![Read, Write],
            Self::Top(_) => vec![Read, Write, Write, Write],
            Self::Stream => vec![Read, Write],
        }
    }

    /// What replaces a kernel that computes wrongly: the barrier-free form, row by row, or the separate steps of a fused one.
    pub fn fallback(self) -> Option<Kernel> {
        match self {
            Self::Norm(Strategy::Workgroup) => Some(Self::Norm(Strategy::PerThread)),
            Self::Router(Strategy::Workgroup) => Some(Self::Router(Strategy::PerThread)),
            Self::Top(Strategy::Workgroup) => Some(Self::Top(Strategy::PerThread)),
            Self::Groups(Strategy::Workgroup) => Some(Self::Groups(Strategy::PerThread)),
            Self::MatVec { format, strategy: VectorStrategy::Workgroup | VectorStrategy::Broadcast, rows, operand } => {
                Some(Self::MatVec { format, strategy: VectorStrategy::PerThread, rows, operand })
            }
            Self::Fused { format, rows, job, variant } if variant != KernelVariant::portable(job) => {
                Some(Self::fused(format, rows, job))
            }
            Self::Fused { format, rows, job, .. } => {
                let operand = match job {
                    Job::NormedBias => Operand::Bias,
                    Job::GatedExpert | Job::ExpertSum => Operand::Expert,
                    Job::Normed | Job::Added | Job::Gated => Operand::Plain,
                };
                Some(Self::MatVec { format, strategy: VectorStrategy::Workgroup, rows, operand })
            }
            Self::Split { kv_type, quads } => Some(Self::Attention { kv_type, strategy: Strategy::Workgroup, quads }),
            Self::Merge { quads } => {
                Some(Self::Attention { kv_type: KvCacheType::F32, strategy: Strategy::Workgroup, quads })
            }
            Self::Attention { kv_type, strategy: Strategy::Workgroup, quads } => {
                Some(Self::Attention { kv_type, strategy: Strategy::PerThread, quads })
            }
            Self::MatMul { format, operand, tile } if tile.kind() != TileKind::PerThread => {
                Some(Self::MatMul { format, operand, tile: Tile::per_thread(format) })
            }
            Self::MatMul { format, operand, .. } => {
                let rows = if operand == Operand::Expert { 1 } else { 8 };
                Some(Self::MatVec { format, strategy: VectorStrategy::PerThread, rows, operand })
            }
            Self::FlashAttention { kv_type, quads } => {
                Some(Self::Attention { kv_type, strategy: Strategy::Workgroup, quads })
            }
            _ => None,
        }
    }

    /// A short name for reports, like `matvec Q4_K shares ×4`.
    pub fn name(self) -> String {
        let how = |strategy| if strategy == Strategy::Workgroup { "workgroup" } else { "per-thread" };
        let with = |operand| match operand {
            Operand::Plain => "",
            Operand::Bias => " bias",
            Operand::Expert => " expert",
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
            Self::Fused { format, rows, job, variant } => {
                let how = if variant == KernelVariant::portable(job) { String::new() } else { format!(" {variant}") };
                format!("fused {} {job:?} ×{rows}{how}", format.name())
            }
            Self::Split { kv_type, quads } => format!("attention split {kv_type:?} {}", u32::from(quads) * 4),
            Self::Merge { quads } => format!("attention merge {}", u32::from(quads) * 4),
            Self::Groups(strategy) => format!("groups {}", how(strategy)),
            Self::Rope { kv_type, pairs, qk_norm, factors } => format!(
                "rope {kv_type:?} {pairs:?}{}{}",
                if qk_norm { " norm" } else { "" },
                if factors { " factors" } else { "" }
            ),
            Self::Attention { kv_type, strategy, quads } => {
                format!("attention {kv_type:?} {} {}", how(strategy), u32::from(quads) * 4)
            }
            Self::FlashAttention { kv_type, quads } => format!("flash attention {kv_type:?} {}", u32::from(quads) * 4),
            Self::SwiGlu => "swiglu".into(),
            Self::Router(strategy) => format!("router {}", how(strategy)),
            Self::Combine => "combine".into(),
            Self::Segments => "segments".into(),
            Self::Top(strategy) => format!("top {}", how(strategy)),
            Self::Stream => "stream".into(),
        }
    }

    /// Whether its threads give each other what they read: the device must have subgroups.
    pub fn uses_subgroups(self) -> bool {
        match self {
            Self::MatVec { strategy, .. } => strategy == VectorStrategy::Broadcast,
            Self::MatMul { tile, .. } => matches!(tile.kind(), TileKind::Broadcast(_)),
            Self::Fused { variant, .. } => variant.shuffle > 1,
            _ => false,
        }
    }

    /// Its WGSL for a browser, which wants subgroups to be named; naga refuses that line.
    pub fn browser_source(self) -> String {
        let enabled = if self.uses_subgroups() { "enable subgroups;\n" } else { "" };
        format!("{enabled}{}", self.source())
    }

    /// Its WGSL.
    pub fn source(self) -> String {
        let (name, wgsl) = match self {
            Self::Embed(_) => ("embed", params::Embed::WGSL),
            Self::Norm(_) => ("norm", params::Norm::WGSL),
            Self::MatVec { .. } => ("matvec", params::MatVec::WGSL),
            Self::MatMul { tile, .. } if tile.kind() == TileKind::Shared => ("matmul", params::MatVec::WGSL),
            Self::MatMul { .. } => ("matmul_per_thread", params::MatVec::WGSL),
            Self::Fused { .. } => ("fused", params::Fused::WGSL),
            Self::Split { .. } => ("split", params::Split::WGSL),
            Self::Merge { .. } => ("merge", params::Split::WGSL),
            Self::Groups(Strategy::PerThread) => ("groups_per_thread", params::Groups::WGSL),
            Self::Groups(Strategy::Workgroup) => ("groups", params::Groups::WGSL),
            Self::Rope { kv_type, .. } if kv_type.is_quantized() => ("rope_blocks", params::Rope::WGSL),
            Self::Rope { .. } => ("rope", params::Rope::WGSL),
            Self::Attention { .. } => ("attention", params::Attention::WGSL),
            Self::FlashAttention { .. } => ("flash", params::Attention::WGSL),
            Self::SwiGlu => ("swiglu", params::SwiGlu::WGSL),
            Self::Router(_) => ("router", params::Router::WGSL),
            Self::Combine => ("combine", params::Combine::WGSL),
            Self::Segments => ("segments", params::Segments::WGSL),
            Self::Top(_) => ("top", params::Top::WGSL),
            Self::Stream => ("stream", params::Stream::WGSL),
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
        if let Self::Split { kv_type, quads }
        | Self::Attention { kv_type, quads, .. }
        | Self::FlashAttention { kv_type, quads } = self
        {
            let head_dim = u32::from(quads) * 4;
            define("HEAD_WORDS", kv_type.head_words(head_dim).to_string());
            define("SCALE_WORDS", kv_type.scale_words(head_dim).to_string());
        }
        match self {
            Self::Embed(format) => define("FORMAT", format.name().into()),
            Self::Norm(strategy) | Self::Top(strategy) => define("STRATEGY", format!("{strategy:?}")),
            Self::Router(strategy) => {
                define("STRATEGY", format!("{strategy:?}"));
                define("EXPERTS", MAX_EXPERTS.to_string());
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
                    ("LOADS", 4 * tile.vectors() / (x * y)),
                    ("UNROLLED", tile.unrolled()),
                ] {
                    define(name, value.to_string());
                }
                // Vectors that a read of all threads brings.
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
            Self::Fused { format, rows, job, variant } => {
                define("FORMAT", format.name().into());
                let (vectors, pairs, halves) =
                    (u32::from(rows), u32::from(variant.results), if job.gates() { 2 } else { 1 });
                let shuffle = u32::from(variant.shuffle);
                for (name, value) in [
                    ("ROWS", vectors),
                    ("PAIRS", pairs),
                    ("HALVES", halves),
                    ("PARTIALS", vectors * pairs * halves * self.threads()),
                    ("VECTOR_PARTIALS", vectors * self.threads()),
                    ("QUADS", self.unit_values() / 4),
                    ("SHUFFLE", shuffle),
                ] {
                    define(name, value.to_string());
                }
                if shuffle > 1 {
                    define("SHUFFLES", shuffle.ilog2().to_string());
                }
                let flags = [
                    ("SHARES", shuffle < KernelVariant::TEAM),
                    ("WIDE", self.is_wide()),
                    ("SHORT", format.block_values() < 16),
                    ("NORM", job.norms()),
                    ("BIAS", job == Job::NormedBias),
                    ("GATED", job.gates()),
                    ("EXPERT", job == Job::GatedExpert),
                    ("SUM", job == Job::ExpertSum),
                ];
                flags.into_iter().filter(|(_, on)| *on).for_each(|(name, _)| define(name, String::new()));
            }
            Self::Split { quads, .. } => {
                define("QUADS", quads.to_string());
                define("SPLIT", crate::SPLIT.to_string());
            }
            Self::Merge { quads } => {
                define("QUADS", quads.to_string());
                define("SPLIT", crate::SPLIT.to_string());
            }
            Self::Groups(_) => define("EXPERTS", MAX_EXPERTS.to_string()),
            Self::Rope { pairs, qk_norm, factors, .. } => {
                define("PAIRS", format!("{pairs:?}"));
                if qk_norm {
                    define("QK_NORM", String::new());
                }
                if factors {
                    define("FACTORS", String::new());
                }
            }
            Self::Attention { strategy, quads, .. } => {
                define("STRATEGY", format!("{strategy:?}"));
                define("QUADS", quads.to_string());
            }
            Self::FlashAttention { quads, .. } => {
                let keys = Self::flash_keys(quads);
                for (name, value) in [
                    ("QUADS", u32::from(quads)),
                    ("QUERIES", Self::FLASH_QUERIES),
                    ("KEYS", keys),
                    ("KT", keys / 8),
                    ("VT", u32::from(quads).div_ceil(8)),
                ] {
                    define(name, value.to_string());
                }
            }
            Self::SwiGlu | Self::Combine | Self::Segments | Self::Stream => {}
        }
        let text = template(name).expect("every kernel names an existing template");
        preprocess(text, &definitions, &template).expect("templates are checked for every variant by a test")
    }

    /// Every variant in use anywhere, with head widths `quads` for the attention kernels.
    pub fn all(quads: &[u16]) -> Vec<Kernel> {
        let strategies = [Strategy::PerThread, Strategy::Workgroup];
        let mut all = vec![Self::SwiGlu, Self::Combine, Self::Segments, Self::Stream];
        for format in Format::ALL {
            all.push(Self::Embed(format));
            for job in Job::ALL {
                let rows: &[u8] = if job.of_experts() { &[1] } else { &[1, 4] };
                all.extend(rows.iter().map(|&rows| Self::fused(format, rows, job)));
                // Forms have nothing to do with formats but for the words that one reads at a time.
                if [Format::Q4_K, Format::Q6_K].contains(&format) {
                    let variants: BTreeSet<KernelVariant> = [1, 4, 8, 16, 32]
                        .into_iter()
                        .flat_map(|subgroup| KernelVariant::candidates(job, subgroup))
                        .collect();
                    let variants = variants.into_iter().filter(|variant| *variant != KernelVariant::portable(job));
                    all.extend(variants.map(|variant| Self::Fused { format, rows: 1, job, variant }));
                }
            }
            for operand in [Operand::Plain, Operand::Bias, Operand::Expert] {
                // Tiles and formats have nothing to do with each other: one format shows every tile.
                let every = format == Format::Q4_K && operand != Operand::Expert;
                let tiles = if every { &Tile::CANDIDATES[..] } else { &[Tile::V64R64] };
                let grouped = operand == Operand::Expert;
                let broadcast = Lanes::ALL.map(|lanes| Tile::broadcast(format, lanes, grouped));
                let tiles = tiles.iter().copied().chain([Tile::per_thread(format)]).chain(broadcast);
                all.extend(tiles.map(|tile| Self::MatMul { format, operand, tile }));
                for strategy in [VectorStrategy::PerThread, VectorStrategy::Broadcast, VectorStrategy::Workgroup] {
                    let rows: &[u8] = match (operand, strategy) {
                        (Operand::Expert, _) => &[1],
                        (_, VectorStrategy::Workgroup | VectorStrategy::Broadcast) => &[1, 4],
                        (_, VectorStrategy::PerThread) => &[1, 4, 8],
                    };
                    all.extend(rows.iter().map(|&rows| Self::MatVec { format, strategy, rows, operand }));
                }
            }
        }
        for strategy in strategies {
            all.extend([Self::Norm(strategy), Self::Router(strategy), Self::Top(strategy), Self::Groups(strategy)]);
        }
        all.extend(quads.iter().map(|&quads| Self::Merge { quads }));
        for kv_type in KvCacheType::ALL {
            let quads: Vec<u16> = quads.iter().copied().filter(|&quads| kv_type.takes(u32::from(quads) * 4)).collect();
            for pairs in [Pairs::Adjacent, Pairs::Halves] {
                // Both together would be more storage bindings than every device has; no model has them.
                for (qk_norm, factors) in [(false, false), (false, true), (true, false)] {
                    all.push(Self::Rope { kv_type, pairs, qk_norm, factors });
                }
            }
            all.extend(quads.iter().map(|&quads| Self::Split { kv_type, quads }));
            all.extend(quads.iter().map(|&quads| Self::FlashAttention { kv_type, quads }));
            for strategy in strategies {
                all.extend(quads.iter().map(|&quads| Self::Attention { kv_type, strategy, quads }));
            }
        }
        all
    }
}
