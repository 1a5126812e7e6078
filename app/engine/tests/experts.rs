//! Experts elsewhere give the bits of experts here: an engine with the routers asks others for their experts' outputs
//! and goes on with the sum, in every kernel class and however the experts are spread.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::collections::BTreeSet;

use potluck_engine::{EngineError, Gpu, Layout, Purpose, Settings, Tier};
use potluck_gguf::TensorType;
use potluck_model::Architecture;
use potluck_plan::{
    Arithmetic, BlockIndex, ExpertId, ExpertOutputs, ExpertRoute, Input, KernelClass, LmHeadTokens, Outcome, Task,
    Then, Ticket, WeightUnit, Work,
};
use support::{Bench, Model, Recipe, TALK, distance, forward, gpu_as, logits, rows};

const TIERS: [Tier; 2] = [Tier::Software, Tier::Full];
const HIDDEN: usize = 256;
const BLOCKS: u16 = 3;
/// Experts a token uses, see `Recipe::build`.
const USED: usize = 3;
/// Prefill chunks, single decoded tokens, and several at a time.
const CUTS: [(u32, u32); 7] = [(0, 40), (40, 66), (66, 67), (67, 68), (68, 72), (72, 77), (77, 93)];
const DECODED_FROM: u32 = 66;

fn settings() -> Settings {
    by(Arithmetic::Exact)
}

fn by(arithmetic: Arithmetic) -> Settings {
    Settings { context: 1024, arithmetic, ..Settings::default() }
}

fn class(cut: (u32, u32)) -> KernelClass {
    if cut.0 >= DECODED_FROM { KernelClass::Decode } else { KernelClass::Prefill }
}

fn models() -> [Model; 2] {
    [
        Recipe::new(Architecture::Qwen3Moe, TensorType::Q4_K).build(),
        Recipe { experts: true, normalize: false, ..Recipe::new(Architecture::Llama, TensorType::Q4_0) }.build(),
    ]
}

