//! What the parts of an answer mean to whoever waits for it: a pure state machine.

use std::collections::VecDeque;

use potluck_model::StopStrings;
use potluck_panel::{AnswerPart, AnswerStop, Channel, Timings};
use potluck_text::texts;

use crate::error::ApiError;
use crate::question::{Finish, Usage};

/// Bytes of an answer, at most: no model writes as much, and a host may.
const MAX_BYTES: usize = 8 << 20;

/// A piece of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// The room begins to answer. What is known by then of the tokens.
    Taken(Usage),
    /// More text.
    Text(Channel, String),
    /// All text so far is void; it comes again.
    Void,
    /// Nothing more comes, or is wanted.
    End(Finish, Usage),
}

/// Reads the parts of one answer.
pub(crate) struct Reader {
    stops: Vec<String>,
    watch: StopStrings,
    is_taken: bool,
    bytes: usize,
    /// Counted as they come: a stop string may end the answer before the room counts them.
    counted: Usage,
}

impl Reader {
    /// The answer ends before any of these strings.
    pub fn new(stops: Vec<String>) -> Self {
        let watch = StopStrings::new(stops.iter().cloned());
        Self { stops, watch, is_taken: false, bytes: 0, counted: Usage::default() }
    }

    /// The pieces that a part brings.
    ///
    /// # Errors
    /// Why there is no answer.
    pub fn take(&mut self, part: AnswerPart) -> Result<VecDeque<Piece>, ApiError> {
        let mut pieces = VecDeque::new();
        match part {
            AnswerPart::Reading(done, all) if !self.is_taken => {
                // Tokens that are already read when the answer begins were in the KV cache.
                (self.counted.prompt, self.counted.cached) = (all, done);
                self.is_taken = true;
                pieces.push_back(Piece::Taken(self.counted));
            }
            AnswerPart::Text { channel, delta, tokens, .. } => {
                self.bytes = self.bytes.saturating_add(delta.len());
                if self.bytes > MAX_BYTES {
                    return Err(ApiError::Failed(texts().api.endless().to_owned()));
                }
                self.count(channel, tokens.len() as u32);
                self.text(channel, delta, &mut pieces);
            }
            AnswerPart::Void { .. } => {
                self.watch = StopStrings::new(self.stops.iter().cloned());
                (self.bytes, self.counted.answer, self.counted.reasoning) = (0, 0, 0);
                pieces.push_back(Piece::Void);
            }
            AnswerPart::End { stop, timings, .. } => {
                if let Some(error) = ApiError::of_stop(&stop) {
                    return Err(error);
                }
                let rest = self.watch.finish();
                if !rest.is_empty() {
                    pieces.push_back(Piece::Text(Channel::Answer, rest));
                }
                let finish = if stop == AnswerStop::Length { Finish::Length } else { Finish::Stop };
                pieces.push_back(Piece::End(finish, self.usage(&timings)));
            }
            AnswerPart::Unknown => return Err(ApiError::Failed(texts().answer.question_lost().to_owned())),
            AnswerPart::Queued(_)
            | AnswerPart::Reading(..)
            | AnswerPart::Recovering(_)
            | AnswerPart::Doubtful { .. } => {}
        }
        Ok(pieces)
    }

    fn count(&mut self, channel: Channel, tokens: u32) {
        self.counted.answer = self.counted.answer.saturating_add(tokens);
        if channel == Channel::Reasoning {
            self.counted.reasoning = self.counted.reasoning.saturating_add(tokens);
        }
    }

    fn text(&mut self, channel: Channel, delta: String, pieces: &mut VecDeque<Piece>) {
        let text = match channel {
            Channel::Reasoning => delta,
            // Programs are given a call as text, too.
            Channel::Answer | Channel::ToolCall => self.watch.push(&delta).text,
        };
        if !text.is_empty() {
            pieces.push_back(Piece::Text(channel, text));
        }
        if let Some(stop) = self.watch.found() {
            pieces.push_back(Piece::End(Finish::StopString(stop.to_owned()), self.counted));
        }
    }

