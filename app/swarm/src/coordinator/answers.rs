//! Answers: several at once, interleaved token by token, the others in a fair queue. Each has its own pages of the KV
//! cache that the plan reserves.

mod takeover;

use std::collections::{BTreeMap, VecDeque};

use potluck_panel::{DraftDecision, DraftReport};
use potluck_plan::{ConversationId, Millis, PeerId, Plan};
use potluck_predict::ShadowWord;
use potluck_protocol::{AnswerPart, AnswerStop, Frame, PassId, PromptRequest, Received, RequestId, Timings};

use super::answering::{Answering, DecodePass, PrefillPass, expected_pages};
use super::chunk_size::ChunkSize;
use super::conversations::{Bases, Conversations};
use super::draft::DraftCost;
use super::handover::Replay;
use super::layer_checks::EndedAnswer;
use super::multi_step::MultiStep;
use super::queue::{Question, Queue, Rendered};
use super::sending;
use super::shown_answers::ShownAnswers;
use super::token_log::TokenLog;
use super::transcript::Transcript;
use crate::event::OpenedModel;
use crate::event_context::EventContext;
use crate::kv_pages::{least_pages, pages};
use crate::limits::{self, KEPT_LOGPROBS, KEPT_PER_PEER, KEPT_TRANSCRIPTS};
use crate::refusal::Refusal;

/// Why a question is not taken whose bias is for another model.
const UNKNOWN_BIAS: &str =
    "The question's logit bias names a token that this room's model does not have. Ask without it.";

/// Answers given at once.
pub(super) const MAX_CONCURRENT: usize = 8;

#[derive(Default)]
pub(super) struct Answers {
    pub(super) queue: Queue,
    /// When the next question may be rendered: not in the same turn as the one before, because rendering blocks everything else.
    pub next_turn: Option<Millis>,
    /// Oldest first.
    pub(super) active: Vec<Answering>,
    pub(super) conversations: Conversations,
    finished: VecDeque<Transcript>,
    pub(super) shown: ShownAnswers,
    pub(super) newest_pass: PassId,
    /// KV cache that is being rebuilt on another plan: its ids, and the pages reserved for it.
    pub(super) rebuilt: Vec<ConversationId>,
    pub(super) reserved: usize,
    /// Conversations were dropped whose pages stages free with the next chunk.
    pub(super) frees_later: bool,
    /// Answers that have ended since they were last asked for.
    pub(super) ended: Vec<EndedAnswer>,
    pub(super) draft_cost: DraftCost,
    /// How many draft tokens were chosen last, and why.
    pub draft_decision: Option<DraftDecision>,
    /// Draft tokens so far.
    pub drafted: DraftReport,
    pub(super) multi_step: MultiStep,
    pub(super) chunk_size: ChunkSize,
    pub tokens_per_second: f64,
    /// Tokens written in total.
    pub tokens: u64,
    /// The newest token that passed while nothing else was in flight, until it is evaluated.
    pub passed: Option<DecodePass>,
    /// The newest prompt chunk that passed while no other answer ran, until it is evaluated.
    pub read: Option<PrefillPass>,
}

impl Answers {
    pub fn is_answering(&self) -> bool {
        !self.active.is_empty()
    }

    /// Somebody waits for an answer, or in the queue.
    pub fn are_awaited(&self) -> bool {
        self.is_answering() || !self.queue.is_empty()
    }

    pub fn ask(&mut self, asker: PeerId, prompt: PromptRequest, cx: &mut EventContext) {
        let request = prompt.request;
        if self.queue.contains(asker, request) || self.position(asker, request).is_some() {
            return;
        }
        if self.queue.push(Question { asker, prompt, asked: cx.now, rendered: None }) {
            self.send_positions(cx);
        } else {
            Self::reject(asker, request, &Refusal::QueueFull.to_string(), cx);
        }
    }

    /// Ends a question that is over a limit. Nothing of it is kept.
    pub fn reject(asker: PeerId, request: RequestId, sentence: &str, cx: &mut EventContext) {
        let stop = AnswerStop::Refused(sentence.to_owned());
        Transcript::new(asker, request).end(stop, Timings::default(), cx);
    }

    fn position(&self, asker: PeerId, request: RequestId) -> Option<usize> {
        self.active.iter().position(|active| active.transcript.is(asker, request))
    }

