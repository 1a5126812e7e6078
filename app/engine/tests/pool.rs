//! Experts in slots: an engine with room for some experts gives the bits of one that holds all of them.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::collections::{BTreeMap, BTreeSet};

use potluck_engine::{
    EngineError, Gpu, Keep, LayoutError, PooledExperts, Purpose, Settings, SlotError, SlotLoad, Tier,
};
use potluck_gguf::TensorType;
use potluck_model::Architecture;
use potluck_plan::{
    BlockIndex, ExpertId, ExpertOutputs, ExpertRoute, Input, KernelClass, LmHeadTokens, Outcome, Task, Then, Ticket,
    WeightUnit, Work,
};
use support::built_in::built_in;
use support::{Bench, Model, Recipe, forward, gpu_as, load_unit, logits, rows};

const TIERS: [Tier; 2] = [Tier::Software, Tier::Full];
const HIDDEN: usize = 256;
const BLOCKS: u16 = 3;
/// Experts of a block, see `Recipe::build`.
const EXPERTS: u16 = 8;
/// Prefill chunks, single decoded tokens, and several at a time.
const CUTS: [(u32, u32); 5] = [(0, 40), (40, 66), (66, 67), (67, 68), (68, END)];
const END: u32 = 72;

fn settings() -> Settings {
    Settings { context: 256, ..Settings::default() }
}

fn class(cut: (u32, u32)) -> KernelClass {
    if cut.0 >= 66 { KernelClass::Decode } else { KernelClass::Prefill }
}

fn tokens(model: &Model, cut: (u32, u32)) -> Input {
    let mut random = support::Random(5);
    let all: Vec<u32> = (0..cut.1).map(|_| random.below(model.spec.vocabulary)).collect();
    Input::Tokens(all[cut.0 as usize..].to_vec())
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// A model whose blocks have experts of two kinds, as in files that mix weight types.
fn mixed() -> Model {
    let recipe = Recipe::new(Architecture::Qwen3Moe, TensorType::Q4_K);
    Recipe { odd_down: Some(TensorType::Q6_K), ..recipe }.build()
}

fn pool(blocks: &[u16], slots: u32) -> PooledExperts {
    PooledExperts { blocks: blocks.iter().copied().map(BlockIndex).collect(), slots }
}

/// Everything but the experts of some blocks.
fn without_experts(model: &Model, blocks: &[u16]) -> BTreeSet<WeightUnit> {
    let pooled = |unit: &WeightUnit| matches!(unit, WeightUnit::Expert(block, _) if blocks.contains(&block.0));
    model.units.units().filter(|unit| !pooled(unit)).collect()
}

fn pooled_bench(gpu: &Gpu, model: &Model, pool: &PooledExperts, settings: Settings) -> Bench {
    let bench = Bench::empty(gpu, &model.spec, &model.units, settings);
    let blocks: Vec<u16> = pool.blocks.iter().map(|block| block.0).collect();
    bench.engine.reserve_pool(&without_experts(model, &blocks), pool).unwrap();
    support::load(&bench.engine, &model.units, &|unit, tensor| model.bytes(unit, tensor));
    bench
}

fn load(bench: &Bench, model: &Model, block: u16, expert: u16, keep: Keep) {
    let (block, expert) = (BlockIndex(block), ExpertId(expert));
    assert_eq!(bench.engine.load_expert(block, expert, keep), Ok(SlotLoad::Begun));
    let unit = WeightUnit::Expert(block, expert);
    load_unit(&bench.engine, &model.units, &|unit, tensor| model.bytes(unit, tensor), unit);
    assert!(bench.engine.is_resident(unit));
}

/// A device with too little memory for all experts.
struct Device<'a> {
    bench: Bench,
    model: &'a Model,
    pooled: &'a [u16],
    /// Most experts of one piece of work.
    wave: usize,
    loads: usize,
}

