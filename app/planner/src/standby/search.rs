//! The search for standby plans, in steps.

use std::collections::VecDeque;

use potluck_plan::{PeerId, Plan};

use super::reserved::{Reserved, layer_sizes, usable};
use super::{Exposed, Standby, Standbys, without};
use crate::Room;
use crate::step::{Step, run};

/// Standby plans for every peer with work but the coordinator. All of them fit in memory together, beside the active
/// plan. Peers with the most departures come first.
pub fn standby(room: &Room<'_>, plan: &Plan) -> Standbys {
    standby_keeping(room, plan, Vec::new())
}

/// The same where standby plans for this plan exist already: those that still fit are kept, with everything that was
/// loaded for them. A host that has more to do takes the steps of a [`StandbySearch`] instead.
pub fn standby_keeping(room: &Room<'_>, plan: &Plan, made: Vec<Standby>) -> Standbys {
    run(StandbySearch::keeping(room, plan, made, HostLoss::EndsRoom), |search| search.step(room, plan))
}

/// What the loss of the coordinator means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostLoss {
    /// The room waits for it: nobody stands by for it.
    EndsRoom,
    /// Another device hosts the room then, and needs somebody to take over its part.
    IsSurvived,
}

/// A search for standby plans that looks for one of them a step. All steps are for the same room and plan.
#[derive(Clone, Debug)]
pub struct StandbySearch {
    /// Peers for whose loss nothing is known yet.
    lost: VecDeque<PeerId>,
    reserved: Reserved,
    known: Standbys,
}

impl StandbySearch {
    /// A search that has made no step yet. Of the standby plans that were `made` for this plan it keeps those that still fit.
    pub fn keeping(room: &Room<'_>, plan: &Plan, made: Vec<Standby>, host: HostLoss) -> Self {
        let may_be_lost = |peer: &PeerId| *peer != room.coordinator || host == HostLoss::IsSurvived;
        let mut lost: Vec<PeerId> = plan.peers().into_iter().filter(may_be_lost).collect();
        let departures = |peer: &PeerId| room.device(*peer).map_or(0, |device| device.presence.departures);
        lost.sort_by_key(|peer| (std::cmp::Reverse(departures(peer)), *peer));
        let mut reserved = Reserved::of(room, plan);
        let mut known = Standbys::default();
        let sizes = layer_sizes(room, plan);
        for standby in made.into_iter().filter(|standby| lost.contains(&standby.lost)) {
            let mut tried = reserved.clone();
            tried.add_plan(room, &standby.plan);
            let fits = |peer: PeerId| {
                let before = reserved.taken(room, &sizes, peer);
                let after = tried.taken(room, &sizes, peer);
                room.device(peer).is_some_and(|device| after == before || after <= usable(room, device))
            };
            if standby.plan.peers().into_iter().all(fits) {
                reserved = tried;
                known.covered.push(standby);
            }
        }
        lost.retain(|lost| known.covered.iter().all(|standby| standby.lost != *lost));
        Self { lost: lost.into(), reserved, known }
    }

    /// Looks for the standby plan for one more loss.
    #[must_use]
    pub fn step(mut self, room: &Room<'_>, plan: &Plan) -> Step<Self, Standbys> {
        if let Some(lost) = self.lost.pop_front() {
            let mut tried = self.reserved.clone();
            match without(room, plan, lost, &mut tried) {
                Ok(standby) => {
                    self.reserved = tried;
                    self.known.covered.push(standby);
                }
                Err(missing) => self.known.exposed.push(Exposed { lost, missing }),
            }
        }
        if self.lost.is_empty() { Step::Ends(self.known) } else { Step::GoesOn(self) }
    }
}

#[cfg(test)]
mod tests {
    use potluck_plan::random::Random;
    use potluck_plan::{Bytes, ModelShape, WireType};

    use super::*;
    use crate::experts::fixtures;
    use crate::{AccessLink, Device, Hedging, Layers, Links, Sharing};

    /// All of them at once.
    fn at_once(room: &Room<'_>, plan: &Plan) -> Standbys {
        let mut lost: Vec<PeerId> = plan.peers().into_iter().filter(|peer| *peer != room.coordinator).collect();
        lost.sort_by_key(|peer| (std::cmp::Reverse(room.device(*peer).map(|d| d.presence.departures)), *peer));
        let (mut reserved, mut found) = (Reserved::of(room, plan), Standbys::default());
        for lost in lost {
            let mut tried = reserved.clone();
            match without(room, plan, lost, &mut tried) {
                Ok(standby) => {
                    reserved = tried;
                    found.covered.push(standby);
                }
                Err(missing) => found.exposed.push(Exposed { lost, missing }),
            }
        }
        found
    }

