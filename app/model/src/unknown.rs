//! Refuses metadata that may change what a model computes and that nothing here reads (decision 0051).

use potluck_gguf::{Array, Metadata, Value};

use crate::architecture::{Source, yarn_magnitude};
use crate::{Architecture, ModelError};

/// Sections (what precedes a key's first dot) that describe a file and do not change what its weights mean.
const SECTIONS: [&str; 9] =
    ["general", "tokenizer", "split", "quantize", "imatrix", "clip", "mradermacher", "duynt", "potluck"];
/// A publisher's own section with nothing but texts of these kinds is a note: `someone.quantized_by`.
const NOTES: [&str; 12] =
    ["at", "author", "by", "comment", "date", "description", "license", "name", "note", "on", "source", "url"];
/// Words of weights that are stored transformed. A key with one is refused wherever it stands.
const TRANSFORMS: [&str; 7] = ["hadamard", "quarot", "spinquant", "smoothquant", "convrot", "rotation", "rotated"];

/// An architecture's own keys that have no effect on text: sizes that the tensors' shapes repeat, hints for other programs, and
/// what concerns pictures only.
const WITHOUT_EFFECT: [&str; 16] = [
    "vocab_size",
    // Judged with the kind of the file.
    "pooling_type",
    "tensor_data_layout",
    "attention.layer_norm_epsilon",
    // Without a place in the architecture a window limits the context instead.
    "attention.sliding_window_pattern",
    "decoder_start_token_id",
    // All sections of text have the same position.
    "rope.dimension_sections",
    "n_deepstack_layers",
    "deepstack_mapping",
    "rope.scaling.finetuned",
    // Which blocks have experts, and how wide they are, is read from the tensors.
    "leading_dense_block_count",
    "interleave_moe_layer_step",
    "moe_every_n_layers",
    "expert_shared_count",
    "expert_shared_feed_forward_length",
    "ssm.inner_size",
];
/// llama.cpp's defaults, which it writes to every file that it saves, whatever the architecture reads.
const SAVED: [(&str, f32); 9] = [
    ("attn_logit_softcapping", 50.0),
    ("final_logit_softcapping", 30.0),
    ("router_logit_softcapping", 30.0),
    ("expert_group_scale", 0.05),
    ("token_shift_count", 2.0),
    ("attention.rope_pattern", 1.0),
    ("attention.indexer.kpool_select_tail", 1.0),
    ("kda.gate_lower_bound", f32::NEG_INFINITY),
    // Of blocks with a window, where there are none.
    ("rope.freq_base_swa", 10_000.0),
];
/// Parts of a model that work on pictures or sound. Their tensors are refused by name.
const OTHER_SENSES: [&str; 3] = ["vision.", "audio.", "mm."];
/// Keys whose neutral value is one, by their last word.
const FACTORS: [&str; 4] = ["scale", "factor", "alpha", "norm"];
/// A key that must repeat another one, if it is not read.
const SAME_AS: [(&str, &str); 5] = [
    ("rope.freq_base_swa", "rope.freq_base"),
    ("rope.dimension_count_swa", "rope.dimension_count"),
    ("attention.key_length_swa", "attention.key_length"),
    // Ollama's name.
    ("attention.head_dim", "attention.key_length"),
    ("attention.value_length_swa", "attention.value_length"),
];

/// Refuses sections that may change what the weights mean.
///
/// # Errors
/// [`ModelError::UnknownKey`] with the first key of such a section.
pub(crate) fn check_sections(metadata: &Metadata) -> Result<(), ModelError> {
    let architecture = metadata.str("general.architecture").unwrap_or_default();
    let known = |key: &str| {
        let section = key.split('.').next().unwrap_or(key);
        section == architecture || SECTIONS.contains(&section)
    };
    let bad = metadata.iter().find(|(key, value)| {
        let transforms = TRANSFORMS.iter().any(|word| key.to_lowercase().contains(word)) && !is_neutral(key, value);
        transforms || !(known(key) || is_note(key, value))
    });
    match bad {
        None => Ok(()),
        Some((key, _)) => Err(ModelError::UnknownKey { key: key.to_string() }),
    }
}

