//! Answers: a queue of questions, one being answered, the token logs of all conversations.

use std::collections::{BTreeMap, VecDeque};

use potluck_plan::{Candidates, ConversationId, HeadRequest, HeadRows, Millis, PeerId, Pick, Plan, Position};
use potluck_protocol::{AnswerPart, AnswerStop, Forward, Frame, Picked, PickedRows, PromptRequest, RequestId, Timings};

use super::token_log::TokenLog;
use super::transcript::Transcript;
use crate::event::OpenedModel;
use crate::language::TextStream;
use crate::outbox::Outbox;
use crate::planted::{Bug, is_planted};

/// Chunks of a prompt under way at once, so that all stages work.
const WINDOW: usize = 4;
/// Questions that may wait in a room, and per peer.
const QUEUE: usize = 10;
const QUEUE_PER_PEER: usize = 2;
/// Answers kept after their end, for askers that lost pieces.
const KEPT_TRANSCRIPTS: usize = 16;
/// Nothing came back for so long: rows are sent again (that is safe, receivers truncate first).
const STALL_MILLIS: f64 = 60_000.0;
/// Positions are reserved in pages of this size.
const PAGE: usize = 64;

#[derive(Default)]
pub(super) struct Answers {
    queue: VecDeque<(PeerId, PromptRequest, Millis)>,
    current: Option<Answering>,
    conversations: BTreeMap<(PeerId, String), Conversation>,
    finished: VecDeque<Transcript>,
    next_conversation: u32,
    uses: u64,
    pub tokens_per_second: f64,
}

struct Conversation {
    id: ConversationId,
    log: TokenLog,
    used: u64,
}

struct Answering {
    transcript: Transcript,
    prompt: PromptRequest,
    conversation: ConversationId,
    log: TokenLog,
    stream: Box<dyn TextStream>,
    /// Positions sent to the first stage.
    sent: usize,
    /// Rows sent and not through yet, oldest first: where they end.
    under_way: VecDeque<usize>,
    prompt_tokens: usize,
    reused: usize,
    asked: Millis,
    first_token: Option<Millis>,
    last_token: Millis,
    progress: Millis,
    context: usize,
}

impl Answers {
    pub fn is_answering(&self) -> bool {
        self.current.is_some()
    }

    pub fn ask(&mut self, asker: PeerId, prompt: PromptRequest, now: Millis, out: &mut Outbox) {
        let of_peer = self.queue.iter().filter(|(peer, ..)| *peer == asker).count();
        if self.queue.len() >= QUEUE || of_peer >= QUEUE_PER_PEER {
            let sentence = "Too many questions are waiting in this room; ask again in a moment.".to_owned();
            self.refuse(asker, prompt.request, AnswerStop::Failed(sentence), out);
            return;
        }
        if self.current.as_ref().is_some_and(|current| current.transcript.is(asker, prompt.request)) {
            return;
        }
        self.queue.push_back((asker, prompt, now));
        self.tell_positions(out);
    }

    /// An answer without a word.
    fn refuse(&mut self, asker: PeerId, request: RequestId, stop: AnswerStop, out: &mut Outbox) {
        let mut transcript = Transcript::new(asker, request);
        transcript.end(stop, Timings::default(), out);
        self.keep(transcript);
    }

    fn keep(&mut self, transcript: Transcript) {
        if self.finished.len() == KEPT_TRANSCRIPTS {
            self.finished.pop_front();
        }
        self.finished.push_back(transcript);
    }

    /// Sends pieces again that an asker lost.
    pub fn resume(&self, asker: PeerId, request: RequestId, piece: u32, out: &mut Outbox) {
        let current = self.current.as_ref().map(|current| &current.transcript);
        // The newest first: after a reload a tab counts its requests from the beginning.
        let known = current.into_iter().chain(self.finished.iter().rev()).find(|kept| kept.is(asker, request));
        if let Some(transcript) = known {
            transcript.send_from(piece, out);
        } else if !self.queue.iter().any(|(peer, prompt, _)| *peer == asker && prompt.request == request) {
            out.send(asker, Frame::Answer(request, AnswerPart::Unknown));
        }
    }

