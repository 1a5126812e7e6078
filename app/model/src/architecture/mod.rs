//! Architectures: one file each turns metadata keys into a [`ModelSpec`]. `standard` holds what most of them share.

use potluck_plan::WeightUnit;
use serde::{Deserialize, Serialize};

use crate::keys::Keys;
use crate::tensors::Tensors;
use crate::{ModelError, ModelSpec, TensorRole};

mod hybrid;
mod standard;

pub(crate) use standard::yarn_magnitude;

mod bailingmoe2;
mod deepseek2;
mod dots1;
mod ernie4_5;
mod exaone4;
mod gemma2;
mod gemma3;
mod gemma4;
mod glm4;
mod glm4moe;
mod gpt_oss;
mod granite;
mod internlm2;
mod lfm2;
mod llama;
mod llama4;
mod minimax_m2;
mod mistral3;
mod olmo2;
mod olmoe;
mod phi3;
mod qwen2;
mod qwen2moe;
mod qwen3;
mod qwen35;
mod seed_oss;
mod smollm3;

/// A file's metadata and tensor directory, as an architecture reads them.
pub(crate) struct Source<'a> {
    pub(crate) keys: Keys<'a>,
    pub(crate) tensors: &'a Tensors<'a>,
}

/// What an architecture makes of a file.
pub(crate) struct Description {
    pub(crate) spec: ModelSpec,
    /// Names of tensors that differ from the usual ones, without `blk.N.`.
    pub(crate) names: Vec<(TensorRole, &'static str)>,
    /// Prefixes of tensors that are deliberately not used.
    pub(crate) left_out: Vec<String>,
}

impl Description {
    /// The full name of a tensor.
    pub(crate) fn tensor_name(&self, unit: WeightUnit, role: TensorRole) -> String {
        let own = self.names.iter().find(|(of, _)| *of == role).map(|(_, name)| *name);
        let name = own.or_else(|| self.name_apart(unit, role)).unwrap_or_else(|| usual_name(unit, role));
        match unit.block() {
            Some(block) if !is_global(role) => format!("blk.{}.{name}", block.0),
            _ => name.to_string(),
        }
    }
}

impl Description {
    /// Names in blocks whose experts and shared network have norms of their own: that network is named as a dense one.
    fn name_apart(&self, unit: WeightUnit, role: TensorRole) -> Option<&'static str> {
        let block = unit.block()?;
        self.spec.experts(usize::from(block.0)).filter(|experts| experts.apart)?;
        match (unit, role) {
            (WeightUnit::Router(_), TensorRole::FeedForwardNorm) => Some("pre_ffw_norm_2.weight"),
            (WeightUnit::SharedExpert(_), TensorRole::FeedForwardPostNorm) => Some("post_ffw_norm_1.weight"),
            (WeightUnit::SharedExpert(_), _) => Some(usual_name(WeightUnit::Dense(block), role)),
            _ => None,
        }
    }
}

/// Tensors that exist once in a file.
fn is_global(role: TensorRole) -> bool {
    use TensorRole::*;
    let of_inputs = matches!(role, BlockEmbedding | BlockProjection | BlockProjectionNorm);
    of_inputs || matches!(role, TokenEmbedding | OutputNorm | Output | RopeFactors | RopeFactorsLong)
}

