//! The planner's input: a model's layers, the devices that contribute, the network between them, and what is wanted.

use std::collections::BTreeSet;

use potluck_plan::{
    Arithmetic, BlockIndex, BlockRange, Bytes, Ends, Hedging, ModelShape, PeerId, PlanEpoch, Sharing, WeightUnit,
    WireType,
};

use crate::{Layers, Links};

/// The speed of a device, in the units of [`crate::Layer`]'s costs per millisecond.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed {
    /// Decode: bytes of weights read per millisecond.
    pub decode: f64,
    /// Prefill: bytes of weights times tokens per millisecond; the tokens of a chunk share one read.
    pub prefill: f64,
}

/// A device's churn history and visibility. Of two plans of equal cost the one on more reliable devices wins.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Presence {
    /// Its tab is hidden, so the browser may throttle it.
    pub hidden: bool,
    /// How often it left this room recently. Each departure makes it count a little slower.
    pub departures: u32,
}

/// A peer that contributes its GPU.
#[derive(Clone, Debug, PartialEq)]
pub struct Device {
    /// Who.
    pub peer: PeerId,
    /// Its memory budget: bytes of GPU memory it contributes.
    pub budget: Bytes,
    /// Its largest storage buffer binding, bytes.
    pub binding: Bytes,
    /// Its speed, measured.
    pub speed: Speed,
    /// Milliseconds per piece of work besides its layers, one readback included (the paper's session overhead).
    pub session_millis: f64,
    /// Milliseconds of each further submit with its readback (a block whose experts are elsewhere needs one).
    pub sync_millis: f64,
    /// Milliseconds of its node for each device beyond the first that it asks for experts of a block: to encode, seal, open and upload.
    pub ask_millis: f64,
    /// How much slower its work gets after a pause, because an idle GPU lowers its clock: points (milliseconds of
    /// pause, factor) with ascending milliseconds; the factor is 1 without a pause.
    pub pauses: Vec<(f64, f64)>,
    /// Its download rate for weights, bytes per millisecond.
    pub download: f64,
    /// The rate at which it loads experts on demand, bytes per millisecond, wherever they lie.
    pub storage: f64,
    /// Blocks that are resident on its GPU already.
    pub holds: BTreeSet<BlockIndex>,
    /// Blocks of its stages in the active plan.
    pub active: BTreeSet<BlockIndex>,
    /// Units that are in its storage already.
    pub cached: BTreeSet<WeightUnit>,
    /// Its churn history.
    pub presence: Presence,
    /// It may hold experts, and nothing else: the host keeps the rest of its file for itself.
    pub experts_only: bool,
}

impl Speed {
    /// Assumed ratio of prefill to decode speed before it is measured: tokens that share one read of the weights until
    /// arithmetic is the limit.
    pub const PREFILL_GAIN: f64 = 8.0;
}

impl Device {
    /// Assumed download rate before it is measured, bytes per millisecond: 10 MB/s.
    const DOWNLOAD: f64 = 10e3;
    /// Assumed rate from its cache, or from a file of its own, to the GPU before it is measured, bytes per millisecond: 500 MB/s.
    const STORAGE: f64 = 500e3;

    /// A device of which only the memory budget, the memory bandwidth (bytes per second) and the cost of a readback are
    /// known.
    pub fn declared(peer: PeerId, budget: Bytes, bandwidth: f64, sync_millis: f64) -> Self {
        let decode = bandwidth / 1e3;
        Self {
            peer,
            budget,
            binding: Bytes(u64::MAX),
            speed: Speed { decode, prefill: decode * Speed::PREFILL_GAIN },
            session_millis: sync_millis,
            sync_millis,
            ask_millis: 0.0,
            pauses: Vec::new(),
            download: Self::DOWNLOAD,
            storage: Self::STORAGE,
            holds: BTreeSet::new(),
            active: BTreeSet::new(),
            cached: BTreeSet::new(),
            presence: Presence::default(),
            experts_only: false,
        }
    }
}

/// Bounds of the factor of a pause.
const PAUSE_FACTORS: (f64, f64) = (1.0, 20.0);

