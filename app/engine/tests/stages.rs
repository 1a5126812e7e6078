//! One stage, three stages and replays all give the same bits; also tests KV cache handling and errors.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::collections::{BTreeMap, BTreeSet};

use potluck_engine::{EngineError, Gpu, Settings, Tier};
use potluck_gguf::TensorType;
use potluck_model::Architecture;
use potluck_plan::{
    AllowedTokens, BatchToken, BiasedTokens, BlockIndex, BlockRange, Candidates, ConversationId, ExpertId, FirstToken,
    Input, KernelClass, KvCacheType, LmHeadRequest, LmHeadTokens, LogitBias, LogitsRequest, Outcome, Position,
    SampledSteps, Sampling, Task, Then, Ticket, WeightUnit, Work,
};
use potluck_shaders::reference;
use support::{Bench, Model, Recipe, TALK, forward, gpu_as, logits, rows, top};

const TIERS: [Tier; 2] = [Tier::Software, Tier::Full];
/// Prefill chunks, then single decoded tokens.
const CUTS: [(u32, u32); 6] = [(0, 40), (40, 66), (66, 67), (67, 68), (68, 69), (69, 70)];

fn settings() -> Settings {
    settings_with(KvCacheType::F32)
}

fn settings_with(kv_type: KvCacheType) -> Settings {
    Settings { context: 256, kv_cache: kv_type, ..Settings::default() }
}

fn class(cut: (u32, u32)) -> KernelClass {
    if cut.1 - cut.0 == 1 { KernelClass::Decode } else { KernelClass::Prefill }
}

fn tokens(model: &Model) -> Vec<u32> {
    let mut random = support::Random(5);
    (0..80).map(|_| random.below(model.spec.vocabulary)).collect()
}

fn slice(tokens: &[u32], cut: (u32, u32)) -> Input {
    Input::Tokens(tokens[cut.0 as usize..cut.1 as usize].to_vec())
}

/// Logits of the last token of each cut, on one engine.
fn one_stage(gpu: &Gpu, model: &Model) -> Vec<Vec<f32>> {
    one_stage_with(gpu, model, KvCacheType::F32)
}

/// The same with keys and values stored in a KV cache type.
fn one_stage_with(gpu: &Gpu, model: &Model, kv_type: KvCacheType) -> Vec<Vec<f32>> {
    let tokens = tokens(model);
    let mut bench = Bench::new(gpu, model, &model.all_units(), settings_with(kv_type));
    let end = model.spec.blocks.len() as u16;
    CUTS.iter()
        .map(|&cut| {
            bench.hidden(forward(
                rows(cut.0..cut.1),
                class(cut),
                slice(&tokens, cut),
                (0, end),
                logits(LmHeadTokens::Last),
            ))
        })
        .collect()
}

fn block_of(unit: WeightUnit) -> Option<u16> {
    unit.block().map(|block| block.0)
}

#[test]
fn three_stages_give_the_bits_of_one() {
    for tier in TIERS {
        let gpu = gpu_as(Some(tier));
        for (architecture, kv_type) in [
            (Architecture::Qwen2, KvCacheType::F32),
            (Architecture::Qwen3Moe, KvCacheType::F32),
            (Architecture::Qwen3, KvCacheType::Q8_0),
        ] {
            let model = Recipe::new(architecture, TensorType::Q4_K).build();
            let expected = one_stage_with(&gpu, &model, kv_type);
            let tokens = tokens(&model);
            let mut stages: Vec<Bench> = (0..3)
                .map(|stage: u16| {
                    let units: BTreeSet<WeightUnit> = model
                        .units
                        .units()
                        .filter(|&unit| match unit {
                            WeightUnit::Embedding => stage == 0,
                            WeightUnit::LmHead => stage == 2,
                            _ => block_of(unit) == Some(stage),
                        })
                        .collect();
                    Bench::new(&gpu, &model, &units, settings_with(kv_type))
                })
                .collect();
            for (&cut, expected) in CUTS.iter().zip(&expected) {
                let r = || rows(cut.0..cut.1);
                let hidden = stages[0].hidden(forward(r(), class(cut), slice(&tokens, cut), (0, 1), Then::Hidden));
                let hidden = stages[1].hidden(forward(r(), class(cut), Input::Hidden(hidden), (1, 2), Then::Hidden));
                let last = forward(r(), class(cut), Input::Hidden(hidden), (2, 3), logits(LmHeadTokens::Last));
                assert_eq!(&stages[2].hidden(last), expected, "{tier:?} {architecture:?} {kv_type} {cut:?}");
            }
        }
    }
}

