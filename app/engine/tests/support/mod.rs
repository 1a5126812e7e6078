//! Builds small models with random weights, and an engine on whatever adapter this machine has.
#![allow(dead_code, clippy::unwrap_used, reason = "each test uses a part of this, and may panic")]

pub mod built_in;

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use potluck_engine::{Engine, Gpu, GpuOptions, Piece, Settings, Tier};
use potluck_gguf::TensorType;
use potluck_model::{
    Architecture, AttentionSpec, BlockSpec, DenseSpec, ExpertsSpec, FeedForwardSpec, FileRange, ModelSpec, QkNorm,
    RopeFactors, RopePairs, RopeSpec, Scales, TensorRole, TokenMixerSpec, UnitMap, UnitTensor,
};
use potluck_plan::{
    BatchToken, BlockIndex, BlockRange, Candidates, Computed, ConversationId, ExpertId, Input, KernelClass,
    LmHeadRequest, LmHeadTokens, LogitsRequest, Outcome, Position, Task, Then, Ticket, WeightUnit, Work,
};

/// This machine's GPU, with the kernels of a tier. A machine without a GPU cannot run these tests.
pub fn gpu_as(tier: Option<Tier>) -> Gpu {
    gpu_with(GpuOptions { tier, ..GpuOptions::default() })
}

/// The same with any options.
pub fn gpu_with(options: GpuOptions) -> Gpu {
    let gpu = futures::executor::block_on(Gpu::open(options)).expect("these tests need a Vulkan adapter");
    println!("on {} as {:?}", gpu.capabilities().name, gpu.capabilities().tier);
    gpu
}

/// A small random number generator (SplitMix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        potluck_plan::random::step(&mut self.0)
    }

    /// In -1..1.
    pub fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }

    pub fn below(&mut self, n: u32) -> u32 {
        (self.next() % u64::from(n)) as u32
    }
}

fn half(value: f32) -> [u8; 2] {
    half::f16::from_f32(value).to_le_bytes()
}

/// Random bytes for a row of a tensor type, with values of about `scale`.
pub fn random_row(random: &mut Random, kind: TensorType, cols: u32, scale: f32, out: &mut Vec<u8>) {
    let blocks = |values| cols / values;
    let bytes = |random: &mut Random, n: usize, out: &mut Vec<u8>| {
        out.extend((0..n).map(|_| random.next() as u8));
    };
    match kind {
        TensorType::F32 => (0..cols).for_each(|_| out.extend((random.unit() * scale).to_le_bytes())),
        TensorType::F16 => (0..cols).for_each(|_| out.extend(half(random.unit() * scale))),
        TensorType::Q8_0 => (0..blocks(32)).for_each(|_| {
            out.extend(half(scale / 128.0 * (1.0 + random.unit() / 2.0)));
            bytes(random, 32, out);
        }),
        TensorType::Q4_0 => (0..blocks(32)).for_each(|_| {
            out.extend(half(scale / 8.0 * (1.0 + random.unit() / 2.0)));
            bytes(random, 16, out);
        }),
        TensorType::Q4_K => (0..blocks(256)).for_each(|_| {
            out.extend(half(scale / 240.0));
            out.extend(half(scale / 32.0));
            bytes(random, 140, out);
        }),
        TensorType::Q6_K => (0..blocks(256)).for_each(|_| {
            bytes(random, 208, out);
            out.extend(half(scale / 2048.0));
        }),
        other => {
            let from = out.len();
            out.resize(from + other.row_bytes(u64::from(cols)).unwrap() as usize, 0);
            let mut source = potluck_gguf::synthetic::Random::new(random.next(), "row");
            potluck_gguf::synthetic::fill(other, scale / 2.0, &mut source, &mut out[from..]).unwrap();
        }
    }
}

/// A model and its bytes.
pub struct Model {
    pub spec: ModelSpec,
    pub units: UnitMap,
    pub file: Vec<u8>,
}

/// The model to build.
#[derive(Clone)]
pub struct Recipe {
    pub architecture: Architecture,
    pub experts: bool,
    pub kind: TensorType,
    pub table: TensorType,
    pub tied: bool,
    pub factors: bool,
    pub hidden: u32,
    pub intermediate: u32,
    pub vocabulary: u32,
    pub blocks: usize,
    pub normalize: bool,
    /// Weight type of the last feed-forward matrix in odd blocks; otherwise as the others.
    pub odd_down: Option<TensorType>,
    pub seed: u64,
}

impl Recipe {
    pub fn new(architecture: Architecture, kind: TensorType) -> Self {
        Self {
            architecture,
            experts: architecture == Architecture::Qwen3Moe,
            kind,
            table: kind,
            tied: false,
            factors: false,
            hidden: 256,
            intermediate: 512,
            vocabulary: 333,
            blocks: 3,
            normalize: true,
            odd_down: None,
            seed: 1,
        }
    }

