//! Predictions that somebody else publishes: a shadow model's choices, some tokens ahead.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use potluck_plan::{BlockIndex, ExpertId, Position};

use crate::foresight::Shares;
use crate::{ForesightReport, Guess, Predictor};

/// Choices that are kept: those of two passes of eight tokens in models with many blocks.
const KEPT: usize = 4096;

/// What a shadow says about the tokens of a text, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShadowWord {
    /// An answer begins at this position.
    Begins(Position),
    /// What a token will probably use in a block. The latest word counts.
    Chose(Position, BlockIndex, Vec<ExpertId>),
    /// The token that will probably stand at a position, if those before it are the ones expected before.
    Expects(Position, u32),
    /// Everything from a position on is taken back: it was said of another token.
    TakenBack(Position),
}

/// Choices of the same tokens in another model. Clones share them: one publishes, the other predicts.
#[derive(Clone, Debug, Default)]
pub struct Published(Rc<RefCell<Inner>>);

/// Experts by token and block.
type Choices = BTreeMap<(Position, BlockIndex), Vec<ExpertId>>;

#[derive(Debug, Default)]
struct Inner {
    choices: Choices,
    /// What was chosen before anybody said so.
    chosen: Choices,
    /// Where the answer began.
    first: Position,
    shares: Shares,
    /// Tokens that were judged.
    tokens: u64,
    /// The last one of them in this answer.
    last: Option<Position>,
}

impl Inner {
    fn judge(&mut self, position: Position, experts: &[ExpertId], chosen: &[ExpertId]) {
        self.shares.judge(self.first, position, experts, chosen);
        if self.last.is_none_or(|last| last < position) {
            self.tokens += 1;
            self.last = Some(position);
        }
    }
}

/// How often what was published was chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PublishedRecall {
    /// The share of chosen experts that were published, in time or too late, by the index of the answer's token as in
    /// [`ForesightReport`].
    pub by_index: [Option<f64>; 4],
    /// The same of all tokens.
    pub all: Option<f64>,
    /// Tokens of which something was published.
    pub tokens: u64,
}

impl PublishedRecall {
    /// A report that tells of it, too.
    #[must_use]
    pub fn in_report(self, report: ForesightReport) -> ForesightReport {
        ForesightReport { shadow_by_index: self.by_index, shadow: self.all, shadow_tokens: self.tokens, ..report }
    }
}

impl Published {
    /// A shadow has said something.
    pub fn hear(&self, word: ShadowWord) {
        match word {
            ShadowWord::Begins(first) => self.begin(first),
            ShadowWord::Chose(position, block, experts) => self.publish(position, block, experts),
            ShadowWord::Expects(..) => {}
            ShadowWord::TakenBack(from) => self.withdraw(from),
        }
    }

    /// An answer begins at this position. What was said or chosen there before was of another one: a text may be rewound.
    pub fn begin(&self, first: Position) {
        let inner = &mut *self.0.borrow_mut();
        (inner.first, inner.last) = (first, None);
        for of_before in [&mut inner.choices, &mut inner.chosen] {
            of_before.retain(|(position, _), _| *position < first);
        }
    }

    /// What a token will probably use in a block. The latest word counts; one that comes too late is only judged.
    pub fn publish(&self, position: Position, block: BlockIndex, experts: Vec<ExpertId>) {
        let mut inner = self.0.borrow_mut();
        if let Some(chosen) = inner.chosen.remove(&(position, block)) {
            return inner.judge(position, &experts, &chosen);
        }
        inner.choices.insert((position, block), experts);
        if inner.choices.len() > KEPT {
            inner.choices.pop_first();
        }
    }

    /// Takes back everything from a position on: it was said of another token.
    pub fn withdraw(&self, from: Position) {
        self.0.borrow_mut().choices.retain(|(position, _), _| *position < from);
    }

    /// A token begins. What was chosen there or later was of drafts that were not accepted: it judges no word.
    pub fn rewind(&self, to: Position) {
        self.0.borrow_mut().chosen.retain(|(position, _), _| *position < to);
    }

    /// How often it was right.
    pub fn recall(&self) -> PublishedRecall {
        let inner = self.0.borrow();
        PublishedRecall { by_index: inner.shares.by_index(), all: inner.shares.all().get(), tokens: inner.tokens }
    }
}

impl Predictor for Published {
    fn name(&self) -> String {
        "shadow".to_owned()
    }

    fn predict(&self, position: Position, block: BlockIndex) -> Vec<Guess> {
        let inner = self.0.borrow();
        let experts = inner.choices.get(&(position, block)).map(Vec::as_slice).unwrap_or_default();
        experts.iter().map(|expert| Guess { expert: *expert, confidence: 1.0 }).collect()
    }

