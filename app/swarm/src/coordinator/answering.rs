//! One running answer.

mod choice;
mod pass;
mod takeover;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use potluck_panel::{DraftDecision, Drafter};
use potluck_plan::{
    AllowedTokens, Candidates, Channel, ConversationId, KernelClass, LmHeadRequest, LmHeadTokens, LogitBias,
    LogitsRequest, Millis, PeerId, Plan, Position, SampledSteps,
};
use potluck_predict::ShadowWord;
use potluck_protocol::{AnswerPart, Forward, Frame, PassId, PromptRequest, Timings};

pub(super) use self::pass::{DecodePass, Pass, PrefillPass, Reading};
pub(super) use self::takeover::Continuation;
use super::conversations::Conversation;
use super::draft::{Acceptance, DraftCost, Drafts, MAX_DRAFTS, look_up};
use super::expected_tokens::ExpectedTokens;
use super::handover::Replay;
use super::layer_checks::EndedAnswer;
use super::multi_step::MultiStep;
use super::token_log::Chunk;
use super::transcript::Transcript;
use crate::event_context::EventContext;
use crate::kv_pages::{left_in_page, pages};
use crate::language::{Grammar, Language, TextStream};
use crate::mutation::{Mutation, has_mutation};

/// Growth that is reserved for an answer when the next one is admitted, in positions.
const EXPECTED_GROWTH: usize = 64;
/// Chunks are sent again after this silence. That is safe: receivers truncate first.
const STALL_MILLIS: f64 = 60_000.0;

pub(super) struct Answering {
    pub transcript: Transcript,
    pub prompt: PromptRequest,
    pub conversation: Conversation,
    pub stream: Box<dyn TextStream>,
    /// What holds it to a form; it has the tokens of the log that the answer has.
    pub grammar: Option<Box<dyn Grammar>>,
    /// Which tokens may be chosen after each of those that were sent through the LM head last; none: all may.
    allowed: Vec<AllowedTokens>,
    /// Of the last text: tokens without any belong to it.
    pub channel: Channel,
    /// Its KV cache was given up for others; it goes on when there is room.
    pub paused: bool,
    /// Another host has begun it: it goes on once the asker says how far it got.
    pub awaits_asker: bool,
    /// Positions sent to the first stage.
    sent: usize,
    /// Oldest first.
    in_flight: VecDeque<Pass>,
    /// Guesses for the next tokens, as far as the tokens since agree.
    guess: VecDeque<u32>,
    acceptance: Acceptance,
    /// What a shadow of the host's expects, if there is one.
    expected: ExpectedTokens,
    pub prompt_tokens: usize,
    /// What the last stage of the plan sent for positions of the log, for checks.
    pub results: BTreeMap<u32, Candidates>,
    /// Devices with a stage that some of it was sent through.
    pub computed_by: BTreeSet<PeerId>,
    reused: usize,
    asked: Millis,
    /// Predicted milliseconds until the first token, once that was computed; 0: there is no prediction.
    pub expected_first: Option<f64>,
    /// Positions that were ever computed.
    furthest: usize,
    /// New plans for want of experts since there were more of them.
    pub recoveries_in_vain: u32,
    first_token: Option<Millis>,
    last_token: Millis,
    progress: Millis,
    context: usize,
}

impl Answering {
    /// Starts with the prompt's tokens; what the conversation has computed of them is reused.
    #[expect(clippy::too_many_arguments, reason = "one call; a struct of these would only rename them")]
    pub fn new(
        transcript: Transcript,
        prompt: PromptRequest,
        mut conversation: Conversation,
        tokens: &[u32],
        stream: Box<dyn TextStream>,
        context: usize,
        asked: Millis,
        now: Millis,
    ) -> Self {
        let common = conversation.log.begin(tokens);
        let reused = conversation.bases.last(common);
        conversation.log.set_computed(reused);
        Self {
            transcript,
            prompt,
            conversation,
            stream,
            grammar: None,
            allowed: Vec::new(),
            channel: Channel::default(),
            paused: false,
            awaits_asker: false,
            sent: reused,
            in_flight: VecDeque::new(),
            guess: VecDeque::new(),
            acceptance: Acceptance::default(),
            expected: ExpectedTokens::default(),
            prompt_tokens: tokens.len(),
            results: BTreeMap::new(),
            computed_by: BTreeSet::new(),
            reused,
            asked,
            // There is no prediction for an answer that waited in the queue.
            expected_first: (now > asked).then_some(0.0),
            furthest: reused,
            recoveries_in_vain: 0,
            first_token: None,
            last_token: now,
            progress: now,
            context,
        }
    }

