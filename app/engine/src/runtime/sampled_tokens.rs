//! Tracks which conversations' next tokens are on the GPU. The token that the LM head samples stays in a slot there, so
//! that the next step can start before the token is read back.

use potluck_plan::{ConversationId, Position, SampledSteps, SamplingWords};

/// How a token was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Choice {
    /// The best candidate.
    Best,
    /// By the sampler, which has the newest tokens beside it.
    Sampled,
}

/// A conversation's slot, and of which position its token is.
type Slot = (ConversationId, Option<(Position, Choice)>);

/// Slots of conversations. No GPU here.
#[derive(Debug, Default)]
pub struct SampledTokens {
    slots: [Option<Slot>; SampledTokens::SLOTS],
    next: usize,
}

impl SampledTokens {
    /// Number of slots. Further conversations evict the oldest.
    pub const SLOTS: usize = 16;
    /// Bytes from one slot's sampler parameters and newest tokens to the next.
    pub const STRIDE: u64 = 768;

    /// Returns the slot of a conversation, evicting another one if needed. Its token is unknown until
    /// [`SampledTokens::keep`].
    pub fn slot(&mut self, conversation: ConversationId) -> usize {
        let own = self.slots.iter().position(|slot| slot.is_some_and(|(owner, _)| owner == conversation));
        let slot = own.unwrap_or_else(|| {
            self.next = (self.next + 1) % Self::SLOTS;
            self.next
        });
        self.slots[slot] = Some((conversation, None));
        slot
    }

    /// Records that the slot holds the token of this position.
    pub fn keep(&mut self, slot: usize, position: Position, choice: Choice) {
        if let Some((_, known)) = &mut self.slots[slot] {
            *known = Some((position, choice));
        }
    }

    /// Finds the slot that holds the token of a position.
    pub fn find(&self, conversation: ConversationId, position: Position, choice: Choice) -> Option<usize> {
        self.slots.iter().position(|slot| *slot == Some((conversation, Some((position, choice)))))
    }

    /// Invalidates a conversation's sampled tokens.
    pub fn forget(&mut self, conversation: ConversationId) {
        self.slots.iter_mut().filter(|slot| slot.is_some_and(|(owner, _)| owner == conversation)).for_each(|slot| {
            *slot = None;
        });
    }
}

/// What the sampler finds beside the token of a position: its parameters, then the newest tokens, each at its position
/// modulo their number.
pub fn sampler_state(steps: &SampledSteps, position: Position) -> Vec<u32> {
    let mut state = vec![0; SamplingWords::LEN + SampledSteps::MAX_WINDOW as usize];
    let (words, ring) = state.split_at_mut(SamplingWords::LEN);
    words.copy_from_slice(SamplingWords::of(&steps.sampling).words());
    for (at, token) in (0..=position.0).rev().zip(steps.recent.iter().rev()).take(ring.len()) {
        ring[(at % SampledSteps::MAX_WINDOW) as usize] = *token;
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_found_by_its_position_until_something_else_happens() {
        let mut sampled = SampledTokens::default();
        let talk = ConversationId(1);
        let slot = sampled.slot(talk);
        assert_eq!(sampled.find(talk, Position(5), Choice::Best), None);
        sampled.keep(slot, Position(5), Choice::Best);
        assert_eq!(
            (sampled.find(talk, Position(5), Choice::Best), sampled.find(talk, Position(4), Choice::Best)),
            (Some(slot), None)
        );
        assert_eq!(sampled.find(talk, Position(5), Choice::Sampled), None, "the newest tokens are not beside it");
        assert_eq!(sampled.slot(talk), slot);
        assert_eq!(sampled.find(talk, Position(5), Choice::Best), None, "a new forward pass invalidates it");
    }

    #[test]
    fn many_conversations_share_the_slots() {
        let mut sampled = SampledTokens::default();
        for id in 0..=SampledTokens::SLOTS as u32 {
            let slot = sampled.slot(ConversationId(id));
            sampled.keep(slot, Position(1), Choice::Best);
        }
        assert_eq!(sampled.find(ConversationId(0), Position(1), Choice::Best), None, "the oldest made room");
        assert!(sampled.find(ConversationId(1), Position(1), Choice::Best).is_some());
        sampled.forget(ConversationId(1));
        assert_eq!(sampled.find(ConversationId(1), Position(1), Choice::Best), None);
    }

    #[test]
    fn the_newest_tokens_lie_at_their_positions() {
        let state = |recent: Vec<u32>, position| {
            sampler_state(&SampledSteps { sampling: Default::default(), recent }, Position(position))
                .split_off(SamplingWords::LEN)
        };
        let tokens = state(vec![7, 8, 9], 129);
        assert_eq!((tokens[127], tokens[0], tokens[1]), (7, 8, 9));
        assert_eq!(state((0..200).collect(), 0)[..2], [199, 0], "nothing lies before the first position");
    }
}
