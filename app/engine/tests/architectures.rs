//! Compares every architecture with llama.cpp's answers on the same weights (`e2e/golden/architectures`), on this
//! machine's adapter: on one engine, cut into three stages on three where it may be cut, and with all experts on another
//! engine.
//!
//! The files are made by outside software. Each is made again here from its recipe, so it must have the same bytes.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;
#[path = "support/table.rs"]
mod table;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use potluck_engine::reference::Reference;
use potluck_engine::{EngineError, Gpu, Layout, Settings, Tier};
use potluck_gguf::{TensorType, join, parse};
use potluck_model::{Architecture, FeedForwardSpec, ModelError, ModelSpec};
use potluck_plan::{
    BlockIndex, Candidates, Cuts, ExpertOutputs, Input, KernelClass, KvCacheType, LmHeadTokens, ModelId, Outcome, Task,
    Then, Ticket, WeightUnit, Work,
};
use potluck_testkit::gunzip;
use serde_json::Value;
use support::{Bench, Model, Random, Recipe, forward, gpu_as, load, rows, top};

/// Longest context of the engines; longer than the original context of every scaled model, as for the reference.
const CONTEXT: u32 = 128;

/// The file of a recipe, with the bytes that the reference read.
fn file(recipe: &Value) -> Vec<u8> {
    let recipe: potluck_judge::Recipe = serde_json::from_value(recipe.clone()).unwrap();
    recipe.to_bytes().unwrap()
}

/// How a model is spread over engines.
#[derive(Clone, Copy, Debug)]
enum Spread<'a> {
    /// Cut into stages at these blocks.
    Stages(&'a [u16]),
    /// All experts on a second engine.
    ExpertsElsewhere,
}

/// The units of a range of blocks, with the embedding before the first and the head after the last.
fn units_of(model: &Model, blocks: (u16, u16)) -> BTreeSet<WeightUnit> {
    let last = model.spec.blocks.len() as u16;
    let belongs = |unit: &WeightUnit| match (unit, unit.block()) {
        (WeightUnit::Embedding, _) => blocks.0 == 0,
        (WeightUnit::LmHead, _) => blocks.1 == last,
        (_, Some(BlockIndex(block))) => (blocks.0..blocks.1).contains(&block),
        _ => false,
    };
    model.all_units().into_iter().filter(belongs).collect()
}

/// Engines that compute a model together.
struct Engines {
    stages: Vec<(Bench, (u16, u16))>,
    /// The engine with the experts, and the blocks that have some.
    experts: Option<(Bench, Vec<u16>)>,
}

impl Engines {
    fn new(gpu: &Gpu, model: &Model, spread: Spread<'_>) -> Self {
        let bench = |units: &BTreeSet<WeightUnit>| {
            let settings = Settings { context: CONTEXT, kv_cache: KvCacheType::F32, ..Settings::default() };
            let bench = Bench::empty(gpu, &model.spec, &model.units, settings);
            bench.engine.reserve(units).unwrap();
            load(&bench.engine, &model.units, &|unit, tensor| model.bytes(unit, tensor));
            bench
        };
        let last = model.spec.blocks.len() as u16;
        let is_expert = |unit: &WeightUnit| matches!(unit, WeightUnit::Expert(..));
        match spread {
            Spread::Stages(cuts) => {
                let stages = cuts.windows(2).map(|cut| (cut[0], cut[1]));
                let stages = stages.map(|blocks| (bench(&units_of(model, blocks)), blocks)).collect();
                Self { stages, experts: None }
            }
            Spread::ExpertsElsewhere => {
                let (away, here) = model.all_units().into_iter().partition(is_expert);
                let routed = (0..last).filter(|&block| model.spec.experts(usize::from(block)).is_some()).collect();
                Self { stages: vec![(bench(&here), (0, last))], experts: Some((bench(&away), routed)) }
            }
        }
    }

