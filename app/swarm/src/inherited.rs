//! What a deputy knows of the room's questions and answers, from what the host tells it. If it takes over, its coordinator goes on
//! from here.

use std::collections::VecDeque;

use potluck_plan::PeerId;
use potluck_protocol::{AnswerPart, Followed, LoggedTokens, PromptRequest, RequestId, StartId, TokenLogprobs};

use crate::limits::{KEPT_TRANSCRIPTS, MAX_FOLLOWED_TOKENS, MAX_WAITING};

/// Questions that wait or are being answered: more than any host has.
const MAX_QUESTIONS: usize = 2 * MAX_WAITING;
/// Answers that are being written: more than any host writes at once.
const MAX_BEGUN: usize = 16;
/// Bytes of one answer's parts, and of those of all answers that have ended. A long answer has less than a megabyte, with
/// log-probabilities four.
const MAX_ANSWER_BYTES: usize = 8 << 20;
const MAX_ENDED_BYTES: usize = 32 << 20;

/// A question that is not answered yet.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct InheritedQuestion {
    pub asker: PeerId,
    pub start: Option<StartId>,
    pub prompt: PromptRequest,
    /// Once its answer has begun.
    pub answer: Option<InheritedAnswer>,
}

/// An answer that has begun.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct InheritedAnswer {
    pub prompt: LoggedTokens,
    /// What the asker was sent, in order.
    pub parts: Vec<AnswerPart>,
    /// Bytes of these parts.
    bytes: usize,
}

impl InheritedAnswer {
    /// The tokens that were written and count.
    pub fn tokens(&self) -> Vec<u32> {
        let from =
            self.parts.iter().rposition(|part| matches!(part, AnswerPart::Void { .. })).map_or(0, |void| void + 1);
        let tokens = self.parts[from..].iter().filter_map(|part| match part {
            AnswerPart::Text { tokens, .. } => Some(tokens),
            _ => None,
        });
        tokens.flatten().copied().collect()
    }
}

/// An answer that has ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct InheritedTranscript {
    pub asker: PeerId,
    pub request: RequestId,
    pub parts: Vec<AnswerPart>,
    /// Bytes of these parts.
    bytes: usize,
}

/// A conversation between answers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct InheritedConversation {
    pub asker: PeerId,
    pub name: String,
    pub log: LoggedTokens,
}

/// Everything that the deputy was told, oldest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Inherited {
    pub questions: Vec<InheritedQuestion>,
    pub ended: VecDeque<InheritedTranscript>,
    pub conversations: Vec<InheritedConversation>,
}

impl Inherited {
    /// Takes one thing more. What is over the limits is not kept.
    pub fn follow(&mut self, followed: Followed) {
        match followed {
            Followed::Anew => *self = Self::default(),
            Followed::Asked { asker, start, prompt } => {
                self.questions.retain(|question| !question.is(asker, prompt.request));
                if self.questions.len() < MAX_QUESTIONS {
                    self.questions.push(InheritedQuestion { asker, start, prompt: *prompt, answer: None });
                }
            }
            Followed::Began { asker, request, prompt } => {
                let begun = self.questions.iter().filter(|question| question.answer.is_some()).count();
                if let Some(question) = self.question(asker, request).filter(|_| begun < MAX_BEGUN) {
                    question.answer = Some(InheritedAnswer { prompt, ..InheritedAnswer::default() });
                }
            }
            Followed::Wrote { asker, request, parts } => self.wrote(asker, request, parts),
            Followed::Dropped { asker, request } => self.questions.retain(|question| !question.is(asker, request)),
            Followed::Kept { asker, name, log } => self.keep(InheritedConversation { asker, name, log }),
            Followed::Forgot(asker) => {
                self.questions.retain(|question| question.asker != asker);
                self.conversations.retain(|kept| kept.asker != asker);
            }
        }
    }

    fn question(&mut self, asker: PeerId, request: RequestId) -> Option<&mut InheritedQuestion> {
        self.questions.iter_mut().find(|question| question.is(asker, request))
    }

    fn wrote(&mut self, asker: PeerId, request: RequestId, parts: Vec<AnswerPart>) {
        let ends = matches!(parts.last(), Some(AnswerPart::End { .. }));
        let bytes: usize = parts.iter().map(bytes_of).sum();
        let Some(question) = self.question(asker, request) else {
            // A question that was refused, or an answer that had ended before this device became the deputy.
            return self.end(InheritedTranscript { asker, request, parts, bytes });
        };
        let answer = question.answer.get_or_insert_default();
        // Its asker knows more of it then, and the answer begins again.
        if answer.bytes.saturating_add(bytes) <= MAX_ANSWER_BYTES {
            answer.bytes += bytes;
            answer.parts.extend(parts);
        }
        if !ends {
            return;
        }
        let Some(index) = self.questions.iter().position(|question| question.is(asker, request)) else { return };
        let InheritedQuestion { prompt, answer, .. } = self.questions.remove(index);
        let answer = answer.unwrap_or_default();
        let mut log = answer.prompt.clone();
        let written = answer.tokens();
        // A question that was refused has no conversation.
        if !log.tokens.is_empty() {
            log.runs.push((potluck_plan::KernelClass::Decode, written.len() as u32));
            log.tokens.extend(written);
            self.keep(InheritedConversation { asker, name: prompt.conversation, log });
        }
        self.end(InheritedTranscript { asker, request, parts: answer.parts, bytes: answer.bytes });
    }

