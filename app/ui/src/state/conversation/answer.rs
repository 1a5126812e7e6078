//! An answer: its texts, its progress, and what may be done with it.

use potluck_panel::{Channel, RequestId, Timings};
use serde::{Deserialize, Serialize};

/// Most bytes of an answer that are kept. The answering device could otherwise send text without end.
pub(super) const LONGEST_ANSWER: usize = 1 << 20;

/// An answer, finished or not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "super::stored_answer::StoredAnswer")]
pub struct Answer {
    /// The request that produces it, while one runs.
    pub request: Option<RequestId>,
    /// What the model thought.
    pub reasoning: String,
    /// How long it thought.
    pub thought: Thought,
    /// The text so far.
    pub text: String,
    /// The functions that the model called, in its own form.
    pub tool_calls: String,
    /// Progress.
    pub state: AnswerState,
    /// Timings, once it ended.
    pub timings: Option<Timings>,
    /// The model that wrote it.
    pub model: String,
    /// All requests that wrote it, one after the other.
    pub requests: Vec<RequestId>,
    /// A device that computed some of it was found wrong since.
    pub doubtful: bool,
    /// Bytes of the texts that were there before the newest request.
    #[serde(skip)]
    pub(super) before: [usize; 3],
}

/// How long a model thought, by the clock of whoever reads its answer. In milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Thought {
    /// When the thought that goes on began.
    since: Option<f64>,
    /// How long those that have ended took.
    took: f64,
}

impl Thought {
    /// How long it took, if it has ended and anybody measured it.
    #[must_use]
    pub fn took(&self) -> Option<f64> {
        (self.since.is_none() && self.took > 0.0).then_some(self.took)
    }

    /// It goes on at this time, or does not.
    fn note(&mut self, thinks: bool, now: f64) {
        match (thinks, self.since) {
            (true, None) => self.since = Some(now),
            (false, Some(since)) => {
                self.since = None;
                // Clocks may be set back.
                self.took += (now - since).max(0.0);
            }
            (true, Some(_)) | (false, None) => {}
        }
    }
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
    pub(super) fn new(request: RequestId, model: &str) -> Self {
        Self {
            request: Some(request),
            reasoning: String::new(),
            thought: Thought::default(),
            text: String::new(),
            tool_calls: String::new(),
            state: AnswerState::Queued(0),
            timings: None,
            model: model.to_owned(),
            requests: vec![request],
            doubtful: false,
            before: [0; 3],
        }
    }

    /// One that another program has.
    pub(in crate::state) fn written(reasoning: String, text: String, model: String) -> Self {
        Self {
            request: None,
            reasoning,
            text,
            requests: Vec::new(),
            state: AnswerState::Complete,
            ..Self::new(RequestId(0), &model)
        }
    }

    /// Another request goes on with it.
    pub(super) fn go_on(&mut self, request: RequestId) {
        self.before = self.texts().map(str::len);
        self.request = Some(request);
        self.requests.push(request);
        self.state = AnswerState::Queued(0);
    }

    /// The model thinks: there is nothing but reasoning yet.
    #[must_use]
    pub const fn thinks(&self) -> bool {
        let writes = matches!(self.state, AnswerState::Writing | AnswerState::Recovering(_));
        writes && !self.reasoning.is_empty() && self.text.is_empty() && self.tool_calls.is_empty()
    }

    /// A part of it came at this time, in milliseconds.
    pub(super) fn note_thought(&mut self, now: f64) {
        self.thought.note(self.thinks(), now);
    }

    /// What the newest request has written does not count.
    pub(super) fn void(&mut self) {
        let [reasoning, text, tool_calls] = self.before;
        self.reasoning.truncate(reasoning);
        self.text.truncate(text);
        self.tool_calls.truncate(tool_calls);
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

    /// True if there is a beginning to continue, and room to do so, in a context of `room` positions. A call of a function is not
    /// continued: its channel's markers are not kept, so a prompt cannot end within it.
    #[must_use]
    pub fn can_continue(&self, room: u32) -> bool {
        let has_room = !self.fills_context(room) && self.bytes() < LONGEST_ANSWER;
        self.state.is_cut_short() && !self.is_blank() && self.tool_calls.is_empty() && has_room
    }

    /// Nothing of it is here.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.bytes() == 0
    }

    pub(super) fn bytes(&self) -> usize {
        self.texts().iter().map(|text| text.len()).sum()
    }

    /// True if each text of `other` begins with this one's.
    pub(super) fn is_in(&self, other: &Self) -> bool {
        self.texts().iter().zip(other.texts()).all(|(here, there)| there.starts_with(here))
    }

    fn texts(&self) -> [&str; 3] {
        [&self.reasoning, &self.text, &self.tool_calls]
    }

    pub(super) fn text_of(&mut self, channel: Channel) -> &mut String {
        match channel {
            Channel::Reasoning => &mut self.reasoning,
            Channel::Answer => &mut self.text,
            Channel::ToolCall => &mut self.tool_calls,
        }
    }

    pub(super) fn finish(&mut self, state: AnswerState) {
        self.request = None;
        self.state = state;
    }
}