    pub fn build(&self) -> Model {
        let a = self.architecture;
        let pairs = if a == Architecture::Llama { RopePairs::Adjacent } else { RopePairs::Halves };
        let factors = if self.factors { RopeFactors::Fixed } else { RopeFactors::None };
        let rope = RopeSpec { factors, ..RopeSpec::new(32, 10000.0, pairs) };
        let norms_heads = matches!(a, Architecture::Qwen3 | Architecture::Qwen3Moe);
        let attention = AttentionSpec {
            qk_norm: if norms_heads { QkNorm::Head } else { QkNorm::None },
            qkv_bias: a == Architecture::Qwen2,
            ..AttentionSpec::new(8, 2, 32, rope)
        };
        let feed_forward = if self.experts {
            FeedForwardSpec::Experts(ExpertsSpec::new(8, 3, 256, self.normalize))
        } else {
            FeedForwardSpec::Dense(DenseSpec::new(self.intermediate))
        };
        let block = BlockSpec { token_mixer: TokenMixerSpec::Attention(attention), feed_forward };
        let spec = ModelSpec {
            architecture: a,
            name: "random".into(),
            hidden: self.hidden,
            vocabulary: self.vocabulary,
            context: 4096,
            norm_epsilon: 1e-5,
            tied_lm_head: self.tied,
            block_inputs: None,
            scales: Scales::default(),
            blocks: vec![block; self.blocks],
        };
        let mut writer = Writer { random: Random(self.seed), file: vec![0xaa; 32], units: UnitMap::default() };
        writer.model(self, &spec);
        Model { spec, units: writer.units, file: writer.file }
    }
}

struct Writer {
    random: Random,
    file: Vec<u8>,
    units: UnitMap,
}

impl Writer {
    fn tensor(&mut self, role: TensorRole, kind: TensorType, rows: u32, cols: u32) -> UnitTensor {
        use TensorRole::*;
        let offset = self.file.len() as u64;
        let gain = matches!(role, OutputNorm | AttentionNorm | QueryNorm | KeyNorm | FeedForwardNorm);
        if gain || role == RopeFactors {
            for i in 0..cols {
                let value = if gain { 1.0 + self.random.unit() * 0.3 } else { [1.0, 1.0, 2.5, 8.0][i as usize % 4] };
                self.file.extend(value.to_le_bytes());
            }
        } else {
            let scale = if role == TokenEmbedding { 1.0 } else { 3.0 / (cols as f32).sqrt() };
            for _ in 0..rows {
                random_row(&mut self.random, kind, cols, scale, &mut self.file);
            }
        }
        UnitTensor {
            role,
            kind,
            cols,
            rows,
            range: FileRange { file: 0, offset, len: self.file.len() as u64 - offset },
        }
    }

    /// Writes every unit as the model's description lists its tensors.
    fn model(&mut self, recipe: &Recipe, spec: &ModelSpec) {
        let table = self.unit(recipe, spec, WeightUnit::Embedding)[0].clone();
        let mut head = self.unit(recipe, spec, WeightUnit::LmHead);
        if spec.tied_lm_head {
            head[1] = table;
            self.units.insert(WeightUnit::LmHead, head);
        }
        for (index, block) in (0..).map(BlockIndex).zip(&spec.blocks) {
            self.unit(recipe, spec, WeightUnit::TokenMixer(index));
            match &block.feed_forward {
                FeedForwardSpec::Dense(_) => {
                    self.unit(recipe, spec, WeightUnit::Dense(index));
                }
                FeedForwardSpec::Experts(experts) => {
                    self.unit(recipe, spec, WeightUnit::Router(index));
                    for expert in 0..experts.count as u16 {
                        self.unit(recipe, spec, WeightUnit::Expert(index, ExpertId(expert)));
                    }
                }
            }
        }
    }

    fn unit(&mut self, recipe: &Recipe, spec: &ModelSpec, unit: WeightUnit) -> Vec<UnitTensor> {
        let odd = unit.block().is_some_and(|block| block.0 % 2 == 1);
        let kind = |role: TensorRole| match role {
            TensorRole::TokenEmbedding => recipe.table,
            TensorRole::Down if odd => recipe.odd_down.unwrap_or(recipe.kind),
            TensorRole::Router => TensorType::F32,
            role if role.is_vector() => TensorType::F32,
            _ => recipe.kind,
        };
        // A tied head's table is written with the embedding.
        let tied = |part: &potluck_model::Part| unit == WeightUnit::LmHead && part.role == TensorRole::TokenEmbedding;
        let parts = spec.parts(unit).unwrap();
        let tensors: Vec<UnitTensor> = parts
            .iter()
            .map(|part| {
                let rows = if tied(part) { 0 } else { part.rows };
                self.tensor(part.role, kind(part.role), rows, part.cols)
            })
            .collect();
        self.units.insert(unit, tensors.clone());
        tensors
    }
}

impl Model {
    pub fn bytes(&self, unit: WeightUnit, tensor: usize) -> Vec<u8> {
        let range = self.units.tensors(unit)[tensor].range;
        self.file[range.offset as usize..][..range.len as usize].to_vec()
    }

