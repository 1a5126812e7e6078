//! What an executor gives up: KV cache of conversations that are over or have to make room, and the chunks that wait for it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeBounds;

use potluck_plan::{ConversationId, PeerId, Position, StageId};
use potluck_protocol::{Forward, PassId, StageFaultKind};

use super::queue::Job;
use super::{Executor, Purpose, end};
use crate::Action;
use crate::event_context::EventContext;
use crate::kv_pages;

impl Executor {
    /// A chunk that was admitted, of this plan or of another one, says which conversations were live when it was sent. The KV cache of
    /// the others is freed if they got no newer tokens, and what waits of them is dropped.
    ///
    /// Only the host knows what is live. A stage hands on what it got, so its word counts for its own plan only, and for nothing that
    /// the host tells this device itself.
    pub fn hear_live(&mut self, author: Option<PeerId>, forward: &Forward, cx: &mut EventContext) {
        let Forward { epoch, pass, ref live, .. } = *forward;
        let (is_hosts, is_own) = (author.is_none(), epoch == self.epoch());
        if !is_hosts && (!is_own || self.has_first_stage()) {
            return;
        }
        let live: BTreeSet<ConversationId> = live.iter().copied().collect();
        let is_newest = self.words.entry(author).or_default().hear(pass, &live);
        let others = self.newest.iter().filter(|(conversation, _)| !live.contains(conversation));
        // An older word ends nothing that a newer one calls live.
        let (over, begun_again): (Vec<_>, Vec<_>) = others.partition(|(_, newest)| is_newest && **newest <= pass);
        let ids = |of: Vec<(&ConversationId, &PassId)>| of.into_iter().map(|(id, _)| *id).collect::<BTreeSet<_>>();
        let (over, begun_again) = (ids(over), ids(begun_again));
        self.forget(&over, cx);
        if !begun_again.is_empty() {
            let goes_on = |known: &ConversationId| self.newest.get(known).is_some_and(|newest| *newest > pass);
            let (holed, ended): (BTreeSet<_>, BTreeSet<_>) =
                self.torn(&begun_again, pass).into_iter().partition(goes_on);
            self.evict(&holed, cx);
            self.free(&ended, cx);
            // What is left of the first time would contradict this chunk at the next stage.
            self.drop_chunks(|conversation, older| begun_again.contains(&conversation) && older <= pass);
        }
        self.drop_idle_gathers(cx);
    }

    /// Conversations that would have a gap without their chunks up to this pass: the next chunk begins behind one of these, or is not here
    /// yet. A host that begins a conversation again begins at its first position; if a stage only claims that it was over, a gap is left.
    fn torn(&self, conversations: &BTreeSet<ConversationId>, pass: PassId) -> BTreeSet<ConversationId> {
        let own = self.plan.stages.iter().filter(|stage| stage.peer == self.me);
        let left = own.flat_map(|stage| self.inside(stage.id));
        let left = left.filter(|chunk| conversations.contains(&chunk.conversation) && chunk.pass <= pass);
        // In a recurrent stage, chunks that newer ones give up still wait between the two.
        let next = |chunk: &Forward| {
            let newer =
                self.inside(chunk.stage).filter(|other| other.conversation == chunk.conversation && other.pass > pass);
            newer.min_by_key(|other| other.pass).map(|next| next.base)
        };
        left.filter(|chunk| next(chunk).is_none_or(|base| base > chunk.base)).map(|chunk| chunk.conversation).collect()
    }

    /// Conversations are over: nothing of them is needed any more.
    fn forget(&mut self, over: &BTreeSet<ConversationId>, cx: &mut EventContext) {
        if over.is_empty() {
            return;
        }
        self.newest.retain(|known, _| !over.contains(known));
        self.arrived.retain(|(_, known), _| !over.contains(known));
        self.own_chunks.forget(over);
        self.rewinds.forget(over);
        if let Some(kept) = &mut self.kept {
            kept.forget(over);
        }
        self.free(over, cx);
    }

    /// Frees KV cache of conversations, and drops what waits for it. What was kept of their rows may still be asked for.
    pub fn free(&mut self, conversations: &BTreeSet<ConversationId>, cx: &mut EventContext) {
        self.lengths.retain(|(_, known), _| !conversations.contains(known));
        self.states.retain(|(_, known), _| !conversations.contains(known));
        self.drop_chunks(|conversation, _| conversations.contains(&conversation));
        self.cancel_dropped(cx);
        let freed = conversations.iter().filter_map(|conversation| self.kv_caches.remove(*conversation));
        cx.out.actions.extend(freed.map(Action::Forget));
    }

    /// Frees the KV cache of the conversation that has waited longest for a chunk, this one excepted. False if there is none.
    pub fn evict_oldest(&mut self, but: ConversationId, cx: &mut EventContext) -> bool {
        let oldest = self.kv_caches.oldest(but);
        self.evict(&oldest.into_iter().collect(), cx);
        oldest.is_some()
    }

