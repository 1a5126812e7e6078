//! A predictor for measurements: it knows a text that is answered again and again, and is wrong as often as it is told to be.

use std::collections::BTreeMap;

use potluck_plan::random::mix;
use potluck_plan::{BlockIndex, ExpertId, Position};

use crate::{Guess, Predictor, TraceShape};

/// Choices that are kept: those of 8,192 tokens in 64 blocks.
const KEPT: usize = 1 << 19;

/// Repeats what was chosen when the same text was computed first, each expert exchanged for another with a known
/// probability. As a shadow does, it knows tokens that are not computed yet.
///
/// Rounds are told apart by their positions: one begins where the round before began. The first one is not predicted.
#[derive(Clone, Debug)]
pub struct KnownRecall {
    shape: TraceShape,
    /// By round, from the second on; the last one counts for all that follow.
    recalls: Vec<f64>,
    seed: u64,
    round: usize,
    /// Where rounds begin.
    start: Option<(BlockIndex, Position)>,
    /// What the last round chose, and this one: a draft's tokens may turn out to be others.
    known: BTreeMap<(Position, BlockIndex), Vec<ExpertId>>,
    chosen: BTreeMap<(Position, BlockIndex), Vec<ExpertId>>,
}

impl KnownRecall {
    /// `recalls`: the share of a block's experts that is right, by round from the second on; nothing is predicted where it is 0.
    /// The same seed exchanges the same experts, and a higher recall keeps all that a lower one keeps.
    pub fn new(shape: TraceShape, recalls: Vec<f64>, seed: u64) -> Self {
        let (known, chosen) = (BTreeMap::new(), BTreeMap::new());
        Self { shape, recalls, seed, round: 0, start: None, known, chosen }
    }

    /// The recall of this round.
    fn recall(&self) -> f64 {
        let index = self.round.checked_sub(1).map(|index| index.min(self.recalls.len().saturating_sub(1)));
        index.and_then(|index| self.recalls.get(index).copied()).unwrap_or(0.0)
    }

    fn draw(&self, position: Position, block: BlockIndex, expert: ExpertId, what: u64) -> u64 {
        let place = u64::from(position.0) << 32 | u64::from(block.0) << 16 | u64::from(expert.0);
        mix(mix(mix(self.seed) ^ place) ^ what)
    }
}

impl Predictor for KnownRecall {
    fn name(&self) -> String {
        "recorded".to_owned()
    }

    fn predict(&self, position: Position, block: BlockIndex) -> Vec<Guess> {
        let recall = self.recall();
        let Some(chosen) = self.known.get(&(position, block)).filter(|_| recall > 0.0) else { return Vec::new() };
        let mut experts: Vec<ExpertId> = Vec::with_capacity(chosen.len());
        for expert in chosen {
            let unit = (self.draw(position, block, *expert, 0) >> 11) as f64 / (1u64 << 53) as f64;
            if unit < recall {
                experts.push(*expert);
                continue;
            }
            let count = self.shape.experts.max(1);
            let first = (self.draw(position, block, *expert, 1) % u64::from(count)) as u16;
            let others =
                (0..count).map(|step| ExpertId(((u32::from(first) + u32::from(step)) % u32::from(count)) as u16));
            experts.extend(others.into_iter().find(|other| !chosen.contains(other) && !experts.contains(other)));
        }
        experts.into_iter().map(|expert| Guess { expert, confidence: 1.0 }).collect()
    }

