//! The settings of a benchmark.

use leptos::prelude::*;
use potluck_panel::{Arithmetic, BenchChoice, BenchWorkload, Bytes, KvCacheType, ModelLink, ModelSource};

/// The model's source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The relay's model with this name.
    Relay(String),
    /// An address.
    Link,
    /// A file on this device.
    File,
}

/// A named workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// The displayed name.
    pub name: &'static str,
    /// Its tokens.
    pub workload: BenchWorkload,
}

/// Workloads of published measurements: the first three from dynamic partitioning (section 7.1.3), the last from
/// LlamaWeb (section 4).
pub const PRESETS: [Preset; 4] = [
    Preset { name: "Chat", workload: BenchWorkload { prompt: 25, answer: 128 } },
    Preset { name: "Creative", workload: BenchWorkload { prompt: 25, answer: 1024 } },
    Preset { name: "Summarize", workload: BenchWorkload { prompt: 1024, answer: 128 } },
    Preset { name: "Long prompt", workload: BenchWorkload { prompt: 512, answer: 128 } },
];

/// Context positions before the prompt.
pub const DEPTHS: [u32; 2] = [0, 2048];

/// The settings. Copies are handles to the same settings.
#[derive(Clone, Copy)]
pub struct BenchForm {
    /// The model's source; `None` until the relay answered.
    pub from: RwSignal<Option<Origin>>,
    /// The address.
    pub link: RwSignal<String>,
    /// The file.
    pub file: RwSignal<Option<web_sys::File>, LocalStorage>,
    /// The chosen [`PRESETS`].
    pub presets: RwSignal<[bool; PRESETS.len()]>,
    /// Use a custom workload.
    pub own: RwSignal<bool>,
    /// Its tokens.
    pub own_prompt: RwSignal<u32>,
    /// Its tokens.
    pub own_answer: RwSignal<u32>,
    /// The chosen [`DEPTHS`].
    pub depths: RwSignal<[bool; DEPTHS.len()]>,
    /// Measured runs.
    pub runs: RwSignal<u32>,
    /// Type of the KV cache.
    pub cache: RwSignal<KvCacheType>,
    /// How prompts are computed.
    pub arithmetic: RwSignal<Arithmetic>,
    /// Also measure the time of each kernel class.
    pub kernels: RwSignal<bool>,
}

impl BenchForm {
    /// Chat and summarization without context: what most users want to know.
    #[must_use]
    pub fn new() -> Self {
        Self {
            from: RwSignal::new(None),
            link: RwSignal::new(String::new()),
            file: RwSignal::new_local(None),
            presets: RwSignal::new([true, false, true, false]),
            own: RwSignal::new(false),
            own_prompt: RwSignal::new(128),
            own_answer: RwSignal::new(32),
            depths: RwSignal::new([true, false]),
            runs: RwSignal::new(5),
            cache: RwSignal::new(KvCacheType::F32),
            arithmetic: RwSignal::new(Arithmetic::Exact),
            kernels: RwSignal::new(true),
        }
    }

    /// The chosen benchmark and its file; requires a model and something to measure.
    #[must_use]
    pub fn choice(self) -> Option<(BenchChoice, Option<web_sys::File>)> {
        let file = self.file.get().filter(|_| self.from.get() == Some(Origin::File));
        let model = match self.from.get()? {
            Origin::Relay(name) => ModelSource::Relay { name },
            Origin::Link => {
                let link = self.link.get();
                let url = match link.parse::<ModelLink>() {
                    Ok(ModelLink::File(address)) => address,
                    // Who gives an address of another form knows what is there.
                    Err(_) if link.contains("://") => link.trim().to_owned(),
                    Ok(ModelLink::Repository(_)) | Err(_) => return None,
                };
                ModelSource::Link { url }
            }
            Origin::File => {
                let file = file.as_ref()?;
                ModelSource::File { name: file.name(), bytes: Bytes(file.size() as u64) }
            }
        };
        let presets = PRESETS.iter().zip(self.presets.get());
        let mut workloads: Vec<BenchWorkload> =
            presets.filter(|(_, chosen)| *chosen).map(|(preset, _)| preset.workload).collect();
        if self.own.get() {
            workloads.push(BenchWorkload { prompt: self.own_prompt.get(), answer: self.own_answer.get() });
        }
        let depths: Vec<u32> =
            DEPTHS.iter().zip(self.depths.get()).filter(|(_, chosen)| *chosen).map(|(depth, _)| *depth).collect();
        if workloads.is_empty() || depths.is_empty() {
            return None;
        }
        let choice = BenchChoice {
            model,
            workloads,
            depths,
            repeats: self.runs.get(),
            cache: self.cache.get(),
            arithmetic: self.arithmetic.get(),
            kernels: self.kernels.get(),
            sampled: false,
            tuned: true,
        };
        Some((choice, file))
    }
}