fn tokens(model: &Model, cut: (u32, u32)) -> Input {
    let mut random = support::Random(5);
    let all: Vec<u32> = (0..cut.1).map(|_| random.below(model.spec.vocabulary)).collect();
    Input::Tokens(all[cut.0 as usize..].to_vec())
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// The experts with an id that `here` accepts, of every block.
fn experts(model: &Model, here: impl Fn(u16) -> bool) -> BTreeSet<WeightUnit> {
    model.units.units().filter(|unit| matches!(unit, WeightUnit::Expert(_, e) if here(e.0))).collect()
}

/// Everything but the experts.
fn without_experts(model: &Model) -> BTreeSet<WeightUnit> {
    model.units.units().filter(|unit| !matches!(unit, WeightUnit::Expert(..))).collect()
}

/// An engine that holds some experts.
struct Holder {
    bench: Bench,
    holds: Box<dyn Fn(ExpertId) -> bool>,
}

impl Holder {
    fn new(gpu: &Gpu, model: &Model, holds: impl Fn(u16) -> bool + 'static) -> Holder {
        Self::by(Arithmetic::Exact, gpu, model, holds)
    }

    fn by(arithmetic: Arithmetic, gpu: &Gpu, model: &Model, holds: impl Fn(u16) -> bool + 'static) -> Holder {
        let bench = Bench::new(gpu, model, &experts(model, &holds), by(arithmetic));
        Holder { bench, holds: Box::new(move |expert| holds(expert.0)) }
    }
}

/// Asks the first holder of each expert for its outputs and puts them in router order. Tokens that no expert of a holder
/// serves are not sent to it.
fn outputs(
    holders: &mut [Holder],
    block: BlockIndex,
    class: KernelClass,
    normed: &[f32],
    routes: &[ExpertRoute],
) -> Vec<f32> {
    let mut places: Vec<Vec<f32>> = Vec::new();
    let mut asked = vec![Vec::new(); holders.len()];
    for (token, route) in routes.iter().enumerate() {
        for (expert, _) in &route.experts {
            let holder = holders.iter().position(|holder| (holder.holds)(*expert)).unwrap();
            asked[holder].push((token, *expert, places.len()));
            places.push(Vec::new());
        }
    }
    for (holder, asked) in holders.iter_mut().zip(asked).filter(|(_, asked)| !asked.is_empty()) {
        let mut sent: Vec<(usize, Vec<ExpertId>)> = Vec::new();
        for (token, expert, _) in &asked {
            match sent.last_mut() {
                Some((last, experts)) if last == token => experts.push(*expert),
                _ => sent.push((*token, vec![*expert])),
            }
        }
        let normed = sent.iter().flat_map(|(token, _)| &normed[token * HIDDEN..][..HIDDEN]).copied().collect();
        let experts = sent.into_iter().map(|(_, experts)| experts).collect();
        let got = holder.bench.run(Task::Experts { block, class, normed, experts, sum: None });
        let Outcome::ExpertOutputs(got) = got else { panic!("{got:?}") };
        assert_eq!(got.len(), asked.len() * HIDDEN, "one vector for each pair that was asked for");
        for ((_, _, place), vector) in asked.into_iter().zip(got.chunks(HIDDEN)) {
            places[place] = vector.to_vec();
        }
    }
    places.concat()
}

/// Asks a holder of all experts for each token's weighted sum: what the hub adds is one output with the weight 1.
fn sums(
    holder: &mut Holder,
    block: BlockIndex,
    class: KernelClass,
    normed: Vec<f32>,
    routes: &[ExpertRoute],
) -> (Vec<ExpertRoute>, Vec<f32>) {
    let experts = routes.iter().map(|route| route.experts.iter().map(|(expert, _)| *expert).collect()).collect();
    let weights = routes.iter().map(|route| route.experts.iter().map(|(_, weight)| *weight).collect()).collect();
    let outcome = holder.bench.run(Task::Experts { block, class, normed, experts, sum: Some(weights) });
    let Outcome::ExpertOutputs(sums) = outcome else { panic!("{outcome:?}") };
    assert_eq!(sums.len(), routes.len() * HIDDEN, "one vector for each token");
    let of_one = |route: &ExpertRoute| ExpertRoute { experts: vec![(route.experts[0].0, 1.0)] };
    (routes.iter().map(of_one).collect(), sums)
}

/// What holders answer with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answers {
    /// A vector for each expert.
    Vectors,
    /// A sum for each token; the first holder has all experts.
    Sums,
}

/// Runs a batch with the experts of the blocks in `away` on the holders.
fn spread(hub: &mut Bench, holders: &mut [Holder], cut: (u32, u32), inputs: (Input, &[u16]), then: Then) -> Vec<f32> {
    spread_by(Answers::Vectors, hub, holders, cut, inputs, then)
}

/// The same, with other answers.
fn spread_by(
    answers: Answers,
    hub: &mut Bench,
    holders: &mut [Holder],
    cut: (u32, u32),
    (input, away): (Input, &[u16]),
    then: Then,
) -> Vec<f32> {
    let class = class(cut);
    let (mut input, mut first) = (input, 0);
    for &block in away {
        let task = forward(rows(cut.0..cut.1), class, input, (first, block), Then::Route(BlockIndex(block)));
        let outcome = hub.run(task);
        let Outcome::Routed { residual, normed, routes } = outcome else { panic!("{outcome:?}") };
        let block = BlockIndex(block);
        let (routes, outputs) = match answers {
            Answers::Vectors => {
                let outputs = outputs(holders, block, class, &normed, &routes);
                (routes, outputs)
            }
            Answers::Sums => sums(&mut holders[0], block, class, normed, &routes),
        };
        input = Input::Experts(ExpertOutputs { block, residual, routes, outputs });
        first = block.0 + 1;
    }
    hub.hidden(forward(rows(cut.0..cut.1), class, input, (first, BLOCKS), then))
}

