//! Variants: a typed key for each, its source, bindings and workgroup.

use crate::params::{self, Params};
use crate::preprocess::{Definitions, preprocess};
use crate::{Format, MAX_EXPERTS};

/// How a kernel divides its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Strategy {
    /// Every thread on its own: no barriers, no workgroup memory. For software adapters, and as the fallback.
    Lone,
    /// A workgroup shares the work of a row.
    Coop,
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

/// Type of the KV cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// 32-bit floats.
    F32,
    /// Pairs of half floats in words.
    F16,
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
        strategy: Strategy,
        /// Vectors that share one reading of the weights; 1 for experts.
        rows: u8,
        /// Bias or expert.
        operand: Operand,
    },
    /// Tiled product: weights, in, out; then bias, or tiles and pairs.
    MatMul {
        /// Of the matrix.
        format: Format,
        /// Bias or expert.
        operand: Operand,
    },
    /// Pairs by expert: slots, chosen, tiles, pairs.
    Groups,
    /// Rotation: rows, qkv, turns, q, keys, values; then both gains; then factors.
    Rope {
        /// Of the cache.
        state: State,
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
        state: State,
        /// How.
        strategy: Strategy,
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
        "embed" => include_str!("../wgsl/embed.wgsl"),
        "norm" => include_str!("../wgsl/norm.wgsl"),
        "matvec" => include_str!("../wgsl/matvec.wgsl"),
        "matmul" => include_str!("../wgsl/matmul.wgsl"),
        "groups" => include_str!("../wgsl/groups.wgsl"),
        "rope" => include_str!("../wgsl/rope.wgsl"),
        "attention" => include_str!("../wgsl/attention.wgsl"),
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

    /// Threads of a workgroup.
    pub fn threads(self) -> u32 {
        match self {
            Self::MatVec { strategy: Strategy::Lone, .. }
            | Self::Norm(Strategy::Lone)
            | Self::Router(Strategy::Lone)
            | Self::Top(Strategy::Lone)
            | Self::Attention { strategy: Strategy::Lone, .. } => 8,
            _ => 64,
        }
    }

    /// Matrix rows a workgroup of a matrix kernel covers.
    pub fn matrix_rows(self) -> u32 {
        match self {
            Self::MatMul { .. } => crate::TILE,
            Self::MatVec { strategy: Strategy::Coop, .. } => self.threads() / Self::LANES,
            Self::MatVec { format, strategy: Strategy::Lone, rows, .. } => {
                self.threads() * Self::rows_a_thread(format, rows)
            }
            _ => self.threads(),
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

    /// The storage bindings, in order; they are numbered from 1 (0 is the uniform).
    pub fn bindings(self) -> Vec<Access> {
        use Access::{Read, Write};
        match self {
            Self::Embed(_) | Self::Norm(_) => vec![Read, Read, Write],
            Self::MatVec { operand, .. } | Self::MatMul { operand, .. } => match operand {
                Operand::Plain => vec![Read, Read, Write],
                Operand::Bias => vec![Read, Read, Write, Read],
                Operand::Expert => vec![Read, Read, Write, Read, Read],
            },
            Self::Groups => vec![Read, Read, Write, Write],
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
            Self::Attention { .. } => vec![Read, Read, Read, Read, Read, Write],
            Self::SwiGlu => vec![Read, Write],
            Self::Router(_) => vec![Read, Write, Write],
            Self::Combine => vec![Read, Read, Read, Read, Write],
            Self::Segments => vec![Read, Write],
            Self::Top(_) => vec![Read, Write, Write, Write],
            Self::Stream => vec![Read, Write],
        }
    }

    /// The same kernel in its slower, barrier-free form, if it has one.
    pub fn fallback(self) -> Option<Kernel> {
        match self {
            Self::Norm(Strategy::Coop) => Some(Self::Norm(Strategy::Lone)),
            Self::Router(Strategy::Coop) => Some(Self::Router(Strategy::Lone)),
            Self::Top(Strategy::Coop) => Some(Self::Top(Strategy::Lone)),
            Self::MatVec { format, strategy: Strategy::Coop, rows, operand } => {
                Some(Self::MatVec { format, strategy: Strategy::Lone, rows, operand })
            }
            Self::Attention { state, strategy: Strategy::Coop, quads } => {
                Some(Self::Attention { state, strategy: Strategy::Lone, quads })
            }
            _ => None,
        }
    }

    /// A short name for reports, like `matvec Q4_K coop ×4`.
    pub fn name(self) -> String {
        let how = |strategy| if strategy == Strategy::Coop { "coop" } else { "lone" };
        let with = |operand| match operand {
            Operand::Plain => "",
            Operand::Bias => " bias",
            Operand::Expert => " expert",
        };
        match self {
            Self::Embed(format) => format!("embed {}", format.name()),
            Self::Norm(strategy) => format!("norm {}", how(strategy)),
            Self::MatVec { format, strategy, rows, operand } => {
                format!("matvec {} {} ×{rows}{}", format.name(), how(strategy), with(operand))
            }
            Self::MatMul { format, operand } => format!("matmul {}{}", format.name(), with(operand)),
            Self::Groups => "groups".into(),
            Self::Rope { state, pairs, qk_norm, factors } => format!(
                "rope {state:?} {pairs:?}{}{}",
                if qk_norm { " norm" } else { "" },
                if factors { " factors" } else { "" }
            ),
            Self::Attention { state, strategy, quads } => {
                format!("attention {state:?} {} {}", how(strategy), u32::from(quads) * 4)
            }
            Self::SwiGlu => "swiglu".into(),
            Self::Router(strategy) => format!("router {}", how(strategy)),
            Self::Combine => "combine".into(),
            Self::Segments => "segments".into(),
            Self::Top(strategy) => format!("top {}", how(strategy)),
            Self::Stream => "stream".into(),
        }
    }

    /// Its WGSL.
    pub fn source(self) -> String {
        let (name, wgsl) = match self {
            Self::Embed(_) => ("embed", params::Embed::WGSL),
            Self::Norm(_) => ("norm", params::Norm::WGSL),
            Self::MatVec { .. } => ("matvec", params::MatVec::WGSL),
            Self::MatMul { .. } => ("matmul", params::MatVec::WGSL),
            Self::Groups => ("groups", params::Groups::WGSL),
            Self::Rope { .. } => ("rope", params::Rope::WGSL),
            Self::Attention { .. } => ("attention", params::Attention::WGSL),
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
        match self {
            Self::Embed(format) => define("FORMAT", format.name().into()),
            Self::Norm(strategy) | Self::Router(strategy) | Self::Top(strategy) => {
                define("STRATEGY", format!("{strategy:?}"));
            }
            Self::MatVec { format, strategy, rows, operand } => {
                define("FORMAT", format.name().into());
                define("STRATEGY", format!("{strategy:?}"));
                define("ROWS", rows.to_string());
                define("LANES", Self::LANES.to_string());
                let out = if strategy == Strategy::Lone { Self::rows_a_thread(format, rows) } else { 1 };
                define("OUT", out.to_string());
                define("PARTIALS", (u32::from(rows) * self.threads()).to_string());
                match operand {
                    Operand::Plain => {}
                    Operand::Bias => define("BIAS", String::new()),
                    Operand::Expert => define("EXPERT", String::new()),
                }
            }
            Self::MatMul { format, operand } => {
                define("FORMAT", format.name().into());
                match operand {
                    Operand::Plain => {}
                    Operand::Bias => define("BIAS", String::new()),
                    Operand::Expert => define("GROUPED", String::new()),
                }
            }
            Self::Groups => define("EXPERTS", MAX_EXPERTS.to_string()),
            Self::Rope { state, pairs, qk_norm, factors } => {
                define("STATE", format!("{state:?}"));
                define("PAIRS", format!("{pairs:?}"));
                if qk_norm {
                    define("QK_NORM", String::new());
                }
                if factors {
                    define("FACTORS", String::new());
                }
            }
            Self::Attention { state, strategy, quads } => {
                define("STATE", format!("{state:?}"));
                define("STRATEGY", format!("{strategy:?}"));
                define("QUADS", quads.to_string());
            }
            Self::SwiGlu | Self::Combine | Self::Segments | Self::Stream => {}
        }
        let text = template(name).expect("every kernel names an existing template");
        preprocess(text, &definitions, &template).expect("templates are checked for every variant by a test")
    }

    /// Every variant in use anywhere, with head widths `quads` for the attention kernels.
    pub fn all(quads: &[u16]) -> Vec<Kernel> {
        let strategies = [Strategy::Lone, Strategy::Coop];
        let states = [State::F32, State::F16];
        let mut all = vec![Self::Groups, Self::SwiGlu, Self::Combine, Self::Segments, Self::Stream];
        for format in Format::ALL {
            all.push(Self::Embed(format));
            for operand in [Operand::Plain, Operand::Bias, Operand::Expert] {
                all.push(Self::MatMul { format, operand });
                for strategy in strategies {
                    let rows: &[u8] = match (operand, strategy) {
                        (Operand::Expert, _) => &[1],
                        (_, Strategy::Coop) => &[1, 4],
                        (_, Strategy::Lone) => &[1, 4, 8],
                    };
                    all.extend(rows.iter().map(|&rows| Self::MatVec { format, strategy, rows, operand }));
                }
            }
        }
        for strategy in strategies {
            all.extend([Self::Norm(strategy), Self::Router(strategy), Self::Top(strategy)]);
        }
        for state in states {
            for pairs in [Pairs::Adjacent, Pairs::Halves] {
                // Both together would be more storage bindings than every device has; no model has them.
                for (qk_norm, factors) in [(false, false), (false, true), (true, false)] {
                    all.push(Self::Rope { state, pairs, qk_norm, factors });
                }
            }
            for strategy in strategies {
                all.extend(quads.iter().map(|&quads| Self::Attention { state, strategy, quads }));
            }
        }
        all
    }
}
