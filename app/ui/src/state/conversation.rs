//! A conversation, its branches, and how its answers grow. Pure: equal events give equal conversations.

mod answer;
mod context;
mod stored_answer;
mod stored_conversation;
#[cfg(test)]
mod tests;
mod tree;

use std::collections::{BTreeMap, BTreeSet};

use potluck_panel::{AnswerPart, AnswerStop, Message, RequestId, Role};
use potluck_text::texts;
use serde::{Deserialize, Serialize};

pub use answer::{Answer, AnswerState, Thought};
pub use context::{ContextUse, estimated_tokens};
pub use tree::{TurnKey, Versioned, Versions};

use super::{AnswerSettings, Difference, QuestionParts};
use answer::LONGEST_ANSWER;

/// A conversation as stored in the browser.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "stored_conversation::StoredConversation")]
pub struct Conversation {
    /// Random text; devices store the conversation's KV cache under this id.
    pub id: String,
    /// Title in the list: the first question until the user renames it.
    pub title: String,
    /// The user set the title.
    pub renamed: bool,
    /// It stays at the top of the list.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
    /// Time of the last change, milliseconds since 1970.
    pub changed: f64,
    /// How its answers are generated, where that is not as the page's settings say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own_answers: Option<AnswerSettings>,
    /// The first turn that is sent; all of them where it is not in the chosen branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent_from: Option<TurnKey>,
    /// The first turn of which the host's count of tokens counts: turns were left out, or sent again, before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counts_from: Option<TurnKey>,
    /// The chosen branch: questions with their answers, oldest first. Where it is empty, there are no others.
    pub turns: Vec<Turn>,
    /// The turns of the other branches. Of those that follow the same one, the one that was shown last is behind.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aside: Vec<Turn>,
}

/// A conversation's entry in the list.
#[derive(Clone, Debug, PartialEq)]
pub struct Heading {
    /// The conversation's id.
    pub id: String,
    /// Its title.
    pub title: String,
    /// It stays at the top.
    pub pinned: bool,
    /// Time of the last change, milliseconds since 1970.
    pub changed: f64,
}

/// Names a turn: its conversation's id and its key there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TurnId(pub String, pub TurnKey);

/// A question and its answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Turn {
    /// Its name.
    pub key: TurnKey,
    /// The turn before it; none at the beginning.
    pub follows: Option<TurnKey>,
    /// The user's text.
    pub question: String,
    /// The model's text.
    pub answer: Answer,
}