impl Device {
    /// How much slower its work is after a pause: linear interpolation between the points, constant beyond the last.
    /// Never decreases with the pause.
    pub fn pause_factor(&self, millis: f64) -> f64 {
        pause_factor(&self.pauses, millis)
    }
}

/// See [`Device::pause_factor`].
pub(crate) fn pause_factor(pauses: &[(f64, f64)], millis: f64) -> f64 {
    let mut before = (0.0, PAUSE_FACTORS.0);
    for (at, factor) in sensible(pauses) {
        if millis < at {
            let share = ((millis - before.0) / (at - before.0)).max(0.0);
            return before.1 + share * (factor - before.1);
        }
        before = (at, factor);
    }
    before.1
}

/// Milliseconds that a device needs for `busy` milliseconds of work per token, if a token takes `token` milliseconds
/// and the device idles for the rest: work slows down with the pause, and longer work leaves a shorter pause.
pub(crate) fn paused_millis(pauses: &[(f64, f64)], busy: f64, token: f64) -> f64 {
    let mut before = (0.0, PAUSE_FACTORS.0);
    for (at, factor) in sensible(pauses) {
        // Work after a pause this long would exceed the token, so the pause is shorter: solve on this piece.
        if busy * factor + at >= token {
            let slope = busy * (factor - before.1) / (at - before.0);
            let pause = (token - busy * before.1 + slope * before.0) / (1.0 + slope);
            return if pause > 0.0 { token - pause } else { busy };
        }
        before = (at, factor);
    }
    busy * before.1
}

/// The points with ascending milliseconds; factors are made monotonic.
fn sensible(pauses: &[(f64, f64)]) -> impl Iterator<Item = (f64, f64)> {
    let mut before = (0.0, PAUSE_FACTORS.0);
    pauses.iter().filter_map(move |&(at, factor)| {
        let grows = at > before.0 && at.is_finite() && factor.is_finite();
        grows.then(|| {
            before = (at, factor.clamp(before.1, PAUSE_FACTORS.1));
            before
        })
    })
}

/// The search's budget, in steps instead of time, so that the same input gives the same plan on every device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Steps; one relaxes one cell of the dynamic program (a few nanoseconds).
    pub steps: u64,
    /// Seed of simulated annealing.
    pub seed: u64,
}

impl Default for Effort {
    /// About 40 ms in a browser.
    fn default() -> Self {
        Self { steps: 4_000_000, seed: 1 }
    }
}

/// The input of the planner.
#[derive(Clone, Debug)]
pub struct Room<'a> {
    /// The model's sizes.
    pub shape: &'a ModelShape,
    /// The model's layers: bytes and costs.
    pub layers: &'a Layers,
    /// All devices that contribute, in any order.
    pub devices: &'a [Device],
    /// Latency and bandwidth between them.
    pub links: &'a Links,
    /// The peer that holds the token log; it need not be among the devices.
    pub coordinator: PeerId,
    /// How work is shared.
    pub sharing: Sharing,
    /// Where the ends of the model may be.
    pub ends: Ends,
    /// How many holders every pooled expert shall have, where memory allows.
    pub replicas: u8,
    /// When more than one holder is asked for an expert.
    pub hedging: Hedging,
    /// Positions that each stage reserves in its KV cache.
    pub context: u32,
    /// Bytes that every working device needs besides weights and KV cache: scratch, staging, parameters.
    pub overhead: Bytes,
    /// Number format of hidden vectors between stages.
    pub wire: WireType,
    /// Number format of vectors to and from holders of experts.
    pub expert_wire: WireType,
    /// How every stage and every holder of experts computes products.
    pub arithmetic: Arithmetic,
    /// Epoch of the plan to make.
    pub epoch: PlanEpoch,
    /// The search's budget.
    pub effort: Effort,
}

