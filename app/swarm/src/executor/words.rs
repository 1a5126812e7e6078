//! What one author of chunks has said of passes and live conversations: the host, or a stage before one of this device's.
//!
//! The host numbers all chunks in one order, and a stage hands on what it gets. So nobody honest sends a chunk whose pass is not newer than
//! one in which they left its conversation out, in whatever order the two arrive. Every word is kept to that, not only the newest one:
//! the next stage may have heard another one last.

use std::collections::{BTreeMap, BTreeSet};

use potluck_plan::ConversationId;
use potluck_protocol::PassId;

#[derive(Default)]
pub(super) struct Words {
    /// The newest pass.
    newest: PassId,
    /// Conversations that it called live, each with the newest pass that did not.
    live: BTreeMap<ConversationId, PassId>,
}

impl Words {
    /// A chunk that came in time calls these conversations live. False if a newer one has said so already, or otherwise.
    pub fn hear(&mut self, pass: PassId, live: &BTreeSet<ConversationId>) -> bool {
        let is_newest = pass > self.newest;
        if is_newest {
            let not_live = |known: &ConversationId| self.live.get(known).copied().unwrap_or(self.newest);
            self.live = live.iter().map(|known| (*known, not_live(known))).collect();
            self.newest = pass;
        } else {
            for (_, not_live) in self.live.iter_mut().filter(|(known, _)| !live.contains(known)) {
                *not_live = pass.max(*not_live);
            }
        }
        is_newest
    }

    /// The author has left the conversation out with this pass or a newer one.
    pub fn exclude(&self, conversation: ConversationId, pass: PassId) -> bool {
        pass <= self.live.get(&conversation).copied().unwrap_or(self.newest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hear(words: &mut Words, pass: u64, live: &[u32]) -> bool {
        words.hear(PassId(pass), &live.iter().map(|id| ConversationId(*id)).collect())
    }

    #[test]
    fn every_word_counts_in_whatever_order_it_comes() {
        for order in [[5, 7, 9], [9, 7, 5], [7, 9, 5]] {
            let mut words = Words::default();
            for pass in order {
                hear(&mut words, pass, if pass == 7 { &[2] } else { &[1, 2] });
            }
            let excluded = [6, 7, 8].map(|pass| words.exclude(ConversationId(1), PassId(pass)));
            assert_eq!(excluded, [true, true, false], "7 left it out; heard as {order:?}");
            assert!(!words.exclude(ConversationId(2), PassId(1)), "it was live all the time; heard as {order:?}");
            assert!(words.exclude(ConversationId(3), PassId(9)) && !words.exclude(ConversationId(3), PassId(10)));
        }
    }

    #[test]
    fn the_same_pass_again_is_no_newer_word() {
        let mut words = Words::default();
        assert!(hear(&mut words, 10, &[1, 2]) && !hear(&mut words, 10, &[2]));
        assert!(words.exclude(ConversationId(1), PassId(10)), "it was left out with this pass");
    }
}