impl Device<'_> {
    /// Outputs of the routed experts in router order, a wave of experts at a time.
    fn outputs(&mut self, block: u16, class: KernelClass, normed: &[f32], routes: &[ExpertRoute]) -> Vec<f32> {
        let pairs: Vec<(usize, ExpertId)> = (0..)
            .zip(routes)
            .flat_map(|(token, route)| route.experts.iter().map(move |(expert, _)| (token, *expert)))
            .collect();
        let all: BTreeSet<ExpertId> = pairs.iter().map(|(_, expert)| *expert).collect();
        let all: Vec<ExpertId> = all.into_iter().collect();
        let mut found: BTreeMap<usize, Vec<f32>> = BTreeMap::new();
        for wave in all.chunks(self.wave) {
            let experts: Vec<Vec<ExpertId>> = routes
                .iter()
                .map(|route| route.experts.iter().map(|(expert, _)| *expert).filter(|e| wave.contains(e)).collect())
                .collect();
            let task = Task::Experts { block: BlockIndex(block), class, normed: normed.to_vec(), experts, sum: None };
            let outputs = match self.bench.run(task.clone()) {
                Outcome::Missing { block: of, experts } => {
                    assert_eq!(of, BlockIndex(block));
                    for expert in experts {
                        assert!(wave.contains(&expert), "only what the task names is missing");
                        load(&self.bench, self.model, block, expert.0, Keep::Evictable);
                        self.loads += 1;
                    }
                    self.bench.hidden(task)
                }
                Outcome::ExpertOutputs(outputs) => outputs,
                other => panic!("{other:?}"),
            };
            let here = pairs.iter().enumerate().filter(|(_, (_, expert))| wave.contains(expert));
            for ((at, _), vector) in here.zip(outputs.chunks(normed.len() / routes.len())) {
                found.insert(at, vector.to_vec());
            }
        }
        assert_eq!(found.len(), pairs.len(), "every pair has an output");
        found.into_values().flatten().collect()
    }

    /// A forward pass that stops at each pooled block's router.
    fn forward(&mut self, cut: (u32, u32), then: Then) -> Vec<f32> {
        self.pass(cut, class(cut), tokens(self.model, cut), then)
    }

    fn pass(&mut self, cut: (u32, u32), class: KernelClass, mut input: Input, then: Then) -> Vec<f32> {
        let (mut first, end) = (0, self.model.spec.blocks.len() as u16);
        loop {
            let outcome = self.bench.run(forward(rows(cut.0..cut.1), class, input, (first, end), then));
            let Outcome::Routed { residual, normed, routes } = outcome else {
                let (Outcome::Hidden(values) | Outcome::Logits(values)) = outcome else { panic!("{outcome:?}") };
                assert!(self.pooled.iter().all(|block| *block < first), "no pooled block was passed over");
                return values;
            };
            let block = *self.pooled.iter().find(|block| **block >= first).unwrap();
            let outputs = self.outputs(block, class, &normed, &routes);
            input = Input::Experts(ExpertOutputs { block: BlockIndex(block), residual, routes, outputs });
            first = block + 1;
        }
    }
}

#[test]
fn a_pool_for_a_third_of_the_experts_gives_the_bits_of_all_of_them() {
    for tier in TIERS {
        let gpu = gpu_as(Some(tier));
        let model = &mixed();
        let mut whole = Bench::new(&gpu, model, &model.all_units(), settings());
        // The hidden vectors of all tokens; logits come from the last of them.
        let expected = CUTS.map(|cut| {
            let then = if cut.1 == END { logits(LmHeadTokens::Last) } else { Then::Hidden };
            let task = forward(rows(cut.0..cut.1), class(cut), tokens(model, cut), (0, BLOCKS), then);
            (then, bits(&whole.hidden(task)))
        });
        // Slots for blocks 0 and 2, for block 1, and so the most experts of one block that fit at a time.
        for (pooled, slots, wave) in [(&[0, 1, 2][..], 8, 2), (&[0, 1, 2], 24, 8), (&[0, 1, 2], 2, 1), (&[1], 3, 3)] {
            let bench = pooled_bench(&gpu, model, &pool(pooled, slots), settings());
            let mut device = Device { bench, model, pooled, wave, loads: 0 };
            for (cut, (then, expected)) in CUTS.into_iter().zip(&expected) {
                let got = device.forward(cut, *then);
                assert!(bits(&got) == *expected, "{tier:?} {slots} slots for {pooled:?}, {cut:?} {then:?}");
            }
            let experts = pooled.len() * usize::from(EXPERTS);
            if slots as usize >= experts {
                assert!(device.loads <= experts, "what has a slot is loaded once, not {} times", device.loads);
            } else {
                assert!(device.loads > slots as usize, "experts made room for each other");
            }
        }
    }
}