#[test]
fn keeping_the_gpu_warm_between_rows_changes_no_bit() {
    let gpu = gpu_as(None);
    let model = Recipe::new(Architecture::Qwen3, TensorType::Q4_K).build();
    let whole = one_stage(&gpu, &model);
    let tokens = tokens(&model);
    let mut bench = Bench::new(&gpu, &model, &model.all_units(), settings());
    let end = model.spec.blocks.len() as u16;
    for (cut, expected) in CUTS.into_iter().zip(whole) {
        let before = gpu.warmed();
        gpu.keep_alive(60_000.0);
        // Other tests may use the adapter meanwhile, which pauses keep-alive. The batch arrives during keep-alive work.
        while gpu.warmed() == before {
            std::thread::yield_now();
        }
        let row = forward(rows(cut.0..cut.1), class(cut), slice(&tokens, cut), (0, end), logits(LmHeadTokens::Last));
        assert_eq!(bench.hidden(row), expected, "rows {cut:?}");
    }
    gpu.stop_keep_alive();
    let after = gpu.warmed();
    let cut = CUTS[0];
    bench.hidden(forward(rows(cut.0..cut.1), class(cut), slice(&tokens, cut), (0, end), logits(LmHeadTokens::Last)));
    assert_eq!(gpu.warmed(), after, "nothing runs on");
    bench.engine.destroy();
}

#[test]
fn decode_steps_are_encoded_in_advance_and_give_the_same_bits() {
    let gpu = gpu_as(None);
    let model = Recipe::new(Architecture::Qwen3, TensorType::Q4_K).build();
    let expected = one_stage(&gpu, &model);
    let tokens = tokens(&model);
    let mut bench = Bench::new(&gpu, &model, &model.all_units(), settings());
    let step = |bench: &mut Bench, conversation: u32, cut: (u32, u32)| {
        let rows = (cut.0..cut.1)
            .map(|position| BatchToken { conversation: ConversationId(conversation), position: Position(position) })
            .collect();
        bench.hidden(forward(rows, class(cut), slice(&tokens, cut), (0, 3), logits(LmHeadTokens::Last)))
    };
    let used = |bench: &Bench| bench.engine.encoded_in_advance();
    for (&cut, expected) in CUTS.iter().zip(&expected) {
        assert_eq!(&step(&mut bench, 1, cut), expected, "{cut:?}");
    }
    assert_eq!(used(&bench), 3, "of four decode steps only the first was not expected");

    // Positions and pages live in buffers, so another conversation's step uses the same encoding.
    let mut beside = Bench::new(&gpu, &model, &model.all_units(), settings());
    for cut in [(0, 40), (40, 41), (41, 42)] {
        assert_eq!(step(&mut bench, 2, cut), step(&mut beside, 2, cut), "a conversation in between, {cut:?}");
    }
    assert_eq!(used(&bench), 4, "a context of fewer splits has dispatches of other sizes");
    assert_eq!(step(&mut bench, 1, (50, 51)), step(&mut bench, 1, (50, 51)), "the same position again");
    assert_eq!(used(&bench), 6, "the step is the same in both conversations");

    // Reallocating memory discards what was encoded with it.
    bench.engine.reserve(&model.all_units()).unwrap();
    assert_eq!(step(&mut bench, 2, (42, 43)), step(&mut beside, 2, (42, 43)), "after the memory was made anew");
    assert_eq!(used(&bench), 6);

    // Each conversation has its own slot for sampled tokens.
    let picked = |bench: &mut Bench, conversation: u32, position: u32| {
        let rows = vec![BatchToken { conversation: ConversationId(conversation), position: Position(position) }];
        let input = Input::Tokens(vec![tokens[position as usize]]);
        bench.candidates(forward(rows, KernelClass::Decode, input, (0, 3), top(LmHeadTokens::Last, 2)))
    };
    for (position, expected) in (43..46).zip([6, 7, 8]) {
        assert_eq!(picked(&mut bench, 2, position), picked(&mut beside, 2, position), "{position}");
        assert_eq!(used(&bench), expected, "a conversation's next token stays in its slot, {position}");
    }
}

#[test]
fn a_replay_with_decoded_rows_together_gives_the_same_bits() {
    for tier in TIERS {
        let gpu = gpu_as(Some(tier));
        for (architecture, kind, kv_type) in [
            (Architecture::Qwen3, TensorType::Q4_K, KvCacheType::F32),
            (Architecture::Qwen3Moe, TensorType::Q6_K, KvCacheType::F32),
            (Architecture::Llama, TensorType::Q8_0, KvCacheType::F32),
            (Architecture::Qwen2, TensorType::Q4_0, KvCacheType::F32),
            (Architecture::Llama, TensorType::Q4_0, KvCacheType::F16),
            (Architecture::Qwen3, TensorType::Q8_0, KvCacheType::Q8_0),
            (Architecture::Llama, TensorType::Q8_0, KvCacheType::Q4_0),
        ] {
            let model = Recipe::new(architecture, kind).build();
            let expected = one_stage_with(&gpu, &model, kv_type);
            let tokens = tokens(&model);
            let mut bench = Bench::new(&gpu, &model, &model.all_units(), settings_with(kv_type));
            for cut in &CUTS[..2] {
                let work = forward(rows(cut.0..cut.1), class(*cut), slice(&tokens, *cut), (0, 3), Then::Nothing);
                assert_eq!(bench.run(work), Outcome::Done);
            }
            let all =
                forward(rows(66..70), KernelClass::Decode, slice(&tokens, (66, 70)), (0, 3), logits(LmHeadTokens::All));
            let got = bench.hidden(all);
            for (row, expected) in got.chunks(model.spec.vocabulary as usize).zip(&expected[2..]) {
                assert_eq!(row, expected, "{tier:?} {architecture:?} {kind:?} {kv_type}");
            }
        }
    }
}

