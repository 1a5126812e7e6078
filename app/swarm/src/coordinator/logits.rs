//! Results of the last stage, and the tokens sampled from them.

use potluck_panel::Drafter;
use potluck_plan::Candidates;
use potluck_protocol::{AnswerStop, LmHeadOutput, LogitsResult};

use super::answering::{DecodePass, Pass, PrefillPass};
use super::answers::{Answers, MAX_CONCURRENT};
use super::draft::Drafts;
use super::shown_answers::ShownAnswer;
use super::transcript::Pieces;
use crate::Severity;
use crate::event::OpenedModel;
use crate::event_context::EventContext;
use crate::limits;
use crate::mutation::{Mutation, has_mutation};

const SAMPLES_OTHERWISE: &str = "This device's GPU cannot sample tokens ahead, so they come one by one.";

impl Answers {
    /// Takes the last stage's result. False if it is malformed.
    pub fn logits_result(&mut self, reply: LogitsResult, model: &OpenedModel, cx: &mut EventContext) -> bool {
        let Some(index) = self.index_of(reply.conversation) else { return true };
        if let Some(reading) = self.active[index].reading(reply.pass, cx.now) {
            self.chunk_size.measured(reading.tokens, reading.millis);
            if self.active.len() == 1 {
                self.read = Some(PrefillPass { tokens: reading.tokens, stage_millis: reply.stage_millis.clone() });
            }
        }
        let answering = &mut self.active[index];
        let Some(pass) = answering.completed(reply.pass, cx.now) else { return true };
        match reply.result {
            LmHeadOutput::NotRequested => answering.report_reading(cx),
            LmHeadOutput::Candidates(candidates) => {
                let is_newest = pass.end == answering.conversation.log.len() || has_mutation(Mutation::ReplyTwice);
                let is_valid = |(index, best_of)| answering.is_result(index, best_of, model.shape.vocabulary);
                if is_newest
                    && candidates.len() == pass.drafts.tokens.len() + usize::from(pass.further_steps) + 1
                    && candidates.iter().enumerate().all(is_valid)
                {
                    if let Some(millis) = pass.decode_millis(cx.now) {
                        self.measure(&pass, millis);
                        if pass.drafts.tokens.is_empty() && self.active.len() == 1 {
                            let stage_millis = reply.stage_millis;
                            let is_first = self.active[index].answer_tokens() <= 1;
                            self.passed =
                                Some(DecodePass { steps: pass.further_steps + 1, stage_millis, millis, is_first });
                        }
                    }
                    // In multi-step decode each token was computed from the one chosen before it.
                    let chosen = candidates
                        .iter()
                        .take(usize::from(pass.further_steps))
                        .filter_map(|best_of| best_of.sampled.or(best_of.ids.first().copied()));
                    let ran_ahead = pass.further_steps > 0;
                    let Drafts { by, tokens } = pass.drafts;
                    let drafted = (!ran_ahead).then_some((by, tokens.len() as u64));
                    let drafts: Vec<u32> = tokens.into_iter().chain(chosen).collect();
                    let accepted = self.tokens(index, &candidates, &drafts, ran_ahead, model, cx);
                    if let Some((by, sent)) = drafted {
                        self.count(by, sent, accepted);
                    }
                } else {
                    return false;
                }
            }
        }
        true
    }

    fn count(&mut self, by: Drafter, sent: u64, accepted: u64) {
        let count = match by {
            Drafter::Text => &mut self.drafted.from_text,
            Drafter::Shadow => &mut self.drafted.from_shadow,
        };
        (count.sent, count.accepted) = (count.sent + sent, count.accepted + accepted);
    }

    fn measure(&mut self, pass: &Pass, millis: f64) {
        if pass.further_steps == 0 {
            self.draft_cost.measure(pass.drafts.tokens.len(), millis);
        }
        if pass.drafts.tokens.is_empty() {
            self.multi_step.measure(usize::from(pass.further_steps) + 1, millis);
        }
    }

