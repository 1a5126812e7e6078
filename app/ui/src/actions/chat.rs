//! Asks, stops and continues.

use leptos::prelude::*;
use potluck_panel::{AnswerPart, AnswerStop, LogitOptions, PromptRequest, RequestId, ToNode, ToolOffer};

use crate::{
    browser,
    route::Route,
    state::{QuestionParts, Store, TakenBack},
};

impl Store {
    /// The room accepts prompts: its plan is active, or was and is being rebuilt. Where conversations are read, nobody asks.
    #[must_use]
    pub fn can_ask(self) -> bool {
        !self.only_reads() && self.room.takes_prompts()
    }

    /// The conversations are shown without a room.
    #[must_use]
    pub fn only_reads(self) -> bool {
        self.screen.route.with(|route| *route == Route::Chats)
    }

    /// The open conversation has an unfinished answer.
    #[must_use]
    pub fn answering(self) -> Option<RequestId> {
        self.chats.open.with(crate::state::Conversation::running)
    }

    /// Sends the question in the composer; `false` if that is not possible now.
    pub fn ask(self, question: &str) -> bool {
        let question = question.trim();
        if question.is_empty() || !untrack(|| self.can_ask()) || untrack(|| self.answering()).is_some() {
            return false;
        }
        let request = self.next_request();
        let model = self.model_name();
        self.chats.refused.set(None);
        self.chats.open.update(|conversation| conversation.ask(question, request, &model));
        self.prompt(request);
        true
    }

    /// Lets a question wait for the answer that is written in the open conversation; `false` if none is, or too many wait.
    pub fn wait(self, question: &str) -> bool {
        let (id, is_running) = self.chats.open.with_untracked(|open| (open.id.clone(), open.running().is_some()));
        let mut waits = false;
        if is_running {
            self.remember(|session| {
                let room = session.place.as_ref().map_or_else(String::new, |place| place.room.clone());
                waits = session.waiting.add(&room, &id, question);
            });
        }
        waits
    }

    /// Takes a question of the open conversation that waits out of the line.
    pub fn take_waiting(self, at: usize) -> Option<String> {
        let id = self.chats.open.with_untracked(|open| open.id.clone());
        let mut taken = None;
        self.remember(|session| taken = session.waiting.take(&id, at));
        taken
    }

    /// Answers the last question again.
    pub fn regenerate(self) {
        let request = self.next_request();
        let model = self.model_name();
        let mut any = false;
        self.chats.open.update(|conversation| any = conversation.regenerate(request, &model));
        if any {
            self.chats.refused.set(None);
            self.prompt(request);
        }
    }

    /// Asks another question in place of the one at this place of the open conversation; `false` if that is not possible now.
    pub fn edit(self, at: usize, question: &str) -> bool {
        let question = question.trim();
        if question.is_empty() || !untrack(|| self.can_ask()) || untrack(|| self.answering()).is_some() {
            return false;
        }
        let request = self.next_request();
        let model = self.model_name();
        let mut any = false;
        self.chats.open.update(|conversation| any = conversation.edit(at, question, request, &model));
        if any {
            self.chats.refused.set(None);
            self.prompt(request);
        }
        any
    }

    /// Continues the last answer.
    pub fn go_on(self) {
        let request = self.next_request();
        let mut any = false;
        self.chats.open.update(|conversation| any = conversation.go_on(request));
        if any {
            self.prompt(request);
        }
    }

    /// Stops the answer of the open conversation.
    pub fn stop(self) {
        if let Some(request) = untrack(|| self.answering()) {
            self.send(ToNode::Stop(request));
        }
    }

    /// A request id, unique for the lifetime of the tab.
    pub(crate) fn next_request(self) -> RequestId {
        let request = RequestId(self.session.with_untracked(|session| session.next_request));
        self.remember(|session| session.next_request = session.next_request.wrapping_add(1));
        request
    }

    pub(crate) fn take_answer(self, request: RequestId, event: AnswerPart) {
        if let AnswerPart::Text { tokens, .. } = &event {
            self.room.tokens.update(|count| *count += tokens.len() as u64);
        }
        if let AnswerPart::End { timings, .. } = &event {
            self.room.last_timings.set(Some(*timings));
        }
        if self.node.tools.try_update_value(|calls| calls.take(request, &event)).unwrap_or(false) {
            return;
        }
        if let AnswerPart::Doubtful { conversation } = &event {
            if self.chats.doubt(conversation, request) {
                self.save_soon();
            }
            return;
        }
        if let AnswerPart::End { stop: AnswerStop::Refused(why), .. } = &event
            && self.chats.composer_is_blank()
            && let Some(refused) = self.chats.take_back(request)
        {
            self.chats.refused.set(Some(why.clone()));
            return match refused {
                TakenBack::Question(question) => {
                    let mut texts = vec![question];
                    // With a conversation that never began, what waits in it would be lost.
                    if self.chats.open.with_untracked(|open| open.turns.is_empty()) {
                        texts.extend(std::iter::from_fn(|| self.take_waiting(0)));
                    }
                    self.give_draft(QuestionParts::joined(texts.iter().map(String::as_str)).whole());
                    let own_answers = self.chats.open.with_untracked(|open| open.own_answers.clone());
                    self.forget_blank();
                    // The question that is sent next begins the same conversation.
                    if self.chats.open.with_untracked(|open| open.turns.is_empty()) {
                        self.keep_own_answers(own_answers);
                    }
                }
                TakenBack::Regenerate => self.save_soon(),
            };
        }
        if self.chats.apply(request, &event, browser::now()) {
            self.save_soon();
            if matches!(event, AnswerPart::Text { .. }) && !self.chats.waits_for(request) {
                // It became longer than the page keeps.
                self.send(ToNode::Stop(request));
            }
        }
    }

    fn prompt(self, request: RequestId) {
        let conversation = self.chats.open.get_untracked();
        let answers = self.settings.with_untracked(|settings| conversation.answer_settings(&settings.answers).clone());
        self.send(ToNode::Prompt(PromptRequest {
            request,
            messages: conversation.messages(&answers.instructions),
            conversation: conversation.id,
            raw: false,
            max_tokens: answers.max_tokens.max(1),
            sampling: answers.sampling(browser::seed()),
            reasoning: answers.reasoning,
            tools: ToolOffer::default(),
            logits: LogitOptions::default(),
        }));
        self.touch();
    }

    fn model_name(self) -> String {
        self.room
            .status
            .with_untracked(|status| status.model.as_ref().map(|model| model.name.clone()).unwrap_or_default())
    }
}