    fn candidates(&mut self, ids: &[u32], from: usize, to: usize, class: KernelClass) -> Vec<Candidates> {
        let mut input = Input::Tokens(ids[from..to].to_vec());
        let batch = || rows(from as u32..to as u32);
        let (last, before) = self.stages.split_last_mut().unwrap();
        for (bench, blocks) in before {
            input = Input::Hidden(bench.hidden(forward(batch(), class, input, *blocks, Then::Hidden)));
        }
        let mut first = last.1.0;
        if let Some((holder, blocks)) = &mut self.experts {
            for &block in blocks.iter() {
                let then = Then::Route(BlockIndex(block));
                let outcome = last.0.run(forward(batch(), class, input, (first, block), then));
                let Outcome::Routed { residual, normed, routes } = outcome else { panic!("{outcome:?}") };
                let chosen = routes.iter().map(|route| route.experts.iter().map(|(expert, _)| *expert).collect());
                let (experts, block) = (chosen.collect(), BlockIndex(block));
                let outputs = holder.hidden(Task::Experts { block, class, normed, experts, sum: None });
                input = Input::Experts(ExpertOutputs { block, residual, routes, outputs });
                first = block.0 + 1;
            }
        }
        last.0.candidates(forward(batch(), class, input, (first, last.1.1), top(LmHeadTokens::All, 1)))
    }
}

/// Checks the reference on the CPU by the first prompt. It takes no part in the other comparisons.
fn judge_reference(name: &str, golden: &Value, model: &Model) {
    let source = |unit, tensor| model.bytes(unit, tensor);
    let mut reference = Reference::new(&model.spec, &model.units, &source).with_context(CONTEXT);
    let prompt = &golden["prompts"][0];
    for (position, id) in prompt["ids"].as_array().unwrap().iter().enumerate() {
        let logits = reference.next(id.as_u64().unwrap() as u32);
        let best = prompt["argmax"][position].as_u64().unwrap() as usize;
        let far = (f64::from(logits[best]) - prompt["logits"][position][0].as_f64().unwrap()).abs();
        assert!(far < golden["tolerance"].as_f64().unwrap(), "{name} on the CPU, position {position}: off by {far}");
    }
}

/// Prompts in a file, each of 64 positions. Only the first is judged, unless `POTLUCK_PROMPTS` asks for more.
const PROMPTS: usize = 3;

fn prompts() -> usize {
    std::env::var("POTLUCK_PROMPTS").map_or(1, |wanted| wanted.parse().unwrap()).clamp(1, PROMPTS)
}

/// Checks one file's answers to its first prompts by the rule of `e2e/golden/README.md`.
fn judge(path: &Path, golden: &Value, model: &Model, (tier, prompts): (Tier, usize), spread: Spread<'_>) {
    let tolerance = golden["tolerance"].as_f64().unwrap();
    let mut engines = Engines::new(&gpu_as(Some(tier)), model, spread);
    let name = name_of(path);
    let (mut checked, mut worst) = (0, 0.0f64);
    for prompt in golden["prompts"].as_array().unwrap().iter().take(prompts) {
        let numbers = |key: &str| prompt[key].as_array().unwrap().clone();
        let ids: Vec<u32> = numbers("ids").iter().map(|id| id.as_u64().unwrap() as u32).collect();
        let (argmax, margin, logits) = (numbers("argmax"), numbers("margin"), numbers("logits"));
        // A chunk, a few tokens at a time, then single tokens: every kind of kernel computes some positions. Stages only
        // decode: what a chunk adds is judged without them, and compiling its kernels for each stage takes long.
        let mut parts = match spread {
            Spread::Stages(cuts) if cuts.len() > 2 => {
                [0, 16, 32, 37].windows(2).map(|part| (part[0], part[1], KernelClass::Decode)).collect()
            }
            _ => vec![(0, 37, KernelClass::Prefill)],
        };
        parts.push((37, 53, KernelClass::Decode));
        parts.extend((53..ids.len()).map(|at| (at, at + 1, KernelClass::Decode)));
        for (from, to, class) in parts {
            for (position, best) in (from..to).zip(engines.candidates(&ids, from, to, class)) {
                let same = u64::from(best.ids[0]) == argmax[position].as_u64().unwrap();
                let clear = margin[position].as_f64().unwrap() >= tolerance;
                let far = (f64::from(best.logits[0]) - logits[position][0].as_f64().unwrap()).abs();
                let expected = (&argmax[position], &logits[position][0]);
                assert!(
                    same || !clear,
                    "{name} {tier:?} {spread:?} position {position}: {best:?}, expected {expected:?}"
                );
                assert!(!same || far < tolerance, "{name} {tier:?} {spread:?} position {position}: off by {far}");
                worst = worst.max(if same { far } else { 0.0 });
                checked += usize::from(clear);
            }
        }
    }
    println!("{name} {tier:?} {spread:?}: {checked} positions, logits off by up to {worst:.2e}");
    assert!(checked >= 60, "{name}: only {checked} positions count");
}