    /// The token is there: what was said of it and before is of no more use.
    fn observe(&mut self, position: Position, block: BlockIndex, chosen: &[ExpertId]) {
        let inner = &mut *self.0.borrow_mut();
        if position >= inner.first && inner.first.0 > 0 {
            match inner.choices.remove(&(position, block)) {
                Some(experts) => inner.judge(position, &experts, chosen),
                None => drop(inner.chosen.insert((position, block), chosen.to_vec())),
            }
            if inner.chosen.len() > KEPT {
                inner.chosen.pop_first();
            }
        }
        // Tokens of a pass are in each block together, one after another.
        inner.choices.retain(|(at, of), _| *at > position || *of > block);
    }

    fn restart(&mut self) {
        let inner = &mut *self.0.borrow_mut();
        inner.choices.clear();
        inner.chosen.clear();
        inner.first = Position(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_published_is_guessed_until_the_token_is_there() {
        let publisher = Published::default();
        let mut predictor = publisher.clone();
        let experts = |predictor: &Published, position, block| -> Vec<u16> {
            let guesses = predictor.predict(Position(position), BlockIndex(block));
            guesses.iter().map(|guess| guess.expert.0).collect()
        };
        publisher.publish(Position(3), BlockIndex(0), vec![ExpertId(2), ExpertId(1)]);
        publisher.publish(Position(3), BlockIndex(1), vec![ExpertId(4)]);
        publisher.hear(ShadowWord::Chose(Position(4), BlockIndex(0), vec![ExpertId(5)]));
        assert_eq!(experts(&predictor, 3, 0), [2, 1]);
        predictor.observe(Position(3), BlockIndex(0), &[]);
        assert!(experts(&predictor, 3, 0).is_empty(), "it has passed");
        assert_eq!(experts(&predictor, 3, 1), [4]);
        publisher.hear(ShadowWord::TakenBack(Position(4)));
        assert!(experts(&predictor, 4, 0).is_empty(), "it was another token");
        assert_eq!(experts(&predictor, 3, 1), [4]);
    }

    #[test]
    fn tokens_that_pass_together_are_guessed_until_each_of_them_is_there() {
        let publisher = Published::default();
        let mut predictor = publisher.clone();
        let all = (0..2).flat_map(|block| [3, 4].map(|position| (Position(position), BlockIndex(block))));
        all.clone().for_each(|(position, block)| publisher.publish(position, block, vec![ExpertId(1)]));
        for (position, block) in all {
            assert_eq!(predictor.predict(position, block).len(), 1, "{position:?} {block:?}");
            predictor.observe(position, block, &[ExpertId(1)]);
        }
        assert!(publisher.0.borrow().choices.is_empty());
    }

    #[test]
    fn what_comes_too_late_is_judged_but_not_guessed() {
        let publisher = Published::default();
        let mut predictor = publisher.clone();
        publisher.begin(Position(3));
        publisher.publish(Position(3), BlockIndex(0), vec![ExpertId(1), ExpertId(2)]);
        predictor.observe(Position(3), BlockIndex(0), &[ExpertId(1), ExpertId(5)]);
        predictor.observe(Position(3), BlockIndex(1), &[ExpertId(7), ExpertId(8)]);
        publisher.publish(Position(3), BlockIndex(1), vec![ExpertId(7), ExpertId(8)]);
        assert!(predictor.predict(Position(3), BlockIndex(1)).is_empty(), "the block has passed");
        let by_index = [Some(0.75), None, None, None];
        assert_eq!(publisher.recall(), PublishedRecall { by_index, all: Some(0.75), tokens: 1 });
    }

    #[test]
    fn a_text_that_is_rewound_forgets_the_answer_that_it_had() {
        let publisher = Published::default();
        let mut predictor = publisher.clone();
        publisher.begin(Position(3));
        predictor.observe(Position(3), BlockIndex(0), &[ExpertId(1)]);
        publisher.publish(Position(5), BlockIndex(0), vec![ExpertId(2)]);
        publisher.begin(Position(3));
        assert!(predictor.predict(Position(5), BlockIndex(0)).is_empty(), "said of the answer before");
        publisher.publish(Position(3), BlockIndex(0), vec![ExpertId(4)]);
        assert_eq!(publisher.recall().all, None, "what the answer before chose judges no word on this one");
        let guesses = predictor.predict(Position(3), BlockIndex(0));
        assert_eq!(guesses.first().map(|guess| guess.expert), Some(ExpertId(4)), "the word came in time");
    }

    #[test]
    fn what_a_rejected_draft_chose_judges_no_word() {
        let publisher = Published::default();
        let mut predictor = publisher.clone();
        publisher.begin(Position(3));
        [3, 4].iter().for_each(|position| predictor.observe(Position(*position), BlockIndex(0), &[ExpertId(1)]));
        publisher.rewind(Position(4));
        publisher.publish(Position(4), BlockIndex(0), vec![ExpertId(2)]);
        assert_eq!(publisher.recall().all, None);
        assert_eq!(predictor.predict(Position(4), BlockIndex(0)).len(), 1, "it comes in time for the right token");
    }

    #[test]
    fn what_nobody_asks_for_does_not_pile_up() {
        let published = Published::default();
        (0..5_000).for_each(|position| published.publish(Position(position), BlockIndex(0), Vec::new()));
        assert_eq!(published.0.borrow().choices.len(), KEPT);
    }
}
