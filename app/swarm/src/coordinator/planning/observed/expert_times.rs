//! What tokens of a plan take beside their stages' engines where experts lie elsewhere.
//!
//! One clock sees a token as a whole: engines, messages between stages, and experts. What experts take is what engines and
//! messages leave. Where tokens pass several devices, messages are not known either: then the stages' own reports count, of
//! how long experts took from a router's choice to the last vector.

use std::collections::{BTreeMap, VecDeque};

use potluck_plan::{PeerId, Plan, Stage};
use potluck_protocol::WorkerStatus;

/// Tokens that are remembered: answers that vary take about as many until their mean means something.
const TOKENS: usize = 64;
/// Tokens of a plan before they count.
const ENOUGH: usize = 8;
/// A token that takes so many times the median was interrupted, and counts as this much.
const OUTLIER: f64 = 4.0;
/// Two halves whose means differ by more than so many standard errors differ: a GPU's clock has risen, or holders changed.
const DIFFERENT: f64 = 2.5;
/// Reports that are remembered of a stage, one a second.
const REPORTS: usize = 8;

/// Tokens of one plan.
#[derive(Default)]
pub(in crate::coordinator::planning) struct ExpertTimes {
    /// Milliseconds of the latest tokens.
    tokens: VecDeque<f64>,
    reports: BTreeMap<PeerId, VecDeque<Report>>,
}

/// What a stage has seen of experts since its plan began.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Report {
    /// Batches of decoded tokens for which others were asked, in all blocks.
    passes: f64,
    /// Milliseconds of all of them, from the router's choice to the last vector.
    millis: f64,
    /// Blocks for which a token asks others.
    trips: f64,
}

impl Report {
    fn of(status: &WorkerStatus) -> Self {
        let phases = || status.expert_phases.iter().map(|phase| (f64::from(phase.passes), phase.millis));
        Self {
            passes: phases().map(|(passes, _)| passes).sum(),
            millis: phases().map(|(passes, millis)| passes * millis).sum(),
            trips: status.expert_waits.trips,
        }
    }
}

impl ExpertTimes {
    /// A token passed all stages alone.
    pub fn passed(&mut self, millis: f64) {
        if self.tokens.len() == TOKENS {
            self.tokens.pop_front();
        }
        self.tokens.extend((millis.is_finite() && millis >= 0.0).then_some(millis));
    }

    /// A stage reports what it has seen.
    pub fn reported(&mut self, stage: PeerId, status: &WorkerStatus) {
        let (reports, new) = (self.reports.entry(stage).or_default(), Report::of(status));
        if reports.back().is_some_and(|last| new.passes < last.passes) {
            // Those before were of another plan.
            reports.clear();
        }
        if reports.back().is_none_or(|last| new.passes > last.passes) {
            reports.push_back(new);
        }
        if reports.len() > REPORTS {
            reports.pop_front();
        }
    }

    /// Milliseconds that a token spends on experts elsewhere in each stage, as their devices report; `None` if one of them has
    /// not. Stages of one device share what it reports.
    pub fn reported_millis(&self, plan: &Plan) -> Option<Vec<f64>> {
        let asks = |stage: &&Stage| !stage.remote.is_empty();
        let of = |stage: &Stage| {
            if !asks(&stage) {
                return Some(0.0);
            }
            let stages = plan.stages.iter().filter(asks).filter(|other| other.peer == stage.peer).count();
            Some(self.of_device(stage.peer)? / stages as f64)
        };
        plan.stages.iter().map(of).collect()
    }

    fn of_device(&self, stage: PeerId) -> Option<f64> {
        let reports = self.reports.get(&stage)?;
        let last = *reports.back()?;
        let before = if reports.len() > 1 { *reports.front()? } else { Report::default() };
        let passes = last.passes - before.passes;
        let of_block = (last.millis - before.millis) / passes;
        (passes > 0.0 && of_block >= 0.0).then_some(last.trips * of_block)
    }