    /// Frees the KV cache of all conversations but these.
    pub fn evict_all_but(&mut self, kept: &[ConversationId], cx: &mut EventContext) {
        let evicted = self.kv_caches.conversations().filter(|conversation| !kept.contains(conversation)).collect();
        self.evict(&evicted, cx);
    }

    /// Frees KV cache that the host takes to be here, unless it was made up. It hears of the gap: now, if it waits for a chunk, or with
    /// the next one. Which chunks have arrived is still known.
    fn evict(&mut self, conversations: &BTreeSet<ConversationId>, cx: &mut EventContext) {
        if conversations.is_empty() {
            return;
        }
        let own = self.plan.stages.iter().filter(|stage| stage.peer == self.me).map(|stage| stage.id);
        // An older one may have been sent before the host last went back.
        let mut newest: BTreeMap<(StageId, ConversationId), PassId> = BTreeMap::new();
        for forward in own.flat_map(|stage| self.inside(stage)).filter(|of| conversations.contains(&of.conversation)) {
            let pass = newest.entry((forward.stage, forward.conversation)).or_insert(forward.pass);
            *pass = forward.pass.max(*pass);
        }
        self.free(conversations, cx);
        for ((stage, conversation), pass) in newest {
            self.report(stage, conversation, Some(pass), StageFaultKind::Gap(Position(0)), cx);
        }
        self.drop_idle_gathers(cx);
    }

    /// Pages of KV cache that its conversations take.
    pub fn pages(&self) -> usize {
        self.kv_caches.pages()
    }

    /// The same, once this chunk has been computed.
    pub fn pages_with(&self, forward: &Forward) -> usize {
        self.kv_caches.pages_with(forward.conversation, end(forward))
    }

    /// Pages that the plan reserves on each device.
    pub fn total_pages(&self) -> usize {
        kv_pages::of_plan(&self.plan)
    }

    /// Nobody waits for this work. What has not reached the engine yet would take pages after its conversation was forgotten.
    fn cancel_dropped(&self, cx: &mut EventContext) {
        let is_dropped = |purpose: &Purpose| match purpose {
            Purpose::Batch(jobs) => jobs.iter().all(|job| job.dropped),
            Purpose::OwnExperts(_) | Purpose::Call(_) => false,
        };
        let dropped = self.tickets.iter().filter(|(_, purpose)| is_dropped(purpose)).map(|(ticket, _)| *ticket);
        cx.out.actions.extend(dropped.map(Action::Cancel));
    }

    /// The engine has answered for these jobs. What could not be cancelled may have taken pages of conversations that were forgotten
    /// before it began: the engine forgets them once more.
    pub(super) fn forget_again(&self, jobs: &[Job], cx: &mut EventContext) {
        let forgotten = jobs.iter().filter(|job| job.dropped && self.kv_caches.conversation(job.on_engine).is_none());
        cx.out.actions.extend(forgotten.map(|job| Action::Forget(job.on_engine)));
    }

    /// The plan ends here. Its KV cache is valid for no other one, and its experts are called elsewhere.
    pub fn end(&self, cx: &mut EventContext) {
        self.end_calls(cx);
        // A batch that has begun takes pages of all its conversations, of those that are over, too.
        let mut on_engine: BTreeSet<ConversationId> = self.kv_caches.on_engine().collect();
        for (ticket, purpose) in &self.tickets {
            if let Purpose::Batch(jobs) = purpose {
                cx.out.act(Action::Cancel(*ticket));
                on_engine.extend(jobs.iter().map(|job| job.on_engine));
            }
        }
        cx.out.actions.extend(on_engine.into_iter().map(Action::Forget));
    }

    /// Nobody waits for these chunks any more, in whichever stage.
    fn drop_chunks(&mut self, is_meant: impl Fn(ConversationId, PassId) -> bool) {
        self.queues.values_mut().for_each(|queue| queue.drop_chunks(&is_meant));
        self.drop_jobs(|forward| is_meant(forward.conversation, forward.pass));
    }

    /// Nobody waits for these jobs any more, which the engine or holders of experts have.
    fn drop_jobs(&mut self, is_meant: impl Fn(&Forward) -> bool) {
        let in_engine = self.tickets.values_mut().filter_map(|purpose| match purpose {
            Purpose::Batch(jobs) => Some(jobs),
            _ => None,
        });
        for job in in_engine.chain(self.waiting.values_mut()).flatten() {
            job.dropped |= is_meant(&job.forward);
        }
    }

    pub(super) fn drop_passes(
        &mut self,
        stage: StageId,
        conversation: ConversationId,
        passes: impl RangeBounds<PassId>,
    ) {
        self.drop_jobs(|forward| {
            (forward.stage, forward.conversation) == (stage, conversation) && passes.contains(&forward.pass)
        });
        self.queue(stage).drop_chunks(|known, pass| known == conversation && passes.contains(&pass));
    }
}
