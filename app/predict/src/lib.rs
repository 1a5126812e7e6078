//! Which experts a token will use (od-moe.txt 3.2): predictors behind one trait, in the order of what they cost, and the switch that
//! turns them off where they do not pay. How good they are is studied in the laboratory (`lab/src/routing`).
//!
//! A prediction never changes an answer: a wrong one loads what nobody needs, and a missing one makes a token wait.
//! Pure state machines: no clock, no I/O.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod alignment;
mod foresight;
mod history;
mod kind;
mod known_recall;
mod next_router;
mod published;
mod shape;
mod switch;

pub use alignment::{Alignment, NoAlignment};
pub use foresight::{Foresight, ForesightReport, Guessing};
pub use history::{GivenLast, MostFrequent};
pub use kind::{NoPredictor, PredictorKind};
pub use known_recall::KnownRecall;
pub use next_router::NextRouter;
pub use published::{Published, PublishedRecall, ShadowWord};
pub use shape::TraceShape;
pub use switch::{Next, Switch, SwitchState};

use potluck_plan::{BlockIndex, ExpertId, Position};

/// An expert that a token may use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Guess {
    /// Which.
    pub expert: ExpertId,
    /// How likely, from 0 to 1.
    pub confidence: f32,
}

/// Says which experts will be used.
pub trait Predictor {
    /// Its name in tables.
    fn name(&self) -> String;

    /// Experts that the token at this position may use in this block, the likeliest first, none twice. Empty if it
    /// cannot say.
    fn predict(&self, position: Position, block: BlockIndex) -> Vec<Guess>;

    /// What the router chose for a token. Called for every block of every token, in order.
    fn observe(&mut self, position: Position, block: BlockIndex, chosen: &[ExpertId]);

    /// Whether it learns from the outputs of blocks. Whoever has to compute them for it alone asks first.
    fn wants_outputs(&self) -> bool {
        false
    }

    /// A block's output for a token: the residual stream after its experts, of hidden width.
    fn output(&mut self, _position: Position, _block: BlockIndex, _hidden: &[f32]) {}

    /// A conversation starts: what was learned of the text so far says nothing of the next tokens.
    fn restart(&mut self) {}
}

/// Predictors in line: the first that can say something is believed, so that one whose peer left is replaced within a
/// token.
#[derive(Default)]
pub struct FirstOf(pub Vec<Box<dyn Predictor>>);

impl Predictor for FirstOf {
    fn name(&self) -> String {
        self.0.iter().map(|predictor| predictor.name()).collect::<Vec<_>>().join(", else ")
    }

    fn predict(&self, position: Position, block: BlockIndex) -> Vec<Guess> {
        let guesses = self.0.iter().map(|predictor| predictor.predict(position, block));
        guesses.into_iter().find(|guesses| !guesses.is_empty()).unwrap_or_default()
    }

    fn observe(&mut self, position: Position, block: BlockIndex, chosen: &[ExpertId]) {
        self.0.iter_mut().for_each(|predictor| predictor.observe(position, block, chosen));
    }

    fn wants_outputs(&self) -> bool {
        self.0.iter().any(|predictor| predictor.wants_outputs())
    }

    fn output(&mut self, position: Position, block: BlockIndex, hidden: &[f32]) {
        self.0.iter_mut().for_each(|predictor| predictor.output(position, block, hidden));
    }

    fn restart(&mut self) {
        self.0.iter_mut().for_each(|predictor| predictor.restart());
    }
}

/// Guesses from scores by expert, the highest first; what has none is left out.
pub fn ranked(scores: &[f32]) -> Vec<Guess> {
    let guess = |(expert, score): (usize, &f32)| Guess { expert: ExpertId(expert as u16), confidence: score.min(1.0) };
    let mut guesses: Vec<Guess> = scores.iter().enumerate().filter(|(_, score)| **score > 0.0).map(guess).collect();
    guesses.sort_by(|a, b| {
        let score = |guess: &Guess| scores[usize::from(guess.expert.0)];
        score(b).total_cmp(&score(a)).then(a.expert.cmp(&b.expert))
    });
    guesses
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_in_line_takes_over() {
        let shape = TraceShape { blocks: 1, experts: 4, used: 1 };
        let mut line = FirstOf(vec![Box::new(NextRouter::new(shape)), Box::new(MostFrequent::new(shape))]);
        assert!(line.predict(Position(0), BlockIndex(0)).is_empty(), "nobody knows anything yet");
        line.observe(Position(0), BlockIndex(0), &[ExpertId(2)]);
        assert_eq!(line.predict(Position(1), BlockIndex(0))[0].expert, ExpertId(2), "no scores came");
        assert_eq!(line.name(), "next router, else most frequent");
    }

    #[test]
    fn guesses_are_ranked_and_none_comes_without_a_score() {
        let experts: Vec<u16> = ranked(&[0.1, 0.0, 3.0, 0.1, f32::NAN]).iter().map(|guess| guess.expert.0).collect();
        assert_eq!(experts, [2, 0, 3]);
    }
}
