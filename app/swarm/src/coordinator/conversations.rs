//! Conversations between answers: token logs, and the KV cache that devices keep for them until its pages are needed.

use std::collections::{BTreeMap, BTreeSet};

use potluck_plan::{ConversationId, KernelClass, PeerId, StateHistory};
use potluck_protocol::{LoggedTokens, PassId};

use super::token_log::TokenLog;
use crate::kv_pages::pages;
use crate::mutation::{Mutation, has_mutation};

/// Where the stages of a plan can begin work on a conversation: anywhere, or, if the model has recurrent state, where
/// they kept one. What they kept follows from the chunks they got, so it is known here.
#[derive(Clone, Debug, Default)]
pub(super) struct Bases(Option<StateHistory>);

impl Bases {
    /// Those of a conversation without KV cache.
    pub fn new(recurrent: bool) -> Self {
        Self(recurrent.then(StateHistory::default))
    }

    /// Those of the same model, with nothing held.
    pub fn cleared(&self) -> Self {
        Self::new(self.is_recurrent())
    }

    pub fn is_recurrent(&self) -> bool {
        self.0.is_some()
    }

    /// The last position up to this one where work can begin.
    pub fn last(&self, position: usize) -> usize {
        // Positions fit 32 bits, as contexts do.
        let states = self.0.as_ref().filter(|_| !has_mutation(Mutation::AnyBase));
        states.map_or(position, |states| states.base(position as u32) as usize)
    }

    /// A chunk of positions `base..end` was sent.
    pub fn sent(&mut self, base: usize, end: usize, class: KernelClass) {
        if let Some(states) = &mut self.0 {
            let moved = states.advance(base as u32, end as u32, class);
            debug_assert!(
                moved.is_some() || has_mutation(Mutation::AnyBase),
                "work began at {base}, where no stage has a state"
            );
        }
    }
}

/// A conversation's token log, and what the devices hold of it.
pub(super) struct Conversation {
    pub id: ConversationId,
    pub log: TokenLog,
    /// Positions of KV cache that some stage may hold: at least the computed ones, more after rejected drafts or a
    /// rewind.
    pub held: usize,
    pub bases: Bases,
    /// Pages that it takes at least, if it has KV cache.
    pub least: usize,
    /// The newest chunk that was sent of it.
    pub newest: PassId,
    used: u64,
}

impl Conversation {
    /// Pages of KV cache it holds.
    pub fn pages(&self) -> usize {
        if self.held == 0 { 0 } else { pages(self.held).max(self.least) }
    }
}

#[derive(Default)]
pub(super) struct Conversations {
    kept: BTreeMap<(PeerId, String), Conversation>,
    newest: u32,
    uses: u64,
}

impl Conversations {
    /// Takes the conversation of this name, or a new one. It must be given back by [`Conversations::keep`].
    pub fn take(&mut self, asker: PeerId, name: &str) -> Conversation {
        self.kept.remove(&(asker, name.to_owned())).unwrap_or_else(|| {
            let id = self.fresh_id();
            Conversation {
                id,
                log: TokenLog::default(),
                held: 0,
                bases: Bases::default(),
                least: 1,
                newest: PassId::default(),
                used: 0,
            }
        })
    }

    /// A conversation that another host kept, without KV cache.
    pub fn inherit(&mut self, asker: PeerId, name: String, log: TokenLog) {
        let mut conversation = self.take(asker, &name);
        conversation.log = log;
        self.keep(asker, name, conversation);
    }

    /// Whose conversations are kept.
    pub fn askers(&self) -> BTreeSet<PeerId> {
        self.kept.keys().map(|(asker, _)| *asker).collect()
    }

    /// The kept conversations of an asker.
    pub fn of(&self, asker: PeerId) -> impl Iterator<Item = (&str, LoggedTokens)> {
        let its = self.kept.iter().filter(move |((of, _), _)| *of == asker);
        its.map(|((_, name), kept)| (name.as_str(), kept.log.first(usize::MAX)))
    }

    /// An id that no conversation of the room has had.
    pub fn fresh_id(&mut self) -> ConversationId {
        self.newest += 1;
        ConversationId(self.newest)
    }

    /// Gives all kept conversations new ids, so that what devices still hold under the old ones is never used for
    /// them.
    pub fn rename(&mut self) {
        for kept in self.kept.values_mut() {
            self.newest += 1;
            kept.id = ConversationId(self.newest);
        }
    }

    pub fn keep(&mut self, asker: PeerId, name: String, mut conversation: Conversation) {
        self.uses += 1;
        conversation.used = self.uses;
        self.kept.insert((asker, name), conversation);
    }

    /// Drops the least recently used conversations until the others need at most `max` pages. Stages free the KV
    /// cache with the next chunk they get.
    pub fn shrink_to(&mut self, max: usize) {
        // One without KV cache costs only its log, but their number must be bounded.
        let cost = |kept: &Conversation| kept.pages().max(1);
        while self.kept.values().map(cost).sum::<usize>() > max {
            let oldest = self.kept.iter().min_by_key(|(_, kept)| kept.used).map(|(key, _)| key.clone());
            if oldest.and_then(|key| self.kept.remove(&key)).is_none() {
                return;
            }
        }
    }

    pub fn drop_asker(&mut self, asker: PeerId) {
        self.kept.retain(|(of, _), _| *of != asker);
    }

    /// The KV cache on the devices is gone; the logs are not.
    pub fn kv_cache_lost(&mut self) {
        for kept in self.kept.values_mut() {
            kept.log.set_computed(0);
            kept.held = 0;
            kept.bases = kept.bases.cleared();
        }
    }

    /// The newest chunk of a conversation between answers.
    pub fn newest(&self, conversation: ConversationId) -> Option<PassId> {
        self.kept.values().find(|kept| kept.id == conversation).map(|kept| kept.newest)
    }

    /// Conversations with KV cache.
    pub fn live(&self) -> impl Iterator<Item = ConversationId> {
        self.kept.values().filter(|kept| kept.held > 0).map(|kept| kept.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: PeerId = PeerId([1; 16]);

    fn keep(conversations: &mut Conversations, name: &str, held: usize) -> ConversationId {
        let mut conversation = conversations.take(A, name);
        conversation.held = held;
        let id = conversation.id;
        conversations.keep(A, name.to_owned(), conversation);
        id
    }

    #[test]
    fn the_least_recently_used_conversation_goes_first() {
        let mut conversations = Conversations::default();
        let (first, second) = (keep(&mut conversations, "first", 65), keep(&mut conversations, "second", 64));
        assert_eq!(keep(&mut conversations, "first", 65), first, "a name keeps its conversation");
        conversations.shrink_to(3);
        assert_eq!(conversations.live().collect::<Vec<_>>(), [first, second]);
        conversations.shrink_to(2);
        assert_eq!(conversations.live().collect::<Vec<_>>(), [first]);
        assert_ne!(conversations.take(A, "second").id, second, "the old id's state is not to be trusted any more");
    }
}
