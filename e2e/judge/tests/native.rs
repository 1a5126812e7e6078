//! Every architecture in Q4_K and every weight type on `qwen3moe`, against llama.cpp, on whatever adapter is here.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use futures::executor::block_on;
use potluck_engine::{Gpu, GpuOptions};
use potluck_judge::{Golden, Recipe, Split, Verdict, judge, judge_recipe};
use potluck_testkit::gunzip;

fn golden(name: &str) -> Golden {
    let path = format!("{}/../golden/data/{name}.json.gz", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&gunzip(&std::fs::read(path).unwrap())).unwrap()
}

fn verdict(gpu: &Gpu, golden: &Golden, split: Split) -> Verdict {
    let verdict =
        block_on(judge(gpu, golden, split)).unwrap_or_else(|error| panic!("{} {split:?}: {error:#}", golden.name));
    println!("{}: {} positions, worst logit {:.1e}", verdict.name, verdict.counted, verdict.worst);
    assert!(verdict.is_right(), "answers differ from llama.cpp's: {verdict:?}");
    verdict
}

fn is_right_however_split(name: &str) {
    let gpu =
        block_on(Gpu::open(GpuOptions::default())).expect("these tests need a Vulkan adapter, a software one will do");
    let golden = golden(name);
    let one = verdict(&gpu, &golden, Split::One);
    let three = verdict(&gpu, &golden, Split::ThreeStages);
    assert_eq!(one.bits, three.bits, "{name}: three stages must answer bit for bit what one answers");
    if golden.model.architecture.has_experts() {
        verdict(&gpu, &golden, Split::ExpertsElsewhere);
    }
}

/// `app/engine/tests` judges all of them; this is what the browsers' tests do.
#[test]
fn a_model_is_split_only_as_it_can_be() {
    let gpu =
        block_on(Gpu::open(GpuOptions::default())).expect("these tests need a Vulkan adapter, a software one will do");
    let recipe = |name: &str| -> Recipe {
        let path = format!("{}/../golden/architectures/{name}.json.gz", env!("CARGO_MANIFEST_DIR"));
        serde_json::from_str(&gunzip(&std::fs::read(path).unwrap())).unwrap()
    };
    let splits = |name: &str| recipe(name).splits().unwrap();
    assert_eq!(splits("phi3"), [Split::One, Split::ThreeStages]);
    assert_eq!(splits("gpt-oss"), [Split::One, Split::ThreeStages, Split::ExpertsElsewhere]);
    let whole = recipe("gemma4");
    assert_eq!(whole.splits().unwrap(), [Split::One], "its blocks share keys and values");
    let verdict = block_on(judge_recipe(&gpu, &whole, Split::One)).unwrap();
    assert!(verdict.wrong.is_empty() && verdict.counted >= 60, "{verdict:?}");
}

macro_rules! models {
    ($($test:ident: $name:literal,)*) => {
        $(#[test] fn $test() { is_right_however_split($name); })*
    };
}

models! {
    llama: "llama-Q4_K",
    llama_of_several_types: "llama-mixed",
    mixtral: "mixtral-Q4_K",
    qwen2: "qwen2-Q4_K",
    qwen3: "qwen3-Q4_K",
    qwen3moe_f32: "qwen3moe-F32",
    qwen3moe_f16: "qwen3moe-F16",
    qwen3moe_q8_0: "qwen3moe-Q8_0",
    qwen3moe_q4_0: "qwen3moe-Q4_0",
    qwen3moe_q4_k: "qwen3moe-Q4_K",
    qwen3moe_q6_k: "qwen3moe-Q6_K",
}
