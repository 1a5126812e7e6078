//! LFM2, dense and with experts: short convolutions, and attention in some blocks.

use super::{Description, Source};
use crate::{ModelError, QkNorm, RecurrentSpec, RopePairs, Rule, Scoring, TensorRole};

pub(super) fn describe(source: &Source<'_>) -> Result<Description, ModelError> {
    let mut model = source.standard(RopePairs::Halves)?;
    model.attentions().for_each(|(_, attention)| attention.qk_norm = QkNorm::Head);
    let (taps, width) = (source.taps("shortconv.l_cache")?, model.spec.hidden);
    let convolution = RecurrentSpec { taps, conv_bias: false, rule: Rule::ShortConv { width } };
    let attends = source.attends(model.spec.blocks.len())?;
    model.set_recurrent(&convolution, |block| !attends[block]);
    let scoring = source.scoring(Scoring::Sigmoid)?;
    for (number, experts) in model.experts() {
        experts.router.scoring = scoring;
        experts.router.selection_bias = source.has_in(number, "exp_probs_b.bias");
    }
    model.names.extend([
        (TensorRole::OutputNorm, "token_embd_norm.weight"),
        (TensorRole::StateInput, "shortconv.in_proj.weight"),
        (TensorRole::ConvTaps, "shortconv.conv.weight"),
        (TensorRole::StateOutput, "shortconv.out_proj.weight"),
    ]);
    Ok(model)
}
