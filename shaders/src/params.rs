//! The kernels' uniforms. Each is declared only here: the WGSL declaration is generated from the Rust one.

use bytemuck::{Pod, Zeroable};

/// A kernel's uniform.
pub trait Params: Pod {
    /// The WGSL declaration, as `struct Params`.
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
        /// 16-value chunks in a table row; the last one may be shorter.
        chunks: u32,
    }
    /// RMSNorm of batch rows `first..first + n`, written to rows `0..n`.
    Norm {
        /// Batch rows.
        n: u32,
        /// First row read.
        first: u32,
        /// Quads of values in a row.
        width: u32,
        /// Added to the mean square.
        epsilon: f32,
    }
    /// Matrix times vectors, optionally with the matrices of chosen experts.
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
        /// Offset of the first matrix row's result in an output vector.
        y_offset: u32,
        /// 1: add to the output instead of overwriting it.
        add: u32,
        /// Experts in the block (length of the slot table).
        experts: u32,
        /// Experts per token.
        used: u32,
        /// 1: one input vector per (token, expert) pair; 0: one per token.
        by_pair: u32,
        /// First slot in this binding.
        slot_first: u32,
        /// Slots in this binding.
        slot_count: u32,
        /// Bytes from one slot's matrix to the next.
        expert_bytes: u32,
    }
    /// Matrix times vectors, fused with the steps before and after: up to three matrices, or those of chosen experts.
    Fused {
        /// Rows of all matrices in this binding together.
        rows: u32,
        /// Bytes of a matrix row.
        row_bytes: u32,
        /// Values in a matrix row.
        cols: u32,
        /// Units per matrix row; a thread reads one unit per step.
        units: u32,
        /// Vectors, or (token, expert) pairs with experts.
        n: u32,
        /// Quads from one input vector to the next.
        x_stride: u32,
        /// First input vector.
        x_first: u32,
        /// Values from one output vector to the next.
        y_stride: u32,
        /// 1: add to the output instead of overwriting it.
        add: u32,
        /// Epsilon of the norm.
        epsilon: f32,
        /// First byte of the first matrix.
        base_0: u32,
        /// First byte of the second matrix.
        base_1: u32,
        /// First byte of the third matrix.
        base_2: u32,
        /// One past the last row of the first matrix.
        end_0: u32,
        /// One past the last row of the second matrix.
        end_1: u32,
        /// Offset of the first matrix's results in an output vector.
        y_0: u32,
        /// Where the second one's do.
        y_1: u32,
        /// Where the third one's do.
        y_2: u32,
        /// Where the first matrix's biases begin.
        bias_0: u32,
        /// Where the second one's do.
        bias_1: u32,
        /// Where the third one's do.
        bias_2: u32,
        /// Bytes from a row of gate to the same row of up; wraps around if up comes first.
        up: u32,
        /// Experts in the block.
        experts: u32,
        /// Experts per token.
        used: u32,
        /// First slot in this binding.
        slot_first: u32,
        /// Slots in this binding.
        slot_count: u32,
        /// Bytes from one slot to the next.
        expert_bytes: u32,
    }
    /// Attention by splits of the context, and their merging.
    Split {
        /// Query heads.
        heads: u32,
        /// Key and value heads.
        kv_heads: u32,
        /// Factor of the scores.
        scale: f32,
        /// Splits that the buffer of parts has room for.
        splits: u32,
    }
    /// Lists of (token, expert) pairs by expert.
    Groups {
        /// Experts in the block.
        experts: u32,
        /// (token, expert) pairs.
        pairs: u32,
        /// Tiles to fill or clear.
        tiles: u32,
        /// Pairs a tile takes.
        tile: u32,
    }
    /// Norms and rotation of queries and keys, keys and values into the cache.
    Rope {
        /// Batch rows.
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
        /// Batch rows.
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
        /// Batch rows.
        n: u32,
        /// Experts in the block.
        experts: u32,
        /// Experts per token.
        used: u32,
        /// 1: divide the chosen weights by their sum.
        normalize: u32,
    }
    /// Weighted sum of experts.
    Combine {
        /// Batch rows.
        n: u32,
        /// Quads of values in a row.
        width: u32,
        /// Experts in the block.
        experts: u32,
        /// Experts per token.
        used: u32,
        /// 1: add to the output instead of overwriting it.
        add: u32,
    }
    /// Largest logit of each segment.
    Segments {
        /// Batch rows.
        n: u32,
        /// Logits of a row.
        vocabulary: u32,
        /// Segments of a row.
        segments: u32,
    }
    /// Best candidates.
    Top {
        /// Batch rows.
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
