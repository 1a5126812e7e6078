//! Token mixers with a state of fixed size instead of keys and values.

use potluck_plan::{Bytes, STATE_CONVERSATIONS, StateHistory};
use serde::{Deserialize, Serialize};

use crate::parts::{matrix, vector};
use crate::{ModelSpec, Part, TensorRole};

/// A recurrence: products of the normed input, a causal convolution, a rule, and a product that is added to the hidden
/// vector.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecurrentSpec {
    /// Positions that the convolution sees, the current one included.
    pub taps: u32,
    /// The convolution has a bias.
    pub conv_bias: bool,
    /// What follows the convolution.
    pub rule: Rule,
}

/// What a recurrence does after its convolution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Rule {
    /// Nothing (LFM2): the input is `[b | c | x]`, `b · x` is convolved, and `c` multiplies the result.
    ShortConv {
        /// Channels.
        width: u32,
    },
    /// Gated delta net (Yang et al. 2024, arXiv 2412.06464), with the sigmoid-weighted norm of Qwen 3.5.
    DeltaNet(DeltaNetSpec),
    /// State space (Mamba 2, Dao and Gu 2024, arXiv 2405.21060).
    StateSpace(StateSpaceSpec),
}

/// A gated delta net.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeltaNetSpec {
    /// Key and query heads.
    pub key_heads: u32,
    /// Value heads; a multiple of `key_heads`.
    pub heads: u32,
    /// Width of a head.
    pub head_dim: u32,
    /// Consecutive value heads share a key head (Qwen3-Next); otherwise every `key_heads`-th does. Files of the former
    /// also have one matrix for beta and alpha.
    pub grouped: bool,
}

/// A state space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateSpaceSpec {
    /// Heads.
    pub heads: u32,
    /// Width of a head.
    pub head_dim: u32,
    /// Groups of heads that share what they read and write; each is normalized by itself.
    pub groups: u32,
    /// Values of state for each value of a head.
    pub state: u32,
}

impl RecurrentSpec {
    /// Channels of the convolution.
    pub fn channels(&self) -> u32 {
        match &self.rule {
            Rule::ShortConv { width } => *width,
            Rule::DeltaNet(net) => (2 * net.key_heads + net.heads) * net.head_dim,
            Rule::StateSpace(space) => space.heads * space.head_dim + 2 * space.groups * space.state,
        }
    }

    /// Values that the products compute of a position.
    pub fn projected(&self) -> u32 {
        match &self.rule {
            Rule::ShortConv { width } => 3 * width,
            Rule::DeltaNet(net) => self.channels() + net.heads * net.head_dim + 2 * net.heads,
            Rule::StateSpace(space) => self.channels() + space.heads * space.head_dim + space.heads,
        }
    }

    /// Values that the last product reads.
    pub fn mixed(&self) -> u32 {
        match &self.rule {
            Rule::ShortConv { width } => *width,
            Rule::DeltaNet(net) => net.heads * net.head_dim,
            Rule::StateSpace(space) => space.heads * space.head_dim,
        }
    }

    /// Values of one state: the inputs that the convolution still sees, position by position, and then a matrix for each
    /// head.
    pub fn state_values(&self) -> u32 {
        let matrices = match &self.rule {
            Rule::ShortConv { .. } => 0,
            Rule::DeltaNet(net) => net.heads * net.head_dim * net.head_dim,
            Rule::StateSpace(space) => space.heads * space.head_dim * space.state,
        };
        self.tail_values() + matrices
    }

    /// Values of the convolution's part of a state.
    pub fn tail_values(&self) -> u32 {
        (self.taps - 1) * self.channels()
    }

    /// The matrices that the products read, and where each one's results begin in [`RecurrentSpec::projected`].
    pub fn inputs(&self) -> Vec<(TensorRole, u32)> {
        use TensorRole::*;
        match &self.rule {
            Rule::ShortConv { .. } | Rule::StateSpace(_) => vec![(StateInput, 0)],
            Rule::DeltaNet(net) => {
                let gate = self.channels();
                let beta = gate + net.heads * net.head_dim;
                let mut inputs = vec![(StateInput, 0), (StateGate, gate)];
                if net.grouped {
                    inputs.push((StateBetaAlpha, beta));
                } else {
                    inputs.extend([(StateBeta, beta), (StateAlpha, beta + net.heads)]);
                }
                inputs
            }
        }
    }

    /// The tensors of a block's token mixer.
    pub(crate) fn parts(&self, hidden: u32) -> Vec<Part> {
        use TensorRole::*;
        let mut parts = vec![vector(AttentionNorm, hidden)];
        match &self.rule {
            Rule::ShortConv { .. } | Rule::StateSpace(_) => parts.push(matrix(StateInput, self.projected(), hidden)),
            Rule::DeltaNet(net) => {
                parts.push(matrix(StateInput, self.channels(), hidden));
                parts.push(matrix(StateGate, net.heads * net.head_dim, hidden));
                if net.grouped {
                    parts.push(matrix(StateBetaAlpha, 2 * net.heads, hidden));
                } else {
                    parts.extend([matrix(StateBeta, net.heads, hidden), matrix(StateAlpha, net.heads, hidden)]);
                }
            }
        }
        parts.push(vector(ConvTaps, self.taps * self.channels()));
        parts.extend(self.conv_bias.then(|| vector(ConvBias, self.channels())));
        match &self.rule {
            Rule::ShortConv { .. } => {}
            Rule::DeltaNet(net) => {
                let norm = vector(StateNorm, net.head_dim);
                parts.extend([vector(TimeBias, net.heads), vector(DecayRate, net.heads), norm]);
            }
            Rule::StateSpace(space) => {
                let norm = vector(StateNorm, self.mixed());
                parts.extend([
                    vector(TimeBias, space.heads),
                    vector(DecayRate, space.heads),
                    vector(Skip, space.heads),
                ]);
                parts.push(norm);
            }
        }
        parts.push(matrix(StateOutput, hidden, self.mixed()));
        parts
    }
}

impl ModelSpec {
    /// Bytes of a block's recurrent states of all conversations; zero if it has none.
    pub fn state_bytes(&self, block: usize) -> Bytes {
        let slots = u64::from(STATE_CONVERSATIONS * StateHistory::SLOTS);
        Bytes(self.recurrent(block).map_or(0, |recurrent| slots * Self::state_slot_bytes(recurrent)))
    }

    /// Bytes from one state of a block to the next.
    pub fn state_slot_bytes(recurrent: &RecurrentSpec) -> u64 {
        (u64::from(recurrent.state_values()) * 4).next_multiple_of(256)
    }
}