#[test]
fn candidates_are_the_best_logits_in_order() {
    for tier in TIERS {
        let model = Recipe { vocabulary: 1000, ..Recipe::new(Architecture::Qwen3, TensorType::Q8_0) }.build();
        let tokens = tokens(&model);
        let mut bench = Bench::new(&gpu_as(Some(tier)), &model, &model.all_units(), settings());
        let work = |then| forward(rows(0..5), KernelClass::Decode, slice(&tokens, (0, 5)), (0, 3), then);
        let all = bench.hidden(work(logits(LmHeadTokens::All)));
        for n in [1, 7, 128] {
            let got = bench.candidates(work(top(LmHeadTokens::All, n)));
            assert_eq!(got.len(), 5);
            for (row, got) in all.chunks(1000).zip(&got) {
                let expected = potluck_shaders::reference::top(row, usize::from(n));
                let ids: Vec<u32> = expected.iter().map(|(id, _)| *id).collect();
                let values: Vec<f32> = expected.iter().map(|(_, value)| *value).collect();
                assert_eq!((&got.ids, &got.logits), (&ids, &values), "{tier:?} {n}");
            }
        }
        let last = bench.candidates(work(top(LmHeadTokens::Last, 1)));
        assert_eq!(last[0].ids[0], potluck_shaders::reference::top(&all[4000..], 1)[0].0);
    }
}

#[test]
fn several_pieces_of_work_run_in_order_and_cancelled_ones_not_at_all() {
    let model = Recipe::new(Architecture::Qwen3, TensorType::Q4_0).build();
    let expected = one_stage(&gpu_as(None), &model);
    let tokens = tokens(&model);
    let mut bench = Bench::new(&gpu_as(None), &model, &model.all_units(), Settings { in_flight: 2, ..settings() });
    let tickets: Vec<Ticket> = CUTS
        .iter()
        .map(|&cut| {
            let work = forward(rows(cut.0..cut.1), class(cut), slice(&tokens, cut), (0, 3), top(LmHeadTokens::Last, 1));
            bench.start(work)
        })
        .collect();
    let extra =
        bench.start(forward(rows(70..71), KernelClass::Decode, slice(&tokens, (70, 71)), (0, 3), Then::Nothing));
    assert_eq!(bench.engine.pending(), 7);
    assert!(bench.engine.cancel(extra));
    assert_eq!(bench.answer(extra), Outcome::Cancelled);
    for (ticket, expected) in tickets.into_iter().zip(&expected) {
        let Outcome::Candidates(got) = bench.answer(ticket) else { panic!("no candidates") };
        assert_eq!(got[0].ids[0], potluck_shaders::reference::top(expected, 1)[0].0);
    }
    assert_eq!(bench.engine.kv_cache_len(TALK), 70);
}

#[test]
fn a_conversation_that_is_over_while_its_batch_waits_fails_nobody_else() {
    let model = Recipe::new(Architecture::Qwen3, TensorType::Q4_0).build();
    let mut bench = Bench::new(&gpu_as(None), &model, &model.all_units(), Settings { in_flight: 1, ..settings() });
    let other = ConversationId(8);
    let both = |position: u32| -> Vec<BatchToken> {
        [TALK, other].map(|conversation| BatchToken { conversation, position: Position(position) }).into()
    };
    let work = |batch: Vec<BatchToken>| {
        let input = Input::Tokens(vec![1; batch.len()]);
        forward(batch, KernelClass::Decode, input, (0, 3), top(LmHeadTokens::All, 1))
    };
    bench.candidates(work(both(0)));
    let first = bench.start(work(rows(1..2)));
    let waits = bench.start(work(vec![both(2)[0], both(1)[1]]));
    bench.engine.forget(other);
    for (ticket, count) in [(first, 1), (waits, 2)] {
        let outcome = bench.answer(ticket);
        assert!(matches!(&outcome, Outcome::Candidates(got) if got.len() == count), "{outcome:?}");
    }
    assert_eq!((bench.engine.kv_cache_len(TALK), bench.engine.kv_cache_len(other)), (3, 0));
}

