//! What was sent to an asker, kept so that lost pieces can be sent again.

use potluck_plan::PeerId;
use potluck_protocol::{AnswerPart, AnswerStop, Frame, RequestId, Timings};

use crate::event_context::EventContext;

pub(super) struct Transcript {
    pub asker: PeerId,
    pub request: RequestId,
    /// Goes before the first piece: what of the answer was in the prompt.
    opening: String,
    pieces: Vec<(String, Vec<u32>)>,
    end: Option<(AnswerStop, Timings)>,
}

impl Transcript {
    pub fn new(asker: PeerId, request: RequestId) -> Self {
        Self { asker, request, opening: String::new(), pieces: Vec::new(), end: None }
    }

    /// The same of an answer that begins with this.
    pub fn opened(self, opening: String) -> Self {
        Self { opening, ..self }
    }

    pub fn is(&self, asker: PeerId, request: RequestId) -> bool {
        self.asker == asker && self.request == request
    }

    pub fn text(&mut self, delta: String, tokens: Vec<u32>, cx: &mut EventContext) {
        let delta = std::mem::take(&mut self.opening) + &delta;
        self.pieces.push((delta, tokens));
        self.send_piece(self.pieces.len() - 1, cx);
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

    fn send_piece(&self, index: usize, cx: &mut EventContext) {
        if let Some((delta, tokens)) = self.pieces.get(index) {
            self.send(AnswerPart::Text { index: index as u32, delta: delta.clone(), tokens: tokens.clone() }, cx);
        }
    }

    fn send_end(&self, cx: &mut EventContext) {
        if let Some((stop, timings)) = &self.end {
            let pieces = self.pieces.len() as u32;
            self.send(AnswerPart::End { pieces, stop: stop.clone(), timings: *timings }, cx);
        }
    }
}