/// Exact experts change nothing (od-moe.txt, table 2): the logits of a text are the same bits, and so is its perplexity.
#[test]
fn the_built_in_model_has_the_same_perplexity_with_a_third_of_its_experts() {
    let (model, ids) = built_in(4);
    let model = &model;
    let (pooled, end) = ([0, 1, 2, 3, 4, 5], model.spec.blocks.len() as u16);
    let gpu = gpu_as(None);
    let mut whole = Bench::new(&gpu, model, &model.all_units(), settings());
    let bench = pooled_bench(&gpu, model, &pool(&pooled, 24), settings());
    let mut device = Device { bench, model, pooled: &pooled, wave: 8, loads: 0 };
    let (mut surprise, count) = (0.0, ids.len().min(96) - 1);
    // Chunks of a prompt, then single tokens.
    let mut cuts: Vec<(usize, usize)> = (0..count).step_by(16).map(|from| (from, (from + 16).min(count))).collect();
    let (from, to) = cuts.pop().unwrap();
    cuts.extend((from..to).map(|at| (at, at + 1)));
    for (from, to) in cuts {
        let class = if to - from > 1 { KernelClass::Prefill } else { KernelClass::Decode };
        let (input, cut) = (|| Input::Tokens(ids[from..to].to_vec()), (from as u32, to as u32));
        let then = logits(LmHeadTokens::All);
        let expected = whole.hidden(forward(rows(cut.0..cut.1), class, input(), (0, end), then));
        let got = device.pass(cut, class, input(), then);
        assert!(bits(&got) == bits(&expected), "tokens {from} to {to}");
        for (row, &next) in got.chunks(model.spec.vocabulary as usize).zip(&ids[from + 1..=to]) {
            let total: f64 = row.iter().map(|value| f64::from(*value).exp()).sum();
            surprise += total.ln() - f64::from(row[next as usize]);
        }
    }
    let perplexity = (surprise / count as f64).exp();
    println!("{count} tokens, {} loads: perplexity {perplexity:.4} with all experts and with a third", device.loads);
    assert!(perplexity < 20.0, "a perplexity of {perplexity:.3} is not that of a text the model knows");
    assert!(device.loads > 72, "experts made room for each other");
}

#[test]
fn memory_grows_with_slots_and_not_with_experts() {
    let model = &mixed();
    let gpu = gpu_as(None);
    let bench = Bench::empty(&gpu, &model.spec, &model.units, settings());
    let all = bench.engine.reserve(&model.all_units()).unwrap().bytes(Purpose::Weights).0;
    let blocks = [0, 1, 2];
    let units = without_experts(model, &blocks);
    let rest = bench.engine.reserve(&units).unwrap().bytes(Purpose::Weights).0;
    let third = bench.engine.reserve_pool(&units, &pool(&blocks, 8)).unwrap().bytes(Purpose::Weights).0;
    assert_eq!((bench.engine.free_slots(BlockIndex(0)), bench.engine.free_slots(BlockIndex(1))), (Ok(5), Ok(3)));
    let share = (third - rest) as f64 / (all - rest) as f64;
    assert!((0.3..0.36).contains(&share), "8 of 24 slots take {share} of the experts' memory");
}

