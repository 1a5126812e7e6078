//! The bench: what to measure, how far it is, what came out. The report is also `window.benchResult`.

use potluck_plan::{Arithmetic, KvCacheType};
use potluck_protocol::{LoadReport, ModelSource};
use serde::{Deserialize, Serialize};

/// What to measure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchChoice {
    /// Which model.
    pub model: ModelSource,
    /// Prompts and answers.
    pub workloads: Vec<BenchWorkload>,
    /// Positions of context before the prompt; each workload is measured at each.
    pub depths: Vec<u32>,
    /// Runs that count; one more before them does not.
    pub repeats: u32,
    /// How keys and values are stored.
    pub cache: KvCacheType,
    /// How products are computed.
    #[serde(default)]
    pub arithmetic: Arithmetic,
    /// Also the time of each class of kernels.
    pub kernels: bool,
    /// Also sampled answers.
    #[serde(default)]
    pub sampled: bool,
    /// By the kernels that were measured to be quickest here, else by those that are good everywhere.
    pub tuned: bool,
}

/// Tokens read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BenchWorkload {
    /// Tokens of the prompt.
    pub prompt: u32,
    /// Tokens of the answer.
    pub answer: u32,
}

/// A step of a benchmark.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum BenchEvent {
    /// The model is brought to the GPU.
    Loading(LoadReport),
    /// One sentence on what runs, and which step of how many it is.
    Running {
        /// "25 / 128 tokens after 2,048, run 2 of 5"
        what: String,
        /// Steps done.
        done: u32,
        /// Steps in all.
        total: u32,
    },
    /// It is done.
    Done(Box<BenchReport>),
    /// Somebody pressed Stop.
    Stopped,
    /// It could not go on: one sentence with what to do.
    Failed(String),
}

/// What came out. Rates are tokens a second, times are milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BenchReport {
    /// The build that measured.
    pub build: String,
    /// How: one sentence each.
    pub method: Vec<String>,
    /// The model.
    pub model: BenchModel,
    /// The device.
    pub device: BenchDevice,
    /// Bringing the model to the GPU.
    pub load: BenchLoad,
    /// Each workload at each depth.
    pub workloads: Vec<BenchResult>,
    /// What could not be measured, and why.
    pub skipped: Vec<String>,
    /// Time by class of kernels.
    pub kernels: Vec<BenchKernels>,
}

/// The model that was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BenchModel {
    /// Its name.
    pub name: String,
    /// `general.architecture`.
    pub architecture: String,
    /// "Q4_K_M".
    pub quantization: String,
    /// Size of the file(s).
    pub bytes: u64,
    /// All parameters.
    pub parameters: u64,
    /// Parameters a token uses.
    pub active_parameters: u64,
    /// Blocks.
    pub blocks: u32,
    /// Experts a block, 0 if dense.
    pub experts: u32,
}

/// The device that was measured, with what its kernels were tuned to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BenchDevice {
    /// Vendor and name as the adapter tells.
    pub adapter: String,
    /// Its driver, as far as it is told.
    pub driver: String,
    /// `Vulkan` or `BrowserWebGpu`.
    pub backend: String,
    /// The program around: the page fills in its user agent.
    pub browser: String,
    /// A software adapter.
    pub software: bool,
    /// Features, by name.
    pub features: Vec<String>,
    /// Limits that matter, by WebGPU's names.
    pub limits: Vec<(String, u64)>,
    /// Parameters of the engine and its kernels, by name.
    pub tuned: Vec<(String, String)>,
    /// Bytes a second that a kernel reads when it does nothing else.
    pub streaming: f64,
}

/// Bringing the model to the GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BenchLoad {
    /// From the choice to weights on the GPU, kernels tested and tuned.
    pub millis: f64,
    /// Weight bytes on the GPU.
    pub weights: u64,
    /// All bytes the engine allocates there.
    pub allocated: u64,
    /// How fast the weights come when they are all on this device; none if the storage took them not.
    pub rates: Option<BenchRates>,
}

/// A load whose bytes are all on this device, beside its two halves alone; bytes a second, measured in one go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BenchRates {
    /// Bytes that were loaded.
    pub bytes: u64,
    /// The whole load, until the GPU has the last byte.
    pub load: f64,
    /// Reading the same pieces, and nothing else.
    pub read: f64,
    /// Uploading as many bytes in the same pieces, and nothing else.
    pub upload: f64,
    /// `load` over the slower of the other two.
    pub share: f64,
}

/// One workload at one depth.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BenchResult {
    /// Positions before the prompt.
    pub depth: u32,
    /// Tokens of the prompt.
    pub prompt: u32,
    /// Tokens of the answer.
    pub answer: u32,
    /// Runs that count, in order.
    pub runs: Vec<BenchRun>,
    /// Median tokens of the prompt a second, until the answer's first token.
    pub prefill: f64,
    /// Median tokens of the answer a second, from the first to the last.
    pub decode: f64,
    /// The same of sampled answers, if they were measured.
    #[serde(default)]
    pub sampled: Option<f64>,
    /// Median milliseconds until the answer's first token.
    pub first_token: f64,
    /// Bytes a decoded token cannot avoid to read, at the middle of the answer.
    pub token_bytes: u64,
    /// `decode * token_bytes` as a share of the streaming rate.
    pub streaming_share: f64,
}

/// One run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BenchRun {
    /// Milliseconds until the answer's first token.
    pub first_token: f64,
    /// Milliseconds from the first token to the last.
    pub decode: f64,
    /// Tokens that came.
    pub tokens: u32,
}

/// Time by class of kernels, of one piece of work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BenchKernels {
    /// "decode" or "prefill".
    pub phase: String,
    /// Positions before it.
    pub depth: u32,
    /// Rows that pass at once.
    pub rows: u32,
    /// "timestamps" or "wall time".
    pub clock: String,
    /// Milliseconds of all classes.
    pub millis: f64,
    /// Each class, the longest first.
    pub classes: Vec<BenchKernel>,
}

/// One class of kernels.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BenchKernel {
    /// "matvec", "attention".
    pub class: String,
    /// Variants in use.
    pub variants: Vec<String>,
    /// Dispatches.
    pub dispatches: u32,
    /// Milliseconds.
    pub millis: f64,
    /// Bytes of weights and state they get through.
    pub bytes: u64,
    /// Their bytes a second as a share of the streaming rate.
    pub streaming_share: f64,
}
