//! Loading in advance: what devices load while the model does not fit the room yet and more devices are expected
//! (dynamic-partitioning.txt 4.4.1). The orders are those of standby plans; the first plan takes into account what is
//! already loaded.

use std::collections::BTreeSet;

use potluck_plan::{BlockIndex, Bytes, ModelShape, PeerId, Plan, WeightUnit};
use potluck_planner::{Room, SESSION_START_MILLIS, load_millis};
use potluck_protocol::LoadReport;

use crate::coordinator::planning::standbys::Advance;
use crate::coordinator::planning::{PlanRequest, Planning};
use crate::event_context::EventContext;
use crate::members::Members;

/// A plan is nearly loaded if another one would take this many times as long.
const NEARLY: f64 = 2.0;

impl Planning {
    /// True if the model does not fit but on demand, the host allows it, and every present device was timed: a device cannot
    /// be timed while it loads, and whoever comes next would wait for that.
    pub(in crate::coordinator::planning) fn may_load_in_advance(
        &mut self,
        request: PlanRequest<'_>,
        cx: &mut EventContext,
    ) -> bool {
        let fits = self.shortfall.is_none() && !self.is_on_demand();
        if !request.command.in_advance || fits || self.choosing.policy.awaits_calibration {
            return false;
        }
        let not_timed = self.not_timed(request.command, &cx.members);
        self.observed.calibrating.ask_all(request.model, &not_timed, cx);
        !self.observed.calibrating.is_waited_for(cx)
    }

    /// The active plan loads experts on demand, for want of memory.
    pub(in crate::coordinator::planning) fn is_on_demand(&self) -> bool {
        self.plans.active().is_some_and(Plan::is_on_demand)
    }

    /// A plan is prepared: nothing is loaded in advance any more.
    pub(in crate::coordinator::planning) fn end_advance(&mut self, plan: &Plan, cx: &mut EventContext) {
        let epoch = self.plans.next_epoch(&cx.members);
        if self.standbys.end_advance(&plan.peers(), epoch) {
            self.plans.epoch = epoch;
            self.standbys.send_orders(cx);
        }
    }

    /// Whether a device has loaded its part in advance; `None` if it loads nothing in advance.
    pub fn in_advance(&self, peer: PeerId) -> Option<bool> {
        Some(self.standbys.advance(peer)?.is_loaded)
    }

    /// Blocks of a device's stages in the active plan, or in the one that follows if there is none.
    pub(in crate::coordinator::planning) fn active_blocks(&self, peer: PeerId) -> BTreeSet<BlockIndex> {
        let stages = self.plans.needed().into_iter().flat_map(|plan| &plan.stages);
        stages.filter(|stage| stage.peer == peer).flat_map(|stage| stage.blocks.iter()).collect()
    }

    /// Blocks that a device holds: of the active and the inactive plan (or of the last one while none is active), and
    /// those loaded in advance.
    pub(in crate::coordinator::planning) fn held_blocks(
        &self,
        peer: PeerId,
        members: &Members,
        shape: &ModelShape,
    ) -> BTreeSet<BlockIndex> {
        let of = |plan: &Plan| {
            let stages = plan.stages.iter().filter(|stage| stage.peer == peer && stage.pool.is_none());
            stages.flat_map(|stage| stage.blocks.iter()).collect::<BTreeSet<BlockIndex>>()
        };
        let report = members.get(peer).and_then(|member| member.status.loading);
        let active = self.plans.active.as_ref().map(|active| &active.planned.plan);
        let mut held = active.or(self.plans.last.as_ref()).map(of).unwrap_or_default();
        if let Some(inactive) = &self.plans.inactive {
            let plan = &inactive.planned.plan;
            match inactive.awaits(peer) && active.is_none() {
                true => held.extend(loaded(&plan.units_for(peer, shape), &held, report, shape)),
                false => held.extend(of(plan)),
            }
        }
        if let Some(Advance { order, is_loaded, already_loaded }) = self.standbys.advance(peer) {
            let already_loaded = already_loaded.iter().filter_map(|unit| unit.block()).collect();
            let report = report.filter(|_| !is_loaded);
            match is_loaded {
                true => held.extend(order.units.iter().filter_map(|unit| unit.block())),
                false => held.extend(loaded(&order.units, &already_loaded, report, shape)),
            }
        }
        held
    }

    /// While no plan is active, a plan that is nearly loaded is not given up for one that takes long to load. That
    /// one can be loaded beside it.
    pub(in crate::coordinator::planning) fn is_nearly_there(
        &self,
        room: &Room<'_>,
        inactive: &Plan,
        other: &Plan,
    ) -> bool {
        let longest = |plan: &Plan| load_millis(room, plan).into_iter().fold(0.0, f64::max) - SESSION_START_MILLIS;
        self.plans.active.is_none() && NEARLY * longest(inactive) <= longest(other)
    }
}

/// Blocks of `units` that are loaded so far: those held before, and of the others the first ones, as far as the
/// device reports. Units are loaded in file order, which is the order of the blocks.
fn loaded(
    units: &[WeightUnit],
    before: &BTreeSet<BlockIndex>,
    report: Option<LoadReport>,
    shape: &ModelShape,
) -> BTreeSet<BlockIndex> {
    let missing = |unit: &&WeightUnit| unit.block().is_none_or(|block| !before.contains(&block));
    let bytes = |unit: &WeightUnit| shape.unit_bytes(*unit).0 as f64;
    // Without a total the bytes are those of a header or of hashes.
    let counted = report.filter(|report| report.total > Bytes::ZERO);
    let share = counted.map_or(0.0, |report| report.done.0 as f64 / report.total.0 as f64).min(1.0);
    let mut left = share * units.iter().filter(missing).map(bytes).sum::<f64>();
    let on_the_way = |unit: &&WeightUnit| {
        left -= bytes(unit);
        left < 0.0
    };
    let absent: BTreeSet<BlockIndex> =
        units.iter().filter(missing).filter(on_the_way).filter_map(|unit| unit.block()).collect();
    units.iter().filter_map(|unit| unit.block()).filter(|block| !absent.contains(block)).collect()
}

#[cfg(test)]
mod tests {
    use potluck_protocol::LoadPhase;

    use super::*;
    use crate::examples;

    #[test]
    fn blocks_are_loaded_as_far_as_their_bytes_are() {
        let shape = examples::shape(2, 0);
        let units = [0, 1].map(|block| WeightUnit::TokenMixer(BlockIndex(block)));
        let total: u64 = units.iter().map(|unit| shape.unit_bytes(*unit).0).sum();
        let blocks = |phase, done, total| {
            let report = LoadReport { done: Bytes(done), total: Bytes(total), ..LoadReport::begin(phase) };
            loaded(&units, &BTreeSet::new(), Some(report), &shape).len()
        };
        assert_eq!(blocks(LoadPhase::Download, 0, total), 0);
        assert_eq!(blocks(LoadPhase::Download, total, total), 2);
        assert_eq!(blocks(LoadPhase::Find, 5_000, 0), 0, "bytes of a header are no blocks");
    }
}
