//! Experts on other peers: a few stages keep all token mixers, and some of their experts live elsewhere (moex.txt 3). A
//! round trip per block costs more than a hop per stage, so this wins where whole blocks do not fit. The same prediction
//! compares both.

mod board;
mod changes;
mod comparison;
mod everyone;
#[cfg(test)]
pub(crate) mod fixtures;
mod groups;
mod joined;
pub(crate) mod placement;
mod spread;

use potluck_plan::{BlockIndex, BlockRange, BlockShape, Bytes, Ends, PeerId, Plan, Stage};

use crate::cost::predict;
use crate::layers::Layers;
use crate::planned::best_layers;
use crate::search::Chain;
use crate::{Device, Room, Sharing, placement as plans};

use spread::{Draft, Pool, Reach, Spread};

pub use comparison::{Comparison, compare};
pub use groups::repair_together;
pub use joined::plan_joining;
pub use placement::{Candidate, ExpertKey, Holders, Lender, holders};
pub use spread::lenders_left;

/// How many of the devices with the most memory are tried as the stage that keeps the token mixers.
const HUBS: usize = 8;
/// How many of them are tried in pairs, where none can alone.
const PAIRED_HUBS: usize = 4;
/// How many plans are predicted.
const TRIED: usize = 16;
/// How many of the best ones are predicted with how much answers vary.
const FINALISTS: usize = 3;
/// On how many devices a block's experts are tried to lie together, for the best of them.
const HOLDERS_A_BLOCK: [usize; 4] = [1, 2, 4, 8];

/// The better one of a plan by layers and the best with experts elsewhere.
pub(crate) fn better(room: &Room<'_>, layers: impl FnOnce() -> Option<Vec<Stage>>) -> Option<Vec<Stage>> {
    if !has_experts(room) {
        return layers();
    }
    if room.sharing == Sharing::Experts {
        return spread_out(room, layers);
    }
    let layers = layers();
    if let (Sharing::Everyone, Some(stages)) = (room.sharing, layers.as_ref()) {
        return Some(everyone::with_experts(room, stages.clone()));
    }
    let pool = Pool::new(room);
    let limit = layers.as_ref().map_or(f64::INFINITY, |layers| millis(room, layers));
    let pooled = best_of(&pool, &drafts(&pool, layers.is_none()), limit).filter(|best| best.millis < limit);
    pooled.map(|best| best.stages).or(layers)
}

/// The best plan with experts elsewhere, if there is any; else by layers.
fn spread_out(room: &Room<'_>, layers: impl FnOnce() -> Option<Vec<Stage>>) -> Option<Vec<Stage>> {
    let pool = Pool::new(room);
    let on_one_stage = drafts(&pool, false);
    if let Some(best) = best_of(&pool, &on_one_stage, f64::INFINITY) {
        return Some(best.stages);
    }
    let layers = layers();
    let on_several = || best_of(&pool, &drafts(&pool, true), f64::INFINITY).map(|best| best.stages);
    if on_one_stage.is_empty() && layers.is_none() { on_several() } else { layers }
}

/// The best plan with experts elsewhere.
struct Best {
    stages: Vec<Stage>,
    /// Milliseconds a token.
    millis: f64,
}