#[test]
fn experts_on_other_engines_give_the_bits_of_experts_here() {
    // Software adapters decode exactly.
    let packed = (Tier::Full, Arithmetic::Packed);
    for (tier, arithmetic) in TIERS.map(|tier| (tier, Arithmetic::Exact)).into_iter().chain([packed]) {
        let gpu = gpu_as(Some(tier));
        for model in models() {
            let mut whole = Bench::new(&gpu, &model, &model.all_units(), by(arithmetic));
            let holder = |here: fn(u16) -> bool| Holder::by(arithmetic, &gpu, &model, here);
            // Every token's vector or logits.
            let then = |cut| if class(cut) == KernelClass::Decode { logits(LmHeadTokens::All) } else { Then::Hidden };
            let mut expected = |cut: (u32, u32)| {
                let task = forward(rows(cut.0..cut.1), class(cut), tokens(&model, cut), (0, BLOCKS), then(cut));
                bits(&whole.hidden(task))
            };
            let expected = CUTS.map(&mut expected);
            let spreads: [(&str, Answers, Vec<Holder>); 3] = [
                ("one holder", Answers::Vectors, vec![holder(|_| true)]),
                ("one holder's sums", Answers::Sums, vec![holder(|_| true)]),
                (
                    "one expert, some, and all the others twice",
                    Answers::Vectors,
                    vec![holder(|e| e == 5), holder(|e| (1..4).contains(&e)), holder(|e| e != 5)],
                ),
            ];
            for (name, answers, mut holders) in spreads {
                let mut hub = Bench::new(&gpu, &model, &without_experts(&model), by(arithmetic));
                for (cut, expected) in CUTS.into_iter().zip(&expected) {
                    let inputs = (tokens(&model, cut), &[0, 1, 2][..]);
                    let got = spread_by(answers, &mut hub, &mut holders, cut, inputs, then(cut));
                    assert!(bits(&got) == *expected, "{tier:?} {arithmetic} {} {name} {cut:?}", model.spec.name);
                }
            }
        }
    }
}

/// Compiles the kernels in use and runs them once, so that nothing is under way when a test ends: a software adapter may crash then.
fn compile(bench: &Bench) {
    futures::executor::block_on(bench.engine.prepare()).unwrap();
    assert!(futures::executor::block_on(bench.engine.self_test()).unwrap().usable);
}

/// Has a bench hold the experts that `here` accepts, and loads what it lacks of them.
fn hold(bench: &Bench, model: &Model, here: impl Fn(u16) -> bool) -> Layout {
    let layout = bench.engine.reserve(&experts(model, here)).unwrap();
    support::load(&bench.engine, &model.units, &|unit, tensor| model.bytes(unit, tensor));
    layout
}

/// Names and sizes of buffers with weights.
fn weights(layout: &Layout) -> BTreeSet<(String, u64)> {
    let weights = layout.buffers.iter().filter(|buffer| buffer.purpose == Purpose::Weights);
    weights.map(|buffer| (buffer.name.clone(), buffer.bytes.0)).collect()
}

#[test]
fn experts_that_come_later_leave_the_others_where_they_are() {
    for tier in TIERS {
        let gpu = gpu_as(Some(tier));
        for model in models() {
            let mut whole = Bench::new(&gpu, &model, &model.all_units(), settings());
            let mut hub = Bench::new(&gpu, &model, &without_experts(&model), settings());
            let grown = Holder::new(&gpu, &model, |e| e != 7);
            let mut before = weights(&hold(&grown.bench, &model, |e| e == 5));
            for more in [|e| matches!(e, 2 | 5), |e| e != 7] {
                let after = weights(&hold(&grown.bench, &model, more));
                assert!(before.is_subset(&after), "{before:?} stay, and {after:?} are there then");
                before = after;
            }
            let parts = before.iter().filter(|(name, _)| name.ends_with("block 1 part 2")).count();
            assert!(parts > 0, "what came last lies in the third buffer: {before:?}");
            let mut holders = [grown, Holder::new(&gpu, &model, |_| true)];
            for cut in CUTS {
                let task = forward(rows(cut.0..cut.1), class(cut), tokens(&model, cut), (0, BLOCKS), Then::Hidden);
                let got = spread(&mut hub, &mut holders, cut, (tokens(&model, cut), &[0, 1, 2]), Then::Hidden);
                assert!(bits(&got) == bits(&whole.hidden(task)), "{tier:?} {} {cut:?}", model.spec.name);
            }
            let all = weights(&hold(&holders[0].bench, &model, |_| true));
            let in_one = all.iter().all(|(name, _)| name.ends_with("part 0"));
            assert!(in_one, "a complete block lies in one buffer, for its sum: {all:?}");
            let fewer = weights(&hold(&holders[0].bench, &model, |e| e < 3));
            assert!(fewer.iter().all(|(name, _)| name.ends_with("part 0")), "nothing is left over: {fewer:?}");
        }
    }
}