/// Greedy tokens from position `from` on, each requested after the last one was read back.
fn one_by_one(bench: &mut Bench, first: u32, from: u32, count: u32) -> Vec<Candidates> {
    let mut token = first;
    (from..from + count)
        .map(|at| {
            let input = Input::Tokens(vec![token]);
            let got = bench.candidates(forward(
                rows(at..at + 1),
                KernelClass::Decode,
                input,
                (0, 3),
                top(LmHeadTokens::Last, 1),
            ));
            token = got[0].ids[0];
            got[0].clone()
        })
        .collect()
}

fn continue_decode(position: u32, token: FirstToken, steps: u16) -> Task {
    Task::Continue { row: rows(position..position + 1)[0], token, steps, sampling: None }
}

/// The logits of each of these tokens, one row after another: an engine returns the logits of few rows at a time.
fn logits_one_by_one(bench: &mut Bench, prompt: &[u32]) -> Vec<f32> {
    let mut all = Vec::new();
    for (at, token) in (0..).zip(prompt) {
        let (batch, input) = (rows(at..at + 1), Input::Tokens(vec![*token]));
        all.extend(bench.hidden(forward(batch, KernelClass::Decode, input, (0, 3), logits(LmHeadTokens::Last))));
    }
    all
}

/// The candidates of a prompt that is computed at once.
fn candidates_with(
    bench: &mut Bench,
    prompt: &[u32],
    class: KernelClass,
    request: LmHeadRequest,
    biases: &[BiasedTokens],
) -> Vec<Candidates> {
    let batch = rows(0..prompt.len() as u32);
    let task = forward(batch, class, Input::Tokens(prompt.to_vec()), (0, 3), Then::LmHead(request));
    let Task::Forward { batch, class, input, blocks, then, .. } = task else { unreachable!() };
    bench.candidates(Task::Forward { batch, class, input, blocks, then, biases: biases.to_vec() })
}

/// These are the expected candidates and sums, row by row.
fn assert_candidates(got: &[Candidates], expected: &[(Vec<u32>, f64)], tier: Tier) {
    assert_eq!(got.len(), expected.len(), "{tier:?}");
    for (row, (got, (ids, sum))) in got.iter().zip(expected).enumerate() {
        assert_eq!(got.ids, *ids, "{tier:?}: row {row}");
        let got = f64::from(got.log_sum_exp.unwrap());
        assert!((got - sum).abs() < 1e-4 * sum.abs().max(1.0), "{tier:?}: row {row}: {got}, and not {sum}");
    }
}

/// Each row's logits as they were computed, and what its candidates and its sum must be with these biases.
fn expected_with(logits: &[f32], vocabulary: usize, biases: &[BiasedTokens], count: usize) -> Vec<(Vec<u32>, f64)> {
    let row = |(at, row): (usize, &[f32])| {
        let mut row = row.to_vec();
        let of_row = biases.iter().find(|biased| biased.tokens.contains(&(at as u32)));
        of_row.iter().for_each(|biased| biased.bias.apply(&mut row));
        of_row.iter().filter_map(|biased| biased.allowed.as_ref()).for_each(|allowed| allowed.apply(&mut row));
        let best = reference::top(&row, count).into_iter().map(|(id, _)| id).collect();
        (best, reference::log_sum_exp(&row))
    };
    logits.chunks_exact(vocabulary).enumerate().map(row).collect()
}

