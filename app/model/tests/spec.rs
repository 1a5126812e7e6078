//! Architectures and weight units from the headers of made-up files.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::ops::{Deref, DerefMut};

use potluck_gguf::{Model, TensorInfo, TensorType};
use potluck_model::{
    Architecture, DenseSpec, ExpertsSpec, FeedForwardSpec, FileRange, ModelError, ModelSpec, Norms, Profile, QkNorm,
    RopePairs, RopeSpec, TensorRole, UnitMap, Yarn,
};
use potluck_plan::{BlockIndex, Bytes, ExpertId, FeedForwardShape, KvCacheType, ModelId, WeightUnit};
use potluck_testkit::GgufFile;
use proptest::prelude::*;

const HIDDEN: u64 = 64;
const VOCABULARY: u64 = 100;
const HEADS: u64 = 4;
const KV_HEADS: u64 = 2;
const WIDTH: u64 = 96;
const EXPERTS: u64 = 4;

/// A file of two blocks, 64 wide.
struct File(GgufFile);

impl Deref for File {
    type Target = GgufFile;

    fn deref(&self) -> &GgufFile {
        &self.0
    }
}

impl DerefMut for File {
    fn deref_mut(&mut self) -> &mut GgufFile {
        &mut self.0
    }
}

impl File {
    fn empty(architecture: &str) -> Self {
        let mut file = Self(GgufFile::new(architecture));
        file.set("embedding_length", HIDDEN as u32);
        file.set("block_count", 2u32);
        file.set("context_length", 512u32);
        file.set("feed_forward_length", WIDTH as u32);
        file.set("attention.head_count", HEADS as u32);
        file.set("attention.head_count_kv", KV_HEADS as u32);
        file.set("attention.layer_norm_rms_epsilon", 1e-5f32);
        file.matrix("token_embd.weight", &[HIDDEN, VOCABULARY]);
        file.vector("output_norm.weight", &[HIDDEN]);
        for block in 0..2 {
            let name = |part: &str| format!("blk.{block}.{part}.weight");
            file.vector(&name("attn_norm"), &[HIDDEN]);
            file.matrix(&name("attn_q"), &[HIDDEN, HIDDEN]);
            file.matrix(&name("attn_k"), &[HIDDEN, HIDDEN / 2]);
            file.matrix(&name("attn_v"), &[HIDDEN, HIDDEN / 2]);
            file.matrix(&name("attn_output"), &[HIDDEN, HIDDEN]);
            file.vector(&name("ffn_norm"), &[HIDDEN]);
        }
        file
    }

    fn dense(architecture: &str) -> Self {
        let mut file = Self::empty(architecture);
        for block in 0..2 {
            file.matrix(&format!("blk.{block}.ffn_gate.weight"), &[HIDDEN, WIDTH]);
            file.matrix(&format!("blk.{block}.ffn_up.weight"), &[HIDDEN, WIDTH]);
            file.matrix(&format!("blk.{block}.ffn_down.weight"), &[WIDTH, HIDDEN]);
        }
        file
    }

    fn routed(architecture: &str, stacked: bool) -> Self {
        let mut file = Self::empty(architecture);
        file.set("expert_count", EXPERTS as u32);
        file.set("expert_used_count", 2u32);
        for block in 0..2 {
            file.vector(&format!("blk.{block}.ffn_gate_inp.weight"), &[HIDDEN, EXPERTS]);
            for (part, cols, rows) in [("gate", HIDDEN, WIDTH), ("up", HIDDEN, WIDTH), ("down", WIDTH, HIDDEN)] {
                if stacked {
                    file.matrix(&format!("blk.{block}.ffn_{part}_exps.weight"), &[cols, rows, EXPERTS]);
                } else {
                    for expert in 0..EXPERTS {
                        file.matrix(&format!("blk.{block}.ffn_{part}.{expert}.weight"), &[cols, rows]);
                    }
                }
            }
        }
        file
    }

