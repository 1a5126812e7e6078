//! Forecast of the next tokens of a running plan, from what tokens took so far and from the prediction.

use crate::{HopCost, Prediction, StageCost};

/// What tokens of a plan took so far.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// One for each stage.
    pub stages: Vec<ObservedStage>,
    /// Milliseconds of all network hops together.
    pub network_millis: f64,
}

/// What a stage took so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ObservedStage {
    /// Milliseconds of its engine per decoded token.
    pub millis: f64,
    /// The device's clock has settled on this work, or does not vary, so later tokens will take as long.
    pub is_settled: bool,
}

impl Observed {
    /// Milliseconds per token.
    pub fn token_millis(&self) -> f64 {
        self.stages.iter().map(|stage| stage.millis).sum::<f64>() + self.network_millis
    }
}

/// The forecast. Messages keep their observed time, and so does a stage whose device has settled. Any other device
/// still runs at the clock that earlier work left it. Its clock will fall to the level at which the device was timed
/// with this plan's pauses, so its stage gets the larger of the observed and the predicted time.
///
/// A plan with experts elsewhere keeps its prediction, because the parts of its stages are not measured separately.
pub fn forecast(expected: &Prediction, observed: &Observed) -> Prediction {
    let has_experts = expected.stages.iter().any(|stage| !stage.experts.is_empty());
    let is_number = |millis: f64| millis.is_finite() && millis >= 0.0;
    let usable = observed.stages.iter().all(|stage| is_number(stage.millis)) && is_number(observed.network_millis);
    if has_experts || !usable || observed.stages.len() != expected.stages.len() {
        return expected.clone();
    }
    let stages =
        expected.stages.iter().zip(&observed.stages).map(|(stage, observed)| later(stage, *observed)).collect();
    let network = split_network_millis(&expected.hops, observed.network_millis);
    let hops = expected.hops.iter().zip(network).map(|(hop, millis)| {
        let transfer_millis = hop.transfer_millis.min(millis);
        HopCost { latency_millis: millis - transfer_millis, transfer_millis, ..*hop }
    });
    Prediction::new(stages, hops.collect())
}

fn later(expected: &StageCost, observed: ObservedStage) -> StageCost {
    let known = expected.engine_millis();
    let millis = if observed.is_settled { observed.millis } else { observed.millis.max(known) };
    // Without a prediction to split by, all of it counts as compute.
    let share = if known > 0.0 { expected.session_millis / known } else { 0.0 };
    StageCost { session_millis: millis * share, compute_millis: millis * (1.0 - share), ..expected.clone() }
}

/// Splits `all`, the observed time of all messages together, over the hops: one clock sees only the sum. An excess over
/// the expectation is split equally, because it is the same overhead for each; a shortfall scales all hops by one
/// factor, so that none becomes zero.
pub fn split_network_millis(hops: &[HopCost], all: f64) -> Vec<f64> {
    let expected: f64 = hops.iter().map(HopCost::millis).sum();
    if all < expected {
        return hops.iter().map(|hop| hop.millis() * all / expected).collect();
    }
    let rest = (all - expected) / hops.len().max(1) as f64;
    hops.iter().map(|hop| hop.millis() + rest).collect()
}

#[cfg(test)]
mod tests {
    use potluck_plan::{PeerId, StageId};

    use super::*;
    use potluck_plan::random::Random;

    fn stage(index: u8, session_millis: f64, compute_millis: f64) -> StageCost {
        let (stage, peer) = (StageId(index.into()), PeerId([index; 16]));
        StageCost { stage, peer, session_millis, compute_millis, loading_millis: 0.0, experts: Vec::new() }
    }

    fn hop(latency_millis: f64) -> HopCost {
        HopCost { from: PeerId([1; 16]), to: PeerId([2; 16]), latency_millis, transfer_millis: 0.5 }
    }

    fn observed(stages: &[(f64, bool)], network_millis: f64) -> Observed {
        let stages = stages.iter().map(|&(millis, is_settled)| ObservedStage { millis, is_settled });
        Observed { stages: stages.collect(), network_millis }
    }

    #[test]
    fn hops_keep_their_time_and_a_boosted_clock_falls() {
        // Timed with pauses: 4 and 12 ms; two hops of 6 ms.
        let expected = Prediction::new(vec![stage(0, 1.0, 3.0), stage(1, 2.0, 10.0)], vec![hop(5.5), hop(5.5)]);
        let high = forecast(&expected, &observed(&[(2.0, false), (15.0, false)], 10.0));
        assert_eq!(high.stage_millis(), [4.0, 15.0], "the first one's clock will fall, the second is slow already");
        assert_eq!(high.hops.iter().map(HopCost::millis).collect::<Vec<_>>(), [5.0, 5.0]);
        assert_eq!(high.token_millis, 29.0);
        let settled = forecast(&expected, &observed(&[(2.0, true), (15.0, true)], 10.0));
        assert_eq!(settled.stage_millis(), [2.0, 15.0], "that is what it takes");
        assert_eq!(settled.stages[0].session_millis, 0.5, "overhead keeps its share");
    }

    #[test]
    fn observations_of_another_plan_change_nothing() {
        let expected = Prediction::new(vec![stage(0, 1.0, 3.0)], vec![hop(5.0)]);
        for odd in [observed(&[], 9.0), observed(&[(f64::NAN, true)], 9.0), observed(&[(3.0, true)], -1.0)] {
            assert_eq!(forecast(&expected, &odd), expected, "{odd:?}");
        }
    }

    #[test]
    fn hops_share_the_observed_network_time() {
        let hops = [hop(0.5), hop(8.5)];
        assert_eq!(split_network_millis(&hops, 14.0), [3.0, 11.0]);
        assert_eq!(split_network_millis(&hops, 5.0), [0.5, 4.5], "a quick message still takes its time");
    }

    #[test]
    fn every_part_of_a_forecast_lies_between_observation_and_prediction() {
        let mut random = Random::new(7);
        let mut to = |most: f64| random.unit() * most;
        for case in 0..10_000 {
            let count = 1 + case % 5;
            let stages = (0..count).map(|index| stage(index as u8, to(3.0), to(20.0))).collect();
            let hops = (0..if count == 1 { 0 } else { count }).map(|_| hop(to(50.0))).collect();
            let expected = Prediction::new(stages, hops);
            let was: Vec<(f64, bool)> = (0..count).map(|_| (to(30.0), to(1.0) < 0.5)).collect();
            let seen = observed(&was, if count == 1 { 0.0 } else { to(200.0) });
            let found = forecast(&expected, &seen);
            let parts = found.stage_millis().iter().sum::<f64>() + found.hops.iter().map(HopCost::millis).sum::<f64>();
            assert!((found.token_millis - parts).abs() < 1e-6, "case {case}: the whole is its parts");
            let network: f64 = found.hops.iter().map(HopCost::millis).sum();
            assert!(
                (network - seen.network_millis).abs() < 1e-6,
                "case {case}: {network} instead of {}",
                seen.network_millis
            );
            for ((found, expected), seen) in found.stage_millis().iter().zip(expected.stage_millis()).zip(&seen.stages)
            {
                let (least, most) = (seen.millis.min(expected), seen.millis.max(expected));
                assert!((least - 1e-9..=most + 1e-9).contains(found), "case {case}: {found} of {least} to {most}");
            }
            assert!(found.token_millis >= seen.token_millis() - 1e-6, "case {case}: no clock rises by waiting");
        }
    }
}
