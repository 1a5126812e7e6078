//! From members to plans: `Waiting → Preparing → Committing → Up`, with an active plan that goes on meanwhile.

use std::collections::BTreeSet;

use potluck_plan::{BlockIndex, Bytes, PeerId, Plan, PlanEpoch, WeightUnit, WireType};
use potluck_planner::{Device, Planned, Request, Sharing, Shortfall};
use potluck_protocol::{Frame, PlanStanding, Prepare, Share};

use crate::event::{HostCommand, OpenedModel};
use crate::members::Members;
use crate::outbox::Outbox;

pub(super) struct Planning {
    /// The newest epoch given out.
    pub epoch: PlanEpoch,
    active: Option<Planned>,
    preparing: Option<Preparing>,
    /// A better plan must wait for the end of an answer, because it does not fit beside the active one.
    replan_when_idle: bool,
    pub shortfall: Option<Shortfall>,
    /// Why there is neither plan nor shortfall.
    pub reason: String,
}

struct Preparing {
    planned: Planned,
    awaited: BTreeSet<PeerId>,
}

impl Planning {
    pub fn new(epoch: PlanEpoch) -> Self {
        let reason = "Opening the model.".to_owned();
        Self { epoch, active: None, preparing: None, replan_when_idle: false, shortfall: None, reason }
    }

    pub fn active(&self) -> Option<&Plan> {
        self.active.as_ref().map(|planned| &planned.plan)
    }

    /// The plan to show: what is being prepared while nothing runs, else the active one.
    pub fn shown(&self) -> (PlanStanding, Option<&Planned>) {
        match (&self.active, &self.preparing) {
            (Some(planned), _) => (PlanStanding::Up, Some(planned)),
            (None, Some(preparing)) => (PlanStanding::Preparing, Some(&preparing.planned)),
            (None, None) => (PlanStanding::Waiting, None),
        }
    }

    /// The peer has to load for a plan that does not run yet.
    pub fn awaits(&self, peer: PeerId) -> bool {
        self.preparing.as_ref().is_some_and(|preparing| preparing.awaited.contains(&peer))
    }

    pub fn drop_active(&mut self) {
        self.active = None;
        self.preparing = None;
    }

    /// A peer is gone. True if the active plan is gone with it.
    pub fn lose(&mut self, peer: PeerId) -> bool {
        self.preparing.take_if(|preparing| preparing.planned.plan.peers().contains(&peer));
        self.active.take_if(|planned| planned.plan.peers().contains(&peer)).is_some()
    }

    pub fn concerns(&self, peer: PeerId, epoch: PlanEpoch) -> bool {
        let plan = self.preparing.as_ref().map(|preparing| &preparing.planned.plan);
        plan.is_some_and(|plan| plan.epoch == epoch && plan.peers().contains(&peer))
    }

    pub fn abandon(&mut self, epoch: PlanEpoch) {
        self.preparing.take_if(|preparing| preparing.planned.plan.epoch == epoch);
    }

    pub fn prepared(&mut self, peer: PeerId, epoch: PlanEpoch) {
        if let Some(preparing) = &mut self.preparing
            && preparing.planned.plan.epoch == epoch
        {
            preparing.awaited.remove(&peer);
        }
    }

    /// Switches if everyone is ready and no answer runs on the active plan. True if it did.
    pub fn commit(&mut self, answering: bool, members: &Members, out: &mut Outbox) -> bool {
        let ready = |preparing: &mut Preparing| preparing.awaited.is_empty();
        if answering && self.active.is_some() {
            return false;
        }
        let Some(preparing) = self.preparing.take_if(ready) else { return false };
        let epoch = preparing.planned.plan.epoch;
        for (peer, member) in &members.known {
            if member.admitted && member.hello.contribution.is_some() {
                out.send(*peer, Frame::Commit(epoch));
            }
        }
        self.active = Some(preparing.planned);
        true
    }

    /// True once the answer is over and a plan was put off for it.
    pub fn take_put_off(&mut self) -> bool {
        std::mem::take(&mut self.replan_when_idle)
    }