    fn end(&mut self, transcript: InheritedTranscript) {
        self.ended.push_back(transcript);
        self.ended.drain(..self.ended.len().saturating_sub(KEPT_TRANSCRIPTS));
        let mut bytes: usize = self.ended.iter().map(|ended| ended.bytes).sum();
        while bytes > MAX_ENDED_BYTES {
            let Some(oldest) = self.ended.pop_front() else { break };
            bytes -= oldest.bytes;
        }
    }

    /// Keeps a conversation, and forgets the oldest ones where all together are too long.
    fn keep(&mut self, conversation: InheritedConversation) {
        self.conversations.retain(|kept| kept.asker != conversation.asker || kept.name != conversation.name);
        self.conversations.push(conversation);
        let mut tokens: usize = self.conversations.iter().map(|kept| kept.log.tokens.len()).sum();
        while tokens > MAX_FOLLOWED_TOKENS && self.conversations.len() > 1 {
            tokens -= self.conversations.remove(0).log.tokens.len();
        }
    }
}

/// About how much memory a part of an answer takes.
fn bytes_of(part: &AnswerPart) -> usize {
    match part {
        AnswerPart::Text { delta, tokens, logprobs, .. } => {
            let of = |scored: &TokenLogprobs| 32 * (1 + scored.top.len());
            64 + delta.len() + 4 * tokens.len() + logprobs.iter().map(of).sum::<usize>()
        }
        _ => 64,
    }
}

impl InheritedQuestion {
    pub fn is(&self, asker: PeerId, request: RequestId) -> bool {
        self.asker == asker && self.prompt.request == request
    }
}

#[cfg(test)]
mod tests {
    use potluck_plan::{Channel, KernelClass};
    use potluck_protocol::{AnswerStop, LogitOptions, Sampling, Timings, ToolOffer};

    use super::*;

    const ASKER: PeerId = PeerId([1; 16]);
    const REQUEST: RequestId = RequestId(7);

    fn asked(request: RequestId) -> Followed {
        let prompt = PromptRequest {
            request,
            conversation: "c".into(),
            messages: Vec::new(),
            raw: true,
            max_tokens: 9,
            sampling: Sampling::greedy(),
            reasoning: None,
            tools: ToolOffer::default(),
            logits: LogitOptions::default(),
        };
        Followed::Asked { asker: ASKER, start: None, prompt: Box::new(prompt) }
    }

    fn text(index: u32, tokens: &[u32]) -> AnswerPart {
        let (channel, delta, logprobs) = (Channel::default(), String::new(), Vec::new());
        AnswerPart::Text { index, channel, delta, tokens: tokens.to_vec(), logprobs }
    }

    fn wrote(parts: Vec<AnswerPart>) -> Followed {
        Followed::Wrote { asker: ASKER, request: REQUEST, parts }
    }

    #[test]
    fn an_answer_is_followed_from_its_question_to_its_conversation() {
        let mut known = Inherited::default();
        known.follow(asked(REQUEST));
        let prompt = LoggedTokens::new(&[1, 2], &[KernelClass::Prefill; 2]);
        known.follow(Followed::Began { asker: ASKER, request: REQUEST, prompt });
        known.follow(wrote(vec![text(0, &[3])]));
        known.follow(wrote(vec![AnswerPart::Void { index: 1 }, text(2, &[4, 5])]));
        assert_eq!(known.questions[0].answer.as_ref().map(InheritedAnswer::tokens), Some(vec![4, 5]));
        let end = AnswerPart::End { pieces: 3, stop: AnswerStop::Complete, timings: Timings::default() };
        known.follow(wrote(vec![end]));
        assert!(known.questions.is_empty());
        assert_eq!(known.ended[0].parts.len(), 4, "an asker that lost pieces gets them");
        assert_eq!(known.conversations[0].log.tokens, [1, 2, 4, 5]);
        assert_eq!(known.conversations[0].log.classes().map(|classes| classes.len()), Some(4));
        known.follow(Followed::Forgot(ASKER));
        assert!(known.conversations.is_empty());
    }

    #[test]
    fn a_host_that_asks_without_end_fills_no_memory() {
        let mut known = Inherited::default();
        (0..1_000).for_each(|request| known.follow(asked(RequestId(request))));
        assert_eq!(known.questions.len(), MAX_QUESTIONS);
        for name in 0..40 {
            let log = LoggedTokens { tokens: vec![0; MAX_FOLLOWED_TOKENS / 8], runs: Vec::new() };
            known.follow(Followed::Kept { asker: ASKER, name: name.to_string(), log });
        }
        assert_eq!(known.conversations.len(), 8);
        let of_another = || Followed::Wrote { asker: ASKER, request: RequestId(5_000), parts: Vec::new() };
        (0..1_000).for_each(|_| known.follow(of_another()));
        assert_eq!(known.ended.len(), KEPT_TRANSCRIPTS);
    }
}
