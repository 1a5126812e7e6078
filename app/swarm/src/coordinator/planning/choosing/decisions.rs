//! What was decided last, for the host's page. The recording gets what changed.

use std::collections::VecDeque;

use potluck_panel::{
    Decision, DeviceDecision, LeftOut, NoPlanReason, Part, PartReason, Place, PlanDecision, SpreadingCompared,
    StandbyDecision, WhyPlan,
};
use potluck_plan::{Bytes, ExpertHolder, PeerId};
use potluck_planner::{Device, Planned, Room, Sharing, Spare, SpareReason};

use crate::coordinator::planning::Planning;
use crate::event_context::EventContext;

/// Choices of plans that are kept.
const KEPT_CHOICES: usize = 4;

#[derive(Default)]
pub(in crate::coordinator::planning) struct Decisions {
    /// Why the newest plans were made: one that is prepared may come to nothing, and the one before goes on.
    chosen: VecDeque<PlanDecision>,
    plan: Option<PlanDecision>,
    devices: Vec<DeviceDecision>,
    standbys: Vec<StandbyDecision>,
}

impl Decisions {
    pub fn plan(&mut self, decision: PlanDecision, cx: &mut EventContext) {
        if !self.plan.as_ref().is_some_and(|known| known.is_like(&decision)) {
            cx.out.decisions.push(Decision::Plan(decision.clone()));
        }
        if matches!(decision, PlanDecision::Replaced { .. }) {
            self.chosen.truncate(KEPT_CHOICES - 1);
            self.chosen.push_front(decision.clone());
        }
        self.plan = Some(decision);
    }

    /// Why the plan that is shown was made, if there is one, else the newest one.
    fn choice_of(&self, shown: Option<&Planned>) -> Option<&PlanDecision> {
        let is_of = |planned: &Planned| {
            self.chosen
                .iter()
                .find(|choice| matches!(choice, PlanDecision::Replaced { epoch, .. } if *epoch == planned.plan.epoch))
        };
        shown.and_then(is_of).or(self.chosen.front())
    }

    pub fn devices(&mut self, devices: Vec<DeviceDecision>, cx: &mut EventContext) {
        let new = devices.iter().filter(|device| !self.devices.iter().any(|known| known.is_like(device)));
        cx.out.decisions.extend(new.map(|device| Decision::Device(*device)));
        self.devices = devices;
    }

    pub fn standbys(&mut self, standbys: Vec<StandbyDecision>, cx: &mut EventContext) {
        let new = standbys.iter().filter(|standby| !self.standbys.iter().any(|known| known.is_like(standby)));
        cx.out.decisions.extend(new.map(|standby| Decision::Standby(standby.clone())));
        self.standbys = standbys;
    }
}

impl Planning {
    /// Says what each device does: in the plan that is prepared, else in the active one.
    pub(in crate::coordinator::planning) fn decide_places(&mut self, room: &Room<'_>, cx: &mut EventContext) {
        self.choosing.decisions.devices(places(room, self.plans.newest()), cx);
    }

    /// Says why no plan was found. While the active plan goes on, that is none of its concern.
    pub(in crate::coordinator::planning) fn decide_no_plan(&mut self, reason: NoPlanReason, cx: &mut EventContext) {
        if self.plans.active.is_none() {
            self.choosing.decisions.plan(PlanDecision::NoPlan { reason }, cx);
        }
    }

    /// Says what there is in case a device leaves, if that changed.
    pub(in crate::coordinator::planning) fn decide_standbys(&mut self, cx: &mut EventContext) {
        self.choosing.decisions.standbys(self.standbys.decisions(), cx);
    }

    pub fn why(&self) -> Option<WhyPlan> {
        let spreading = self.searches.comparison().map(|compared| SpreadingCompared {
            trips: compared.trips as u32,
            spread_ms: compared.spread_millis,
            whole_ms: compared.whole_millis,
        });
        Some(WhyPlan {
            chosen: self.choosing.decisions.choice_of(self.plans.shown().1).cloned(),
            plan: self.choosing.decisions.plan.clone()?,
            arithmetic: self.plans.newest().map(|planned| planned.plan.arithmetic),
            devices: self.choosing.decisions.devices.clone(),
            spreading,
            ends: self.searches.ends(),
            standbys: self.choosing.decisions.standbys.clone(),
        })
    }
}

/// What each device does in a plan, or that there is none. Devices that the plan does not know are left out.
fn places(room: &Room<'_>, planned: Option<&Planned>) -> Vec<DeviceDecision> {
    let place = |device: &Device| match planned {
        None => Some(Place::LeftOut(LeftOut::NoPlan { offered: device.budget })),
        Some(planned) if planned.plan.peers().contains(&device.peer) => Some(Place::Has(part(room, planned, device))),
        Some(planned) => {
            let spare = planned.spares.iter().find(|spare| spare.peer == device.peer)?;
            Some(Place::LeftOut(left_out(spare, device, planned.prediction.token_millis)))
        }
    };
    let devices = room.devices.iter();
    devices.filter_map(|device| Some(DeviceDecision { peer: device.peer, place: place(device)? })).collect()
}

fn part(room: &Room<'_>, planned: &Planned, device: &Device) -> Part {
    let (plan, peer) = (&planned.plan, device.peer);
    let stages = || plan.stages.iter().zip(planned.prediction.stage_millis()).filter(|(stage, _)| stage.peer == peer);
    let experts = plan.pooled().filter(|(.., holders)| holders.contains(&ExpertHolder::Peer(peer)));
    Part {
        blocks: stages().map(|(stage, _)| stage.blocks.iter().count() as u32).sum(),
        experts: experts.count() as u32,
        ms: stages().map(|(_, millis)| millis).sum(),
        lends: device.budget,
        why: why_part(room, planned, peer),
    }
}

fn why_part(room: &Room<'_>, planned: &Planned, peer: PeerId) -> PartReason {
    let others: Vec<&Device> = room.devices.iter().filter(|device| device.peer != peer).collect();
    let others_lend: Bytes = others.iter().map(|device| device.budget).sum();
    let needed = room.needed(others.len());
    match room.sharing {
        _ if others.is_empty() => PartReason::OnlyDevice,
        _ if needed > others_lend => PartReason::NeededForMemory { needed, others_lend },
        Sharing::Everyone => PartReason::EveryoneTakesPart,
        Sharing::Experts if planned.plan.pooled().next().is_some() => PartReason::ExpertsAreSpread,
        Sharing::Fastest | Sharing::Experts => PartReason::Fastest,
    }
}

/// Why a device has no part in a plan whose tokens take so long.
fn left_out(spare: &Spare, device: &Device, token_ms: f64) -> LeftOut {
    let offered = device.budget;
    match spare.reason {
        SpareReason::Slower { millis } => LeftOut::TooSlow { with_ms: token_ms + millis, without_ms: token_ms },
        SpareReason::TooSmall { needed } | SpareReason::TooSmallForAll { needed } => {
            LeftOut::NotEnoughMemory { needed, offered }
        }
        SpareReason::Experts { needed, millis } => LeftOut::ExpertsTooFar { needed, offered, trip_ms: millis },
        SpareReason::Unseen { needed, binding } => LeftOut::BindingTooSmall { needed, binding },
        SpareReason::Protected => LeftOut::Protected,
        SpareReason::NoPart => LeftOut::NoPartLeft,
    }
}
