//! Compares whole small models with the CPU reference, on this machine's adapter.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use futures::executor::block_on;
use potluck_engine::{Gpu, GpuError, GpuOptions, Settings, Tier, reference::Reference};
use potluck_gguf::TensorType;
use potluck_model::Architecture;
use potluck_plan::{Arithmetic, Input, KernelClass, KvCacheType, LmHeadTokens};
use support::{Bench, Model, Recipe, distance, forward, gpu_as, logits, rows};

/// Every architecture with its special features.
fn recipes(kind: TensorType) -> Vec<Recipe> {
    use Architecture::*;
    let mut all: Vec<Recipe> = [Llama, Qwen2, Qwen3, Qwen3Moe].map(|a| Recipe::new(a, kind)).into();
    all.push(Recipe { experts: true, normalize: false, ..Recipe::new(Llama, kind) });
    all.push(Recipe { tied: true, factors: true, ..Recipe::new(Llama, kind) });
    all
}

fn tokens(model: &Model, count: usize) -> Vec<u32> {
    let mut random = support::Random(99);
    (0..count).map(|_| random.below(model.spec.vocabulary)).collect()
}

/// The reference's logits after every token, with keys and values stored in a KV cache type.
fn expected(model: &Model, tokens: &[u32], kv_type: KvCacheType) -> Vec<Vec<f32>> {
    let source = |unit, tensor| model.bytes(unit, tensor);
    let mut reference = Reference::with_kv_cache(&model.spec, &model.units, &source, kv_type);
    tokens.iter().map(|&token| reference.next(token)).collect()
}

/// Prefills 70 tokens, then decodes, and compares with the reference. Returns the largest distance with the kernels of each
/// tier: the reference takes longer than both.
fn worst(recipe: &Recipe, kv_type: KvCacheType) -> [(Tier, f32); 2] {
    let model = recipe.build();
    let tokens = tokens(&model, 75);
    let expected = expected(&model, &tokens, kv_type);
    TIERS.map(|tier| (tier, worst_as(tier, &model, kv_type, (&tokens, &expected))))
}

fn worst_as(tier: Tier, model: &Model, kv_type: KvCacheType, (tokens, expected): (&[u32], &[Vec<f32>])) -> f32 {
    let blocks = (0, model.spec.blocks.len() as u16);
    let settings = Settings { context: 256, kv_cache: kv_type, ..Settings::default() };
    let mut bench = Bench::new(&gpu_as(Some(tier)), model, &model.all_units(), settings);
    let last = logits(LmHeadTokens::Last);
    let mut worst = 0.0f32;
    for (from, to, class) in [
        (0, 33, KernelClass::Prefill),
        (33, 70, KernelClass::Prefill),
        (70, 71, KernelClass::Decode),
        (71, 74, KernelClass::Decode),
        (74, 75, KernelClass::Decode),
    ] {
        let input = Input::Tokens(tokens[from..to].to_vec());
        let got = bench.hidden(forward(rows(from as u32..to as u32), class, input, blocks, last));
        worst = worst.max(distance(&got, &expected[to - 1]));
    }
    // Every batch row of a draft verification.
    let input = Input::Tokens(tokens[60..75].to_vec());
    let got = bench.hidden(forward(rows(60..75), KernelClass::Decode, input, blocks, logits(LmHeadTokens::All)));
    for (row, expected) in got.chunks(model.spec.vocabulary as usize).zip(&expected[60..75]) {
        worst = worst.max(distance(row, expected));
    }
    worst
}

const TIERS: [Tier; 2] = [Tier::Software, Tier::Full];

#[test]
fn every_architecture_agrees_with_the_reference() {
    for recipe in recipes(TensorType::Q4_K) {
        for (tier, worst) in worst(&recipe, KvCacheType::F32) {
            println!("{tier:?} {:?} experts {}: {worst}", recipe.architecture, recipe.experts);
            assert!(worst < 1e-4, "{tier:?} {:?} experts {}: {worst}", recipe.architecture, recipe.experts);
        }
    }
}

#[test]
fn every_weight_type_agrees_with_the_reference() {
    use TensorType::*;
    // Of the remaining formats, one with a codebook and one with blocks of an odd length; the kernel tests cover all formats.
    for kind in [F32, F16, Q8_0, Q4_0, Q6_K, IQ2_S, MXFP4] {
        for (tier, worst) in worst(&Recipe::new(Architecture::Qwen3Moe, kind), KvCacheType::F32) {
            println!("{tier:?} {kind:?}: {worst}");
            assert!(worst < 1e-4, "{tier:?} {kind:?}: {worst}");
        }
    }
}

