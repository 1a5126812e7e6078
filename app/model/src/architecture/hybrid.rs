//! What architectures with recurrent blocks share.

use super::standard::MAX_WIDTH;
use super::{Description, Source};
use crate::{ModelError, RecurrentSpec, Rule, StateSpaceSpec, TokenMixerSpec};

/// Most positions that a convolution sees.
const MAX_TAPS: u32 = 16;
/// Widest head or state of a recurrence: a workgroup has a thread for each value.
const MAX_HEAD: u32 = 256;

impl Source<'_> {
    /// Positions that a convolution sees.
    pub(super) fn taps(&self, key: &str) -> Result<u32, ModelError> {
        let taps = self.keys.size(key, MAX_TAPS)?;
        if taps < 2 { Err(self.keys.bad(key, taps, "it must be at least 2")) } else { Ok(taps) }
    }

    /// A number of heads or of values.
    pub(super) fn width(&self, key: &str) -> Result<u32, ModelError> {
        self.keys.size(key, MAX_WIDTH)
    }

    /// The width of `heads` heads.
    pub(super) fn head_dim(&self, key: &str, heads: u32) -> Result<u32, ModelError> {
        let dim = self.keys.size(key, MAX_HEAD)?;
        let fits = u64::from(dim) * u64::from(heads) <= u64::from(MAX_WIDTH) && dim.is_multiple_of(4);
        if fits { Ok(dim) } else { Err(self.keys.bad(key, dim, "it must be a multiple of 4 and fit the model")) }
    }

    /// Which blocks have key heads, and so attend.
    pub(super) fn attends(&self, blocks: usize) -> Result<Vec<bool>, ModelError> {
        let keys = &self.keys;
        let heads = keys.metadata.u32_per_block(&keys.key("attention.head_count_kv"), blocks)?;
        Ok(heads.into_iter().map(|heads| heads > 0).collect())
    }

    /// The state space (Mamba 2) of a model's recurrent blocks.
    pub(super) fn state_space(&self) -> Result<RecurrentSpec, ModelError> {
        let keys = &self.keys;
        let (heads, groups) = (self.width("ssm.time_step_rank")?, self.width("ssm.group_count")?);
        let inner = self.width("ssm.inner_size")?;
        if heads % groups != 0 || inner % heads != 0 || inner / heads > MAX_HEAD || !(inner / groups).is_multiple_of(4)
        {
            return Err(keys.bad("ssm.inner_size", inner, format!("{heads} heads in {groups} groups must divide it")));
        }
        let state = self.head_dim("ssm.state_size", groups)?;
        let space = StateSpaceSpec { heads, head_dim: inner / heads, groups, state };
        Ok(RecurrentSpec { taps: self.taps("ssm.conv_kernel")?, conv_bias: true, rule: Rule::StateSpace(space) })
    }
}

impl Description {
    /// Replaces the token mixer of some blocks by a recurrence.
    pub(super) fn set_recurrent(&mut self, mixer: &RecurrentSpec, is_recurrent: impl Fn(usize) -> bool) {
        for (number, block) in self.spec.blocks.iter_mut().enumerate() {
            if is_recurrent(number) {
                block.token_mixer = TokenMixerSpec::Recurrent(mixer.clone());
            }
        }
    }
}
