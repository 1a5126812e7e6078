//! What devices say that they hold, against what is on their GPUs.

use potluck_plan::{PlanEpoch, WeightUnit};
use potluck_protocol::{Frame, Hold, Holding};

use super::world::World;

/// What a device was told to load last.
#[derive(Default)]
pub(super) struct Orders {
    /// Its part of a plan.
    plan: Option<(PlanEpoch, Vec<WeightUnit>)>,
    /// Experts besides, by the order's version.
    besides: Option<(u32, Vec<WeightUnit>)>,
}

impl World {
    /// The host tells a device what to load.
    pub(super) fn note_order(&mut self, index: usize, frame: &Frame) {
        let peer = &mut self.peers[index];
        match frame {
            Frame::Prepare(prepare) => {
                peer.orders.plan = Some((prepare.plan.epoch, prepare.plan.units_for(peer.id, &prepare.shape)));
            }
            Frame::Hold(Hold { version, experts, .. }) => {
                let units = experts.iter().map(|(block, expert)| WeightUnit::Expert(*block, *expert));
                peer.orders.besides = Some((*version, units.collect()));
            }
            _ => {}
        }
    }

    /// A device may say that it has loaded something, which must be true.
    pub(super) fn check_claim(&mut self, index: usize, frame: &Frame) {
        let peer = &self.peers[index];
        let units = match frame {
            Frame::Prepared(epoch) => {
                peer.orders.plan.as_ref().filter(|(known, _)| known == epoch).map(|(_, units)| units)
            }
            Frame::Holding(Holding { version, failed: None, .. }) => {
                peer.orders.besides.as_ref().filter(|(known, _)| known == version).map(|(_, units)| units)
            }
            _ => None,
        };
        let missing = units.and_then(|units| units.iter().find(|unit| !peer.engine.resident().contains(unit)));
        if let Some(unit) = missing {
            self.violation = Some(format!("device {index} says that it holds {unit:?}, which it has not loaded"));
        }
    }
}
