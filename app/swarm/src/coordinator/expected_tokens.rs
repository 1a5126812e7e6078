//! The tokens that a shadow model expects after an answer's log (od-moe.txt 3.2). They are its draft tokens.

use std::collections::VecDeque;

use potluck_predict::ShadowWord;

use super::draft::Acceptance;

/// Limit on tokens that are kept. No shadow is that far ahead.
const KEPT: usize = 64;

/// What a shadow has said of the tokens to come.
#[derive(Debug, Default)]
pub(super) struct ExpectedTokens {
    /// Where the first of them stands.
    first: usize,
    tokens: VecDeque<u32>,
    /// The model chose otherwise, and the shadow has not said yet that it knows.
    is_lost: bool,
    pub acceptance: Acceptance,
}

impl ExpectedTokens {
    pub fn hear(&mut self, word: &ShadowWord) {
        match *word {
            ShadowWord::Begins(_) => (self.is_lost, self.tokens) = (false, VecDeque::new()),
            ShadowWord::Chose(..) => {}
            ShadowWord::Expects(position, token) if !self.is_lost => self.push(position.0 as usize, token),
            ShadowWord::Expects(..) => {}
            ShadowWord::TakenBack(from) => {
                self.is_lost = false;
                self.tokens.truncate((from.0 as usize).saturating_sub(self.first));
            }
        }
    }

    /// Tokens of one text follow each other: those from this position on are replaced, and a gap begins another text.
    fn push(&mut self, position: usize, token: u32) {
        match position.checked_sub(self.first) {
            Some(KEPT..) if !self.tokens.is_empty() => return,
            Some(at) if at <= self.tokens.len() => self.tokens.truncate(at),
            _ => (self.first, self.tokens) = (position, VecDeque::new()),
        }
        self.tokens.push_back(token);
    }

    /// Compares what was expected with what the log holds now. From a wrong token on nothing counts.
    pub fn judge(&mut self, log: &[u32]) {
        while let Some(token) = log.get(self.first).filter(|_| !self.tokens.is_empty()) {
            let right = self.tokens.pop_front() == Some(*token);
            self.acceptance.judge(right);
            self.first += 1;
            if !right {
                self.tokens.clear();
                self.is_lost = true;
            }
        }
    }

    /// The tokens that are expected after a log that was judged.
    pub fn after(&self, log: &[u32]) -> impl ExactSizeIterator<Item = u32> + '_ {
        let count = if self.first == log.len() { self.tokens.len() } else { 0 };
        self.tokens.iter().take(count).copied()
    }
}

#[cfg(test)]
mod tests {
    use potluck_plan::Position;

    use super::*;

    fn after_log(expected: &mut ExpectedTokens, log: &[u32]) -> Vec<u32> {
        expected.judge(log);
        expected.after(log).collect()
    }

    fn expect(expected: &mut ExpectedTokens, from: u32, tokens: &[u32]) {
        for (position, token) in (from..).zip(tokens) {
            expected.hear(&ShadowWord::Expects(Position(position), *token));
        }
    }

    #[test]
    fn what_is_expected_follows_the_log_while_it_is_right() {
        let mut expected = ExpectedTokens::default();
        expected.hear(&ShadowWord::Begins(Position(2)));
        expect(&mut expected, 2, &[5, 6, 7]);
        assert_eq!(after_log(&mut expected, &[1, 1]), [5, 6, 7]);
        assert_eq!(after_log(&mut expected, &[1, 1, 5]), [6, 7]);
        expect(&mut expected, 5, &[8]);
        assert_eq!(after_log(&mut expected, &[1, 1, 5, 6, 7]), [8], "several at once");
        assert_eq!(after_log(&mut expected, &[1, 1, 5, 6, 7, 8, 9]), [0u32; 0], "the log is further");
        expect(&mut expected, 6, &[9, 10]);
        assert_eq!(after_log(&mut expected, &[1, 1, 5, 6, 7, 8, 9]), [10], "a word that was late counts nevertheless");
    }

    #[test]
    fn after_a_wrong_token_nothing_counts_until_the_shadow_knows() {
        let mut expected = ExpectedTokens::default();
        expect(&mut expected, 2, &[5, 6, 7]);
        assert_eq!(after_log(&mut expected, &[1, 1, 5, 9]), [0u32; 0], "it expected another one");
        expect(&mut expected, 5, &[8]);
        assert_eq!(after_log(&mut expected, &[1, 1, 5, 9, 2]), [0u32; 0], "said of the text that did not come");
        expected.hear(&ShadowWord::TakenBack(Position(4)));
        expect(&mut expected, 5, &[3]);
        assert_eq!(after_log(&mut expected, &[1, 1, 5, 9, 2]), [3]);
    }

    #[test]
    fn what_is_taken_back_or_begins_elsewhere_is_forgotten() {
        let mut expected = ExpectedTokens::default();
        expect(&mut expected, 2, &[5, 6, 7]);
        expected.hear(&ShadowWord::TakenBack(Position(3)));
        assert_eq!(after_log(&mut expected, &[1, 1]), [5]);
        expect(&mut expected, 3, &[8, 9]);
        expect(&mut expected, 3, &[4]);
        assert_eq!(after_log(&mut expected, &[1, 1]), [5, 4], "the latest word counts");
        expect(&mut expected, 9, &[4]);
        assert_eq!(after_log(&mut expected, &[1, 1]), [0u32; 0], "a gap");
        expect(&mut expected, 2, &[5]);
        expected.hear(&ShadowWord::Begins(Position(7)));
        assert_eq!(after_log(&mut expected, &[1, 1]), [0u32; 0], "of another answer");
    }

    #[test]
    fn a_shadow_that_runs_far_ahead_does_not_pile_up_tokens() {
        let mut expected = ExpectedTokens::default();
        expect(&mut expected, 2, &[5; 100]);
        assert_eq!(after_log(&mut expected, &[1, 1]).len(), KEPT);
    }
}