    fn tell_positions(&self, out: &mut Outbox) {
        for (index, (asker, prompt, _)) in self.queue.iter().enumerate() {
            out.send(*asker, Frame::Answer(prompt.request, AnswerPart::Queued(index as u32 + 1)));
        }
    }

    /// Starts the next question if none is being answered, and sends what may be sent.
    pub fn advance(&mut self, model: &OpenedModel, plan: &Plan, context: u32, now: Millis, out: &mut Outbox) {
        while self.current.is_none() {
            let Some((asker, prompt, asked)) = self.queue.pop_front() else { return };
            self.begin(asker, prompt, asked, model, context as usize, now, out);
            self.tell_positions(out);
        }
        if let Some(answering) = &mut self.current {
            answering.send(plan, now, out);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "one call; a struct of these would only rename them")]
    fn begin(
        &mut self,
        asker: PeerId,
        prompt: PromptRequest,
        asked: Millis,
        model: &OpenedModel,
        context: usize,
        now: Millis,
        out: &mut Outbox,
    ) {
        let tokens = match &prompt.messages[..] {
            [] => Err("There is nothing to answer: the message is empty.".to_owned()),
            [.., last] if prompt.raw => Ok(model.language.tokenize(&last.content)),
            messages => model.language.render(messages),
        };
        let tokens = tokens.and_then(|tokens| match tokens.len() {
            0 => Err("There is nothing to answer: the message is empty.".to_owned()),
            n if n + 1 > context => Err(format!(
                "The conversation has {n} tokens and the room's context is {context}: start a new one or shorten the message."
            )),
            _ => Ok(tokens),
        });
        let tokens = match tokens {
            Ok(tokens) => tokens,
            Err(sentence) => {
                self.refuse(asker, prompt.request, AnswerStop::Failed(sentence), out);
                return;
            }
        };
        let mut conversation = self.conversation(asker, &prompt.conversation);
        let reused = conversation.log.begin(&tokens);
        self.make_room(pages(context) - pages(tokens.len() + 1), out);
        self.current = Some(Answering {
            transcript: Transcript::new(asker, prompt.request),
            conversation: conversation.id,
            log: conversation.log,
            stream: model.language.decoder(),
            sent: reused,
            under_way: VecDeque::new(),
            prompt_tokens: tokens.len(),
            reused,
            asked,
            first_token: None,
            last_token: now,
            progress: now,
            context,
            prompt,
        });
    }

    fn conversation(&mut self, asker: PeerId, name: &str) -> Conversation {
        self.uses += 1;
        let known = self.conversations.remove(&(asker, name.to_owned()));
        known.unwrap_or_else(|| {
            self.next_conversation += 1;
            Conversation { id: ConversationId(self.next_conversation), log: TokenLog::default(), used: self.uses }
        })
    }

    /// Forgets the conversations used longest ago until the others take at most `pages` pages of state.
    fn make_room(&mut self, most: usize, out: &mut Outbox) {
        while self.conversations.values().map(|kept| pages(kept.log.len())).sum::<usize>() > most {
            let oldest = self.conversations.iter().min_by_key(|(_, kept)| kept.used).map(|(key, _)| key.clone());
            let Some(forgotten) = oldest.and_then(|key| self.conversations.remove(&key)) else { return };
            out.broadcast_own(Frame::Forget(forgotten.id));
        }
    }