/// The best plan with experts elsewhere; where it takes `limit` milliseconds a token or more, another may be better.
fn best_of(pool: &Pool<'_, '_>, drafts: &[Draft<'_>], limit: f64) -> Option<Best> {
    let varies = pool.room.links.varies();
    let ranked = ranked(pool, drafts, limit);
    let finalists = ranked.into_iter().take(if varies { FINALISTS } else { 1 });
    let finalists = finalists.map(|(draft, spread)| (draft, spread.with_replicas(pool))).collect();
    let (mut millis, draft, mut best) = quickest(pool, drafts, finalists, f64::INFINITY)?;
    // Few devices are asked sooner than many, and the slowest of few answers comes sooner where answers vary.
    let together = HOLDERS_A_BLOCK.iter().filter_map(|holders| {
        let spread = drafts[draft].spread(pool, Reach::Together(*holders))?.with_replicas(pool);
        // Who spreads the experts wants everybody to take part.
        let has_all = pool.room.sharing != Sharing::Experts || spread.holders() >= best.holders();
        has_all.then_some((draft, spread))
    });
    let together = quickest(pool, drafts, together.collect(), millis * drafts[draft].handicap);
    if let Some((less, _, together)) = together.filter(|(less, ..)| *less < millis) {
        (millis, best) = (less, together);
    }
    Some(Best { stages: best.into_stages(pool), millis })
}

/// The first of the quickest of these, with its milliseconds a token; it need not be found if it takes `limit` or more. Each has
/// the handicap of its draft.
fn quickest<'a>(
    pool: &Pool<'_, '_>,
    drafts: &[Draft<'_>],
    candidates: Vec<(usize, Spread<'a>)>,
    mut limit: f64,
) -> Option<(f64, usize, Spread<'a>)> {
    let estimate = |(place, (draft, spread)): (usize, (usize, Spread<'a>))| {
        let estimate = spread.estimate(pool, pool.room);
        (estimate.at_least() * drafts[draft].handicap, place, draft, spread, estimate)
    };
    let mut estimates: Vec<_> = candidates.into_iter().enumerate().map(estimate).collect();
    // The integrals take longest: those of the most promising first spare those of most others.
    estimates.sort_by(|a, b| a.0.total_cmp(&b.0));
    // With its handicap, and its place among the candidates.
    let mut least: Option<(f64, usize)> = None;
    let mut best = None;
    for (at_least, place, draft, spread, estimate) in estimates {
        if at_least > limit {
            break;
        }
        let millis = estimate.predicted(pool.room).token_millis;
        let compared = millis * drafts[draft].handicap;
        if least.is_none_or(|least| (compared, place) < least) {
            limit = limit.min(compared);
            least = Some((compared, place));
            best = Some((millis, draft, spread));
        }
    }
    best
}

/// The drafts with one holder for each expert, the quickest first as if answers did not vary.
fn ranked<'a>(pool: &Pool<'_, 'a>, drafts: &[Draft<'a>], limit: f64) -> Vec<(usize, Spread<'a>)> {
    let links = pool.room.links.steady();
    let steady = Room { links: &links, ..pool.room.clone() };
    let mut ranked: Vec<(f64, usize, Spread<'_>)> = Vec::new();
    let mut least = limit;
    for (index, draft) in drafts.iter().enumerate() {
        if ranked.len() >= TRIED || draft.bound * draft.handicap >= least {
            break;
        }
        for reach in [Reach::Everybody, Reach::Quickest] {
            let Some(spread) = draft.spread(pool, reach) else { continue };
            let millis = draft.handicap * spread.estimate(pool, &steady).predicted(&steady).token_millis;
            least = least.min(millis);
            ranked.push((millis, index, spread));
        }
    }
    ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
    ranked.into_iter().map(|(_, index, spread)| (index, spread)).collect()
}

/// Ways to keep the token mixers, the most promising first. More than one stage is tried only if it must be.
fn drafts<'a>(pool: &Pool<'_, 'a>, must: bool) -> Vec<Draft<'a>> {
    let hubs = hubs(pool.room);
    let blocks = pool.room.shape.all_blocks();
    let mut drafts: Vec<Draft<'_>> = hubs.iter().filter_map(|hub| Draft::new(pool, vec![(*hub, blocks)])).collect();
    if drafts.is_empty() && must {
        drafts = paired_hubs(pool, &hubs);
    }
    // The host would have two of the stages, each with its experts elsewhere: whole blocks on others do instead.
    if drafts.is_empty() && must && pool.room.ends == Ends::Anywhere {
        drafts.extend(hub_chain(pool));
    }
    drafts.sort_by(|a, b| (a.bound * a.handicap).total_cmp(&(b.bound * b.handicap)));
    drafts
}

/// What all devices but a stage's lend for its experts.
pub(crate) fn lenders(room: &Room<'_>, hub: &Device) -> Vec<Lender> {
    spread::lenders(room, hub, &[hub.peer].into())
}

/// Milliseconds of the round trip to experts on this device, from the stage to which it is nearest; `None` if it has no
/// memory for one.
pub(crate) fn round_trip_millis(room: &Room<'_>, plan: &Plan, peer: PeerId) -> Option<f64> {
    let device = room.device(peer)?;
    let smallest = room.shape.blocks.iter().map(BlockShape::expert_bytes).filter(|bytes| *bytes > Bytes::ZERO).min()?;
    if device.budget.saturating_sub(room.overhead) < smallest {
        return None;
    }
    let stages = plan.stages.iter().filter_map(|stage| room.device(stage.peer));
    stages.map(|hub| hub.sync_millis + spread::answer_millis(room, hub, device)).min_by(f64::total_cmp)
}

pub(crate) fn has_experts(room: &Room<'_>) -> bool {
    room.shape.blocks.iter().any(|block| block.expert_count() > 0)
}

fn millis(room: &Room<'_>, stages: &[Stage]) -> f64 {
    predict(room, &plans::plan(room, stages.to_vec())).token_millis
}

/// The devices with the largest budgets that may have all blocks; before their equals those that have one, then the coordinator.
fn hubs<'a>(room: &Room<'a>) -> Vec<&'a Device> {
    let mut hubs: Vec<&Device> = room.devices.iter().filter(|device| room.may_have_all(device)).collect();
    hubs.sort_by_key(|device| {
        let is_other = device.peer != room.coordinator;
        (std::cmp::Reverse(device.budget), device.active.is_empty(), is_other, device.peer)
    });
    hubs.truncate(HUBS);
    hubs
}

