//! Predictions that somebody else publishes: a shadow model's choices, a token ahead.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use potluck_plan::{BlockIndex, ExpertId, Position};

use crate::{Guess, Predictor};

/// Choices that are kept: those of a few tokens.
const KEPT: usize = 1024;

/// Choices of the same tokens in another model. Clones share them: one publishes, the other predicts.
#[derive(Clone, Debug, Default)]
pub struct Published(Rc<RefCell<Choices>>);

/// Experts by token and block.
type Choices = BTreeMap<(Position, BlockIndex), Vec<ExpertId>>;

impl Published {
    /// What a token will probably use in a block. The latest word counts.
    pub fn publish(&self, position: Position, block: BlockIndex, experts: Vec<ExpertId>) {
        let mut all = self.0.borrow_mut();
        all.insert((position, block), experts);
        if all.len() > KEPT {
            all.pop_first();
        }
    }

    /// Takes back everything from a position on: it was said of another token.
    pub fn withdraw(&self, from: Position) {
        self.0.borrow_mut().retain(|(position, _), _| *position < from);
    }
}

impl Predictor for Published {
    fn name(&self) -> String {
        "shadow".to_owned()
    }

    fn predict(&self, position: Position, block: BlockIndex) -> Vec<Guess> {
        let all = self.0.borrow();
        let experts = all.get(&(position, block)).map(Vec::as_slice).unwrap_or_default();
        experts.iter().map(|expert| Guess { expert: *expert, confidence: 1.0 }).collect()
    }

    /// The token is there: what was said of it and before is of no more use.
    fn observe(&mut self, position: Position, block: BlockIndex, _: &[ExpertId]) {
        self.0.borrow_mut().retain(|(at, of), _| *at > position || (*at == position && *of > block));
    }

    fn restart(&mut self) {
        self.0.borrow_mut().clear();
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
        publisher.publish(Position(4), BlockIndex(0), vec![ExpertId(5)]);
        assert_eq!(experts(&predictor, 3, 0), [2, 1]);
        predictor.observe(Position(3), BlockIndex(0), &[]);
        assert!(experts(&predictor, 3, 0).is_empty(), "it has passed");
        assert_eq!(experts(&predictor, 3, 1), [4]);
        publisher.withdraw(Position(4));
        assert!(experts(&predictor, 4, 0).is_empty(), "it was another token");
        assert_eq!(experts(&predictor, 3, 1), [4]);
    }

    #[test]
    fn what_nobody_asks_for_does_not_pile_up() {
        let published = Published::default();
        (0..5_000).for_each(|position| published.publish(Position(position), BlockIndex(0), Vec::new()));
        assert_eq!(published.0.borrow().len(), KEPT);
    }
}
