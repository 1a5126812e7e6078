//! Waiting questions in a fair order: nobody's second question comes before anybody's first.

use std::collections::BTreeMap;

use potluck_plan::{Millis, PeerId};
use potluck_protocol::{PromptRequest, RequestId};

use crate::language::Grammar;
use crate::limits::{MAX_WAITING, MAX_WAITING_BYTES_PER_PEER, MAX_WAITING_PER_PEER};

pub(super) struct Question {
    pub asker: PeerId,
    pub prompt: PromptRequest,
    pub asked: Millis,
    /// What the model is given, once it was needed.
    pub rendered: Option<Rendered>,
}

/// A question as the model is given it.
pub(super) struct Rendered {
    pub tokens: Vec<u32>,
    /// What holds its answer to a form.
    pub grammar: Option<Box<dyn Grammar>>,
}

impl Question {
    /// Bytes of its texts, and of the form that its answer must have.
    pub fn bytes(&self) -> usize {
        self.prompt.bytes().saturating_add(self.prompt.logits.form.bytes())
    }

    pub fn is(&self, asker: PeerId, request: RequestId) -> bool {
        self.asker == asker && self.prompt.request == request
    }
}

/// Waiting questions in the order they came.
#[derive(Default)]
pub(super) struct Queue {
    waiting: Vec<Question>,
    /// Questions rendered so far, and which of them was the last one of an asker.
    turns: u64,
    last_turns: BTreeMap<PeerId, u64>,
}

/// Askers whose last turn is remembered: more than any room has members.
const MAX_ASKERS: usize = 1_024;

impl Queue {
    /// Takes a question. False: too many wait already.
    #[must_use]
    pub fn push(&mut self, question: Question) -> bool {
        let of_peer = || self.waiting.iter().filter(|waiting| waiting.asker == question.asker);
        let bytes = of_peer().fold(question.bytes(), |sum, waiting| sum.saturating_add(waiting.bytes()));
        let is_too_much = of_peer().count() >= MAX_WAITING_PER_PEER || bytes > MAX_WAITING_BYTES_PER_PEER;
        if self.waiting.len() >= MAX_WAITING || is_too_much {
            return false;
        }
        self.waiting.push(question);
        true
    }

    pub fn iter(&self) -> impl Iterator<Item = &Question> {
        self.waiting.iter()
    }

    pub fn contains(&self, asker: PeerId, request: RequestId) -> bool {
        self.waiting.iter().any(|waiting| waiting.is(asker, request))
    }

    /// A question of this asker is answered or refused. One that waits for room keeps its turn.
    pub fn had_its_turn(&mut self, asker: PeerId) {
        self.turns += 1;
        self.last_turns.insert(asker, self.turns);
        if self.last_turns.len() > MAX_ASKERS
            && let Some(oldest) = self.last_turns.iter().min_by_key(|(_, turn)| **turn).map(|(asker, _)| *asker)
        {
            self.last_turns.remove(&oldest);
        }
    }

    /// All of them, the next one first. A question's rank is the number of its asker's questions that are being
    /// answered or wait before it; among equals the one whose asker's last turn is longest ago comes first, then the older.
    pub fn in_order(&self, answered_now: &BTreeMap<PeerId, usize>) -> Vec<&Question> {
        let mut turns = answered_now.clone();
        let mut order: Vec<((usize, u64), &Question)> = Vec::with_capacity(self.waiting.len());
        for question in &self.waiting {
            let turn = turns.entry(question.asker).or_default();
            let last_turn = self.last_turns.get(&question.asker).copied().unwrap_or_default();
            order.push(((*turn, last_turn), question));
            *turn += 1;
        }
        order.sort_by_key(|(rank, _)| *rank);
        order.into_iter().map(|(_, question)| question).collect()
    }

    pub fn get_mut(&mut self, asker: PeerId, request: RequestId) -> Option<&mut Question> {
        self.waiting.iter_mut().find(|waiting| waiting.is(asker, request))
    }

    pub fn take(&mut self, asker: PeerId, request: RequestId) -> Option<Question> {
        let index = self.waiting.iter().position(|waiting| waiting.is(asker, request))?;
        Some(self.waiting.remove(index))
    }

    pub fn drop_asker(&mut self, asker: PeerId) {
        self.waiting.retain(|waiting| waiting.asker != asker);
    }

    pub fn take_all(&mut self) -> Vec<Question> {
        std::mem::take(&mut self.waiting)
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use potluck_protocol::{LogitOptions, Sampling, ToolOffer};

    use super::*;

    const A: PeerId = PeerId([1; 16]);
    const B: PeerId = PeerId([2; 16]);

    fn question(asker: PeerId, request: u32) -> Question {
        let prompt = PromptRequest {
            request: RequestId(request),
            conversation: request.to_string(),
            messages: Vec::new(),
            raw: true,
            max_tokens: 1,
            sampling: Sampling::greedy(),
            reasoning: None,
            tools: ToolOffer::default(),
            logits: LogitOptions::default(),
        };
        Question { asker, prompt, asked: Millis(0.0), rendered: None }
    }

    fn order(queue: &Queue, answered_now: &[(PeerId, usize)]) -> Vec<(PeerId, u32)> {
        let order = queue.in_order(&answered_now.iter().copied().collect());
        order.iter().map(|question| (question.asker, question.prompt.request.0)).collect()
    }

    #[test]
    fn many_questions_of_one_peer_do_not_delay_others() {
        let mut queue = Queue::default();
        for (asker, request) in [(A, 1), (A, 2), (A, 3), (B, 1), (B, 2)] {
            assert!(queue.push(question(asker, request)));
        }
        assert_eq!(order(&queue, &[]), [(A, 1), (B, 1), (A, 2), (B, 2), (A, 3)]);
        assert_eq!(order(&queue, &[(A, 2)]), [(B, 1), (B, 2), (A, 1), (A, 2), (A, 3)], "A has two answers running");
    }

    /// A refused question leaves no trace among those that are answered or wait.
    #[test]
    fn who_had_a_turn_waits_for_those_who_had_none() {
        let mut queue = Queue::default();
        for (asker, request) in [(A, 1), (A, 2), (B, 1)] {
            assert!(queue.push(question(asker, request)));
        }
        queue.had_its_turn(A);
        queue.take(A, RequestId(1));
        assert_eq!(order(&queue, &[]), [(B, 1), (A, 2)]);
    }

    #[test]
    fn the_bytes_of_one_peer_that_wait_are_bounded() {
        let mut queue = Queue::default();
        let long = |asker, request| {
            let mut question = question(asker, request);
            question
                .prompt
                .messages
                .push(potluck_protocol::Message::new(potluck_protocol::Role::User, "x".repeat(1 << 20)));
            question
        };
        let taken = (0..8).filter(|request| queue.push(long(A, *request))).count();
        assert_eq!(taken, 2);
        assert!(queue.push(long(B, 1)), "another one's do not count");
    }

    #[test]
    fn one_peer_cannot_fill_the_queue() {
        let mut queue = Queue::default();
        let taken = (0..100).filter(|request| queue.push(question(A, *request))).count();
        assert_eq!(taken, MAX_WAITING_PER_PEER);
        assert!(queue.push(question(B, 1)));
    }
}
