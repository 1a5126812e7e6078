//! How many tokens of a prompt go out at a time. A fast GPU gets large chunks; with a slow one a chunk still ends
//! soon, so that progress shows and the answer can be stopped. Results do not depend on the chunk size.

use potluck_plan::{FeedForwardShape, ModelShape, Plan, Work};

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
/// Most bytes of hidden vectors in a frame: as much as a relay carries at once to one receiver.
const FRAME_BYTES: u64 = 4 << 20;

/// Target time of one chunk for each block with experts elsewhere. Other work goes on between blocks, and an answer can be stopped
/// there, so only progress takes longer to show. Longer chunks read each expert for more tokens, and make fewer trips.
const BLOCK_MILLIS: f64 = 500.0;
/// Longest target time of such a chunk. Four are in flight, and a room in which none ends for a minute counts as stalled.
const MAX_CHUNK_MILLIS: f64 = 10_000.0;
/// Most bytes of experts' outputs of a chunk, for each of up to two holders. Of four chunks in flight they are no more than may
/// wait for a receiver, even if one holder has nearly all experts.
const OUTPUT_BYTES: u64 = 8 << 20;

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
    /// Tokens of the next chunk of this model.
    pub fn tokens(self, plan: &Plan, shape: &ModelShape) -> usize {
        let in_a_frame = (FRAME_BYTES / plan.wire.bytes(u64::from(shape.hidden)).max(1)) as usize;
        let routed = plan.stages.iter().map(|stage| stage.remote.len()).sum::<usize>();
        match plan.peers().len() {
            // Each chunk loads nearly all experts again.
            1 if plan.is_on_demand() => Work::PREFILL_TOKENS,
            1 => self.up_to(Work::PREFILL_TOKENS, 1.0),
            _ if routed > 0 => {
                let most = MAX_OF_SEVERAL.min(in_a_frame).min(with_outputs(plan, shape));
                let millis = (BLOCK_MILLIS * routed as f64).min(MAX_CHUNK_MILLIS);
                self.up_to(most, millis / CHUNK_MILLIS)
            }
            _ => self.up_to(MAX_OF_SEVERAL.min(in_a_frame), SHARE_OF_SEVERAL),
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

/// Tokens whose experts' outputs are no more bytes than a chunk may have.
fn with_outputs(plan: &Plan, shape: &ModelShape) -> usize {
    let used = shape.blocks.iter().map(|block| match block.feed_forward {
        FeedForwardShape::Experts { used, .. } => u64::from(used),
        FeedForwardShape::Dense { .. } => 0,
    });
    let a_token = used.max().unwrap_or(0) * plan.expert_wire.bytes(u64::from(shape.hidden));
    (OUTPUT_BYTES * plan.expert_holders().len().clamp(1, 2) as u64 / a_token.max(1)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples;
    use potluck_plan::{BlockIndex, BlockRange, ExpertHolder, PeerId, RemoteExperts, Stage, StageId};

    /// Of the hidden vectors.
    const WIDTH: u32 = 2048;

    /// Blocks with 128 experts, of which a token uses eight.
    fn shape(hidden: u32) -> ModelShape {
        let mut shape = ModelShape { hidden, ..examples::shape(48, 128) };
        for block in &mut shape.blocks {
            if let FeedForwardShape::Experts { used, .. } = &mut block.feed_forward {
                *used = 8;
            }
        }
        shape
    }

    /// One block on each device.
    fn plan(devices: u16) -> Plan {
        let stage = |i| Stage::new(StageId(i), PeerId([i as u8; 16]), BlockRange::new(i, i + 1));
        let stages = (0..devices).map(stage).collect();
        examples::plan(stages)
    }

    #[test]
    fn a_fast_device_is_fed_long_chunks_after_a_few_measurements() {
        let mut size = ChunkSize::default();
        assert_eq!(size.tokens(&plan(1), &shape(WIDTH)), 64);
        size.measured(64, 20.0);
        assert_eq!(size.tokens(&plan(1), &shape(WIDTH)), 256);
        size.measured(256, 30.0);
        assert_eq!(size.tokens(&plan(1), &shape(WIDTH)), Work::PREFILL_TOKENS);
    }

    #[test]
    fn several_fast_devices_get_chunks_that_keep_all_of_them_busy() {
        let mut size = ChunkSize::default();
        size.measured(64, 25.0);
        assert_eq!(
            size.tokens(&plan(3), &shape(WIDTH)),
            128,
            "a chunk takes a fourth of the time that one device may take"
        );
        size.measured(64, 9.0);
        assert_eq!(size.tokens(&plan(3), &shape(WIDTH)), 256);
        size.measured(256, 12.0);
        assert_eq!(size.tokens(&plan(3), &shape(WIDTH)), 256, "a prompt of 512 tokens has two chunks");
        assert_eq!(size.tokens(&plan(3), &shape(8192)), 128, "a frame of 4 MiB has no room for more");
        size.measured(256, 400.0);
        assert_eq!(size.tokens(&plan(3), &shape(WIDTH)), 64, "slow devices and links get short chunks");
    }

    /// Experts of the first `routed` blocks on so many holders.
    fn spread(routed: u16, holders: u8) -> Plan {
        let mut plan = examples::plan(vec![Stage::new(StageId(0), PeerId([0; 16]), BlockRange::new(0, 48))]);
        let on = |holder| vec![ExpertHolder::Peer(PeerId([holder + 1; 16]))];
        let holders: Vec<_> = (0..holders).map(on).collect();
        let remote = |block| RemoteExperts { block: BlockIndex(block), holders: holders.clone() };
        plan.stages[0].remote = (0..routed).map(remote).collect();
        plan
    }

    #[test]
    fn experts_on_other_devices_get_long_chunks_unless_a_block_takes_long() {
        let shape = shape(WIDTH);
        let mut size = ChunkSize::default();
        assert_eq!(size.tokens(&spread(4, 8), &shape), 64, "nothing is known yet");
        size.measured(64, 500.0);
        assert_eq!(size.tokens(&spread(4, 8), &shape), 256, "longer chunks make fewer trips");
        assert_eq!(size.tokens(&spread(1, 8), &shape), 64, "a block took half a second");
        size.measured(64, 4_000.0);
        assert_eq!(size.tokens(&spread(48, 8), &shape), 128, "four chunks in flight come in less than a minute");
        size.measured(64, 60_000.0);
        assert_eq!(size.tokens(&spread(48, 8), &shape), 64);
    }

    #[test]
    fn outputs_of_all_chunks_in_flight_fit_what_may_wait_for_a_receiver() {
        let mut size = ChunkSize::default();
        size.measured(64, 20.0);
        // Eight experts of 2,048 floats are 64 KiB a token.
        let shape = shape(WIDTH);
        assert_eq!(size.tokens(&spread(4, 1), &shape), 128, "one holder has all experts");
        assert_eq!(size.tokens(&spread(4, 2), &shape), 256);
        let halved = Plan { expert_wire: potluck_plan::WireType::F16, ..spread(4, 1) };
        assert_eq!(size.tokens(&halved, &shape), 256);
    }

    #[test]
    fn a_slow_device_keeps_short_chunks_and_a_slowed_one_gets_them_back() {
        let mut size = ChunkSize::default();
        size.measured(64, 2_000.0);
        assert_eq!(size.tokens(&plan(1), &shape(WIDTH)), 64);
        size.measured(64, 1.0);
        size.measured(256, 5_000.0);
        assert_eq!(size.tokens(&plan(1), &shape(WIDTH)), 64);
    }

    #[test]
    fn the_last_chunk_of_a_prompt_is_not_measured() {
        let mut size = ChunkSize::default();
        size.measured(3, 1.0);
        assert_eq!(size.tokens(&plan(1), &shape(WIDTH)), 64);
    }
}