/// Refuses keys of the architecture that nothing has read, unless they have no effect.
///
/// # Errors
/// [`ModelError::UnknownKey`] with the first such key.
pub(crate) fn check_own(source: &Source<'_>) -> Result<(), ModelError> {
    let keys = &source.keys;
    let prefix = keys.key("");
    let read = keys.read.borrow();
    let value_of = |key: &str| keys.metadata.get(&format!("{prefix}{key}"));
    let at_most_one = |key: &str| value_of(key).and_then(Value::as_u64).unwrap_or(0) <= 1;
    let no_experts = value_of("expert_count").is_none_or(|count| count.as_u64() == Some(0));
    let no_groups = at_most_one("expert_group_count");
    // Granite 4 without state spaces still has their sizes.
    let no_states = !source.tensors.names().any(|name| name.contains(".ssm_"));
    let is_yarn = value_of("rope.scaling.type") == Some(&Value::from("yarn"));
    let factor = value_of("rope.scaling.factor").and_then(Value::as_f32).unwrap_or(1.0);
    let no_windows = value_of("attention.sliding_window").is_none_or(|window| window.as_u64() == Some(0));
    let saved = keys.saved_by_llama_cpp();
    let is_default = |key: &str, value: &Value| {
        let number = value.as_f32().or(value.as_u64().map(|number| number as f32));
        SAVED.iter().any(|&(own, default)| own == key && number == Some(default))
            && (no_windows || key != "rope.freq_base_swa")
    };
    let has_effect = |key: &str, value: &Value| {
        let number = || value.as_f32().unwrap_or(f32::NAN);
        match key {
            _ if key.starts_with("rope.scaling.yarn_") && !is_yarn => false,
            // Any other share of YaRN is not computed; -1 is llama.cpp's "default".
            "rope.scaling.yarn_ext_factor" => ![1.0, -1.0].contains(&number()),
            // Written for Mistral's models. llama.cpp reads it in newer architectures only.
            "rope.scaling.yarn_log_multiplier" if keys.architecture == Architecture::Llama => {
                ![0.0, 1.0].contains(&number())
            }
            // What follows from the factor anyway.
            "rope.scaling.yarn_attn_factor" => {
                let usual = [1.0, yarn_magnitude(factor, 1.0)];
                !usual.iter().any(|usual| (number() - usual).abs() < 1e-4)
            }
            _ if WITHOUT_EFFECT.contains(&key) || OTHER_SENSES.iter().any(|prefix| key.starts_with(prefix)) => false,
            _ if key.starts_with("ssm.") && no_states => false,
            _ if key.starts_with("expert_group_") && no_groups => false,
            _ if key.starts_with("expert_") && no_experts => false,
            _ if SAME_AS.iter().any(|(own, other)| *own == key && value_of(other) == Some(value)) => false,
            _ if saved && is_default(key, value) => false,
            _ => !is_neutral(key, value),
        }
    };
    let own = keys.metadata.iter().filter_map(|(key, value)| Some((key, key.strip_prefix(&prefix)?, value)));
    let mut unread = own.filter(|(key, _, _)| !read.contains(*key));
    match unread.find(|(_, own, value)| has_effect(own, value)) {
        None => Ok(()),
        Some((key, ..)) => Err(ModelError::UnknownKey { key: key.to_string() }),
    }
}

fn is_note(key: &str, value: &Value) -> bool {
    let last = key.rsplit(['.', '_']).next().unwrap_or(key).to_lowercase();
    matches!(value, Value::String(_)) && NOTES.contains(&last.as_str())
}

/// A value that means "none": zero, false, nothing; one for a factor; true for what every model here does.
fn is_neutral(key: &str, value: &Value) -> bool {
    let last = key.rsplit(['.', '_']).next().unwrap_or(key);
    let is_factor = FACTORS.contains(&last);
    match value {
        Value::Bool(set) => !set || key == "attention.causal",
        Value::String(text) => text.is_empty() || text == "none",
        Value::Array(Array::Bool(flags)) => flags.iter().all(|flag| !flag),
        Value::Array(Array::F32(values)) => values.iter().all(|&value| value == 0.0),
        Value::Array(array) => array.to_u64s().is_some_and(|values| values.iter().all(|&value| value == 0)),
        number => number.as_f32().is_some_and(|value| value == 0.0 || (is_factor && value == 1.0)),
    }
}
