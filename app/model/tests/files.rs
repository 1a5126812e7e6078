//! Files that people find beside a model or instead of it, and files whose metadata asks for more than is computed here.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use potluck_gguf::{Array, Value};
use potluck_model::{ModelError, ModelSpec};
use potluck_testkit::GgufFile;

const HIDDEN: u64 = 64;

/// A plain model of two blocks.
fn dense(architecture: &str) -> GgufFile {
    let mut file = GgufFile::new(architecture);
    for (key, value) in
        [("embedding_length", 64u32), ("block_count", 2), ("context_length", 512), ("feed_forward_length", 96)]
    {
        file.set(key, value);
    }
    file.set("attention.head_count", 4u32);
    file.set("attention.layer_norm_rms_epsilon", 1e-5f32);
    file.matrix("token_embd.weight", &[HIDDEN, 100]);
    file.vector("output_norm.weight", &[HIDDEN]);
    (0..2).for_each(|block| add_block(&mut file, block));
    file
}

/// A Gemma 3 of two blocks.
fn gemma3() -> GgufFile {
    let mut file = dense("gemma3");
    for block in 0..2 {
        for part in ["post_attention_norm", "post_ffw_norm"] {
            file.vector(&format!("blk.{block}.{part}.weight"), &[HIDDEN]);
        }
        for part in ["attn_q_norm", "attn_k_norm"] {
            file.vector(&format!("blk.{block}.{part}.weight"), &[16]);
        }
    }
    file
}

/// A plain model of two blocks with two experts each.
fn experts(architecture: &str) -> GgufFile {
    let mut file = dense(architecture);
    file.set("expert_count", 2u32);
    file.set("expert_used_count", 1u32);
    file.tensors.retain(|tensor| !tensor.name.contains(".ffn_") || tensor.name.contains("norm"));
    for block in 0..2 {
        let name = |part: &str| format!("blk.{block}.{part}.weight");
        file.vector(&name("ffn_gate_inp"), &[HIDDEN, 2]);
        for (part, dims) in
            [("ffn_gate_exps", [HIDDEN, 96, 2]), ("ffn_up_exps", [HIDDEN, 96, 2]), ("ffn_down_exps", [96, HIDDEN, 2])]
        {
            file.matrix(&name(part), &dims);
        }
        if architecture.starts_with("qwen3") {
            file.vector(&name("attn_q_norm"), &[16]);
            file.vector(&name("attn_k_norm"), &[16]);
        }
    }
    file
}

fn add_block(file: &mut GgufFile, block: u32) {
    let name = |part: &str| format!("blk.{block}.{part}.weight");
    file.vector(&name("attn_norm"), &[HIDDEN]);
    for part in ["attn_q", "attn_k", "attn_v", "attn_output"] {
        file.matrix(&name(part), &[HIDDEN, HIDDEN]);
    }
    file.vector(&name("ffn_norm"), &[HIDDEN]);
    for (part, dims) in [("ffn_gate", [HIDDEN, 96]), ("ffn_up", [HIDDEN, 96]), ("ffn_down", [96, HIDDEN])] {
        file.matrix(&name(part), &dims);
    }
}

fn read(file: &GgufFile) -> Result<ModelSpec, ModelError> {
    ModelSpec::from_gguf(&file.model().unwrap()).map(|(spec, _)| spec)
}

/// The sentence, which must be whole and have these words.
fn refused(file: &GgufFile, words: &[&str]) -> String {
    let sentence = read(file).unwrap_err().to_string();
    for word in words {
        assert!(sentence.contains(word), "\"{sentence}\" should have \"{word}\"");
    }
    assert!(sentence.starts_with(char::is_uppercase) && sentence.ends_with('.'), "{sentence}");
    assert!(sentence.contains("choose "), "it says what to do: {sentence}");
    sentence
}

/// A file of no architecture with one key and one tensor.
fn bare(key: &str, value: &str, tensor: &str) -> GgufFile {
    let mut file = GgufFile::new("");
    file.metadata.remove("general.architecture");
    if !key.is_empty() {
        file.metadata.insert(key, value.into());
    }
    file.vector(tensor, &[HIDDEN]);
    file
}

