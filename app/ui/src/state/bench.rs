//! This device's benchmark: progress and result. While one runs, there is no report.

use leptos::prelude::*;
use potluck_panel::{BenchReport, LoadPhase, LoadReport};

/// Progress of the benchmark.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum BenchProgress {
    /// None runs.
    #[default]
    Idle,
    /// Loading the model to the GPU.
    Loading(LoadReport),
    /// It measures.
    Running {
        /// What.
        what: String,
        /// Steps done.
        done: u32,
        /// Total number of steps.
        total: u32,
    },
    /// The user stopped it.
    Stopped,
    /// It failed, for the reason in this sentence.
    Failed(String),
}

impl BenchProgress {
    /// True while a benchmark runs.
    pub const fn is_busy(&self) -> bool {
        matches!(self, Self::Loading(_) | Self::Running { .. })
    }
}

/// The benchmark. Copies are handles to the same one.
#[derive(Clone, Copy)]
pub struct BenchState {
    /// Progress.
    pub progress: RwSignal<BenchProgress>,
    /// The last report.
    pub report: RwSignal<Option<BenchReport>>,
}

impl BenchState {
    /// No benchmark has run yet.
    pub fn new() -> Self {
        Self { progress: RwSignal::new(BenchProgress::Idle), report: RwSignal::new(None) }
    }

    /// One begins.
    pub fn begin(self) {
        self.report.set(None);
        self.progress.set(BenchProgress::Loading(LoadReport::begin(LoadPhase::Find)));
    }

    /// It is done.
    pub fn finish(self, report: BenchReport) {
        self.report.set(Some(report));
        self.progress.set(BenchProgress::Idle);
    }
}