    /// The last stage's answer.
    pub fn picked(&mut self, picked: Picked, model: &OpenedModel, now: Millis, out: &mut Outbox) {
        let Some(answering) = &mut self.current else { return };
        let end = picked.base.0 as usize + picked.rows as usize;
        // Rows come back in the order they were sent; anything else was sent before a rewind.
        let counts = answering.under_way.front() == Some(&end) || is_planted(Bug::ReplyTwice);
        if picked.conversation != answering.conversation || !counts {
            return;
        }
        answering.under_way.pop_front();
        answering.log.set_computed(end);
        answering.progress = now;
        match picked.result {
            PickedRows::Through => answering.report_reading(out),
            PickedRows::Candidates(rows) => {
                let best = rows.into_iter().last();
                match best.filter(|row| !row.ids.is_empty() && row.ids.len() == row.logits.len()) {
                    Some(row) if end == answering.log.len() || is_planted(Bug::ReplyTwice) => {
                        self.token(&row, model, now, out)
                    }
                    _ => self.fail_current("The last device sent an answer that cannot be read.", now, out),
                }
            }
            PickedRows::Logits(_) => {}
        }
    }

    fn token(&mut self, candidates: &Candidates, model: &OpenedModel, now: Millis, out: &mut Outbox) {
        let Some(answering) = &mut self.current else { return };
        let position = answering.log.len() as u32;
        let sampling = &answering.prompt.sampling;
        let token = model.language.choose(candidates, sampling, position, answering.log.tokens());
        if answering.first_token.is_none() {
            answering.first_token = Some(now);
        }
        answering.last_token = now;
        if model.language.is_end(token) {
            self.finish(AnswerStop::Complete, now, out);
            return;
        }
        answering.log.push(token);
        let delta = answering.stream.push(token);
        answering.transcript.text(delta, vec![token], out);
        let written = answering.log.len() - answering.prompt_tokens;
        if written >= answering.prompt.max_tokens as usize || answering.log.len() >= answering.context {
            self.finish(AnswerStop::Length, now, out);
            return;
        }
        let (kept, context) = (pages(answering.log.len() + 1), pages(answering.context));
        self.make_room(context.saturating_sub(kept), out);
    }

    fn finish(&mut self, stop: AnswerStop, now: Millis, out: &mut Outbox) {
        let Some(mut answering) = self.current.take() else { return };
        let rest = answering.stream.finish();
        if !rest.is_empty() {
            answering.transcript.text(rest, Vec::new(), out);
        }
        let timings = answering.timings(now);
        if timings.answer_tokens > 1 && timings.decode_ms > 0.0 {
            self.tokens_per_second = f64::from(timings.answer_tokens - 1) / timings.decode_ms * 1e3;
        }
        answering.transcript.end(stop, timings, out);
        self.uses += 1;
        let kept = Conversation { id: answering.conversation, log: answering.log, used: self.uses };
        self.conversations.insert((answering.transcript.asker, answering.prompt.conversation), kept);
        self.keep(answering.transcript);
    }

    pub fn stop(&mut self, asker: PeerId, request: RequestId, now: Millis, out: &mut Outbox) {
        if self.current.as_ref().is_some_and(|current| current.transcript.is(asker, request)) {
            self.finish(AnswerStop::Stopped, now, out);
        }
        let before = self.queue.len();
        self.queue.retain(|(peer, prompt, _)| *peer != asker || prompt.request != request);
        if self.queue.len() < before {
            self.refuse(asker, request, AnswerStop::Stopped, out);
            self.tell_positions(out);
        }
    }

    pub fn fail_current(&mut self, sentence: &str, now: Millis, out: &mut Outbox) {
        self.finish(AnswerStop::Failed(sentence.to_owned()), now, out);
    }

    pub fn fail_all(&mut self, sentence: &str, out: &mut Outbox) {
        for (asker, prompt, _) in std::mem::take(&mut self.queue) {
            self.refuse(asker, prompt.request, AnswerStop::Failed(sentence.to_owned()), out);
        }
    }