    fn get(&mut self, name: &str) -> &mut TensorInfo {
        self.get_mut(name).unwrap()
    }

    fn model(&self) -> Model {
        self.0.model().unwrap()
    }

    fn read(&self) -> Result<(ModelSpec, UnitMap), ModelError> {
        ModelSpec::from_gguf(&self.model())
    }

    fn error(&self) -> String {
        self.read().unwrap_err().to_string()
    }
}

fn block(index: u16) -> BlockIndex {
    BlockIndex(index)
}

fn roles(units: &UnitMap, unit: WeightUnit) -> Vec<TensorRole> {
    units.tensors(unit).iter().map(|tensor| tensor.role).collect()
}

#[test]
fn a_dense_llama_is_read() {
    let mut file = File::dense("llama");
    file.metadata.insert("general.name", "Tiny".into());
    file.set("rope.freq_base", 5e5f32);
    file.vector("rope_freqs.weight", &[8]);
    let (spec, units) = file.read().unwrap();
    assert_eq!((spec.architecture, spec.name.as_str()), (Architecture::Llama, "Tiny"));
    assert_eq!((spec.hidden, spec.vocabulary, spec.context, spec.tied_lm_head), (64, 100, 512, true));
    let attention = spec.attention(1);
    assert_eq!((attention.heads, attention.kv_heads, attention.head_dim), (4, 2, 16));
    assert_eq!((attention.qk_norm, attention.qkv_bias), (QkNorm::None, false));
    assert_eq!(attention.rope.factors, potluck_model::RopeFactors::Fixed);
    assert_eq!((attention.rope.dims, attention.rope.base, attention.rope.pairs), (16, 5e5, RopePairs::Adjacent));
    assert_eq!(spec.blocks[0].feed_forward, FeedForwardSpec::Dense(DenseSpec::new(96)));

    use TensorRole::*;
    assert_eq!(roles(&units, WeightUnit::LmHead), [OutputNorm, TokenEmbedding]);
    let token_mixer = [AttentionNorm, Query, Key, Value, AttentionOutput, RopeFactors];
    assert_eq!(roles(&units, WeightUnit::TokenMixer(block(1))), token_mixer);
    assert_eq!(roles(&units, WeightUnit::Dense(block(0))), [FeedForwardNorm, Gate, Up, Down]);
    assert_eq!(units.units().count(), 6);

    let shape = spec.shape(&units, ModelId([7; 32]), KvCacheType::F16);
    assert!(shape.tied_lm_head && shape.model == ModelId([7; 32]));
    // Keys and values, 2 heads of 16, 2 bytes each.
    assert_eq!(shape.blocks[0].kv_cache_per_position, Bytes(2 * 2 * 16 * 2));
    assert_eq!(shape.embedding, Bytes(64 * 100 / 32 * 34));
    assert_eq!(shape.lm_head, Bytes(64 * 100 / 32 * 34 + 64 * 4));
    assert_eq!(shape.blocks[1].feed_forward, FeedForwardShape::Dense { bytes: Bytes(3 * 64 * 96 / 32 * 34 + 64 * 4) });
    assert_eq!(shape.blocks[1].weights(), Bytes(shape.blocks[1].token_mixer.0 + 3 * 64 * 96 / 32 * 34 + 64 * 4));
}

