//! Times whole prompts and answers of a model file: `cargo bench -p potluck-engine --bench model -- FILE.gguf`.
//!
//! Instead of a file it takes a published shape and a number of blocks (`qwen3-30b-a3b:12`), and without either it builds a
//! random model of a small shape in memory. Variants are tuned first, where the device is worth it. Prefill and decode are medians of
//! three runs after an uncounted first one; then comes the time per kernel class.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use futures::executor::block_on;
use potluck_engine::bench::{Answers, Bench, KernelTimes, Workload};
use potluck_engine::{Engine, Gpu, GpuOptions, Piece, Settings};
use potluck_gguf::synthetic::{Shape, Synthetic};
use potluck_gguf::{HeaderParser, Model, Progress, join};
use potluck_model::{ModelSpec, UnitMap};
use potluck_plan::WeightUnit;

type Error = Box<dyn std::error::Error>;

const RUNS: usize = 3;
/// Most milliseconds of tuning.
const TUNING: f64 = 25_000.0;
const WORKLOADS: [Workload; 3] = [
    Workload { depth: 0, prompt: 512, answer: 128 },
    Workload { depth: 0, prompt: 25, answer: 128 },
    Workload { depth: 2048, prompt: 25, answer: 128 },
];

fn main() -> Result<(), Error> {
    // Cargo adds `--bench`.
    let path = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    let shape = match &path {
        Some(path) => shape(path),
        None => Some(Shape::Llama160M.synthetic()),
    };
    let (model, bytes): (Model, Box<dyn Bytes>) = match (shape, path) {
        (None, Some(path)) => open(&path)?,
        (shape, _) => {
            let file = shape.unwrap_or_default().to_bytes()?;
            (join([potluck_gguf::parse(&file)?])?, Box::new(file))
        }
    };
    let gpu = block_on(Gpu::open(GpuOptions::default()))?;
    let (spec, units) = ModelSpec::from_gguf(&model)?;
    let context = WORKLOADS.map(Workload::positions).into_iter().max().unwrap_or_default().min(spec.context);
    let answers = Answers::default();
    let settings = Settings { context, ..Settings::default() };
    let engine = Engine::new(&gpu, spec, units.clone(), settings, answers.receiver())?;
    let held: BTreeSet<WeightUnit> = units.units().collect();
    engine.reserve(&held)?;
    block_on(load(&engine, &units, bytes.as_ref()))?;
    block_on(engine.prepare())?;
    block_on(engine.tune(TUNING))?;
    let rate = block_on(engine.streaming_rate())?;
    println!("{}: streams {rate:.1} GB/s; {:.0} MB", gpu.capabilities().name, model.tensor_bytes() as f64 / 1e6);
    let bench = Bench::new(engine, answers);
    for workload in WORKLOADS.into_iter().filter(|workload| workload.positions() <= context) {
        measure(&bench, workload, rate)?;
    }
    block_on(bench.deepen(0))?;
    show("one token", &block_on(bench.decode_kernels(0))?);
    let (rows, times) = block_on(bench.prefill_kernels(0))?;
    show(&format!("{rows} tokens of a prompt"), &times);
    Ok(())
}

/// The model that `NAME:BLOCKS` describes.
fn shape(text: &str) -> Option<Synthetic> {
    let (name, blocks) = text.split_once(':')?;
    Some(Synthetic { blocks: blocks.parse().ok()?, ..Shape::from_name(name)?.synthetic() })
}

fn measure(bench: &Bench, workload: Workload, rate: f64) -> Result<(), Error> {
    block_on(bench.deepen(workload.depth))?;
    block_on(bench.run(workload))?;
    let mut prefill = Vec::new();
    let mut decode = Vec::new();
    for _ in 0..RUNS {
        let run = block_on(bench.run(workload))?;
        prefill.push(run.prefill_rate(workload));
        decode.push(run.decode_rate());
    }
    prefill.sort_by(f64::total_cmp);
    decode.sort_by(f64::total_cmp);
    let Workload { depth, prompt, answer } = workload;
    let bytes = bench.token_bytes(depth + prompt + answer / 2) as f64;
    println!(
        "{prompt:>5}/{answer} at {depth:>4}: prefill {:8.1} tokens/s, decode {:7.2} tokens/s, {:.0} % of the streaming rate",
        prefill[RUNS / 2],
        decode[RUNS / 2],
        decode[RUNS / 2] * bytes / rate / 1e7
    );
    Ok(())
}

fn show(what: &str, times: &KernelTimes) {
    let total: f64 = times.classes.iter().map(|time| time.millis).sum();
    println!("{what}: {total:.2} ms in kernels ({:?})", times.clocked);
    for time in &times.classes {
        let rate = time.bytes as f64 / time.millis.max(1e-6) / 1e6;
        println!(
            "  {:18} {:>4} × {:>9.3} ms {:>4.0} % {:>8.1} GB/s",
            time.class,
            time.dispatches,
            time.millis,
            100.0 * time.millis / total,
            rate
        );
    }
}

/// Source of a model's bytes.
trait Bytes {
    fn read(&self, offset: u64, out: &mut [u8]) -> std::io::Result<()>;
}

impl Bytes for File {
    fn read(&self, offset: u64, out: &mut [u8]) -> std::io::Result<()> {
        let mut file = self;
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(out)
    }
}

impl Bytes for Vec<u8> {
    fn read(&self, offset: u64, out: &mut [u8]) -> std::io::Result<()> {
        let at = offset as usize;
        out.copy_from_slice(&self[at..at + out.len()]);
        Ok(())
    }
}

fn open(path: &str) -> Result<(Model, Box<dyn Bytes>), Error> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut parser = HeaderParser::with_length(length);
    let mut at = 0;
    let mut chunk = vec![0; 1 << 20];
    loop {
        let part = (length - at).min(chunk.len() as u64) as usize;
        if part == 0 {
            return Err("The file ends inside its header.".into());
        }
        Bytes::read(&file, at, &mut chunk[..part])?;
        at += part as u64;
        if let Progress::Done(header) = parser.push(&chunk[..part])? {
            return Ok((join([*header])?, Box::new(file)));
        }
    }
}

async fn load(engine: &Engine, units: &UnitMap, bytes: &dyn Bytes) -> Result<(), Error> {
    const PIECE: u64 = 4 << 20;
    let mut buffer = Vec::new();
    for unit in engine.missing() {
        for (tensor, description) in units.tensors(unit).iter().enumerate() {
            if !engine.needs(unit, tensor) {
                continue;
            }
            let range = description.range;
            let mut done = 0;
            while done < range.len {
                let len = PIECE.min(range.len - done);
                buffer.resize(len as usize, 0);
                bytes.read(range.offset + done, &mut buffer)?;
                let mut staging = engine.staging().await?;
                staging.write(0, &buffer);
                let piece = Piece { unit, tensor, tensor_offset: done, staging_offset: 0, len };
                engine.upload(staging, &[piece])?;
                done += len;
            }
        }
        engine.finish(unit)?;
    }
    Ok(())
}