#[test]
fn other_files_of_a_repository_are_named() {
    // LoRA adapters have the architecture of their base, and no sizes.
    let mut adapter = GgufFile::new("llama");
    adapter.metadata.insert("general.type", "adapter".into());
    adapter.metadata.insert("adapter.type", "lora".into());
    adapter.vector("blk.0.attn_q.weight.lora_a", &[HIDDEN, 8]);
    refused(&adapter, &["an adapter (LoRA)", "merged"]);
    adapter.metadata.remove("general.type");
    refused(&adapter, &["an adapter (LoRA)"]);
    adapter.metadata.remove("adapter.type");
    refused(&adapter, &["an adapter (LoRA)"]);

    refused(&bare("general.type", "imatrix", "blk.0.attn_q.weight.in_sum2"), &["importance matrix"]);
    refused(&bare("", "", "blk.0.attn_q.weight.in_sum2"), &["importance matrix"]);
    refused(&bare("general.architecture", "controlvector", "direction.1"), &["control vector"]);
    refused(&bare("general.architecture", "clip", "v.blk.0.attn_q.weight"), &["mmproj", "beside it"]);
    refused(&bare("general.type", "mmproj", "v.blk.0.attn_q.weight"), &["mmproj"]);
    refused(&bare("general.architecture", "flux", "double_blocks.0.img_attn.qkv.weight"), &["pictures"]);
    refused(&bare("", "", "model.diffusion_model.input_blocks.0.0.weight"), &["pictures"]);
    refused(&bare("general.architecture", "wan", "blocks.0.cross_attn.k.weight"), &["pictures or films"]);
    refused(&bare("general.architecture", "whisper", "encoder.blocks.0.mlp.0.weight"), &["hears or speaks"]);
    refused(&bare("general.architecture", "wavtokenizer-dec", "token_embd.weight"), &["hears or speaks"]);
    refused(&bare("general.architecture", "eagle3", "fc.weight"), &["drafts for a larger one"]);
    refused(&bare("general.architecture", "gemma4-assistant", "token_embd.weight"), &["drafts for a larger one"]);
    refused(&bare("", "", "anything"), &["names no architecture"]);

    let mut vocabulary = GgufFile::new("llama");
    vocabulary.metadata.insert("tokenizer.ggml.tokens", vec!["a".to_string()].into());
    refused(&vocabulary, &["a vocabulary without weights"]);

    // The drafting block of a larger model, in a file of its own.
    let mut drafter = dense("glm4moe");
    drafter.tensors.clear();
    drafter.vector("blk.46.nextn.enorm.weight", &[HIDDEN]);
    refused(&drafter, &["drafts for a larger one"]);
}

/// They have a usual architecture, and would answer nonsense.
#[test]
fn embeddings_and_rerankers_of_a_usual_architecture_are_named() {
    let mut embedding = dense("llama");
    embedding.set("pooling_type", 3u32);
    refused(&embedding, &["turns texts into vectors"]);
    embedding.set("pooling_type", 0u32);
    assert!(read(&embedding).is_ok());
    embedding.set("pooling_type", Value::I32(-1));
    assert!(read(&embedding).is_ok(), "unspecified");
    embedding.set("attention.causal", false);
    refused(&embedding, &["turns texts into vectors"]);
    let mut reranker = dense("llama");
    reranker.set("pooling_type", 4u32);
    refused(&reranker, &["rates or sorts"]);
    let mut labels = dense("llama");
    labels.set("classifier.output_labels", Value::from(vec!["yes".to_string(), "no".to_string()]));
    refused(&labels, &["rates or sorts"]);
}

