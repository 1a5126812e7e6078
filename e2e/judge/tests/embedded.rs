//! The model that comes with Potluck: 50 chat prompts, 64 tokens each, against llama.cpp.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use futures::executor::block_on;
use potluck_engine::{Gpu, GpuOptions};
use potluck_judge::{Reference, Split, compare};
use potluck_testkit::gunzip;

/// Logits of the shipped weights differ by less than this between two orders of summation.
const TOLERANCE: f32 = 0.001;

#[test]
fn the_embedded_model_answers_as_llama_cpp() {
    let root = format!("{}/../..", env!("CARGO_MANIFEST_DIR"));
    let file = std::fs::read(format!("{root}/public/models/potluck-small-Q4_K_M.gguf")).unwrap();
    let lines = gunzip(&std::fs::read(format!("{root}/train/eval/reference.jsonl.gz")).unwrap());
    let references: Vec<Reference> = lines.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(references.len(), 50);
    let gpu =
        block_on(Gpu::open(GpuOptions::default())).expect("this test needs a Vulkan adapter, a software one will do");
    for split in [Split::One, Split::ExpertsElsewhere] {
        // All experts elsewhere is slower: every tenth prompt shows it.
        let step = if split == Split::One { 1 } else { 10 };
        let some: Vec<Reference> = references.iter().step_by(step).cloned().collect();
        let verdict = block_on(compare(&gpu, &file, &some, split, TOLERANCE)).unwrap();
        println!("{}: {} positions", verdict.name, verdict.counted);
        assert!(verdict.is_right(), "answers differ from llama.cpp's: {verdict:?}");
        assert!(verdict.counted >= some.len() * 60, "only {} positions count", verdict.counted);
    }
}
