//! The next blocks' routers on this block's output (od-moe.txt 2.3): the residual stream changes little from block to
//! block, so a later router says early what it will choose.

use std::collections::VecDeque;

use potluck_plan::{BlockIndex, ExpertId, Position};

use crate::{Guess, Predictor, TraceShape, ranked};

/// Scores that are kept: a few blocks of a few conversations.
const KEPT: usize = 64;

/// Believes the scores that it is fed.
#[derive(Clone, Debug)]
pub struct NextRouter {
    shape: TraceShape,
    scores: VecDeque<(Position, BlockIndex, Vec<f32>)>,
}

impl NextRouter {
    /// No scores yet.
    pub fn new(shape: TraceShape) -> Self {
        Self { shape, scores: VecDeque::new() }
    }

    /// What a block's router says of a token before it is there: one probability an expert. Scores of another number,
    /// or that are no numbers, are ignored. Later scores replace earlier ones: they come from a nearer block.
    pub fn feed(&mut self, position: Position, block: BlockIndex, scores: Vec<f32>) {
        let fits = scores.len() == usize::from(self.shape.experts) && scores.iter().all(|score| score.is_finite());
        if fits && block.0 < self.shape.blocks {
            self.scores.retain(|(at, of, _)| (*at, *of) != (position, block));
            self.scores.push_back((position, block, scores));
            if self.scores.len() > KEPT {
                self.scores.pop_front();
            }
        }
    }
}

impl Predictor for NextRouter {
    fn name(&self) -> String {
        "next router".to_owned()
    }

    fn predict(&self, position: Position, block: BlockIndex) -> Vec<Guess> {
        let scores = self.scores.iter().find(|(at, of, _)| (*at, *of) == (position, block));
        scores.map(|(_, _, scores)| ranked(scores)).unwrap_or_default()
    }

    /// The token is there: its scores are of no more use.
    fn observe(&mut self, position: Position, block: BlockIndex, _: &[ExpertId]) {
        self.scores.retain(|(at, of, _)| (*at, *of) != (position, block));
    }

    fn restart(&mut self) {
        self.scores.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_ranked_until_the_token_is_there() {
        let mut router = NextRouter::new(TraceShape { blocks: 3, experts: 3, used: 1 });
        let (position, block) = (Position(4), BlockIndex(2));
        router.feed(position, block, vec![0.5, 0.3, 0.2]);
        router.feed(position, block, vec![0.1, 0.2, 0.7]);
        router.feed(position, block, vec![0.1, f32::NAN, 0.7]);
        router.feed(position, block, vec![1.0]);
        let experts: Vec<u16> = router.predict(position, block).iter().map(|guess| guess.expert.0).collect();
        assert_eq!(experts, [2, 1, 0], "the latest whole scores");
        assert!(router.predict(Position(5), block).is_empty(), "another token");
        router.observe(position, block, &[ExpertId(2)]);
        assert!(router.predict(position, block).is_empty());
    }

    #[test]
    fn what_is_never_asked_for_does_not_pile_up() {
        let mut router = NextRouter::new(TraceShape { blocks: 1, experts: 1, used: 1 });
        (0..1_000).for_each(|position| router.feed(Position(position), BlockIndex(0), vec![1.0]));
        assert_eq!(router.scores.len(), KEPT);
        assert!(!router.predict(Position(999), BlockIndex(0)).is_empty());
    }
}