#[test]
fn a_device_with_some_experts_has_the_kernels_of_all() {
    let recipe = Recipe::new(Architecture::Qwen3Moe, TensorType::Q4_K);
    let model = Recipe { odd_down: Some(TensorType::Q6_K), ..recipe }.build();
    let of_block = |block, here: fn(u16) -> bool| {
        let is_its = move |unit: &WeightUnit| unit.block() == Some(BlockIndex(block));
        experts(&model, here).into_iter().filter(is_its).collect::<BTreeSet<_>>()
    };
    let whole = of_block(0, |_| true);
    for (name, first) in [("two experts", of_block(0, |e| e < 2)), ("all of a block", whole.clone())] {
        let bench = Bench::new(&gpu_as(None), &model, &first, settings());
        compile(&bench);
        for more in [of_block(1, |e| e < 4), of_block(1, |_| true)] {
            bench.engine.reserve(&whole.union(&more).copied().collect()).unwrap();
            let count = more.len();
            assert!(
                bench.engine.is_prepared(),
                "{name}, and {count} of another block come while answers go on: nothing may have to be compiled"
            );
        }
        compile(&bench);
    }
}

#[test]
fn kernels_of_what_is_here_already_do_not_hold_up_experts() {
    let model = Recipe::new(Architecture::Qwen3Moe, TensorType::Q4_K).build();
    let bench = Bench::new(&gpu_as(None), &model, &experts(&model, |e| e < 2), settings());
    compile(&bench);
    let reserve = |units: BTreeSet<WeightUnit>| {
        let mixer = WeightUnit::TokenMixer(BlockIndex(0));
        bench.engine.reserve(&units.into_iter().chain([mixer]).collect()).unwrap();
        bench.engine.is_prepared_for_missing()
    };
    assert!(!reserve(experts(&model, |e| e < 2)), "a token mixer needs kernels of its own");
    support::load(&bench.engine, &model.units, &|unit, tensor| model.bytes(unit, tensor));
    assert!(reserve(experts(&model, |e| e < 4)), "only experts are missing now");
    assert!(!bench.engine.is_prepared(), "nobody has compiled those of the token mixer");
    compile(&bench);
}

#[test]
fn blocks_with_experts_here_follow_those_with_experts_elsewhere() {
    for tier in TIERS {
        let gpu = gpu_as(Some(tier));
        let model = &models()[0];
        let mut whole = Bench::new(&gpu, model, &model.all_units(), settings());
        for away in [&[0u16][..], &[1], &[2], &[0, 2]] {
            let here = model.units.units().filter(|unit| match unit {
                WeightUnit::Expert(block, _) => !away.contains(&block.0),
                _ => true,
            });
            let mut hub = Bench::new(&gpu, model, &here.collect(), settings());
            let mut holders = [Holder::new(&gpu, model, |e| e < 3), Holder::new(&gpu, model, |e| e >= 3)];
            for cut in CUTS {
                let input = tokens(model, cut);
                let task = forward(rows(cut.0..cut.1), class(cut), input.clone(), (0, BLOCKS), Then::Hidden);
                let got = spread(&mut hub, &mut holders, cut, (input, away), Then::Hidden);
                assert!(bits(&got) == bits(&whole.hidden(task)), "{tier:?} {away:?} {cut:?}");
            }
        }
    }
}