/// Biases act before candidates are chosen, each on its own rows, on every tier; the others keep their bits.
#[test]
fn biases_change_only_their_rows_and_sums_are_those_of_all_logits() {
    let model = Recipe::new(Architecture::Llama, TensorType::Q4_K).build();
    let (prompt, count) = (tokens(&model)[..12].to_vec(), 128);
    for tier in TIERS {
        let mut bench = Bench::new(&gpu_as(Some(tier)), &model, &model.all_units(), settings());
        let logits = logits_one_by_one(&mut bench, &prompt);
        let vocabulary = logits.len() / 12;
        let mut run =
            |class, request, biases: &[BiasedTokens]| candidates_with(&mut bench, &prompt, class, request, biases);
        let request = |tokens, logits| LmHeadRequest { tokens, logits };
        let all = request(LmHeadTokens::All, LogitsRequest::TopWithSum(count));
        let plain = run(KernelClass::Decode, all, &[]);
        let best = |row: usize| plain[row].ids[0];
        let bias = |pairs: &[(u32, f32)]| LogitBias::new(BTreeMap::from_iter(pairs.iter().copied())).unwrap();
        let ban = bias(&[(best(3), -100.0), (best(4), -100.0), (vocabulary as u32 - 1, 60.0)]);
        let many = bias(&(0..vocabulary as u32 / 2).map(|id| (id * 2, 1.0 - id as f32 / 100.0)).collect::<Vec<_>>());
        let biases = [
            BiasedTokens { tokens: 3..5, bias: ban.clone(), allowed: None },
            BiasedTokens { tokens: 9..10, bias: many, allowed: None },
        ];
        let biased = run(KernelClass::Decode, all, &biases);
        assert_candidates(&biased, &expected_with(&logits, vocabulary, &biases, usize::from(count)), tier);
        for row in [0, 1, 2, 5, 6, 7, 8, 10, 11] {
            assert_eq!(biased[row], plain[row], "{tier:?}: row {row} has no bias");
        }
        assert_eq!(biased[3].ids[0], vocabulary as u32 - 1);
        assert!(biased[3].without_banned().ids.iter().all(|id| *id != best(3)));
        let sampled = run(KernelClass::Decode, request(LmHeadTokens::All, LogitsRequest::Top(1)), &biases);
        assert_eq!(sampled[9].ids[0], biased[9].ids[0], "greedily, too");
        let again = run(KernelClass::Decode, all, &[]);
        assert_eq!(again, plain, "{tier:?}: nothing of it is left");
        let last =
            run(KernelClass::Prefill, request(LmHeadTokens::Last, LogitsRequest::Top(1)), &BiasedTokens::all(12, &ban));
        assert_eq!(last[0].ids, [vocabulary as u32 - 1], "{tier:?}: the end of a prompt");
    }
}

/// Masks act before candidates are chosen, each on its own rows and together with a bias, on every tier; the others keep their bits.
#[test]
fn masks_leave_only_what_is_allowed_and_change_only_their_rows() {
    let model = Recipe::new(Architecture::Llama, TensorType::Q4_K).build();
    let (prompt, count) = (tokens(&model)[..12].to_vec(), 128);
    for tier in TIERS {
        let mut bench = Bench::new(&gpu_as(Some(tier)), &model, &model.all_units(), settings());
        let logits = logits_one_by_one(&mut bench, &prompt);
        let vocabulary = logits.len() / 12;
        let mut run =
            |class, request, biases: &[BiasedTokens]| candidates_with(&mut bench, &prompt, class, request, biases);
        let request = |tokens, logits| LmHeadRequest { tokens, logits };
        let all = request(LmHeadTokens::All, LogitsRequest::TopWithSum(count));
        let plain = run(KernelClass::Decode, all, &[]);
        // The tokens that the model finds least likely: none of them is among the best 128 without a mask.
        let row = &logits[3 * vocabulary..4 * vocabulary];
        let worst: Vec<u32> = reference::top(row, vocabulary).iter().rev().take(5).map(|(id, _)| *id).collect();
        let allowed = |tokens: &[u32]| AllowedTokens::only(vocabulary as u32, tokens.iter().copied()).ok();
        let odd: Vec<u32> = (0..vocabulary as u32).filter(|id| id % 2 == 1).collect();
        let bias = LogitBias::new([(worst[0], -100.0), (worst[1], 50.0)]).unwrap();
        let (none, free) = (LogitBias::default(), AllowedTokens::all(vocabulary as u32).ok());
        let biases = [
            BiasedTokens { tokens: 3..4, bias: none.clone(), allowed: allowed(&worst) },
            BiasedTokens { tokens: 4..6, bias: none.clone(), allowed: allowed(&odd) },
            BiasedTokens { tokens: 7..8, bias: none.clone(), allowed: free },
            BiasedTokens { tokens: 9..10, bias: bias.clone(), allowed: allowed(&worst) },
        ];
        let masked = run(KernelClass::Decode, all, &biases);
        assert_candidates(&masked, &expected_with(&logits, vocabulary, &biases, usize::from(count)), tier);
        for row in [0, 1, 2, 6, 7, 8, 10, 11] {
            assert_eq!(masked[row], plain[row], "{tier:?}: row {row} has no mask");
        }
        let chosen = masked[3].without_banned();
        assert!(chosen.ids.len() == 5 && chosen.ids.iter().all(|id| worst.contains(id)), "{tier:?}: {chosen:?}");
        assert_eq!(masked[9].ids[0], worst[1], "{tier:?}: bias and mask");
        assert!(masked[9].without_banned().ids.iter().all(|id| *id != worst[0]));
        let greedy = run(KernelClass::Decode, request(LmHeadTokens::All, LogitsRequest::Top(1)), &biases);
        assert_eq!(greedy[3].ids, masked[3].ids[..1], "{tier:?}: greedily, too");
        let last = [BiasedTokens { tokens: 0..12, bias: none, allowed: allowed(&worst[2..3]) }];
        let last = run(KernelClass::Prefill, request(LmHeadTokens::Last, LogitsRequest::Top(1)), &last);
        assert_eq!(last[0].ids, worst[2..3], "{tier:?}: the end of a prompt");
        assert_eq!(run(KernelClass::Decode, all, &[]), plain, "{tier:?}: nothing of it is left");
    }
}

