//! The planner's answer: a plan with its prediction, or what is missing.

use potluck_plan::{Bytes, Plan, Stage};

use crate::cost::predict;
use crate::placement::{self, stage_weights, stages};
use crate::search::{Chain, best_partition};
use crate::spares::{Spare, spares};
use crate::{Prediction, Room, experts, reason};

/// A plan with its prediction.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// The plan.
    pub plan: Plan,
    /// Weight bytes of each stage (without experts elsewhere).
    pub stage_bytes: Vec<Bytes>,
    /// Milliseconds per token, part by part.
    pub prediction: Prediction,
    /// Devices without work, and why.
    pub spares: Vec<Spare>,
    /// One sentence for people: why this plan. It does not mention the plan's time, which may be predicted again with
    /// newer measurements.
    pub reason: String,
}

/// The room is too small for the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortfall {
    /// Bytes needed in all.
    pub needed: Bytes,
    /// Bytes contributed in all.
    pub contributed: Bytes,
    /// Bytes missing, at least.
    pub missing: Bytes,
    /// Of which memory there is too little.
    pub of: ShortOf,
    /// One sentence.
    pub sentence: String,
}

/// Of which memory there is too little.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShortOf {
    /// What all devices lend, or what one of them lends for its part.
    Room,
    /// What the host lends, for the ends of the model that stay on it. `needed` and `contributed` are the host's then.
    HostForEnds,
}

impl Planned {
    /// Describes an existing plan with today's measurements.
    pub fn describe(room: &Room<'_>, plan: Plan) -> Self {
        let prediction = predict(room, &plan);
        let spares = spares(room, &plan, prediction.token_millis);
        let reason = reason::of_plan(room, &plan, &spares);
        let mut stage_bytes: Vec<Bytes> = plan.stages.iter().map(|stage| stage_weights(room, &plan, stage)).collect();
        if let ([first, .., last], Some(bytes)) = (&plan.stages[..], stage_bytes.last_mut())
            && first.peer == last.peer
        {
            // Both ends are on one device, which has the table of a tied LM head once.
            *bytes = bytes.saturating_sub(room.layers.tied(room.layers.all()));
        }
        Self { plan, stage_bytes, prediction, spares, reason }
    }
}

/// The best plan for the devices, or what is missing. `examples/plan.rs` writes a [`Room`] out.
///
/// ```
/// use potluck_planner::Sharing;
/// use potluck_testkit::{RoomFixture, dense_shape, device};
///
/// // A model of 560 bytes with its overhead, and devices that lend 300 each, at a million bytes a second.
/// let room = |count| RoomFixture::new(dense_shape(4), (0..count).map(|id| device(id, 300, 1e6)).collect());
///
/// let shortfall = room(1).plan(Sharing::Fastest).unwrap_err();
/// assert_eq!(shortfall.missing.0, 260);
///
/// let planned = room(3).plan(Sharing::Fastest).unwrap();
/// assert_eq!(planned.plan.stages.len(), 2, "the third device would only cost hops");
/// assert_eq!(planned.spares.len(), 1);
/// assert!(planned.prediction.token_millis > planned.prediction.stages[0].compute_millis);
/// ```
///
/// # Errors
/// [`Shortfall`] if the model does not fit on the devices, however partition.
pub fn plan(room: &Room<'_>) -> Result<Planned, Shortfall> {
    match best_stages(room) {
        Some(stages) => Ok(Planned::describe(room, placement::plan(room, stages))),
        None => Err(reason::shortfall(room)),
    }
}

/// The stages of the best plan.
pub(crate) fn best_stages(room: &Room<'_>) -> Option<Vec<Stage>> {
    if room.devices.is_empty() || room.shape.blocks.is_empty() || !may_fit(room) {
        return None;
    }
    experts::better(room, || best_layers(room, Chain::new(room)))
}

/// All devices together have memory for the model. Without it there is no plan, and a search takes long to find that out where
/// experts may lie anywhere.
pub(crate) fn may_fit(room: &Room<'_>) -> bool {
    let usable = room.devices.iter().map(|device| u128::from(device.budget.saturating_sub(room.overhead).0));
    usable.sum::<u128>() >= u128::from(room.layers.memory(room.layers.all()).0)
}

/// The stages of the best plan by layers for these workers.
pub(crate) fn best_layers(room: &Room<'_>, chain: Chain) -> Option<Vec<Stage>> {
    best_partition(room, &chain).map(|partition| stages(room, &chain, &partition.segments))
}
