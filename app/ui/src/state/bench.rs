//! The benchmark of this device: how far it is, and what it gave. There is no report while one runs.

use leptos::prelude::*;
use potluck_panel::{BenchReport, LoadPhase, LoadReport};

/// How far it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Benching {
    /// None runs.
    #[default]
    Idle,
    /// The model is brought to the GPU.
    Loading(LoadReport),
    /// It measures.
    Running {
        /// What.
        what: String,
        /// Steps done.
        done: u32,
        /// Steps in all.
        total: u32,
    },
    /// Somebody stopped it.
    Stopped,
    /// It could not go on: one sentence.
    Failed(String),
}

impl Benching {
    /// One is under way.
    pub const fn is_busy(&self) -> bool {
        matches!(self, Self::Loading(_) | Self::Running { .. })
    }
}

/// The benchmark. Copies are handles to the same one.
#[derive(Clone, Copy)]
pub struct BenchState {
    /// How far it is.
    pub progress: RwSignal<Benching>,
    /// What the last one gave.
    pub report: RwSignal<Option<BenchReport>>,
}

impl BenchState {
    /// None has run.
    pub fn new() -> Self {
        Self { progress: RwSignal::new(Benching::Idle), report: RwSignal::new(None) }
    }

    /// One begins.
    pub fn begin(self) {
        self.report.set(None);
        self.progress.set(Benching::Loading(LoadReport::begin(LoadPhase::Find)));
    }

    /// It is done.
    pub fn finish(self, report: BenchReport) {
        self.report.set(Some(report));
        self.progress.set(Benching::Idle);
    }
}