impl Room<'_> {
    /// True if the KV cache of each of these blocks fits one binding of the device.
    pub fn shows(&self, device: &Device, blocks: BlockRange) -> bool {
        let layers = self.layers.iter().skip(usize::from(blocks.start) + 1);
        layers.take(usize::from(blocks.end - blocks.start)).all(|layer| layer.buffer <= device.binding)
    }

    /// Bytes that the model takes if so many devices share it.
    pub fn needed(&self, devices: usize) -> Bytes {
        let overhead = Bytes(self.overhead.0.saturating_mul(devices.max(1) as u64));
        self.layers.memory(self.layers.all()).saturating_add(overhead)
    }

    /// True if a stage may begin after the first `at` layers of the model.
    pub(crate) fn may_cut_at(&self, at: usize) -> bool {
        // Where the chain begins and ends is not a matter of the blocks.
        let block = at.checked_sub(1).filter(|&block| (1..self.shape.blocks.len()).contains(&block));
        block.is_none_or(|block| self.shape.may_cut_before(BlockIndex(block as u16)))
    }

    /// The devices that may have a stage.
    pub(crate) fn stage_devices(&self) -> impl Iterator<Item = &Device> {
        self.devices.iter().filter(|device| !device.experts_only)
    }

    /// A device may have all blocks.
    pub(crate) fn may_have_all(&self, device: &Device) -> bool {
        !device.experts_only && (self.ends == Ends::Anywhere || device.peer == self.coordinator)
    }

    /// The devices that may have all blocks.
    pub(crate) fn whole_devices(&self) -> impl Iterator<Item = &Device> {
        self.devices.iter().filter(|device| self.may_have_all(device))
    }

    /// The experts of a block stay with its stage: it is an end of the model, and the ends stay on the host.
    pub(crate) fn keeps_experts(&self, block: BlockIndex) -> bool {
        let last = self.shape.blocks.len().saturating_sub(1);
        self.ends == Ends::OnHost && (block.0 == 0 || usize::from(block.0) == last)
    }

    /// Some devices may hold experts only.
    pub(crate) fn is_protected(&self) -> bool {
        self.devices.iter().any(|device| device.experts_only)
    }

    /// The device of a peer, if it contributes one.
    pub fn device(&self, peer: PeerId) -> Option<&Device> {
        self.devices.iter().find(|device| device.peer == peer)
    }
}

/// Changes what a planner sees of devices and links, before it plans. A host's planner sees all that was measured
/// ([`see_all`]); another program may hide some of it.
pub type PlannerView = fn(&mut [Device], &mut Links);

/// Hides nothing.
pub fn see_all(_: &mut [Device], _: &mut Links) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_costs_what_lies_between_the_points() {
        let mut device = Device::declared(PeerId([1; 16]), Bytes(1), 1e9, 1.0);
        assert_eq!(device.pause_factor(50.0), 1.0, "nothing is known");
        device.pauses = vec![(10.0, 1.5), (30.0, 4.0)];
        let factors = [0.0, 5.0, 10.0, 20.0, 30.0, 900.0].map(|millis| device.pause_factor(millis));
        assert_eq!(factors, [1.0, 1.25, 1.5, 2.75, 4.0, 4.0]);
        device.pauses = vec![(10.0, 0.5)];
        assert_eq!(device.pause_factor(10.0), 1.0, "a pause makes nothing quicker");
        device.pauses = vec![(10.0, 3.0), (10.0, 9.0), (20.0, 2.0), (f64::NAN, 7.0)];
        assert_eq!([10.0, 15.0, 900.0].map(|millis| device.pause_factor(millis)), [3.0; 3], "nor a longer one");
    }

    #[test]
    fn work_and_its_pause_are_the_whole_token() {
        let mut device = Device::declared(PeerId([1; 16]), Bytes(1), 1e9, 1.0);
        assert_eq!(paused_millis(&device.pauses, 4.0, 100.0), 4.0, "nothing is known");
        device.pauses = vec![(10.0, 1.5), (30.0, 4.0)];
        for busy in [0.0, 0.3, 4.0, 25.0] {
            for token in (0..400).map(|step| f64::from(step) * 0.5) {
                let millis = paused_millis(&device.pauses, busy, token);
                let expected = busy * device.pause_factor(token - millis);
                assert!((millis - expected).abs() < 1e-9, "{busy} in {token}: {millis} instead of {expected}");
            }
        }
    }
}
