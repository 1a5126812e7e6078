//! Tuning changes which kernels run but never a bit of the results.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use futures::executor::block_on;
use potluck_engine::tuning::{Choice, Shape, Tuned, Tuning};
use potluck_engine::{Gpu, Settings, Tier};
use potluck_gguf::TensorType;
use potluck_model::Architecture;
use potluck_plan::{Arithmetic, Input, KernelClass, LmHeadTokens, Outcome, Task};
use potluck_shaders::{Job, KernelVariant, PackedTile, Tile};
use support::{Bench, Model, Recipe, forward, gpu_as, logits, rows};

/// Longer than any machine needs.
const PATIENT: f64 = 600_000.0;

fn settings(tuned: bool) -> Settings {
    by(Arithmetic::Exact, tuned)
}

fn by(arithmetic: Arithmetic, tuned: bool) -> Settings {
    Settings { context: 256, prefill_tokens: 64, tuned, arithmetic, ..Settings::default() }
}

fn models() -> Vec<Model> {
    [
        (Architecture::Qwen2, TensorType::Q6_K),
        (Architecture::Llama, TensorType::Q4_K),
        (Architecture::Qwen3Moe, TensorType::Q8_0),
    ]
    .map(|(architecture, kind)| Recipe { blocks: 2, ..Recipe::new(architecture, kind) }.build())
    .into()
}

/// Prompt chunks, then single tokens.
const CUTS: [(u32, u32); 4] = [(0, 64), (64, 97), (97, 98), (98, 99)];

fn piece(model: &Model, (from, to): (u32, u32)) -> Task {
    let class = if to - from == 1 { KernelClass::Decode } else { KernelClass::Prefill };
    let tokens = (from..to).map(|at| at * 7 % model.spec.vocabulary).collect();
    let end = model.spec.blocks.len() as u16;
    forward(rows(from..to), class, Input::Tokens(tokens), (0, end), logits(LmHeadTokens::Last))
}

/// Logits after each piece.
fn answers(bench: &mut Bench, model: &Model) -> Vec<Vec<f32>> {
    CUTS.into_iter().map(|cut| bench.hidden(piece(model, cut))).collect()
}

fn variants(packed: bool, job: Job, gpu: &Gpu) -> Vec<KernelVariant> {
    let candidates = if packed { KernelVariant::packed_candidates } else { KernelVariant::candidates };
    candidates(job, gpu.capabilities().subgroup)
}

/// Makes engines on this device use the choice that `select_candidates` picks for each shape.
fn choose(gpu: &Gpu, shapes: &[Shape], select_candidates: impl Fn(usize) -> usize) {
    let mut tuning = Tuning::default();
    for &shape in shapes {
        let choice = match shape {
            Shape::Decode { job, packed, .. } => {
                let variants = variants(packed, job, gpu);
                Choice::Variant(variants[select_candidates(variants.len())])
            }
            Shape::Packed { .. } => Choice::Packed(PackedTile::ALL[select_candidates(PackedTile::ALL.len())]),
            Shape::Prefill { .. } => Choice::Tile(Tile::CANDIDATES[select_candidates(Tile::CANDIDATES.len())]),
        };
        tuning.set(shape, Tuned { choice, gain: 1.0 });
    }
    gpu.set_tuning(tuning);
}