#[test]
fn a_publishers_own_section_is_refused_by_its_key() {
    let with = |key: &str, value: Value| {
        let mut file = dense("llama");
        file.metadata.insert(key, value);
        file
    };
    for (key, value) in [
        ("prism.hadamard.version", Value::U32(1)),
        ("prism.hadamard.block_size", Value::U32(1024)),
        ("comfy.gguf.orig_shape.token_embd.weight", Value::Array(Array::I32(vec![64, 100]))),
        ("acme.weight_transform", Value::U32(3)),
        ("acme.rotation", Value::from("hadamard-128")),
        ("acme.scales", Value::Array(Array::F32(vec![2.0; 64]))),
        ("someword", Value::U32(1)),
        ("general.quantization.hadamard", Value::Bool(true)),
        ("quantize.smoothquant.alpha", Value::F32(0.5)),
    ] {
        let sentence = refused(&with(key, value), &["may change what the model computes"]);
        assert!(sentence.contains(&format!("\"{key}\"")), "{sentence}");
    }
    // What publishers really write, and notes of anybody.
    for (key, value) in [
        ("mradermacher.quantize_version", Value::from("2")),
        ("mradermacher.quantized_at", Value::from("2025-02-23T04:13:46+01:00")),
        ("duynt.random.quote", Value::from("To be")),
        ("potluck.attribution", Value::from("The built-in model says where it comes from.")),
        ("quantize.imatrix.chunks_count", Value::I32(125)),
        ("imatrix.chunk_size", Value::U32(512)),
        ("split.count", Value::U16(1)),
        ("general.sampling.temp", Value::F32(0.7)),
        ("general.tensor_extra.prec_a4", Value::Array(Array::Bool(vec![false]))),
        ("general.base_model.0.name", Value::from("Base")),
        ("tokenizer.ggml.add_eos_token", Value::Bool(false)),
        ("someone.quantized_by", Value::from("me")),
        ("acme.rotation", Value::from("none")),
    ] {
        // A section of one's own needs more than a word that means "none".
        let is_own = key.starts_with("acme");
        assert_eq!(read(&with(key, value)).is_err(), is_own, "{key}");
    }
}

#[test]
fn an_architectures_own_key_is_read_or_refused() {
    let with = |architecture: &str, key: &str, value: Value| {
        let mut file = dense(architecture);
        file.set(key, value);
        file
    };
    for (key, value) in [
        ("logit_scale", Value::F32(0.0625)),
        ("attention.scale", Value::F32(0.015_625)),
        ("attention.clamp_kqv", Value::F32(8.0)),
        ("attention.max_alibi_bias", Value::F32(8.0)),
        ("attn_logit_softcapping", Value::F32(50.0)),
        ("router_logit_softcapping", Value::F32(30.0)),
        ("swiglu_clamp_exp", Value::Array(Array::F32(vec![7.0; 2]))),
        ("embedding_scale", Value::F32(12.0)),
        ("residual_scale", Value::F32(0.22)),
        ("use_parallel_residual", Value::Bool(true)),
        ("attention.indexer.top_k", Value::U32(2048)),
        ("hyper_connection.count", Value::U32(4)),
        ("attention.chunk_size", Value::U32(8192)),
        ("rope.local.freq_base", Value::F32(1e6)),
        ("rope.freq_base_swa", Value::F32(1e6)),
        ("rope.scaling.alpha", Value::F32(1000.0)),
        ("hadamard.block_size", Value::U32(128)),
        ("no_such_thing", Value::U32(1)),
    ] {
        let sentence = refused(&with("llama", key, value), &["may change what the model computes"]);
        assert!(sentence.contains(&format!("\"llama.{key}\"")), "{sentence}");
    }
    for (key, value) in [
        ("vocab_size", Value::U32(100)),
        ("tensor_data_layout", Value::from("Meta AI original pth")),
        ("rope.dimension_sections", Value::Array(Array::I32(vec![24, 20, 20, 0]))),
        ("attention.causal", Value::Bool(true)),
        ("logit_scale", Value::F32(0.0)),
        ("residual_scale", Value::F32(1.0)),
        ("expert_weights_scale", Value::F32(0.0)),
        ("expert_shared_count", Value::U32(0)),
        ("rope.freq_base_swa", Value::F32(0.0)),
        ("use_parallel_residual", Value::Bool(false)),
        ("vision.block_count", Value::U32(27)),
        ("rope.scaling.yarn_beta_fast", Value::F32(32.0)),
        ("nextn_predict_layers", Value::U32(0)),
    ] {
        let file = with("llama", key, value);
        assert!(read(&file).is_ok(), "{key}: {:?}", read(&file).err());
    }
    // YaRN's own numbers, as converters write them, and as a wrong one did.
    let yarn = |key: &str, value: f32| {
        let mut file = with("llama", "rope.scaling.type", "yarn".into());
        file.set("rope.scaling.factor", 8.0f32);
        file.set(key, value);
        read(&file)
    };
    assert!(
        yarn("rope.scaling.yarn_attn_factor", 1.207_944).is_ok() && yarn("rope.scaling.yarn_attn_factor", 2.0).is_err()
    );
    assert!(yarn("rope.scaling.yarn_ext_factor", 1.0).is_ok() && yarn("rope.scaling.yarn_ext_factor", 64.0).is_err());
    let mut same = with("llama", "rope.freq_base", Value::F32(5e5));
    same.set("rope.freq_base_swa", Value::F32(5e5));
    assert!(read(&same).is_ok(), "all blocks have one rotation");
}

