//! A conversation and how its answers grow. Pure: equal events give equal conversations.

use potluck_panel::{AnswerPart, AnswerStop, Message, RequestId, Role, Timings};
use potluck_text::texts;
use serde::{Deserialize, Serialize};

/// A conversation as stored in the browser.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Conversation {
    /// Random text; devices store the conversation's KV cache under this id.
    pub id: String,
    /// Title in the list: the first question until the user renames it.
    pub title: String,
    /// The user set the title.
    pub renamed: bool,
    /// Time of the last change, milliseconds since 1970.
    pub changed: f64,
    /// Questions with their answers, oldest first.
    pub turns: Vec<Turn>,
}

/// A conversation's entry in the list.
#[derive(Clone, Debug, PartialEq)]
pub struct Heading {
    /// The conversation's id.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Time of the last change, milliseconds since 1970.
    pub changed: f64,
}

/// Names a turn: its conversation's id and its index there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TurnId(pub String, pub usize);

/// A question and its answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// The user's text.
    pub question: String,
    /// The model's text.
    pub answer: Answer,
    /// The answer that this one takes the place of, until it has text: the room may refuse to answer again.
    #[serde(default, skip)]
    pub replaced: Option<Box<Answer>>,
}

/// What was asked in vain.
#[derive(Clone, Debug, PartialEq)]
pub enum TakenBack {
    /// A question, which is no part of the conversation any more.
    Question(String),
    /// To answer again. The former answer is back.
    Regenerate,
}

/// An answer, finished or not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The request that produces it, while one runs.
    pub request: Option<RequestId>,
    /// The text so far.
    pub text: String,
    /// Progress.
    pub state: AnswerState,
    /// Timings, once it ended.
    pub timings: Option<Timings>,
    /// The model that wrote it.
    pub model: String,
}

/// Progress of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum AnswerState {
    /// Sent, with its position in the queue; 0 until the room reports it.
    Queued(u32),
    /// Prefill of the prompt.
    Reading {
        /// Tokens read.
        done: u32,
        /// Tokens of the prompt.
        total: u32,
    },
    /// Text comes.
    Writing,
    /// The room rebuilds KV cache that was lost with a device.
    Recovering(String),
    /// The model ended the answer.
    Complete,
    /// The token limit was reached.
    Length,
    /// The user pressed Stop.
    Stopped,
    /// It failed, for the reason in this sentence.
    Failed(String),
    /// A reload of the page interrupted it.
    Interrupted,
}

impl AnswerState {
    /// True while more may come.
    #[must_use]
    pub const fn running(&self) -> bool {
        matches!(self, Self::Queued(_) | Self::Reading { .. } | Self::Writing | Self::Recovering(_))
    }

    /// True if it ended before the model was done.
    const fn is_cut_short(&self) -> bool {
        matches!(self, Self::Length | Self::Stopped | Self::Failed(_) | Self::Interrupted)
    }
}

impl Answer {
    fn new(request: RequestId, model: &str) -> Self {
        Self {
            request: Some(request),
            text: String::new(),
            state: AnswerState::Queued(0),
            timings: None,
            model: model.to_owned(),
        }
    }

    /// Positions of context that its conversation used, and all of them: those of the room that it would go on in, or of the
    /// room that answered if `room` is 0. None before an answer ended.
    #[must_use]
    pub fn context(&self, room: u32) -> Option<(u32, u32)> {
        let timings = self.timings.filter(|timings| timings.context > 0)?;
        Some((timings.context_used, if room > 0 { room } else { timings.context }))
    }

    /// True if its conversation has no room for another token, in a context of `room` positions.
    #[must_use]
    pub fn fills_context(&self, room: u32) -> bool {
        self.context(room).is_some_and(|(used, all)| used >= all)
    }

