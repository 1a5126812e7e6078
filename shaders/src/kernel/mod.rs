//! Variants: a typed key for each, its source, bindings and workgroup.

use potluck_plan::KvCacheType;

use crate::{Format, KernelVariant, Tile, TileKind};

mod all;
mod name;
mod source;

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
        /// Among which threads. All variants give the same bits.
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
    /// Rotation: rows, qkv, RoPE table, q, keys, values; then both gains; then factors.
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

impl Kernel {
    /// Entry point of every kernel.
    pub const ENTRY: &'static str = "main";
    /// Threads that share a matrix row in the workgroup matrix-vector kernels.
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

    /// The fused kernel of the portable variant.
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

    /// Matrix rows that a thread of a per-thread matrix-vector kernel makes for so many vectors.
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

    /// What replaces a kernel that computes wrongly: the barrier-free variant, row by row, or the separate steps of a fused one.
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

    /// Whether its threads give each other what they read: the device must have subgroups.
    pub fn uses_subgroups(self) -> bool {
        match self {
            Self::MatVec { strategy, .. } => strategy == VectorStrategy::Broadcast,
            Self::MatMul { tile, .. } => matches!(tile.kind(), TileKind::Broadcast(_)),
            Self::Fused { variant, .. } => variant.shuffle > 1,
            _ => false,
        }
    }
}