#[test]
fn whatever_is_chosen_the_bits_stay() {
    let packed = (models().swap_remove(1), Arithmetic::Packed);
    for (model, arithmetic) in models().into_iter().map(|model| (model, Arithmetic::Exact)).chain([packed]) {
        let gpu = gpu_as(Some(Tier::Full));
        let mut untuned = Bench::new(&gpu, &model, &model.all_units(), by(arithmetic, false));
        let expected = answers(&mut untuned, &model);
        let tuned = Bench::new(&gpu, &model, &model.all_units(), by(arithmetic, true));
        let shapes = tuned.engine.shapes().unwrap();
        let is_prefill = |shape: &&Shape| matches!(shape, Shape::Prefill { .. } | Shape::Packed { .. });
        let prefills = shapes.iter().filter(is_prefill).count();
        assert!(shapes.len() - prefills >= 4, "{:?}: {shapes:?}", model.spec.architecture);
        assert!(prefills >= 2, "{:?}: {shapes:?}", model.spec.architecture);
        for number in 0..6 {
            choose(&gpu, &shapes, |count| number.min(count - 1));
            let mut chosen = Bench::new(&gpu, &model, &model.all_units(), by(arithmetic, true));
            // A kernel with wrong results would be dropped here, and the test would prove nothing.
            let verdict = block_on(chosen.engine.self_test()).unwrap();
            assert!(verdict.usable && !verdict.fallback && verdict.rows_agree, "{verdict:?}");
            let variants = variants(arithmetic == Arithmetic::Packed, Job::Added, &gpu);
            let name = format!("Added ×1 {}", variants[number.min(variants.len() - 1)]);
            assert!(
                number == 0 || verdict.kernels.iter().any(|kernel| kernel.name.ends_with(&name)),
                "{name}: {verdict:?}"
            );
            for (at, (got, expected)) in answers(&mut chosen, &model).iter().zip(&expected).enumerate() {
                assert_eq!(got, expected, "{:?}: choice {number}, piece {at}", model.spec.architecture);
            }
        }
    }
}

#[test]
fn a_shape_is_measured_once_and_within_its_time() {
    let model = &models()[1];
    let gpu = gpu_as(Some(Tier::Full));
    let first = Bench::new(&gpu, model, &model.all_units(), settings(true));
    assert!(!block_on(first.engine.tune(-1.0)).unwrap(), "there was no time");
    assert!(gpu.tuning().is_empty());
    block_on(first.engine.prepare()).unwrap();
    block_on(first.engine.prepare_tuning(PATIENT)).unwrap();
    assert!(block_on(first.engine.tune(PATIENT)).unwrap());
    let known = gpu.tuning();
    for (shape, tuned) in known.iter() {
        println!("{shape} {} {:.2}", tuned.choice, tuned.gain);
        assert!(tuned.gain >= 1.0, "{shape}: {tuned:?}");
    }
    let second = Bench::new(&gpu, model, &model.all_units(), settings(true));
    assert!(!block_on(second.engine.tune(PATIENT)).unwrap(), "everything is known");
    assert_eq!(second.engine.tuned().unwrap().len(), known.iter().count());
    // Results stored by an earlier visit are used as if measured now.
    let lines = known.lines();
    let fresh = gpu_as(Some(Tier::Full));
    fresh.set_tuning(Tuning::read(lines.iter().map(String::as_str)).unwrap());
    let third = Bench::new(&fresh, model, &model.all_units(), settings(true));
    assert!(!block_on(third.engine.tune(PATIENT)).unwrap(), "everything is known");
}

#[test]
fn nothing_is_measured_while_a_token_is_computed_and_state_survives() {
    let model = &models()[0];
    let gpu = gpu_as(Some(Tier::Full));
    let mut untuned = Bench::new(&gpu, model, &model.all_units(), settings(false));
    let expected = answers(&mut untuned, model);
    let mut bench = Bench::new(&gpu, model, &model.all_units(), settings(true));
    for (at, cut) in CUTS.into_iter().enumerate() {
        let ticket = bench.start(piece(model, cut));
        if at == 1 {
            assert!(!block_on(bench.engine.tune(PATIENT)).unwrap(), "it would hold up work");
        }
        let Outcome::Logits(got) = bench.answer(ticket) else { panic!("no logits") };
        assert_eq!(got, expected[at], "piece {at}");
        if at == 1 {
            assert!(block_on(bench.engine.tune(PATIENT)).unwrap());
        }
    }
}
