//! An answer on its way: pieces one by one, or the whole of it.

use std::collections::VecDeque;

use potluck_panel::Channel;

use crate::api::Whole;
use crate::error::ApiError;
use crate::reader::{Piece, Reader};
use crate::room::Asked;

/// An answer on its way. Dropping it stops it.
pub(crate) struct Answer {
    asked: Asked,
    reader: Reader,
    ready: VecDeque<Piece>,
}

impl Answer {
    /// The answer to a question.
    pub fn new(asked: Asked, reader: Reader) -> Self {
        Self { asked, reader, ready: VecDeque::new() }
    }

    /// The next piece, as long as [`Piece::End`] has not come. May be dropped while it waits.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn next(&mut self) -> Result<Piece, ApiError> {
        loop {
            if let Some(piece) = self.ready.pop_front() {
                return Ok(piece);
            }
            let part = self.asked.next().await.ok_or_else(ApiError::ended)?;
            self.ready = self.reader.take(part)?;
        }
    }

    /// All of it.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn whole(mut self) -> Result<Whole, ApiError> {
        let (mut text, mut reasoning, mut calls) = (String::new(), String::new(), Vec::new());
        loop {
            match self.next().await? {
                Piece::Taken(_) => {}
                Piece::Text(Channel::Reasoning, more) => reasoning.push_str(&more),
                Piece::Text(Channel::Answer | Channel::ToolCall, more) => text.push_str(&more),
                Piece::Call(call) => calls.push(call),
                Piece::Void => {
                    text.clear();
                    reasoning.clear();
                    calls.clear();
                }
                Piece::End(finish, usage) => return Ok(Whole { text, reasoning, calls, finish, usage }),
            }
        }
    }
}
