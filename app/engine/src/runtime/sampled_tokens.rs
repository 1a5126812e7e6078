//! Tracks which conversations' next tokens are on the GPU. The token that the LM head samples stays in a slot there, so
//! that the next step can start before the token is read back.

use potluck_plan::{ConversationId, Position};

/// Slots of conversations. No GPU here.
#[derive(Debug, Default)]
pub struct SampledTokens {
    slots: [Option<(ConversationId, Option<Position>)>; SampledTokens::SLOTS],
    next: usize,
}

impl SampledTokens {
    /// Number of slots. Further conversations evict the oldest.
    pub const SLOTS: usize = 16;

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
    pub fn keep(&mut self, slot: usize, position: Position) {
        if let Some((_, known)) = &mut self.slots[slot] {
            *known = Some(position);
        }
    }

    /// Finds the slot that holds the token of a position.
    pub fn find(&self, conversation: ConversationId, position: Position) -> Option<usize> {
        self.slots.iter().position(|slot| *slot == Some((conversation, Some(position))))
    }

    /// Invalidates a conversation's sampled tokens.
    pub fn forget(&mut self, conversation: ConversationId) {
        self.slots.iter_mut().filter(|slot| slot.is_some_and(|(owner, _)| owner == conversation)).for_each(|slot| {
            *slot = None;
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_found_by_its_position_until_something_else_happens() {
        let mut sampled = SampledTokens::default();
        let talk = ConversationId(1);
        let slot = sampled.slot(talk);
        assert_eq!(sampled.find(talk, Position(5)), None);
        sampled.keep(slot, Position(5));
        assert_eq!((sampled.find(talk, Position(5)), sampled.find(talk, Position(4))), (Some(slot), None));
        assert_eq!(sampled.slot(talk), slot);
        assert_eq!(sampled.find(talk, Position(5)), None, "a new forward pass invalidates it");
    }

    #[test]
    fn many_conversations_share_the_slots() {
        let mut sampled = SampledTokens::default();
        for id in 0..=SampledTokens::SLOTS as u32 {
            let slot = sampled.slot(ConversationId(id));
            sampled.keep(slot, Position(1));
        }
        assert_eq!(sampled.find(ConversationId(0), Position(1)), None, "the oldest made room");
        assert!(sampled.find(ConversationId(1), Position(1)).is_some());
        sampled.forget(ConversationId(1));
        assert_eq!(sampled.find(ConversationId(1), Position(1)), None);
    }
}