fn recipes() -> Vec<PathBuf> {
    let folder = format!("{}/../../e2e/golden/architectures", env!("CARGO_MANIFEST_DIR"));
    let files = std::fs::read_dir(folder).expect("the golden answers are there");
    let mut files: Vec<PathBuf> = files.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "gz"));
    files.sort();
    files
}

/// `NAME` of `NAME.json.gz`.
fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap().to_string_lossy();
    name.split('.').next().unwrap().to_owned()
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&gunzip(&std::fs::read(path).unwrap())).unwrap()
}

/// Architectures whose golden answers are those of `golden.rs`, which the Rust writer makes.
const WRITTEN_HERE: [Architecture; 4] =
    [Architecture::Llama, Architecture::Qwen2, Architecture::Qwen3, Architecture::Qwen3Moe];

#[test]
fn every_architecture_has_golden_answers() {
    let mut judged: BTreeSet<String> = WRITTEN_HERE.iter().map(|known| known.name().to_owned()).collect();
    for path in recipes() {
        let golden: Value = read(&path);
        judged.extend(golden["metadata"][0][2].as_str().map(str::to_owned));
    }
    let names = Architecture::ALL.iter().map(|known| known.name());
    let unjudged: Vec<&str> = names.filter(|name| !judged.contains(*name)).collect();
    assert!(unjudged.is_empty(), "architectures without golden answers: {unjudged:?}");
}