    pub fn replan(
        &mut self,
        model: &OpenedModel,
        command: &HostCommand,
        members: &Members,
        answering: bool,
        out: &mut Outbox,
    ) {
        let newest = members.known.values().map(|member| member.hello.epoch).max().unwrap_or_default();
        let epoch = PlanEpoch(self.epoch.max(newest).0 + 1);
        let devices = self.devices(members);
        let request = Request {
            shape: &model.shape,
            devices: &devices,
            coordinator: members.me,
            sharing: match command.share {
                Share::Fastest => Sharing::Fastest,
                Share::Everyone => Sharing::Everyone,
            },
            context: command.context,
            overhead: model.overhead,
            wire: WireType::F32,
            epoch,
        };
        match potluck_planner::plan(&request) {
            Err(shortfall) => {
                self.preparing = None;
                self.shortfall = Some(shortfall);
            }
            Ok(planned) => {
                self.shortfall = None;
                self.propose(planned, model, members, answering, out);
            }
        }
    }

    fn propose(&mut self, planned: Planned, model: &OpenedModel, members: &Members, answering: bool, out: &mut Outbox) {
        if self.active.as_ref().is_some_and(|active| same_placement(&active.plan, &planned.plan)) {
            self.preparing = None;
            return;
        }
        if self.preparing.as_ref().is_some_and(|preparing| same_placement(&preparing.planned.plan, &planned.plan)) {
            return;
        }
        let keep_active = self.fits_beside(&planned.plan, model, members);
        if self.active.is_some() && !keep_active {
            if answering {
                self.replan_when_idle = true;
                return;
            }
            self.active = None;
        }
        self.epoch = planned.plan.epoch;
        let awaited = planned.plan.peers();
        for peer in &awaited {
            let prepare = Prepare {
                plan: planned.plan.clone(),
                model: model.card.clone(),
                shape: model.shape.clone(),
                keep_active,
            };
            out.send(*peer, Frame::Prepare(Box::new(prepare)));
        }
        self.preparing = Some(Preparing { planned, awaited });
    }

    /// Every peer has room for the units of the active and the new plan together.
    fn fits_beside(&self, plan: &Plan, model: &OpenedModel, members: &Members) -> bool {
        let Some(active) = &self.active else { return false };
        let shape = &model.shape;
        plan.peers().into_iter().all(|peer| {
            let contribution = members.get(peer).and_then(|member| member.hello.contribution);
            let units: BTreeSet<WeightUnit> =
                active.plan.units_for(peer, shape).into_iter().chain(plan.units_for(peer, shape)).collect();
            let bytes = units.iter().map(|unit| {
                let state = match unit {
                    WeightUnit::Mixer(BlockIndex(block)) => shape.blocks[usize::from(*block)].state_per_position,
                    _ => Bytes::ZERO,
                };
                shape.unit_bytes(*unit).saturating_add(Bytes(state.0 * u64::from(plan.context)))
            });
            let needed = bytes.sum::<Bytes>().saturating_add(model.overhead);
            contribution.is_some_and(|contribution| needed <= contribution.budget)
        })
    }

    fn devices(&self, members: &Members) -> Vec<Device> {
        let lending = members.known.iter().filter(|(_, member)| member.lends());
        lending
            .filter_map(|(peer, member)| {
                let contribution = member.hello.contribution?;
                Some(Device {
                    peer: *peer,
                    budget: contribution.budget,
                    bandwidth: contribution.bandwidth,
                    sync_millis: contribution.sync_millis,
                    latency_millis: member.round_trip / 2.0,
                    holds: self.held_blocks(*peer),
                })
            })
            .collect()
    }

    fn held_blocks(&self, peer: PeerId) -> BTreeSet<BlockIndex> {
        let plans = self.active.iter().chain(self.preparing.iter().map(|preparing| &preparing.planned));
        let stages = plans.flat_map(|planned| &planned.plan.stages).filter(|stage| stage.peer == peer);
        stages.flat_map(|stage| stage.blocks.iter()).collect()
    }
}

/// The same parts on the same peers, whatever the epoch.
fn same_placement(a: &Plan, b: &Plan) -> bool {
    a.model == b.model && a.stages == b.stages && a.wire == b.wire && a.context == b.context
}