#[test]
fn contexts_of_several_splits_agree_with_the_reference() {
    long_context(potluck_shaders::SPLIT as usize + 70, KvCacheType::F32, 1e-4);
    long_context(4 * potluck_shaders::SPLIT as usize + 70, KvCacheType::Q8_0, 1e-3);
}

fn long_context(length: usize, kv_type: KvCacheType, max: f32) {
    let recipe = Recipe { blocks: 1, ..Recipe::new(Architecture::Qwen3, TensorType::Q8_0) };
    let model = recipe.build();
    let tokens = tokens(&model, length);
    let border = length - 70;
    // Prefill up to three tokens before the border between splits; then batches across it, and single tokens.
    let step = if length > 2000 { 512 } else { 128 };
    let mut cuts: Vec<(usize, usize)> =
        (0..border - 3).step_by(step).map(|at| (at, (at + step).min(border - 3))).collect();
    cuts.extend([(border - 3, border + 3), (border + 3, border + 4), (border + 4, border + 5)]);
    let source = |unit, tensor| model.bytes(unit, tensor);
    let mut reference = Reference::with_kv_cache(&model.spec, &model.units, &source, kv_type);
    let mut expected = Vec::new();
    for (at, &token) in tokens.iter().enumerate() {
        if at + 3 >= border || cuts.iter().any(|cut| at + 1 == cut.1) {
            expected.push(reference.next(token));
        } else {
            reference.skip(token);
            expected.push(Vec::new());
        }
    }
    let settings = Settings { context: length as u32, kv_cache: kv_type, ..Settings::default() };
    let mut bench = Bench::new(&gpu_as(Some(Tier::Full)), &model, &model.all_units(), settings);
    for (from, to) in cuts {
        let class = if to < border { KernelClass::Prefill } else { KernelClass::Decode };
        let input = Input::Tokens(tokens[from..to].to_vec());
        let rows_wanted = if to < border { LmHeadTokens::Last } else { LmHeadTokens::All };
        let got = bench.hidden(forward(rows(from as u32..to as u32), class, input, (0, 1), logits(rows_wanted)));
        let first = if to < border { to - 1 } else { from };
        for (row, expected) in got.chunks(model.spec.vocabulary as usize).zip(&expected[first..to]) {
            let worst = distance(row, expected);
            assert!(worst < max, "{kv_type} {from}..{to}: {worst}");
        }
    }
}

#[test]
fn smaller_keys_and_values_agree_with_the_reference_that_stores_the_same() {
    use KvCacheType::{F16, Q4_0, Q8_0};
    // When a value lies between two steps, the last bit of a sum decides which one is stored: a few values differ by one
    // step.
    for (architecture, kv_type, max) in [
        (Architecture::Qwen3, F16, 2e-3),
        (Architecture::Qwen3, Q8_0, 2e-2),
        (Architecture::Llama, Q8_0, 2e-2),
        (Architecture::Qwen2, Q4_0, 0.1),
        (Architecture::Llama, Q4_0, 0.1),
    ] {
        for (tier, worst) in worst(&Recipe::new(architecture, TensorType::Q8_0), kv_type) {
            println!("{tier:?} {architecture:?} {kv_type}: {worst}");
            assert!(worst < max && worst > 0.0, "{tier:?} {architecture:?} {kv_type}: {worst}");
        }
    }
}

/// The logits after tokens of a class that are computed in pieces which end at `cuts`.
fn after(class: KernelClass, bench: &mut Bench, model: &Model, tokens: &[u32], cuts: &[usize]) -> Vec<f32> {
    bench.engine.forget(potluck_plan::ConversationId(0));
    let blocks = (0, model.spec.blocks.len() as u16);
    let mut from = 0;
    let mut all = Vec::new();
    for &to in cuts {
        let input = Input::Tokens(tokens[from..to].to_vec());
        let task = forward(rows(from as u32..to as u32), class, input, blocks, logits(LmHeadTokens::Last));
        all = bench.hidden(task);
        from = to;
    }
    all
}