    /// Nothing can follow what is written.
    pub fn is_complete(&self) -> bool {
        self.stream.ended() || self.grammar.as_ref().is_some_and(|grammar| grammar.is_complete())
    }

    /// Its prompt is not fully processed yet.
    pub fn is_reading(&self) -> bool {
        self.conversation.log.computed() < self.prompt_tokens
    }

    /// The next chunk, if fewer than `window` are in flight.
    pub fn next_chunk(&self, window: usize, prefill_tokens: usize) -> Option<Chunk> {
        if self.paused || self.awaits_asker || self.in_flight.len() >= window {
            None
        } else {
            self.conversation.log.chunk(self.sent, prefill_tokens)
        }
    }

    /// Limit on tokens that may be computed after a chunk that is the newest token. They never begin a new page.
    fn max_further_steps(&self, chunk: &Chunk) -> usize {
        if chunk.class != KernelClass::Decode || !chunk.last || chunk.tokens.len() != 1 {
            return 0;
        }
        let end = chunk.base + 1;
        let room = left_in_page(end).min(self.context.saturating_sub(end));
        let left = (self.prompt.max_tokens as usize).saturating_sub(self.answer_tokens() + 1);
        room.min(left)
    }

    /// Tokens to compute after a chunk.
    pub fn further_steps(&self, chunk: &Chunk, multi_step: MultiStep) -> u16 {
        let runs_ahead = || multi_step.samples_ahead() && self.sampled_steps(1).is_some();
        if !self.prompt.logits.are_usual() {
            0
        } else if self.logits_request() == LogitsRequest::Top(1) || runs_ahead() {
            multi_step.further_steps(self.max_further_steps(chunk))
        } else {
            0
        }
    }

    /// How they are sampled; `None`: greedily.
    pub fn sampled_steps(&self, further_steps: u16) -> Option<SampledSteps> {
        let is_sampled = further_steps > 0 && self.logits_request() != LogitsRequest::Top(1);
        let sampling = is_sampled.then_some(self.prompt.sampling)?;
        SampledSteps::after(sampling, self.conversation.log.tokens())
    }

    /// The tokens that ran ahead of the log are not its own: work goes on after those that are.
    pub fn drop_ahead(&mut self) {
        self.rewind(self.conversation.log.computed());
    }

    /// Draft tokens after a chunk, if drafts pay: of the drafter that promises the most tokens a second. Those of a shadow stop
    /// before the answer's end. Also returns what was compared, where drafts are possible.
    pub fn drafts(
        &mut self,
        chunk: &Chunk,
        cost: &DraftCost,
        network_hops: u32,
        language: &dyn Language,
    ) -> (Drafts, Option<DraftDecision>) {
        let max = self.max_further_steps(chunk);
        // A rejected draft would take a recurrent state back by up to a page.
        if max == 0 || self.conversation.bases.is_recurrent() {
            return (Drafts::default(), None);
        }
        let log = self.conversation.log.tokens();
        if self.guess.is_empty() {
            self.guess = look_up(log, MAX_DRAFTS).into();
        }
        let best = |acceptance, known: usize| cost.best_length(acceptance, network_hops, known.min(max));
        let (of_log, log_rate) = best(self.acceptance, self.guess.len());
        let to_end = self.expected.after(log).position(|token| language.is_end(token));
        let known = to_end.unwrap_or_else(|| self.expected.after(log).len());
        let (of_shadow, shadow_rate) = best(self.expected.acceptance, known);
        let decision = |drafter, length: usize, gain, acceptance: Acceptance| DraftDecision {
            drafter,
            length: length as u32,
            gain,
            accepted: acceptance.share(),
            cost: cost.further(),
        };
        if shadow_rate > log_rate {
            let tokens = self.expected.after(log).take(of_shadow).collect();
            (
                Drafts { by: Drafter::Shadow, tokens },
                Some(decision(Drafter::Shadow, of_shadow, shadow_rate, self.expected.acceptance)),
            )
        } else {
            let tokens = self.guess.iter().copied().take(of_log).collect();
            (Drafts { by: Drafter::Text, tokens }, Some(decision(Drafter::Text, of_log, log_rate, self.acceptance)))
        }
    }

