//! Conversations that go back. Blocks of a device share the pages of a conversation, so none of them may go on from positions that an
//! earlier one has given up: chunks that would are stale.

use std::collections::{BTreeMap, BTreeSet};

use potluck_plan::{ConversationId, Position, StageId};
use potluck_protocol::{Forward, PassId};

use super::Executor;
use crate::event_context::EventContext;
use crate::limits;

/// For a stage of this device and a conversation: the passes with which it or an earlier stage has gone back, and to which position.
/// Passes come in order, so it needs those only that have not come through yet: as many as there are chunks on their way, at most.
#[derive(Default)]
pub(super) struct Rewinds(BTreeMap<(StageId, ConversationId), BTreeMap<PassId, Position>>);

impl Rewinds {
    /// A stage has gone back: a chunk of an older pass that begins there or later is stale.
    fn add(&mut self, key: (StageId, ConversationId), pass: PassId, base: Position) {
        let rewinds = self.0.entry(key).or_default();
        // Going back further later says more.
        rewinds.retain(|_, earlier| *earlier < base);
        rewinds.insert(pass, base);
        if rewinds.len() > limits::MAX_CHUNKS {
            // A chunk that only this one makes stale begins behind the stage's positions, and is a gap.
            rewinds.pop_first();
        }
    }

    /// A stage has gone back to this chunk's first position, or before it, since the chunk was sent.
    pub fn is_stale(&self, forward: &Forward) -> bool {
        let rewinds = self.0.get(&(forward.stage, forward.conversation));
        rewinds.into_iter().flatten().any(|(pass, base)| forward.pass < *pass && forward.base >= *base)
    }

    /// Nothing older than this pass comes any more.
    pub fn arrived(&mut self, key: (StageId, ConversationId), pass: PassId) {
        if let Some(rewinds) = self.0.get_mut(&key) {
            rewinds.retain(|rewind, _| *rewind > pass);
        }
        self.0.retain(|_, rewinds| !rewinds.is_empty());
    }

    #[cfg(test)]
    pub fn remembered(&self, key: &(StageId, ConversationId)) -> usize {
        self.0.get(key).map_or(0, BTreeMap::len)
    }

    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn forget(&mut self, over: &BTreeSet<ConversationId>) {
        self.0.retain(|(_, known), _| !over.contains(known));
    }
}

impl Executor {
    /// A chunk begins before positions that its stage has computed, or a later one of this device: only that one may have any if the
    /// conversation had to make room.
    pub(super) fn goes_back(&self, forward: &Forward) -> bool {
        let Some((index, _)) = self.plan.stage(forward.stage) else { return false };
        let own = self.plan.stages.iter().skip(index).filter(|stage| stage.peer == self.me);
        let mut lengths = own.filter_map(|stage| self.lengths.get(&(stage.id, forward.conversation)));
        lengths.any(|length| forward.base.0 < *length)
    }

    /// A stage begins again before positions that it has computed. The engine then has none of them any more, in blocks behind
    /// there, either. Older chunks that go on from such positions are dropped, because nobody waits for them: in this stage, in later
    /// ones of this device, and on their way to those. A recurrent state only goes on, so there a stage that never stops in its
    /// middle still computes its own.
    pub(super) fn go_back(&mut self, forward: &Forward, cx: &mut EventContext) {
        let Forward { conversation, pass, base, .. } = *forward;
        let Some((index, _)) = self.plan.stage(forward.stage) else { return };
        let own = self.plan.stages.iter().skip(index).filter(|stage| {
            let passes_through = self.recurrent && stage.remote.is_empty();
            stage.peer == self.me && !(stage.id == forward.stage && passes_through)
        });
        for stage in own.map(|stage| stage.id).collect::<Vec<_>>() {
            let key = (stage, conversation);
            self.rewinds.add(key, pass, base);
            if let Some(length) = self.lengths.get_mut(&key) {
                *length = (*length).min(base.0);
            }
            let of_conversation = self.inside(stage).filter(|other| other.conversation == conversation);
            let stale = of_conversation.filter(|other| self.rewinds.is_stale(other));
            for pass in stale.map(|other| other.pass).collect::<Vec<_>>() {
                self.drop_passes(stage, conversation, pass..=pass);
            }
        }
        self.drop_idle_gathers(cx);
    }
}