    /// Samples the token after each batch token. The first is certain; each further one counts only if the model
    /// chose the draft before it. Drafts of tokens that ran ahead are right unless the GPU samples otherwise than this
    /// sampler. Returns how many drafts the model chose.
    fn tokens(
        &mut self,
        index: usize,
        candidates: &[Candidates],
        drafts: &[u32],
        ran_ahead: bool,
        model: &OpenedModel,
        cx: &mut EventContext,
    ) -> u64 {
        let answering = &mut self.active[index];
        let (mut pieces, mut written, mut stop, mut accepted) = (Pieces::default(), 0, None, 0);
        for (best_of, draft) in candidates.iter().zip(drafts.iter().map(Some).chain([None])) {
            let log = &answering.conversation.log;
            let position = log.len().saturating_sub(1);
            // Longer conversations are not computed again, nor is what was chosen of an answer that must have a form.
            if answering.grammar.is_none()
                && position.saturating_mul(model.shape.hidden as usize) < limits::MAX_SHOWN_VALUES
            {
                answering.results.insert(position as u32, best_of.clone());
            }
            let allowed = answering.allowed(best_of);
            let best_of = allowed.as_ref();
            let token = model.language.choose(best_of, &answering.prompt.sampling, log.len() as u32, log.tokens());
            if model.language.is_end(token) {
                stop = Some(AnswerStop::Complete);
                break;
            }
            let logprobs = answering.logprobs(token, best_of, model.language.as_ref());
            answering.conversation.log.push(token);
            answering.judge(token);
            let texts = answering.stream.push(token);
            if let Some(last) = texts.last() {
                answering.channel = last.channel;
            }
            pieces.push(token, answering.channel, logprobs, texts);
            written += 1;
            if let Some(grammar) = &mut answering.grammar {
                if let Err(sentence) = grammar.push(token) {
                    stop = Some(AnswerStop::Failed(sentence));
                    break;
                }
                if grammar.is_complete() {
                    stop = Some(AnswerStop::Complete);
                    break;
                }
            }
            if answering.stream.ended() {
                stop = Some(AnswerStop::Complete);
                break;
            }
            if answering.is_full() {
                stop = Some(AnswerStop::Length);
                break;
            }
            if draft != Some(&token) {
                if ran_ahead && draft.is_some() {
                    answering.drop_ahead();
                    // Who runs ahead with the best token, without having sampled, is not at fault.
                    if self.multi_step.differs() && best_of.sampled.is_some() {
                        cx.out.notice(Severity::Info, SAMPLES_OTHERWISE);
                    }
                }
                break;
            }
            answering.accept();
            accepted += 1;
        }
        self.tokens += written;
        answering.timed(cx.now);
        answering.transcript.text(pieces, cx);
        if let Some(stop) = stop {
            self.finish(index, stop, cx);
        }
        accepted
    }

    /// Ends an answer and keeps its conversation for the next question.
    pub(super) fn finish(&mut self, index: usize, stop: AnswerStop, cx: &mut EventContext) {
        let mut answering = self.active.remove(index);
        self.ended.extend(answering.ended().filter(|_| self.ended.len() < MAX_CONCURRENT));
        answering.transcript.text(Pieces::rest(answering.stream.finish()), cx);
        let timings = answering.timings(cx.now);
        if timings.answer_tokens > 1 && timings.decode_ms > 0.0 {
            self.tokens_per_second = f64::from(timings.answer_tokens - 1) / timings.decode_ms * 1e3;
        }
        answering.transcript.end(stop, timings, cx);
        let (asker, request) = (answering.transcript.asker, answering.transcript.request);
        let (conversation, computed_by) = (answering.prompt.conversation.clone(), answering.computed_by);
        self.shown.add(ShownAnswer { asker, request, conversation, computed_by, is_doubtful: false });
        self.conversations.keep(asker, answering.prompt.conversation, answering.conversation);
        self.keep(answering.transcript);
    }
}