#[test]
fn experts_are_slices_of_stacked_tensors_or_tensors_of_their_own() {
    let mut stacked = File::routed("qwen3moe", true);
    for number in 0..2 {
        stacked.vector(&format!("blk.{number}.attn_q_norm.weight"), &[16]);
        stacked.vector(&format!("blk.{number}.attn_k_norm.weight"), &[16]);
    }
    let base = stacked.get("blk.1.ffn_up_exps.weight").offset;
    let (spec, units) = stacked.read().unwrap();
    let experts = FeedForwardSpec::Experts(ExpertsSpec::new(4, 2, 96, true));
    assert_eq!(spec.blocks[1].feed_forward, experts);
    assert_eq!(spec.attention(0).qk_norm, QkNorm::Head);
    assert_eq!(spec.attention(0).rope.pairs, RopePairs::Halves);
    let unit = units.tensors(WeightUnit::Expert(block(1), ExpertId(3)));
    let len = 64 * 96 / 32 * 34;
    assert_eq!(unit[1].range, FileRange { file: 0, offset: base + 3 * len, len });
    assert_eq!((unit[1].role, unit[1].cols, unit[1].rows), (TensorRole::Up, 64, 96));
    assert_eq!((unit[2].role, unit[2].cols, unit[2].rows), (TensorRole::Down, 96, 64));
    let router = [TensorRole::FeedForwardNorm, TensorRole::Router];
    assert_eq!(roles(&units, WeightUnit::Router(block(0))), router);
    let shape = spec.shape(&units, ModelId([0; 32]), KvCacheType::F32);
    let FeedForwardShape::Experts { expert, count, used, .. } = shape.blocks[0].feed_forward else { panic!() };
    assert_eq!((expert, count, used), (Bytes(3 * len), 4, 2));

    let mut separate = File::routed("llama", false);
    let name = "blk.0.ffn_down.2.weight";
    let offset = separate.get(name).offset;
    let (_, units) = separate.read().unwrap();
    assert_eq!(units.tensors(WeightUnit::Expert(block(0), ExpertId(2)))[2].range, FileRange { file: 0, offset, len });
    separate.tensors.retain(|tensor| tensor.name != name);
    assert_eq!(separate.read().unwrap_err(), ModelError::MissingTensor(name.into()));
}

#[test]
fn every_byte_of_the_file_belongs_to_a_unit_once() {
    for mut file in [File::dense("llama"), File::routed("llama", true), File::routed("llama", false)] {
        file.matrix("output.weight", &[HIDDEN, VOCABULARY]);
        let (_, units) = file.read().unwrap();
        let in_units: u64 = units.units().map(|unit| units.bytes(unit).0).sum();
        assert_eq!(in_units, file.model().tensor_bytes());
        let mut ranges: Vec<FileRange> =
            units.units().flat_map(|unit| units.tensors(unit)).map(|tensor| tensor.range).collect();
        ranges.sort_by_key(|range| range.offset);
        assert!(ranges.windows(2).all(|pair| pair[0].offset + pair[0].len <= pair[1].offset), "ranges overlap");
    }
}

fn missing(tensor: &str) -> String {
    format!(
        "The tensor \"{tensor}\" is missing from the file; download it again, or choose another file of this model."
    )
}

fn wrong_shape(tensor: &str, found: &str, expected: u32) -> String {
    format!("The tensor \"{tensor}\" has {found} instead of {expected}; choose another file of this model.")
}

#[test]
fn what_the_architectures_differ_in() {
    let mut qwen2 = File::dense("qwen2");
    assert_eq!(qwen2.error(), missing("blk.0.attn_q.bias"));
    for number in 0..2 {
        qwen2.vector(&format!("blk.{number}.attn_q.bias"), &[64]);
        qwen2.vector(&format!("blk.{number}.attn_k.bias"), &[32]);
        qwen2.vector(&format!("blk.{number}.attn_v.bias"), &[32]);
    }
    assert!(qwen2.read().unwrap().0.attention(0).qkv_bias);
    assert_eq!(File::dense("qwen3").error(), missing("blk.0.attn_q_norm.weight"));
    let mut wide = File::dense("llama");
    wide.set("attention.key_length", 32u32);
    assert_eq!(wide.error(), wrong_shape("blk.0.attn_q.weight", "64 rows", 128));
    let unknown = File::dense("nonesuch").error();
    assert!(
        unknown.starts_with("The architecture \"nonesuch\" is not supported; choose a model of llama, qwen2, "),
        "{unknown}"
    );
    let recurrent = File::dense("mamba2").error();
    let sentence = "Models of the architecture \"mamba2\" need blocks without a feed-forward half, which does not exist here yet; choose another model.";
    assert_eq!(recurrent, sentence);
}

