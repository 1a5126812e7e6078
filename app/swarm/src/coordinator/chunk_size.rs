//! How many tokens of a prompt go out at a time. A fast GPU gets large chunks; with a slow one a chunk still ends
//! soon, so that progress shows and the answer can be stopped. Results do not depend on the chunk size.

use potluck_plan::{Plan, RemoteExperts, WireType, Work};

/// Target time of one chunk.
const CHUNK_MILLIS: f64 = 200.0;
/// Smallest and first chunk; all chunks are multiples of it.
const MIN_TOKENS: usize = 64;
/// One measurement grows chunks by at most this factor.
const GROWTH: usize = 4;
/// Several devices work on several chunks at a time, so each of them takes this share of the target time.
const SHARE_OF_SEVERAL: f64 = 0.25;
/// Largest chunk for several devices: two of a prompt of a few hundred tokens keep two devices busy. On an H200, 256 tokens
/// at a time are read three times as fast as 64, and 512 four times as fast.
const MAX_OF_SEVERAL: usize = 256;
/// With experts elsewhere a chunk makes a round trip a block, so that short ones cost much more a token: they take this share of the target time.
const SHARE_OF_ROUND_TRIPS: f64 = 20.0;
/// Most bytes of hidden vectors in a frame: as much as a relay carries at once to one receiver.
const FRAME_BYTES: u64 = 4 << 20;

/// Tracks the prefill speed of the active plan.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChunkSize {
    /// Tokens that take about the target time.
    fitting: f64,
    /// Longest chunk that may come next.
    longest: usize,
}

impl Default for ChunkSize {
    fn default() -> Self {
        Self { fitting: f64::INFINITY, longest: MIN_TOKENS }
    }
}

impl ChunkSize {
    /// Tokens of the next chunk of a model with hidden vectors of this width.
    pub fn tokens(self, plan: &Plan, hidden: u32) -> usize {
        match plan.peers().len() {
            // Each chunk loads nearly all experts again.
            1 if plan.is_on_demand() => Work::PREFILL_TOKENS,
            1 => self.up_to(Work::PREFILL_TOKENS, 1.0),
            _ => {
                let mut remote = plan.stages.iter().flat_map(|stage| &stage.remote).peekable();
                let has_remote = remote.peek().is_some();
                // A vector for each expert of a longer chunk is more than a holder reads back at once.
                let has_sums = |remote: &RemoteExperts| match plan.expert_wire {
                    WireType::F32 => remote.have_same_first_holder(),
                    _ => remote.have_same_holders(),
                };
                if has_remote && (plan.is_on_demand() || !remote.all(has_sums)) {
                    return MIN_TOKENS;
                }
                let of_experts = if has_remote { plan.expert_wire.bytes(u64::from(hidden)) } else { 0 };
                let in_a_frame = FRAME_BYTES / plan.wire.bytes(u64::from(hidden)).max(of_experts).max(1);
                let share = if has_remote { SHARE_OF_ROUND_TRIPS } else { SHARE_OF_SEVERAL };
                self.up_to(MAX_OF_SEVERAL.min(in_a_frame as usize), share)
            }
        }
    }

    /// So many tokens at most, which take this share of the target time.
    fn up_to(self, most: usize, share: f64) -> usize {
        let tokens = (self.fitting * share).min(self.longest.min(most) as f64) as usize;
        (tokens / MIN_TOKENS * MIN_TOKENS).max(MIN_TOKENS)
    }

    /// `tokens` tokens arrived `millis` after the ones before them.
    pub fn measured(&mut self, tokens: usize, millis: f64) {
        // The last chunk says little: short chunks cost more a token.
        if tokens >= MIN_TOKENS {
            self.fitting = tokens as f64 * CHUNK_MILLIS / millis.max(1.0);
            self.longest = tokens * GROWTH;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples;
    use potluck_plan::{BlockIndex, BlockRange, ExpertHolder, PeerId, Stage, StageId};

    /// Of the hidden vectors.
    const WIDTH: u32 = 2048;

    /// One block on each device.
    fn plan(devices: u16) -> Plan {
        let stage = |i| Stage::new(StageId(i), PeerId([i as u8; 16]), BlockRange::new(i, i + 1));
        let stages = (0..devices).map(stage).collect();
        examples::plan(stages)
    }

    #[test]
    fn a_fast_device_is_fed_long_chunks_after_a_few_measurements() {
        let mut size = ChunkSize::default();
        assert_eq!(size.tokens(&plan(1), WIDTH), 64);
        size.measured(64, 20.0);
        assert_eq!(size.tokens(&plan(1), WIDTH), 256);
        size.measured(256, 30.0);
        assert_eq!(size.tokens(&plan(1), WIDTH), Work::PREFILL_TOKENS);
    }

    #[test]
    fn several_fast_devices_get_chunks_that_keep_all_of_them_busy() {
        let mut size = ChunkSize::default();
        size.measured(64, 25.0);
        assert_eq!(size.tokens(&plan(3), WIDTH), 128, "a chunk takes a fourth of the time that one device may take");
        size.measured(64, 9.0);
        assert_eq!(size.tokens(&plan(3), WIDTH), 256);
        size.measured(256, 12.0);
        assert_eq!(size.tokens(&plan(3), WIDTH), 256, "a prompt of 512 tokens has two chunks");
        assert_eq!(size.tokens(&plan(3), 8192), 128, "a frame of 4 MiB has no room for more");
        size.measured(256, 400.0);
        assert_eq!(size.tokens(&plan(3), WIDTH), 64, "slow devices and links get short chunks");
    }

    #[test]
    fn experts_that_one_device_answers_for_get_long_chunks_and_others_the_shortest() {
        let pooled = |holders: [u8; 2]| {
            let mut plan = plan(2);
            let holders = holders.map(|id| vec![ExpertHolder::Peer(PeerId([id; 16])), ExpertHolder::Own]).to_vec();
            plan.stages[0].remote = vec![RemoteExperts { block: BlockIndex(0), holders }];
            plan
        };
        let mut size = ChunkSize::default();
        size.measured(64, 1_200.0);
        assert_eq!(size.tokens(&pooled([1, 0]), WIDTH), 64, "a vector for each expert comes back");
        assert_eq!(size.tokens(&pooled([1, 1]), WIDTH), 192, "one sum a token comes back");
        size.measured(64, 20.0);
        assert_eq!(size.tokens(&pooled([1, 1]), WIDTH), 256);
        size.measured(64, 10_000.0);
        assert_eq!(size.tokens(&pooled([1, 1]), WIDTH), 64, "progress shows on slow devices, too");
    }

    #[test]
    fn a_slow_device_keeps_short_chunks_and_a_slowed_one_gets_them_back() {
        let mut size = ChunkSize::default();
        size.measured(64, 2_000.0);
        assert_eq!(size.tokens(&plan(1), WIDTH), 64);
        size.measured(64, 1.0);
        size.measured(256, 5_000.0);
        assert_eq!(size.tokens(&plan(1), WIDTH), 64);
    }

    #[test]
    fn the_last_chunk_of_a_prompt_is_not_measured() {
        let mut size = ChunkSize::default();
        size.measured(3, 1.0);
        assert_eq!(size.tokens(&plan(1), WIDTH), 64);
    }
}
