//! Partial plans (dynamic-partitioning.txt 4.4.1 and 5.2.1): while a model does not fit, devices preload the part that
//! each will most likely get. Of two plans that are nearly as good, the one with less left to load wins.

use std::collections::BTreeMap;

use potluck_plan::{PeerId, WeightUnit};

use crate::help::{BISECTIONS, NEWCOMER, Newcomer};
use crate::initialization::{SESSION_START_MILLIS, load_millis, missing_millis};
use crate::layers::LayerRange;
use crate::placement;
use crate::planned::{best_layers, plan};
use crate::search::Chain;
use crate::{Effort, Planned, Prediction, Room, Sharing, Shortfall, TAU};

/// What each device should load while the room waits for more memory: its part of the plan by layers that one more
/// device would complete with the smallest budget. With less memory nobody can answer; with more, the parts stay the
/// same because [`plan_keeping`] prefers such plans. Resident blocks stay where they are if that costs little. Empty
/// where no further device would help.
pub fn preload(room: &Room<'_>) -> BTreeMap<PeerId, Vec<WeightUnit>> {
    let effort = Effort { steps: room.effort.steps / u64::from(BISECTIONS + 3), ..room.effort };
    let room = &Room { effort, ..room.clone() };
    let guess = || {
        let newcomer = Newcomer::of(room)?;
        let budget = newcomer.min_budget(room, |room| Some(by_layers(room)?.prediction.token_millis))?;
        newcomer.with(room, budget, |room| {
            let best = by_layers(room)?;
            let kept = Near::to(room, &best).found(f64::INFINITY);
            Some(kept.filter(|kept| Loads::of(room, kept).is_less(&Loads::of(room, &best))).unwrap_or(best).plan)
        })
    };
    let Some(plan) = guess() else { return BTreeMap::new() };
    let peers = plan.peers().into_iter().filter(|peer| *peer != NEWCOMER);
    peers.map(|peer| (peer, plan.units_for(peer, room.shape))).collect()
}

fn by_layers(room: &Room<'_>) -> Option<Planned> {
    Some(Planned::describe(room, placement::plan(room, best_layers(room, Chain::new(room))?)))
}

/// The plan for a room in which nothing runs: the best one or, where blocks are resident already
/// ([`crate::Device::holds`]), the plan among those nearly as good that is loaded soonest. Its extra cost is below the
/// threshold at which a running plan would be replaced.
///
/// # Errors
/// [`Shortfall`] if the model does not fit on the devices, however partition.
pub fn plan_keeping(room: &Room<'_>) -> Result<Planned, Shortfall> {
    let best = plan(room)?;
    if room.devices.iter().all(|device| device.holds.is_empty()) {
        return Ok(best);
    }
    let longest = Loads::of(room, &best).longest;
    let near = Near::to(room, &best);
    let mut chosen = near.found(f64::INFINITY).filter(|found| Loads::of(room, found).is_less(&Loads::of(room, &best)));
    // Bisect the longest download with which a plan nearly as good exists.
    let (mut low, mut high) = (0.0, chosen.as_ref().map_or(longest, |chosen| Loads::of(room, chosen).longest));
    for _ in 0..ROUNDS {
        let middle = (low + high) / 2.0;
        match near.found(middle) {
            Some(found) => {
                high = Loads::of(room, &found).longest;
                chosen = Some(found);
            }
            None => low = middle,
        }
    }
    Ok(chosen.unwrap_or(best))
}

/// Milliseconds that the devices of a plan download, σ excluded.
#[derive(Clone, Copy)]
struct Loads {
    longest: f64,
    all: f64,
}

impl Loads {
    fn of(room: &Room<'_>, planned: &Planned) -> Self {
        let loads = load_millis(room, &planned.plan).into_iter().map(|millis| millis - SESSION_START_MILLIS);
        loads.fold(Self { longest: 0.0, all: 0.0 }, |loads, millis| Self {
            longest: loads.longest.max(millis),
            all: loads.all + millis,
        })
    }

    fn is_less(&self, other: &Self) -> bool {
        self.longest <= other.longest && self.all < other.all
    }
}

/// Plans are nearly as good if the best plan takes at least this share of their time: half of the threshold τ, so that
/// measurements may still change a little until the plan runs.
const NEARLY: f64 = (1.0 + TAU) / 2.0;

/// Steps of the bisection over the longest download: exact to one part in 64.
const ROUNDS: u32 = 6;

/// Finds plans by layers that are nearly as good as the best one.
struct Near<'a> {
    room: Room<'a>,
    best: &'a Planned,
    /// Cost of a block that has to be loaded, milliseconds. All blocks together cost what a plan may be slower by.
    moving: f64,
}

impl<'a> Near<'a> {
    fn to(room: &Room<'a>, best: &'a Planned) -> Self {
        let target = match room.sharing {
            Sharing::Fastest | Sharing::Experts => best.prediction.token_millis,
            Sharing::Everyone => slowest(&best.prediction),
        };
        let moving = (1.0 / NEARLY - 1.0) * target / room.shape.blocks.len().max(1) as f64;
        let effort = Effort { steps: room.effort.steps / u64::from(ROUNDS + 1), ..room.effort };
        Self { room: Room { effort, ..room.clone() }, best, moving }
    }

    /// The plan that loads the least, with no download longer than this many milliseconds.
    fn found(&self, max_missing_millis: f64) -> Option<Planned> {
        let room = &self.room;
        let mut chain = Chain::new(room);
        chain.charge_moves(room, self.moving);
        chain.max_missing_millis = max_missing_millis;
        let found = Planned::describe(room, placement::plan(room, best_layers(room, chain)?));
        let (new, best) = (&found.prediction, &self.best.prediction);
        let is_near = NEARLY * new.token_millis <= best.token_millis;
        let as_even =
            || found.plan.peers().len() == self.best.plan.peers().len() && NEARLY * slowest(new) <= slowest(best);
        let shares_alike = match room.sharing {
            Sharing::Fastest => true,
            Sharing::Everyone => as_even(),
            // A plan by layers has no experts elsewhere.
            Sharing::Experts => false,
        };
        (is_near && shares_alike).then_some(found)
    }
}

/// Milliseconds of the slowest stage.
fn slowest(prediction: &Prediction) -> f64 {
    prediction.stage_millis().into_iter().fold(0.0, f64::max)
}

impl Chain {
    /// Each block that is not resident costs this many extra milliseconds, and its download counts.
    fn charge_moves(&mut self, room: &Room<'_>, millis: f64) {
        for worker in &mut self.workers {
            let Some(device) = room.device(worker.peer) else { continue };
            let mut moved = 0.0;
            for layer in self.range.start..self.range.end {
                let mut blocks = room.layers.blocks(LayerRange { start: layer, end: layer + 1 }).iter();
                moved += if blocks.all(|block| device.holds.contains(&block)) { 0.0 } else { millis };
                worker.cost[layer + 1 - self.range.start] += moved;
            }
            worker.missing = missing_millis(room, device)[self.range.start..=self.range.end].to_vec();
        }
    }
}
