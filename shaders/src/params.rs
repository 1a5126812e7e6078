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
        /// First table row in this binding.
        first: u32,
        /// Table rows in this binding.
        rows: u32,
        /// Bytes per table row.
        row_bytes: u32,
        /// Values per table row.
        cols: u32,
        /// 16-value chunks in a table row; the last one may be shorter.
        chunks: u32,
        /// Factor of the values.
        scale: f32,
    }
    /// RMSNorm in place of a part of each row.
    NormPart {
        /// Rows.
        n: u32,
        /// Quads of the part.
        width: u32,
        /// Quads from one row to the next.
        stride: u32,
        /// First quad of the part in a row.
        offset: u32,
        /// Parts of a row, one after another, each with a gain of its own.
        groups: u32,
        /// Epsilon, added to the mean square.
        epsilon: f32,
    }
    /// The output of a half of a block, added to the hidden vectors.
    Residual {
        /// Rows.
        n: u32,
        /// Quads per row.
        width: u32,
        /// Factor of the output.
        scale: f32,
        /// Epsilon of the norm.
        epsilon: f32,
    }
    /// The end of a block whose experts have a network beside them.
    Beside {
        /// Quads per row.
        width: u32,
        /// Factor of the addition to the hidden vectors.
        scale: f32,
        /// Epsilon of the norms.
        epsilon: f32,
        /// 1: the block has a factor.
        scaled: u32,
    }
    /// RMSNorm of batch rows `first..first + n`, written to rows `0..n`.
    Norm {
        /// Batch rows.
        n: u32,
        /// First batch row to read.
        first: u32,
        /// Quads (4 values) per row.
        width: u32,
        /// Epsilon, added to the mean square.
        epsilon: f32,
        /// Factor of the result.
        factor: f32,
    }
    /// Vectors in blocks of 32 signed bytes.
    Quantize {
        /// Vectors.
        n: u32,
        /// Blocks per vector.
        blocks: u32,
        /// Quads from one input vector to the next.
        x_stride: u32,
        /// Groups of four words from one output vector to the next.
        y_stride: u32,
    }
    /// Vectors as half floats.
    Halve {
        /// Vectors.
        n: u32,
        /// Quads per vector.
        quads: u32,
        /// Quads from one input vector to the next.
        x_stride: u32,
        /// Quads from one output vector to the next.
        y_stride: u32,
    }
    /// Matrix times vectors, optionally with the matrices of chosen experts.
    MatVec {
        /// Matrix rows in this binding.
        rows: u32,
        /// Bytes per matrix row.
        row_bytes: u32,
        /// Values per matrix row.
        cols: u32,
        /// 16-value chunks per matrix row.
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
        /// Bytes per matrix row.
        row_bytes: u32,
        /// Values per matrix row.
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
        /// The same for the second matrix.
        y_1: u32,
        /// The same for the third matrix.
        y_2: u32,
        /// Offset of the first matrix's biases; with experts, inside a slot of biases. Or the first vector's score.
        bias_0: u32,
        /// The same for the second matrix, or for up.
        bias_1: u32,
        /// The same for the third matrix.
        bias_2: u32,
        /// Bytes from a row of gate to the same row of up; wraps around if up comes first.
        up: u32,
        /// Experts in the block.
        experts: u32,
        /// (token, expert) pairs that share an input vector.
        used: u32,
        /// First slot in this binding.
        slot_first: u32,
        /// Slots in this binding.
        slot_count: u32,
        /// Bytes from one slot to the next.
        expert_bytes: u32,
        /// Factor of the experts' weighted sum, of the normalized vectors, or of what is multiplied by a score.
        scale: f32,
        /// Biases from one slot to the next; those of all slots are in the binding.
        bias_stride: u32,
    }
    /// Split decode attention, and merging the splits.
    Split {
        /// Query heads.
        heads: u32,
        /// Key and value heads.
        kv_heads: u32,
        /// Scale of the attention scores.
        scale: f32,
        /// Splits that fit in the buffer of parts.
        splits: u32,
        /// Positions that a query sees, for kernels with a window.
        window: u32,
        /// Soft cap of the scores, for kernels with one.
        cap: f32,
        /// 1: windows are chunks, which begin at multiples of their length.
        chunked: u32,
    }
    /// Lists of (token, expert) pairs by expert.
    Groups {
        /// Experts in the block.
        experts: u32,
        /// (token, expert) pairs.
        pairs: u32,
        /// Tiles to fill or clear.
        tiles: u32,
        /// Pairs per tile.
        tile: u32,
    }
    /// Norm and RoPE of queries and keys; stores keys and values in the KV cache.
    Rope {
        /// Batch rows.
        n: u32,
        /// Query heads.
        heads: u32,
        /// Key and value heads.
        kv_heads: u32,
        /// Values per head.
        head_dim: u32,
        /// Heads of values in a row of the input: as many as of keys, or none.
        value_heads: u32,
        /// First rotated value of a head.
        start: u32,
        /// Rotated values per head.
        dims: u32,
        /// Epsilon of the query and key norms.
        epsilon: f32,
        /// Factor of the rotated values.
        magnitude: f32,
        /// Growth of the queries: factor of the logarithm.
        growth: f32,
        /// Positions from one factor of the queries to the next; 0 for no growth.
        step: u32,
        /// With gains and factors in one binding: first value of the queries' gain.
        q_gain: u32,
        /// The same of the keys' gain.
        k_gain: u32,
        /// The same of the factors.
        factors: u32,
        /// Added to the position before it is divided into steps.
        shift: u32,
        /// 1: the norms of queries and keys have no gain; what is bound for gains is not read.
        gainless: u32,
        /// 1: kernels that normalize queries and keys normalize values too, without a gain.
        value_norm: u32,
        /// 1: each query head is followed by its gate.
        gated: u32,
    }
    /// Softmax attention.
    Attention {
        /// Batch rows.
        n: u32,
        /// Query heads.
        heads: u32,
        /// Key and value heads.
        kv_heads: u32,
        /// Scale of the attention scores.
        scale: f32,
        /// Positions that a query sees, for kernels with a window.
        window: u32,
        /// Soft cap of the scores, for kernels with one.
        cap: f32,
        /// 1: windows are chunks, which begin at multiples of their length.
        chunked: u32,
    }
    /// The gates of the query heads.
    QueryGates {
        /// Batch rows.
        n: u32,
        /// Query heads.
        heads: u32,
        /// Values per head.
        head_dim: u32,
        /// Values from one row to the next.
        stride: u32,
    }
    /// The input of a block, gated.
    GateInput {
        /// Quads (4 values) of gates in all.
        quads: u32,
        /// Quads of gates per row.
        width: u32,
        /// Quads of inputs per row.
        stride: u32,
        /// First quad of the block's input in a row.
        offset: u32,
    }
    /// Causal convolution with a state.
    Conv {
        /// Channels.
        channels: u32,
        /// Values from one row to the next.
        stride: u32,
        /// First channel in a row.
        offset: u32,
        /// Values from one slot of state to the next.
        slot: u32,
    }
    /// Recurrence of heads over rows.
    Scan {
        /// Batch rows.
        n: u32,
        /// Heads.
        heads: u32,
        /// Key heads, or groups of heads.
        shared_heads: u32,
        /// 1: consecutive heads share one of them.
        grouped: u32,
        /// Values from one row to the next.
        stride: u32,
        /// First value of what is written to the state in a row: keys.
        writes: u32,
        /// The same of what the state is read by: queries.
        reads: u32,
        /// The same of the heads' values.
        values: u32,
        /// The same of the gates.
        gate: u32,
        /// The same of the heads' numbers: beta and alpha, or time steps.
        beta: u32,
        /// Values from one slot of state to the next.
        slot: u32,
        /// First value of the heads' state in a slot.
        tail: u32,
        /// Epsilon of the norms.
        epsilon: f32,
    }
    /// Activation.
    Glu {
        /// Quads of values.
        quads: u32,
    }
    /// Expert router.
    Router {
        /// Batch rows.
        n: u32,
        /// Experts in the block.
        experts: u32,
        /// Experts per token.
        used: u32,
        /// 1: divide the chosen experts' weights by their sum.
        normalize: u32,
    }
    /// Expert router, and RMSNorm of the hidden vectors.
    Route {
        /// Batch rows.
        n: u32,
        /// Experts in the block.
        experts: u32,
        /// Experts per token.
        used: u32,
        /// 1: divide the chosen experts' weights by their sum.
        normalize: u32,
        /// Quads (4 values) per hidden vector.
        width: u32,
        /// Epsilon, added to the mean square.
        epsilon: f32,
        /// 1: the experts' weights have factors.
        scaled: u32,
    }
    /// Expert router by any rule.
    Choose {
        /// Batch rows.
        n: u32,
        /// Experts in the block.
        experts: u32,
        /// Experts per token.
        used: u32,
        /// 1: divide the chosen experts' probabilities by their sum.
        normalize: u32,
        /// Factor of the weights.
        scale: f32,
        /// Groups of the experts; 0 or 1 for none.
        groups: u32,
        /// Groups that take part.
        used_groups: u32,
    }
    /// Biases of the chosen experts.
    ExpertBias {
        /// (token, expert) pairs.
        pairs: u32,
        /// Values per pair.
        width: u32,
        /// Experts in the block.
        experts: u32,
        /// First slot in this binding.
        slot_first: u32,
        /// Slots in this binding.
        slot_count: u32,
        /// Values from one slot to the next.
        stride: u32,
        /// First value of the bias in its slot.
        inside: u32,
    }
    /// Weighted sum of expert outputs.
    Combine {
        /// Batch rows.
        n: u32,
        /// Quads (4 values) per row.
        width: u32,
        /// Experts in the block.
        experts: u32,
        /// Experts per token.
        used: u32,
        /// Factor of the sum.
        scale: f32,
        /// 1: add to the output instead of overwriting it.
        add: u32,
        /// 0: the outputs have no weights.
        weighted: u32,
    }
    /// Factors of rows or of experts.
    ScaleBy {
        /// Values to multiply.
        count: u32,
        /// Factors.
        factors: u32,
        /// Values per factor; without meaning for experts.
        row: u32,
    }
    /// Scale and soft cap of logits.
    ScaleLogits {
        /// Logits.
        count: u32,
        /// Their factor.
        scale: f32,
        /// Soft cap, 0 for none.
        cap: f32,
    }
    /// Biases of a few logits of each row.
    BiasLogits {
        /// Batch rows.
        n: u32,
        /// Biased row of batch row 0.
        first: u32,
        /// Logits per row.
        vocabulary: u32,
        /// Rows that may have biases.
        rows: u32,
        /// Pairs of a row, at most.
        most: u32,
    }
    /// Which logits of each row may be chosen.
    MaskLogits {
        /// Batch rows.
        n: u32,
        /// Masked row of batch row 0.
        first: u32,
        /// Logits per row.
        vocabulary: u32,
        /// Rows that may have masks.
        rows: u32,
        /// Words of a row.
        words: u32,
    }
    /// Log-sum-exp of each row.
    LogSumExp {
        /// Batch rows.
        n: u32,
        /// Output row of batch row 0.
        first: u32,
        /// Logits per row.
        vocabulary: u32,
    }
    /// Largest logit of each segment.
    Segments {
        /// Batch rows.
        n: u32,
        /// Logits per row.
        vocabulary: u32,
        /// Segments per row.
        segments: u32,
    }
    /// Best candidates.
    Top {
        /// Batch rows.
        n: u32,
        /// Output row of batch row 0.
        first: u32,
        /// Logits per row.
        vocabulary: u32,
        /// Segments per row.
        segments: u32,
        /// Candidates per row.
        count: u32,
    }
    /// Sampling of a token.
    Sample {
        /// Candidates.
        count: u32,
    }
    /// Measurement of the arithmetic rate.
    Peak {
        /// Rounds of 32 steps per thread.
        rounds: u32,
    }
    /// Memory bandwidth measurement.
    Stream {
        /// Tiles of four vectors per thread to read.
        tiles: u32,
    }
}
