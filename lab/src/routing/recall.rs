//! Recall: how many of the experts that a model used were predicted (od-moe.txt 3.2, equations 2 and 3).

use potluck_plan::{BlockIndex, Position};

use potluck_predict::Predictor;

use super::Trace;

/// Correct guesses by the index of the answer's token.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recall {
    /// For each token of the answers, over all sequences: correct guesses and experts used.
    pub by_token: Vec<(u64, u64)>,
}

impl Recall {
    /// Equation 3: the share of correct guesses over all tokens; 1 if there are none.
    pub fn overall(&self) -> f64 {
        self.between(0, self.by_token.len())
    }

    /// Equation 2, over the tokens `start..end` of the answers.
    pub fn between(&self, start: usize, end: usize) -> f64 {
        let tokens = self.by_token.iter().take(end).skip(start);
        let (correct, all) = tokens.fold((0, 0), |sum, token| (sum.0 + token.0, sum.1 + token.1));
        if all == 0 { 1.0 } else { correct as f64 / all as f64 }
    }
}

/// The recall of a predictor that may guess as many experts as the model uses. It sees the prompts, but is judged by the
/// answers only.
pub fn recall(trace: &Trace, predictor: &mut dyn Predictor) -> Recall {
    let shape = trace.shape;
    let mut recall = Recall::default();
    for sequence in &trace.sequences {
        predictor.restart();
        for position in (0..sequence.tokens(shape)).map(Position) {
            for block in (0..shape.blocks).map(BlockIndex) {
                let Some(chosen) = sequence.chosen(shape, 0, position, block) else { continue };
                if let Some(index) = position.0.checked_sub(sequence.prompt) {
                    let guesses = predictor.predict(position, block);
                    let guessed = guesses.iter().take(chosen.len());
                    let correct = guessed.filter(|guess| chosen.contains(&guess.expert)).count();
                    let index = index as usize;
                    recall.by_token.resize(recall.by_token.len().max(index + 1), (0, 0));
                    recall.by_token[index].0 += correct as u64;
                    recall.by_token[index].1 += chosen.len() as u64;
                }
                predictor.observe(position, block, chosen);
            }
        }
    }
    recall
}

#[cfg(test)]
pub(crate) mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use potluck_plan::ExpertId;

    use super::*;
    use potluck_predict::{GivenLast, MostFrequent, TraceShape};

    use crate::routing::{MostRecent, Nothing, Recorded, Sequence};

    /// Two invented conversations with a prompt of five tokens: tokens follow each other in a random order of eight, each
    /// uses its own experts, and one choice in ten is another. A second channel is right in nine of ten tokens.
    pub fn text(shape: TraceShape, tokens: u32, seed: u64) -> Trace {
        let mut state = seed;
        let mut random = move |end: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % end
        };
        let mut of_token = |word: u64, noise: bool| -> Vec<ExpertId> {
            let each = (0..shape.blocks).flat_map(|block| {
                let start = word * 3 + u64::from(block) + if noise { 1 + random(8) } else { 0 };
                let stride = 1 + (word + u64::from(block)) % 2;
                let mut chosen = Vec::new();
                let mut next = start;
                while chosen.len() < usize::from(shape.used) {
                    let expert = ExpertId((next % u64::from(shape.experts)) as u16);
                    if chosen.contains(&expert) {
                        next += 1
                    } else {
                        chosen.push(expert)
                    }
                    next += if chosen.len() < usize::from(shape.experts) / 2 { stride } else { 0 };
                }
                chosen
            });
            each.collect()
        };
        let mut sequence = |start: u64| {
            let mut experts = vec![Vec::new(), Vec::new()];
            for token in 0..u64::from(tokens) {
                let word = (start + token * token % 7) % 8;
                let base = of_token(word, token % 10 == 9);
                let shadow = if token % 10 == 4 { of_token(word, true) } else { base.clone() };
                experts[0].extend(base);
                experts[1].extend(shadow);
            }
            Sequence { prompt: 5, experts }
        };
        let sequences = vec![sequence(0), sequence(3)];
        Trace { shape, channels: vec!["base".to_owned(), "shadow".to_owned()], sequences }
    }

    const SHAPE: TraceShape = TraceShape { blocks: 4, experts: 16, used: 2 };

    #[test]
    fn a_recorded_channel_has_the_recall_that_it_has() {
        let trace = text(SHAPE, 205, 3);
        let perfect = recall(&trace, &mut Recorded::new(&trace, "base").unwrap());
        assert_eq!((perfect.overall(), perfect.by_token.len()), (1.0, 200), "200 tokens of the answer");
        let shadow = recall(&trace, &mut Recorded::new(&trace, "shadow").unwrap());
        assert!((0.88..0.97).contains(&shadow.overall()), "wrong in one token of ten: {}", shadow.overall());
        assert!(Recorded::new(&trace, "other").is_none());
        assert_eq!(recall(&trace, &mut Nothing).overall(), 0.0);
    }

    #[test]
    fn what_followed_says_more_than_what_is_frequent() {
        let trace = text(SHAPE, 405, 3);
        let of = |predictor: &mut dyn Predictor| recall(&trace, predictor).between(100, 400);
        let recent = of(&mut MostRecent::new(SHAPE));
        let frequent = of(&mut MostFrequent::new(SHAPE));
        let given = of(&mut GivenLast::new(SHAPE));
        assert!(given > frequent && given > recent, "{given}, {frequent} by frequency, {recent} by recency");
    }
}