/// A tensor's name in GGUF files, without `blk.N.`.
fn usual_name(unit: WeightUnit, role: TensorRole) -> &'static str {
    use TensorRole::*;
    match (role, unit) {
        (Gate, WeightUnit::Expert(..)) => "ffn_gate_exps.weight",
        (Up, WeightUnit::Expert(..)) => "ffn_up_exps.weight",
        (Down, WeightUnit::Expert(..)) => "ffn_down_exps.weight",
        (Gate, WeightUnit::SharedExpert(_)) => "ffn_gate_shexp.weight",
        (Up, WeightUnit::SharedExpert(_)) => "ffn_up_shexp.weight",
        (Down, WeightUnit::SharedExpert(_)) => "ffn_down_shexp.weight",
        (Gate, _) => "ffn_gate.weight",
        (Up, _) => "ffn_up.weight",
        (Down, _) => "ffn_down.weight",
        (TokenEmbedding, _) => "token_embd.weight",
        (OutputNorm, _) => "output_norm.weight",
        (Output, _) => "output.weight",
        (AttentionNorm, _) => "attn_norm.weight",
        (Query, _) => "attn_q.weight",
        (Key, _) => "attn_k.weight",
        (Value, _) => "attn_v.weight",
        (AttentionOutput, _) => "attn_output.weight",
        (QueryBias, _) => "attn_q.bias",
        (KeyBias, _) => "attn_k.bias",
        (ValueBias, _) => "attn_v.bias",
        (QueryNorm, _) => "attn_q_norm.weight",
        (KeyNorm, _) => "attn_k_norm.weight",
        (RopeFactors, _) => "rope_freqs.weight",
        (RopeFactorsLong, _) => "rope_factors_long.weight",
        (AttentionOutputBias, _) => "attn_output.bias",
        (Sinks, _) => "attn_sinks.weight",
        (AttentionPostNorm, _) => "post_attention_norm.weight",
        (FeedForwardNorm, _) => "ffn_norm.weight",
        (FeedForwardPostNorm, _) => "post_ffw_norm.weight",
        (Router, _) => "ffn_gate_inp.weight",
        (RouterBias, _) => "ffn_gate_inp.bias",
        (SelectionBias, _) => "exp_probs_b.bias",
        (SharedRouter, _) => "ffn_gate_inp_shexp.weight",
        (GateBias, _) => "ffn_gate_exps.bias",
        (UpBias, _) => "ffn_up_exps.bias",
        (DownBias, _) => "ffn_down_exps.bias",
        (QueryDown, _) => "attn_q_a.weight",
        (QueryDownNorm, _) => "attn_q_a_norm.weight",
        (Latent | LatentRotated, _) => "attn_kv_a_mqa.weight",
        (LatentNorm, _) => "attn_kv_a_norm.weight",
        (KeyUp, _) => "attn_k_b.weight",
        (ValueUp, _) => "attn_v_b.weight",
        (RouterNorm, _) => "ffn_gate_inp.scale",
        (ExpertScales, _) => "ffn_down_exps.scale",
        (ExpertsPostNorm, _) => "post_ffw_norm_2.weight",
        (BlockScale, _) => "layer_output_scale.weight",
        (StateInput, _) => "ssm_in.weight",
        (StateGate, _) => "attn_gate.weight",
        (StateBeta, _) => "ssm_beta.weight",
        (StateAlpha, _) => "ssm_alpha.weight",
        (StateBetaAlpha, _) => "ssm_ba.weight",
        (ConvTaps, _) => "ssm_conv1d.weight",
        (ConvBias, _) => "ssm_conv1d.bias",
        (TimeBias, _) => "ssm_dt.bias",
        (DecayRate, _) => "ssm_a",
        (Skip, _) => "ssm_d",
        (StateNorm, _) => "ssm_norm.weight",
        (StateOutput, _) => "ssm_out.weight",
        (BlockEmbedding, _) => "per_layer_token_embd.weight",
        (BlockProjection, _) => "per_layer_model_proj.weight",
        (BlockProjectionNorm, _) => "per_layer_proj_norm.weight",
        (InputGate, _) => "inp_gate.weight",
        (InputProjection, _) => "proj.weight",
        (InputPostNorm, _) => "post_norm.weight",
    }
}

