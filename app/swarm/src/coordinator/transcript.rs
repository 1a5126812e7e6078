//! What was sent to an asker, kept so that lost pieces can be sent again.

use potluck_plan::{Channel, ChannelText, PeerId};
use potluck_protocol::{AnswerPart, AnswerStop, Frame, RequestId, Timings, TokenLogprobs};

use crate::event_context::EventContext;

/// Text of one channel, and the tokens behind it.
struct Piece {
    channel: Channel,
    delta: String,
    tokens: Vec<u32>,
    /// Of these, if they are wanted.
    logprobs: Vec<TokenLogprobs>,
}

impl Piece {
    fn new(channel: Channel, delta: String) -> Self {
        Self { channel, delta, tokens: Vec::new(), logprobs: Vec::new() }
    }
}

/// What some tokens of an answer say.
#[derive(Default)]
pub(super) struct Pieces(Vec<Piece>);

impl Pieces {
    /// The end of an answer.
    pub fn rest(texts: Vec<ChannelText>) -> Self {
        let mut pieces = Self::default();
        texts.into_iter().for_each(|text| pieces.add(text));
        pieces
    }

    /// A token of this channel, and what is complete with it. Every token is in a piece, with or without text.
    pub fn push(&mut self, token: u32, channel: Channel, logprobs: Option<TokenLogprobs>, texts: Vec<ChannelText>) {
        if self.0.last().is_none_or(|last| last.channel != channel) {
            self.0.push(Piece::new(channel, String::new()));
        }
        if let Some(last) = self.0.last_mut() {
            last.tokens.push(token);
            last.logprobs.extend(logprobs);
        }
        texts.into_iter().for_each(|text| self.add(text));
    }

    fn add(&mut self, ChannelText { channel, text }: ChannelText) {
        match self.0.last_mut() {
            Some(last) if last.channel == channel || last.delta.is_empty() => {
                last.channel = channel;
                last.delta += &text;
            }
            _ => self.0.push(Piece::new(channel, text)),
        }
    }
}

/// What the asker was told, in order.
enum Sent {
    Piece(Piece),
    /// What is before it does not count.
    Void,
}

pub(super) struct Transcript {
    pub asker: PeerId,
    pub request: RequestId,
    pieces: Vec<Sent>,
    end: Option<(AnswerStop, Timings)>,
}

impl Transcript {
    pub fn new(asker: PeerId, request: RequestId) -> Self {
        Self { asker, request, pieces: Vec::new(), end: None }
    }

    /// What another host sent of an answer.
    pub fn inherited(asker: PeerId, request: RequestId, parts: Vec<AnswerPart>) -> Self {
        let mut transcript = Self::new(asker, request);
        for part in parts {
            match part {
                AnswerPart::Text { channel, delta, tokens, logprobs, .. } => {
                    transcript.pieces.push(Sent::Piece(Piece { channel, delta, tokens, logprobs }));
                }
                AnswerPart::Void { .. } => transcript.pieces.push(Sent::Void),
                AnswerPart::End { stop, timings, .. } => transcript.end = Some((stop, timings)),
                _ => {}
            }
        }
        transcript
    }

    /// Pieces so far.
    pub fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// The asker has so many pieces, which another host sent. Those that are not known here have these tokens.
    pub fn sent_elsewhere(&mut self, pieces: usize, channel: Channel, mut tokens: Vec<u32>) {
        while self.pieces.len() < pieces {
            let (delta, tokens, logprobs) = (String::new(), std::mem::take(&mut tokens), Vec::new());
            self.pieces.push(Sent::Piece(Piece { channel, delta, tokens, logprobs }));
        }
    }

    /// What was sent after so many parts: pieces, and at last the end.
    pub fn parts_from(&self, known: usize) -> Vec<AnswerPart> {
        let pieces = (known..self.pieces.len()).filter_map(|index| self.part(index));
        pieces.chain(self.end_part().filter(|_| known <= self.pieces.len())).collect()
    }

    /// Log-probabilities in it.
    pub fn logprobs(&self) -> usize {
        let of = |sent: &Sent| match sent {
            Sent::Piece(piece) => piece.logprobs.iter().map(|of_token| 1 + of_token.top.len()).sum(),
            Sent::Void => 0,
        };
        self.pieces.iter().map(of).sum()
    }

    pub fn is(&self, asker: PeerId, request: RequestId) -> bool {
        self.asker == asker && self.request == request
    }

    pub fn text(&mut self, Pieces(pieces): Pieces, cx: &mut EventContext) {
        let from = self.pieces.len();
        self.pieces.extend(pieces.into_iter().map(Sent::Piece));
        (from..self.pieces.len()).for_each(|index| self.send_piece(index, cx));
    }

    /// What was written so far does not count any more.
    pub fn void(&mut self, cx: &mut EventContext) {
        if !self.pieces.is_empty() {
            self.pieces.push(Sent::Void);
            self.send_piece(self.pieces.len() - 1, cx);
        }
    }

    pub fn end(&mut self, stop: AnswerStop, timings: Timings, cx: &mut EventContext) {
        self.end = Some((stop, timings));
        self.send_end(cx);
    }

    /// Sends a part that need not be kept.
    pub fn send(&self, part: AnswerPart, cx: &mut EventContext) {
        cx.out.send(self.asker, Frame::Answer(self.request, part));
    }

    pub fn send_from(&self, piece: u32, cx: &mut EventContext) {
        (piece as usize..self.pieces.len()).for_each(|index| self.send_piece(index, cx));
        self.send_end(cx);
    }

    fn part(&self, index: usize) -> Option<AnswerPart> {
        let number = index as u32;
        Some(match self.pieces.get(index)? {
            Sent::Piece(Piece { channel, delta, tokens, logprobs }) => {
                let (delta, tokens, logprobs) = (delta.clone(), tokens.clone(), logprobs.clone());
                AnswerPart::Text { index: number, channel: *channel, delta, tokens, logprobs }
            }
            Sent::Void => AnswerPart::Void { index: number },
        })
    }

    fn end_part(&self) -> Option<AnswerPart> {
        let (stop, timings) = self.end.as_ref()?;
        let pieces = self.pieces.len() as u32;
        Some(AnswerPart::End { pieces, stop: stop.clone(), timings: *timings })
    }

    fn send_piece(&self, index: usize, cx: &mut EventContext) {
        if let Some(part) = self.part(index) {
            self.send(part, cx);
        }
    }

    fn send_end(&self, cx: &mut EventContext) {
        if let Some(part) = self.end_part() {
            self.send(part, cx);
        }
    }
}
