//! How far a shadow is ahead of the conversation that it follows.

use std::collections::VecDeque;

use potluck_plan::{BatchToken, ConversationId, Position};
use potluck_predict::Alignment;

/// Tokens that a shadow runs ahead of its base.
const AHEAD: usize = 3;
/// Tokens that it runs ahead of its drafts that are under way, at most.
const AHEAD_OF_DRAFTS: usize = 7;
/// Weight of one token in the share of those that were expected.
const NEWEST: f64 = 0.25;
/// It is trusted if it expected at least this share of the last tokens.
const TRUSTED: f64 = 0.5;

/// A token of the base, as the shadow takes it.
pub struct FollowedToken {
    /// The base's, or the shadow's own where it is not aligned.
    pub token: u32,
    pub own: Option<Expected>,
}

/// What the shadow expects next.
#[derive(Clone, Copy)]
pub struct Expected {
    pub position: Position,
    pub token: u32,
    /// The token after it, if it was computed ahead.
    pub after: Option<u32>,
}

/// The conversation that is followed.
pub struct Following {
    pub conversation: ConversationId,
    /// Where the answer began.
    pub first: Position,
    /// What the shadow expects next; of the last one it is not known what follows.
    pub expected: VecDeque<Expected>,
    /// Somebody wants to know.
    pub wanted: bool,
    /// The share of the last tokens that the shadow expected.
    right: f64,
    /// What passes together with the last token.
    pub drafts: Vec<(BatchToken, u32)>,
    /// The base's keys and values are due.
    pub takes_kv: bool,
    /// Tokens of the base that are still to be computed.
    pub skipped: Vec<(BatchToken, u32)>,
}

impl Following {
    pub fn new(conversation: ConversationId) -> Self {
        Self {
            conversation,
            first: Position(0),
            expected: VecDeque::new(),
            wanted: false,
            right: 1.0,
            drafts: Vec::new(),
            takes_kv: false,
            skipped: Vec::new(),
        }
    }

    /// The base has a token: which one the shadow goes on with, and what it had expected there.
    pub fn take(&mut self, alignment: Alignment, row: BatchToken, token: u32) -> FollowedToken {
        let index = self.index(alignment, row.position);
        self.expected.retain(|expected| expected.position >= row.position);
        let own = self.expected.front().copied().filter(|own| own.position == row.position);
        if let Some(own) = own {
            self.right += NEWEST * (f64::from(u8::from(own.token == token)) - self.right);
        }
        let token = own.filter(|_| !alignment.takes_token(index)).map_or(token, |own| own.token);
        FollowedToken { token, own }
    }

    /// The index of a token in its answer. Keys and values may be due there.
    fn index(&mut self, alignment: Alignment, position: Position) -> u32 {
        let index = position.0.saturating_sub(self.first.0);
        self.takes_kv |= alignment.takes_kv(index) && index > 0;
        index
    }

    /// The base goes on from a position, so the drafts before that were accepted: returns how many. Those that were not
    /// expected are computed later.
    pub fn accept(&mut self, alignment: Alignment, until: Position) -> u32 {
        let mut accepted = 0;
        for (row, token) in std::mem::take(&mut self.drafts) {
            if row.position >= until {
                break;
            }
            accepted += 1;
            let FollowedToken { token, own } = self.take(alignment, row, token);
            if own.is_some_and(|own| own.token == token && own.after.is_some()) {
                self.expected.pop_front();
            } else {
                self.expected.clear();
                self.skipped.push((row, token));
            }
        }
        accepted
    }

    /// It expected most of the last tokens.
    pub fn is_trusted(&self) -> bool {
        self.right >= TRUSTED
    }

    /// How many tokens it runs ahead of the certain one.
    pub fn ahead(&self) -> usize {
        let is_own = |(row, token): &&(BatchToken, u32)| {
            self.expected.iter().any(|own| own.position == row.position && own.token == *token)
        };
        match self.drafts.iter().take_while(is_own).count() {
            taken @ 1.. if self.is_trusted() => taken + AHEAD.max(2 * (taken + 1)).min(AHEAD_OF_DRAFTS),
            _ => AHEAD,
        }
    }

