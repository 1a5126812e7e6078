//! A predictor to compare others with: what was used last.

use potluck_plan::{BlockIndex, ExpertId, Position};
use potluck_predict::{Guess, Predictor, TraceShape, ranked};

/// The experts of a block that were used last (what an LRU cache keeps).
#[derive(Clone, Debug)]
pub struct MostRecent {
    shape: TraceShape,
    /// By block and expert, the tokens of the block until its last use; 0 before the first.
    last: Vec<u32>,
    tokens: Vec<u32>,
}

impl MostRecent {
    /// Nothing was used yet.
    pub fn new(shape: TraceShape) -> Self {
        let blocks = usize::from(shape.blocks);
        Self { shape, last: vec![0; blocks * usize::from(shape.experts)], tokens: vec![0; blocks] }
    }
}

impl Predictor for MostRecent {
    fn name(&self) -> String {
        "most recent".to_owned()
    }

    fn predict(&self, _: Position, block: BlockIndex) -> Vec<Guess> {
        if !self.shape.has(block) {
            return Vec::new();
        }
        let now = self.tokens[usize::from(block.0)];
        let experts = 0..usize::from(self.shape.experts);
        let score = |expert| match self.last[self.shape.index(block, expert)] {
            0 => 0.0,
            last => 1.0 / (2.0 + (now - last) as f32),
        };
        ranked(&experts.map(score).collect::<Vec<_>>())
    }

    fn observe(&mut self, _: Position, block: BlockIndex, chosen: &[ExpertId]) {
        if self.shape.has(block) {
            let now = &mut self.tokens[usize::from(block.0)];
            *now = now.saturating_add(1);
            for expert in self.shape.known(chosen) {
                self.last[self.shape.index(block, expert)] = *now;
            }
        }
    }
}

/// Predicts nothing: experts are loaded when they are needed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nothing;

impl Predictor for Nothing {
    fn name(&self) -> String {
        "none".to_owned()
    }

    fn predict(&self, _: Position, _: BlockIndex) -> Vec<Guess> {
        Vec::new()
    }

    fn observe(&mut self, _: Position, _: BlockIndex, _: &[ExpertId]) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_last_comes_first() {
        let mut predictor = MostRecent::new(TraceShape { blocks: 2, experts: 6, used: 2 });
        for (position, chosen) in [[0, 1], [0, 1], [0, 1], [4, 5], [6, 900]].iter().enumerate() {
            predictor.observe(Position(position as u32), BlockIndex(1), &chosen.map(ExpertId));
        }
        let guesses = predictor.predict(Position(9), BlockIndex(1));
        let experts: Vec<u16> = guesses.iter().map(|guess| guess.expert.0).collect();
        assert_eq!(experts, [4, 5, 0, 1], "what was never used is no guess, nor what does not exist");
        assert!(predictor.predict(Position(0), BlockIndex(0)).is_empty(), "of another block nothing is known");
    }
}