#[test]
fn a_mask_of_another_vocabulary_is_refused() {
    let model = Recipe::new(Architecture::Llama, TensorType::Q4_K).build();
    let bench = Bench::new(&gpu_as(Some(Tier::Full)), &model, &model.all_units(), settings());
    let task = forward(rows(0..1), KernelClass::Decode, Input::Tokens(vec![1]), (0, 3), top(LmHeadTokens::Last, 1));
    let Task::Forward { batch, class, input, blocks, then, .. } = task else { unreachable!() };
    let biases = vec![BiasedTokens { tokens: 0..1, bias: LogitBias::default(), allowed: AllowedTokens::all(7).ok() }];
    let submitted = bench
        .engine
        .submit(Work { ticket: Ticket(1), task: Task::Forward { batch, class, input, blocks, then, biases } });
    assert_eq!(submitted, Err(EngineError::OtherVocabulary));
}

#[test]
fn a_bias_that_the_vocabulary_does_not_have_is_refused() {
    let model = Recipe::new(Architecture::Llama, TensorType::Q4_K).build();
    let bench = Bench::new(&gpu_as(Some(Tier::Full)), &model, &model.all_units(), settings());
    let bias = LogitBias::new([(u32::MAX, 1.0)]).unwrap();
    let task = forward(rows(0..1), KernelClass::Decode, Input::Tokens(vec![1]), (0, 3), top(LmHeadTokens::Last, 1));
    let Task::Forward { batch, class, input, blocks, then, .. } = task else { unreachable!() };
    let task = Task::Forward { batch, class, input, blocks, then, biases: BiasedTokens::all(1, &bias) };
    let submitted = bench.engine.submit(Work { ticket: Ticket(1), task });
    assert_eq!(submitted, Err(EngineError::UnknownToken(u32::MAX)));
}

/// Settings that use every rule of the sampler, one or several at a time.
fn samplings() -> [Sampling; 5] {
    let plain = Sampling { top_k: 0, top_p: 1.0, min_p: 0.0, temperature: 1.0, seed: 1, ..Sampling::default() };
    [
        plain,
        Sampling { top_k: 40, top_p: 0.95, temperature: 0.7, seed: 2, ..plain },
        Sampling { min_p: 0.2, temperature: 1.5, seed: 3, ..plain },
        Sampling { repetition_penalty: 1.3, penalty_window: 64, seed: 4, ..Sampling::default() },
        Sampling { repetition_penalty: 1.2, penalty_window: 128, ..Sampling::greedy() },
    ]
}

#[test]
fn sampled_tokens_submitted_ahead_are_those_sampled_one_by_one() {
    let model = Recipe::new(Architecture::Llama, TensorType::Q4_K).build();
    let prompt = tokens(&model)[..60].to_vec();
    let mut bench = Bench::new(&gpu_as(Some(Tier::Full)), &model, &model.all_units(), settings());
    let most = top(LmHeadTokens::Last, LogitsRequest::MAX_TOP);
    let read = || forward(rows(0..60), KernelClass::Prefill, Input::Tokens(prompt.clone()), (0, 3), most);
    for sampling in samplings() {
        let mut log = prompt.clone();
        let mut expected = bench.candidates(read());
        log.extend(sampling.sample(&expected[0], &log));
        for at in 60..76 {
            let input = Input::Tokens(vec![log[at as usize]]);
            expected.extend(bench.candidates(forward(rows(at..at + 1), KernelClass::Decode, input, (0, 3), most)));
            log.extend(sampling.sample(&expected[expected.len() - 1], &log));
        }

        let steps = |recent: &[u32]| SampledSteps::after(sampling, recent);
        let ahead =
            |at: u32, steps: u16, token, sampling| Task::Continue { row: rows(at..at + 1)[0], token, steps, sampling };
        bench.candidates(read());
        let first = ahead(60, 8, FirstToken::Given(log[60]), steps(&log[..61]));
        let further = [(68, 1), (69, 7)];
        let further = further.map(|(at, count)| ahead(at, count, FirstToken::Sampled, steps(&[])));
        let tickets: Vec<Ticket> = std::iter::once(first).chain(further).map(|task| bench.start(task)).collect();
        let mut got = Vec::new();
        for ticket in tickets {
            let Outcome::Candidates(some) = bench.answer(ticket) else { panic!("no candidates") };
            got.extend(some);
        }
        let sampled: Vec<u32> = got.iter().filter_map(|row| row.sampled).collect();
        assert_eq!(sampled, log[61..], "{sampling:?}");
        let best: Vec<u32> = got.iter().map(|row| row.ids[0]).collect();
        assert_ne!(sampled, best, "{sampling:?}: nothing was sampled");
        got.iter_mut().for_each(|row| row.sampled = None);
        assert_eq!(got, expected[1..], "{sampling:?}: its candidates have other bits");
    }
}