    /// A shadow has said something of the answer. What it expects within the prompt is of no use.
    pub fn foreseen(&mut self, word: &ShadowWord) {
        let is_in_prompt =
            matches!(word, ShadowWord::Expects(position, _) if (position.0 as usize) < self.prompt_tokens);
        if !is_in_prompt {
            self.expected.hear(word);
        }
    }

    /// A token was sampled: compares it with the guesses. They are judged whether they were sent or not.
    pub fn judge(&mut self, token: u32) {
        self.expected.judge(self.conversation.log.tokens());
        if let Some(guessed) = self.guess.pop_front() {
            self.acceptance.judge(guessed == token);
            if guessed != token {
                self.guess.clear();
            }
        }
    }

    pub fn send(&mut self, chunk: Chunk, pass: PassId, live: Vec<ConversationId>, plan: &Plan, cx: &mut EventContext) {
        let Some(first) = plan.stages.first() else { return };
        if self.in_flight.is_empty() {
            self.progress = cx.now;
        }
        self.sent = chunk.base + chunk.tokens.len();
        self.conversation.newest = pass;
        self.computed_by.extend(plan.stages.iter().map(|stage| stage.peer));
        let is_decode = chunk.class == KernelClass::Decode && chunk.tokens.len() == 1;
        let lm_head_tokens = if chunk.drafts.tokens.is_empty() { LmHeadTokens::Last } else { LmHeadTokens::All };
        let tokens = [&chunk.tokens[..], &chunk.drafts.tokens].concat();
        self.in_flight.push_back(Pass {
            id: pass,
            end: self.sent,
            tokens: tokens.len() as u64 + u64::from(chunk.further_steps),
            drafts: chunk.drafts,
            further_steps: chunk.further_steps,
            sent: cx.now,
            is_decode,
        });
        let sampling = self.sampled_steps(chunk.further_steps);
        let bias = if chunk.last { self.prompt.logits.bias.clone() } else { LogitBias::default() };
        // Where the LM head is on this device, no frame needs to name the biased tokens.
        let is_own = plan.stages.last().is_some_and(|last| last.peer == cx.members.me);
        let allowed = if chunk.last { self.allowed.clone() } else { Vec::new() };
        let (own, (bias, allowed)) = match is_own {
            true => ((bias, allowed), Default::default()),
            false => (Default::default(), (bias, allowed)),
        };
        if chunk.last {
            cx.biases.put(self.conversation.id, own.0, own.1);
        }
        let held = chunk.base + tokens.len() + usize::from(chunk.further_steps);
        self.conversation.held = self.conversation.held.max(held);
        self.conversation.bases.sent(chunk.base, held, chunk.class);
        let forward = Forward {
            epoch: plan.epoch,
            stage: first.id,
            pass,
            live,
            conversation: self.conversation.id,
            base: Position(chunk.base as u32),
            class: chunk.class,
            count: tokens.len() as u32,
            tokens,
            further_steps: chunk.further_steps,
            sampling,
            lm_head: chunk.last.then(|| LmHeadRequest { tokens: lm_head_tokens, logits: self.logits_request() }),
            bias,
            allowed,
            stage_millis: Vec::new(),
            wire: plan.wire,
            hidden: Vec::new(),
        };
        cx.out.send(first.peer, Frame::Forward(forward));
    }

