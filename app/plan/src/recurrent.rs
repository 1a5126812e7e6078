//! Where the recurrent state of a conversation can be taken up again. Keys and values can be truncated to any position;
//! a recurrent state only continues, so copies of it are kept at some positions.
//!
//! Which copies exist follows from the work alone, so that a coordinator knows without asking what every stage has.

use crate::KernelClass;

/// Copies are taken after positions that are multiples of this, the positions of a page of keys and values.
pub const CHECKPOINT_TOKENS: u32 = crate::KV_PAGE_TOKENS;

/// Conversations that may have recurrent state at a time. Each takes [`StateHistory::SLOTS`] states, which are large
/// (some 63 MB for a model of 35 billion weights), so there are fewer than an engine could batch.
pub const STATE_CONVERSATIONS: u32 = 4;

/// A kept copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Checkpoint {
    /// Positions that it has seen.
    position: u32,
    slot: u8,
    /// Which class of kernels computed the position before it.
    class: KernelClass,
}

/// The states of one conversation: the live one, which grows with each token, and copies of earlier ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StateHistory {
    live: u32,
    /// By position.
    kept: Vec<Checkpoint>,
}

/// What work does with the slots of its conversation; see [`StateHistory::SLOTS`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StateMoves {
    /// The slot that it begins from; `None` for the state of an empty conversation.
    pub from: Option<u8>,
    /// Copies to take: after how many positions of the conversation, and into which slot.
    pub copies: Vec<(u32, u8)>,
}

impl StateHistory {
    /// The slot of the live state.
    pub const LIVE: u8 = 0;
    /// States of a conversation: the live one and three copies.
    pub const SLOTS: u32 = 4;
    /// Of the copies, so many are kept for the end of the last prompt, where an answer is written anew.
    const OF_PROMPT: usize = 2;

    /// The last position up to `wanted` where work can begin: where the live state ends, at a copy, or at the start.
    pub fn base(&self, wanted: u32) -> u32 {
        let ends = self.kept.iter().map(|kept| kept.position).chain([self.live]);
        ends.filter(|position| *position <= wanted).max().unwrap_or(0)
    }

    /// Work computes positions `base..end`. `None`, and nothing changes, if it cannot begin there.
    pub fn advance(&mut self, base: u32, end: u32, class: KernelClass) -> Option<StateMoves> {
        let kept = self.kept.iter().find(|kept| kept.position == base);
        let from = match kept {
            _ if base == 0 => None,
            _ if base == self.live => Some(Self::LIVE),
            Some(kept) => Some(kept.slot),
            None => return None,
        };
        self.kept.retain(|kept| kept.position <= base);
        self.live = end;
        let mut copies = Vec::new();
        let mut position = (base / CHECKPOINT_TOKENS + 1).saturating_mul(CHECKPOINT_TOKENS);
        while position <= end {
            let slot = self.free_slot();
            self.kept.push(Checkpoint { position, slot, class });
            copies.push((position, slot));
            position = position.saturating_add(CHECKPOINT_TOKENS);
        }
        Some(StateMoves { from, copies })
    }

    /// A slot for the next copy. If there is none, the oldest copy goes that is not of the prompt's end.
    fn free_slot(&mut self) -> u8 {
        let mut slots = 1..Self::SLOTS as u8;
        if let Some(free) = slots.find(|slot| self.kept.iter().all(|kept| kept.slot != *slot)) {
            return free;
        }
        let of_prompt = |kept: &&Checkpoint| kept.class == KernelClass::Prefill;
        let prompt: Vec<u32> = self.kept.iter().rev().filter(of_prompt).map(|kept| kept.position).collect();
        let protected = &prompt[..prompt.len().min(Self::OF_PROMPT)];
        let oldest = self.kept.iter().position(|kept| !protected.contains(&kept.position)).unwrap_or(0);
        self.kept.remove(oldest).slot
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;
    use KernelClass::{Decode, Prefill};

    /// A prompt of 200 tokens and 100 tokens of an answer.
    fn answered() -> StateHistory {
        let mut history = StateHistory::default();
        history.advance(0, 200, Prefill).unwrap();
        (200..300).for_each(|at| assert!(history.advance(at, at + 1, Decode).is_some()));
        history
    }

    #[test]
    fn work_begins_where_a_state_ends() {
        let history = answered();
        assert_eq!(history.base(300), 300, "the live state");
        assert_eq!(history.base(299), 256, "the newest copy");
        assert_eq!(history.base(199), 192, "the answer anew");
        assert_eq!(history.base(191), 128);
        assert_eq!(history.base(100), 0, "all of it");
    }

    #[test]
    fn work_elsewhere_is_refused_and_changes_nothing() {
        let mut history = answered();
        assert_eq!(history.advance(299, 300, Decode), None);
        assert_eq!(history, answered());
    }

    #[test]
    fn copies_do_not_depend_on_the_chunks() {
        let mut chunks = StateHistory::default();
        for (base, end) in [(0, 50), (50, 70), (70, 199), (199, 200)] {
            chunks.advance(base, end, Prefill).unwrap();
        }
        let mut whole = StateHistory::default();
        whole.advance(0, 200, Prefill).unwrap();
        assert_eq!(chunks, whole);
    }

    #[test]
    fn a_copy_is_restored_and_later_ones_are_gone() {
        let mut history = answered();
        let moves = history.advance(192, 260, Decode).unwrap();
        let restored = moves.from.unwrap();
        assert_ne!(restored, StateHistory::LIVE);
        assert!(moves.copies.iter().all(|(at, slot)| *at == 256 && *slot != restored), "{moves:?}");
        assert_eq!((history.base(260), history.base(255)), (260, 192));
        assert_eq!(history.advance(0, 1, Prefill).unwrap(), StateMoves::default(), "from nothing");
        assert_eq!(history.base(64), 1);
    }

    #[test]
    fn a_long_answer_keeps_its_prompt() {
        let mut history = answered();
        (300..2_000).for_each(|at| assert!(history.advance(at, at + 1, Decode).is_some()));
        assert_eq!([history.base(1_999), history.base(1_900), history.base(191)], [1_984, 192, 128]);
    }
}
