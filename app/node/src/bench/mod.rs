//! Measures a model on this device alone, without a room or a chat.

mod choice;
mod device;
mod error;
mod report;

use std::cell::Cell;
use std::rc::Rc;

use potluck_engine::Engine;
use potluck_engine::bench::{Answers, Bench, Run, Workload};
use potluck_panel::{BUILD, BenchChoice, BenchEvent, BenchLoad, BenchReport, BenchResult, BenchRun};
use potluck_plan::{Bytes, Sampling};
use potluck_protocol::{LoadPhase, ModelCard, ModelSource};

use self::choice::{check, depths, possible};
use self::device::peaks;
pub use self::error::BenchError;
use crate::compute::Compute;
use crate::loader::{Load, Progress};
use crate::open::{Model, OpenError, Opener};
use crate::platform::{LocalFile, Platform};

/// How sampled answers are sampled.
fn usual_sampling() -> Sampling {
    Sampling { temperature: 0.7, top_k: 40, top_p: 0.95, min_p: 0.0, seed: 1, ..Sampling::default() }
}

/// One benchmark.
pub struct Benchmark {
    /// The platform adapters.
    pub platform: Platform,
    /// The GPU.
    pub compute: Rc<Compute>,
    /// Opens the model.
    pub opener: Opener,
    /// The files that came with the choice.
    pub files: Vec<Rc<dyn LocalFile>>,
    /// What to measure.
    pub choice: BenchChoice,
    /// Receives the progress.
    pub report: Rc<dyn Fn(BenchEvent)>,
}

/// A loaded model; dropping it frees its GPU memory.
struct Loaded {
    bench: Bench,
    card: ModelCard,
    load: BenchLoad,
}

impl Drop for Loaded {
    fn drop(&mut self) {
        self.bench.engine().destroy();
    }
}

/// Counts the steps for the page.
struct Steps<'a> {
    report: &'a dyn Fn(BenchEvent),
    done: Cell<u32>,
    total: u32,
}

impl Steps<'_> {
    fn next(&self, what: String) {
        (self.report)(BenchEvent::Running { what, done: self.done.get(), total: self.total });
        self.done.set(self.done.get() + 1);
    }
}

impl Benchmark {
    /// Loads the model and measures it.
    ///
    /// # Errors
    /// One sentence.
    pub async fn run(&self) -> Result<BenchReport, BenchError> {
        check(&self.choice)?;
        let loaded = self.load().await?;
        let (possible, skipped) = possible(&self.choice, loaded.card.context);
        if possible.is_empty() {
            return Err(BenchError::Choice("Every workload is longer than the model's context; choose shorter ones."));
        }
        let per_workload = (self.choice.repeats + 1) * if self.choice.sampled { 2 } else { 1 };
        let depths: Vec<u32> =
            depths(&self.choice).filter(|depth| possible.iter().any(|w| w.depth == *depth)).collect();
        let kernel_steps = if self.choice.kernels { 2 * depths.len() as u32 } else { 0 };
        let total = 1 + possible.len() as u32 * per_workload + kernel_steps;
        let steps = Steps { report: self.report.as_ref(), done: Cell::new(0), total };

        steps.next("How fast this device streams memory".to_owned());
        self.yield_now().await;
        let streaming = loaded.bench.engine().streaming_rate().await? * 1e9;
        let engine = loaded.bench.engine();
        let gpu = self.compute.gpu_for_bench().map_err(BenchError::NoGpu)?;
        let peaks = peaks(&gpu, engine).await?;
        let mut out = BenchReport {
            build: BUILD.to_owned(),
            method: report::method(self.choice.repeats),
            model: report::model(&loaded.card),
            device: device::describe(gpu.capabilities(), &self.settings(&possible), engine, streaming, peaks)?,
            load: loaded.load,
            workloads: Vec::new(),
            skipped,
            kernels: Vec::new(),
        };
        for depth in depths {
            loaded.bench.deepen(depth).await?;
            for workload in possible.iter().filter(|workload| workload.depth == depth) {
                out.workloads.push(self.workload(&loaded.bench, *workload, streaming, &steps).await?);
            }
            if self.choice.kernels {
                // In the middle of an answer that was timed, so that both times are of the same token.
                let result = out.workloads.iter().find(|result| result.depth == depth);
                let (at, token) = result.map_or((depth, 0.0), |result| {
                    (depth + result.prompt + result.answer / 2, 1e3 / result.decode.max(1e-9))
                });
                steps.next(format!("Kernels of one token after {at}"));
                self.yield_now().await;
                let times = loaded.bench.decode_kernels(at).await?;
                let mut kernels = report::kernels("decode", at, 1, times, streaming);
                kernels.classes.push(report::between(token, kernels.millis));
                out.kernels.push(kernels);
                steps.next(format!("Kernels of a prompt after {depth}"));
                self.yield_now().await;
                let (tokens, times) = loaded.bench.prefill_kernels(depth).await?;
                out.kernels.push(report::kernels("prefill", depth, tokens, times, streaming));
            }
        }
        Ok(out)
    }

