//! What the planner is told.

use std::collections::BTreeSet;

use potluck_plan::{BlockIndex, Bytes, ModelShape, PeerId, PlanEpoch, WireType};

/// A peer that lends its GPU.
#[derive(Clone, Debug, PartialEq)]
pub struct Device {
    /// Who.
    pub peer: PeerId,
    /// Bytes of GPU memory it lends.
    pub budget: Bytes,
    /// Bytes a second its kernels stream, measured.
    pub bandwidth: f64,
    /// Milliseconds of a submit with its readback, measured.
    pub sync_millis: f64,
    /// One way to the coordinator, milliseconds; 0 for the coordinator itself.
    pub latency_millis: f64,
    /// Blocks whose weights it has on its GPU already.
    pub holds: BTreeSet<BlockIndex>,
}

/// How work is shared out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Least milliseconds a token; devices that only cost are left out.
    Fastest,
    /// Every device gets at least one block, as long as there are blocks; the slowest stage is made as quick as can be.
    Everyone,
}

/// A question to the planner.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The model's sizes.
    pub shape: &'a ModelShape,
    /// Everyone who lends, the order does not matter.
    pub devices: &'a [Device],
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
}
