//! What the planner is told: a model's layers, who lends a device, how they are connected, what is wanted.

use std::collections::BTreeSet;

use potluck_plan::{BlockIndex, BlockRange, Bytes, ModelShape, PeerId, PlanEpoch, Sharing, WeightUnit, WireType};

use crate::{Layers, Links};

/// How quickly a device gets through layers, in the units of [`crate::Layer`]'s costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed {
    /// Decode: cost a millisecond (bytes of weights a row reads).
    pub decode: f64,
    /// Prefill: cost a millisecond (the same bytes times rows, because rows of a chunk share one reading).
    pub prefill: f64,
}

/// What is known of a device's habits; of two plans that cost alike the one on calmer devices wins.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Presence {
    /// Its tab is hidden: the browser may slow it down.
    pub hidden: bool,
    /// How often it left this room lately: it has to be better than others by a little for each time.
    pub departures: u32,
}

/// A peer that lends its GPU.
#[derive(Clone, Debug, PartialEq)]
pub struct Device {
    /// Who.
    pub peer: PeerId,
    /// Bytes of GPU memory it lends.
    pub budget: Bytes,
    /// Most bytes of a buffer that its kernels see at once.
    pub binding: Bytes,
    /// Its speed, measured.
    pub speed: Speed,
    /// Milliseconds of a piece of work besides its layers, one readback included (the paper's session overhead).
    pub session_millis: f64,
    /// Milliseconds of each further submit with its readback (a block whose experts are elsewhere needs one).
    pub sync_millis: f64,
    /// So many times as long its work takes after so many milliseconds without work: points (milliseconds, factor) of
    /// growing milliseconds, 1 at none. A GPU that waits for others lowers its clock.
    pub pauses: Vec<(f64, f64)>,
    /// Bytes a millisecond at which it fetches weights.
    pub download: f64,
    /// Blocks whose weights it has on its GPU already.
    pub holds: BTreeSet<BlockIndex>,
    /// Units it has on its disk already.
    pub cached: BTreeSet<WeightUnit>,
    /// Its habits.
    pub presence: Presence,
}

impl Speed {
    /// Rows of a chunk that share one reading of the weights until arithmetic is the limit, before it is measured.
    pub const PREFILL_GAIN: f64 = 8.0;
}

impl Device {
    /// Bytes a millisecond of downloads before they are measured: 10 MB/s.
    const DOWNLOAD: f64 = 10e3;

    /// A device of which only memory, streaming rate (bytes a second) and the cost of a readback are known.
    pub fn declared(peer: PeerId, budget: Bytes, bandwidth: f64, sync_millis: f64) -> Self {
        let decode = bandwidth / 1e3;
        Self {
            peer,
            budget,
            binding: Bytes(u64::MAX),
            speed: Speed { decode, prefill: decode * Speed::PREFILL_GAIN },
            session_millis: sync_millis,
            sync_millis,
            pauses: Vec::new(),
            download: Self::DOWNLOAD,
            holds: BTreeSet::new(),
            cached: BTreeSet::new(),
            presence: Presence::default(),
        }
    }
}

/// A pause makes no device quicker, nor slower than this.
const PAUSE_FACTORS: (f64, f64) = (1.0, 20.0);

impl Device {
    /// So many times as long its work takes after a pause: straight lines between the points, and the last one's factor
    /// beyond. A longer pause never makes anything quicker.
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

/// Milliseconds that `busy` milliseconds of a device's work take once a token, if a token takes `token` in all and the device
/// waits for the rest of that time: work slows down with the pause, and longer work leaves a shorter pause.
pub(crate) fn paused_millis(pauses: &[(f64, f64)], busy: f64, token: f64) -> f64 {
    let mut before = (0.0, PAUSE_FACTORS.0);
    for (at, factor) in sensible(pauses) {
        // With a pause this long, work and pause are longer than the token: it is a shorter one.
        if busy * factor + at >= token {
            let slope = busy * (factor - before.1) / (at - before.0);
            let pause = (token - busy * before.1 + slope * before.0) / (1.0 + slope);
            return if pause > 0.0 { token - pause } else { busy };
        }
        before = (at, factor);
    }
    busy * before.1
}

/// The points whose milliseconds grow; their factors do not fall.
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

/// How long the search may take, in steps instead of time, so that the same question has the same answer everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Most steps: one step relaxes one cell of the dynamic program (a few nanoseconds).
    pub steps: u64,
    /// Seed of the annealing.
    pub seed: u64,
}

impl Default for Effort {
    /// About 40 ms in a browser.
    fn default() -> Self {
        Self { steps: 4_000_000, seed: 1 }
    }
}

/// A question to the planner.
#[derive(Clone, Debug)]
pub struct Room<'a> {
    /// The model's sizes.
    pub shape: &'a ModelShape,
    /// The model's layers: bytes and costs.
    pub layers: &'a Layers,
    /// Everyone who lends, the order does not matter.
    pub devices: &'a [Device],
    /// Latency and bandwidth between them.
    pub links: &'a Links,
    /// Who holds the token log; may or may not be among the devices.
    pub coordinator: PeerId,
    /// How work is shared out.
    pub sharing: Sharing,
    /// Positions of state each stage reserves.
    pub context: u32,
    /// Bytes every device with work needs besides weights and state: scratch, staging, parameters.
    pub overhead: Bytes,
    /// Number format between stages.
    pub wire: WireType,
    /// Epoch of the plan to make.
    pub epoch: PlanEpoch,
    /// How hard to search.
    pub effort: Effort,
}

impl Room<'_> {
    /// A device's kernels see all of the keys and values of these blocks.
    pub fn shows(&self, device: &Device, blocks: BlockRange) -> bool {
        let layers = self.layers.iter().skip(usize::from(blocks.start) + 1);
        layers.take(usize::from(blocks.end - blocks.start)).all(|layer| layer.buffer <= device.binding)
    }

    /// The device of a peer, if it lends one.
    pub fn device(&self, peer: PeerId) -> Option<&Device> {
        self.devices.iter().find(|device| device.peer == peer)
    }
}

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