    /// Ends a question without an answer.
    fn refuse(&mut self, asker: PeerId, request: RequestId, stop: AnswerStop, cx: &mut EventContext) {
        let mut transcript = Transcript::new(asker, request);
        transcript.end(stop, Timings::default(), cx);
        self.keep(transcript);
    }

    pub(super) fn keep(&mut self, transcript: Transcript) {
        let is_its = |kept: &Transcript| kept.asker == transcript.asker;
        let of_asker = self.finished.iter().filter(|kept| is_its(kept)).count();
        if of_asker >= KEPT_PER_PEER
            && let Some(oldest) = self.finished.iter().position(is_its)
        {
            self.finished.remove(oldest);
        } else if self.finished.len() == KEPT_TRANSCRIPTS {
            self.finished.pop_front();
        }
        self.finished.push_back(transcript);
        // Log-probabilities take much memory.
        while self.finished.iter().map(Transcript::logprobs).sum::<usize>() > KEPT_LOGPROBS {
            let before = self.finished.len().saturating_sub(1);
            let Some(oldest) = self.finished.iter().take(before).position(|kept| kept.logprobs() > 0) else { break };
            self.finished.remove(oldest);
        }
    }

    /// Answers that have ended, oldest first.
    pub fn all_ended(&self) -> impl Iterator<Item = &Transcript> {
        self.finished.iter()
    }

    /// The newest answer to a question that has ended.
    pub fn ended(&self, asker: PeerId, request: RequestId) -> Option<&Transcript> {
        self.finished.iter().rev().find(|kept| kept.is(asker, request))
    }

    /// Sends the pieces again that an asker lost.
    pub fn resume(
        &mut self,
        asker: PeerId,
        request: RequestId,
        received: &Received,
        model: Option<&OpenedModel>,
        cx: &mut EventContext,
    ) {
        if let (Some(index), Some(model)) = (self.position(asker, request), model) {
            self.go_on_from(index, received, model, cx);
        }
        let piece = received.pieces;
        let active = self.active.iter().map(|active| &active.transcript);
        // The newest first: a reloaded tab counts its requests from the beginning.
        let known = active.chain(self.finished.iter().rev()).find(|kept| kept.is(asker, request));
        if let Some(transcript) = known {
            transcript.send_from(piece, cx);
        } else if !self.queue.contains(asker, request) {
            cx.out.send(asker, Frame::Answer(request, AnswerPart::Unknown));
        }
    }

    /// Sends everyone who waits their position: first the paused answers, then the queue.
    pub(super) fn send_positions(&self, cx: &mut EventContext) {
        let paused = self.active.iter().filter(|active| active.paused).map(|active| &active.transcript);
        let paused = paused.map(|transcript| (transcript.asker, transcript.request));
        let running = self.running();
        let waiting = self.queue.in_order(&running);
        let waiting = waiting.iter().map(|question| (question.asker, question.prompt.request));
        for ((asker, request), position) in paused.chain(waiting).zip(1..) {
            cx.out.send(asker, Frame::Answer(request, AnswerPart::Queued(position)));
        }
    }

    /// Number of running answers of each asker.
    fn running(&self) -> BTreeMap<PeerId, usize> {
        let mut running = BTreeMap::new();
        for active in &self.active {
            *running.entry(active.transcript.asker).or_default() += 1;
        }
        running
    }

    /// Starts questions while there is room, and sends what may be sent.
    pub fn advance(&mut self, model: &OpenedModel, plan: &Plan, context: u32, cx: &mut EventContext) {
        let context = context as usize;
        let total = pages(context).saturating_sub(self.reserved + cx.kv_cache.for_checks);
        let resumed = self.resume_paused(total);
        let mut admitted = false;
        let mut turn = Turn::Free;
        while let Some(question) = self.next_question(model, context, &mut turn, cx) {
            self.begin(question, model, context, cx);
            admitted = true;
        }
        if resumed || admitted {
            self.send_positions(cx);
        }
        self.send(model, plan, total, cx);
    }