macro_rules! architectures {
    ($($(#[$about:meta])* $variant:ident = $name:literal => $describe:path,)*) => {
        /// Supported architectures, spelled as in `general.architecture`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum Architecture { $($(#[$about])* $variant,)* }

        impl Architecture {
            /// All of them.
            pub const ALL: &[Architecture] = &[$(Self::$variant),*];

            /// The name in `general.architecture`, which also prefixes the model's keys.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Reads what a file of this architecture describes.
            pub(crate) fn describe(self, source: &Source<'_>) -> Result<Description, ModelError> {
                match self { $(Self::$variant => $describe(source),)* }
            }
        }
    };
}

architectures! {
    /// `llama`, with or without experts (Mixtral).
    Llama = "llama" => llama::describe,
    /// `qwen2`: biases on query, key and value.
    Qwen2 = "qwen2" => qwen2::describe,
    /// `qwen3`: norms on query and key heads.
    Qwen3 = "qwen3" => qwen3::describe,
    /// `qwen3moe`.
    Qwen3Moe = "qwen3moe" => qwen3::describe,
    /// The text part of `qwen3vl`: text gives all sections of its rotation the same position.
    Qwen3Vl = "qwen3vl" => qwen3::describe,
    /// The text part of `qwen3vlmoe`.
    Qwen3VlMoe = "qwen3vlmoe" => qwen3::describe,
    /// `gemma2`: windows in every second block, soft caps, norms before and after.
    Gemma2 = "gemma2" => gemma2::describe,
    /// `gemma3`: windows in five of six blocks, with a rotation of their own.
    Gemma3 = "gemma3" => gemma3::describe,
    /// `gemma4`: heads by kind of block, values without a matrix, experts beside a network; inputs of blocks and shared
    /// keys (E2B and E4B).
    Gemma4 = "gemma4" => gemma4::describe,
    /// `smollm3`: every fourth block does not rotate.
    SmolLm3 = "smollm3" => smollm3::describe,
    /// `internlm2`.
    InternLm2 = "internlm2" => internlm2::describe,
    /// `seed_oss`.
    SeedOss = "seed_oss" => seed_oss::describe,
    /// `mistral3`: YaRN, and queries that grow with the position.
    Mistral3 = "mistral3" => mistral3::describe,
    /// `granite`: four scales.
    Granite = "granite" => granite::describe,
    /// `granitemoe`.
    GraniteMoe = "granitemoe" => granite::describe,
    /// `olmo2` (and OLMo 3): norms after each half, and over whole queries and keys.
    Olmo2 = "olmo2" => olmo2::describe,
    /// `phi3`: stacked query, key and value; LongRoPE.
    Phi3 = "phi3" => phi3::describe,
    /// `exaone4`: norms after each half; only blocks with a window rotate.
    Exaone4 = "exaone4" => exaone4::describe,
    /// `glm4`: norms before and after, and a rotation of half of each head.
    Glm4 = "glm4" => glm4::describe,
    /// `ernie4_5`.
    Ernie45 = "ernie4_5" => ernie4_5::describe,
    /// `ernie4_5-moe`.
    Ernie45Moe = "ernie4_5-moe" => ernie4_5::describe_experts,
    /// `olmoe`.
    Olmoe = "olmoe" => olmoe::describe,
    /// `qwen2moe`: a gated shared expert.
    Qwen2Moe = "qwen2moe" => qwen2moe::describe,
    /// `gpt-oss`: sinks, clamped SwiGLU, biases everywhere.
    GptOss = "gpt-oss" => gpt_oss::describe,
    /// `glm4moe`: GLM 4.5 and later.
    Glm4Moe = "glm4moe" => glm4moe::describe,
    /// `dots1`.
    Dots1 = "dots1" => dots1::describe,
    /// `bailingmoe2`: Ling 2.0 and Ring 2.0.
    BailingMoe2 = "bailingmoe2" => bailingmoe2::describe,
    /// `deepseek2`: latent attention (DeepSeek V2 Lite, Kimi K2, GLM 4.7 Flash).
    DeepSeek2 = "deepseek2" => deepseek2::describe,
    /// `llama4`: chunks, norms without a gain, experts with weighted inputs.
    Llama4 = "llama4" => llama4::describe,
    /// `minimax-m2`.
    MiniMaxM2 = "minimax-m2" => minimax_m2::describe,
    /// `lfm2`: short convolutions, and attention in some blocks.
    Lfm2 = "lfm2" => lfm2::describe,
    /// `lfm2moe`.
    Lfm2Moe = "lfm2moe" => lfm2::describe,
    /// `qwen35`: gated delta nets, and attention in every fourth block.
    Qwen35 = "qwen35" => qwen35::describe,
    /// `qwen35moe`.
    Qwen35Moe = "qwen35moe" => qwen35::describe,
    /// `qwen3next`.
    Qwen3Next = "qwen3next" => qwen35::describe_next,
    /// `granitehybrid`: state spaces, and attention in some blocks.
    GraniteHybrid = "granitehybrid" => granite::describe_hybrid,
}

/// Architectures that are known but need an operation that does not exist. With [`NOT_YET`] and the supported ones these are all
/// of llama.cpp's (build 11549 of October 2026) but for those that are no models of language.
const MISSING: &[(&[&str], &str)] = &[
    (&["kimi-linear", "kimi-k3"], "delta networks that forget each value at a speed of its own"),
    (&["mamba", "jamba"], "a state space of the first kind (Mamba 1)"),
    (&["mamba2"], "blocks without a feed-forward half"),
    (&["nemotron_h", "nemotron_h_moe"], "blocks with only one half, and networks without a gate"),
    (&["falcon-h1", "plamo2"], "attention and a state space in one block"),
    (&["rwkv6", "rwkv7", "arwkv7", "rwkv6qwen2"], "the recurrent state of RWKV"),
    (&["minicpm3", "plm"], "another form of multi-head latent attention"),
    (&["deepseek32", "glm-dsa", "minimax-m3"], "attention to chosen positions only (sparse attention)"),
    (
        &["deepseek4", "qwen4exp", "glm5-next"],
        "several residual streams beside each other (hyper-connections), and sparse attention",
    ),
    (&["gemma3n"], "several residual streams beside each other (AltUp)"),
    (&["minimax-01"], "linear attention (lightning attention)"),
    (&["gpt2", "mpt", "bloom", "refact", "jais"], "learned positions or distances instead of RoPE"),
    (
        &[
            "falcon",
            "gptj",
            "gptneox",
            "starcoder",
            "starcoder2",
            "stablelm",
            "phi2",
            "phimoe",
            "codeshell",
            "orion",
            "command-r",
            "cohere2",
            "cohere2moe",
            "dbrx",
            "olmo",
            "nemotron",
            "jais2",
        ],
        "norms that subtract the mean (LayerNorm)",
    ),
    (&["arcee", "apertus"], "a network without a gate"),
    (&["bitnet"], "norms between the halves of attention and network (BitNet)"),
    (
        &[
            "bert",
            "nomic-bert",
            "nomic-bert-moe",
            "jina-bert-v2",
            "jina-bert-v3",
            "modern-bert",
            "eurobert",
            "neo-bert",
            "gemma-embedding",
            "gemma-embedding2",
            "llama-embed",
        ],
        "an output of embeddings instead of text",
    ),
    (&["t5", "t5encoder"], "an encoder beside the decoder"),
    (&["dream", "llada", "llada-moe", "rnd1"], "text written by diffusion"),
];

/// Architectures that nobody has described here yet.
const NOT_YET: &[&str] = &[
    "afmoe",
    "arctic",
    "baichuan",
    "bailingmoe",
    "bailingmoe3",
    "chameleon",
    "chatglm",
    "cogvlm",
    "deci",
    "deepseek",
    "deepseek2-ocr",
    "dots3note",
    "exaone",
    "exaone-moe",
    "gemma",
    "granite_swa",
    "graniteswitch",
    "grok",
    "grovemoe",
    "hrm_text",
    "hunyuan-dense",
    "hunyuan-moe",
    "hunyuan_vl",
    "hy_v3",
    "hy_v4",
    "k2-horizon",
    "laguna",
    "maincoder",
    "maple",
    "mellum",
    "mimo2",
    "minicpm",
    "mistral4",
    "nanbeige",
    "openelm",
    "paddleocr",
    "pangu-embedded",
    "plamo",
    "plamo3",
    "qwen",
    "qwen2vl",
    "smallthinker",
    "spark2_5",
    "step35",
    "talkie",
    "xverse",
];

impl Architecture {
    /// Looks up an architecture by its name in `general.architecture`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|known| known.name() == name)
    }

    /// Some blocks do not attend, which their number of key heads says: zero.
    pub(crate) fn is_hybrid(self) -> bool {
        matches!(self, Self::Lfm2 | Self::Lfm2Moe | Self::GraniteHybrid)
    }

    /// Architectures that are refused, with the operations that they lack.
    pub fn missing() -> &'static [(&'static [&'static str], &'static str)] {
        MISSING
    }

    /// Architectures that are refused because nobody has described them here yet.
    pub fn not_yet() -> &'static [&'static str] {
        NOT_YET
    }

    /// The same, or why it cannot run.
    pub(crate) fn of(name: &str) -> Result<Self, ModelError> {
        let missing = || MISSING.iter().find(|(names, _)| names.contains(&name));
        Self::from_name(name).ok_or_else(|| match missing() {
            Some((_, operation)) => ModelError::MissingOperation { architecture: name.to_string(), operation },
            None if NOT_YET.contains(&name) => ModelError::NotYet(name.to_string()),
            None => ModelError::UnsupportedArchitecture(name.to_string()),
        })
    }

    /// The names of all as the end of a sentence: `a, b or c`.
    pub(crate) fn list() -> String {
        let names: Vec<&str> = Self::ALL.iter().map(|known| known.name()).collect();
        match names.split_last() {
            Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
            None => String::new(),
        }
    }
}
