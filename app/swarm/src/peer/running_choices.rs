//! What is chosen while tokens are written, for the recording. It is looked at with every tick, not with every token, and kept when
//! something else is chosen.

use std::collections::BTreeMap;

use potluck_panel::{
    AvoidedReason, Decision, DraftDecision, HedgingDecision, HolderDecision, PredictionDecision, Turn,
};
use potluck_plan::{Millis, PeerId};
use potluck_predict::ForesightReport;
use potluck_protocol::HolderReport;

/// The length of drafts changes often: it is kept at most this often.
const DRAFTS_MILLIS: f64 = 10_000.0;

/// What was chosen last.
#[derive(Default)]
pub(super) struct RunningChoices {
    /// Holders that are avoided.
    holders: BTreeMap<PeerId, HolderDecision>,
    /// Copies of calls that each holder had got when it was last kept.
    copies: BTreeMap<PeerId, u32>,
    prediction: Option<PredictionDecision>,
    drafts: Option<(DraftDecision, Millis)>,
}

impl RunningChoices {
    /// Whether holders are asked in their turn, and what came of copies of calls: kept at one, two, four… copies.
    pub fn holders(
        &mut self,
        reports: &[HolderReport],
        is_late: impl Fn(PeerId) -> bool,
        decisions: &mut Vec<Decision>,
    ) {
        for report in reports {
            let turn = turn(report, is_late(report.peer));
            let (usual_ms, slow_ms) = (report.round_trip_millis, report.slow_millis);
            let decision = HolderDecision { peer: report.peer, turn, usual_ms, slow_ms };
            let known = self.holders.get(&report.peer);
            let is_new = known.map_or(turn != Turn::InTurn, |known| !known.is_like(&decision));
            if is_new {
                decisions.push(Decision::Holder(decision));
                self.holders.insert(report.peer, decision);
            }
            let copies = self.copies.entry(report.peer).or_default();
            if report.hedges > 0 && report.hedges >= copies.saturating_mul(2) {
                *copies = report.hedges;
                let (calls, copies, won) = (report.answers, report.hedges, report.hedges_won);
                decisions.push(Decision::Hedging(HedgingDecision { peer: report.peer, calls, copies, won }));
            }
        }
        // Whoever comes back is another device.
        self.holders.retain(|peer, _| reports.iter().any(|report| report.peer == *peer));
        self.copies.retain(|peer, _| reports.iter().any(|report| report.peer == *peer));
    }

    /// Whether guesses are loaded ahead.
    pub fn prediction(&mut self, report: Option<ForesightReport>, decisions: &mut Vec<Decision>) {
        let Some(ForesightReport { guessing, predictor, recall, loaded, useful, .. }) = report else {
            self.prediction = None;
            return;
        };
        let decision = PredictionDecision { guessing, predictor, recall, loaded, useful };
        if !self.prediction.is_some_and(|known| known.is_like(&decision)) {
            self.prediction = Some(decision);
            decisions.push(Decision::Prediction(decision));
        }
    }

    /// How many draft tokens go along.
    pub fn drafts(&mut self, decision: Option<DraftDecision>, now: Millis, decisions: &mut Vec<Decision>) {
        let Some(decision) = decision else { return };
        let is_new = self.drafts.is_none_or(|(known, at)| !known.is_like(&decision) && now.0 - at.0 >= DRAFTS_MILLIS);
        if is_new {
            self.drafts = Some((decision, now));
            decisions.push(Decision::Drafts(decision));
        }
    }
}

fn turn(report: &HolderReport, is_late: bool) -> Turn {
    match (report.is_unhealthy, is_late) {
        (true, _) => Turn::Avoided { reason: AvoidedReason::Unhealthy { timeouts: report.timeouts } },
        (false, true) => Turn::Avoided { reason: AvoidedReason::Late },
        (false, false) => Turn::InTurn,
    }
}

#[cfg(test)]
mod tests {
    use potluck_panel::Drafter;
    use potluck_predict::Guessing;
    use potluck_protocol::Work;

    use super::*;

    const PEER: PeerId = PeerId([3; 16]);

    fn report(hedges: u32, is_unhealthy: bool) -> HolderReport {
        HolderReport {
            peer: PEER,
            answers: 100,
            round_trip_millis: 10.0,
            slow_millis: 19.0,
            engine_millis: 1.0,
            experts: 4.0,
            hedges,
            hedges_won: hedges / 2,
            open: 0,
            timeouts: 3,
            is_unhealthy,
            work: Work::default(),
        }
    }

    fn told(choices: &mut RunningChoices, report: HolderReport, is_late: bool) -> Vec<Decision> {
        let mut decisions = Vec::new();
        choices.holders(&[report], |_| is_late, &mut decisions);
        decisions
    }

    #[test]
    fn a_holder_is_told_of_when_others_are_asked_before_it_and_when_it_is_back() {
        let mut choices = RunningChoices::default();
        let holder = |turn| vec![Decision::Holder(HolderDecision { peer: PEER, turn, usual_ms: 10.0, slow_ms: 19.0 })];
        let avoided = |reason| holder(Turn::Avoided { reason });
        assert!(told(&mut choices, report(0, false), false).is_empty(), "as the plan says");
        assert_eq!(told(&mut choices, report(0, false), true), avoided(AvoidedReason::Late));
        assert!(told(&mut choices, report(0, false), true).is_empty(), "that is known");
        assert_eq!(told(&mut choices, report(0, true), true), avoided(AvoidedReason::Unhealthy { timeouts: 3 }));
        assert_eq!(told(&mut choices, report(0, false), false), holder(Turn::InTurn));
    }

    #[test]
    fn copies_are_told_of_at_one_two_and_four() {
        let mut choices = RunningChoices::default();
        let all = (0..=9).flat_map(|hedges| told(&mut choices, report(hedges, false), false));
        let copies: Vec<u32> = all
            .map(|decision| match decision {
                Decision::Hedging(HedgingDecision { copies, calls: 100, .. }) => copies,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(copies, [1, 2, 4, 8]);
    }

    #[test]
    fn prediction_is_told_of_when_it_goes_on_or_off() {
        let mut choices = RunningChoices::default();
        let mut told = |guessing, loaded| {
            let mut decisions = Vec::new();
            choices
                .prediction(Some(ForesightReport { guessing, loaded, ..ForesightReport::default() }), &mut decisions);
            decisions.len()
        };
        assert_eq!(told(Guessing::Trying, 0), 1);
        assert_eq!(told(Guessing::Trying, 9), 0, "only its numbers changed");
        assert_eq!(told(Guessing::Off, 9), 1);
    }

    #[test]
    fn the_length_of_drafts_is_told_of_every_ten_seconds_at_most() {
        let mut choices = RunningChoices::default();
        let mut told = |length, at: f64| {
            let decision = DraftDecision { drafter: Drafter::Text, length, gain: 1.4, accepted: 0.5, cost: Some(0.1) };
            let mut decisions = Vec::new();
            choices.drafts(Some(decision), Millis(at), &mut decisions);
            decisions.len()
        };
        assert_eq!(told(0, 0.0), 1);
        assert_eq!(told(3, 200.0), 0, "it changes with every token");
        assert_eq!(told(4, 10_000.0), 1);
        assert_eq!(told(4, 30_000.0), 0);
    }
}