    fn observe(&mut self, position: Position, block: BlockIndex, chosen: &[ExpertId]) {
        match self.start {
            None => self.start = Some((block, position)),
            Some((first, start)) if block == first && position <= start => {
                self.round += 1;
                self.start = Some((first, position));
                self.known = std::mem::take(&mut self.chosen);
            }
            Some(_) => {}
        }
        if self.chosen.len() < KEPT || self.chosen.contains_key(&(position, block)) {
            self.chosen.insert((position, block), chosen.to_vec());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: TraceShape = TraceShape { blocks: 4, experts: 64, used: 8 };
    const TOKENS: u32 = 200;

    /// What the router of the test chooses.
    fn chosen(position: u32, block: u16) -> Vec<ExpertId> {
        (0..8).map(|index| ExpertId(((position as u16 * 13 + block * 5 + index * 7) % 64) & 63)).collect()
    }

    /// Computes the text once more; the share of experts that were predicted.
    fn round(predictor: &mut KnownRecall) -> Option<f64> {
        let (mut guessed, mut right, mut used) = (0, 0, 0);
        for position in 33..33 + TOKENS {
            for block in 0..4 {
                let chosen = chosen(position, block);
                let guesses = predictor.predict(Position(position), BlockIndex(block));
                // The first place is where a round is noticed.
                if (position, block) != (33, 0) {
                    used += chosen.len();
                    guessed += guesses.len();
                    right += guesses.iter().filter(|guess| chosen.contains(&guess.expert)).count();
                    let all: std::collections::BTreeSet<_> = guesses.iter().map(|guess| guess.expert).collect();
                    assert_eq!(all.len(), guesses.len(), "none twice");
                }
                predictor.observe(Position(position), BlockIndex(block), &chosen);
            }
        }
        assert!(guessed == 0 || guessed == used, "as many as a token uses: {guessed} of {used}");
        (guessed > 0).then(|| right as f64 / used as f64)
    }

    #[test]
    fn a_text_that_is_computed_again_is_known_with_the_recall_that_was_asked_for() {
        let recalls = [0.33, 0.86, 0.957, 0.999, 0.0, 1.0];
        let mut predictor = KnownRecall::new(SHAPE, recalls.to_vec(), 7);
        assert_eq!(round(&mut predictor), None, "nothing is known yet");
        for recall in recalls {
            match round(&mut predictor) {
                Some(measured) => assert!((measured - recall).abs() < 0.02, "{measured}, not {recall}"),
                None => assert_eq!(recall, 0.0, "nobody guesses at a recall of 0"),
            }
        }
        assert_eq!(round(&mut predictor), Some(1.0), "the last one counts for all that follow");
    }

    #[test]
    fn it_knows_later_tokens_and_the_same_ones_every_time() {
        let mut predictor = KnownRecall::new(SHAPE, vec![0.5], 7);
        round(&mut predictor);
        predictor.observe(Position(33), BlockIndex(0), &chosen(33, 0));
        let far = predictor.predict(Position(33 + TOKENS - 1), BlockIndex(3));
        assert_eq!(far.len(), 8);
        assert_eq!(far, predictor.predict(Position(33 + TOKENS - 1), BlockIndex(3)));
        assert!(predictor.predict(Position(33 + TOKENS), BlockIndex(0)).is_empty(), "the text ended before");
        let mut higher = predictor.clone();
        higher.recalls = vec![0.8];
        let right = |predictor: &KnownRecall| -> Vec<ExpertId> {
            let guesses = predictor.predict(Position(40), BlockIndex(1));
            guesses.iter().map(|guess| guess.expert).filter(|expert| chosen(40, 1).contains(expert)).collect()
        };
        assert!(right(&predictor).iter().all(|expert| right(&higher).contains(expert)), "what was right stays right");
    }

    #[test]
    fn a_draft_that_is_wrong_does_not_spoil_what_is_known() {
        let mut predictor = KnownRecall::new(SHAPE, vec![1.0], 7);
        round(&mut predictor);
        for block in 0..4 {
            predictor.observe(Position(33), BlockIndex(block), &chosen(33, block));
            predictor.observe(Position(34), BlockIndex(block), &chosen(99, block));
        }
        let guesses = predictor.predict(Position(34), BlockIndex(2));
        assert_eq!(guesses.iter().map(|guess| guess.expert).collect::<Vec<_>>(), chosen(34, 2));
    }

    #[test]
    fn a_block_that_uses_all_its_experts_has_no_others() {
        let shape = TraceShape { blocks: 1, experts: 2, used: 2 };
        let mut predictor = KnownRecall::new(shape, vec![0.01], 7);
        for _ in 0..2 {
            for position in 0..20 {
                predictor.observe(Position(position), BlockIndex(0), &[ExpertId(1), ExpertId(0)]);
            }
        }
        assert!((0..20).all(|position| predictor.predict(Position(position), BlockIndex(0)).len() <= 2));
    }
}