/// The converter writes the sizes of a state space for all of Granite 4, of which the smaller ones only attend.
#[test]
fn granite_without_state_spaces_opens() {
    let with_sizes = |architecture: &str| {
        let mut file = dense(architecture);
        for (key, value) in [
            ("ssm.conv_kernel", 4u32),
            ("ssm.state_size", 128),
            ("ssm.group_count", 1),
            ("ssm.inner_size", 128),
            ("ssm.time_step_rank", 2),
        ] {
            file.set(key, value);
        }
        file
    };
    let mut granite = with_sizes("granite");
    granite.set("attention.head_count_kv", Value::Array(Array::I32(vec![4, 4])));
    granite.set("logit_scale", 8.0f32);
    granite.set("rope.scaling.finetuned", true);
    assert!(read(&granite).is_ok(), "{:?}", read(&granite).err());
    assert!(read(&with_sizes("granitemoe")).is_ok());
    granite.vector("blk.0.ssm_d", &[2]);
    refused(&granite, &["\"granite.ssm."]);
}

/// Ollama's converter has names of its own for what others have names for.
#[test]
fn ollamas_names_are_read() {
    let mut gemma = gemma3();
    gemma.set("attention.sliding_window", 128u32);
    gemma.set("attention.sliding_window_pattern", Value::Array(Array::Bool(vec![true, false])));
    gemma.set("rope.local.freq_base", 20_000.0f32);
    gemma.set("rope.global.freq_base", 1e6f32);
    let bases = |file: &GgufFile| {
        let spec = read(file).unwrap();
        [0, 1].map(|block| spec.attention(block).rope.base)
    };
    assert_eq!(bases(&gemma), [20_000.0, 1e6]);
    gemma.set("rope.freq_base", 1e6f32);
    gemma.set("rope.freq_base_swa", 20_000.0f32);
    assert_eq!(bases(&gemma), [20_000.0, 1e6], "both names, with the same values");
    gemma.set("rope.freq_base_swa", 10_000.0f32);
    refused(&gemma, &["\"gemma3.rope.local.freq_base\" is 20000", "\"rope.freq_base_swa\" is 10000"]);

    let mut llama = dense("llama");
    llama.set("attention.head_dim", 16u32);
    refused(&llama, &["\"llama.attention.head_dim\""]);
    llama.set("attention.key_length", 16u32);
    assert!(read(&llama).is_ok(), "the same width under two names");
    llama.set("attention.head_dim", 32u32);
    refused(&llama, &["\"llama.attention.head_dim\""]);

    let normalizes = |key: &str, value: bool| {
        let mut file = experts("qwen3moe");
        file.set(key, value);
        read(&file).unwrap().experts(0).unwrap().router.normalize
    };
    for key in ["norm_top_k_prob", "expert_weights_norm"] {
        assert!(normalizes(key, true) && !normalizes(key, false), "{key}");
    }
}

