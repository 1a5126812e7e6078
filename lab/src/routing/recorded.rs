//! Predictions that were recorded with a trace: a shadow model's routers, or the next router's scores.

use potluck_plan::{BlockIndex, ExpertId, Position};

use potluck_predict::{Guess, Predictor};

use super::Trace;

/// Repeats a channel of a trace, sequence by sequence.
#[derive(Clone, Debug)]
pub struct Recorded<'a> {
    trace: &'a Trace,
    channel: usize,
    sequence: Option<usize>,
}

impl<'a> Recorded<'a> {
    /// The channel with this name, if the trace has it. Call [`Predictor::restart`] before each sequence.
    pub fn new(trace: &'a Trace, name: &str) -> Option<Self> {
        let channel = trace.channels.iter().position(|channel| channel == name)?;
        Some(Self { trace, channel, sequence: None })
    }
}

impl Predictor for Recorded<'_> {
    fn name(&self) -> String {
        self.trace.channels[self.channel].clone()
    }

    fn predict(&self, position: Position, block: BlockIndex) -> Vec<Guess> {
        let sequence = self.sequence.and_then(|sequence| self.trace.sequences.get(sequence));
        let chosen = sequence.and_then(|sequence| sequence.chosen(self.trace.shape, self.channel, position, block));
        let guess = |expert: &ExpertId| Guess { expert: *expert, confidence: 1.0 };
        chosen.unwrap_or_default().iter().map(guess).collect()
    }

    fn observe(&mut self, _: Position, _: BlockIndex, _: &[ExpertId]) {}

    fn restart(&mut self) {
        self.sequence = Some(self.sequence.map_or(0, |sequence| sequence + 1));
    }
}
