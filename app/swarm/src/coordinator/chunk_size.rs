//! How many tokens of a prompt go out at a time. A fast GPU gets large chunks; with a slow one a chunk still ends
//! soon, so that progress shows and the answer can be stopped. Results do not depend on the chunk size.

use potluck_plan::{Plan, Work};

/// Target time of one chunk.
const CHUNK_MILLIS: f64 = 200.0;
/// Smallest and first chunk; all chunks are multiples of it.
const MIN_TOKENS: usize = 64;
/// One measurement grows chunks by at most this factor.
const GROWTH: usize = 4;

/// Tracks the prefill speed of the active plan.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChunkSize(usize);

impl Default for ChunkSize {
    fn default() -> Self {
        Self(MIN_TOKENS)
    }
}

impl ChunkSize {
    /// Tokens of the next chunk. Several devices work on several chunks at a time and their frames should stay short,
    /// so they always get the smallest chunk.
    pub fn tokens(self, plan: &Plan) -> usize {
        match plan.peers().len() {
            // Each chunk loads nearly all experts again.
            1 if plan.is_on_demand() => Work::PREFILL_TOKENS,
            1 => self.0,
            _ => MIN_TOKENS,
        }
    }

    /// `tokens` tokens arrived `millis` after the ones before them.
    pub fn measured(&mut self, tokens: usize, millis: f64) {
        // The last chunk says little: short chunks cost more a token.
        if tokens < MIN_TOKENS {
            return;
        }
        let fitting = tokens as f64 * CHUNK_MILLIS / millis.max(1.0);
        let max = (self.0 * GROWTH).min(Work::PREFILL_TOKENS);
        self.0 = (fitting.min(max as f64) as usize / MIN_TOKENS * MIN_TOKENS).max(MIN_TOKENS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use potluck_plan::{Arithmetic, BlockRange, KvCacheType, ModelId, PeerId, PlanEpoch, Stage, StageId, WireType};

    /// One block on each device.
    fn plan(devices: u16) -> Plan {
        let stage = |i| Stage::new(StageId(i), PeerId([i as u8; 16]), BlockRange::new(i, i + 1));
        let stages = (0..devices).map(stage).collect();
        Plan {
            epoch: PlanEpoch(1),
            model: ModelId([0; 32]),
            stages,
            pools: Vec::new(),
            wire: WireType::F32,
            expert_wire: WireType::F32,
            arithmetic: Arithmetic::Exact,
            context: 64,
            kv_cache: KvCacheType::F32,
        }
    }

    #[test]
    fn a_fast_device_is_fed_long_chunks_after_a_few_measurements() {
        let mut size = ChunkSize::default();
        assert_eq!(size.tokens(&plan(1)), 64);
        size.measured(64, 20.0);
        assert_eq!(size.tokens(&plan(1)), 256);
        size.measured(256, 30.0);
        assert_eq!(size.tokens(&plan(1)), Work::PREFILL_TOKENS);
        assert_eq!(size.tokens(&plan(2)), 64, "two devices work on two chunks at a time");
    }

    #[test]
    fn a_slow_device_keeps_short_chunks_and_a_slowed_one_gets_them_back() {
        let mut size = ChunkSize::default();
        size.measured(64, 2_000.0);
        assert_eq!(size.tokens(&plan(1)), 64);
        size.measured(64, 1.0);
        size.measured(256, 5_000.0);
        assert_eq!(size.tokens(&plan(1)), 64);
    }

    #[test]
    fn the_last_chunk_of_a_prompt_is_not_measured() {
        let mut size = ChunkSize::default();
        size.measured(3, 1.0);
        assert_eq!(size.tokens(&plan(1)), 64);
    }
}