#[test]
fn every_number_of_decoded_tokens_gives_the_bits_of_one_by_one() {
    let packed = (Tier::Full, Arithmetic::Packed);
    for (tier, arithmetic) in TIERS.map(|tier| (tier, Arithmetic::Exact)).into_iter().chain([packed]) {
        let gpu = gpu_as(Some(tier));
        let model = &models()[0];
        let mut hub = Bench::new(&gpu, model, &without_experts(model), by(arithmetic));
        let mut holders =
            [Holder::by(arithmetic, &gpu, model, |e| e % 3 == 0), Holder::by(arithmetic, &gpu, model, |e| e % 3 > 0)];
        let mut run = |cut| bits(&spread(&mut hub, &mut holders, cut, (tokens(model, cut), &[0, 1, 2]), Then::Hidden));
        run((0, 40));
        run((40, DECODED_FROM));
        let single: Vec<u32> = (DECODED_FROM..DECODED_FROM + 16).flat_map(|at| run((at, at + 1))).collect();
        for count in 1..=16u32 {
            let got = run((DECODED_FROM, DECODED_FROM + count));
            assert!(got == single[..count as usize * HIDDEN], "{tier:?} {arithmetic} {count} tokens");
        }
    }
}

#[test]
fn the_commands_of_every_block_are_encoded_in_advance_and_give_the_same_bits() {
    let (gpu, [model, _]) = (gpu_as(None), models());
    let then = logits(LmHeadTokens::Last);
    let (mut hub, mut alone) = (
        Bench::new(&gpu, &model, &without_experts(&model), settings()),
        Bench::new(&gpu, &model, &model.all_units(), settings()),
    );
    let mut holders = [Holder::new(&gpu, &model, |e| e % 2 == 0), Holder::new(&gpu, &model, |e| e % 2 == 1)];
    let away: Vec<u16> = (0..BLOCKS).collect();
    for cut in [(0, 40), (40, 66)].into_iter().chain((66..70).map(|token| (token, token + 1))) {
        let expected = alone.hidden(forward(rows(cut.0..cut.1), class(cut), tokens(&model, cut), (0, BLOCKS), then));
        let got = spread(&mut hub, &mut holders, cut, (tokens(&model, cut), &away), then);
        assert_eq!(bits(&got), bits(&expected), "{cut:?}");
        let before = u64::from(cut.0.saturating_sub(DECODED_FROM));
        let programs = u64::from(BLOCKS) + 1;
        assert_eq!(hub.engine.encoded_in_advance(), before * programs, "{cut:?}: up to each router, and to the head");
    }

    // A holder's are the same, whichever experts a token uses, and how many of them are there.
    let mut all = Holder::new(&gpu, &model, |_| true).bench;
    let mut ask = |block: u16, count: usize| {
        let (block, class) = (BlockIndex(block), KernelClass::Decode);
        let normed = (0..HIDDEN).map(|i| (i as f32 / 9.0).sin()).collect();
        let experts = vec![(0..count as u16).map(|expert| ExpertId((expert + block.0) % 4)).collect()];
        let got = all.run(Task::Experts { block, class, normed, experts, sum: None });
        let Outcome::ExpertOutputs(got) = got else { panic!("{got:?}") };
        (bits(&got), all.engine.encoded_in_advance())
    };
    let whole: Vec<Vec<u32>> = (0..BLOCKS).map(|block| ask(block, USED).0).collect();
    for (run, (count, block)) in (1..).zip([(1, 0), (2, 2), (3, 1), (2, 0), (1, 1), (3, 2)]) {
        let (got, used) = ask(block, count);
        assert_eq!(got, whole[usize::from(block)][..count * HIDDEN], "{count} experts of block {block}");
        assert_eq!(used, run, "{count} experts of block {block}");
    }
}