    fn usage(&self, timings: &Timings) -> Usage {
        match timings.prompt_tokens {
            0 => self.counted,
            prompt => Usage { prompt, cached: timings.reused_tokens, answer: timings.answer_tokens, ..self.counted },
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

    const USAGE: Usage = Usage { prompt: 5, cached: 3, answer: 2, reasoning: 0 };

    fn said(text: &str) -> Piece {
        Piece::Text(Channel::Answer, text.to_owned())
    }

    fn end_before(stop: &str, answer: u32, reasoning: u32) -> Piece {
        Piece::End(Finish::StopString(stop.to_owned()), Usage { prompt: 5, cached: 3, answer, reasoning })
    }

    #[test]
    fn texts_come_by_channel_and_the_end_says_why_and_how_much() {
        let parts = [
            AnswerPart::Queued(2),
            AnswerPart::Reading(3, 5),
            AnswerPart::Reading(4, 5),
            text(Channel::Reasoning, "Hm."),
            AnswerPart::Recovering("A device left.".to_owned()),
            text(Channel::Answer, "Hello"),
            end(AnswerStop::Length),
        ];
        let thought = Piece::Text(Channel::Reasoning, "Hm.".to_owned());
        let taken = Piece::Taken(Usage { answer: 0, ..USAGE });
        let end = Piece::End(Finish::Length, Usage { reasoning: 1, ..USAGE });
        assert_eq!(read(&[], parts), [taken, thought, said("Hello"), end], "a prompt is taken once");
    }

    #[test]
    fn a_stop_string_ends_the_answer_before_it_and_not_the_reasoning() {
        let parts = [
            AnswerPart::Reading(3, 5),
            text(Channel::Reasoning, "END is near"),
            text(Channel::Answer, "one E"),
            text(Channel::Answer, "ND two"),
        ];
        let thought = Piece::Text(Channel::Reasoning, "END is near".to_owned());
        assert_eq!(read(&["stop", "END"], parts)[1..], [thought, said("one "), end_before("END", 3, 1)]);
    }

    #[test]
    fn a_stop_string_ends_a_call_as_well_and_no_text_changes_its_place() {
        let call = |text: &str| Piece::Text(Channel::ToolCall, text.to_owned());
        let parts = [
            AnswerPart::Reading(3, 5),
            text(Channel::Answer, "I look.\n"),
            text(Channel::ToolCall, "{now}"),
            text(Channel::ToolCall, "</call>"),
        ];
        let expected = [said("I look."), call("\n{now}"), end_before("</call>", 3, 0)];
        assert_eq!(read(&["\nObservation:", "</call>"], parts)[1..], expected);
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
    fn an_answer_that_was_cut_off_is_an_error() {
        for stop in [AnswerStop::Failed("The host left.".to_owned()), AnswerStop::Stopped] {
            let mut reader = Reader::new(Vec::new());
            assert!(reader.take(text(Channel::Answer, "half")).is_ok());
            assert!(matches!(reader.take(end(stop.clone())), Err(ApiError::Failed(_))), "{stop:?}");
        }
        assert!(Reader::new(Vec::new()).take(AnswerPart::Unknown).is_err());
    }

    #[test]
    fn an_answer_without_end_is_an_error() {
        let mut reader = Reader::new(Vec::new());
        let mut more = || reader.take(text(Channel::Answer, &"a".repeat(MAX_BYTES / 2)));
        assert!(more().is_ok() && more().is_ok());
        assert!(matches!(more(), Err(ApiError::Failed(_))));
    }

    #[test]
    fn without_numbers_at_the_end_tokens_are_counted() {
        let parts = [
            AnswerPart::Reading(2, 7),
            text(Channel::Answer, "a"),
            AnswerPart::End { pieces: 1, stop: AnswerStop::Complete, timings: Timings::default() },
        ];
        let counted = Usage { prompt: 7, cached: 2, answer: 1, reasoning: 0 };
        assert_eq!(read(&[], parts).last(), Some(&Piece::End(Finish::Stop, counted)));
    }
}
