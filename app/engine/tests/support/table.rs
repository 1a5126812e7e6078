//! The table of supported models, `docs/models.md`, from the descriptions of files that were judged.

use std::collections::{BTreeMap, BTreeSet};

use potluck_model::{
    Activation, Architecture, AttentionSpec, ExpertsSpec, FeedForwardSpec, ModelSpec, QkNorm, RopeFactors, Rule,
    Scoring, TokenMixerSpec,
};
use potluck_shaders::Format;

const HEAD: &str = "\
# Models

Made by `app/engine/tests/architectures.rs`; `POTLUCK_WRITE=1 cargo test -p potluck-engine --test architectures table`
writes it anew.

A model runs if its architecture is in the first table and its weights have a type of the list. Vision, audio, embedding and
diffusion files are refused.
";

/// The page, from each judged file's description and the name of its answers.
pub fn page(judged: &[(ModelSpec, String)]) -> String {
    let mut page = HEAD.to_owned();
    page += "\n## Types of weights\n\n";
    page += &Format::ALL.map(|format| format!("`{}`", format.name())).join(", ");
    page += ".\n\nEvery type is compared with an outside dequantizer in every kind of kernel.\n";
    page += "\n## Architectures\n\nWhat they need besides attention with RoPE, RMSNorm before each half and SwiGLU. Each \
             is compared with\nllama.cpp position by position on small files of random weights (`e2e/golden`): on one \
             device, cut into\nstages where it may be cut, and with experts elsewhere.\n\n";
    page += "| architecture | operations | answers |\n|---|---|---|\n";
    let mut rows: BTreeMap<&str, (BTreeSet<&str>, BTreeSet<&str>)> = BTreeMap::new();
    for (spec, name) in judged {
        let (operations, names) = rows.entry(spec.architecture.name()).or_default();
        operations.extend(of_model(spec));
        names.insert(name);
    }
    let list = |items: BTreeSet<&str>| items.into_iter().collect::<Vec<_>>().join(", ");
    for (architecture, (operations, names)) in rows {
        page += &format!("| `{architecture}` | {} | {} |\n", list(operations), list(names));
    }
    page += "\n## Known, but refused\n\n| architectures | what is missing |\n|---|---|\n";
    for (names, operation) in Architecture::missing() {
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        page += &format!("| {} | {operation} |\n", names.join(", "));
    }
    let names: Vec<String> = Architecture::not_yet().iter().map(|name| format!("`{name}`")).collect();
    page += &format!("| {} | a description here that somebody has judged |\n", names.join(", "));
    page += "\nOther files are refused with what they are: LoRA adapters, importance matrices, `mmproj`, control vectors, \
             vocabularies, drafters,\nmodels of images, speech or embeddings, rerankers, and files that are not GGUF. Metadata \
             and tensors that may change the arithmetic\nand are not read here are refused by name \
             ([decision 0051](decisions/0051-what-is-not-read-is-refused.md)).\n";
    page
}

fn of_model(spec: &ModelSpec) -> BTreeSet<&'static str> {
    let mut all = BTreeSet::new();
    let mut add = |present: bool, name: &'static str| {
        all.extend(present.then_some(name));
    };
    let scales = spec.scales;
    add(scales.embedding != 1.0, "scaled embedding");
    add(scales.residual != 1.0, "scaled residuals");
    add(scales.logits != 1.0, "scaled logits");
    add(scales.logit_cap > 0.0, "soft cap of logits");
    add(scales.of_blocks, "factors of blocks");
    add(spec.block_inputs.is_some(), "embeddings per block");
    let mixers = || spec.blocks.iter().map(|block| &block.token_mixer);
    let widths: BTreeSet<u32> = mixers()
        .filter_map(|mixer| match mixer {
            TokenMixerSpec::Attention(attention) => Some(attention.head_dim),
            TokenMixerSpec::Recurrent(_) => None,
        })
        .collect();
    add(widths.len() > 1, "heads that differ by block");
    for block in &spec.blocks {
        match &block.token_mixer {
            TokenMixerSpec::Attention(attention) => of_attention(attention, &mut add),
            TokenMixerSpec::Recurrent(recurrent) => of_recurrence(&recurrent.rule, &mut add),
        }
        match &block.feed_forward {
            FeedForwardSpec::Dense(dense) => of_activation(dense.activation, &mut add),
            FeedForwardSpec::Experts(experts) => of_experts(experts, &mut add),
        }
    }
    all
}

fn of_attention(a: &AttentionSpec, add: &mut impl FnMut(bool, &'static str)) {
    let rope = &a.rope;
    add(a.kv_of.is_some(), "keys and values of an earlier block");
    add(a.latent.is_some(), "latent attention");
    add(a.qk_norm == QkNorm::Head, "norms of query and key heads");
    add(a.qk_norm == QkNorm::Row, "norms of whole queries and keys");
    add(a.qk_norm == QkNorm::Unit, "norms of query and key heads without a gain");
    add(a.value_norm, "norms of values");
    add(a.values_are_keys, "keys as values");
    add(a.qkv_bias, "biases of query, key and value");
    add(a.output_bias, "bias of attention's output");
    add(a.output_gate, "gate of attention's output");
    add(a.score_cap > 0.0, "soft cap of scores");
    add(a.window.is_some() && !a.chunked, "windows");
    add(a.chunked, "chunks");
    add(a.sinks, "sinks");
    add(a.norms.after, "norms after each half");
    add(!a.norms.before, "no norms before");
    add(rope.dims == 0, "blocks without RoPE");
    add(rope.dims > 0 && rope.dims < a.head_dim && a.latent.is_none(), "partial RoPE");
    add(rope.yarn.is_some(), "YaRN");
    add(rope.yarn.is_none() && rope.linear_scale != 1.0, "linear RoPE scaling");
    add(rope.factors == RopeFactors::Fixed, "RoPE factors");
    add(matches!(rope.factors, RopeFactors::ByContext { .. }), "LongRoPE");
    add(rope.temperature.is_some(), "queries that grow with the position");
}

fn of_recurrence(rule: &Rule, add: &mut impl FnMut(bool, &'static str)) {
    add(matches!(rule, Rule::ShortConv { .. }), "short convolutions");
    add(matches!(rule, Rule::DeltaNet(_)), "gated delta nets");
    add(matches!(rule, Rule::StateSpace(_)), "state spaces (Mamba 2)");
}

fn of_activation(activation: Activation, add: &mut impl FnMut(bool, &'static str)) {
    add(activation == Activation::GeGlu, "GeGLU");
    add(activation == Activation::ClampedSwiGlu, "clamped SwiGLU");
}

fn of_experts(experts: &ExpertsSpec, add: &mut impl FnMut(bool, &'static str)) {
    of_activation(experts.activation, add);
    let router = &experts.router;
    add(router.scoring == Scoring::Softmax, "experts by softmax");
    add(router.scoring == Scoring::Sigmoid, "experts by sigmoid");
    add(router.selection_bias, "bias of the choice");
    add(router.bias || experts.biases, "biases of router and experts");
    add(router.groups.is_some(), "groups of experts");
    add(router.scale != 1.0, "scaled weights");
    add(router.expert_scales, "factors of experts");
    add(experts.weigh_input, "weighted inputs of experts");
    add(experts.apart, "network beside the experts");
    add(experts.shared.is_some_and(|shared| !shared.gated) && !experts.apart, "shared expert");
    add(experts.shared.is_some_and(|shared| shared.gated), "gated shared expert");
}
