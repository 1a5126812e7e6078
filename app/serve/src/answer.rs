//! An answer on its way: pieces one by one, or the whole of it.

use std::collections::VecDeque;
use std::sync::Arc;

use potluck_panel::Channel;

use crate::api::Whole;
use crate::error::ApiError;
use crate::meter::Meter;
use crate::question::Question;
use crate::reader::{Piece, Reader};
use crate::room::{Asked, RoomLine};

/// Asks for the answers to one question, one after another: all but the first find its prompt's KV cache, and one program does not take
/// the turns of others.
pub(crate) struct Asking {
    line: RoomLine,
    question: Question,
    /// Of the first answer; each later one adds one.
    seed: u64,
    /// The ids of the first answer's calls come from it; each later one adds one.
    ids: u64,
    /// The answer before the next one.
    before: Option<Answer>,
}

impl Asking {
    /// A question's answers, with this seed if it has none. `ids` is random.
    pub fn new(line: RoomLine, question: Question, seed: u64, ids: u64) -> Self {
        let seed = question.seed.unwrap_or(seed);
        Self { line, question, seed, ids, before: None }
    }

    /// The next answer, once it is its turn. The one before is stopped.
    ///
    /// # Errors
    /// The room does not take the question.
    pub async fn next(&mut self) -> Result<&mut Answer, ApiError> {
        if let Some(before) = self.before.take() {
            before.asked.close().await;
            (self.seed, self.ids) = (self.seed.wrapping_add(1), self.ids.wrapping_add(1));
        }
        let asked = self.line.ask(self.question.clone(), self.seed).await?;
        let reader = Reader::new(self.question.stops.clone(), &self.question.tools, self.ids);
        let meter = self.line.meter().clone();
        Ok(self.before.insert(Answer { asked, reader, ready: VecDeque::new(), meter }))
    }

    /// The answer that was begun last.
    pub fn newest(&mut self) -> Option<&mut Answer> {
        self.before.as_mut()
    }

    /// All of them.
    ///
    /// # Errors
    /// Why one of them is missing.
    pub async fn all(mut self) -> Result<Vec<Whole>, ApiError> {
        let mut all = Vec::new();
        for _ in 0..self.question.answers.max(1) {
            all.push(self.next().await?.whole().await?);
        }
        Ok(all)
    }
}

/// An answer on its way. Dropping it stops it.
pub(crate) struct Answer {
    asked: Asked,
    reader: Reader,
    ready: VecDeque<Piece>,
    meter: Arc<Meter>,
}

impl Answer {
    /// The next piece, as long as [`Piece::End`] has not come. May be dropped while it waits.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn next(&mut self) -> Result<Piece, ApiError> {
        loop {
            if let Some(piece) = self.ready.pop_front() {
                if let Piece::End(_, usage) = &piece {
                    self.meter.add(*usage);
                }
                return Ok(piece);
            }
            let part = self.asked.next().await.ok_or_else(ApiError::ended)?;
            self.ready = self.reader.take(part)?;
        }
    }

    /// The tokens of its prompt, once the room has counted them.
    ///
    /// # Errors
    /// The room does not take the question.
    pub async fn prompt_tokens(&mut self) -> Result<u32, ApiError> {
        loop {
            match self.next().await? {
                Piece::Taken(usage) | Piece::End(_, usage) => return Ok(usage.prompt),
                Piece::Logprobs(_) | Piece::Text(..) | Piece::Call(_) | Piece::Void => {}
            }
        }
    }

    /// All of it.
    async fn whole(&mut self) -> Result<Whole, ApiError> {
        let (mut text, mut reasoning) = (String::new(), String::new());
        let (mut calls, mut logprobs) = (Vec::new(), Vec::new());
        loop {
            match self.next().await? {
                Piece::Taken(_) => {}
                Piece::Logprobs(more) => logprobs.extend(more),
                Piece::Text(Channel::Reasoning, more) => reasoning.push_str(&more),
                Piece::Text(Channel::Answer | Channel::ToolCall, more) => text.push_str(&more),
                Piece::Call(call) => calls.push(call),
                Piece::Void => {
                    text.clear();
                    reasoning.clear();
                    calls.clear();
                    logprobs.clear();
                }
                Piece::End(finish, usage) => return Ok(Whole { text, reasoning, calls, logprobs, finish, usage }),
            }
        }
    }
}
