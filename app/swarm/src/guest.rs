//! A peer's own questions, and the room view that the coordinator sends.

use std::collections::{BTreeMap, VecDeque};

use potluck_plan::{Millis, PlanEpoch};
use potluck_protocol::{
    AnswerPart, AnswerStop, Frame, PromptRequest, Received, RequestId, RoomView, Timings, TokenLogprobs,
};

use crate::Action;
use crate::event_context::EventContext;
use crate::limits;

/// After this silence about a question the coordinator is asked what was lost. It costs nothing if nothing was.
const RESUME_MILLIS: f64 = 3_000.0;
/// A host that is away for longer does not finish its answers.
const ABANDONED_MILLIS: f64 = 60_000.0;

#[derive(Default)]
pub(crate) struct Guest {
    pub room: Option<RoomView>,
    pending: BTreeMap<RequestId, Pending>,
}

struct Pending {
    prompt: PromptRequest,
    /// Pieces of text received.
    pieces: u32,
    /// Tokens in those that count.
    tokens: u32,
    /// The last of these tokens.
    last: VecDeque<u32>,
    heard: Millis,
}

impl Pending {
    fn received(&self) -> Received {
        Received { pieces: self.pieces, tokens: self.tokens, last: self.last.iter().copied().collect() }
    }

    fn takes(&mut self, part: &AnswerPart) {
        match part {
            AnswerPart::Text { tokens, .. } => {
                self.pieces += 1;
                self.tokens = self.tokens.saturating_add(tokens.len() as u32);
                self.last.extend(tokens);
                self.last.drain(..self.last.len().saturating_sub(Received::MAX_LAST));
            }
            AnswerPart::Void { .. } => {
                self.pieces += 1;
                (self.tokens, self.last) = Default::default();
            }
            _ => {}
        }
    }
}

impl Guest {
    /// Takes a room view without its plan, which has this epoch. False if that plan is not here.
    pub fn update(&mut self, epoch: PlanEpoch, mut view: RoomView) -> bool {
        let Some(room) = &mut self.room else { return false };
        let Some(plan) = room.plan.plan.take_if(|plan| plan.epoch == epoch) else { return false };
        view.plan.plan = Some(plan);
        *room = view;
        true
    }

    pub fn pending(&self) -> Vec<RequestId> {
        self.pending.keys().copied().collect()
    }

    pub fn ask(&mut self, prompt: PromptRequest, now: Millis) {
        let (pieces, tokens, last) = Default::default();
        self.pending.insert(prompt.request, Pending { prompt, pieces, tokens, last, heard: now });
    }

    /// Takes a part of an answer. Returns what to send the coordinator if a piece is missing.
    pub fn answer(&mut self, request: RequestId, mut part: AnswerPart, cx: &mut EventContext) -> Option<Frame> {
        // It comes when the answer has ended.
        if matches!(part, AnswerPart::Doubtful { .. }) {
            cx.out.act(Action::Answer(request, part));
            return None;
        }
        let pending = self.pending.get_mut(&request)?;
        pending.heard = cx.now;
        if let AnswerPart::End { timings, .. } = &mut part {
            clean(timings);
        }
        if let AnswerPart::Text { tokens, logprobs, .. } = &mut part {
            let wanted = pending.prompt.logits.top_logprobs;
            let is_wanted = |of: &TokenLogprobs| wanted.is_some_and(|most| of.top.len() <= usize::from(most));
            let fits = logprobs.len() <= tokens.len();
            if !(fits && logprobs.iter().all(|of| is_wanted(of) && of.are_possible())) {
                logprobs.clear();
            }
        }
        match &part {
            AnswerPart::Text { index, .. } | AnswerPart::Void { index } if *index < pending.pieces => return None,
            AnswerPart::Text { index: missed, .. }
            | AnswerPart::Void { index: missed }
            | AnswerPart::End { pieces: missed, .. }
                if *missed > pending.pieces =>
            {
                return Some(Frame::Resume(request, pending.received()));
            }
            AnswerPart::Text { .. } | AnswerPart::Void { .. } => pending.takes(&part),
            AnswerPart::Unknown if pending.pieces == 0 => return Some(Frame::Prompt(pending.prompt.clone())),
            AnswerPart::Unknown => {
                self.fail(request, "The host started again before the answer was complete. Ask again.", cx);
                return None;
            }
            AnswerPart::End { .. } => {
                self.pending.remove(&request);
                cx.out.act(Action::ViewChanged);
            }
            _ => {}
        }
        cx.out.act(Action::Answer(request, part));
        None
    }

    /// Requests to resend answers of which nothing was heard for a while.
    pub fn overdue(&mut self, now: Millis) -> Vec<Frame> {
        let overdue = self.pending.iter_mut().filter(|(_, pending)| now.0 - pending.heard.0 > RESUME_MILLIS);
        overdue
            .map(|(request, pending)| {
                pending.heard = now;
                Frame::Resume(*request, pending.received())
            })
            .collect()
    }

    /// Another device hosts the room: it is told how far each answer was received.
    pub fn resume_all(&self) -> Vec<Frame> {
        self.pending.iter().map(|(request, pending)| Frame::Resume(*request, pending.received())).collect()
    }

    pub fn fail(&mut self, request: RequestId, sentence: &str, cx: &mut EventContext) {
        self.end(request, AnswerStop::Failed(sentence.to_owned()), cx);
    }

    /// The question is not sent.
    pub fn refuse(&mut self, request: RequestId, sentence: &str, cx: &mut EventContext) {
        self.end(request, AnswerStop::Refused(sentence.to_owned()), cx);
    }

    fn end(&mut self, request: RequestId, stop: AnswerStop, cx: &mut EventContext) {
        let pieces = self.pending.remove(&request).map_or(0, |pending| pending.pieces);
        cx.out.act(Action::Answer(request, AnswerPart::End { pieces, stop, timings: Timings::default() }));
        cx.out.act(Action::ViewChanged);
    }

    pub fn fail_all(&mut self, sentence: &str, cx: &mut EventContext) {
        for request in self.pending() {
            self.fail(request, sentence, cx);
        }
    }

    /// Fails answers that began and whose host stays away. Questions without any text yet are asked again when it is
    /// back.
    pub fn fail_abandoned(&mut self, cx: &mut EventContext) {
        let over = |pending: &Pending| pending.pieces > 0 && cx.now.0 - pending.heard.0 > ABANDONED_MILLIS;
        let begun = self.pending.iter().filter(|(_, pending)| over(pending)).map(|(request, _)| *request);
        for request in begun.collect::<Vec<_>>() {
            self.fail(request, "The host left before the answer was complete. Ask again when it is back.", cx);
        }
    }
}

/// A host may send anything, and JSON, which the page reads, has no number that is not finite.
fn clean(timings: &mut Timings) {
    for millis in [&mut timings.first_token_ms, &mut timings.expected_first_ms, &mut timings.decode_ms] {
        if !limits::is_time(*millis) {
            *millis = 0.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_cannot_be_are_none() {
        let mut timings =
            Timings { first_token_ms: f64::NAN, expected_first_ms: -1.0, decode_ms: 7.0, ..Timings::default() };
        clean(&mut timings);
        assert_eq!(timings, Timings { decode_ms: 7.0, ..Timings::default() });
    }
}
