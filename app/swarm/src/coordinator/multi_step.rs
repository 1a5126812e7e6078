//! Multi-step decode: a device that holds the whole model computes several tokens before it answers, so that only every
//! few tokens wait for a readback. The next frame truncates what the answer does not need. Where tokens are sampled, the
//! GPU samples them ahead; the coordinator samples each again, and its token counts.

use potluck_plan::{PeerId, Plan, Work};

/// A burst takes at most this long: text arrives, and other questions wait, in steps of it.
const BURST_MILLIS: f64 = 50.0;
/// Weight of one new observation in the moving average.
const NEWEST: f64 = 0.25;

/// Tracks how long a token takes on the active plan, and whether its GPU samples as the coordinator does.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MultiStep {
    token_millis: Option<f64>,
    samples_otherwise: bool,
}

impl MultiStep {
    /// `tokens` tokens took `millis` together.
    pub fn measure(&mut self, tokens: usize, millis: f64) {
        let token = millis / tokens.max(1) as f64;
        let known = self.token_millis.unwrap_or(token);
        self.token_millis = Some(known + NEWEST * (token - known));
    }

    /// The GPU went on with another token than the coordinator sampled from the same candidates. From now on sampled
    /// tokens come one by one. True the first time.
    pub fn differs(&mut self) -> bool {
        !std::mem::replace(&mut self.samples_otherwise, true)
    }

    /// Sampled tokens may be computed ahead.
    pub fn samples_ahead(self) -> bool {
        !self.samples_otherwise
    }

    /// Tokens to compute after the next one, at most `max`.
    pub fn further_steps(self, max: usize) -> u16 {
        let fitting = self.token_millis.map_or(0, |millis| (BURST_MILLIS / millis.max(0.1)) as usize);
        fitting.saturating_sub(1).min(max).min(usize::from(Work::MAX_STEPS) - 1) as u16
    }
}

/// The coordinator's own device holds everything, all experts too.
pub(super) fn is_possible(plan: &Plan, me: PeerId) -> bool {
    matches!(&plan.stages[..], [stage] if stage.peer == me && stage.remote.is_empty() && stage.pool.is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fast_devices_take_many_steps_and_slow_ones_none() {
        let measured = |millis: f64| {
            let mut multi_step = MultiStep::default();
            multi_step.measure(1, millis);
            multi_step
        };
        assert_eq!(MultiStep::default().further_steps(7), 0, "nothing is known yet");
        assert_eq!(measured(2.0).further_steps(7), 7);
        assert_eq!(measured(2.0).further_steps(3), 3, "no more than there is room for");
        assert_eq!(measured(12.0).further_steps(7), 3, "four tokens in 50 ms");
        assert_eq!(measured(30.0).further_steps(7), 0);
        let mut slowed = measured(2.0);
        (0..20).for_each(|_| slowed.measure(8, 800.0));
        assert_eq!(slowed.further_steps(7), 0);
    }
}
