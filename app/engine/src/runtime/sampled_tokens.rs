//! Which conversations' next tokens are on the GPU: the best candidate of a head stays in a slot there, so that the next
//! row can be started before anyone has read it.

use potluck_plan::{ConversationId, Position};

/// Slots by conversation. No GPU here.
#[derive(Debug, Default)]
pub struct SampledTokens {
    slots: [Option<(ConversationId, Option<Position>)>; SampledTokens::SLOTS],
    next: usize,
}

impl SampledTokens {
    /// Conversations whose tokens are kept; of more, the oldest is forgotten.
    pub const SLOTS: usize = 16;

    /// The slot of a conversation, taken from another one if need be. Its token is not known until [`SampledTokens::keep`].
    pub fn slot(&mut self, conversation: ConversationId) -> usize {
        let own = self.slots.iter().position(|slot| slot.is_some_and(|(owner, _)| owner == conversation));
        let slot = own.unwrap_or_else(|| {
            self.next = (self.next + 1) % Self::SLOTS;
            self.next
        });
        self.slots[slot] = Some((conversation, None));
        slot
    }

    /// The slot holds the token of this position.
    pub fn keep(&mut self, slot: usize, position: Position) {
        if let Some((_, known)) = &mut self.slots[slot] {
            *known = Some(position);
        }
    }

    /// Where the token of a position is.
    pub fn find(&self, conversation: ConversationId, position: Position) -> Option<usize> {
        self.slots.iter().position(|slot| *slot == Some((conversation, Some(position))))
    }

    /// What was sampled counts no more.
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