    /// True if there is a beginning to continue, and room to do so, in a context of `room` positions.
    #[must_use]
    pub fn can_continue(&self, room: u32) -> bool {
        let has_room = !self.fills_context(room) && self.text.len() < LONGEST_ANSWER;
        self.state.is_cut_short() && !self.text.is_empty() && has_room
    }

    fn finish(&mut self, state: AnswerState) {
        self.request = None;
        self.state = state;
    }
}

/// Bytes of an answer that are kept. Whoever answers could send more without end.
const LONGEST_ANSWER: usize = 1 << 20;

/// Maximum length in characters of a title taken from a question.
const TITLE: usize = 60;

impl Conversation {
    /// An empty conversation.
    #[must_use]
    pub fn new(id: String) -> Self {
        Self { id, ..Self::default() }
    }

    /// Its entry in the list.
    #[must_use]
    pub fn heading(&self) -> Heading {
        Heading { id: self.id.clone(), title: self.title.clone(), changed: self.changed }
    }

    /// The request that runs now.
    #[must_use]
    pub fn running(&self) -> Option<RequestId> {
        self.turns.iter().find(|turn| turn.answer.state.running()).and_then(|turn| turn.answer.request)
    }

    /// True if a text here is not in `other`: a question, or the end of an answer.
    #[must_use]
    pub fn adds_to(&self, other: &Self) -> bool {
        let is_in = |turn: &Turn, there: &Turn| {
            turn.question == there.question && there.answer.text.starts_with(&turn.answer.text)
        };
        self.turns.len() > other.turns.len()
            || self.turns.iter().zip(&other.turns).any(|(here, there)| !is_in(here, there))
    }

    /// Takes the title of `other`.
    pub fn take_title(&mut self, other: &Self) {
        self.title.clone_from(&other.title);
        self.renamed = other.renamed;
    }

    /// Appends a question, to be answered under `request`.
    pub fn ask(&mut self, question: &str, request: RequestId, model: &str) {
        if self.turns.is_empty() && !self.renamed {
            self.title = title_of(question);
        }
        self.turns.push(Turn { question: question.to_owned(), answer: Answer::new(request, model), replaced: None });
    }

    /// Replaces the last answer by a pending one; `false` if there is nothing to answer.
    pub fn regenerate(&mut self, request: RequestId, model: &str) -> bool {
        let Some(turn) = self.turns.last_mut() else { return false };
        turn.replaced = Some(Box::new(std::mem::replace(&mut turn.answer, Answer::new(request, model))));
        true
    }

    /// Continues the last answer; `false` if there is none.
    pub fn go_on(&mut self, request: RequestId) -> bool {
        let Some(turn) = self.turns.last_mut() else { return false };
        turn.answer.request = Some(request);
        turn.answer.state = AnswerState::Queued(0);
        true
    }

    /// Takes back what `request` asks, if it is the last turn and nothing of its answer is here.
    pub fn take_back(&mut self, request: RequestId) -> Option<TakenBack> {
        let is_its = |turn: &Turn| turn.answer.request == Some(request) && turn.answer.text.is_empty();
        let turn = self.turns.last_mut().filter(|turn| is_its(turn))?;
        match turn.replaced.take().filter(|replaced| !replaced.text.is_empty()) {
            Some(replaced) => {
                turn.answer = *replaced;
                Some(TakenBack::Regenerate)
            }
            None => self.turns.pop().map(|turn| TakenBack::Question(turn.question)),
        }
    }

