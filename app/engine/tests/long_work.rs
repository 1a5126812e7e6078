//! While an engine compiles, tests or tunes kernels, it still answers who asks for experts.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::cell::Cell;
use std::rc::Rc;

use futures::executor::block_on;
use potluck_engine::{Settings, Tier};
use potluck_gguf::TensorType;
use potluck_model::Architecture;
use potluck_plan::{BlockIndex, ExpertId, KernelClass, Outcome, Task, Ticket, WeightUnit, Work};
use support::{Bench, Model, Recipe, gpu_as};

/// Longer than any machine needs.
const PATIENT: f64 = 600_000.0;
const ASKED: Ticket = Ticket(1);

fn model() -> Model {
    Recipe { blocks: 2, ..Recipe::new(Architecture::Qwen3Moe, TensorType::Q8_0) }.build()
}

/// A device with the experts of a model.
fn holder(model: &Model) -> Bench {
    let experts = model.units.units().filter(|unit| matches!(unit, WeightUnit::Expert(..))).collect();
    let settings = Settings { context: 256, prefill_tokens: 64, tuned: true, ..Settings::default() };
    Bench::new(&gpu_as(Some(Tier::Full)), model, &experts, settings)
}

/// One expert for one token.
fn call(model: &Model) -> Task {
    let normed = vec![0.5; model.spec.hidden as usize];
    Task::Experts {
        block: BlockIndex(0),
        class: KernelClass::Decode,
        normed,
        experts: vec![vec![ExpertId(1)]],
        sum: None,
    }
}

#[test]
fn experts_are_computed_between_the_tests_of_kernels() {
    let model = model();
    let bench = holder(&model);
    let (engine, task, turns) = (bench.engine.clone(), Cell::new(Some(call(&model))), Rc::new(Cell::new(0)));
    let counted = turns.clone();
    bench.engine.set_give_way(Box::new(move || {
        counted.set(counted.get() + 1);
        // A call arrives while kernels are compiled and tested; after that, results are looked for.
        match task.take() {
            Some(task) => engine.submit(Work { ticket: ASKED, task }).unwrap(),
            None => engine.wait(),
        }
        Box::pin(std::future::ready(()))
    }));
    block_on(bench.engine.prepare()).unwrap();
    let verdict = block_on(bench.engine.self_test()).unwrap();
    assert!(verdict.usable, "{verdict:?}");
    assert!(turns.get() >= 2, "others had {} turns", turns.get());
    let answer = bench.results.borrow_mut().remove(&ASKED);
    assert!(matches!(answer, Some(Outcome::ExpertOutputs(_))), "{answer:?}");
}

#[test]
fn kernels_are_tuned_only_while_nobody_asks_for_experts() {
    let model = model();
    let mut asked = holder(&model);
    // The first call compiles its kernels, which may take longer than a call is remembered.
    asked.run(call(&model));
    asked.run(call(&model));
    assert!(!block_on(asked.engine.tune(PATIENT)).unwrap(), "an answer elsewhere may wait for this device's experts");
    let left_alone = holder(&model);
    assert!(block_on(left_alone.engine.tune(PATIENT)).unwrap(), "nobody asks");
}