#[test]
fn without_a_kernel_that_samples_an_engine_goes_on_with_the_best_candidate() {
    let model = Recipe::new(Architecture::Llama, TensorType::Q4_0).build();
    let mut bench = Bench::new(&gpu_as(Some(Tier::Software)), &model, &model.all_units(), settings());
    let sampling = SampledSteps::after(Sampling::default(), &[7]);
    let got = bench.candidates(Task::Continue { row: rows(0..1)[0], token: FirstToken::Given(7), steps: 3, sampling });
    assert_eq!((got.len(), got[0].sampled), (3, None));
    let greedy = one_by_one(&mut bench, 7, 0, 3);
    let best = |rows: &[Candidates]| rows.iter().map(|row| row.ids[0]).collect::<Vec<u32>>();
    assert_eq!(best(&got), best(&greedy));
}

#[test]
fn tokens_submitted_ahead_are_the_bits_of_tokens_one_by_one() {
    for tier in TIERS {
        let gpu = gpu_as(Some(tier));
        for architecture in [Architecture::Llama, Architecture::Qwen3Moe] {
            let model = Recipe::new(architecture, TensorType::Q4_K).build();
            let tokens = tokens(&model);
            let mut bench = Bench::new(&gpu, &model, &model.all_units(), settings());
            let prompt = || {
                forward(rows(0..60), KernelClass::Prefill, slice(&tokens, (0, 60)), (0, 3), top(LmHeadTokens::Last, 1))
            };
            let first = bench.candidates(prompt())[0].ids[0];
            let expected = one_by_one(&mut bench, first, 60, 14);

            // A group in one piece of work, then groups and single steps submitted before anything is read back. They
            // cross a page border.
            bench.candidates(prompt());
            let mut got = bench.candidates(continue_decode(60, FirstToken::Given(first), 3));
            let pieces = [(63, 1), (64, 1), (65, 8), (73, 1)];
            let tickets = pieces.map(|(at, steps)| bench.start(continue_decode(at, FirstToken::Sampled, steps)));
            for ticket in tickets {
                let Outcome::Candidates(some) = bench.answer(ticket) else { panic!("no candidates") };
                got.extend(some);
            }
            assert_eq!(got, expected, "{tier:?} {architecture:?}");
            assert_eq!(bench.engine.kv_cache_len(TALK), 74);

            // Submitted right after a prompt whose answer is not read back yet; another conversation in between does no
            // harm.
            let ask = bench.start(prompt());
            let other = BatchToken { conversation: ConversationId(8), position: Position(0) };
            let then = top(LmHeadTokens::Last, 1);
            bench.start(forward(vec![other], KernelClass::Decode, slice(&tokens, (70, 71)), (0, 3), then));
            let ticket = bench.start(continue_decode(60, FirstToken::Sampled, 5));
            assert!(matches!(bench.answer(ask), Outcome::Candidates(_)));
            assert_eq!(bench.answer(ticket), Outcome::Candidates(expected[..5].to_vec()));

            // The next work truncates surplus steps.
            assert_eq!(one_by_one(&mut bench, expected[1].ids[0], 62, 12), expected[2..]);
        }
    }
}

#[test]
fn a_continuation_needs_a_chosen_token_and_every_unit() {
    let model = Recipe::new(Architecture::Qwen3, TensorType::Q8_0).build();
    let tokens = tokens(&model);
    let mut bench = Bench::new(&gpu_as(None), &model, &model.all_units(), settings());
    let submit = |bench: &Bench, task| bench.engine.submit(Work { ticket: Ticket(1000), task }).unwrap_err();
    assert_eq!(submit(&bench, continue_decode(0, FirstToken::Given(1), 0)), EngineError::BadSteps(0));
    assert_eq!(submit(&bench, continue_decode(0, FirstToken::Given(1), 9)), EngineError::BadSteps(9));
    assert_eq!(submit(&bench, continue_decode(0, FirstToken::Given(333), 1)), EngineError::UnknownToken(333));
    let none = |position| EngineError::NothingChosen { conversation: TALK, position };
    assert_eq!(submit(&bench, continue_decode(0, FirstToken::Sampled, 1)), none(0));
    let prompt = |then| forward(rows(0..5), KernelClass::Prefill, slice(&tokens, (0, 5)), (0, 3), then);
    bench.candidates(prompt(top(LmHeadTokens::Last, 1)));
    assert_eq!(submit(&bench, continue_decode(4, FirstToken::Sampled, 1)), none(4));
    let sampled = Task::Continue {
        row: rows(5..6)[0],
        token: FirstToken::Sampled,
        steps: 1,
        sampling: SampledSteps::after(Sampling::default(), &[]),
    };
    assert_eq!(submit(&bench, sampled), none(5), "the best candidate was not sampled");
    // A pass that samples nothing gives decoding nothing to continue from.
    bench.run(prompt(Then::Nothing));
    assert_eq!(submit(&bench, continue_decode(5, FirstToken::Sampled, 1)), none(5));
    let gap = EngineError::Gap { conversation: TALK, known: 5, wanted: 9 };
    assert_eq!(submit(&bench, continue_decode(9, FirstToken::Given(1), 1)), gap);
    let some = model.all_units().into_iter().filter(|unit| *unit != WeightUnit::LmHead).collect();
    let headless = Bench::new(&gpu_as(None), &model, &some, settings());
    assert_eq!(
        submit(&headless, continue_decode(0, FirstToken::Given(1), 1)),
        EngineError::NotResident(WeightUnit::LmHead)
    );
}

