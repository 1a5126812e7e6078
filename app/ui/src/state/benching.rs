//! How far a benchmark is.

use potluck_panel::LoadReport;

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
