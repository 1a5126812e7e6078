//! Waiting questions in a fair order: nobody's second question comes before anybody's first.

use std::collections::BTreeMap;

use potluck_plan::{Millis, PeerId};
use potluck_protocol::{PromptRequest, RequestId};

use crate::limits::{MAX_WAITING, MAX_WAITING_PER_PEER};

pub(super) struct Question {
    pub asker: PeerId,
    pub prompt: PromptRequest,
    pub asked: Millis,
    /// Its tokens, once they were needed.
    pub tokens: Option<Vec<u32>>,
}

impl Question {
    pub fn is(&self, asker: PeerId, request: RequestId) -> bool {
        self.asker == asker && self.prompt.request == request
    }
}

/// Waiting questions in the order they came.
#[derive(Default)]
pub(super) struct Queue {
    waiting: Vec<Question>,
}

impl Queue {
    /// Takes a question. False: too many wait already.
    #[must_use]
    pub fn push(&mut self, question: Question) -> bool {
        let of_peer = self.waiting.iter().filter(|waiting| waiting.asker == question.asker).count();
        if self.waiting.len() >= MAX_WAITING || of_peer >= MAX_WAITING_PER_PEER {
            return false;
        }
        self.waiting.push(question);
        true
    }

    pub fn contains(&self, asker: PeerId, request: RequestId) -> bool {
        self.waiting.iter().any(|waiting| waiting.is(asker, request))
    }

    /// All of them, the next one first. A question's rank is the number of its asker's questions that are being
    /// answered or wait before it; among equals the older comes first.
    pub fn in_order(&self, answered_now: &BTreeMap<PeerId, usize>) -> Vec<&Question> {
        let mut turns = answered_now.clone();
        let mut order: Vec<(usize, &Question)> = Vec::with_capacity(self.waiting.len());
        for question in &self.waiting {
            let turn = turns.entry(question.asker).or_default();
            order.push((*turn, question));
            *turn += 1;
        }
        order.sort_by_key(|(turn, _)| *turn);
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
    use potluck_protocol::Sampling;

    use super::*;

    const A: PeerId = PeerId([1; 16]);
    const B: PeerId = PeerId([2; 16]);

    fn question(asker: PeerId, request: u32) -> Question {
        let sampling =
            Sampling { temperature: 0.0, top_k: 0, top_p: 1.0, min_p: 0.0, repetition_penalty: 1.0, seed: 0 };
        let prompt = PromptRequest {
            request: RequestId(request),
            conversation: request.to_string(),
            messages: Vec::new(),
            raw: true,
            max_tokens: 1,
            sampling,
        };
        Question { asker, prompt, asked: Millis(0.0), tokens: None }
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

    #[test]
    fn one_peer_cannot_fill_the_queue() {
        let mut queue = Queue::default();
        let taken = (0..100).filter(|request| queue.push(question(A, *request))).count();
        assert_eq!(taken, MAX_WAITING_PER_PEER);
        assert!(queue.push(question(B, 1)));
    }
}