#[test]
fn a_wrong_tensor_is_named() {
    let wrong = |change: &dyn Fn(&mut File)| {
        let mut file = File::dense("llama");
        change(&mut file);
        file.error()
    };
    let rows = wrong(&|file| file.get("blk.1.ffn_up.weight").dims[1] = 12);
    assert_eq!(rows, wrong_shape("blk.1.ffn_up.weight", "12 rows", 96));
    let cols = wrong(&|file| file.get("blk.0.attn_norm.weight").dims[0] = 32);
    assert_eq!(cols, wrong_shape("blk.0.attn_norm.weight", "32 columns", 64));
    let stacked = wrong(&|file| file.get("blk.0.attn_k.weight").dims.push(2));
    assert_eq!(stacked, wrong_shape("blk.0.attn_k.weight", "2 experts", 1));
    let kind = wrong(&|file| file.get("blk.0.ffn_down.weight").kind = TensorType::Q8_K);
    assert_eq!(
        kind,
        "The tensor \"blk.0.ffn_down.weight\" is stored as Q8_K, in which models keep no weights; choose another file of this model."
    );
    let norm = wrong(&|file| file.get("output_norm.weight").kind = TensorType::F16);
    assert_eq!(
        norm,
        "The tensor \"output_norm.weight\" is stored as F16 instead of F32; choose another file of this model."
    );
    let extra = wrong(&|file| file.vector("blk.0.attn_output.bias", &[64]));
    assert_eq!(
        extra,
        "The tensor \"blk.0.attn_output.bias\" has no place in the architecture llama, and answers without it would be wrong; choose another file of this model."
    );
    let tokens = wrong(&|file| {
        file.metadata.insert("tokenizer.ggml.tokens", vec!["x".to_string(); 101].into());
    });
    assert_eq!(tokens, wrong_shape("token_embd.weight", "100 rows", 101));
}

#[test]
fn rope_scaling_is_known_or_refused_by_name() {
    let scaled = |kind: Option<&str>, factor: f32| {
        let mut file = File::dense("llama");
        file.set("rope.scaling.factor", factor);
        if let Some(kind) = kind {
            file.set("rope.scaling.type", kind);
        }
        file.read().map(|(spec, _)| spec.attention(0).rope.linear_scale)
    };
    assert_eq!(scaled(Some("linear"), 4.0), Ok(4.0));
    assert_eq!(scaled(None, 2.0), Ok(2.0));
    assert_eq!(scaled(Some("none"), 2.0), Ok(1.0));
    assert_eq!(scaled(None, 0.0), Ok(1.0));
    assert_eq!(scaled(Some("su"), 4.0), Err(ModelError::UnsupportedRopeScaling("su".into())));
    assert!(scaled(Some("linear"), f32::NAN).is_err());
}

#[test]
fn yarn_keeps_fast_pairs_and_slows_down_slow_ones() {
    let mut file = File::dense("llama");
    file.set("rope.scaling.type", "yarn");
    file.set("rope.scaling.factor", 8.0f32);
    file.set("rope.scaling.original_context_length", 64u32);
    let (spec, _) = file.read().unwrap();
    let rope = &spec.attention(0).rope;
    assert_eq!(rope.yarn, Some(Yarn { original: 64, fast: 32.0, slow: 1.0 }));
    assert!((rope.magnitude - 1.207_944).abs() < 1e-5, "1 + ln(8) / 10 was expected, not {}", rope.magnitude);
    let (scaled, plain) = (rope.frequencies(), RopeSpec::new(16, 10_000.0, RopePairs::Adjacent).frequencies());
    let ratios: Vec<f64> = plain.iter().zip(&scaled).map(|(plain, scaled)| plain / scaled).collect();
    assert!((ratios[0] - 1.0).abs() < 1e-9, "the fastest pair keeps its speed: {ratios:?}");
    assert!((ratios[7] - 8.0).abs() < 1e-9, "the slowest pair is slowed down: {ratios:?}");
    assert!(ratios.windows(2).all(|pair| pair[0] <= pair[1]), "{ratios:?}");
}

