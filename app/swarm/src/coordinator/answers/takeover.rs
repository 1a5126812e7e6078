//! Questions and answers of a host that was lost.

use potluck_plan::PeerId;
use potluck_protocol::{AnswerStop, PromptRequest, Received};

use super::{Answering, Answers, Bases, MAX_CONCURRENT, Question, TokenLog, Transcript, least_pages, pages};
use crate::coordinator::answering::Continuation;
use crate::event::OpenedModel;
use crate::event_context::EventContext;
use crate::inherited::{Inherited, InheritedAnswer, InheritedConversation, InheritedQuestion, InheritedTranscript};

/// Why an answer ends of which the asker says that it has more than was ever sent.
const NOT_THIS_ANSWER: &str = "The room has another host, which does not know this answer. Ask again.";

impl Answers {
    /// What another host knew of questions and answers. Answers that have begun go on once their askers say how far they got.
    pub fn inherit(&mut self, inherited: Inherited, model: &OpenedModel, context: usize, cx: &mut EventContext) {
        let Inherited { questions, ended, conversations } = inherited;
        for InheritedConversation { asker, name, log } in conversations {
            if let Some(log) = TokenLog::of(log) {
                self.conversations.inherit(asker, name, log);
            }
        }
        self.conversations.shrink_to(pages(context));
        for InheritedTranscript { asker, request, parts, .. } in ended {
            self.keep(Transcript::inherited(asker, request, parts));
        }
        for InheritedQuestion { asker, prompt, answer, .. } in questions {
            let log = answer.as_ref().and_then(|answer| TokenLog::of(answer.prompt.clone()));
            let begun = answer.zip(log).filter(|(_, log)| log.len() < context && log.len() > 0);
            match begun {
                Some((answer, log)) if self.active.len() < MAX_CONCURRENT => {
                    self.go_on(asker, prompt, answer, log, model, context, cx);
                }
                _ => {
                    if !self.queue.push(Question { asker, prompt, asked: cx.now, rendered: None }) {
                        // No host lets so many wait.
                        return;
                    }
                }
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "one call; a struct of these would only rename them")]
    fn go_on(
        &mut self,
        asker: PeerId,
        prompt: PromptRequest,
        answer: InheritedAnswer,
        log: TokenLog,
        model: &OpenedModel,
        context: usize,
        cx: &mut EventContext,
    ) {
        let (tokens, written) = (log.tokens().to_vec(), answer.tokens());
        let mut conversation = self.conversations.take(asker, &prompt.conversation);
        let recurrent = model.shape.is_recurrent();
        (conversation.log, conversation.least) = (log, least_pages(recurrent, context));
        conversation.bases = Bases::new(recurrent);
        let transcript = Transcript::inherited(asker, prompt.request, answer.parts);
        let stream = model.language.decoder(&prompt, &tokens);
        let grammar = model.language.grammar(&prompt, &tokens, model.shape.vocabulary);
        let mut answering = Answering::new(transcript, prompt, conversation, &tokens, stream, context, cx.now, cx.now);
        let fits = match grammar {
            Ok(grammar) => {
                answering.grammar = grammar;
                answering.inherit(&written, cx.now)
            }
            Err(sentence) => {
                answering.transcript.end(AnswerStop::Failed(sentence), answering.timings(cx.now), cx);
                return self.keep(answering.transcript);
            }
        };
        if !fits {
            answering.begin_again(self.conversations.fresh_id(), model.language.as_ref(), cx);
        }
        self.active.push(answering);
    }

    /// An asker says how far it has received an answer that another host began.
    pub(super) fn go_on_from(&mut self, index: usize, received: &Received, model: &OpenedModel, cx: &mut EventContext) {
        let (active, language) = (&mut self.active[index], model.language.as_ref());
        if !active.awaits_asker {
            return;
        }
        match active.goes_on_from(received, language, model.shape.vocabulary) {
            Continuation::Impossible => self.finish(index, AnswerStop::Failed(NOT_THIS_ANSWER.to_owned()), cx),
            Continuation::BeginsAgain => active.begin_again(self.conversations.fresh_id(), language, cx),
            Continuation::GoesOn if active.is_complete() => self.finish(index, AnswerStop::Complete, cx),
            Continuation::GoesOn if active.is_full() => self.finish(index, AnswerStop::Length, cx),
            Continuation::GoesOn => {}
        }
    }
}