#[test]
fn the_table_of_models_is_current() {
    let described = |path: PathBuf| {
        let golden: Value = read(&path);
        let name = name_of(&path);
        match ModelSpec::from_gguf(&join([parse(&file(&golden)).unwrap()]).unwrap()) {
            Ok((spec, _)) => Some((spec, name)),
            // Kept as a file that is refused.
            Err(ModelError::MissingOperation { .. }) => None,
            Err(error) => panic!("{name}: {error}"),
        }
    };
    let mut judged: Vec<(ModelSpec, String)> = recipes().into_iter().filter_map(described).collect();
    let here = |known: Architecture| (Recipe::new(known, TensorType::F32).build().spec, "golden.rs".to_owned());
    judged.extend(WRITTEN_HERE.map(here));
    let page = table::page(&judged);
    let path = format!("{}/../../docs/models.md", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("POTLUCK_WRITE").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let current = std::fs::read_to_string(&path).unwrap_or_default() == page;
    assert!(current, "docs/models.md is not current: POTLUCK_WRITE=1 writes it anew");
}

/// Compiling kernels takes nearly all of the time and one core, so the files are
/// judged in so many tests at once.
const PARTS: usize = 4;

fn judge_part(part: usize) {
    let wanted = std::env::var("POTLUCK_ARCHITECTURES").ok();
    for path in recipes().into_iter().skip(part).step_by(PARTS) {
        let name = name_of(&path);
        if wanted.as_ref().is_none_or(|wanted| wanted.split(',').any(|wanted| wanted == name)) {
            judge_file(&path, &name);
        }
    }
}

#[test]
fn the_first_architectures_answer_as_llama_cpp_does() {
    judge_part(0);
}

#[test]
fn the_second_architectures_answer_as_llama_cpp_does() {
    judge_part(1);
}

#[test]
fn the_third_architectures_answer_as_llama_cpp_does() {
    judge_part(2);
}

#[test]
fn the_fourth_architectures_answer_as_llama_cpp_does() {
    judge_part(3);
}

/// Makes the file of a recipe and compares its answers on all kinds of engines.
fn judge_file(path: &Path, name: &str) {
    let golden: Value = read(path);
    let bytes = file(&golden);
    let (spec, units) = match ModelSpec::from_gguf(&join([parse(&bytes).unwrap()]).unwrap()) {
        Ok(read) => read,
        Err(error) => {
            // A known architecture may have variants that need more.
            let architecture = golden["metadata"][0][2].as_str().unwrap_or_default();
            let missing = matches!(error, ModelError::MissingOperation { .. });
            assert!(missing || Architecture::from_name(architecture).is_none(), "{path:?}: {error}");
            return println!("{path:?} is refused: {error}");
        }
    };
    let last = spec.blocks.len() as u16;
    let model = Model { spec, units, file: bytes };
    judge_reference(name, &golden, &model);
    judge(path, &golden, &model, (Tier::Full, prompts()), Spread::Stages(&[0, last]));
    judge(path, &golden, &model, (Tier::Software, 1), Spread::Stages(&[0, last]));
    // The cuts fall between blocks of every kind.
    if model.spec.cuts() == Cuts::Anywhere {
        judge(path, &golden, &model, (Tier::Full, 1), Spread::Stages(&[0, last / 3, last - 1, last]));
    }
    // Each block's experts elsewhere are a submit of their own: too many with 27 blocks, and others cover them.
    let has_experts = model.spec.blocks.iter().any(|block| matches!(block.feed_forward, FeedForwardSpec::Experts(_)));
    if has_experts && last <= 12 {
        judge(path, &golden, &model, (Tier::Full, 1), Spread::ExpertsElsewhere);
    }
}

/// Hidden vectors of 60 tokens after all blocks, computed in the given parts.
fn hidden(gpu: &Gpu, model: &Model, parts: &[(usize, usize, KernelClass)]) -> Vec<u32> {
    let last = model.spec.blocks.len() as u16;
    let mut engines = Engines::new(gpu, model, Spread::Stages(&[0, last]));
    let bench = &mut engines.stages[0].0;
    let mut random = Random(3);
    let ids: Vec<u32> = (0..60).map(|_| random.below(model.spec.vocabulary)).collect();
    let part = |&(from, to, class): &(usize, usize, KernelClass)| {
        let input = Input::Tokens(ids[from..to].to_vec());
        bench.hidden(forward(rows(from as u32..to as u32), class, input, (0, last), Then::Hidden))
    };
    parts.iter().flat_map(part).map(f32::to_bits).collect()
}

/// The model of a recipe.
fn model(name: &str) -> Model {
    let path = recipes().into_iter().find(|path| name_of(path) == name).unwrap();
    let bytes = file(&read(&path));
    let (spec, units) = ModelSpec::from_gguf(&join([parse(&bytes).unwrap()]).unwrap()).unwrap();
    Model { spec, units, file: bytes }
}

#[test]
fn a_latent_cache_lies_in_one_buffer() {
    for (name, buffers) in [("deepseek2", 1), ("dots1", 2)] {
        let model = model(name);
        let shape = model.spec.shape(&model.units, ModelId([0; 32]), KvCacheType::F32);
        assert_eq!(shape.blocks[1].kv_buffers, buffers, "{name}");
    }
}

#[test]
fn a_recurrent_state_is_taken_up_again_with_the_same_bits() {
    use KernelClass::{Decode, Prefill};
    for name in ["lfm2", "qwen35", "granitehybrid"] {
        let model = model(name);
        let last = model.spec.blocks.len() as u16;
        let mut engines = Engines::new(&gpu_as(Some(Tier::Full)), &model, Spread::Stages(&[0, last]));
        let bench = &mut engines.stages[0].0;
        let mut random = Random(4);
        let ids: Vec<u32> = (0..90).map(|_| random.below(model.spec.vocabulary)).collect();
        let work = |ids: &[u32], from: usize, class| {
            let batch = rows(from as u32..(from + ids.len()) as u32);
            forward(batch, class, Input::Tokens(ids.to_vec()), (0, last), Then::Hidden)
        };
        let mut bits = |ids: &[u32], from, class| -> Vec<u32> {
            bench.hidden(work(ids, from, class)).into_iter().map(f32::to_bits).collect()
        };
        bits(&ids[..70], 0, Prefill);
        let answer: Vec<Vec<u32>> = (70..90).map(|at| bits(&ids[at..=at], at, Decode)).collect();
        // Drafts that are wrong, and then the answer again: from the copy after 64 tokens.
        bits(&ids[20..25], 90, Decode);
        bits(&ids[64..70], 64, Prefill);
        let again: Vec<Vec<u32>> = (70..90).map(|at| bits(&ids[at..=at], at, Decode)).collect();
        assert!(again == answer, "{name}: a state that was taken up gives other bits");
        // A lost engine: everything from nothing, in other chunks.
        for (from, to) in [(0, 3), (3, 64), (64, 70)] {
            bits(&ids[from..to], from, Prefill);
        }
        let replayed = [bits(&ids[70..80], 70, Decode), bits(&ids[80..90], 80, Decode)].concat();
        let elsewhere = bench.engine.submit(Work { ticket: Ticket(u64::MAX), task: work(&ids[70..=70], 70, Decode) });
        let refused = matches!(elsewhere, Err(EngineError::NoState { known: 64, wanted: 70, .. }));
        assert!(refused, "{name}: {elsewhere:?} where no state is kept");
        assert!(replayed == answer.concat(), "{name}: a replay gives other bits");
    }
}

#[test]
fn blocks_that_share_keys_have_no_cache_of_their_own() {
    let model = model("gemma4");
    let (spec, settings) = (&model.spec, Settings { context: 64, kv_cache: KvCacheType::F32, ..Settings::default() });
    let gpu = gpu_as(Some(Tier::Full));
    let plan = |units: &BTreeSet<WeightUnit>| {
        Layout::plan(spec, &model.units, units, &settings, &gpu.capabilities().limits).unwrap()
    };
    let shape = spec.shape(&model.units, ModelId([0; 32]), KvCacheType::F32);
    let planned = shape.kv_cache_bytes(shape.all_blocks(), settings.context);
    // Four blocks with 2 heads of 32 values, one with 64, and five that share.
    assert_eq!(planned.0, 64 * (4 * 32 + 64) * 2 * 2 * 4);
    assert_eq!(plan(&model.all_units()).kv_cache(), planned);
    // A trial times a few blocks without the one whose keys they share.
    let units = units_of(&model, (6, 8));
    let mut bench = Bench::empty(&gpu, spec, &model.units, settings.clone());
    bench.engine.reserve(&units).unwrap();
    load(&bench.engine, &model.units, &|unit, tensor| model.bytes(unit, tensor));
    let input = Input::Hidden(vec![0.0; spec.hidden as usize]);
    let hidden = bench.hidden(forward(rows(0..1), KernelClass::Decode, input, (6, 8), Then::Hidden));
    assert!(hidden.iter().all(|v| v.is_finite()), "{hidden:?}");
}

#[test]
fn kernels_of_few_architectures_pass_their_self_test() {
    let cases =
        [("lfm2", Tier::Full), ("qwen35", Tier::Full), ("granitehybrid", Tier::Software), ("gemma4", Tier::Full)];
    for (name, tier) in cases {
        let model = model(name);
        let last = model.spec.blocks.len() as u16;
        let engines = Engines::new(&gpu_as(Some(tier)), &model, Spread::Stages(&[0, last]));
        let verdict = futures::executor::block_on(engines.stages[0].0.engine.self_test()).unwrap();
        let wrong: Vec<_> = verdict.kernels.iter().filter(|kernel| !kernel.ok).collect();
        assert!(wrong.is_empty(), "{name} {tier:?}: {wrong:?}");
        let names = ["convolution", "delta net", "state space", "gated input of a block"];
        let own = |kernel: &str| names.iter().any(|of| kernel.starts_with(of));
        assert!(verdict.kernels.iter().any(|kernel| own(&kernel.name)), "{name}: none of its own kernels was tested");
    }
}

#[test]
fn windows_caps_sinks_and_states_do_not_depend_on_the_batch() {
    use KernelClass::{Decode, Prefill};
    for name in ["gemma2", "gpt-oss", "glm4moe", "qwen35"] {
        let model = model(name);
        for tier in [Tier::Software, Tier::Full] {
            let gpu = gpu_as(Some(tier));
            let whole = hidden(&gpu, &model, &[(0, 45, Prefill), (45, 60, Decode)]);
            let mut parts = vec![(0, 20, Prefill), (20, 37, Prefill), (37, 45, Prefill)];
            parts.extend((45..60).map(|at| (at, at + 1, Decode)));
            assert!(hidden(&gpu, &model, &parts) == whole, "{name} {tier:?}: other parts give other bits");
        }
    }
}

#[test]
fn experts_elsewhere_with_biases_or_a_network_beside_give_the_bits_of_experts_here() {
    let gpu = gpu_as(Some(Tier::Full));
    for name in ["gpt-oss", "gemma4-moe"] {
        let model = model(name);
        let last = model.spec.blocks.len() as u16;
        let ids: Vec<u32> = (0..40).map(|at| (at * 7 + 3) % model.spec.vocabulary).collect();
        let [here, elsewhere] = [Spread::Stages(&[0, last]), Spread::ExpertsElsewhere].map(|spread| {
            let mut engines = Engines::new(&gpu, &model, spread);
            let mut of = |from, to, class| -> Vec<u32> {
                let all = engines.candidates(&ids, from, to, class);
                all.iter()
                    .flat_map(|row| row.ids.iter().copied().chain(row.logits.iter().map(|v| v.to_bits())))
                    .collect()
            };
            let prompt = of(0, 30, KernelClass::Prefill);
            [prompt, of(30, 31, KernelClass::Decode), of(31, 40, KernelClass::Decode)]
        });
        assert!(here == elsewhere, "{name}: experts elsewhere give other bits");
    }
}