    /// Nobody reads what a peer that is gone asked for.
    pub fn drop_asker(&mut self, peer: PeerId, now: Millis, out: &mut Outbox) {
        self.queue.retain(|(asker, ..)| *asker != peer);
        if self.current.as_ref().is_some_and(|current| current.transcript.asker == peer) {
            self.finish(AnswerStop::Stopped, now, out);
        }
        let lost: Vec<_> = self.conversations.keys().filter(|(asker, _)| *asker == peer).cloned().collect();
        for kept in lost.into_iter().filter_map(|key| self.conversations.remove(&key)) {
            out.broadcast_own(Frame::Forget(kept.id));
        }
    }

    /// The plan is gone; the answer goes on when there is a new one.
    pub fn recover(&mut self, reason: &str, out: &mut Outbox) {
        if let Some(answering) = &self.current {
            answering.transcript.tell(AnswerPart::Recovering(reason.to_owned()), out);
        }
        self.state_lost();
    }

    /// A new plan counts: every state has to be computed again from the logs.
    pub fn state_lost(&mut self) {
        self.conversations.values_mut().for_each(|kept| kept.log.set_computed(0));
        if let Some(answering) = &mut self.current {
            answering.rewind(0);
        }
    }

    pub fn rewind(&mut self, conversation: ConversationId, position: usize) {
        if let Some(answering) = self.current.as_mut().filter(|current| current.conversation == conversation) {
            answering.rewind(position.min(answering.log.computed()));
        }
    }

    pub fn is_stalled(&self, now: Millis) -> bool {
        self.current
            .as_ref()
            .is_some_and(|current| !current.under_way.is_empty() && now.0 - current.progress.0 > STALL_MILLIS)
    }

    pub fn send_again(&mut self) {
        if let Some(answering) = &mut self.current {
            answering.rewind(answering.log.computed());
        }
    }
}

impl Answering {
    fn rewind(&mut self, position: usize) {
        self.log.set_computed(position);
        self.sent = position;
        self.under_way.clear();
    }

    fn report_reading(&self, out: &mut Outbox) {
        let done = self.log.computed().min(self.prompt_tokens);
        self.transcript.tell(AnswerPart::Reading(done as u32, self.prompt_tokens as u32), out);
    }

    fn send(&mut self, plan: &Plan, now: Millis, out: &mut Outbox) {
        let Some(first) = plan.stages.first() else { return };
        while self.under_way.len() < WINDOW {
            let Some(chunk) = self.log.chunk(self.sent) else { return };
            if self.under_way.is_empty() {
                self.progress = now;
            }
            self.sent = chunk.base + chunk.tokens.len();
            self.under_way.push_back(self.sent);
            let head = chunk.last.then(|| HeadRequest { rows: HeadRows::Last, pick: self.pick() });
            let forward = Forward {
                epoch: plan.epoch,
                stage: first.id,
                conversation: self.conversation,
                base: Position(chunk.base as u32),
                class: chunk.class,
                tokens: chunk.tokens,
                head,
                wire: plan.wire,
                hidden: Vec::new(),
            };
            out.send(first.peer, Frame::Forward(forward));
        }
    }

    fn pick(&self) -> Pick {
        let sampling = &self.prompt.sampling;
        let greedy = sampling.temperature <= 0.0 && sampling.repetition_penalty == 1.0;
        Pick::Top(if greedy { 1 } else { Pick::MOST })
    }

    fn timings(&self, now: Millis) -> Timings {
        let first = self.first_token.unwrap_or(now);
        Timings {
            prompt_tokens: self.prompt_tokens as u32,
            reused_tokens: self.reused as u32,
            answer_tokens: (self.log.len() - self.prompt_tokens) as u32,
            first_token_ms: first.0 - self.asked.0,
            decode_ms: self.last_token.0 - first.0,
            context_used: self.log.len() as u32,
            context: self.context as u32,
        }
    }
}

fn pages(positions: usize) -> usize {
    positions.div_ceil(PAGE)
}