    /// The next question, if its pages fit. Nobody overtakes one that does not fit yet, or it might wait forever.
    fn next_question(
        &mut self,
        model: &OpenedModel,
        context: usize,
        turn: &mut Turn,
        cx: &mut EventContext,
    ) -> Option<Question> {
        while !self.queue.is_empty()
            && self.active.len() < MAX_CONCURRENT
            && !self.active.iter().any(|active| active.paused)
        {
            let running = self.running();
            let is_free = |question: &&&Question| {
                let is_its = |active: &Answering| {
                    active.transcript.asker == question.asker
                        && active.prompt.conversation == question.prompt.conversation
                };
                !self.active.iter().any(is_its)
            };
            let next = self.queue.in_order(&running).iter().find(is_free).map(|next| (next.asker, next.prompt.request));
            let (asker, request) = next?;
            let taken: usize = self.active.iter().map(Answering::expected_pages).sum();
            let question = self.queue.get_mut(asker, request)?;
            let rendered = match question.rendered.take() {
                Some(rendered) => Ok(rendered),
                None if *turn == Turn::Taken => {
                    self.next_turn = Some(cx.now);
                    return None;
                }
                None => {
                    *turn = Turn::Taken;
                    render(&question.prompt, model, context)
                }
            };
            match rendered {
                Err(sentence) => {
                    let bytes = question.bytes() as f64;
                    cx.members.standing(asker, cx.now).in_vain.spend(bytes, limits::IN_VAIN, cx.now);
                    self.queue.had_its_turn(asker);
                    self.queue.take(asker, request);
                    self.refuse(asker, request, AnswerStop::Refused(sentence), cx);
                }
                Ok(rendered) => {
                    let least = least_pages(model.shape.is_recurrent(), context);
                    let len = rendered.tokens.len();
                    let needed = expected_pages(len, question.prompt.max_tokens as usize, context).max(least);
                    question.rendered = Some(rendered);
                    let fits = self.active.is_empty()
                        || taken + needed + self.reserved + cx.kv_cache.for_checks <= pages(context);
                    if !fits {
                        return None;
                    }
                    self.queue.had_its_turn(asker);
                    return self.queue.take(asker, request);
                }
            }
        }
        None
    }

    fn begin(&mut self, question: Question, model: &OpenedModel, context: usize, cx: &mut EventContext) {
        let Question { asker, prompt, asked, rendered } = question;
        let Some(Rendered { tokens, grammar }) = rendered else { return };
        let mut conversation = self.conversations.take(asker, &prompt.conversation);
        let recurrent = model.shape.is_recurrent();
        conversation.least = least_pages(recurrent, context);
        if conversation.bases.is_recurrent() != recurrent {
            conversation.bases = Bases::new(recurrent);
        }
        let own = conversation.log.in_own_tokens(tokens.clone(), |token| model.language.piece(token));
        let tokens = if own.len() < context { own } else { tokens };
        let transcript = Transcript::new(asker, prompt.request);
        let stream = model.language.decoder(&prompt, &tokens);
        let mut answering = Answering::new(transcript, prompt, conversation, &tokens, stream, context, asked, cx.now);
        answering.grammar = grammar;
        // A program wants to know at the beginning how long its prompt is, and how much of it was known.
        answering.report_reading(cx);
        self.active.push(answering);
        let taken: usize = self.active.iter().map(Answering::expected_pages).sum();
        self.conversations.shrink_to(pages(context).saturating_sub(taken + self.reserved + cx.kv_cache.for_checks));
    }

    /// Resumes paused answers before new ones start. True if one was.
    fn resume_paused(&mut self, total: usize) -> bool {
        let mut resumed = false;
        while let Some(index) = self.active.iter().position(|active| active.paused) {
            let running = || self.active.iter().filter(|active| !active.paused);
            let taken: usize = running().map(Answering::expected_pages).sum();
            if running().next().is_some() && taken + self.active[index].expected_pages() > total {
                break;
            }
            self.active[index].paused = false;
            resumed = true;
        }
        resumed
    }

    pub fn stop(&mut self, asker: PeerId, request: RequestId, cx: &mut EventContext) {
        if let Some(index) = self.position(asker, request) {
            self.finish(index, AnswerStop::Stopped, cx);
        } else if self.queue.take(asker, request).is_some() {
            self.refuse(asker, request, AnswerStop::Stopped, cx);
            self.send_positions(cx);
        }
    }