#[test]
fn chunks_longer_than_scratch_memory_or_a_result_buffer_give_the_same_bits() {
    let gpu = gpu_as(Some(Tier::Full));
    let model = &models()[0];
    let small = Settings { prefill_tokens: 64, ..settings() };
    let input: Vec<u32> = (0..300).map(|token| token * 7 % model.spec.vocabulary).collect();
    let chunk = |input, blocks, then| forward(rows(0..300), KernelClass::Prefill, input, blocks, then);
    let mut whole = Bench::new(&gpu, model, &model.all_units(), settings());
    let expected = whole.hidden(chunk(Input::Tokens(input.clone()), (0, BLOCKS), Then::Hidden));

    for (hub_settings, holder_settings) in [(small.clone(), settings()), (settings(), small)] {
        let mut hub = Bench::new(&gpu, model, &without_experts(model), hub_settings);
        let mut holder = Bench::new(&gpu, model, &experts(model, |_| true), holder_settings);
        let (mut input, mut first) = (Input::Tokens(input.clone()), 0);
        for block in 0..BLOCKS {
            let outcome = hub.run(chunk(input, (first, block), Then::Route(BlockIndex(block))));
            let Outcome::Routed { residual, normed, routes } = outcome else { panic!("{outcome:?}") };
            let (block, class) = (BlockIndex(block), KernelClass::Prefill);
            let experts = routes.iter().map(|route| route.experts.iter().map(|(expert, _)| *expert).collect());
            let outputs = holder.hidden(Task::Experts { block, class, normed, experts: experts.collect(), sum: None });
            assert_eq!(outputs.len(), 300 * USED * HIDDEN);
            input = Input::Experts(ExpertOutputs { block, residual, routes, outputs });
            first = block.0 + 1;
        }
        let got = hub.hidden(chunk(input, (BLOCKS, BLOCKS), Then::Hidden));
        assert!(bits(&got) == bits(&expected));
    }
}

#[test]
fn tokens_with_few_experts_get_their_outputs_only() {
    for tier in TIERS {
        let gpu = gpu_as(Some(tier));
        let model = &models()[0];
        let mut holder = Bench::new(&gpu, model, &experts(model, |_| true), settings());
        for class in [KernelClass::Decode, KernelClass::Prefill] {
            let mut random = support::Random(3);
            let normed: Vec<f32> = (0..5 * HIDDEN).map(|_| random.unit()).collect();
            let mut run = |normed: &[f32], experts: &[&[u16]]| {
                let experts = experts.iter().map(|ids| ids.iter().map(|id| ExpertId(*id)).collect()).collect();
                bits(&holder.hidden(Task::Experts {
                    block: BlockIndex(1),
                    class,
                    normed: normed.to_vec(),
                    experts,
                    sum: None,
                }))
            };
            let each: [&[u16]; 5] = [&[7], &[], &[2, 0, 7], &[], &[3, 2]];
            let got = run(&normed, &each);
            let mut one_by_one = Vec::new();
            for (vector, experts) in normed.chunks(HIDDEN).zip(each) {
                experts.iter().for_each(|expert| one_by_one.extend(run(vector, &[&[*expert]])));
            }
            assert!(got == one_by_one, "{tier:?} {class:?}");
            assert!(run(&normed[..HIDDEN], &[&[]]).is_empty(), "no expert, no output");
        }
    }
}

