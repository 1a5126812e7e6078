//! What the parts of an answer mean to whoever waits for it: a pure state machine.

use std::collections::VecDeque;

use potluck_model::{CallPart, CallStream, StopStrings, ToolCall};
use potluck_panel::{AnswerPart, AnswerStop, Channel, LogitOptions, Timings, TokenLogprobs};
use potluck_text::texts;

use crate::error::ApiError;
use crate::question::{Finish, Tools, Usage};

/// Bytes of an answer, at most: no model writes as much, and a host may.
const MAX_BYTES: usize = 8 << 20;

/// A piece of an answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Piece {
    /// The room begins to answer. What is known by then of the tokens.
    Taken(Usage),
    /// Log-probabilities of tokens whose text comes next, or has come.
    Logprobs(Vec<TokenLogprobs>),
    /// More text.
    Text(Channel, String),
    /// A call of a function, with an id of its own.
    Call(ToolCall),
    /// All text so far is void; it comes again.
    Void,
    /// Nothing more comes, or is wanted.
    End(Finish, Usage),
}

/// Reads the parts of one answer.
pub(crate) struct Reader {
    stops: Vec<String>,
    watch: StopStrings,
    /// Finds calls, if functions were offered; and as it is at the beginning.
    calls: Option<CallStream>,
    fresh: Option<CallStream>,
    ids: Ids,
    /// The answer ends with its first call.
    is_single: bool,
    /// Calls so far.
    called: usize,
    is_taken: bool,
    bytes: usize,
    /// Bytes of what the model said, and how many of them were handed on: some are held back.
    said: (usize, usize),
    /// Log-probabilities of tokens that are held back, each with how much was said with them.
    held: VecDeque<(usize, Vec<TokenLogprobs>)>,
    scored: usize,
    /// Counted as they come: a stop string may end the answer before the room counts them.
    counted: Usage,
}

