//! Sends the chunks of all running answers, and keeps their KV cache within the pages of the plan.

use potluck_plan::{ConversationId, Plan};
use potluck_protocol::{AnswerStop, PassId};

use super::answers::Answers;
use super::multi_step;
use crate::event::OpenedModel;
use crate::event_context::EventContext;
use crate::kv_pages::pages;

/// Prompt chunks in flight at once, so that all stages work.
pub(super) const WINDOW: usize = 4;

impl Answers {
    /// One chunk of each answer in turn, so that a long prompt does not block the others.
    pub(super) fn send(&mut self, model: &OpenedModel, plan: &Plan, total: usize, cx: &mut EventContext) {
        cx.biases.retain(|conversation| self.index_of(conversation).is_some());
        let reading = self.active.iter().filter(|active| !active.paused && active.is_reading()).count();
        let window = WINDOW.div_ceil(reading.max(1));
        let prefill_tokens = self.chunk_size.tokens(plan, model.shape.hidden);
        let alone = self.active.len() == 1 && self.queue.is_empty() && multi_step::is_possible(plan, cx.members.me);
        let mut sent = true;
        while std::mem::take(&mut sent) {
            for index in 0..self.active.len() {
                let Some(mut chunk) = self.active[index].next_chunk(window, prefill_tokens) else { continue };
                if !self.claim(index, chunk.base + chunk.tokens.len(), total, cx) {
                    continue;
                }
                let (pass, live) = (self.next_pass(), self.live(Some(index)));
                let answering = &mut self.active[index];
                if alone {
                    chunk.further_steps = answering.further_steps(&chunk, self.multi_step);
                }
                if chunk.further_steps == 0 {
                    let hops = plan.network_hops(cx.members.me);
                    let (drafts, decision) = answering.drafts(&chunk, &self.draft_cost, hops, model.language.as_ref());
                    chunk.drafts = drafts;
                    self.draft_decision = decision.or(self.draft_decision);
                }
                if let Err(sentence) = answering.constrain(&mut chunk) {
                    self.finish(index, AnswerStop::Failed(sentence), cx);
                    sent = true;
                    break;
                }
                answering.send(chunk, pass, live, plan, cx);
                self.frees_later = false;
                sent = true;
            }
        }
    }

    /// Makes room for an answer's KV cache up to `end`: idle conversations are dropped first, then the youngest
    /// answers pause. The oldest one can always go on. False if the answer itself is paused.
    fn claim(&mut self, index: usize, end: usize, total: usize, cx: &mut EventContext) -> bool {
        let needed = pages(end).max(self.active[index].conversation.least);
        if needed <= self.active[index].pages() {
            return true;
        }
        loop {
            let others = self.active.iter().enumerate().filter(|(other, _)| *other != index);
            let taken = others.map(|(_, other)| other.pages()).sum::<usize>() + needed;
            if taken <= total {
                self.conversations.shrink_to(total - taken);
                return true;
            }
            let Some(youngest) = self.active.iter().rposition(|active| !active.paused) else { return false };
            self.active[youngest].paused = true;
            self.active[youngest].kv_cache_lost();
            self.send_positions(cx);
            if youngest == index {
                return false;
            }
        }
    }

    /// Conversations whose KV cache is valid when a chunk of answer `index`, or of a replay, is sent: on both plans,
    /// because they share the pages.
    pub(super) fn live(&self, index: Option<usize>) -> Vec<ConversationId> {
        let active =
            self.active.iter().enumerate().filter(|(other, active)| Some(*other) == index || active.pages() > 0);
        let active = active.map(|(_, active)| active.conversation.id);
        active.chain(self.conversations.live()).chain(self.rebuilt.iter().copied()).collect()
    }

    pub(super) fn next_pass(&mut self) -> PassId {
        self.newest_pass.0 += 1;
        self.newest_pass
    }

    /// Reserves pages for KV cache that is rebuilt on another plan under these ids, and leaves `left` pages to idle
    /// conversations.
    pub(super) fn reserve(&mut self, rebuilt: Vec<ConversationId>, pages: usize, left: usize) {
        self.rebuilt = rebuilt;
        self.reserved = pages;
        self.conversations.shrink_to(left);
    }

    /// Ends the reservation.
    pub fn reserve_nothing(&mut self) {
        self.rebuilt.clear();
        self.reserved = 0;
    }
}
