//! A device with the first stage and later ones gets each chunk from the host before other devices have it. What comes back to it is
//! the host's chunk, but for the hidden vectors: so it hands on what the host said, whatever the stages between have made of it.

use std::collections::{BTreeMap, BTreeSet};

use potluck_plan::ConversationId;
use potluck_protocol::{Forward, PassId};

use super::Executor;
use crate::limits;
use crate::mutation::{Mutation, has_mutation};

/// Chunks that the first stage got, without hidden vectors, until the last stage of this device has had them.
#[derive(Default)]
pub(super) struct OwnChunks(BTreeMap<ConversationId, BTreeMap<PassId, Forward>>);

impl OwnChunks {
    pub fn forget(&mut self, over: &BTreeSet<ConversationId>) {
        self.0.retain(|known, _| !over.contains(known));
    }
}

impl Executor {
    /// The host tells this device itself what it computes.
    pub(super) fn has_first_stage(&self) -> bool {
        self.plan.stages.first().is_some_and(|first| first.peer == self.me)
    }

    /// A chunk was admitted.
    pub(super) fn note_own_chunk(&mut self, forward: &Forward) {
        let mut own = self.plan.stages.iter().filter(|stage| stage.peer == self.me).map(|stage| stage.id);
        let last = own.next_back().filter(|_| own.next().is_some() && self.has_first_stage());
        if last == Some(forward.stage) {
            // Passes come in order.
            self.own_chunks.0.entry(forward.conversation).or_default().retain(|pass, _| *pass > forward.pass);
        } else if last.is_some() && self.plan.embeds(forward.stage) {
            let chunks = self.own_chunks.0.entry(forward.conversation).or_default();
            chunks.insert(forward.pass, Forward { tokens: Vec::new(), ..forward.clone() });
            if chunks.len() > limits::MAX_CHUNKS {
                chunks.pop_first();
            }
        }
    }

    /// The chunk as the host sent it, with the hidden vectors of the stage before. None if the host did not send it, or nobody waits
    /// for it any more. The stage before need not have made it up: it hands on what it gets.
    pub(super) fn as_the_host_sent_it(&self, forward: Forward) -> Option<Forward> {
        let is_believed = has_mutation(Mutation::StagesLikeHosts) || has_mutation(Mutation::StaleEpoch);
        if is_believed || !self.has_first_stage() || self.plan.embeds(forward.stage) {
            return Some(forward);
        }
        let sent = self.own_chunks.0.get(&forward.conversation)?.get(&forward.pass)?;
        let is_same = (sent.base, sent.count) == (forward.base, forward.count);
        let Forward { stage, stage_millis, hidden, .. } = forward;
        is_same.then(|| Forward { stage, stage_millis, hidden, ..sent.clone() })
    }
}
