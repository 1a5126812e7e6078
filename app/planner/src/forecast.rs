//! What the next tokens of a running plan will take: what tokens took so far, part by part, and what is known of later ones.

use crate::{HopCost, Prediction, StageCost};

/// What tokens of a plan took so far.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// One for each stage.
    pub stages: Vec<ObservedStage>,
    /// Milliseconds of all messages together.
    pub network_millis: f64,
}

/// What a stage took so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ObservedStage {
    /// Milliseconds of its engine for a decoded row.
    pub millis: f64,
    /// Its device's clock is what this work sets, or does not vary: later tokens take as long.
    pub is_settled: bool,
}

impl Observed {
    /// Milliseconds of a token.
    pub fn token_millis(&self) -> f64 {
        self.stages.iter().map(|stage| stage.millis).sum::<f64>() + self.network_millis
    }
}

/// The tokens to come. Messages take what they took: no clock changes them. So does a stage whose device has settled. The
/// clock of another is still what was left of other work, and falls to what it was timed at with the pauses of this plan; a
/// stage that takes longer than that already will not become quicker. The sum is a whole token again: what was seen of a token
/// is never split into quick messages and hoped-for stages.
///
/// A plan whose experts are elsewhere is expected to take what it was: its stages' parts are not told apart.
pub fn forecast(expected: &Prediction, seen: &Observed) -> Prediction {
    let has_experts = expected.stages.iter().any(|stage| !stage.experts.is_empty());
    let is_number = |millis: f64| millis.is_finite() && millis >= 0.0;
    let usable = seen.stages.iter().all(|stage| is_number(stage.millis)) && is_number(seen.network_millis);
    if has_experts || !usable || seen.stages.len() != expected.stages.len() {
        return expected.clone();
    }
    let stages = expected.stages.iter().zip(&seen.stages).map(|(stage, seen)| later(stage, *seen)).collect();
    let ways = split_network_millis(&expected.hops, seen.network_millis);
    let hops = expected.hops.iter().zip(ways).map(|(hop, millis)| {
        let transfer_millis = hop.transfer_millis.min(millis);
        HopCost { latency_millis: millis - transfer_millis, transfer_millis, ..*hop }
    });
    Prediction::new(stages, hops.collect())
}

fn later(expected: &StageCost, seen: ObservedStage) -> StageCost {
    let known = expected.engine_millis();
    let millis = if seen.is_settled { seen.millis } else { seen.millis.max(known) };
    // Without a share of each known, all of it is work.
    let share = if known > 0.0 { expected.session_millis / known } else { 0.0 };
    StageCost { session_millis: millis * share, compute_millis: millis * (1.0 - share), ..expected.clone() }
}

/// Milliseconds of each message, if all of them take `all`: one clock sees only their sum. What they take longer than expected
/// is shared out equally, for it is the same work for each; where they are quicker, all are by the same factor, for none
/// takes nothing.
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
    use crate::random::Random;

    fn stage(index: u8, session_millis: f64, compute_millis: f64) -> StageCost {
        let (stage, peer) = (StageId(index.into()), PeerId([index; 16]));
        StageCost { stage, peer, session_millis, compute_millis, experts: Vec::new() }
    }

    fn hop(latency_millis: f64) -> HopCost {
        HopCost { from: PeerId([1; 16]), to: PeerId([2; 16]), latency_millis, transfer_millis: 0.5 }
    }

    fn seen(stages: &[(f64, bool)], ways_millis: f64) -> Observed {
        let stages = stages.iter().map(|&(millis, is_settled)| ObservedStage { millis, is_settled });
        Observed { stages: stages.collect(), network_millis: ways_millis }
    }

    #[test]
    fn messages_take_what_they_took_and_a_high_clock_falls() {
        // Timed with pauses: 4 and 12 ms; two ways of 6 ms.
        let expected = Prediction::new(vec![stage(0, 1.0, 3.0), stage(1, 2.0, 10.0)], vec![hop(5.5), hop(5.5)]);
        let high = forecast(&expected, &seen(&[(2.0, false), (15.0, false)], 10.0));
        assert_eq!(high.stage_millis(), [4.0, 15.0], "the first one's clock will fall, the second is slow already");
        assert_eq!(high.hops.iter().map(HopCost::millis).collect::<Vec<_>>(), [5.0, 5.0]);
        assert_eq!(high.token_millis, 29.0);
        let settled = forecast(&expected, &seen(&[(2.0, true), (15.0, true)], 10.0));
        assert_eq!(settled.stage_millis(), [2.0, 15.0], "that is what it takes");
        assert_eq!(settled.stages[0].session_millis, 0.5, "overhead keeps its share");
    }

    #[test]
    fn what_is_no_measure_of_this_plan_changes_nothing() {
        let expected = Prediction::new(vec![stage(0, 1.0, 3.0)], vec![hop(5.0)]);
        for odd in [seen(&[], 9.0), seen(&[(f64::NAN, true)], 9.0), seen(&[(3.0, true)], -1.0)] {
            assert_eq!(forecast(&expected, &odd), expected, "{odd:?}");
        }
    }

    #[test]
    fn messages_share_what_tokens_spend_on_the_way() {
        let hops = [hop(0.5), hop(8.5)];
        assert_eq!(split_network_millis(&hops, 14.0), [3.0, 11.0]);
        assert_eq!(split_network_millis(&hops, 5.0), [0.5, 4.5], "a quick message still takes its time");
    }

    #[test]
    fn a_forecast_lies_between_what_was_seen_and_what_was_expected_part_by_part() {
        let mut random = Random::new(7);
        let mut to = |most: f64| random.unit() * most;
        for case in 0..10_000 {
            let count = 1 + case % 5;
            let stages = (0..count).map(|index| stage(index as u8, to(3.0), to(20.0))).collect();
            let hops = (0..if count == 1 { 0 } else { count }).map(|_| hop(to(50.0))).collect();
            let expected = Prediction::new(stages, hops);
            let was: Vec<(f64, bool)> = (0..count).map(|_| (to(30.0), to(1.0) < 0.5)).collect();
            let seen = seen(&was, if count == 1 { 0.0 } else { to(200.0) });
            let found = forecast(&expected, &seen);
            let parts = found.stage_millis().iter().sum::<f64>() + found.hops.iter().map(HopCost::millis).sum::<f64>();
            assert!((found.token_millis - parts).abs() < 1e-6, "case {case}: the whole is its parts");
            let ways: f64 = found.hops.iter().map(HopCost::millis).sum();
            assert!(
                (ways - seen.network_millis).abs() < 1e-6,
                "case {case}: {ways} instead of {}",
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
