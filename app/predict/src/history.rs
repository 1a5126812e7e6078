//! Predictors that cost nothing: they count what routers chose.

use potluck_plan::{BlockIndex, ExpertId, Position};

use crate::{Guess, Predictor, TraceShape, ranked};

/// How many of a block's choices count: older ones fade with this half-life, in tokens.
const HALF_LIFE: f32 = 256.0;

/// The experts of a block that were used most often, older uses fading (what an LFU cache keeps).
#[derive(Clone, Debug)]
pub struct MostFrequent {
    shape: TraceShape,
    uses: Vec<f32>,
    seen: Vec<f32>,
}

/// The experts that followed those of the last token in this block, weighed by how often.
#[derive(Clone, Debug)]
pub struct GivenLast {
    frequent: MostFrequent,
    /// By block, expert of the last token, and expert.
    followed: Vec<f32>,
    /// By block, what the last token used.
    last: Vec<Vec<ExpertId>>,
}

impl MostFrequent {
    /// Nothing was used yet.
    pub fn new(shape: TraceShape) -> Self {
        let blocks = usize::from(shape.blocks);
        Self { shape, uses: vec![0.0; blocks * usize::from(shape.experts)], seen: vec![0.0; blocks] }
    }

    /// The share of tokens that used each expert of a block.
    fn shares(&self, block: BlockIndex) -> Vec<f32> {
        let seen = self.seen[usize::from(block.0)].max(1.0);
        (0..usize::from(self.shape.experts)).map(|expert| self.uses[self.shape.index(block, expert)] / seen).collect()
    }
}

impl Predictor for MostFrequent {
    fn name(&self) -> String {
        "most frequent".to_owned()
    }

    fn predict(&self, _: Position, block: BlockIndex) -> Vec<Guess> {
        if self.shape.has(block) { ranked(&self.shares(block)) } else { Vec::new() }
    }

    fn observe(&mut self, _: Position, block: BlockIndex, chosen: &[ExpertId]) {
        if !self.shape.has(block) {
            return;
        }
        let fade = 0.5f32.powf(1.0 / HALF_LIFE);
        let experts = usize::from(self.shape.experts);
        let start = self.shape.index(block, 0);
        self.uses[start..start + experts].iter_mut().for_each(|uses| *uses *= fade);
        let seen = &mut self.seen[usize::from(block.0)];
        *seen = *seen * fade + 1.0;
        for expert in self.shape.known(chosen) {
            self.uses[start + expert] += 1.0;
        }
    }
}

impl GivenLast {
    /// How much the frequency alone counts, in uses: it decides where little followed yet.
    const PRIOR: f32 = 1.0;

    /// Nothing was used yet.
    pub fn new(shape: TraceShape) -> Self {
        let (blocks, experts) = (usize::from(shape.blocks), usize::from(shape.experts));
        Self {
            frequent: MostFrequent::new(shape),
            followed: vec![0.0; blocks * experts * experts],
            last: vec![Vec::new(); blocks],
        }
    }

    fn row(&self, block: BlockIndex, before: usize) -> usize {
        let shape = self.frequent.shape;
        shape.index(block, before) * usize::from(shape.experts)
    }
}

impl Predictor for GivenLast {
    fn name(&self) -> String {
        "given the last token's".to_owned()
    }

    fn predict(&self, _: Position, block: BlockIndex) -> Vec<Guess> {
        let shape = self.frequent.shape;
        if !shape.has(block) {
            return Vec::new();
        }
        let mut scores: Vec<f32> = self.frequent.shares(block).iter().map(|share| Self::PRIOR * share).collect();
        let mut uses = Self::PRIOR;
        for before in shape.known(&self.last[usize::from(block.0)]) {
            let row = self.row(block, before);
            let followed = &self.followed[row..row + usize::from(shape.experts)];
            scores.iter_mut().zip(followed).for_each(|(score, followed)| *score += followed);
            uses += followed.iter().sum::<f32>() / f32::from(shape.used.max(1));
        }
        ranked(&scores.iter().map(|score| score / uses).collect::<Vec<_>>())
    }

    fn observe(&mut self, position: Position, block: BlockIndex, chosen: &[ExpertId]) {
        let shape = self.frequent.shape;
        if !shape.has(block) {
            return;
        }
        self.frequent.observe(position, block, chosen);
        let last = std::mem::replace(&mut self.last[usize::from(block.0)], chosen.to_vec());
        for before in shape.known(&last) {
            let row = self.row(block, before);
            for expert in shape.known(chosen) {
                self.followed[row + expert] += 1.0;
            }
        }
    }

    fn restart(&mut self) {
        self.last.iter_mut().for_each(Vec::clear);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: TraceShape = TraceShape { blocks: 2, experts: 6, used: 2 };

    fn feed(predictor: &mut dyn Predictor, choices: &[[u16; 2]]) {
        for (position, chosen) in choices.iter().enumerate() {
            predictor.observe(Position(position as u32), BlockIndex(1), &chosen.map(ExpertId));
        }
    }

    fn first(predictor: &dyn Predictor, count: usize) -> Vec<u16> {
        predictor.predict(Position(9), BlockIndex(1)).iter().take(count).map(|guess| guess.expert.0).collect()
    }

    #[test]
    fn what_was_used_most_comes_first() {
        let mut predictor = MostFrequent::new(SHAPE);
        feed(&mut predictor, &[[0, 1], [0, 1], [0, 2], [4, 5]]);
        assert_eq!(first(&predictor, 2), [0, 1]);
        let confidence = predictor.predict(Position(9), BlockIndex(1))[0].confidence;
        assert!((confidence - 0.75).abs() < 0.01, "in three of four tokens: {confidence}");
    }

    #[test]
    fn what_followed_before_comes_first() {
        let mut predictor = GivenLast::new(SHAPE);
        feed(&mut predictor, &[[0, 1], [2, 3], [0, 1], [2, 3], [0, 1]]);
        assert_eq!(first(&predictor, 2), [2, 3], "after 0 and 1");
        feed(&mut predictor, &[[2, 3]]);
        assert_eq!(first(&predictor, 2), [0, 1], "after 2 and 3");
        predictor.restart();
        assert!(!first(&predictor, 2).is_empty(), "the frequency is left");
    }

    #[test]
    fn experts_and_blocks_that_do_not_exist_are_ignored() {
        let predictors: [Box<dyn Predictor>; 2] = [Box::new(MostFrequent::new(SHAPE)), Box::new(GivenLast::new(SHAPE))];
        for mut predictor in predictors {
            predictor.observe(Position(0), BlockIndex(1), &[ExpertId(6), ExpertId(u16::MAX)]);
            predictor.observe(Position(0), BlockIndex(2), &[ExpertId(0)]);
            predictor.observe(Position(1), BlockIndex(1), &[ExpertId(1), ExpertId(900)]);
            assert_eq!(first(predictor.as_ref(), 9), [1], "{}", predictor.name());
            assert!(predictor.predict(Position(0), BlockIndex(2)).is_empty(), "{}", predictor.name());
        }
    }
}
