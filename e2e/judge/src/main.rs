//! In a browser: provides `window.judge(golden)` and `window.judgeRecipe(recipe)` to the tests' page. Natively: judges the
//! golden files given on the command line.

#[cfg(not(target_arch = "wasm32"))]
fn main() -> anyhow::Result<()> {
    use futures::executor::block_on;
    use potluck_engine::{Gpu, GpuOptions};
    use potluck_judge::{Golden, Split, judge};
    use potluck_testkit::gunzip;

    let gpu = block_on(Gpu::open(GpuOptions::default()))?;
    println!("{}", gpu.capabilities().name);
    for path in std::env::args().skip(1) {
        let golden: Golden = serde_json::from_str(&gunzip(&std::fs::read(&path)?))?;
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
    use potluck_judge::{Golden, Recipe, Split, Verdict, judge, judge_recipe};
    use wasm_bindgen::prelude::*;

    async fn golden(golden: String) -> anyhow::Result<Vec<Verdict>> {
        let golden: Golden = serde_json::from_str(&golden)?;
        let gpu = Gpu::open(GpuOptions::default()).await?;
        let mut verdicts =
            vec![judge(&gpu, &golden, Split::One).await?, judge(&gpu, &golden, Split::ThreeStages).await?];
        if golden.model.architecture.has_experts() {
            verdicts.push(judge(&gpu, &golden, Split::ExpertsElsewhere).await?);
        }
        Ok(verdicts)
    }

    async fn recipe(recipe: String) -> anyhow::Result<Vec<Verdict>> {
        let recipe: Recipe = serde_json::from_str(&recipe)?;
        let gpu = Gpu::open(GpuOptions::default()).await?;
        let mut verdicts = Vec::new();
        for split in recipe.splits()? {
            verdicts.push(judge_recipe(&gpu, &recipe, split).await?);
        }
        Ok(verdicts)
    }

    /// A function of the page, which gets a file's text and promises verdicts as JSON.
    fn provide<F: Future<Output = anyhow::Result<Vec<Verdict>>> + 'static>(name: &str, judge: fn(String) -> F) {
        let judge = Closure::<dyn Fn(String) -> js_sys::Promise>::new(move |text| {
            let verdicts = judge(text);
            wasm_bindgen_futures::future_to_promise(async move {
                let told = verdicts.await.and_then(|verdicts| Ok(serde_json::to_string(&verdicts)?));
                Ok(told.map_err(|error| JsError::new(&format!("{error:#}")))?.into())
            })
        });
        // The global object keeps the function forever.
        if js_sys::Reflect::set(&js_sys::global(), &name.into(), judge.as_ref()).is_ok() {
            judge.forget();
        }
    }

    provide("judge", golden);
    provide("judgeRecipe", recipe);
}