#[test]
fn experts_load_while_work_runs_and_none_that_waiting_work_needs_is_evicted() {
    let gpu = gpu_as(None);
    let model = &Recipe::new(Architecture::Qwen3Moe, TensorType::Q8_0).build();
    let mut whole = Bench::new(&gpu, model, &model.all_units(), settings());
    let mut bench = Bench::empty(&gpu, &model.spec, &model.units, Settings { in_flight: 1, ..settings() });
    bench.engine.reserve_pool(&BTreeSet::new(), &pool(&[0, 1, 2], 3)).unwrap();
    let task = |block: u16, expert: u16| Task::Experts {
        block: BlockIndex(block),
        class: KernelClass::Decode,
        normed: (0..HIDDEN).map(|i| (i as f32).sin()).collect(),
        experts: vec![vec![ExpertId(expert)]],
        sum: None,
    };
    for (block, expert) in [(0, 1), (0, 2), (2, 3)] {
        load(&bench, model, block, expert, Keep::Evictable);
    }
    // The first runs, the others wait for the only result buffer.
    let asked = [(0, 1), (2, 3), (0, 2)];
    let tickets = asked.map(|(block, expert)| bench.start(task(block, expert)));
    // The one that runs may make room: its commands come before the upload.
    load(&bench, model, 1, 7, Keep::Evictable);
    let refused = bench.engine.drop_expert(BlockIndex(2), ExpertId(3)).unwrap_err();
    assert_eq!(refused, EngineError::Slot(SlotError::Needed(BlockIndex(2), ExpertId(3))));
    bench.engine.keep_expert(BlockIndex(1), ExpertId(7), Keep::Kept).unwrap();
    let refused = bench.engine.load_expert(BlockIndex(0), ExpertId(5), Keep::Evictable).unwrap_err();
    assert_eq!(refused, EngineError::Slot(SlotError::Full { block: BlockIndex(0), slots: 3 }));
    for (ticket, (block, expert)) in tickets.into_iter().zip(asked) {
        let Outcome::ExpertOutputs(got) = bench.answer(ticket) else { panic!("no outputs") };
        assert!(bits(&got) == bits(&whole.hidden(task(block, expert))), "expert {expert} of block {block}");
    }
    assert_eq!(bench.run(task(0, 1)), Outcome::Missing { block: BlockIndex(0), experts: vec![ExpertId(1)] });
    assert!(bits(&bench.hidden(task(1, 7))) == bits(&whole.hidden(task(1, 7))), "loaded while work ran");
    load(&bench, model, 0, 5, Keep::Evictable);
    assert_eq!(bench.run(task(2, 3)), Outcome::Missing { block: BlockIndex(2), experts: vec![ExpertId(3)] });
}

#[test]
fn a_missing_expert_is_named_and_one_that_is_loading_is_missing_too() {
    let model = &Recipe::new(Architecture::Qwen3Moe, TensorType::Q8_0).build();
    // A holder: it has no block of its own.
    let mut bench = Bench::empty(&gpu_as(None), &model.spec, &model.units, settings());
    bench.engine.reserve_pool(&BTreeSet::new(), &pool(&[0, 2], 4)).unwrap();
    let task = |experts: &[&[u16]]| Task::Experts {
        block: BlockIndex(2),
        class: KernelClass::Prefill,
        normed: vec![0.5; experts.len() * HIDDEN],
        experts: experts.iter().map(|ids| ids.iter().map(|id| ExpertId(*id)).collect()).collect(),
        sum: None,
    };
    let missing =
        |ids: &[u16]| Outcome::Missing { block: BlockIndex(2), experts: ids.iter().map(|id| ExpertId(*id)).collect() };
    load(&bench, model, 2, 3, Keep::Pinned);
    assert_eq!(bench.run(task(&[&[5, 3], &[3, 0], &[5]])), missing(&[0, 5]), "each once");
    // So many tokens that the work would be cut.
    assert_eq!(bench.run(task(&[&[3, 4][..]; 500])), missing(&[4]), "answered once");
    assert_eq!(bench.hidden(task(&[&[3][..]; 500])).len(), 500 * HIDDEN);
    assert_eq!(bench.engine.load_expert(BlockIndex(2), ExpertId(0), Keep::Kept), Ok(SlotLoad::Begun));
    assert_eq!(bench.engine.load_expert(BlockIndex(2), ExpertId(0), Keep::Kept), Ok(SlotLoad::Present));
    assert_eq!(bench.run(task(&[&[0]])), missing(&[0]), "its bytes are not there yet");
    load_unit(
        &bench.engine,
        &model.units,
        &|unit, tensor| model.bytes(unit, tensor),
        WeightUnit::Expert(BlockIndex(2), ExpertId(0)),
    );
    assert_eq!(bench.hidden(task(&[&[0], &[3, 0]])).len(), 3 * HIDDEN);
    let there = bench.engine.pooled_experts();
    assert_eq!(
        there.into_iter().map(|((_, expert), keep)| (expert.0, keep)).collect::<Vec<_>>(),
        [(0, Keep::Kept), (3, Keep::Pinned)]
    );
    bench.engine.drop_expert(BlockIndex(2), ExpertId(0)).unwrap();
    assert_eq!(bench.run(task(&[&[0]])), missing(&[0]));
}