    /// A token of the base that is computed later.
    pub fn skip(&mut self, alignment: Alignment, row: BatchToken, token: u32) {
        self.index(alignment, row.position);
        self.skipped.retain(|(at, _)| at.position < row.position);
        self.skipped.push((row, token));
        self.expected.clear();
        self.wanted = false;
    }

    /// The shadow has computed a token at a position ahead, and it was the right one.
    pub fn has_computed(&self, position: Position, token: u32) -> bool {
        let is_it = |own: &Expected| own.position == position && own.token == token && own.after.is_some();
        self.expected.iter().any(is_it)
    }

    pub fn last(&self) -> Option<Expected> {
        self.expected.back().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: ConversationId = ConversationId(1);

    /// After a prompt of ten tokens: the shadow expects these, and has computed all but the last.
    fn following(expected: &[u32]) -> Following {
        let mut now = Following { first: Position(10), ..Following::new(TEXT) };
        for (index, token) in expected.iter().enumerate() {
            let after = expected.get(index + 1).copied();
            now.expected.push_back(Expected { position: Position(10 + index as u32), token: *token, after });
        }
        now
    }

    fn row(position: u32) -> BatchToken {
        BatchToken { conversation: TEXT, position: Position(position) }
    }

    fn drafts(tokens: &[u32]) -> Vec<(BatchToken, u32)> {
        (10..).map(row).zip(tokens.iter().copied()).collect()
    }

    fn tokens(now: &Following) -> Vec<u32> {
        now.expected.iter().map(|expected| expected.token).collect()
    }

    #[test]
    fn drafts_that_were_expected_and_accepted_are_passed() {
        let mut now = following(&[5, 6, 7, 8]);
        now.drafts = drafts(&[5, 6, 9]);
        assert_eq!(now.accept(Alignment::each_token(), Position(12)), 2, "the third was not accepted");
        assert_eq!((tokens(&now), now.skipped.len()), (vec![7, 8], 0));
        assert_eq!(now.accept(Alignment::each_token(), Position(20)), 0, "each is accepted once");
    }

    #[test]
    fn accepted_drafts_that_were_not_expected_are_computed_later() {
        let mut now = following(&[5, 6, 7]);
        now.drafts = drafts(&[5, 4, 7]);
        assert_eq!(now.accept(Alignment::each_token(), Position(13)), 3);
        assert_eq!(tokens(&now), [0u32; 0], "what followed the wrong one counts for nothing");
        assert_eq!(
            now.skipped.iter().map(|(row, token)| (row.position.0, *token)).collect::<Vec<_>>(),
            [(11, 4), (12, 7)]
        );
        let mut unknown = following(&[]);
        unknown.drafts = drafts(&[5, 6]);
        assert_eq!((unknown.accept(Alignment::each_token(), Position(12)), unknown.skipped.len()), (2, 2));
    }

    #[test]
    fn a_shadow_is_trusted_again_once_it_is_mostly_right() {
        let mut now = following(&[]);
        let token = |now: &mut Following, position: u32, right: bool| {
            now.expected = following(&[1]).expected;
            now.expected[0].position = Position(position);
            now.take(Alignment::each_token(), row(position), u32::from(right));
            now.is_trusted()
        };
        assert!(token(&mut now, 10, false), "one wrong token is no reason");
        assert!((11..20).all(|position| !token(&mut now, position, false) || position < 13), "many are");
        assert!((20..30).any(|position| token(&mut now, position, true)));
    }

    #[test]
    fn it_runs_further_ahead_where_its_tokens_are_taken() {
        let mut now = following(&[1; 7]);
        let ahead = [0, 1, 3, 7].map(|taken| {
            now.drafts = drafts(&vec![1; taken]);
            now.ahead() - taken
        });
        assert_eq!(ahead, [3, 4, 7, 7], "beyond the drafts of the pass");
        now.drafts = drafts(&[2; 7]);
        assert_eq!(now.ahead(), 3, "the drafts are not its own");
    }
}