#[test]
fn stacked_tensors_become_the_parts_they_hold() {
    let mut file = File::dense("phi3");
    file.tensors.retain(|tensor| {
        !["attn_q.", "attn_k.", "attn_v.", "ffn_gate.", "ffn_up."].iter().any(|part| tensor.name.contains(part))
    });
    for block in 0..2 {
        file.matrix(&format!("blk.{block}.attn_qkv.weight"), &[HIDDEN, 2 * HIDDEN]);
        file.matrix(&format!("blk.{block}.ffn_up.weight"), &[HIDDEN, 2 * WIDTH]);
    }
    let row = HIDDEN / 32 * 34;
    let offset = |file: &mut File, name: &str| file.get(name).offset;
    let (qkv, up) = (offset(&mut file, "blk.1.attn_qkv.weight"), offset(&mut file, "blk.1.ffn_up.weight"));
    let (_, units) = file.read().unwrap();
    let range = |unit, role| {
        let tensor = units.tensors(unit).iter().find(|tensor| tensor.role == role).unwrap();
        (tensor.range.offset, tensor.range.len)
    };
    let mixer = WeightUnit::TokenMixer(block(1));
    assert_eq!(range(mixer, TensorRole::Query), (qkv, 64 * row));
    assert_eq!(range(mixer, TensorRole::Key), (qkv + 64 * row, 32 * row));
    assert_eq!(range(mixer, TensorRole::Value), (qkv + 96 * row, 32 * row));
    let dense = WeightUnit::Dense(block(1));
    assert_eq!(range(dense, TensorRole::Gate), (up, WIDTH * row));
    assert_eq!(range(dense, TensorRole::Up), (up + WIDTH * row, WIDTH * row));
}

#[test]
fn a_window_of_some_blocks_does_not_limit_the_context() {
    let mut file = File::dense("olmo2");
    file.tensors
        .retain(|tensor| !tensor.name.ends_with("attn_norm.weight") && !tensor.name.ends_with("ffn_norm.weight"));
    for block in 0..2 {
        let name = |part: &str| format!("blk.{block}.{part}.weight");
        file.vector(&name("attn_q_norm"), &[HIDDEN]);
        file.vector(&name("attn_k_norm"), &[HIDDEN / 2]);
        file.vector(&name("post_attention_norm"), &[HIDDEN]);
        file.vector(&name("post_ffw_norm"), &[HIDDEN]);
    }
    file.set("attention.sliding_window", 100u32);
    file.set("attention.sliding_window_pattern", 2u32);
    let (spec, units) = file.read().unwrap();
    assert_eq!(spec.context, 512);
    assert_eq!([0, 1].map(|block| spec.attention(block).window), [Some(100), None]);
    assert_eq!((spec.attention(0).norms, spec.attention(0).qk_norm), (Norms::AFTER, QkNorm::Row));
    assert_eq!(roles(&units, WeightUnit::Dense(block(0))), {
        use TensorRole::*;
        [Gate, Up, Down, FeedForwardPostNorm]
    });
    let mut llama = File::dense("llama");
    llama.set("attention.sliding_window", 100u32);
    assert_eq!(llama.read().unwrap().0.context, 100, "nobody knows which of its blocks have the window");
}