#[test]
fn a_sum_takes_the_given_weights_and_leaves_out_absent_experts() {
    let model = &models()[0];
    let mut hub = Bench::new(&gpu_as(None), model, &without_experts(model), settings());
    let mut random = support::Random(4);
    let mut vectors = |count: usize| (0..count * HIDDEN).map(|_| random.unit()).collect::<Vec<f32>>();
    let (residual, outputs) = (vectors(3), vectors(3));
    let route = |gates: &[f32]| ExpertRoute { experts: (4..).map(ExpertId).zip(gates.iter().copied()).collect() };
    let given = ExpertOutputs {
        block: BlockIndex(2),
        residual: residual.clone(),
        routes: vec![route(&[0.25]), route(&[]), route(&[0.5, -2.0])],
        outputs: outputs.clone(),
    };
    let got =
        hub.hidden(forward(rows(0..3), KernelClass::Decode, Input::Experts(given), (BLOCKS, BLOCKS), Then::Hidden));
    let mut expected = residual;
    for (at, (token, gate)) in [(0, 0.25), (2, 0.5), (2, -2.0)].into_iter().enumerate() {
        for i in 0..HIDDEN {
            expected[token * HIDDEN + i] += gate * outputs[at * HIDDEN + i];
        }
    }
    assert!(distance(&got, &expected) < 1e-6);
    assert_eq!(got[HIDDEN..2 * HIDDEN], expected[HIDDEN..2 * HIDDEN], "without experts the residual is the result");
}

fn refused(bench: &Bench, task: Task) -> EngineError {
    bench.engine.submit(Work { ticket: Ticket(1000), task }).unwrap_err()
}

fn bad(reason: &'static str) -> EngineError {
    EngineError::BadRoute { block: BlockIndex(0), reason }
}

#[test]
fn impossible_calls_of_experts_are_refused_with_a_reason() {
    let model = Recipe { blocks: 2, ..Recipe::new(Architecture::Qwen3Moe, TensorType::Q8_0) }.build();
    let mut bench = Bench::new(&gpu_as(None), &model, &experts(&model, |e| e < 5), settings());
    let call = |normed: Vec<f32>, experts: &[&[u16]]| Task::Experts {
        block: BlockIndex(0),
        class: KernelClass::Decode,
        normed,
        experts: experts.iter().map(|ids| ids.iter().map(|id| ExpertId(*id)).collect()).collect(),
        sum: None,
    };
    let one = || vec![0.5; HIDDEN];
    let cases = [
        (call(one(), &[&[0, 1, 2, 3]]), bad("it names more experts than a token uses")),
        (call(one(), &[&[8]]), bad("it names an expert that does not exist")),
        (call(one(), &[&[1, 0, 1]]), bad("it names an expert twice")),
        (call(one(), &[&[5]]), EngineError::ExpertNotHeld(BlockIndex(0), ExpertId(5))),
        (call(vec![f32::NAN; HIDDEN], &[&[1]]), EngineError::NotFinite),
        (call(one(), &[&[1], &[2]]), EngineError::HiddenLength { got: HIDDEN, expected: 2 * HIDDEN }),
        (call(vec![], &[]), EngineError::NoRows),
        (call(vec![0.5; 17 * HIDDEN], &[&[][..]; 17]), EngineError::TooManyRows { rows: 17, max: 16 }),
    ];
    for (task, expected) in cases {
        assert_eq!(refused(&bench, task), expected);
    }
    let absent = Task::Experts {
        block: BlockIndex(2),
        class: KernelClass::Decode,
        normed: one(),
        experts: vec![vec![]],
        sum: None,
    };
    assert_eq!(refused(&bench, absent), EngineError::NoSuchBlock(BlockIndex(2)));
    assert_eq!(bench.hidden(call(one(), &[&[4, 0]])).len(), 2 * HIDDEN, "the engine still works");
    let dense = Recipe::new(Architecture::Qwen3, TensorType::Q8_0).build();
    let dense = Bench::new(&gpu_as(None), &dense, &dense.all_units(), settings());
    assert_eq!(refused(&dense, call(one(), &[&[0]])), EngineError::NoExperts(BlockIndex(0)));
}