impl Reader {
    /// The answer ends before any of these strings, and may call functions. `seed` is random: the ids of calls come from it.
    pub fn new(stops: Vec<String>, tools: &Tools, seed: u64) -> Self {
        let watch = StopStrings::new(stops.iter().cloned());
        let functions = &tools.offer.functions;
        let calls = (!functions.is_empty()).then(|| CallStream::new(functions.iter().map(String::as_str)));
        Self {
            stops,
            watch,
            fresh: calls.clone(),
            calls,
            ids: Ids { seed, given: 0 },
            is_single: tools.is_single,
            called: 0,
            is_taken: false,
            bytes: 0,
            said: (0, 0),
            held: VecDeque::new(),
            scored: 0,
            counted: Usage::default(),
        }
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
            AnswerPart::Text { channel, delta, tokens, logprobs, .. } => {
                let scored = logprobs.iter().flat_map(|of| of.top.iter().chain([&of.chosen]));
                let scored: usize = scored.map(|of| of.bytes.len()).sum();
                self.bytes = self.bytes.saturating_add(delta.len()).saturating_add(scored);
                if self.bytes > MAX_BYTES {
                    return Err(ApiError::Failed(texts().api.endless().to_owned()));
                }
                self.count(channel, tokens.len() as u32);
                if channel != Channel::Reasoning {
                    self.hold(delta.len(), logprobs);
                }
                self.text(channel, delta, &mut pieces);
            }
            AnswerPart::Void { .. } => {
                self.watch = StopStrings::new(self.stops.iter().cloned());
                (self.calls, self.called) = (self.fresh.clone(), 0);
                (self.bytes, self.counted.answer, self.counted.reasoning) = (0, 0, 0);
                (self.said, self.scored) = ((0, 0), 0);
                self.held.clear();
                pieces.push_back(Piece::Void);
            }
            AnswerPart::End { stop, timings, .. } => {
                if let Some(error) = ApiError::of_stop(&stop) {
                    return Err(error);
                }
                let rest = self.watch.finish();
                self.said.1 = self.said.0;
                self.let_go(&mut pieces);
                self.say(Channel::Answer, rest, &mut pieces);
                self.settle(&mut pieces);
                let finish = match stop {
                    AnswerStop::Length => Finish::Length,
                    _ => self.finish(Finish::Stop),
                };
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

    /// Keeps log-probabilities until the text of their tokens is handed on. Those of a stop string never are.
    fn hold(&mut self, bytes: usize, logprobs: Vec<TokenLogprobs>) {
        self.said.0 += bytes;
        if !logprobs.is_empty() && self.scored < LogitOptions::MAX_SCORED {
            self.scored += logprobs.len();
            self.held.push_back((self.said.0, logprobs));
        }
    }

    fn let_go(&mut self, pieces: &mut VecDeque<Piece>) {
        let mut logprobs = Vec::new();
        while let Some((_, some)) = self.held.pop_front_if(|(said, _)| *said <= self.said.1) {
            logprobs.extend(some);
        }
        if !logprobs.is_empty() {
            pieces.push_back(Piece::Logprobs(logprobs));
        }
    }

    fn text(&mut self, channel: Channel, delta: String, pieces: &mut VecDeque<Piece>) {
        match channel {
            Channel::Reasoning => self.say(channel, delta, pieces),
            // A stop string ends the answer, not a call.
            Channel::ToolCall if self.calls.is_some() => {
                let before = self.watch.finish();
                self.hand_on(Channel::Answer, before, pieces);
                self.hand_on(channel, delta, pieces);
            }
            // Without functions, a call is text, too.
            Channel::Answer | Channel::ToolCall => {
                let text = self.watch.push(&delta).text;
                self.hand_on(channel, text, pieces);
            }
        }
        if let Some(stop) = self.watch.found().map(str::to_owned) {
            self.settle(pieces);
            pieces.push_back(Piece::End(self.finish(Finish::StopString(stop)), self.counted));
        }
    }

    /// Text that is held back no longer, after the log-probabilities of its tokens.
    fn hand_on(&mut self, channel: Channel, text: String, pieces: &mut VecDeque<Piece>) {
        self.said.1 += text.len();
        self.let_go(pieces);
        self.say(channel, text, pieces);
    }

    /// Text is certain, as far as it is no call.
    fn say(&mut self, channel: Channel, text: String, pieces: &mut VecDeque<Piece>) {
        if text.is_empty() {
            return;
        }
        match &mut self.calls {
            None => pieces.push_back(Piece::Text(channel, text)),
            Some(calls) => {
                let parts = calls.push(channel, &text);
                self.add(parts, pieces);
            }
        }
    }

    /// No more text comes.
    fn settle(&mut self, pieces: &mut VecDeque<Piece>) {
        let parts = self.calls.as_mut().map(CallStream::finish).unwrap_or_default();
        self.add(parts, pieces);
    }

    fn add(&mut self, parts: Vec<CallPart>, pieces: &mut VecDeque<Piece>) {
        for part in parts {
            match part {
                CallPart::Text(channel, text) if !text.is_empty() => pieces.push_back(Piece::Text(channel, text)),
                CallPart::Text(..) => {}
                CallPart::Call(call) => {
                    self.called += 1;
                    pieces.push_back(Piece::Call(ToolCall { id: self.ids.next(), ..call }));
                    if self.is_single {
                        return pieces.push_back(Piece::End(Finish::ToolCalls, self.counted));
                    }
                }
            }
        }
    }

    /// Programs carry calls out if this says so.
    fn finish(&self, otherwise: Finish) -> Finish {
        if self.called > 0 { Finish::ToolCalls } else { otherwise }
    }

    fn usage(&self, timings: &Timings) -> Usage {
        match timings.prompt_tokens {
            0 => self.counted,
            prompt => Usage { prompt, cached: timings.reused_tokens, answer: timings.answer_tokens, ..self.counted },
        }
    }
}

/// Ids of the calls of an answer: different in all answers, because a conversation has those of many.
struct Ids {
    seed: u64,
    given: u64,
}

impl Ids {
    /// Nine letters or digits: Mistral's templates refuse other ids.
    fn next(&mut self) -> String {
        const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
        let hash = blake3::hash(&[self.seed.to_le_bytes(), self.given.to_le_bytes()].concat());
        self.given += 1;
        hash.as_bytes()[..9].iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use potluck_panel::{Logprob, ToolChoice, ToolOffer};

    use super::*;

    fn text(channel: Channel, delta: &str) -> AnswerPart {
        AnswerPart::Text { index: 0, channel, delta: delta.to_owned(), tokens: vec![1], logprobs: Vec::new() }
    }

    fn end(stop: AnswerStop) -> AnswerPart {
        let timings = Timings { prompt_tokens: 5, reused_tokens: 3, answer_tokens: 2, ..Timings::default() };
        AnswerPart::End { pieces: 1, stop, timings }
    }

    fn read(stops: &[&str], parts: impl IntoIterator<Item = AnswerPart>) -> Vec<Piece> {
        let stops = stops.iter().map(|stop| (*stop).to_owned()).collect();
        let mut reader = Reader::new(stops, &Tools::default(), 1);
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
    fn log_probabilities_come_with_the_text_and_those_of_a_stop_string_do_not() {
        let scored = |delta: &str| {
            let chosen = Logprob { token: 1, bytes: delta.as_bytes().to_vec(), logprob: -1.0 };
            let logprobs = vec![TokenLogprobs { chosen, top: Vec::new() }];
            let (channel, delta, tokens) = (Channel::Answer, delta.to_owned(), vec![1]);
            AnswerPart::Text { index: 0, channel, delta, tokens, logprobs }
        };
        let of = |pieces: Vec<Piece>| {
            let name = |piece| match piece {
                Piece::Logprobs(all) => all.iter().map(|of| String::from_utf8_lossy(&of.chosen.bytes)).collect(),
                Piece::Text(_, text) => format!("={text}"),
                _ => "end".to_owned(),
            };
            pieces.into_iter().map(name).collect::<Vec<String>>()
        };
        let parts = |last: &str| ["one", " E", "N", last].map(scored);
        assert_eq!(of(read(&["END"], parts("D"))), ["one", "=one", "= ", "end"], "nothing of the stop string");
        let all = parts("ough").into_iter().chain([end(AnswerStop::Complete)]);
        assert_eq!(of(read(&["END"], all)), ["one", "=one", "= ", " ENough", "=ENough", "end"]);
        let all = parts("").into_iter().chain([end(AnswerStop::Complete)]);
        assert_eq!(of(read(&["END"], all)), ["one", "=one", "= ", " EN", "=EN", "end"]);
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
            let mut reader = Reader::new(Vec::new(), &Tools::default(), 1);
            assert!(reader.take(text(Channel::Answer, "half")).is_ok());
            assert!(matches!(reader.take(end(stop.clone())), Err(ApiError::Failed(_))), "{stop:?}");
        }
        assert!(Reader::new(Vec::new(), &Tools::default(), 1).take(AnswerPart::Unknown).is_err());
    }

    #[test]
    fn an_answer_without_end_is_an_error() {
        let mut reader = Reader::new(Vec::new(), &Tools::default(), 1);
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

    const CALL: &str = r#"{"name": "now", "arguments": {"zone": "UTC END"}}"#;

    /// With functions offered.
    fn read_calls(is_single: bool, parts: impl IntoIterator<Item = AnswerPart>) -> Vec<Piece> {
        let functions = vec![r#"{"type": "function", "function": {"name": "now"}}"#.to_owned()];
        let offer = ToolOffer { functions, choice: ToolChoice::Free };
        let mut reader = Reader::new(vec!["END".to_owned()], &Tools { offer, is_single, is_strict: false }, 1);
        let mut pieces = Vec::new();
        for part in parts {
            pieces.extend(reader.take(part).unwrap());
            if let Some(end) = pieces.iter().position(|piece| matches!(piece, Piece::End(..))) {
                pieces.truncate(end + 1);
                break;
            }
        }
        pieces
    }

    #[test]
    fn calls_have_ids_of_their_own_and_say_how_the_answer_ended() {
        let parts = || {
            [
                text(Channel::Answer, "I look. E"),
                text(Channel::ToolCall, CALL),
                text(Channel::ToolCall, CALL),
                end(AnswerStop::Complete),
            ]
        };
        let pieces = read_calls(false, parts());
        let [said_first, held, Piece::Call(first), Piece::Call(second), Piece::End(finish, USAGE)] = &pieces[..] else {
            panic!("{pieces:?}")
        };
        assert_eq!([said_first, held], [&said("I look. "), &said("E")], "a stop string ends the answer, not a call");
        assert_eq!((first.name.as_str(), first.arguments.as_str()), ("now", "{\"zone\": \"UTC END\"}"));
        assert!(first.id.len() == 9 && first.id != second.id, "{pieces:?}");
        assert_eq!(*finish, Finish::ToolCalls);
        let single = read_calls(true, parts());
        assert!(matches!(&single[2..], [Piece::Call(_), Piece::End(Finish::ToolCalls, _)]), "{single:?}");
    }

    #[test]
    fn a_call_that_cannot_be_read_is_text_and_void_calls_come_again() {
        let broken = "{\"name\": \"now\", \"arguments\": {";
        let pieces = read_calls(false, [text(Channel::ToolCall, broken), end(AnswerStop::Complete)]);
        assert_eq!(pieces, [Piece::Text(Channel::ToolCall, broken.to_owned()), Piece::End(Finish::Stop, USAGE)]);
        let cut = read_calls(false, [text(Channel::ToolCall, CALL), end(AnswerStop::Length)]);
        assert!(matches!(&cut[..], [Piece::Call(_), Piece::End(Finish::Length, _)]), "{cut:?}");
        let parts = [
            text(Channel::ToolCall, CALL),
            text(Channel::ToolCall, "\n{"),
            AnswerPart::Void { index: 1 },
            text(Channel::Answer, "Hi"),
            end(AnswerStop::Complete),
        ];
        let pieces = read_calls(false, parts);
        assert_eq!(pieces[1..], [Piece::Void, said("Hi"), Piece::End(Finish::Stop, USAGE)]);
    }

    #[test]
    fn a_block_of_json_that_calls_what_was_offered_is_a_call() {
        let block = format!("```json\n{}\n```", CALL.replace("END", "end"));
        let letters = block.chars().map(|letter| text(Channel::Answer, &letter.to_string()));
        let pieces = read_calls(false, letters.chain([end(AnswerStop::Complete)]));
        assert!(matches!(&pieces[..], [Piece::Call(_), Piece::End(Finish::ToolCalls, _)]), "{pieces:?}");
    }
}