    /// One warm-up run, then the runs that count; the same with sampled tokens, if the GPU samples.
    async fn workload(
        &self,
        bench: &Bench,
        workload: Workload,
        streaming: f64,
        steps: &Steps<'_>,
    ) -> Result<BenchResult, BenchError> {
        let Workload { depth, prompt, answer } = workload;
        let name = if depth > 0 {
            format!("{prompt} / {answer} tokens after {depth}")
        } else {
            format!("{prompt} / {answer} tokens")
        };
        steps.next(format!("{name}, warming up"));
        self.yield_now().await;
        bench.run(workload).await?;
        let mut runs = Vec::new();
        for number in 1..=self.choice.repeats {
            steps.next(format!("{name}, run {number} of {}", self.choice.repeats));
            self.yield_now().await;
            runs.push(bench.run(workload).await?);
        }
        let sampled = if self.choice.sampled { self.sampled(bench, workload, &name, steps).await? } else { None };
        let decode = report::median(runs.iter().map(Run::decode_rate));
        let token_bytes = bench.token_bytes(depth + prompt + answer / 2);
        Ok(BenchResult {
            depth,
            prompt,
            answer,
            prefill: report::median(runs.iter().map(|run| run.prefill_rate(workload))),
            decode,
            sampled,
            first_token: report::median(runs.iter().map(|run| run.first_token)),
            token_bytes,
            streaming_share: decode * token_bytes as f64 / streaming,
            runs: runs
                .iter()
                .map(|run| BenchRun {
                    first_token: run.first_token,
                    decode: run.decode,
                    tokens: run.tokens.len() as u32,
                })
                .collect(),
        })
    }

    /// Tokens a second of sampled answers, after a warm-up run; none if the GPU does not sample.
    async fn sampled(
        &self,
        bench: &Bench,
        workload: Workload,
        name: &str,
        steps: &Steps<'_>,
    ) -> Result<Option<f64>, BenchError> {
        let mut rates = Vec::new();
        for number in 0..=self.choice.repeats {
            steps.next(match number {
                0 => format!("{name}, sampled, warming up"),
                _ => format!("{name}, sampled, run {number} of {}", self.choice.repeats),
            });
            self.yield_now().await;
            let Some(run) = bench.run_sampled(workload, usual_sampling()).await? else { return Ok(None) };
            rates.extend((number > 0).then(|| run.decode_rate()));
        }
        Ok((!rates.is_empty()).then(|| report::median(rates.into_iter())))
    }

    /// Lets other tasks of this thread run: the page's messages, a stop.
    async fn yield_now(&self) {
        self.platform.clock.sleep(0.0).await;
    }

    async fn load(&self) -> Result<Loaded, BenchError> {
        let gpu = self.compute.gpu_for_bench().map_err(BenchError::NoGpu)?;
        let started = self.platform.clock.now().0;
        let used = Rc::new(Cell::new(Bytes::ZERO));
        let progress = {
            let (report, used) = (self.report.clone(), used.clone());
            Rc::new(Progress::new(
                self.platform.clone(),
                Box::new(move |progress, bytes| {
                    used.set(bytes);
                    report(BenchEvent::Loading(progress));
                }),
            ))
        };
        progress.phase(LoadPhase::Find);
        let source = self.choice.model.clone();
        if let (ModelSource::File { name, .. }, true) = (&source, self.files.is_empty()) {
            return Err(OpenError::FileGone(name.clone()).into());
        }
        let (model, _) = self.opener.open(&source, &self.files, |_, _| {}).await?;
        let (possible, _) = possible(&self.choice, model.spec.context);
        self.compute.tuning.recall().await;
        let answers = Answers::default();
        let Model { card, spec, units, names, source, .. } = model;
        let engine = Engine::new(&gpu, spec, units.clone(), self.settings(&possible), answers.receiver())?;
        // From here on dropping this future frees the engine's memory.
        let mut loaded = Loaded { bench: Bench::new(engine.clone(), answers), card, load: BenchLoad::default() };
        let wanted = units.units().collect();
        let load = Load {
            platform: self.platform.clone(),
            engine,
            tuner: self.compute.tuning.clone(),
            model: loaded.card.id,
            units: Rc::new(units),
            names,
            source,
            progress,
            notice: Box::new(|sentence| log::warn!("{sentence}")),
        };
        let weights = load.reserve(&wanted)?;
        load.run(true).await?;
        let millis = self.platform.clock.now().0 - started;
        let rates = load.rates(&wanted).await?.map(|rates| report::rates(&rates));
        loaded.load = BenchLoad { millis, weights: weights.0, allocated: used.get().0, rates };
        Ok(loaded)
    }

    fn settings(&self, possible: &[Workload]) -> potluck_engine::Settings {
        // The prefill kernels are timed on a whole chunk after the context.
        let deepest = possible.iter().map(|workload| workload.positions().max(workload.depth + 512)).max().unwrap_or(0);
        let settings = crate::open::settings(Bytes(u64::MAX), deepest, self.choice.cache);
        potluck_engine::Settings { tuned: self.choice.tuned, arithmetic: self.choice.arithmetic, ..settings }
    }
}