/// Two stages with the token mixers, where no device has memory for all of them.
fn paired_hubs<'a>(pool: &Pool<'_, 'a>, hubs: &[&'a Device]) -> Vec<Draft<'a>> {
    let room = pool.room;
    let end = room.shape.all_blocks().end;
    let paired = &hubs[..hubs.len().min(PAIRED_HUBS)];
    let pairs = paired.iter().flat_map(|first| paired.iter().map(move |second| (*first, *second)));
    let different = pairs.filter(|(first, second)| first.peer != second.peer);
    let may_cut = |at: &u16| room.shape.may_cut_before(BlockIndex(*at));
    let cuts = different.flat_map(|pair| (1..end).filter(may_cut).map(move |at| (pair, at)));
    let halves = |at| (BlockRange::new(0, at), BlockRange::new(at, end));
    cuts.filter_map(|((first, second), at)| {
        let (start, rest) = halves(at);
        Draft::new(pool, vec![(first, start), (second, rest)])
    })
    .collect()
}

/// As many stages as the token mixers need, found by the search over layers as if blocks had no experts.
fn hub_chain<'a>(pool: &Pool<'_, 'a>) -> Option<Draft<'a>> {
    let room = pool.room;
    let mut layers: Vec<_> = room.layers.iter().copied().collect();
    for (layer, block) in layers.iter_mut().skip(1).zip(&room.shape.blocks) {
        let experts = block.weights().saturating_sub(block.without_experts());
        layer.memory = layer.memory.saturating_sub(experts);
    }
    let mixers = Layers::new(layers, room.layers.tied(room.layers.all()));
    let fastest = Room { layers: &mixers, sharing: Sharing::Fastest, ..room.clone() };
    let stages = best_layers(&fastest, Chain::new(&fastest))?;
    let hubs: Option<Vec<_>> = stages
        .iter()
        .map(|stage| Some((room.devices.iter().find(|device| device.peer == stage.peer)?, stage.blocks)))
        .collect();
    Draft::new(pool, hubs?)
}

#[cfg(test)]
mod tests {
    use potluck_plan::WireType;
    use potluck_plan::random::Random;

    use super::*;
    use crate::{AccessLink, Hedging, Link, Links};

    /// Devices with memory for one of two blocks' experts each, whose answers vary; some rest while a token is elsewhere.
    fn devices(random: &mut Random, links: &mut Links) -> Vec<Device> {
        let link = |random: &mut Random| Link { latency_millis: 0.5 + 4.0 * random.unit(), bandwidth: 10.0 };
        (0..4 + random.below(4) as u8)
            .map(|id| {
                let peer = PeerId([id; 16]);
                links.set_access(peer, AccessLink { up: link(random), down: link(random) });
                links.set_spread(peer, 0.1 + 0.5 * random.unit());
                let mut device = Device::declared(peer, Bytes(700 + random.below(900) as u64), 0.0, random.unit());
                device.speed.decode = 50.0 * (0.3 + random.unit());
                device
            })
            .collect()
    }

    #[test]
    fn no_plan_is_left_out_that_is_quicker_than_the_one_found() {
        let (mut random, mut compared) = (Random::new(3), 0);
        for seed in 0..40 {
            let shape = fixtures::shape(2, 8, 2);
            let layers = Layers::from_shape(&shape, 10, WireType::F32);
            let mut links = Links::default();
            let devices = devices(&mut random, &mut links);
            let hedging = [Hedging::Off, Hedging::Copies(2), Hedging::Adaptive][seed % 3];
            let room = Room {
                sharing: Sharing::Experts,
                replicas: 2,
                hedging,
                ..fixtures::room(&shape, &layers, &devices, &links)
            };
            let pool = Pool::new(&room);
            let candidates = || {
                let drafts = drafts(&pool, true);
                let spreads = drafts.iter().filter_map(|draft| draft.spread(&pool, Reach::Everybody));
                let spreads = spreads.map(|spread| spread.with_replicas(&pool));
                spreads.enumerate().collect::<Vec<_>>()
            };
            let all: Vec<f64> = candidates()
                .iter()
                .map(|(place, spread)| {
                    let at_least = spread.estimate(&pool, &room).at_least();
                    let millis = spread.estimate(&pool, &room).predicted(&room).token_millis;
                    assert!(at_least <= millis, "seed {seed}, candidate {place}: {at_least} is no bound of {millis}");
                    millis
                })
                .collect();
            compared += all.len();
            let found = quickest(&pool, &drafts(&pool, true), candidates(), f64::INFINITY).map(|(millis, ..)| millis);
            assert_eq!(found, all.into_iter().min_by(f64::total_cmp), "seed {seed}");
        }
        assert!(compared > 100, "only {compared} candidates were compared");
    }
}
