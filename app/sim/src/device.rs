//! Simulated devices: memory, speed, link.

use std::collections::BTreeSet;

use potluck_plan::{Bytes, KernelClass, Task, Then, WeightUnit};
use potluck_protocol::Contribution;

use super::engine::SimModel;
use super::network::Link;
use super::random::Random;

/// Loading from the device's storage is this much faster than downloading.
const CACHE_SPEED: f64 = 10.0;
/// Weight bytes that take [`SimDevice::block_millis`]: a dense block of [`SimModel`].
const BLOCK_BYTES: f64 = 160.0;

/// A peer's device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SimDevice {
    /// Memory budget in bytes; `None`: a guest.
    pub budget: Option<u64>,
    /// Largest buffer that its kernels can bind, in bytes.
    pub binding: u64,
    /// Milliseconds for one decoded token through one dense block of [`SimModel`]; other parts in proportion to their
    /// bytes.
    pub block_millis: f64,
    /// Milliseconds for each further token of a prompt chunk through one block: weights are read once a chunk.
    pub prefill_millis: f64,
    /// Milliseconds of a submit with its readback.
    pub submit_millis: f64,
    /// Compute times vary by up to this share, in both directions.
    pub noise: f64,
    /// It claims to be this many times as fast as it is.
    pub boast: f64,
    /// Its GPU samples other tokens ahead than the coordinator does.
    pub samples_otherwise: bool,
    /// Slowdown in use, compared with when it was timed: other programs run, and it heats up.
    pub in_use: f64,
    /// The GPU that it shares with other devices of this number: their work waits for each other, and while they are timed all
    /// of them are.
    pub gpu: Option<u8>,
    /// Bytes a second of its downloads.
    pub download: f64,
    /// Bytes its engine needs beyond the model's sizes.
    pub padding: u64,
    /// Answers to expert calls come later by this.
    pub hesitation: Option<LogNormal>,
    /// Its link.
    pub link: Link,
    /// What it says that its GPU is.
    pub adapter: &'static str,
    /// It came by the room's link or an invite; otherwise the host has to let it in.
    pub invited: bool,
    /// The invite that it came by, one of [`World::give_out_invites`](crate::World::give_out_invites); none: by the link.
    pub invite: Option<u8>,
}

/// A log-normal delay in milliseconds: a long tail, as links and busy devices have (moex.txt 4.1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogNormal {
    /// Half of all delays are shorter.
    pub median: f64,
    /// Standard deviation of the logarithm.
    pub sigma: f64,
}

impl LogNormal {
    pub(crate) fn draw(self, task: &Task, random: &mut Random) -> f64 {
        if matches!(task, Task::Experts { .. }) { self.sample(random) } else { 0.0 }
    }

    /// Box and Muller's method.
    fn sample(self, random: &mut Random) -> f64 {
        let (radius, angle) = ((-2.0 * (1.0 - random.unit()).ln()).sqrt(), std::f64::consts::TAU * random.unit());
        self.median * (self.sigma * radius * angle.cos()).exp()
    }
}

impl Default for SimDevice {
    /// A guest with a fast device and a good link.
    fn default() -> Self {
        Self {
            budget: None,
            binding: u64::MAX,
            block_millis: 1.0,
            prefill_millis: 0.25,
            submit_millis: 1.0,
            noise: 0.0,
            boast: 1.0,
            samples_otherwise: false,
            in_use: 1.0,
            gpu: None,
            download: 5_000.0,
            padding: 0,
            hesitation: None,
            link: Link { latency: 5.0, jitter: 2.5, ..Link::default() },
            invited: true,
            invite: None,
            adapter: "simulated",
        }
    }
}

impl SimDevice {
    /// A device that contributes this many bytes.
    pub fn with_budget(budget: u64) -> Self {
        Self { budget: Some(budget), ..Self::default() }
    }

    /// The same device, `speed` times as fast.
    #[must_use]
    pub fn at_speed(self, speed: f64) -> Self {
        Self { block_millis: self.block_millis / speed, prefill_millis: self.prefill_millis / speed, ..self }
    }

    /// The same device behind another link.
    #[must_use]
    pub fn behind(self, link: Link) -> Self {
        Self { link, ..self }
    }

    /// The contribution it announces.
    pub(crate) fn contribution(&self) -> Option<Contribution> {
        self.budget.map(|budget| Contribution {
            budget: Bytes(budget),
            binding: Bytes(self.binding),
            bandwidth: BLOCK_BYTES / self.block_millis * 1e3 * self.boast,
            sync_millis: self.submit_millis / self.boast,
        })
    }

    /// Milliseconds from submit to result of one piece of work on an idle device, before noise.
    pub(crate) fn millis(&self, model: &SimModel, task: &Task) -> f64 {
        let shape = model.shape();
        let blocks = |bytes: Bytes| bytes.0 as f64 / BLOCK_BYTES;
        let (tokens, class, read) = match task {
            Task::Forward { batch, class, blocks: range, then, .. } => {
                let active = |block: u16| shape.blocks[usize::from(block)].active_weights();
                let range: f64 = range.iter().map(|block| blocks(active(block.0))).sum();
                let end = match then {
                    Then::LmHead(_) => blocks(shape.lm_head),
                    Then::Route(block) => blocks(shape.blocks[usize::from(block.0)].token_mixer),
                    Then::Hidden | Then::Nothing => 0.0,
                };
                (batch.len(), *class, range + end)
            }
            Task::Continue { steps, .. } => {
                let all: f64 = shape.blocks.iter().map(|block| blocks(block.active_weights())).sum();
                (1, KernelClass::Decode, f64::from(*steps) * (all + blocks(shape.lm_head)))
            }
            Task::Experts { class, experts, block, .. } => {
                let expert = shape.blocks[usize::from(block.0)].expert_bytes();
                let max = experts.iter().map(Vec::len).max().unwrap_or(0);
                (experts.len(), *class, blocks(expert) * max as f64)
            }
        };
        let further = tokens.saturating_sub(1) as f64;
        let further = match class {
            KernelClass::Decode => further * self.block_millis * 0.25,
            KernelClass::Prefill => further * self.prefill_millis,
        };
        self.submit_millis + read * (self.block_millis + further)
    }

    /// Milliseconds to load units onto the GPU; those on it already take none.
    pub(crate) fn load_millis(
        &self,
        model: &SimModel,
        units: &[WeightUnit],
        resident: &BTreeSet<WeightUnit>,
        cached: &BTreeSet<WeightUnit>,
    ) -> f64 {
        let shape = model.shape();
        let wanted = units.iter().filter(|unit| !resident.contains(*unit));
        let seconds = wanted.map(|unit| {
            let rate = if cached.contains(unit) { self.download * CACHE_SPEED } else { self.download };
            shape.unit_bytes(*unit).0 as f64 / rate
        });
        seconds.sum::<f64>() * 1e3
    }
}
