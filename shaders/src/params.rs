//! The uniforms of the kernels. Each is declared once, here: the WGSL declaration is made from the Rust one.

use bytemuck::{Pod, Zeroable};

/// A kernel's uniform.
pub trait Params: Pod {
    /// Its declaration in WGSL, as `struct Params`.
    const WGSL: &'static str;
}

macro_rules! params {
    ($($(#[$about:meta])* $name:ident { $($(#[$field_about:meta])* $field:ident: $kind:ident,)* })*) => { $(
        $(#[$about])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
        pub struct $name { $($(#[$field_about])* pub $field: $kind,)* }

        impl Params for $name {
            const WGSL: &'static str =
                concat!("struct Params {\n", $("    ", stringify!($field), ": ", stringify!($kind), ",\n",)* "}\n");
        }
    )* };
}

params! {
    /// Embedding lookup in rows `first..first + rows` of the table.
    Embed {
        /// Tokens.
        n: u32,
        /// First table row of this binding.
        first: u32,
        /// Table rows in this binding.
        rows: u32,
        /// Bytes of a table row.
        row_bytes: u32,
        /// Values in a table row.
        cols: u32,
        /// 16-value chunks in a table row, the last one perhaps short.
        chunks: u32,
    }
    /// RMSNorm of rows `first..first + n`, stored as rows `0..n`.
    Norm {
        /// Rows.
        n: u32,
        /// First row read.
        first: u32,
        /// Quads of values in a row.
        width: u32,
        /// Added to the mean square.
        epsilon: f32,
    }
    /// Matrix times vectors, also of chosen experts.
    MatVec {
        /// Matrix rows in this binding.
        rows: u32,
        /// Bytes of a matrix row.
        row_bytes: u32,
        /// Values in a matrix row.
        cols: u32,
        /// 16-value chunks in a matrix row.
        chunks: u32,
        /// Vectors.
        n: u32,
        /// Quads from one input vector to the next.
        x_stride: u32,
        /// Values from one output vector to the next.
        y_stride: u32,
        /// Where the first matrix row's result lies in an output vector.
        y_offset: u32,
        /// 1: add to what the output holds.
        add: u32,
        /// Experts of the block (length of the slot table).
        experts: u32,
        /// Experts per row.
        used: u32,
        /// 1: input vectors are numbered by (row, expert) pair, 0: by row.
        by_pair: u32,
        /// First slot in this binding.
        slot_first: u32,
        /// Slots in this binding.
        slot_count: u32,
        /// Bytes from one slot's matrix to the next.
        expert_bytes: u32,
    }
    /// Lists of (row, expert) pairs by expert.
    Groups {
        /// Experts of the block.
        experts: u32,
        /// (row, expert) pairs.
        pairs: u32,
        /// Tiles to fill or clear.
        tiles: u32,
    }
    /// Norms and rotation of queries and keys, keys and values into the cache.
    Rope {
        /// Rows.
        n: u32,
        /// Query heads.
        heads: u32,
        /// Key and value heads.
        kv_heads: u32,
        /// Values in a head.
        head_dim: u32,
        /// Rotated values of a head.
        dims: u32,
        /// Of the query and key norms.
        epsilon: f32,
    }
    /// Softmax attention.
    Attention {
        /// Rows.
        n: u32,
        /// Query heads.
        heads: u32,
        /// Key and value heads.
        kv_heads: u32,
        /// Factor of the scores.
        scale: f32,
    }
    /// SwiGLU.
    SwiGlu {
        /// Quads of values.
        quads: u32,
    }
    /// Choice of experts.
    Router {
        /// Rows.
        n: u32,
        /// Experts of the block.
        experts: u32,
        /// Experts per row.
        used: u32,
        /// 1: divide the chosen weights by their sum.
        normalize: u32,
    }
    /// Weighted sum of experts.
    Combine {
        /// Rows.
        n: u32,
        /// Quads of values in a row.
        width: u32,
        /// Experts of the block.
        experts: u32,
        /// Experts per row.
        used: u32,
        /// 1: add to what the output holds.
        add: u32,
    }
    /// Largest logit of each segment.
    Segments {
        /// Rows.
        n: u32,
        /// Logits of a row.
        vocabulary: u32,
        /// Segments of a row.
        segments: u32,
    }
    /// Best candidates.
    Top {
        /// Rows.
        n: u32,
        /// Row of the output that row 0 goes to.
        first: u32,
        /// Logits of a row.
        vocabulary: u32,
        /// Segments of a row.
        segments: u32,
        /// Candidates of a row.
        count: u32,
    }
    /// Measurement of the streaming rate.
    Stream {
        /// Quads of words to read.
        quads: u32,
    }
}