    /// This conversation cannot be computed.
    pub fn fail(&mut self, conversation: ConversationId, sentence: &str, cx: &mut EventContext) {
        if let Some(index) = self.index_of(conversation).filter(|index| !self.active[*index].paused) {
            self.finish(index, AnswerStop::Failed(sentence.to_owned()), cx);
        }
    }

    /// A shadow has said something of a conversation.
    pub fn foreseen(&mut self, conversation: ConversationId, word: &ShadowWord) {
        if let Some(index) = self.index_of(conversation) {
            self.active[index].foreseen(word);
        }
    }

    pub(super) fn index_of(&self, conversation: ConversationId) -> Option<usize> {
        self.active.iter().position(|active| active.conversation.id == conversation)
    }

    pub fn fail_all(&mut self, sentence: &str, cx: &mut EventContext) {
        for question in self.queue.take_all() {
            self.refuse(question.asker, question.prompt.request, AnswerStop::Failed(sentence.to_owned()), cx);
        }
    }

    /// Drops everything that a peer asked for.
    pub fn drop_asker(&mut self, peer: PeerId, cx: &mut EventContext) {
        self.queue.drop_asker(peer);
        while let Some(index) = self.active.iter().position(|active| active.transcript.asker == peer) {
            self.finish(index, AnswerStop::Stopped, cx);
        }
        self.conversations.drop_asker(peer);
        self.frees_later = true;
        self.send_positions(cx);
    }

    /// Tells askers why their answers pause: the plan is gone, and they go on with the next one.
    pub fn send_recovering(&self, reason: &str, cx: &mut EventContext) {
        for active in self.active.iter().filter(|active| !active.paused) {
            active.transcript.send(AnswerPart::Recovering(reason.to_owned()), cx);
        }
    }

    /// A new plan is active: all KV cache has to be recomputed from the logs.
    pub fn kv_cache_lost(&mut self) {
        self.ended.clear();
        self.chunk_size = ChunkSize::default();
        self.conversations.kv_cache_lost();
        self.draft_cost = DraftCost::default();
        self.multi_step = MultiStep::default();
        self.active.iter_mut().for_each(Answering::kv_cache_lost);
    }

    /// Another plan is active: answers go on with the KV cache of their replays. All other KV cache is gone, and its
    /// ids with it.
    pub(super) fn moved(&mut self, mut replay: impl FnMut(ConversationId) -> Option<Replay>) {
        self.reserve_nothing();
        // Stages of another plan have nothing to say of them.
        self.ended.clear();
        self.draft_cost = DraftCost::default();
        self.multi_step = MultiStep::default();
        self.chunk_size = ChunkSize::default();
        self.conversations.kv_cache_lost();
        self.conversations.rename();
        for active in &mut self.active {
            let replay = replay(active.conversation.id);
            active.moved(replay, self.conversations.fresh_id());
        }
    }

    /// The answer `conversation`, if its first token has no prediction yet: tokens to process, tokens of a chunk, and
    /// chunks in flight. There is no prediction while other answers run.
    pub fn unexpected(
        &self,
        conversation: ConversationId,
        model: &OpenedModel,
        plan: &Plan,
    ) -> Option<(u32, u32, usize)> {
        let [only] = &self.active[..] else { return None };
        let is_new = only.conversation.id == conversation && only.expected_first.is_none() && only.is_reading();
        let chunk = self.chunk_size.tokens(plan, model.shape.hidden) as u32;
        is_new.then(|| (only.to_read() as u32, chunk, sending::WINDOW))
    }

    /// Sets the predicted milliseconds until the first token of an answer.
    pub fn expect(&mut self, conversation: ConversationId, millis: f64) {
        if let Some(index) = self.index_of(conversation) {
            self.active[index].expected_first = Some(millis);
        }
    }

    /// A stage lacks the positions from `position` on.
    pub fn rewind(&mut self, conversation: ConversationId, position: usize) {
        if let Some(index) = self.index_of(conversation) {
            self.active[index].rewind(position);
        }
    }

    /// This pass is in flight; without one, the conversation is being answered.
    pub fn awaits(&self, conversation: ConversationId, pass: Option<PassId>) -> bool {
        let answering = self.index_of(conversation).map(|index| &self.active[index]);
        answering.is_some_and(|answering| pass.is_none_or(|pass| answering.awaits(pass)))
    }

