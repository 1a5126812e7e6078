//! A host that protects its model: what it sends of its file, and to whom.

use std::collections::BTreeSet;

use potluck_plan::{BlockIndex, ExpertHolder, ExpertId, PeerId, Plan, WeightUnit};
use potluck_protocol::PieceRequest;

use crate::FileParts;
use crate::coordinator::planning::Planning;
use crate::event::HostCommand;
use crate::members::Members;

/// Index of the model's file among those that pieces are asked of. The other one is the list of its hashes.
const MODEL_FILE: u16 = 0;

impl Planning {
    /// These bytes are the list of hashes, the header, or of experts that the peer is to hold; whoever is to hold none has no
    /// use for any.
    pub fn may_read(&self, peer: PeerId, request: &PieceRequest, parts: &FileParts) -> bool {
        let Some(end) = request.offset.checked_add(request.len.into()) else { return false };
        let is_its = || parts.allow(request.offset..end, |unit| self.names_for(peer, unit));
        self.names(peer) && (request.file != MODEL_FILE || is_its())
    }

    /// Devices that are not to time blocks: their memory is full of slots, or the host keeps the blocks for itself.
    pub(in crate::coordinator::planning) fn not_timed(
        &self,
        command: &HostCommand,
        members: &Members,
    ) -> BTreeSet<PeerId> {
        let mut not = self.plans.on_demand();
        if command.protect {
            not.extend(members.known.keys().filter(|peer| **peer != members.me));
        }
        not
    }

    /// A device is to hold an expert.
    fn names(&self, peer: PeerId) -> bool {
        let has_experts = |plan: &Plan| plan.pooled().any(|(.., holders)| holders.contains(&ExpertHolder::Peer(peer)));
        self.plans_known().any(has_experts) || self.ordered_experts(peer).next().is_some()
    }

    /// A device is to hold this unit, which is an expert.
    fn names_for(&self, peer: PeerId, unit: WeightUnit) -> bool {
        let WeightUnit::Expert(block, expert) = unit else { return false };
        let has_expert = |plan: &Plan| {
            let remote = plan.stages.iter().find_map(|stage| stage.remote_experts(block));
            let holders = remote.and_then(|remote| remote.holders.get(usize::from(expert.0)));
            holders.is_some_and(|holders| holders.contains(&ExpertHolder::Peer(peer)))
        };
        self.plans_known().any(has_expert) || self.ordered_experts(peer).any(|known| known == (block, expert))
    }

    /// The plan that runs, and the one that is prepared.
    fn plans_known(&self) -> impl Iterator<Item = &Plan> {
        let inactive = self.plans.inactive.as_ref().map(|inactive| &inactive.planned.plan);
        self.plans.active().into_iter().chain(inactive)
    }

    /// Experts that a device is told to load besides a plan's: now, or in case another device is lost.
    fn ordered_experts(&self, peer: PeerId) -> impl Iterator<Item = (BlockIndex, ExpertId)> {
        self.replicas.ordered_of(peer).chain(self.standbys.ordered_of(peer))
    }
}
