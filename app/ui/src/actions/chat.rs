//! Asks, stops and continues.

use leptos::prelude::*;
use potluck_panel::{AnswerPart, AnswerStop, LogitOptions, Message, PromptRequest, RequestId, ToNode, ToolOffer};

use crate::{
    browser,
    route::Route,
    state::{AnswerSettings, QuestionParts, Store, TakenBack, TurnId},
};

/// A second answer is asked for under the conversation's name with this at its end: a room writes only one answer of a conversation at a time.
const BESIDE: &str = "/beside";

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
        self.screen.beside.set(None);
        self.chats.open.update(|conversation| conversation.ask(question, request, &model));
        self.prompt_new(request);
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
            self.prompt_new(request);
        }
        any
    }

    /// Answers the last question once more, beside the answer that is shown.
    pub fn answer_beside(self) {
        let request = self.next_request();
        let model = self.model_name();
        let beside = self.chats.open.try_update(|open| {
            let key = open.answer_beside(request, &model)?;
            Some(TurnId(open.id.clone(), key))
        });
        if let Some(turn) = beside.flatten() {
            self.screen.beside.set(Some(turn));
            let mut answers = self.open_answers();
            // With the same seed it would be the same answer.
            answers.seed = answers.seed.map(|seed| seed.wrapping_add(1));
            let messages = self.chats.open.with_untracked(|open| open.messages_beside(&answers.instructions));
            let conversation = self.chats.open.with_untracked(|open| format!("{}{BESIDE}", open.id));
            self.prompt_with(request, conversation, messages, &answers);
        }
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

    /// Stops all answers of the open conversation.
    pub fn stop(self) {
        for request in self.chats.open.with_untracked(|open| open.all_running().collect::<Vec<_>>()) {
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
            if self.chats.doubt(conversation.strip_suffix(BESIDE).unwrap_or(conversation), request) {
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

    /// Has a new question answered, twice if the person wishes.
    fn prompt_new(self, request: RequestId) {
        self.prompt(request);
        if self.open_answers().twice {
            self.answer_beside();
        }
    }

    fn prompt(self, request: RequestId) {
        let answers = self.open_answers();
        let (id, messages) =
            self.chats.open.with_untracked(|open| (open.id.clone(), open.messages(&answers.instructions)));
        self.prompt_with(request, id, messages, &answers);
    }

    /// How the open conversation is answered.
    fn open_answers(self) -> AnswerSettings {
        self.settings.with_untracked(|settings| {
            self.chats.open.with_untracked(|open| open.answer_settings(&settings.answers).clone())
        })
    }

    fn prompt_with(self, request: RequestId, conversation: String, messages: Vec<Message>, answers: &AnswerSettings) {
        self.send(ToNode::Prompt(PromptRequest {
            request,
            messages,
            conversation,
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
