//! What is chosen while tokens are written, in words.

use potluck_panel::{
    AvoidedReason, DraftDecision, Drafter, Guessing, HedgingDecision, HolderDecision, PredictionDecision, Turn,
};

use crate::texts;

pub(super) fn holder(decision: &HolderDecision, name: &str) -> String {
    let texts = &texts().running_decision;
    match decision.turn {
        Turn::InTurn => texts.in_turn(name),
        Turn::Avoided { reason: AvoidedReason::Late } => texts.late(name, decision.slow_ms),
        Turn::Avoided { reason: AvoidedReason::Unhealthy { timeouts } } => texts.unhealthy(name, timeouts),
    }
}

pub(super) fn hedging(HedgingDecision { calls, copies, won, .. }: &HedgingDecision, name: &str) -> String {
    texts().running_decision.copies(*copies, name, *won, *calls)
}

pub(super) fn prediction(decision: &PredictionDecision) -> String {
    let texts = &texts().running_decision;
    let state = match decision.guessing {
        Guessing::Trying => texts.guesses_tried(),
        Guessing::On => texts.guesses_on(),
        Guessing::Off => texts.guesses_off(),
        Guessing::Always => texts.guesses_always(),
    };
    let said = decision.recall.map_or_else(|| state.to_owned(), |recall| texts.recall(state, recall * 100.0));
    if decision.loaded > 0 { texts.loads(said, decision.loaded, decision.useful) } else { said }
}

pub(super) fn drafts(decision: &DraftDecision) -> String {
    let texts = &texts().running_decision;
    let accepted = decision.accepted * 100.0;
    let cost = decision.cost.map(|cost| texts.draft_cost(cost * 100.0));
    let cost = cost.unwrap_or_else(|| texts.draft_cost_unknown().to_owned());
    let gain = format!("{:.2}", decision.gain);
    match (decision.length, decision.drafter) {
        (0, _) => texts.no_drafts(accepted, cost),
        (length, Drafter::Text) => texts.drafts_of_text(length, gain, accepted, cost),
        (length, Drafter::Shadow) => texts.drafts_of_shadow(length, gain, accepted, cost),
    }
}

#[cfg(test)]
mod tests {
    use potluck_panel::{PeerId, PredictorKind};

    use super::*;

    const PEER: PeerId = PeerId([3; 16]);

    #[test]
    fn a_holder_that_is_avoided_says_by_which_time() {
        let late = HolderDecision {
            peer: PEER,
            turn: Turn::Avoided { reason: AvoidedReason::Late },
            usual_ms: 10.0,
            slow_ms: 19.0,
        };
        assert_eq!(
            holder(&late, "Phone"),
            "Phone is slow right now, so other devices are asked first: it answers 95% of requests within 19 ms, but one took more than twice that."
        );
        let copies = HedgingDecision { peer: PEER, calls: 100, copies: 8, won: 3 };
        assert_eq!(
            hedging(&copies, "Phone"),
            "Phone was asked as a backup 8 times, because another device had not answered yet. Times it answered first: 3. Requests it has answered in all: 100."
        );
    }

    #[test]
    fn prediction_and_drafts_say_what_they_bring() {
        let off = PredictionDecision {
            guessing: Guessing::Off,
            predictor: PredictorKind::Router,
            recall: Some(0.614),
            loaded: 90,
            useful: 40,
        };
        assert_eq!(
            prediction(&off),
            "Experts are not loaded in advance, because this did not make answers faster. 61% of the experts that were used had been guessed. Of 90 experts loaded in advance, 40 were used."
        );
        let some = DraftDecision { drafter: Drafter::Text, length: 3, gain: 1.42, accepted: 0.8, cost: Some(0.12) };
        assert_eq!(
            drafts(&some),
            "With each token, 3 more tokens are guessed from the text so far, which should make answers 1.42 times as fast. 80% of the \
             latest guesses were right, and each guess adds 12% to the time of a token."
        );
        let none = DraftDecision { length: 0, gain: 1.0, accepted: 0.1, ..some };
        assert_eq!(
            drafts(&none),
            "Guessing tokens ahead is off: 10% of the latest guesses were right, and each guess adds 12% to the time of a token."
        );
    }
}
