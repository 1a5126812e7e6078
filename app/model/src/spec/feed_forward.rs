//! The feed-forward half of a block: one network, or a router with experts.

use serde::{Deserialize, Serialize};

use super::Norms;

/// The feed-forward half of a block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum FeedForwardSpec {
    /// One network.
    Dense(DenseSpec),
    /// A router with experts.
    Experts(ExpertsSpec),
}

/// What a network does between its products.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Activation {
    /// `silu(gate) · up`.
    SwiGlu,
    /// `gelu(gate) · up`, with the tanh approximation.
    GeGlu,
    /// SwiGLU of gpt-oss: gate at most 7, up within ±7, `gate · sigmoid(1.702 · gate) · (up + 1)`.
    ClampedSwiGlu,
}

/// One network for all tokens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DenseSpec {
    /// Inner width.
    pub intermediate: u32,
    /// Activation.
    pub activation: Activation,
    /// Norms of the input and the output.
    pub norms: Norms,
}

impl DenseSpec {
    /// SwiGLU with a norm before it.
    pub fn new(intermediate: u32) -> Self {
        Self { intermediate, activation: Activation::SwiGlu, norms: Norms::BEFORE }
    }
}

/// Experts, their router and what runs beside them. A norm comes before them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExpertsSpec {
    /// Number of experts.
    pub count: u32,
    /// Experts per token (top-k).
    pub used: u32,
    /// Inner width of an expert.
    pub intermediate: u32,
    /// Activation of experts and the shared expert.
    pub activation: Activation,
    /// The experts' matrices have biases.
    pub biases: bool,
    /// How experts are chosen and weighted.
    pub router: RouterSpec,
    /// A network beside the experts that every token passes.
    pub shared: Option<SharedSpec>,
    /// The weight of the one expert per token multiplies its input instead of its output (Llama 4).
    pub weigh_input: bool,
    /// Experts and shared network each have norms of their own before and after them, and their sum has another one
    /// (Gemma 4).
    pub apart: bool,
}

impl ExpertsSpec {
    /// SwiGLU experts behind a softmax router.
    pub fn new(count: u32, used: u32, intermediate: u32, normalize: bool) -> Self {
        let router = RouterSpec { normalize, ..RouterSpec::default() };
        let activation = Activation::SwiGlu;
        let (biases, shared, weigh_input, apart) = (false, None, false, false);
        Self { count, used, intermediate, activation, biases, router, shared, weigh_input, apart }
    }
}

/// How a router chooses experts and weighs their outputs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RouterSpec {
    /// What makes probabilities of the scores.
    pub scoring: Scoring,
    /// Divide the chosen experts' probabilities by their sum. With a softmax, that is a softmax of the chosen.
    pub normalize: bool,
    /// Factor of the weights.
    pub scale: f32,
    /// The scores have a bias.
    pub bias: bool,
    /// Probabilities have a bias that counts for the choice only (DeepSeek-V3).
    pub selection_bias: bool,
    /// Groups of experts of which only the best take part.
    pub groups: Option<GroupsSpec>,
    /// The scores' input has a norm of its own and is divided by the root of its width (Gemma 4).
    pub own_norm: bool,
    /// Each expert has a learned factor of its weight.
    pub expert_scales: bool,
}

impl Default for RouterSpec {
    fn default() -> Self {
        Self {
            scoring: Scoring::Softmax,
            normalize: true,
            scale: 1.0,
            bias: false,
            selection_bias: false,
            groups: None,
            own_norm: false,
            expert_scales: false,
        }
    }
}

/// Groups of as many experts each (DeepSeek-V3, section 2.1.2). The sum of its two best experts decides whether a group
/// takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupsSpec {
    /// Number of groups.
    pub count: u32,
    /// Groups that take part.
    pub used: u32,
}

/// What makes probabilities of a router's scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Scoring {
    /// Softmax over all experts.
    Softmax,
    /// Each score's sigmoid.
    Sigmoid,
}

/// A network beside the experts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedSpec {
    /// Inner width.
    pub intermediate: u32,
    /// Its output is multiplied by the sigmoid of a score of its own (Qwen 2).
    pub gated: bool,
}