    /// Tokens of a pass that is the next one of its conversation to be complete.
    pub fn tokens_of(&self, conversation: ConversationId, pass: PassId) -> Option<u64> {
        self.active[self.index_of(conversation)?].tokens_of(pass)
    }

    /// New plans for want of experts since an answer was further than ever.
    pub fn recoveries_in_vain(&self, conversation: ConversationId) -> u32 {
        self.index_of(conversation).map_or(0, |index| self.active[index].recoveries_in_vain)
    }

    /// There will be a new plan, for want of experts. All answers in flight stand still with the one that is named.
    pub fn recover_for_experts(&mut self) {
        self.active.iter_mut().for_each(Answering::recover_for_experts);
    }

    /// Answers that have ended since the last call.
    pub fn take_ended(&mut self) -> Vec<EndedAnswer> {
        std::mem::take(&mut self.ended)
    }

    /// A device was found wrong: what it computed of answers that have ended is doubtful, and running ones begin again, with nothing
    /// that was computed before.
    pub fn begin_again_without(&mut self, peer: PeerId, model: &OpenedModel, cx: &mut EventContext) {
        self.shown.doubt(peer, cx);
        for active in self.active.iter_mut().filter(|active| active.computed_by.contains(&peer)) {
            active.begin_again(self.conversations.fresh_id(), model.language.as_ref(), cx);
        }
    }

    /// Nothing newer was sent of this conversation.
    pub fn is_newest(&self, conversation: ConversationId, pass: PassId) -> bool {
        let running = self.index_of(conversation).map(|index| self.active[index].conversation.newest);
        running.or_else(|| self.conversations.newest(conversation)) == Some(pass)
    }

    /// Somebody waits for pages of KV cache, or may do so.
    pub fn lack_room(&self) -> bool {
        !self.queue.is_empty() || self.active.iter().any(|active| active.paused)
    }

    /// Makes room for what is computed again, if no answer needs these pages. Conversations between answers give up theirs, the least
    /// recently used ones first; these are returned.
    pub fn set_aside(&mut self, needed: usize, context: usize) -> Option<Vec<ConversationId>> {
        let left = self.left_beside(needed, context)?;
        let before: Vec<ConversationId> = self.conversations.live().collect();
        self.conversations.shrink_to(left);
        Some(before.into_iter().filter(|known| self.conversations.newest(*known).is_none()).collect())
    }

    /// No answer needs that many pages.
    pub fn have_room(&self, needed: usize, context: usize) -> bool {
        self.left_beside(needed, context).is_some()
    }

    /// Pages that are left to conversations between answers, if no answer needs so many pages.
    fn left_beside(&self, needed: usize, context: usize) -> Option<usize> {
        let taken: usize = self.active.iter().map(Answering::expected_pages).sum();
        let left = pages(context).checked_sub(taken + self.reserved + needed)?;
        (!self.frees_later && !self.lack_room()).then_some(left)
    }

    pub fn is_stalled(&self, now: Millis) -> bool {
        self.active.iter().any(|active| active.is_stalled(now))
    }

    pub fn resend(&mut self) {
        self.chunk_size = ChunkSize::default();
        self.active.iter_mut().for_each(Answering::resend);
    }
}

/// Whether a question was rendered in this turn of the state machine.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    Free,
    Taken,
}

fn render(prompt: &PromptRequest, model: &OpenedModel, context: usize) -> Result<Rendered, String> {
    let tokens = match &prompt.messages[..] {
        [] => Vec::new(),
        [before, after] if prompt.raw => model.language.infill(&before.content, &after.content)?,
        [.., last] if prompt.raw => model.language.tokenize(&last.content)?,
        _ => model.language.render(prompt)?,
    };
    match tokens.len() {
        0 => Err("There is nothing to answer: the message is empty.".to_owned()),
        _ if prompt.logits.bias.unknown(model.shape.vocabulary).is_some() => Err(UNKNOWN_BIAS.to_owned()),
        tokens if tokens + 1 > context => Err(Refusal::TooManyTokens { tokens, context }.to_string()),
        _ => {
            let grammar = model.language.grammar(prompt, &tokens, model.shape.vocabulary)?;
            Ok(Rendered { tokens, grammar })
        }
    }
}

#[cfg(test)]
mod tests;
