//! Session overhead and speed from runs of two layer ranges, one twice as long as the other (dynamic-partitioning.txt
//! 4.3.2).

use thiserror::Error;

/// Runs of each range, if there is time.
pub const RUNS: usize = 7;
/// Warm-up runs that do not count: pipelines are compiled, caches fill.
pub const WARM_UP: usize = 4;
/// A slow device may stop after this many runs; half of them then count as warm-up.
pub const MIN_RUNS: usize = 3;

/// Runs of two ranges; the short one is the first half of the long one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Calibration {
    short: Vec<f64>,
    long: Vec<f64>,
}

/// Session overhead and speed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calibrated {
    /// Milliseconds per piece of work besides its layers.
    pub session_millis: f64,
    /// Cost per millisecond.
    pub speed: f64,
}

/// Why the runs determine nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CalibrationError {
    /// Fewer than [`MIN_RUNS`] runs of one of the ranges.
    #[error("{short} runs of the short range and {long} of the long one, {MIN_RUNS} of each are needed")]
    TooFewRuns {
        /// Of the short range.
        short: usize,
        /// Of the long range.
        long: usize,
    },
    /// The long range took no longer than the short one: the clock is too coarse, or something else ran.
    #[error("the longer range took no longer than the shorter one")]
    NoDifference,
}

impl Calibration {
    /// Runs of both ranges in order, milliseconds each.
    pub fn of(short: &[f64], long: &[f64]) -> Self {
        Self { short: short.to_vec(), long: long.to_vec() }
    }

    /// Records a run of the short range.
    pub fn short(&mut self, millis: f64) {
        self.short.push(millis);
    }

    /// Records a run of the long range.
    pub fn long(&mut self, millis: f64) {
        self.long.push(millis);
    }

    /// Solves for session overhead and speed, given the costs of both ranges.
    ///
    /// # Errors
    /// Too few runs, or times that no positive speed explains.
    pub fn solve(&self, short_cost: f64, long_cost: f64) -> Result<Calibrated, CalibrationError> {
        let (short, long) = (self.short.len(), self.long.len());
        if short < MIN_RUNS || long < MIN_RUNS {
            return Err(CalibrationError::TooFewRuns { short, long });
        }
        let (short, long) = (typical(&self.short), typical(&self.long));
        let speed = (long_cost - short_cost) / (long - short);
        if !(speed.is_finite() && speed > 0.0) {
            return Err(CalibrationError::NoDifference);
        }
        Ok(Calibrated { session_millis: (short - short_cost / speed).max(0.0), speed })
    }
}

/// The median of the runs after the warm-up. A disturbed run does not move it, as it would move the paper's mean. NaN
/// without runs.
pub fn typical(runs: &[f64]) -> f64 {
    let mut kept = runs[WARM_UP.min(runs.len() / 2)..].to_vec();
    kept.sort_by(f64::total_cmp);
    let middle = kept.len() / 2;
    match kept.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => kept[middle],
        _ => (kept[middle - 1] + kept[middle]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(short: f64, long: f64) -> Calibration {
        let mut calibration = Calibration::default();
        for run in 0..RUNS {
            let cold = if run < WARM_UP { 50.0 } else { 0.0 };
            calibration.short(short + cold);
            calibration.long(long + cold);
        }
        calibration
    }

    #[test]
    fn two_ranges_give_overhead_and_speed_whatever_the_first_runs_took() {
        // 3 ms overhead and 100 a millisecond: 400 take 7 ms, 800 take 11 ms.
        let solved = runs(7.0, 11.0).solve(400.0, 800.0).expect("a clean measurement");
        assert_eq!(solved, Calibrated { session_millis: 3.0, speed: 100.0 });
    }

    #[test]
    fn a_measurement_without_sense_is_refused() {
        assert_eq!(runs(7.0, 7.0).solve(400.0, 800.0), Err(CalibrationError::NoDifference));
        assert_eq!(runs(7.0, f64::NAN).solve(400.0, 800.0), Err(CalibrationError::NoDifference));
        let too_few = Calibration::default().solve(400.0, 800.0);
        assert_eq!(too_few, Err(CalibrationError::TooFewRuns { short: 0, long: 0 }));
    }

    #[test]
    fn an_overhead_below_nothing_is_none() {
        // The short range took less than its share: noise.
        assert_eq!(runs(3.0, 8.0).solve(400.0, 800.0).map(|solved| solved.session_millis), Ok(0.0));
    }
}
