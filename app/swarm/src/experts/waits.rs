//! How long tokens wait for experts on other devices.

use std::collections::BTreeMap;

use potluck_plan::BlockIndex;
use potluck_protocol::{ExpertPhase, ExpertWaits};

/// The mean is one of so many tokens, the newest counting most: a few seconds of decoding.
const TOKENS: u32 = 64;

/// Means over the decoded tokens that passed each block.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    blocks: BTreeMap<BlockIndex, Wait>,
    /// By the number of devices that were asked.
    phases: BTreeMap<u16, Phase>,
}

/// Means over all batches.
#[derive(Clone, Copy, Debug, Default)]
struct Phase {
    passes: u32,
    /// Milliseconds.
    millis: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Wait {
    tokens: u32,
    /// Share of tokens for which others were asked.
    trips: f64,
    /// Milliseconds.
    millis: f64,
}

impl Waits {
    /// A batch passed a block. `millis`: how long only others were waited for; none if nobody else was asked.
    pub fn passed(&mut self, block: BlockIndex, millis: Option<f64>) {
        let wait = self.blocks.entry(block).or_default();
        wait.tokens = (wait.tokens + 1).min(TOKENS);
        let weight = 1.0 / f64::from(wait.tokens);
        wait.trips += weight * (f64::from(u8::from(millis.is_some())) - wait.trips);
        wait.millis += weight * (millis.unwrap_or(0.0) - wait.millis);
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

    /// All batches for which others were asked, by how many.
    pub fn phases(&self) -> Vec<ExpertPhase> {
        let phase =
            |(asked, phase): (&u16, &Phase)| ExpertPhase { asked: *asked, passes: phase.passes, millis: phase.millis };
        self.phases.iter().map(phase).collect()
    }

    /// What a token spends on all blocks.
    pub fn of_token(&self) -> ExpertWaits {
        let sum = |of: fn(&Wait) -> f64| self.blocks.values().map(of).sum();
        ExpertWaits { trips: sum(|wait| wait.trips), millis: sum(|wait| wait.millis) }
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
            waits.passed(BlockIndex(1), Some(2.0));
            waits.passed(BlockIndex(2), Some(4.0));
            waits.passed(BlockIndex(2), None);
        }
        assert_eq!(waits.of_token(), ExpertWaits { trips: 1.5, millis: 4.0 }, "every second token asks for block 2");
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
        (0..1_000).for_each(|_| waits.passed(BlockIndex(0), Some(50.0)));
        (0..400).for_each(|_| waits.passed(BlockIndex(0), Some(1.0)));
        assert!(waits.of_token().millis < 1.2, "{:?}", waits.of_token());
    }
}
