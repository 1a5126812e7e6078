//! What the variants of a kernel differ in: how the work is divided, what is added, which rule applies.

/// How a kernel divides its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Strategy {
    /// Every thread works by itself: no barriers, no workgroup memory. For software adapters, and as the fallback.
    PerThread,
    /// The threads of a workgroup share each row.
    Workgroup,
}

/// How a matrix-vector kernel divides its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VectorStrategy {
    /// See [`Strategy::PerThread`].
    PerThread,
    /// Every thread computes its own rows, but the threads of a subgroup load the vectors together. Needs no barriers
    /// and gives the same bits as [`VectorStrategy::PerThread`]. The subgroup size must be a multiple of 4, with all
    /// threads active.
    Broadcast,
    /// See [`Strategy::Workgroup`].
    Workgroup,
}

/// What a matrix kernel adds to the product, or where it finds its matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operand {
    /// One matrix.
    Plain,
    /// One matrix and a bias.
    Bias,
    /// The matrix of a chosen expert, found through the slot table.
    Expert,
}

/// What a network does between its products.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Glu {
    /// SwiGLU: `silu(gate) · up`.
    Silu,
    /// `gelu(gate) · up`, with the tanh approximation.
    Gelu,
    /// gpt-oss: `gate · sigmoid(1.702 · gate) · (up + 1)` of clamped values.
    Clamped,
    /// `sigmoid(gate) · up`.
    Sigmoid,
}

/// What a causal convolution reads and what follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConvKind {
    /// `c · conv(b · x)`.
    Gated,
    /// `silu(conv(x))`, in place.
    Silu,
    /// The same with a bias.
    Biased,
}

/// The rule of a recurrence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ScanRule {
    /// Gated delta net.
    Delta,
    /// State space.
    Space,
}

/// What the output of a half of a block goes through before it is added to the hidden vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Addition {
    /// Nothing but a constant factor.
    Scaled,
    /// RMSNorm.
    Normed,
    /// The sigmoid of each row's score as a factor.
    Gated,
}

/// How a packed product sums the products of four bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dots {
    /// By `dot4I8Packed`.
    Packed,
    /// By shifts, for compilers without that function.
    Shifts,
}

/// Which values of a head RoPE rotates together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pairs {
    /// `(2i, 2i + 1)`.
    Adjacent,
    /// `(i, i + dims / 2)`.
    Halves,
}