#[test]
fn units_that_stay_keep_their_bytes() {
    let gpu = gpu_as(None);
    let model = Recipe { tied: true, experts: true, ..Recipe::new(Architecture::Llama, TensorType::Q4_K) }.build();
    let expected = one_stage(&gpu, &model);
    let tokens = tokens(&model);
    let all = model.all_units();
    let some = all
        .iter()
        .copied()
        .filter(|unit| !matches!(unit, WeightUnit::Expert(_, ExpertId(1 | 4)) | WeightUnit::Embedding));
    let mut bench = Bench::new(&gpu, &model, &some.collect(), settings());
    bench.engine.reserve(&all).unwrap();
    let missing = bench.engine.missing();
    assert_eq!(missing.len(), 2 * 3 + 1, "{missing:?}");
    assert!(!bench.engine.needs(WeightUnit::Embedding, 0), "the tied head brought the table");
    support::load(&bench.engine, &model.units, &|unit, tensor| model.bytes(unit, tensor));
    for (&cut, expected) in CUTS.iter().zip(&expected) {
        let work = forward(rows(cut.0..cut.1), class(cut), slice(&tokens, cut), (0, 3), logits(LmHeadTokens::Last));
        assert_eq!(&bench.hidden(work), expected);
    }
}

#[test]
fn impossible_work_is_refused_with_a_reason() {
    let model = Recipe::new(Architecture::Qwen3Moe, TensorType::Q8_0).build();
    let all = model.all_units();
    let held: BTreeSet<WeightUnit> = all.iter().copied().filter(|unit| block_of(*unit) != Some(2)).collect();
    let mut bench = Bench::new(&gpu_as(None), &model, &held, settings());
    let submit = |bench: &Bench, task| bench.engine.submit(Work { ticket: Ticket(1000), task }).unwrap_err();
    let decode = KernelClass::Decode;
    let one = |input, blocks, then| forward(rows(0..1), decode, input, blocks, then);
    let token = || Input::Tokens(vec![1]);
    let cases = [
        (one(token(), (0, 3), Then::Hidden), EngineError::NotResident(WeightUnit::TokenMixer(BlockIndex(2)))),
        (one(Input::Tokens(vec![333]), (0, 1), Then::Hidden), EngineError::UnknownToken(333)),
        (
            one(Input::Hidden(vec![0.0; 255]), (0, 1), Then::Hidden),
            EngineError::HiddenLength { got: 255, expected: 256 },
        ),
        (one(Input::Hidden(vec![f32::NAN; 256]), (0, 1), Then::Hidden), EngineError::NotFinite),
        (one(token(), (0, 1), Then::Route(BlockIndex(0))), EngineError::NotNext(BlockIndex(0))),
        (one(token(), (0, 1), top(LmHeadTokens::Last, 0)), EngineError::BadCandidateCount(0)),
        (
            forward(rows(3..4), decode, token(), (0, 1), Then::Hidden),
            EngineError::Gap { conversation: TALK, known: 0, wanted: 3 },
        ),
        (
            forward(rows(0..17), decode, Input::Tokens(vec![1; 17]), (0, 1), Then::Hidden),
            EngineError::TooManyRows { rows: 17, max: 16 },
        ),
        (forward(vec![], decode, Input::Tokens(vec![]), (0, 1), Then::Hidden), EngineError::NoRows),
    ];
    for (task, expected) in cases {
        assert_eq!(submit(&bench, task), expected);
    }
    // The engine still works.
    assert!(matches!(bench.run(one(token(), (0, 1), Then::Hidden)), Outcome::Hidden(_)));
    bench.engine.forget(TALK);
    assert_eq!(bench.engine.kv_cache_len(TALK), 0);
    assert_eq!(BlockRange::new(0, 0).len(), 0);
}
