//! Plans whose measurements have moved.

use potluck_plan::{Millis, PlanEpoch};
use potluck_planner::Prediction;

/// A stage whose predicted time has changed by this factor since its plan was made is worth another look.
const DRIFT: f64 = 2.0;
/// The change must last: a first token is slow, and devices are busy now and then.
const DRIFT_MILLIS: f64 = 4_000.0;

/// Whether measurements have moved far from those a plan was made with.
#[derive(Default)]
pub(in crate::coordinator::planning) struct Drift {
    epoch: PlanEpoch,
    expected: Vec<f64>,
    since: Option<Millis>,
}

impl Drift {
    /// Sets the times that the plan's stages were chosen for.
    pub fn expect(&mut self, epoch: PlanEpoch, prediction: &Prediction) {
        *self = Self { epoch, expected: prediction.stage_millis(), since: None };
    }

    /// True once a stage's time has been far from the expected one for a while.
    pub fn is_far(&mut self, epoch: PlanEpoch, prediction: &Prediction, now: Millis) -> bool {
        if self.epoch != epoch {
            self.expect(epoch, prediction);
        }
        let pairs = self.expected.iter().zip(prediction.stage_millis());
        let far = pairs.into_iter().any(|(before, now)| !(1.0 / DRIFT..=DRIFT).contains(&(now / before)));
        if !far {
            self.since = None;
            return false;
        }
        now.0 - self.since.get_or_insert(now).0 >= DRIFT_MILLIS
    }
}
