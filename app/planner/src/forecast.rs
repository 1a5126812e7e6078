//! Forecast of the next tokens of a running plan, from what tokens took so far and from the prediction.

use crate::{ExpertTrip, HopCost, Prediction, StageCost};

/// What tokens of a plan took so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// One for each stage.
    pub stages: Vec<ObservedStage>,
    /// Milliseconds of all network hops together.
    pub network_millis: f64,
    /// Milliseconds from routers' choices to the last vectors of their experts, all blocks with experts elsewhere together;
    /// `None` before enough tokens have passed.
    pub experts_millis: Option<f64>,
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
        let stages: f64 = self.stages.iter().map(|stage| stage.millis).sum();
        stages + self.network_millis + self.experts_millis.unwrap_or(0.0)
    }
}

/// The forecast. Messages keep their observed time, and so does a stage whose device has settled. Any other device
/// still runs at the clock that earlier work left it. Its clock will fall to the level at which the device was timed
/// with this plan's pauses, so its stage gets the larger of the observed and the predicted time.
///
/// Experts elsewhere keep their observed time, too, and so do the stages that wait for them: these pause within each token
/// from the first one on. Until experts were observed such a plan keeps its prediction.
pub fn forecast(expected: &Prediction, observed: &Observed) -> Prediction {
    let has_experts = expected.stages.iter().any(|stage| !stage.experts.is_empty());
    let is_number = |millis: f64| millis.is_finite() && millis >= 0.0;
    let parts = [Some(observed.network_millis), observed.experts_millis.or((!has_experts).then_some(0.0))];
    let usable = observed.stages.iter().map(|stage| Some(stage.millis)).chain(parts);
    if !usable.into_iter().all(|millis| millis.is_some_and(is_number)) || observed.stages.len() != expected.stages.len()
    {
        return expected.clone();
    }
    let experts = expected.stages.iter().flat_map(|stage| &stage.experts);
    let wait = Wait::of(experts, observed.experts_millis.unwrap_or(0.0));
    let stages =
        expected.stages.iter().zip(&observed.stages).map(|(stage, observed)| later(stage, *observed, wait)).collect();
    let network = split_network_millis(&expected.hops, observed.network_millis);
    let hops = expected.hops.iter().zip(network).map(|(hop, millis)| {
        let transfer_millis = hop.transfer_millis.min(millis);
        HopCost { latency_millis: millis - transfer_millis, transfer_millis, ..*hop }
    });
    Prediction::new(stages, hops.collect())
}

/// How the observed time of all experts is split over the blocks: one clock sees only the sum.
#[derive(Clone, Copy)]
enum Wait {
    /// As predicted, times this.
    Scaled(f64),
    /// This many milliseconds each: nothing was predicted.
    Each(f64),
}

impl Wait {
    fn of<'a>(experts: impl Iterator<Item = &'a ExpertTrip>, all: f64) -> Self {
        let (trips, expected) = experts.fold((0, 0.0), |(trips, sum), trip| (trips + 1, sum + trip.wait_millis));
        if expected > 0.0 { Self::Scaled(all / expected) } else { Self::Each(all / f64::from(trips.max(1))) }
    }

    fn millis(self, expected: f64) -> f64 {
        match self {
            Self::Scaled(factor) => expected * factor,
            Self::Each(millis) => millis,
        }
    }
}

fn later(expected: &StageCost, observed: ObservedStage, wait: Wait) -> StageCost {
    let known = expected.engine_millis();
    let keeps = observed.is_settled || !expected.experts.is_empty();
    let millis = if keeps { observed.millis } else { observed.millis.max(known) };
    // Without a prediction to split by, all of it counts as compute.
    let (scale, compute_millis) =
        if known > 0.0 { (millis / known, expected.compute_millis * millis / known) } else { (0.0, millis) };
    let trip = |trip: &ExpertTrip| ExpertTrip {
        sync_millis: trip.sync_millis * scale,
        wait_millis: wait.millis(trip.wait_millis),
        ..*trip
    };
    StageCost {
        session_millis: expected.session_millis * scale,
        compute_millis,
        loading_millis: expected.loading_millis * scale,
        experts: expected.experts.iter().map(trip).collect(),
        ..*expected
    }
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
    use potluck_plan::{BlockIndex, PeerId, StageId};

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
        Observed { stages: stages.collect(), network_millis, experts_millis: None }
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

    fn trip(block: u16, sync_millis: f64, wait_millis: f64) -> ExpertTrip {
        let block = BlockIndex(block);
        let (holders, others_asked, replicas, asked, bytes) = (2, 1.0, 1, 1, 0.0);
        ExpertTrip { block, holders, others_asked, replicas, asked, sync_millis, wait_millis, bytes }
    }

    /// Holders that were timed while they shared a GPU: 1 + 3 ms and two readbacks of 1 ms, 8 and 16 ms for experts.
    #[test]
    fn experts_elsewhere_take_what_they_took() {
        let pooled = StageCost { experts: vec![trip(1, 1.0, 8.0), trip(2, 1.0, 16.0)], ..stage(0, 1.0, 3.0) };
        let expected = Prediction::new(vec![pooled, stage(1, 1.0, 4.0)], vec![hop(5.5), hop(5.5)]);
        let seen = |experts_millis| Observed { experts_millis, ..observed(&[(1.5, false), (5.0, true)], 12.0) };
        assert_eq!(forecast(&expected, &seen(None)), expected, "experts have not been observed yet");
        let found = forecast(&expected, &seen(Some(6.0)));
        assert_eq!(found.stage_millis(), [1.5, 5.0], "a clock that pauses in each block has no further to fall");
        let parts: Vec<(f64, f64)> =
            found.stages[0].experts.iter().map(|trip| (trip.sync_millis, trip.wait_millis)).collect();
        assert_eq!(parts, [(0.25, 2.0), (0.25, 4.0)], "each part keeps its share");
        assert_eq!(found.token_millis, 24.5);
        let free = StageCost { experts: vec![trip(1, 0.0, 0.0), trip(2, 0.0, 0.0)], ..stage(0, 1.0, 3.0) };
        let expected = Prediction::new(vec![free], Vec::new());
        let seen = Observed { experts_millis: Some(6.0), ..observed(&[(4.0, true)], 0.0) };
        assert_eq!(forecast(&expected, &seen).token_millis, 10.0, "also where none was predicted");
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
