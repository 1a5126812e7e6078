//! The metadata and tensors of each architecture, and the distribution of their values.

use super::mixture::Part;
use super::{Architecture, Mixture, Synthetic, tokenizer};
use crate::{GgufError, Metadata, TensorType, Value};

/// How a tensor's values are distributed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Values {
    /// Mean 0; the standard deviation is the number over the square root of the row length, so that outputs have about
    /// that deviation.
    Matrix(f32),
    /// Mean 0 and this standard deviation.
    Around0(f32),
    /// Mean 1 and this standard deviation.
    Around1(f32),
    /// Frequency divisors that rise from 1 to 8 along the head.
    RopeFactors,
}

impl Synthetic {
    /// Sets all metadata.
    pub(super) fn describe(&self, metadata: &mut Metadata) -> Result<(), GgufError> {
        let architecture = self.architecture.key();
        metadata.insert("general.architecture", Value::from(architecture));
        metadata
            .insert("general.name", Value::String(format!("synthetic {} {}", self.architecture.name(), self.types())));
        metadata.insert("general.license", Value::from("CC0-1.0"));
        metadata.insert("general.quantization_version", Value::U32(2));
        let mut set = |key: &str, value: Value| metadata.insert(format!("{architecture}.{key}"), value);
        set("block_count", Value::U32(self.blocks));
        set("context_length", Value::U32(self.context));
        set("embedding_length", Value::U32(self.hidden));
        set("feed_forward_length", Value::U32(self.intermediate));
        set("attention.head_count", Value::U32(self.heads));
        set("attention.head_count_kv", Value::U32(self.kv_heads));
        set("attention.key_length", Value::U32(self.head_dim));
        set("attention.value_length", Value::U32(self.head_dim));
        set("attention.layer_norm_rms_epsilon", Value::F32(1e-5));
        set("rope.freq_base", Value::F32(self.rope_base));
        set("rope.dimension_count", Value::U32(self.head_dim));
        set("vocab_size", Value::U32(self.vocabulary));
        if self.architecture.has_experts() {
            set("expert_count", Value::U32(self.experts));
            set("expert_used_count", Value::U32(self.used));
            set("expert_feed_forward_length", Value::U32(self.intermediate));
        }
        tokenizer::describe(metadata, self.vocabulary, self.architecture.pre_tokenizer())
    }

    /// The name of the file type.
    fn types(&self) -> &'static str {
        match self.mixture {
            Mixture::Uniform => self.weights.name(),
            Mixture::Q4_K_M => "Q4_K_M",
        }
    }

    /// Name, type, dimensions and value distribution of each tensor, in file order.
    pub(super) fn tensors(&self) -> Vec<(String, TensorType, Vec<u64>, Values)> {
        let [hidden, inside, head_dim] = [self.hidden, self.intermediate, self.head_dim].map(u64::from);
        let [queries, keys] = [self.heads, self.kv_heads].map(|heads| u64::from(heads) * head_dim);
        let vocabulary = u64::from(self.vocabulary);
        let f32 = TensorType::F32;
        let experts = if self.architecture.has_experts() { self.experts } else { 0 };
        let kind = |part, cols, named| self.mixture.kind(part, self.blocks, experts, cols).unwrap_or(named);
        let matrix = |part, cols| kind(part, cols, self.weights);
        let mut tensors = Vec::new();
        let mut add = |name: String, kind, dims: &[u64], values| tensors.push((name, kind, dims.to_vec(), values));
        // Embedding rows have standard deviation 1. As an LM head they would give logits of deviation sqrt(hidden), so
        // a tied table is smaller: deviation 4 leaves a clear margin between the first and second token.
        let embedding = if self.tied { Values::Matrix(4.0) } else { Values::Around0(1.0) };
        let table = kind(Part::Embedding { tied: self.tied }, hidden, self.embedding);
        add("token_embd.weight".into(), table, &[hidden, vocabulary], embedding);
        if self.rope_factors {
            add("rope_freqs.weight".into(), f32, &[head_dim / 2], Values::RopeFactors);
        }
        for block in 0..self.blocks {
            let mut add =
                |name: &str, kind, dims: &[u64], values| add(format!("blk.{block}.{name}"), kind, dims, values);
            let norm = Values::Around1(0.1);
            add("attn_norm.weight", f32, &[hidden], norm);
            add("attn_q.weight", matrix(Part::Other, hidden), &[hidden, queries], Values::Matrix(1.5));
            add("attn_k.weight", matrix(Part::Key, hidden), &[hidden, keys], Values::Matrix(1.5));
            add("attn_v.weight", matrix(Part::Value { block }, hidden), &[hidden, keys], Values::Matrix(1.0));
            if self.architecture == Architecture::Qwen2 {
                add("attn_q.bias", f32, &[queries], Values::Around0(0.5));
                add("attn_k.bias", f32, &[keys], Values::Around0(0.5));
                add("attn_v.bias", f32, &[keys], Values::Around0(0.5));
            }
            if self.architecture.has_qk_norm() {
                add("attn_q_norm.weight", f32, &[head_dim], Values::Around1(0.2));
                add("attn_k_norm.weight", f32, &[head_dim], Values::Around1(0.2));
            }
            add("attn_output.weight", matrix(Part::AttentionOutput, queries), &[queries, hidden], Values::Matrix(1.0));
            add("ffn_norm.weight", f32, &[hidden], norm);
            let (suffix, experts): (&str, &[u64]) = if self.architecture.has_experts() {
                // Spread the routing probabilities, so that near ties between experts are rare.
                add("ffn_gate_inp.weight", self.router, &[hidden, self.experts.into()], Values::Matrix(2.0));
                ("_exps", &[self.experts.into()])
            } else {
                ("", &[])
            };
            for (name, part, cols, rows, gain) in [
                ("ffn_gate", Part::Other, hidden, inside, 1.5),
                ("ffn_up", Part::Other, hidden, inside, 1.0),
                ("ffn_down", Part::Down { block }, inside, hidden, 1.0),
            ] {
                let dims = [&[cols, rows], experts].concat();
                add(&format!("{name}{suffix}.weight"), matrix(part, cols), &dims, Values::Matrix(gain));
            }
        }
        add("output_norm.weight".into(), f32, &[hidden], Values::Around1(0.1));
        if !self.tied {
            let head = kind(Part::Head, hidden, self.head);
            add("output.weight".into(), head, &[hidden, vocabulary], Values::Matrix(4.0));
        }
        tensors
    }
}

/// Rises from 1 for the fastest pair to 8 for the slowest.
pub(super) fn rope_factors(pairs: u64) -> impl Iterator<Item = f32> {
    (0..pairs).map(move |pair| 1.0 + 7.0 * pair as f32 / (pairs - 1).max(1) as f32)
}