    /// Milliseconds of a token, on average, once enough have passed. The newer half of the tokens alone if it differs.
    pub fn token_millis(&self) -> Option<f64> {
        if self.tokens.len() < ENOUGH {
            return None;
        }
        let mut sorted: Vec<f64> = self.tokens.iter().copied().collect();
        sorted.sort_by(f64::total_cmp);
        let most = OUTLIER * sorted[sorted.len() / 2];
        let tokens: Vec<f64> = self.tokens.iter().map(|millis| millis.min(most)).collect();
        let (older, newer) = tokens.split_at(tokens.len() / 2);
        let ((before, error_before), (now, error)) = (mean(older), mean(newer));
        let is_different = (now - before).abs() > DIFFERENT * error.hypot(error_before);
        Some(if is_different { now } else { mean(&tokens).0 })
    }
}

/// A mean and its standard error.
fn mean(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
    (mean, (variance / count).sqrt())
}

#[cfg(test)]
mod tests {
    use potluck_plan::random::Random;
    use potluck_protocol::{ExpertPhase, ExpertWaits};

    use super::*;

    fn after(tokens: impl IntoIterator<Item = f64>) -> Option<f64> {
        let mut times = ExpertTimes::default();
        tokens.into_iter().for_each(|millis| times.passed(millis));
        times.token_millis()
    }

    #[test]
    fn a_few_tokens_say_nothing_and_an_interruption_little() {
        assert_eq!(after(vec![10.0; ENOUGH - 1]), None);
        assert_eq!(after(vec![10.0; ENOUGH]), Some(10.0));
        assert_eq!(after([vec![f64::NAN, -1.0], vec![10.0; ENOUGH - 1]].concat()), None, "what no token can take");
        let interrupted = after([vec![10.0; 15], vec![5_000.0], vec![10.0; 16]].concat());
        assert_eq!(interrupted, Some(10.0 + 30.0 / 32.0), "not 166");
    }

    #[test]
    fn tokens_that_vary_are_averaged_and_a_change_is_followed() {
        let mut random = Random::new(3);
        let mut noisy = |millis: f64| millis * (0.6 + 0.8 * random.unit());
        let steady: Vec<f64> = (0..TOKENS).map(|_| noisy(100.0)).collect();
        let all = steady.iter().sum::<f64>() / TOKENS as f64;
        assert!((after(steady.clone()).unwrap_or_default() - all).abs() < 1e-9, "noise alone is no change");
        let faster = steady.into_iter().chain((0..TOKENS / 2).map(|_| noisy(60.0)));
        let now = after(faster).unwrap_or_default();
        assert!((now - 60.0).abs() < 6.0, "{now} of tokens that take 60 ms since the clock has risen");
    }

    fn status(trips: f64, phases: &[(u16, u32, f64)]) -> WorkerStatus {
        let phase = |&(asked, passes, millis)| ExpertPhase { asked, passes, millis };
        let expert_waits = ExpertWaits { trips, ..ExpertWaits::default() };
        WorkerStatus { expert_waits, expert_phases: phases.iter().map(phase).collect(), ..WorkerStatus::default() }
    }

    #[test]
    fn the_latest_reports_count_of_how_long_experts_took() {
        let (stage, mut times) = (PeerId([1; 16]), ExpertTimes::default());
        assert_eq!(times.of_device(stage), None);
        times.reported(stage, &status(2.0, &[(1, 10, 20.0)]));
        assert_eq!(times.of_device(stage), Some(40.0), "two blocks of 20 ms");
        // Ten more take 4 ms each: another kernel was chosen.
        times.reported(stage, &status(2.0, &[(1, 15, 44.0 / 3.0), (2, 5, 4.0)]));
        let found = times.of_device(stage).unwrap_or_default();
        assert!((found - 8.0).abs() < 1e-9, "{found}");
        times.reported(stage, &status(1.0, &[(1, 4, 3.0)]));
        assert_eq!(times.of_device(stage), Some(3.0), "another plan began");
        times.reported(stage, &status(1.0, &[(1, 4, 3.0)]));
        assert_eq!(times.of_device(stage), Some(3.0), "a report that says nothing new");
    }
}