#[test]
fn impossible_numbers_are_refused() {
    let with = |key: &str, value: u32| {
        let mut file = File::routed("llama", true);
        file.set(key, value);
        file.error()
    };
    assert_eq!(
        with("block_count", 0),
        "The metadata key \"llama.block_count\" is 0, but it must be from 1 to 65535; choose another file of this model."
    );
    assert!(with("block_count", 3).contains("blk.2.attn_norm.weight"));
    assert!(with("attention.head_count_kv", 3).contains("must divide the 4 query heads"));
    assert!(with("attention.head_count", 0).contains("llama.attention.head_count"));
    assert!(with("attention.key_length", u32::MAX).contains("llama.attention.key_length"));
    assert!(with("rope.dimension_count", 32).contains("at most 16"));
    assert!(with("expert_used_count", 5).contains("from 1 to 4"));
    assert!(with("expert_count", u32::MAX).contains("llama.expert_count"));
    assert!(with("expert_gating_func", 2).contains("softmax"));
    assert!(with("embedding_length", u32::MAX).contains("llama.embedding_length"));
    let mut keyless = File::dense("llama");
    keyless.metadata.remove("llama.context_length");
    assert!(keyless.error().contains("llama.context_length"));
}

#[test]
fn a_profile_counts_what_a_token_uses() {
    let mut file = File::routed("llama", true);
    file.metadata.insert("general.license", "apache-2.0".into());
    let profile = Profile::from_gguf(&file.model());
    let experts = 2 * 3 * HIDDEN * WIDTH * EXPERTS;
    assert_eq!(profile.parameters - profile.active_parameters, experts / 2);
    assert_eq!(profile.quantization, "Q8_0");
    assert_eq!((profile.experts, profile.experts_used, profile.blocks, profile.context), (4, 2, 2, 512));
    assert_eq!(profile.licence.as_deref(), Some("apache-2.0"));
    let separate = Profile::from_gguf(&File::routed("llama", false).model());
    assert_eq!((separate.parameters, separate.active_parameters), (profile.parameters, profile.active_parameters));
    file.metadata.insert("general.file_type", 15u32.into());
    assert_eq!(Profile::from_gguf(&file.model()).quantization, "Q4_K_M");
}

/// The numbers a file may lie about.
const NUMBERS: [&str; 11] = [
    "embedding_length",
    "block_count",
    "feed_forward_length",
    "expert_feed_forward_length",
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.value_length",
    "rope.dimension_count",
    "expert_count",
    "expert_used_count",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_file_that_lies_is_refused_or_stays_inside_its_tensors(
        keys in prop::collection::vec((0..NUMBERS.len(), prop_oneof![0u32..130, any::<u32>()]), 0..4),
        dims in prop::collection::vec((any::<prop::sample::Index>(), 0usize..3, 1u64..200), 0..3),
        stacked: bool,
    ) {
        let mut file = File::routed("llama", stacked);
        for (key, value) in keys {
            file.set(NUMBERS[key], value);
        }
        for (tensor, dim, size) in dims {
            let tensor = tensor.index(file.tensors.len());
            let tensor = &mut file.tensors[tensor];
            if let Some(dim) = tensor.dims.get_mut(dim) {
                *dim = size;
            }
        }
        let model = file.model();
        if let Ok((spec, units)) = ModelSpec::from_gguf(&model) {
            let shape = spec.shape(&units, ModelId([0; 32]), KvCacheType::F32);
            prop_assert_eq!(shape.blocks.len(), spec.blocks.len());
            for part in units.units().flat_map(|unit| units.tensors(unit)) {
                let inside = model.tensors.iter().any(|tensor| {
                    tensor.offset <= part.range.offset && part.range.offset + part.range.len <= tensor.end()
                });
                prop_assert!(inside, "{part:?} is outside of every tensor");
            }
        }
        Profile::from_gguf(&model);
    }
}

#[test]
fn keys_that_no_block_could_share_are_refused() {
    let shared = |shared: u32| {
        let mut file = File::dense("gemma4");
        file.set("attention.shared_kv_layers", shared);
        file.error()
    };
    assert!(shared(2).contains("gemma4.attention.shared_kv_layers"), "all of two blocks: {}", shared(2));
    // One block of two may; then the file lacks other tensors of this architecture.
    assert!(shared(1).contains("tensor"), "{}", shared(1));
    let mut file = File::routed("gemma4", true);
    file.set("embedding_length_per_layer_input", 16u32);
    assert!(file.error().contains("embeddings per block of a model with experts"), "{}", file.error());
}
