//! In a browser: provides `window.judge(golden, split)` to the tests' page. Natively: judges the golden files given on
//! the command line.

#[cfg(not(target_arch = "wasm32"))]
fn main() -> anyhow::Result<()> {
    use futures::executor::block_on;
    use potluck_engine::{Gpu, GpuOptions};
    use potluck_judge::{Golden, Split, judge};

    let gpu = block_on(Gpu::open(GpuOptions::default()))?;
    println!("{}", gpu.capabilities().name);
    for path in std::env::args().skip(1) {
        let golden: Golden = serde_json::from_slice(&std::fs::read(&path)?)?;
        let moe = golden.model.architecture.has_experts();
        for split in [Split::One, Split::ThreeStages, Split::ExpertsElsewhere] {
            if split != Split::ExpertsElsewhere || moe {
                println!("{:?}", block_on(judge(&gpu, &golden, split))?);
            }
        }
    }
    Ok(())
}

#[cfg(target_arch = "wasm32")]
fn main() {
    use potluck_engine::{Gpu, GpuOptions};
    use potluck_judge::{Golden, Split, judge};
    use wasm_bindgen::prelude::*;

    async fn run(golden: String) -> anyhow::Result<String> {
        let golden: Golden = serde_json::from_str(&golden)?;
        let gpu = Gpu::open(GpuOptions::default()).await?;
        let mut verdicts =
            vec![judge(&gpu, &golden, Split::One).await?, judge(&gpu, &golden, Split::ThreeStages).await?];
        if golden.model.architecture.has_experts() {
            verdicts.push(judge(&gpu, &golden, Split::ExpertsElsewhere).await?);
        }
        Ok(serde_json::to_string(&verdicts)?)
    }

    let judge = Closure::<dyn Fn(String) -> js_sys::Promise>::new(|golden: String| {
        wasm_bindgen_futures::future_to_promise(async move {
            let verdicts = run(golden).await.map_err(|error| JsError::new(&format!("{error:#}")))?;
            Ok(verdicts.into())
        })
    });
    // The global object keeps the function forever.
    if js_sys::Reflect::set(&js_sys::global(), &"judge".into(), judge.as_ref()).is_ok() {
        judge.forget();
    }
}