#[test]
fn slots_keep_their_experts_until_the_pool_changes() {
    let model = &Recipe::new(Architecture::Qwen3Moe, TensorType::Q8_0).build();
    let mut bench = pooled_bench(&gpu_as(None), model, &pool(&[1], 3), settings());
    load(&bench, model, 1, 6, Keep::Evictable);
    let task = || Task::Experts {
        block: BlockIndex(1),
        class: KernelClass::Decode,
        normed: vec![0.5; HIDDEN],
        experts: vec![vec![ExpertId(6)]],
        sum: None,
    };
    let expected = bench.hidden(task());
    let fewer = without_experts(model, &[0, 1]);
    bench.engine.reserve_pool(&fewer, &pool(&[1], 3)).unwrap();
    assert_eq!(bench.hidden(task()), expected, "other units went, the pool stayed");
    bench.engine.reserve_pool(&fewer, &pool(&[1], 4)).unwrap();
    assert_eq!(bench.engine.free_slots(BlockIndex(1)), Ok(4));
    assert!(matches!(bench.run(task()), Outcome::Missing { .. }));
    bench.engine.reserve(&fewer).unwrap();
    let refused = bench.engine.submit(Work { ticket: Ticket(99), task: task() }).unwrap_err();
    assert_eq!(refused, EngineError::ExpertNotHeld(BlockIndex(1), ExpertId(6)));
    assert_eq!(bench.engine.free_slots(BlockIndex(1)), Err(SlotError::NotPooled(BlockIndex(1))));
}

#[test]
fn impossible_pools_and_loads_are_refused_with_a_reason() {
    let model = &mixed();
    let bench = Bench::empty(&gpu_as(None), &model.spec, &model.units, settings());
    let units = without_experts(model, &[0, 1, 2]);
    let reserve = |units: &BTreeSet<WeightUnit>, pool| match bench.engine.reserve_pool(units, &pool) {
        Err(EngineError::Layout(error)) => error,
        other => panic!("{other:?}"),
    };
    assert_eq!(reserve(&units, pool(&[0, 1], 1)), LayoutError::TooFewSlots { slots: 1, needed: 2 });
    assert_eq!(reserve(&units, pool(&[3], 8)), LayoutError::NoExperts(BlockIndex(3)));
    let beside = WeightUnit::Expert(BlockIndex(0), ExpertId(7));
    assert_eq!(reserve(&BTreeSet::from([beside]), pool(&[0], 8)), LayoutError::Pooled(beside));

    bench.engine.reserve_pool(&units, &pool(&[0, 2], 8)).unwrap();
    let load = |block, expert| bench.engine.load_expert(BlockIndex(block), ExpertId(expert), Keep::Pinned);
    assert!(matches!(load(0, EXPERTS), Err(EngineError::BadRoute { .. })));
    assert_eq!(load(1, 0), Err(EngineError::Slot(SlotError::NotPooled(BlockIndex(1)))));
    assert_eq!(load(3, 0), Err(EngineError::NoSuchBlock(BlockIndex(3))));
    let unit = WeightUnit::Expert(BlockIndex(2), ExpertId(1));
    let absent = SlotError::Absent(BlockIndex(2), ExpertId(1));
    let mut staging = futures::executor::block_on(bench.engine.staging()).unwrap();
    staging.write(0, &[0; 16]);
    let piece = potluck_engine::Piece { unit, tensor: 0, tensor_offset: 0, staging_offset: 0, len: 16 };
    assert_eq!(bench.engine.upload(staging, &[piece]), Err(EngineError::NotHeld(unit)), "it has no slot");
    assert_eq!(bench.engine.finish(unit), Err(EngineError::Slot(absent)));
    assert_eq!(bench.engine.drop_expert(BlockIndex(2), ExpertId(1)), Err(EngineError::Slot(absent)));
    assert_eq!(bench.engine.keep_expert(BlockIndex(2), ExpertId(1), Keep::Kept), Err(EngineError::Slot(absent)));
    assert_eq!(load(2, 1), Ok(SlotLoad::Begun));
    let pinned = SlotError::Pinned(BlockIndex(2), ExpertId(1));
    assert_eq!(bench.engine.drop_expert(BlockIndex(2), ExpertId(1)), Err(EngineError::Slot(pinned)));
}
