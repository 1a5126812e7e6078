//! What a fused decode kernel does besides its product.

use super::Glu;

/// What a fused decode kernel does besides the product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Job {
    /// Normalizes the vectors first.
    Normed,
    /// Normalizes the vectors first and adds a bias.
    NormedBias,
    /// Nothing, or adds the result to the output.
    Added,
    /// The same with a bias.
    AddedBias,
    /// Adds the result to the output, times the sigmoid of a score of its vector.
    Scored,
    /// Normalizes the vectors first and computes `silu(gate) · up` from two matrices.
    Gated,
    /// The same with `gelu(gate) · up`.
    GatedGelu,
    /// `silu(gate) · up` from two matrices of each chosen expert.
    GatedExpert,
    /// The same with `gelu(gate) · up`.
    GeluExpert,
    /// The same with biases and the activation of gpt-oss.
    ClampedExpert,
    /// A product with a matrix of each chosen expert.
    ExpertDown,
    /// The same with a bias of each.
    BiasedDown,
    /// [`Job::ExpertDown`] for all experts of a token; adds their weighted sum to the output or stores it.
    ExpertSum,
    /// The same with biases.
    BiasedSum,
}

impl Job {
    /// Every job.
    pub const ALL: [Job; 14] = [
        Self::Normed,
        Self::NormedBias,
        Self::Added,
        Self::AddedBias,
        Self::Scored,
        Self::Gated,
        Self::GatedGelu,
        Self::GatedExpert,
        Self::GeluExpert,
        Self::ClampedExpert,
        Self::ExpertDown,
        Self::BiasedDown,
        Self::ExpertSum,
        Self::BiasedSum,
    ];

    /// Whether the kernel normalizes its input vectors.
    pub fn norms(self) -> bool {
        matches!(self, Self::Normed | Self::NormedBias | Self::Gated | Self::GatedGelu)
    }

    /// Whether two matrices (gate and up) give one result.
    pub fn gates(self) -> bool {
        self.activation().is_some()
    }

    /// The activation of the gate, if two matrices give one result.
    pub fn activation(self) -> Option<Glu> {
        match self {
            Self::Gated | Self::GatedExpert => Some(Glu::Silu),
            Self::GatedGelu | Self::GeluExpert => Some(Glu::Gelu),
            Self::ClampedExpert => Some(Glu::Clamped),
            _ => None,
        }
    }

    /// Whether each matrix has a bias.
    pub fn is_biased(self) -> bool {
        use Job::*;
        matches!(self, NormedBias | AddedBias | ClampedExpert | BiasedDown | BiasedSum)
    }

    /// Whether the products of a token's experts are summed.
    pub fn sums(self) -> bool {
        matches!(self, Self::ExpertSum | Self::BiasedSum)
    }

    /// The last product of an expert alone, for the sum of all: it gives the same bits.
    pub fn alone(self) -> Job {
        match self {
            Self::ExpertSum => Self::ExpertDown,
            Self::BiasedSum => Self::BiasedDown,
            job => job,
        }
    }

    /// Whether the matrices belong to chosen experts.
    pub fn of_experts(self) -> bool {
        use Job::*;
        matches!(self, GatedExpert | GeluExpert | ClampedExpert | ExpertDown | BiasedDown | ExpertSum | BiasedSum)
    }
}