    /// Applies a part of an answer; `false` if no answer belongs to this request.
    pub fn apply(&mut self, request: RequestId, event: &AnswerPart) -> bool {
        let waiting = |turn: &&mut Turn| turn.answer.request == Some(request) && turn.answer.state.running();
        let Some(turn) = self.turns.iter_mut().find(waiting) else { return false };
        if matches!(event, AnswerPart::Text { .. }) {
            turn.replaced = None;
        }
        let answer = &mut turn.answer;
        match event {
            AnswerPart::Queued(position) => answer.state = AnswerState::Queued(*position),
            AnswerPart::Reading(done, total) => {
                answer.state = AnswerState::Reading { done: *done, total: *total };
            }
            AnswerPart::Text { delta, .. } => {
                let room = LONGEST_ANSWER.saturating_sub(answer.text.len());
                answer.text.push_str(&delta[..delta.floor_char_boundary(room)]);
                if delta.len() > room {
                    answer.finish(AnswerState::Failed(texts().answer.too_long.to_owned()));
                } else {
                    answer.state = AnswerState::Writing;
                }
            }
            AnswerPart::Recovering(reason) => answer.state = AnswerState::Recovering(reason.clone()),
            AnswerPart::End { stop, timings, .. } => {
                // A refusal has none. It leaves those of the text that is there.
                if timings.context > 0 {
                    answer.timings = Some(*timings);
                }
                answer.finish(match stop {
                    AnswerStop::Complete => AnswerState::Complete,
                    AnswerStop::Length => AnswerState::Length,
                    AnswerStop::Stopped => AnswerState::Stopped,
                    AnswerStop::Failed(why) | AnswerStop::Refused(why) => AnswerState::Failed(why.clone()),
                });
            }
            AnswerPart::Unknown => answer.finish(AnswerState::Failed(texts().answer.question_lost.to_owned())),
        }
        true
    }

    /// Ends all unfinished answers with `state`; `false` if there were none.
    pub fn break_off(&mut self, state: &AnswerState) -> bool {
        let mut any = false;
        for turn in self.turns.iter_mut().filter(|turn| turn.answer.state.running()) {
            turn.answer.state = state.clone();
            turn.answer.request = None;
            any = true;
        }
        any
    }

    /// The messages of a prompt: instructions, then the turns. Omits questions that got no text, because many templates
    /// refuse two questions in a row; the last question stands there to be answered, and its answer to be continued.
    #[must_use]
    pub fn messages(&self, instructions: &str) -> Vec<Message> {
        let mut messages = Vec::with_capacity(self.turns.len() * 2 + 1);
        if !instructions.trim().is_empty() {
            messages.push(Message { role: Role::System, content: instructions.trim().to_owned() });
        }
        let last = self.turns.len().saturating_sub(1);
        for (index, Turn { question, answer, .. }) in self.turns.iter().enumerate() {
            let answered = !answer.text.is_empty();
            if answered || index == last {
                messages.push(Message { role: Role::User, content: question.clone() });
            }
            if answered {
                messages.push(Message { role: Role::Assistant, content: answer.text.clone() });
            }
        }
        messages
    }
}