/// llama.cpp writes its own defaults to every file that it saves (`llama_model_save_to_file`, `llama-finetune`), whatever the
/// architecture.
#[test]
fn files_that_llama_cpp_saves_open() {
    let saved = |mut file: GgufFile| {
        for (key, value) in [
            ("attn_logit_softcapping", 50.0f32),
            ("router_logit_softcapping", 30.0),
            ("final_logit_softcapping", 30.0),
            ("expert_weights_scale", 0.0),
            ("expert_group_scale", 0.05),
            ("residual_scale", 0.0),
            ("attention.max_alibi_bias", 0.0),
            ("attention.group_norm_epsilon", 0.0),
            ("rope.freq_base", 5e5),
            ("rope.freq_base_swa", 10_000.0),
            ("rope.scaling.factor", 0.0),
            ("rope.scaling.attn_factor", 1.0),
            ("rope.scaling.yarn_ext_factor", -1.0),
            ("rope.scaling.yarn_attn_factor", 1.0),
            ("kda.gate_lower_bound", f32::NEG_INFINITY),
        ] {
            file.set(key, value);
        }
        for (key, value) in [
            ("expert_feed_forward_length", 0u32),
            ("expert_gating_func", 0),
            ("decoder_start_token_id", u32::MAX),
            ("token_shift_count", 2),
            ("attention.rope_pattern", 1),
            ("attention.kv_lora_rank", 0),
            ("attention.sliding_window", 0),
            ("ssm.inner_size", 0),
            ("wkv.head_size", 0),
            ("nextn_predict_layers", 0),
        ] {
            file.set(key, value);
        }
        file.set("expert_weights_norm", false);
        file.set("attention.indexer.kpool_select_tail", true);
        file.set("swiglu_clamp_exp", Value::Array(Array::F32(vec![0.0; 2])));
        file
    };
    let file = saved(dense("llama"));
    assert!(read(&file).is_ok(), "{:?}", read(&file).err());
    let mixtral = read(&saved(experts("llama"))).unwrap();
    assert!(mixtral.experts(0).unwrap().router.normalize, "what the architecture does and llama.cpp does not read");
    let mut gemma = gemma3();
    gemma.set("final_logit_softcapping", 0.0f32);
    gemma.set("attn_logit_softcapping", 50.0f32);
    refused(&gemma, &["attn_logit_softcapping"]);
    gemma.set("router_logit_softcapping", 30.0f32);
    assert!(read(&gemma).is_ok(), "an architecture that reads one of the caps");
    // Caps of another size, and one alone, are meant.
    let with = |caps: &[(&str, f32)]| {
        let mut file = dense("qwen3");
        for block in 0..2 {
            for part in ["attn_q_norm", "attn_k_norm"] {
                file.vector(&format!("blk.{block}.{part}.weight"), &[16]);
            }
        }
        caps.iter().for_each(|(key, value)| file.set(key, *value));
        file
    };
    assert!(read(&with(&[("attn_logit_softcapping", 50.0), ("final_logit_softcapping", 30.0)])).is_ok());
    for caps in [
        &[("attn_logit_softcapping", 50.0)][..],
        &[("final_logit_softcapping", 30.0)],
        &[("router_logit_softcapping", 30.0)],
        &[("attn_logit_softcapping", 30.0), ("final_logit_softcapping", 30.0)],
        &[("attn_logit_softcapping", 50.0), ("final_logit_softcapping", 50.0)],
    ] {
        refused(&with(caps), &["_logit_softcapping"]);
    }
}

