//! What the last stage answers, and the tokens that are chosen from it.

use potluck_plan::{Candidates, Millis};
use potluck_protocol::{AnswerStop, Picked, PickedRows};

use super::answers::Answers;
use crate::event::OpenedModel;
use crate::outbox::Outbox;

impl Answers {
    /// The last stage's answer.
    pub fn picked(&mut self, picked: Picked, model: &OpenedModel, now: Millis, out: &mut Outbox) {
        let Some(index) = self.index_of(picked.conversation) else { return };
        let answering = &mut self.active[index];
        let Some(pass) = answering.through(picked.pass, now) else { return };
        match picked.result {
            PickedRows::Through => answering.report_reading(out),
            PickedRows::Candidates(rows) => {
                let best = rows.into_iter().last();
                match best.filter(|row| !row.ids.is_empty() && row.ids.len() == row.logits.len()) {
                    Some(row) if pass.end == answering.conversation.log.len() => {
                        self.token(index, &row, model, now, out);
                    }
                    _ => {
                        let sentence = "The last device sent an answer that cannot be read.".to_owned();
                        self.finish(index, AnswerStop::Failed(sentence), now, out);
                    }
                }
            }
            PickedRows::Logits(_) => {}
        }
    }

    fn token(&mut self, index: usize, candidates: &Candidates, model: &OpenedModel, now: Millis, out: &mut Outbox) {
        let answering = &mut self.active[index];
        let log = &mut answering.conversation.log;
        let token = model.language.choose(candidates, &answering.prompt.sampling, log.len() as u32, log.tokens());
        answering.timed(now);
        if model.language.is_end(token) {
            self.finish(index, AnswerStop::Complete, now, out);
            return;
        }
        answering.conversation.log.push(token);
        let delta = answering.stream.push(token);
        answering.transcript.text(delta, vec![token], out);
        if answering.is_full() {
            self.finish(index, AnswerStop::Length, now, out);
        }
    }

    /// Ends an answer. Its conversation is kept for the next question.
    pub(super) fn finish(&mut self, index: usize, stop: AnswerStop, now: Millis, out: &mut Outbox) {
        let mut answering = self.active.remove(index);
        let rest = answering.stream.finish();
        if !rest.is_empty() {
            answering.transcript.text(rest, Vec::new(), out);
        }
        let timings = answering.timings(now);
        if timings.answer_tokens > 1 && timings.decode_ms > 0.0 {
            self.tokens_per_second = f64::from(timings.answer_tokens - 1) / timings.decode_ms * 1e3;
        }
        answering.transcript.end(stop, timings, out);
        let asker = answering.transcript.asker;
        self.conversations.keep(asker, answering.prompt.conversation, answering.conversation);
        self.keep(answering.transcript);
    }
}