    /// What all stages have computed of the answer and its conversation; none while something is on its way.
    pub fn ended(&self) -> Option<EndedAnswer> {
        let Conversation { id, log, newest, .. } = &self.conversation;
        let (tokens, classes) = log.of_computed();
        let results = self.results.iter().filter(|(position, _)| (**position as usize) < tokens.len());
        self.in_flight.is_empty().then(|| EndedAnswer {
            conversation: *id,
            through: *newest,
            tokens: tokens.to_vec(),
            classes: classes.to_vec(),
            results: results.map(|(position, best)| (*position, best.clone())).collect(),
            bias: self.prompt.logits.bias.clone(),
        })
    }

    /// Prompt tokens to process for the first token.
    pub fn to_read(&self) -> usize {
        self.prompt_tokens.saturating_sub(self.reused)
    }

    /// Prefill progress, if pass `id` arrives now and is part of the prompt.
    pub fn reading(&self, id: PassId, now: Millis) -> Option<Reading> {
        let pass = self.in_flight.front().filter(|pass| pass.id == id && pass.end <= self.prompt_tokens)?;
        let tokens = pass.end.saturating_sub(self.conversation.log.computed());
        Some(Reading { tokens, millis: now.0 - self.progress.0 })
    }

    /// This pass is in flight.
    pub fn awaits(&self, id: PassId) -> bool {
        self.in_flight.iter().any(|pass| pass.id == id)
    }

    /// Tokens of this pass, if it is the next one to be complete.
    pub fn tokens_of(&self, id: PassId) -> Option<u64> {
        self.in_flight.front().filter(|pass| pass.id == id).map(|pass| pass.tokens)
    }

    /// A pass is complete. Passes complete in the order they were sent; `None`: it was sent before a rewind.
    pub fn completed(&mut self, id: PassId, now: Millis) -> Option<Pass> {
        let counts = |pass: &mut Pass| pass.id == id || has_mutation(Mutation::ReplyTwice);
        let pass = self.in_flight.pop_front_if(counts)?;
        self.progress = now;
        if pass.end > self.furthest {
            (self.furthest, self.recoveries_in_vain) = (pass.end, 0);
        }
        self.conversation.log.set_computed(pass.end);
        // Every stage truncated to this pass, so nothing after it is held any more.
        self.conversation.held = self.in_flight.iter().map(Pass::held).max().unwrap_or(0).max(pass.held());
        Some(pass)
    }

    /// The model chose a draft: its token is as good as one that was sent later.
    pub fn accept(&mut self) {
        self.sent += 1;
        self.conversation.log.set_computed(self.sent);
    }

    /// Goes back to this position, or to the last one before it where work can begin. It never goes forward: after it no position
    /// counts as computed that did not before, and nothing is in flight. So a stage may name any position as its gap.
    pub fn rewind(&mut self, position: usize) {
        let position = self.conversation.bases.last(position.min(self.conversation.log.computed()));
        self.conversation.log.set_computed(position);
        self.sent = position;
        self.in_flight.clear();
    }

    /// No device holds KV cache of it any more.
    pub fn kv_cache_lost(&mut self) {
        self.rewind(0);
        // This plan's stage cannot be held to what another plan's stage sent.
        self.results.clear();
        self.conversation.held = 0;
        self.conversation.bases = self.conversation.bases.cleared();
    }