/// The first line of a question, cut at a word boundary.
fn title_of(question: &str) -> String {
    let line = question.trim().lines().next().unwrap_or_default();
    if line.chars().count() <= TITLE {
        return line.to_owned();
    }
    let cut: String = line.chars().take(TITLE).collect();
    let whole = cut.rfind(' ').filter(|&at| at > TITLE / 2).map_or(cut.as_str(), |at| &cut[..at]);
    format!("{}…", whole.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: RequestId = RequestId(1);

    fn text(delta: &str) -> AnswerPart {
        AnswerPart::Text { index: 0, delta: delta.into(), tokens: vec![1] }
    }

    fn end(stop: AnswerStop) -> AnswerPart {
        AnswerPart::End { pieces: 0, stop, timings: Timings::default() }
    }

    fn asked() -> Conversation {
        let mut conversation = Conversation::new("c".into());
        conversation.ask("Why is the sky blue?", FIRST, "tiny");
        conversation
    }

    #[test]
    fn an_answer_grows_and_ends() {
        let mut conversation = asked();
        assert_eq!(conversation.running(), Some(FIRST));
        assert!(conversation.apply(FIRST, &AnswerPart::Reading(4, 9)));
        assert!(conversation.apply(FIRST, &text("Because ")));
        assert!(conversation.apply(FIRST, &AnswerPart::Recovering("Phone left.".into())));
        assert!(conversation.apply(FIRST, &text("of air.")));
        assert!(conversation.apply(FIRST, &end(AnswerStop::Complete)));
        assert_eq!(conversation.turns[0].answer.text, "Because of air.");
        assert_eq!(conversation.turns[0].answer.state, AnswerState::Complete);
        assert_eq!(conversation.running(), None);
    }

    #[test]
    fn events_of_other_prompts_change_nothing() {
        let mut conversation = asked();
        let before = conversation.clone();
        assert!(!conversation.apply(RequestId(2), &text("x")));
        assert_eq!(conversation, before);
        conversation.apply(FIRST, &end(AnswerStop::Stopped));
        assert!(!conversation.apply(FIRST, &text("late")));
        assert_eq!(conversation.turns[0].answer.text, "");
    }

    #[test]
    fn a_reload_keeps_what_was_written() {
        let mut conversation = asked();
        conversation.apply(FIRST, &text("Because"));
        assert!(conversation.break_off(&AnswerState::Interrupted));
        assert!(!conversation.break_off(&AnswerState::Interrupted));
        assert_eq!(conversation.turns[0].answer.state, AnswerState::Interrupted);
        assert!(conversation.turns[0].answer.can_continue(0));
        assert_eq!(conversation.turns[0].answer.text, "Because");
    }

    #[test]
    fn going_on_sends_the_answer_so_far_last() {
        let mut conversation = asked();
        conversation.apply(FIRST, &text("Because"));
        conversation.apply(FIRST, &end(AnswerStop::Length));
        assert!(conversation.go_on(RequestId(2)));
        let messages = conversation.messages("Be brief.");
        assert_eq!(messages[0].role, Role::System);
        assert_eq!(messages[2], Message { role: Role::Assistant, content: "Because".into() });
        conversation.apply(RequestId(2), &text(" of air."));
        assert_eq!(conversation.turns[0].answer.text, "Because of air.");
    }

    #[test]
    fn regenerating_asks_the_same_question_again() {
        let mut conversation = asked();
        conversation.apply(FIRST, &text("Wrong"));
        assert!(conversation.regenerate(RequestId(2), "tiny"));
        assert_eq!(
            conversation.messages(" "),
            vec![Message { role: Role::User, content: "Why is the sky blue?".into() }]
        );
        assert!(!Conversation::default().regenerate(FIRST, "tiny"));
    }

    #[test]
    fn a_question_without_an_answer_is_not_sent_again() {
        let mut conversation = asked();
        conversation.apply(FIRST, &end(AnswerStop::Stopped));
        conversation.ask("Why is grass green?", RequestId(2), "tiny");
        let question = |text: &str| Message { role: Role::User, content: text.into() };
        assert_eq!(conversation.messages(""), [question("Why is grass green?")]);
        conversation.apply(RequestId(2), &end(AnswerStop::Failed("Too long.".into())));
        conversation.regenerate(RequestId(3), "tiny");
        assert_eq!(conversation.messages(""), [question("Why is grass green?")], "the last one may be asked again");
        conversation.apply(RequestId(3), &text("Because"));
        conversation.ask("And moss?", RequestId(4), "tiny");
        let answer = Message { role: Role::Assistant, content: "Because".into() };
        assert_eq!(conversation.messages(""), [question("Why is grass green?"), answer, question("And moss?")]);
    }

    #[test]
    fn an_answer_that_fills_the_context_cannot_be_continued() {
        let ended = |stop, context_used| {
            let timings = Timings { context_used, context: 512, ..Timings::default() };
            AnswerPart::End { pieces: 1, stop, timings }
        };
        let mut conversation = asked();
        conversation.apply(FIRST, &text("Because"));
        conversation.apply(FIRST, &ended(AnswerStop::Length, 511));
        assert!(conversation.turns[0].answer.can_continue(0), "there is room for a token");
        conversation.go_on(RequestId(2));
        conversation.apply(RequestId(2), &ended(AnswerStop::Length, 512));
        let answer = &conversation.turns[0].answer;
        assert!(answer.fills_context(0) && !answer.can_continue(0));
        assert!(answer.can_continue(1024), "this room has a larger context");
        assert_eq!(answer.context(1024), Some((512, 1024)));
        assert!(answer.fills_context(256), "and this one a smaller one");
    }

    #[test]
    fn only_a_question_without_an_answer_is_taken_back() {
        let mut conversation = asked();
        assert_eq!(conversation.take_back(RequestId(2)), None, "nobody asked that");
        assert_eq!(conversation.take_back(FIRST), Some(TakenBack::Question("Why is the sky blue?".into())));
        assert!(conversation.turns.is_empty());
        let mut conversation = asked();
        conversation.apply(FIRST, &text("Because"));
        assert_eq!(conversation.take_back(FIRST), None, "there is an answer to go on with");
        conversation.apply(FIRST, &end(AnswerStop::Stopped));
        let before = conversation.clone();
        conversation.regenerate(RequestId(2), "tiny");
        assert_eq!(conversation.take_back(RequestId(2)), Some(TakenBack::Regenerate));
        assert_eq!(conversation, before, "the former answer is back");
    }

    #[test]
    fn an_answer_without_end_ends() {
        let mut conversation = asked();
        let kept = |conversation: &Conversation| conversation.turns[0].answer.text.len();
        conversation.apply(FIRST, &text(&"ä".repeat(LONGEST_ANSWER / 2)));
        assert_eq!((kept(&conversation), conversation.running()), (LONGEST_ANSWER, Some(FIRST)));
        assert!(conversation.apply(FIRST, &text("ä")));
        assert_eq!((kept(&conversation), conversation.running()), (LONGEST_ANSWER, None));
        let answer = &conversation.turns[0].answer;
        assert!(matches!(answer.state, AnswerState::Failed(_)) && !answer.can_continue(0));
    }

    #[test]
    fn a_refusal_leaves_the_timings_of_the_text_that_is_there() {
        let mut conversation = asked();
        let timings = Timings { context_used: 9, context: 512, ..Timings::default() };
        conversation.apply(FIRST, &text("Because"));
        conversation.apply(FIRST, &AnswerPart::End { pieces: 1, stop: AnswerStop::Stopped, timings });
        conversation.go_on(RequestId(2));
        conversation.apply(RequestId(2), &end(AnswerStop::Failed("Too long.".into())));
        assert_eq!(conversation.turns[0].answer.timings, Some(timings));
    }

    #[test]
    fn only_text_that_the_other_one_lacks_adds_to_it() {
        let answered = |delta: &str| {
            let mut conversation = asked();
            conversation.apply(FIRST, &text(delta));
            conversation
        };
        let whole = answered("Because of air.");
        assert!(!whole.adds_to(&whole));
        assert!(!answered("Because").adds_to(&whole), "the beginning of an answer is in it");
        assert!(!asked().adds_to(&whole), "and so is none");
        assert!(whole.adds_to(&answered("Because")), "it goes on");
        assert!(answered("It is not.").adds_to(&whole), "another answer");
        let mut longer = whole.clone();
        longer.ask("And moss?", RequestId(2), "tiny");
        assert!(longer.adds_to(&whole) && !whole.adds_to(&longer), "a question more");
        let mut other = whole.clone();
        other.ask("And grass?", RequestId(2), "tiny");
        assert!(longer.adds_to(&other), "another question");
    }

    #[test]
    fn titles_are_the_first_line_cut_at_a_word() {
        assert_eq!(asked().title, "Why is the sky blue?");
        let long = "word ".repeat(40);
        let title = title_of(&long);
        assert!(title.ends_with("word…") && title.chars().count() <= TITLE + 1, "{title}");
        assert_eq!(title_of("\n  one\ntwo"), "one");
    }
}
