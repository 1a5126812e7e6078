//! How long tokens wait for experts on other devices.

use std::collections::BTreeMap;

use potluck_plan::{BlockIndex, Millis};
use potluck_protocol::{ExpertPhase, ExpertWaits};

use super::gather::Gather;
use crate::trace::ExpertWait;

/// The mean is one of so many tokens, the newest counting most: a few seconds of decoding.
const TOKENS: u32 = 64;

/// Means over the decoded tokens that passed each block.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    blocks: BTreeMap<BlockIndex, Wait>,
    /// Milliseconds of the own engine.
    own: Mean,
    /// By the number of devices that were asked.
    phases: BTreeMap<u16, Phase>,
    /// For the recording.
    notes: Vec<ExpertWait>,
}

/// Means over all batches.
#[derive(Clone, Copy, Debug, Default)]
struct Phase {
    passes: u32,
    /// Milliseconds.
    millis: f64,
}

/// How a batch of decoded tokens passed a block.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Passed {
    /// Milliseconds for which only others were waited for; none if nobody else was asked.
    pub waited: Option<f64>,
    /// Milliseconds of the engine whose answer came last.
    pub engine: f64,
    /// Bytes of vectors in calls and answers, for each token.
    pub bytes: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Wait {
    /// Share of tokens for which others were asked.
    trips: Mean,
    /// Milliseconds.
    millis: Mean,
    /// Milliseconds.
    engine: Mean,
    bytes: Mean,
}

/// A mean over about [`TOKENS`] values.
#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    values: u32,
    mean: f64,
}

impl Mean {
    fn add(&mut self, value: f64) {
        self.values = (self.values + 1).min(TOKENS);
        self.mean += (value - self.mean) / f64::from(self.values);
    }
}

impl Waits {
    /// A batch passed a block.
    pub fn passed(&mut self, block: BlockIndex, Passed { waited, engine, bytes }: Passed) {
        let wait = self.blocks.entry(block).or_default();
        let millis = waited.unwrap_or(0.0);
        wait.trips.add(f64::from(u8::from(waited.is_some())));
        wait.millis.add(millis);
        wait.engine.add(engine.min(millis));
        wait.bytes.add(bytes);
    }

    /// A decoded token leaves its stage, on which the own engine has spent so many milliseconds.
    pub fn left(&mut self, millis: f64) {
        self.own.add(millis);
    }

    /// A batch's experts have computed. `asked`: other devices that were asked at first; `millis`: from the router's choice to
    /// the last vector.
    pub fn gathered(&mut self, asked: u16, millis: f64) {
        if asked > 0 {
            let phase = self.phases.entry(asked).or_default();
            phase.passes = phase.passes.saturating_add(1);
            phase.millis += (millis - phase.millis) / f64::from(phase.passes);
        }
    }

    /// Has the recording say how a block's experts came: in which time, how long the last engine took, who was asked at first,
    /// and what that and all later calls carried.
    pub fn note(&mut self, gather: &Gather, engine: f64, now: Millis) {
        if gather.first_asked > 0 {
            let Gather { block, began, pattern, first_bytes, asked_bytes, .. } = gather;
            self.notes.push(ExpertWait {
                block: *block,
                millis: now.0 - began.0,
                engine_millis: engine,
                bytes: *asked_bytes,
                first_bytes: *first_bytes,
                asked: pattern.clone(),
            });
        }
    }

    /// What there is to tell since the last time.
    pub fn take_notes(&mut self) -> Vec<ExpertWait> {
        std::mem::take(&mut self.notes)
    }

    /// All batches for which others were asked, by how many.
    pub fn phases(&self) -> Vec<ExpertPhase> {
        let phase =
            |(asked, phase): (&u16, &Phase)| ExpertPhase { asked: *asked, passes: phase.passes, millis: phase.millis };
        self.phases.iter().map(phase).collect()
    }

    /// What a token spends on all blocks.
    pub fn of_token(&self) -> ExpertWaits {
        let sum = |of: fn(&Wait) -> Mean| self.blocks.values().map(|wait| of(wait).mean).sum();
        ExpertWaits {
            trips: sum(|wait| wait.trips),
            millis: sum(|wait| wait.millis),
            engine_millis: sum(|wait| wait.engine),
            own_millis: self.own.mean,
            bytes: sum(|wait| wait.bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_waits_for_each_block_that_asks_others() {
        let mut waits = Waits::default();
        assert_eq!(waits.of_token(), ExpertWaits::default());
        for _ in 0..4 {
            waits.passed(BlockIndex(1), Passed { waited: Some(2.0), engine: 0.5, bytes: 100.0 });
            waits.passed(BlockIndex(2), Passed { waited: Some(4.0), engine: 9.0, bytes: 200.0 });
            waits.passed(BlockIndex(2), Passed::default());
            waits.left(3.0);
        }
        let of_token = ExpertWaits { trips: 1.5, millis: 4.0, engine_millis: 2.5, own_millis: 3.0, bytes: 200.0 };
        assert_eq!(
            waits.of_token(),
            of_token,
            "every second token asks for block 2; no engine takes longer than is waited"
        );
    }

    #[test]
    fn the_time_of_experts_is_kept_by_the_number_of_devices_asked() {
        let mut waits = Waits::default();
        for (asked, millis) in [(1, 20.0), (2, 30.0), (1, 22.0), (0, 5.0), (2, 60.0)] {
            waits.gathered(asked, millis);
        }
        let phase = |asked, millis| ExpertPhase { asked, passes: 2, millis };
        assert_eq!(waits.phases(), [phase(1, 21.0), phase(2, 45.0)]);
    }

    #[test]
    fn the_newest_tokens_count_most() {
        let mut waits = Waits::default();
        let waited = |millis| Passed { waited: Some(millis), ..Passed::default() };
        (0..1_000).for_each(|_| waits.passed(BlockIndex(0), waited(50.0)));
        (0..400).for_each(|_| waits.passed(BlockIndex(0), waited(1.0)));
        assert!(waits.of_token().millis < 1.2, "{:?}", waits.of_token());
    }
}