    /// The text so far does not count, and nothing that was computed of it. What is still on its way belongs to
    /// nothing, because the conversation has another id.
    pub fn begin_again(&mut self, fresh: ConversationId, language: &dyn Language, cx: &mut EventContext) {
        let log = &mut self.conversation.log;
        let prompt = log.tokens()[..self.prompt_tokens].to_vec();
        log.begin(&prompt);
        self.kv_cache_lost();
        self.conversation.id = fresh;
        (self.stream, self.channel) = (language.decoder(&self.prompt, &prompt), Channel::default());
        self.grammar.iter_mut().for_each(|grammar| grammar.begin_again());
        self.guess.clear();
        self.computed_by.clear();
        (self.reused, self.furthest, self.first_token) = (0, 0, None);
        (self.acceptance, self.expected) = (Acceptance::default(), ExpectedTokens::default());
        // There is no prediction for an answer that has taken so long already.
        self.expected_first = Some(0.0);
        self.transcript.void(cx);
    }

    /// Goes on with the KV cache of its replay; without one, from its log alone.
    pub fn moved(&mut self, replay: Option<Replay>, fresh: ConversationId) {
        self.kv_cache_lost();
        self.conversation.id = fresh;
        if let Some(replay) = replay {
            self.conversation.id = replay.id;
            self.conversation.bases = replay.bases.clone();
            self.conversation.log.set_computed(replay.computed);
            self.conversation.held = replay.sent();
            self.conversation.newest = replay.newest;
            self.sent = replay.sent();
            self.in_flight = replay.in_flight;
        }
    }

    /// Pages it may need at most.
    pub fn max_pages(&self) -> usize {
        let left = (self.prompt.max_tokens as usize).saturating_sub(self.answer_tokens());
        let most = pages(self.conversation.log.len().saturating_add(left).min(self.context));
        most.max(self.pages()).max(self.conversation.least)
    }

    /// Everything in flight is sent again.
    pub fn resend(&mut self) {
        self.rewind(self.conversation.log.computed());
    }

    pub fn is_stalled(&self, now: Millis) -> bool {
        !self.in_flight.is_empty() && now.0 - self.progress.0 > STALL_MILLIS
    }

    /// Pages of KV cache it holds.
    pub fn pages(&self) -> usize {
        self.conversation.pages()
    }

    /// Pages to reserve for it while others run beside it.
    pub fn expected_pages(&self) -> usize {
        let left = (self.prompt.max_tokens as usize).saturating_sub(self.answer_tokens());
        let expected = expected_pages(self.conversation.log.len(), left, self.context);
        self.pages().max(expected).max(self.conversation.least)
    }

    pub fn answer_tokens(&self) -> usize {
        self.conversation.log.len() - self.prompt_tokens
    }

    /// No more tokens may be written.
    pub fn is_full(&self) -> bool {
        self.answer_tokens() >= self.prompt.max_tokens as usize || self.conversation.log.len() >= self.context
    }

    pub fn report_reading(&self, cx: &mut EventContext) {
        let done = self.conversation.log.computed().min(self.prompt_tokens);
        self.transcript.send(AnswerPart::Reading(done as u32, self.prompt_tokens as u32), cx);
    }

    /// A token was sampled.
    pub fn timed(&mut self, now: Millis) {
        self.first_token.get_or_insert(now);
        self.last_token = now;
    }

    /// There will be a new plan, for want of experts.
    pub fn recover_for_experts(&mut self) {
        self.recoveries_in_vain += u32::from(!self.in_flight.is_empty());
    }

    pub fn timings(&self, now: Millis) -> Timings {
        let first = self.first_token.unwrap_or(now);
        Timings {
            prompt_tokens: self.prompt_tokens as u32,
            reused_tokens: self.reused as u32,
            answer_tokens: self.answer_tokens() as u32,
            first_token_ms: first.0 - self.asked.0,
            expected_first_ms: self.expected_first.unwrap_or(0.0),
            decode_ms: self.last_token.0 - first.0,
            context_used: self.conversation.log.len() as u32,
            context: self.context as u32,
        }
    }
}

/// Pages for a log of this length that may grow by `left` tokens.
pub(super) fn expected_pages(len: usize, left: usize, context: usize) -> usize {
    pages((len + left.clamp(1, EXPECTED_GROWTH)).min(context))
}