#[test]
fn packed_prompts_are_near_the_exact_ones_and_do_not_depend_on_their_pieces() {
    let recipes = [
        // Plain and biased products of one format; experts; a format without a packed product beside one with it.
        Recipe::new(Architecture::Qwen2, TensorType::Q8_0),
        Recipe { odd_down: Some(TensorType::F16), ..Recipe::new(Architecture::Qwen3Moe, TensorType::Q4_K) },
    ];
    for recipe in recipes {
        let model = recipe.build();
        let tokens = tokens(&model, 75);
        let exact = expected(&model, &tokens, KvCacheType::F32).pop().unwrap();
        for tier in [Tier::Software, Tier::Full] {
            let settings = Settings { context: 256, arithmetic: Arithmetic::Packed, ..Settings::default() };
            let mut bench = Bench::new(&gpu_as(Some(tier)), &model, &model.all_units(), settings);
            let at_once = after(KernelClass::Prefill, &mut bench, &model, &tokens, &[75]);
            let in_pieces = after(KernelClass::Prefill, &mut bench, &model, &tokens, &[1, 34, 75]);
            assert_eq!(at_once, in_pieces, "{:?} {tier:?}", recipe.architecture);
            let far = distance(&at_once, &exact);
            println!("{:?} {tier:?}: {far:.2e}", recipe.architecture);
            assert!(far > 1e-4, "{:?} {tier:?}: computed exactly?", recipe.architecture);
            // Largest error over a whole row of logits, after three blocks of random weights that triple everything.
            assert!(far < 0.4, "{:?} {tier:?}: {far}", recipe.architecture);
        }
    }
}

#[test]
fn packed_answers_are_near_the_exact_ones_and_do_not_depend_on_how_many_tokens_run() {
    let recipes = [
        // Biases; norms of heads; experts, some of whose matrices have no packed product.
        Recipe::new(Architecture::Qwen2, TensorType::Q8_0),
        Recipe::new(Architecture::Llama, TensorType::Q4_K),
        Recipe::new(Architecture::Llama, TensorType::Q6_K),
        Recipe { odd_down: Some(TensorType::F16), ..Recipe::new(Architecture::Qwen3Moe, TensorType::Q4_K) },
    ];
    for recipe in recipes {
        let model = recipe.build();
        let tokens = tokens(&model, 21);
        let exact = expected(&model, &tokens, KvCacheType::F32).pop().unwrap();
        let settings = Settings { context: 256, arithmetic: Arithmetic::Packed, ..Settings::default() };
        let mut bench = Bench::new(&gpu_as(Some(Tier::Full)), &model, &model.all_units(), settings);
        let verdict = block_on(bench.engine.self_test()).unwrap();
        assert!(verdict.usable && !verdict.fallback && verdict.rows_agree, "{verdict:?}");
        let packed = verdict.kernels.iter().filter(|kernel| kernel.name.starts_with("fused packed")).count();
        assert!(packed >= 4, "{verdict:?}");
        let mut cuts = |cuts: &[usize]| after(KernelClass::Decode, &mut bench, &model, &tokens, cuts);
        let one_by_one = cuts(&(1..=21).collect::<Vec<_>>());
        assert_eq!(one_by_one, cuts(&[16, 21]), "{:?}", recipe.architecture);
        assert_eq!(one_by_one, cuts(&[2, 5, 6, 20, 21]), "{:?}", recipe.architecture);
        let far = distance(&one_by_one, &exact);
        println!("{:?}: {far:.2e}", recipe.architecture);
        assert!(far > 1e-4 && far < 0.4, "{:?}: {far}", recipe.architecture);
    }
}

#[test]
fn matrix_units_read_prompts_near_the_exact_ones_or_the_device_says_that_it_has_none() {
    let opened = block_on(Gpu::open(GpuOptions { matrix_units: true, ..GpuOptions::default() }));
    let gpu = match opened {
        Err(error) => return assert_eq!(error, GpuError::NoMatrixUnits),
        Ok(gpu) => gpu,
    };
    for recipe in
        [Recipe::new(Architecture::Qwen2, TensorType::Q8_0), Recipe::new(Architecture::Qwen3Moe, TensorType::Q4_K)]
    {
        let model = recipe.build();
        let tokens = tokens(&model, 75);
        let exact = expected(&model, &tokens, KvCacheType::F32).pop().unwrap();
        let settings = Settings { context: 256, arithmetic: Arithmetic::Matrix, ..Settings::default() };
        let mut bench = Bench::new(&gpu, &model, &model.all_units(), settings);
        let verdict = block_on(bench.engine.self_test()).unwrap();
        let tested: Vec<_> = verdict.kernels.iter().filter(|kernel| kernel.name.starts_with("matrix")).collect();
        assert!(!tested.is_empty() && verdict.kernels.iter().all(|kernel| kernel.ok), "{verdict:?}");
        let at_once = after(KernelClass::Prefill, &mut bench, &model, &tokens, &[75]);
        let in_pieces = after(KernelClass::Prefill, &mut bench, &model, &tokens, &[1, 34, 75]);
        assert_eq!(at_once, in_pieces, "{:?}", recipe.architecture);
        let far = distance(&at_once, &exact);
        println!("{:?}: {far:.2e}", recipe.architecture);
        assert!(far > 1e-5 && far < 0.05, "{:?}: {far}", recipe.architecture);
    }
}
