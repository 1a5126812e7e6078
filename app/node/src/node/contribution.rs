//! What this device contributes, and what was measured of it.

use potluck_plan::Bytes;

use crate::compute::Measured;

/// The contribution of this device. Each wish to contribute begins a generation; only the newest generation's measurement
/// counts, and none while the GPU is being reopened.
#[derive(Default)]
pub(super) struct ContributionState {
    /// GPU memory that the page wants to contribute.
    budget: Option<Bytes>,
    generation: u64,
    /// The device is being measured for the newest generation, or its GPU is being reopened for it.
    measuring: bool,
    /// The GPU is lost and being reopened.
    reopening: bool,
    /// What was measured when it contributed last.
    measured: Option<Measured>,
}

impl ContributionState {
    pub fn is_measuring(&self) -> bool {
        self.measuring
    }

    /// The page takes its contribution back.
    pub fn withdraw(&mut self) {
        (self.budget, self.measured) = (None, None);
    }

    /// Bytes that the page lends; 0 for none.
    pub fn budget(&self) -> u64 {
        self.budget.map_or(0, |budget| budget.0)
    }

    /// What this device contributes now, and what was measured of it.
    pub fn made(&self) -> Option<(Bytes, Measured)> {
        self.budget.zip(self.measured)
    }

    /// The page contributes. Returns the generation to measure for, unless the GPU is being reopened.
    pub fn offer(&mut self, budget: Bytes) -> Option<u64> {
        (self.budget, self.measured) = (Some(budget), None);
        if self.reopening {
            return None;
        }
        self.generation += 1;
        self.measuring = true;
        Some(self.generation)
    }

    /// A measurement ended. Returns the budget to contribute if it was for the newest generation and was not withdrawn.
    pub fn measured(&mut self, generation: u64) -> Option<Bytes> {
        if generation != self.generation {
            return None;
        }
        self.measuring = false;
        self.budget
    }

    /// The contribution is made with what was measured.
    pub fn made_with(&mut self, measured: Measured) {
        self.measured = Some(measured);
    }

    /// The GPU is lost. `None` if it is being reopened already; otherwise whether this device contributes.
    pub fn gpu_lost(&mut self) -> Option<bool> {
        if std::mem::replace(&mut self.reopening, true) {
            return None;
        }
        // A measurement under way no longer counts.
        self.generation += 1;
        self.measured = None;
        self.measuring = self.budget.is_some();
        Some(self.measuring)
    }

    /// Reopening the GPU ended; returns what this device contributes. If it failed the contribution is withdrawn.
    pub fn gpu_reopened(&mut self, failed: bool) -> Option<Bytes> {
        self.reopening = false;
        self.measuring = false;
        if failed { self.budget.take() } else { self.budget }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_newest_measurement_counts() {
        let mut state = ContributionState::default();
        let first = state.offer(Bytes(1)).unwrap_or_default();
        let second = state.offer(Bytes(2)).unwrap_or_default();
        assert_eq!(state.measured(first), None, "a newer one runs");
        assert!(state.is_measuring());
        assert_eq!(state.measured(second), Some(Bytes(2)));
        assert!(!state.is_measuring());
    }

    #[test]
    fn a_withdrawn_contribution_is_not_made() {
        let mut state = ContributionState::default();
        let generation = state.offer(Bytes(1)).unwrap_or_default();
        state.withdraw();
        assert_eq!(state.measured(generation), None);
    }

    #[test]
    fn a_lost_gpu_delays_the_contribution_until_it_is_back() {
        let mut state = ContributionState::default();
        let generation = state.offer(Bytes(1)).unwrap_or_default();
        assert_eq!(state.gpu_lost(), Some(true));
        assert_eq!(state.gpu_lost(), None, "it is being reopened already");
        assert_eq!(state.measured(generation), None, "this measurement was of the lost GPU");
        assert_eq!(state.offer(Bytes(2)), None);
        assert_eq!(state.gpu_reopened(false), Some(Bytes(2)));
        assert_eq!(state.gpu_lost(), Some(true));
        assert_eq!(state.gpu_reopened(true), Some(Bytes(2)), "what it contributed");
        assert_eq!(state.gpu_lost(), Some(false), "nothing any more");
    }
}
