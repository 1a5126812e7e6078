//! Qwen 3.5 and Qwen3-Next: gated delta nets, and attention with a gated output in every fourth block.

use super::{Description, Source};
use crate::{DeltaNetSpec, ModelError, QkNorm, RecurrentSpec, RopePairs, Rule, SharedSpec, TensorRole};

/// One block in so many attends, if the file does not say.
const INTERVAL: u32 = 4;

/// `qwen35` and `qwen35moe`.
pub(super) fn describe(source: &Source<'_>) -> Result<Description, ModelError> {
    describe_net(source, false)
}

/// `qwen3next`.
pub(super) fn describe_next(source: &Source<'_>) -> Result<Description, ModelError> {
    describe_net(source, true)
}

fn describe_net(source: &Source<'_>, grouped: bool) -> Result<Description, ModelError> {
    let keys = &source.keys;
    source.softmax_only()?;
    let mut model = source.standard(RopePairs::Halves)?;
    for (_, attention) in model.attentions() {
        attention.qk_norm = QkNorm::Head;
        attention.output_gate = true;
    }
    for (_, experts) in model.experts() {
        experts.router.normalize = true;
        experts.shared = source.shared(0)?.map(|shared| SharedSpec { gated: true, ..shared });
    }
    let blocks = model.spec.blocks.len();
    let interval = keys.nonzero_u32("full_attention_interval")?.unwrap_or(INTERVAL);
    let recurrent = keys.pattern("attention.recurrent_layers", blocks, interval)?;
    let (key_heads, heads) = (source.width("ssm.group_count")?, source.width("ssm.time_step_rank")?);
    let net = DeltaNetSpec { key_heads, heads, head_dim: source.head_dim("ssm.state_size", heads)?, grouped };
    if heads % key_heads != 0 {
        return Err(keys.bad("ssm.group_count", key_heads, format!("it must divide the {heads} value heads")));
    }
    let mixer = RecurrentSpec { taps: source.taps("ssm.conv_kernel")?, conv_bias: false, rule: Rule::DeltaNet(net) };
    model.set_recurrent(&mixer, |block| recurrent[block]);
    model.names.extend([
        (TensorRole::FeedForwardNorm, "post_attention_norm.weight"),
        (TensorRole::StateInput, "attn_qkv.weight"),
    ]);
    Ok(model)
}