/// What was asked in vain.
#[derive(Clone, Debug, PartialEq)]
pub enum TakenBack {
    /// A question, which is no part of the conversation any more.
    Question(String),
    /// To answer again. The former answer is back.
    Regenerate,
}

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
        Heading { id: self.id.clone(), title: self.title.clone(), pinned: self.pinned, changed: self.changed }
    }

    /// How its answers are generated, if the page's settings are these.
    #[must_use]
    pub fn answer_settings<'a>(&'a self, usual: &'a AnswerSettings) -> &'a AnswerSettings {
        self.own_answers.as_ref().unwrap_or(usual)
    }

    /// In what its own settings differ from those of the page.
    #[must_use]
    pub fn difference(&self, usual: &AnswerSettings) -> Option<Difference> {
        self.own_answers.as_ref().and_then(|own| own.difference(usual))
    }

    /// A request that runs now.
    #[must_use]
    pub fn running(&self) -> Option<RequestId> {
        self.all_running().next()
    }

    /// All requests that run now: several, where answers are written side by side.
    pub fn all_running(&self) -> impl Iterator<Item = RequestId> {
        self.all_turns().filter(|turn| turn.answer.state.running()).filter_map(|turn| turn.answer.request)
    }

    /// An answer here waits for parts of this request.
    #[must_use]
    pub fn waits_for(&self, request: RequestId) -> bool {
        self.all_running().any(|running| running == request)
    }

    /// True if a text here is not in `other`: a question, or the end of an answer, of any branch.
    #[must_use]
    pub fn adds_to(&self, other: &Self) -> bool {
        let mut here: Vec<&Turn> = self.all_turns().collect();
        // A turn comes after the one that it follows.
        here.sort_by_key(|turn| turn.key);
        let mut found: BTreeMap<TurnKey, BTreeSet<TurnKey>> = BTreeMap::new();
        here.into_iter().any(|turn| {
            let follows = |there: &Turn| match (turn.follows, there.follows) {
                (None, None) => true,
                (Some(before), Some(there)) => found.get(&before).is_some_and(|found| found.contains(&there)),
                _ => false,
            };
            let is_it =
                |there: &&Turn| follows(there) && turn.question == there.question && turn.answer.is_in(&there.answer);
            let its: BTreeSet<_> = other.all_turns().filter(is_it).map(|there| there.key).collect();
            let is_missing = its.is_empty();
            found.insert(turn.key, its);
            is_missing
        })
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
        self.branch(self.turns.len(), question.to_owned(), Answer::new(request, model));
    }

    /// Asks another question at the place of a former one, which stays as a branch; `false` if there is none.
    pub fn edit(&mut self, at: usize, question: &str, request: RequestId, model: &str) -> bool {
        let is_there = at < self.turns.len();
        if is_there {
            self.branch(at, question.to_owned(), Answer::new(request, model));
        }
        is_there
    }

    /// Answers the last question again. The former answer stays as a version, if it has any text. `false` if there is nothing to
    /// answer.
    pub fn regenerate(&mut self, request: RequestId, model: &str) -> bool {
        let answer = Answer::new(request, model);
        match self.turns.last_mut() {
            None => return false,
            Some(turn) if turn.answer.is_blank() => turn.answer = answer,
            Some(turn) => {
                let question = turn.question.clone();
                self.branch(self.turns.len() - 1, question, answer);
            }
        }
        true
    }

    /// Answers the last question once more, beside the answer that is shown; returns its key, if there is a question.
    pub fn answer_beside(&mut self, request: RequestId, model: &str) -> Option<TurnKey> {
        let (follows, question) = self.turns.last().map(|turn| (turn.follows, turn.question.clone()))?;
        let key = self.next_key();
        self.aside.push(Turn { key, follows, question, answer: Answer::new(request, model) });
        Some(key)
    }

    /// The messages of a prompt for another answer to the last question.
    #[must_use]
    pub fn messages_beside(&self, instructions: &str) -> Vec<Message> {
        let mut asked = self.clone();
        if let Some(turn) = asked.turns.last_mut() {
            turn.answer = Answer::new(RequestId(0), "");
        }
        asked.messages(instructions)
    }

    /// Continues the last answer; `false` if there is none.
    pub fn go_on(&mut self, request: RequestId) -> bool {
        let Some(turn) = self.turns.last_mut() else { return false };
        turn.answer.go_on(request);
        true
    }

    /// Takes back what `request` asks, if it is the last turn and nothing of its answer is here. An edited question is not taken
    /// back: its place is the one of the former question.
    pub fn take_back(&mut self, request: RequestId) -> Option<TakenBack> {
        let is_its = |turn: &&Turn| turn.answer.request == Some(request) && turn.answer.is_blank();
        let turn = self.turns.last().filter(is_its)?;
        let taken = match self.former() {
            None => TakenBack::Question(turn.question.clone()),
            Some(former) if former.question == turn.question => TakenBack::Regenerate,
            Some(_) => return None,
        };
        self.turns.pop();
        self.go_to_end();
        Some(taken)
    }

    /// Applies a part of an answer, without a clock.
    #[cfg(test)]
    pub fn apply(&mut self, request: RequestId, event: &AnswerPart) -> bool {
        self.apply_at(request, event, 0.0)
    }

    /// Applies a part of an answer that came at the time `now`, in milliseconds; `false` if no answer belongs to this request.
    pub fn apply_at(&mut self, request: RequestId, event: &AnswerPart, now: f64) -> bool {
        let waiting = |turn: &&mut Turn| turn.answer.request == Some(request) && turn.answer.state.running();
        let Some(Turn { answer, .. }) = self.all_turns_mut().find(waiting) else { return false };
        match event {
            AnswerPart::Queued(position) => answer.state = AnswerState::Queued(*position),
            AnswerPart::Reading(done, total) => {
                answer.state = AnswerState::Reading { done: *done, total: *total };
            }
            AnswerPart::Text { channel, delta, .. } => {
                let room = LONGEST_ANSWER.saturating_sub(answer.bytes());
                answer.text_of(*channel).push_str(&delta[..delta.floor_char_boundary(room)]);
                if delta.len() > room {
                    answer.finish(AnswerState::Failed(texts().answer.too_long().to_owned()));
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
            AnswerPart::Void { .. } => answer.void(),
            AnswerPart::Doubtful { .. } => answer.doubtful = true,
            AnswerPart::Unknown => answer.finish(AnswerState::Failed(texts().answer.question_lost().to_owned())),
        }
        answer.note_thought(now);
        true
    }

    /// Marks what a request has written; `false` if nothing here is new to be marked.
    pub fn doubt(&mut self, request: RequestId) -> bool {
        let mut is_new = false;
        for Turn { answer, .. } in self.all_turns_mut() {
            if answer.requests.contains(&request) && !answer.doubtful {
                (answer.doubtful, is_new) = (true, true);
            }
        }
        is_new
    }

    /// Ends all unfinished answers with `state`; `false` if there were none.
    pub fn break_off(&mut self, state: &AnswerState) -> bool {
        let mut any = false;
        for turn in self.all_turns_mut().filter(|turn| turn.answer.state.running()) {
            turn.answer.state = state.clone();
            turn.answer.request = None;
            any = true;
        }
        any
    }

    /// The messages of a prompt: instructions, then the turns of the chosen branch that are sent. Omits questions that got no text, because many templates
    /// refuse two questions in a row; the last question stands there to be answered, and its answer to be continued.
    #[must_use]
    pub fn messages(&self, instructions: &str) -> Vec<Message> {
        let mut messages = Vec::with_capacity(self.turns.len() * 2 + 1);
        if !instructions.trim().is_empty() {
            messages.push(Message::new(Role::System, instructions.trim().to_owned()));
        }
        let last = self.turns.len().saturating_sub(1);
        for (index, Turn { question, answer, .. }) in self.turns.iter().enumerate().skip(self.first_sent()) {
            // What was only thought can be gone on with, but says nothing to the next question.
            let said = !answer.text.is_empty() || !answer.tool_calls.is_empty();
            let answered = said || index == last && !answer.is_blank();
            if answered || index == last {
                messages.push(Message::new(Role::User, question.clone()));
            }
            if answered {
                let (reasoning, tool_calls) = (answer.reasoning.clone(), answer.tool_calls.clone());
                messages.push(Message { reasoning, tool_calls, ..Message::new(Role::Assistant, answer.text.clone()) });
            }
        }
        messages
    }
}

/// The first line of a question, or the names of its files, cut at a word boundary.
fn title_of(question: &str) -> String {
    let parts = QuestionParts::of(question);
    let text = if parts.text.trim().is_empty() { parts.summary() } else { parts.text };
    let line = text.trim().lines().next().unwrap_or_default();
    if line.chars().count() <= TITLE {
        return line.to_owned();
    }
    let cut: String = line.chars().take(TITLE).collect();
    let whole = cut.rfind(' ').filter(|&at| at > TITLE / 2).map_or(cut.as_str(), |at| &cut[..at]);
    format!("{}…", whole.trim_end())
}