#[test]
fn impossible_sums_of_outputs_are_refused_with_a_reason() {
    let model = &models()[0];
    let all_but_last = model.all_units().into_iter().filter(|unit| unit.block() != Some(BlockIndex(2)));
    let mut bench = Bench::new(&gpu_as(None), model, &all_but_last.collect(), settings());
    let given = |block: u16, experts: &[(u16, f32)]| ExpertOutputs {
        block: BlockIndex(block),
        residual: vec![0.5; HIDDEN],
        routes: vec![ExpertRoute { experts: experts.iter().map(|&(id, gate)| (ExpertId(id), gate)).collect() }],
        outputs: vec![0.25; experts.len() * HIDDEN],
    };
    let task = |given, blocks, then| forward(rows(0..1), KernelClass::Decode, Input::Experts(given), blocks, then);
    let sum = |given| task(given, (1, 1), Then::Hidden);
    let fine = || given(0, &[(0, 0.5), (3, 0.25)]);
    let length = |got, expected| EngineError::HiddenLength { got, expected };
    let two_rows = ExpertOutputs { routes: vec![ExpertRoute { experts: vec![] }; 2], ..fine() };
    let cases = [
        (sum(given(0, &[(0, 0.1), (1, 0.1), (2, 0.1), (3, 0.1)])), bad("it names more experts than a token uses")),
        (sum(given(0, &[(8, 0.1)])), bad("it names an expert that does not exist")),
        (sum(given(0, &[(2, 0.1), (2, 0.2)])), bad("it names an expert twice")),
        (sum(given(0, &[(2, f32::INFINITY)])), EngineError::NotFinite),
        (sum(ExpertOutputs { outputs: vec![f32::NAN; 2 * HIDDEN], ..fine() }), EngineError::NotFinite),
        (sum(ExpertOutputs { residual: vec![f32::NAN; HIDDEN], ..fine() }), EngineError::NotFinite),
        (sum(ExpertOutputs { outputs: vec![0.0; HIDDEN], ..fine() }), length(HIDDEN, 2 * HIDDEN)),
        (sum(ExpertOutputs { residual: vec![0.0; 3], ..fine() }), length(3, HIDDEN)),
        (sum(two_rows), length(2, 1)),
        (sum(given(3, &[])), EngineError::NoSuchBlock(BlockIndex(3))),
        (sum(given(2, &[])), EngineError::NotResident(WeightUnit::Router(BlockIndex(2)))),
        (task(fine(), (0, 2), Then::Hidden), EngineError::NotNext(BlockIndex(0))),
        (task(given(1, &[]), (1, 2), Then::Hidden), EngineError::NotNext(BlockIndex(1))),
        (task(given(1, &[]), (2, 2), Then::Route(BlockIndex(1))), EngineError::NotNext(BlockIndex(1))),
    ];
    for (task, expected) in cases {
        assert_eq!(refused(&bench, task), expected);
    }
    assert_eq!(bench.hidden(sum(fine())).len(), HIDDEN, "the engine still works");
    assert_eq!(bench.engine.kv_cache_len(TALK), 0, "a sum alone extends no KV cache");
}

#[test]
fn memory_for_outputs_is_planned() {
    let model = &models()[0];
    let limits = wgpu::Limits::default();
    let plan = |units: &BTreeSet<WeightUnit>| Layout::plan(&model.spec, &model.units, units, &settings(), &limits);
    let readback = |units: &BTreeSet<WeightUnit>| plan(units).unwrap().bytes(Purpose::Readback).0;
    let outputs = u64::from(Settings::MIN_PREFILL_TOKENS) * (USED * HIDDEN * 4) as u64;
    let in_flight = u64::from(settings().in_flight);
    let holder = experts(model, |e| e == 0);
    assert!(readback(&holder) >= in_flight * outputs, "a holder returns a vector for each token and expert");
    let hub = BTreeSet::from([WeightUnit::TokenMixer(BlockIndex(0)), WeightUnit::Router(BlockIndex(0))]);
    let scratch = plan(&hub).unwrap().bytes(Purpose::Scratch).0;
    assert!(scratch >= u64::from(settings().prefill_tokens) * (USED * HIDDEN * 4) as u64, "a stage receives them");
    let overhead = potluck_engine::fixed_overhead(&model.spec, &settings());
    assert!(overhead.0 >= in_flight * outputs, "a planner reserves them");
}