    fn in_steps(room: &Room<'_>, plan: &Plan, made: Vec<Standby>) -> (Standbys, usize) {
        let (mut search, mut steps) = (StandbySearch::keeping(room, plan, made, HostLoss::EndsRoom), 0);
        loop {
            steps += 1;
            match search.step(room, plan) {
                Step::GoesOn(next) => search = next,
                Step::Ends(found) => return (found, steps),
            }
        }
    }

    fn devices(random: &mut Random, links: &mut Links) -> Vec<Device> {
        let (scale, count) = ([400, 900, 1_600][random.below(3)], 2 + random.below(5) as u8);
        let device = |id| {
            let peer = PeerId([id; 16]);
            links.set_access(peer, AccessLink::latency(0.5 + 4.0 * random.unit()));
            let mut device = Device::declared(peer, Bytes(100 + random.below(scale) as u64), 0.0, random.unit());
            device.speed.decode = 50.0 * (0.3 + random.unit());
            device.presence.departures = random.below(3) as u32;
            device
        };
        (0..count).map(device).collect()
    }

    #[test]
    fn somebody_stands_by_for_the_host_where_the_room_survives_its_loss() {
        let mut random = Random::new(5);
        let mut survived = 0;
        for seed in 0..200 {
            let shape: ModelShape = fixtures::shape(1 + random.below(4), 8, 2);
            let layers = Layers::from_shape(&shape, 10, WireType::F32);
            let mut links = Links::default();
            let devices = devices(&mut random, &mut links);
            let room = fixtures::room(&shape, &layers, &devices, &links);
            let Ok(planned) = crate::plan(&room) else { continue };
            let (plan, host) = (&planned.plan, room.coordinator);
            let found =
                |loss| run(StandbySearch::keeping(&room, plan, Vec::new(), loss), |search| search.step(&room, plan));
            let (ends, survives) = (found(HostLoss::EndsRoom), found(HostLoss::IsSurvived));
            assert!(ends.covered.iter().all(|standby| standby.lost != host), "room {seed}");
            assert!(ends.exposed.iter().all(|exposed| exposed.lost != host), "room {seed}");
            let covered = survives.covered.iter().find(|standby| standby.lost == host);
            let is_exposed = survives.exposed.iter().any(|exposed| exposed.lost == host);
            assert_eq!(covered.is_some() || is_exposed, plan.peers().contains(&host), "room {seed}");
            assert!(covered.is_none_or(|standby| !standby.plan.peers().contains(&host)), "room {seed}");
            survived += usize::from(covered.is_some());
        }
        assert!(survived > 20, "only {survived} rooms are large enough");
    }

    #[test]
    fn steps_find_what_is_found_at_once_and_look_for_one_standby_plan_each() {
        let mut random = Random::new(11);
        let (mut covered, mut exposed, mut several) = (0, 0, 0);
        for seed in 0..400 {
            let shape: ModelShape = fixtures::shape(1 + random.below(4), 8, 2);
            let layers = Layers::from_shape(&shape, 10, WireType::F32);
            let mut links = Links::default();
            let devices = devices(&mut random, &mut links);
            let room = Room {
                sharing: [Sharing::Fastest, Sharing::Everyone, Sharing::Experts][seed % 3],
                replicas: 1 + (seed % 2) as u8,
                hedging: Hedging::Adaptive,
                ..fixtures::room(&shape, &layers, &devices, &links)
            };
            let Ok(planned) = crate::plan(&room) else { continue };
            let expected = at_once(&room, &planned.plan);
            let (found, steps) = in_steps(&room, &planned.plan, Vec::new());
            assert_eq!(found, expected, "room {seed}");
            assert_eq!(steps, (found.covered.len() + found.exposed.len()).max(1), "room {seed}: one loss a step");
            assert_eq!(standby(&room, &planned.plan), expected, "room {seed}");
            // Those that were made before are kept without a step.
            let (again, steps) = in_steps(&room, &planned.plan, found.covered.clone());
            assert_eq!(steps, found.exposed.len().max(1), "room {seed}");
            assert_eq!(again, standby_keeping(&room, &planned.plan, found.covered.clone()), "room {seed}");
            assert_eq!(again.covered, found.covered, "room {seed}");
            covered += found.covered.len();
            exposed += found.exposed.len();
            several += usize::from(found.covered.len() > 1);
        }
        assert!(covered > 100 && exposed > 50 && several > 30, "{covered} covered, {exposed} exposed, {several} times");
    }
}
