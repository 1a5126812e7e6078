//! How holders of experts answer the stages that call them.

use std::collections::BTreeSet;

use potluck_plan::{Bytes, ExpertHolder, PeerId, Plan};
use potluck_planner::Room;
use potluck_planner::measures::PeerMeasure;
use potluck_protocol::HolderReport;

use super::Measures;

/// Calls after which their quantiles mean something.
pub(super) const ENOUGH_CALLS: u32 = 12;
/// In standard deviations: 95% of a normal distribution lie below.
pub(super) const SLOW_DEVIATIONS: f64 = 1.645;

/// How a holder answers a stage's calls.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Answering {
    /// Calls so far.
    pub answers: u32,
    /// Milliseconds that half of the calls and their answers are on their way.
    pub way_millis: f64,
    /// Standard deviation of the logarithm of a call's time.
    pub spread: f64,
}

impl Answering {
    fn of(report: &HolderReport) -> Self {
        let HolderReport { answers, round_trip_millis, slow_millis, engine_millis, .. } = *report;
        let spread = if slow_millis > round_trip_millis && round_trip_millis > 0.0 {
            (slow_millis / round_trip_millis).ln() / SLOW_DEVIATIONS
        } else {
            0.0
        };
        Self { answers, way_millis: (round_trip_millis - engine_millis).max(0.0), spread }
    }
}

impl Measures {
    /// A stage reports how holders of its experts answer: their engines' times teach their speed, the rest of a round trip
    /// what messages take.
    pub fn learn_holders(&mut self, room: &Room<'_>, plan: &Plan, caller: PeerId, reports: &[HolderReport]) {
        let expert = plan.stages.iter().filter(|stage| stage.peer == caller).flat_map(|stage| &stage.remote).next();
        let Some(expert) = expert.map(|remote| room.shape.blocks[usize::from(remote.block.0)].expert_bytes()) else {
            return;
        };
        self.holders.retain(|(caller, holder), _| room.device(*caller).is_some() && room.device(*holder).is_some());
        let pool: BTreeSet<&ExpertHolder> = plan.pooled().flat_map(|(.., holders)| holders).collect();
        let is_holder = |peer: PeerId| peer != caller && pool.contains(&ExpertHolder::Peer(peer));
        for report in reports.iter().filter(|report| is_holder(report.peer)) {
            let Some(device) = room.device(report.peer) else { continue };
            let known = self.holders.entry((caller, report.peer)).or_default();
            let is_new = std::mem::replace(known, Answering::of(report)).answers != report.answers;
            if !is_new || report.round_trip_millis <= 0.0 {
                continue;
            }
            let fresh = || PeerMeasure::new(device);
            let cost = expert.0 as f64 * report.experts;
            match potluck_planner::holder_storage_rate(room, plan, report.peer, cost, report.engine_millis) {
                // With experts on demand, time says as much of the storage as of the GPU.
                Some(rate) => self.storage.entry(report.peer).or_default().push(rate),
                None if plan.holder_pool(report.peer).is_some() => {}
                None => self.peers.entry(report.peer).or_insert_with(fresh).called(cost, report.engine_millis),
            }
            let bytes = Bytes(room.expert_wire.bytes(u64::from(room.shape.hidden)));
            let expected =
                room.links.millis(caller, report.peer, bytes) + room.links.millis(report.peer, caller, bytes);
            let on_the_way = report.round_trip_millis - report.engine_millis;
            // There and back are two messages.
            self.hop.push_difference(self.hop_millis() + (on_the_way - expected) / 2.0);
        }
    }
}