/// llama.cpp's converter writes the key to Mistral's models of the architecture `llama`, which does not read it there.
#[test]
fn a_multiplier_of_yarn_that_llama_cpp_does_not_read_is_no_obstacle() {
    let with = |architecture: &str, multiplier: f32| {
        let mut file = dense(architecture);
        file.set("rope.scaling.type", "yarn");
        file.set("rope.scaling.factor", 8.0f32);
        file.set("rope.scaling.yarn_log_multiplier", multiplier);
        file
    };
    let magnitude = |file: &GgufFile| read(file).unwrap().attention(0).rope.magnitude;
    let usual = magnitude(&with("llama", 0.0));
    assert!(usual > 1.2 && magnitude(&with("llama", 1.0)).to_bits() == usual.to_bits(), "as llama.cpp computes");
    refused(&with("llama", 0.5), &["yarn_log_multiplier"]);
    refused(&with("qwen2", 1.0), &["yarn_log_multiplier"]);
    assert!((magnitude(&with("mistral3", 1.0)) - 1.0).abs() < 1e-6, "an architecture that reads it");
}

/// ggml-org/llama.cpp#24820: a converter dropped the factors, and answers were soft and repetitive.
#[test]
fn a_stretched_model_needs_its_factors() {
    let mut file = dense("phi3");
    assert!(read(&file).is_ok());
    file.set("rope.scaling.original_context_length", 128u32);
    refused(&file, &["rope_factors_short.weight", "is missing"]);
    file.vector("rope_factors_short.weight", &[8]);
    file.vector("rope_factors_long.weight", &[8]);
    assert!(read(&file).is_ok());
}

/// A file may say that its last blocks only draft. If they are like all others, answers without them would be wrong.
#[test]
fn only_drafting_blocks_are_left_out() {
    let mut file = dense("llama");
    file.set("nextn_predict_layers", 1u32);
    let sentence = refused(&file, &["nextn_predict_layers", "block 1 of 2 is not for drafts"]);
    assert!(sentence.contains("is 1"), "{sentence}");
    let mut drafting = dense("llama");
    drafting.set("block_count", 3u32);
    drafting.set("nextn_predict_layers", 1u32);
    assert_eq!(read(&drafting).unwrap().blocks.len(), 2, "a block that was left out of the file");
    add_block(&mut drafting, 2);
    drafting.vector("blk.2.nextn.enorm.weight", &[HIDDEN]);
    assert_eq!(read(&drafting).unwrap().blocks.len(), 2, "a block for drafts");
}

/// Every tensor once for every block would be thousands of millions of steps.
#[test]
fn a_header_of_countless_drafting_blocks_is_read_at_once() {
    let mut file = dense("llama");
    file.set("block_count", u32::from(u16::MAX));
    file.set("nextn_predict_layers", u32::from(u16::MAX) - 2);
    (2..20_000).for_each(|block| file.vector(&format!("blk.{block}.nextn.enorm.weight"), &[HIDDEN]));
    assert_eq!(read(&file).unwrap().blocks.len(), 2);
    file.vector("blk.65000.attn_q.weight", &[HIDDEN]);
    refused(&file, &["block 65000 of 65535 is not for drafts"]);
}

#[test]
fn tensors_without_a_place_are_refused_by_name() {
    for name in [
        "blk.0.attn_q.weight.lora_a",
        "blk.0.attn_q.scale",
        "blk.0.attn_q.hadamard",
        "blk.1.ffn_down.bias",
        "blk.0.attn_q_norm.weight",
        "output.bias",
        "rope_factors.weight",
        "v.blk.0.attn_q.weight",
    ] {
        let mut file = dense("llama");
        file.vector(name, &[HIDDEN]);
        let what = if name.contains("lora") { "an adapter (LoRA)" } else { name };
        refused(&file, &[what]);
    }
}

/// The newest architectures of llama.cpp are not called unknown.
#[test]
fn known_architectures_are_refused_with_a_reason() {
    for (name, reason) in [
        ("qwen4exp", "hyper-connections"),
        ("deepseek4", "hyper-connections"),
        ("minimax-m3", "sparse attention"),
        ("glm-dsa", "sparse attention"),
        ("kimi-k3", "delta networks"),
        ("gemma", "known, but do not run here yet"),
        ("step35", "known, but do not run here yet"),
    ] {
        refused(&dense(name), &[&format!("\"{name}\""), reason]);
    }
    assert!(read(&dense("nonesuch")).unwrap_err().to_string().contains("is not supported"));
}