    pub fn unit_bytes(&self, unit: WeightUnit) -> u64 {
        self.units.bytes(unit).0
    }

    pub fn all_units(&self) -> BTreeSet<WeightUnit> {
        self.units.units().collect()
    }
}

/// An engine and its results.
pub struct Bench {
    pub engine: Engine,
    pub results: Rc<RefCell<HashMap<Ticket, Outcome>>>,
    next: u64,
}

/// Reads the bytes of a tensor, given its unit and its index in the unit.
pub type Bytes<'a> = dyn Fn(WeightUnit, usize) -> Vec<u8> + 'a;

impl Bench {
    pub fn new(gpu: &Gpu, model: &Model, units: &BTreeSet<WeightUnit>, settings: Settings) -> Bench {
        let bench = Self::empty(gpu, &model.spec, &model.units, settings);
        bench.engine.reserve(units).unwrap();
        load(&bench.engine, &model.units, &|unit, tensor| model.bytes(unit, tensor));
        bench
    }

    pub fn empty(gpu: &Gpu, spec: &ModelSpec, units: &UnitMap, settings: Settings) -> Bench {
        let results = Rc::new(RefCell::new(HashMap::new()));
        let inbox = results.clone();
        let on_result = Box::new(move |computed: Computed| {
            assert!(inbox.borrow_mut().insert(computed.ticket, computed.outcome).is_none(), "answered twice");
        });
        let engine = Engine::new(gpu, spec.clone(), units.clone(), settings, on_result).unwrap();
        Bench { engine, results, next: 0 }
    }

    pub fn start(&mut self, task: Task) -> Ticket {
        self.next += 1;
        let ticket = Ticket(self.next);
        self.engine.submit(Work { ticket, task }).unwrap();
        ticket
    }

    pub fn answer(&mut self, ticket: Ticket) -> Outcome {
        self.engine.wait();
        self.results.borrow_mut().remove(&ticket).expect("every ticket is answered")
    }

    pub fn run(&mut self, task: Task) -> Outcome {
        let ticket = self.start(task);
        self.answer(ticket)
    }

    pub fn hidden(&mut self, task: Task) -> Vec<f32> {
        match self.run(task) {
            Outcome::Hidden(values) | Outcome::Logits(values) | Outcome::ExpertOutputs(values) => values,
            other => panic!("{other:?}"),
        }
    }

    pub fn candidates(&mut self, task: Task) -> Vec<Candidates> {
        match self.run(task) {
            Outcome::Candidates(candidates) => candidates,
            other => panic!("{other:?}"),
        }
    }
}

/// Uploads everything the engine is missing, in small pieces so that tensors are split.
pub fn load(engine: &Engine, units: &UnitMap, bytes: &Bytes<'_>) {
    for unit in engine.missing() {
        load_unit(engine, units, bytes, unit);
    }
    assert!(engine.missing().is_empty());
}

/// Uploads a unit and finishes it.
pub fn load_unit(engine: &Engine, units: &UnitMap, bytes: &Bytes<'_>, unit: WeightUnit) {
    for (index, _) in units.tensors(unit).iter().enumerate() {
        if !engine.needs(unit, index) {
            continue;
        }
        let data = bytes(unit, index);
        for (at, part) in data.chunks(50_000).enumerate() {
            let mut staging = futures::executor::block_on(engine.staging()).unwrap();
            staging.write(12, part);
            let piece = Piece {
                unit,
                tensor: index,
                tensor_offset: at as u64 * 50_000,
                staging_offset: 12,
                len: part.len() as u64,
            };
            engine.upload(staging, &[piece]).unwrap();
        }
    }
    engine.finish(unit).unwrap();
}

pub const TALK: ConversationId = ConversationId(7);

pub fn rows(positions: std::ops::Range<u32>) -> Vec<BatchToken> {
    positions.map(|p| BatchToken { conversation: TALK, position: Position(p) }).collect()
}

pub fn forward(rows: Vec<BatchToken>, class: KernelClass, input: Input, blocks: (u16, u16), then: Then) -> Task {
    Task::Forward { batch: rows, class, input, blocks: BlockRange::new(blocks.0, blocks.1), then, biases: Vec::new() }
}

pub fn logits(rows: LmHeadTokens) -> Then {
    Then::LmHead(LmHeadRequest { tokens: rows, logits: LogitsRequest::Logits })
}

pub fn top(rows: LmHeadTokens, n: u16) -> Then {
    Then::LmHead(LmHeadRequest { tokens: rows, logits: LogitsRequest::Top(n) })
}

/// Largest difference, relative to the reference's root mean square.
pub fn distance(got: &[f32], reference: &[f32]) -> f32 {
    assert_eq!(got.len(), reference.len());
    let rms = (reference.iter().map(|v| v * v).sum::<f32>() / reference.len() as f32).sqrt();
    got.iter().zip(reference).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max) / rms
}
