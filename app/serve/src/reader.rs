//! What the parts of an answer mean to who waits for it: a pure state machine.

use std::collections::VecDeque;

use potluck_model::StopStrings;
use potluck_panel::{AnswerPart, AnswerStop, Channel, Timings};
use potluck_text::texts;

use crate::error::ApiError;
use crate::question::{Finish, Usage};

/// A piece of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// The question was taken.
    Taken,
    /// More text.
    Text(Channel, String),
    /// All text so far is void; it comes again.
    Void,
    /// A stop string has come: no more text is wanted.
    Enough,
    /// Nothing more comes.
    End(Finish, Usage),
}

/// Reads the parts of one answer.
pub(crate) struct Reader {
    stops: Vec<String>,
    watch: StopStrings,
    /// A stop string has come.
    is_enough: bool,
    /// Counted as they come, in case the end does not tell.
    counted: Usage,
}

impl Reader {
    /// The answer ends before any of these strings.
    pub fn new(stops: Vec<String>) -> Self {
        let watch = StopStrings::new(stops.iter().cloned());
        Self { stops, watch, is_enough: false, counted: Usage::default() }
    }

    /// The pieces that a part brings.
    ///
    /// # Errors
    /// Why there is no answer.
    pub fn take(&mut self, part: AnswerPart) -> Result<VecDeque<Piece>, ApiError> {
        let mut pieces = VecDeque::new();
        match part {
            AnswerPart::Reading(_, all) => {
                self.counted.prompt = all;
                pieces.push_back(Piece::Taken);
            }
            AnswerPart::Text { channel, delta, tokens, .. } => {
                self.counted.answer = self.counted.answer.saturating_add(tokens.len() as u32);
                self.text(channel, delta, &mut pieces);
            }
            AnswerPart::Void { .. } if !self.is_enough => {
                self.watch = StopStrings::new(self.stops.iter().cloned());
                self.counted.answer = 0;
                pieces.push_back(Piece::Void);
            }
            AnswerPart::End { stop, timings, .. } => {
                if !self.is_enough {
                    if let Some(error) = ApiError::of_stop(&stop) {
                        return Err(error);
                    }
                    let rest = self.watch.finish();
                    if !rest.is_empty() {
                        pieces.push_back(Piece::Text(Channel::Answer, rest));
                    }
                }
                let finish = if stop == AnswerStop::Length && !self.is_enough { Finish::Length } else { Finish::Stop };
                pieces.push_back(Piece::End(finish, self.usage(&timings)));
            }
            AnswerPart::Unknown => return Err(ApiError::Failed(texts().answer.question_lost().to_owned())),
            AnswerPart::Queued(_)
            | AnswerPart::Recovering(_)
            | AnswerPart::Void { .. }
            | AnswerPart::Doubtful { .. } => {}
        }
        Ok(pieces)
    }

    fn text(&mut self, channel: Channel, delta: String, pieces: &mut VecDeque<Piece>) {
        if self.is_enough {
            return;
        }
        let (text, is_enough) = match channel {
            Channel::Answer => {
                let streamed = self.watch.push(&delta);
                (streamed.text, streamed.stopped)
            }
            Channel::Reasoning | Channel::ToolCall => (delta, false),
        };
        if !text.is_empty() {
            pieces.push_back(Piece::Text(channel, text));
        }
        if is_enough {
            self.is_enough = true;
            pieces.push_back(Piece::Enough);
        }
    }

    fn usage(&self, timings: &Timings) -> Usage {
        match timings.prompt_tokens {
            0 => self.counted,
            prompt => Usage { prompt, cached: timings.reused_tokens, answer: timings.answer_tokens },
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    fn text(channel: Channel, delta: &str) -> AnswerPart {
        AnswerPart::Text { index: 0, channel, delta: delta.to_owned(), tokens: vec![1] }
    }

    fn end(stop: AnswerStop) -> AnswerPart {
        let timings = Timings { prompt_tokens: 5, reused_tokens: 3, answer_tokens: 2, ..Timings::default() };
        AnswerPart::End { pieces: 1, stop, timings }
    }

    fn read(stops: &[&str], parts: impl IntoIterator<Item = AnswerPart>) -> Vec<Piece> {
        let mut reader = Reader::new(stops.iter().map(|stop| (*stop).to_owned()).collect());
        parts.into_iter().flat_map(|part| reader.take(part).unwrap()).collect()
    }

    const USAGE: Usage = Usage { prompt: 5, cached: 3, answer: 2 };

    fn said(text: &str) -> Piece {
        Piece::Text(Channel::Answer, text.to_owned())
    }

    #[test]
    fn texts_come_by_channel_and_the_end_says_why_and_how_much() {
        let parts = [
            AnswerPart::Queued(2),
            AnswerPart::Reading(0, 5),
            text(Channel::Reasoning, "Hm."),
            AnswerPart::Recovering("A device left.".to_owned()),
            text(Channel::Answer, "Hello"),
            end(AnswerStop::Length),
        ];
        let thought = Piece::Text(Channel::Reasoning, "Hm.".to_owned());
        assert_eq!(read(&[], parts), [Piece::Taken, thought, said("Hello"), Piece::End(Finish::Length, USAGE)]);
    }

    #[test]
    fn a_stop_string_ends_the_answer_before_it_and_not_the_reasoning() {
        let parts = [
            text(Channel::Reasoning, "END is near"),
            text(Channel::Answer, "one E"),
            text(Channel::Answer, "ND two"),
            text(Channel::Answer, "three"),
            end(AnswerStop::Stopped),
        ];
        let thought = Piece::Text(Channel::Reasoning, "END is near".to_owned());
        let expected = [thought, said("one "), Piece::Enough, Piece::End(Finish::Stop, USAGE)];
        assert_eq!(read(&["END"], parts), expected);
    }

    #[test]
    fn what_was_held_back_for_a_stop_string_comes_at_the_end() {
        let parts = [text(Channel::Answer, "the E"), end(AnswerStop::Complete)];
        assert_eq!(read(&["END"], parts), [said("the "), said("E"), Piece::End(Finish::Stop, USAGE)]);
    }

    #[test]
    fn void_text_is_written_again() {
        let parts = [
            text(Channel::Answer, "wrong E"),
            AnswerPart::Void { index: 1 },
            text(Channel::Answer, "right"),
            end(AnswerStop::Complete),
        ];
        let expected = [said("wrong "), Piece::Void, said("right"), Piece::End(Finish::Stop, USAGE)];
        assert_eq!(read(&["END"], parts), expected);
    }

    #[test]
    fn a_failure_is_an_error_unless_enough_was_written() {
        let failed = || end(AnswerStop::Failed("The host left.".to_owned()));
        let mut reader = Reader::new(Vec::new());
        assert_eq!(reader.take(failed()), Err(ApiError::Failed("The host left.".to_owned())));
        assert!(reader.take(AnswerPart::Unknown).is_err());
        let parts = [text(Channel::Answer, "one END"), failed()];
        assert_eq!(read(&["END"], parts).last(), Some(&Piece::End(Finish::Stop, USAGE)));
    }

    #[test]
    fn without_numbers_at_the_end_tokens_are_counted() {
        let parts = [
            AnswerPart::Reading(0, 7),
            text(Channel::Answer, "a"),
            AnswerPart::End { pieces: 1, stop: AnswerStop::Stopped, timings: Timings::default() },
        ];
        let counted = Usage { prompt: 7, cached: 0, answer: 1 };
        assert_eq!(read(&[], parts).last(), Some(&Piece::End(Finish::Stop, counted)));
    }
}
