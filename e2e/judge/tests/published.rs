//! A published model: SmolLM2-135M-Instruct as others quantized it, against llama.cpp on the same weights in F32.
//! `cargo xtask models` fetches it; docs/lab/real-models.md has what is measured by command.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use futures::executor::block_on;
use potluck_engine::{Gpu, GpuOptions};
use potluck_judge::{LOGITS_READ, Published, Room, Setup, Split, Way, surprise};
use potluck_plan::KernelClass;

/// By how much the mean of the surprises may differ, in nats. A perplexity differs by the same share.
const TOLERANCE: f64 = 1e-4;

#[test]
fn smollm2_answers_as_llama_cpp() {
    let published = Published::read("smollm2-135m").unwrap();
    let Some(file) = published.bytes().unwrap() else { return };
    let gpu =
        block_on(Gpu::open(GpuOptions::default())).expect("this test needs a Vulkan adapter, a software one will do");
    let setup = Setup { logits_read: LOGITS_READ as u32, ..Setup::exact(1024) };
    let room = block_on(Room::open_with(&gpu, &file, Split::One, &setup)).unwrap();

    let verdict = block_on(published.judge(&room, Way::Steps)).unwrap();
    println!("{}: {} positions", verdict.name, verdict.counted);
    assert!(verdict.is_right(), "answers differ from llama.cpp's: {verdict:?}");
    assert!(verdict.counted >= 150, "only {} positions count", verdict.counted);

    let text = published.short(&file).unwrap();
    let count = (text.len() - 1) as f64;
    let started = std::time::Instant::now();
    let sum = block_on(surprise(&room, &text, KernelClass::Prefill)).unwrap();
    let (ours, theirs) = (sum / count, published.surprise.f32.short / count);
    println!(
        "perplexity of {count} tokens: {:.4}, llama.cpp {:.4}, in {:.1} s",
        ours.exp(),
        theirs.exp(),
        started.elapsed().as_secs_f64()
    );
    assert!((ours - theirs).abs() < TOLERANCE, "a surprise of {ours} instead of {theirs}");
}
