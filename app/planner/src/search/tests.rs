//! The search against brute force, on random rooms.

use potluck_plan::{
    Arithmetic, BlockIndex, BlockShape, Bytes, Cuts, FeedForwardShape, KvCacheType, ModelId, ModelShape, PeerId,
    PlanEpoch, WireType,
};

mod ends;

use super::anneal::anneal;
use super::*;
use crate::room::paused_millis;
use crate::{AccessLink, Device, Hedging, Layers, Link, Links, Planned, Speed, plan};

/// Tie-breaks that the search adds: at most so many milliseconds in these rooms.
const TIES: f64 = 1e-3;

/// A random room, with everything it borrows.
struct Instance {
    shape: ModelShape,
    layers: Layers,
    devices: Vec<Device>,
    links: Links,
}

/// What an instance may have.
struct Bounds {
    devices: (usize, usize),
    blocks: (usize, usize),
}

const SMALL: Bounds = Bounds { devices: (1, 4), blocks: (1, 6) };

fn between(random: &mut Random, (least, most): (usize, usize)) -> usize {
    least + random.below(most - least + 1)
}

fn instance(random: &mut Random, bounds: &Bounds) -> Instance {
    let count = between(random, bounds.devices);
    let blocks = between(random, bounds.blocks);
    let block = |random: &mut Random| BlockShape {
        token_mixer: Bytes(20 + random.below(80) as u64),
        kv_cache_per_position: Bytes(random.below(5) as u64),
        kv_buffers: 2,
        state: Bytes::ZERO,
        feed_forward: FeedForwardShape::Dense { bytes: Bytes(random.below(100) as u64) },
    };
    let shape = ModelShape {
        model: ModelId([0; 32]),
        hidden: 8 << random.below(8),
        vocabulary: 8,
        embedding: Bytes(random.below(150) as u64),
        lm_head: Bytes(random.below(150) as u64),
        tied_lm_head: random.below(2) == 0,
        cuts: Cuts::Anywhere,
        kv_cache: KvCacheType::F32,
        blocks: (0..blocks).map(|_| block(random)).collect(),
    };
    let layers = Layers::from_shape(&shape, 4, WireType::F32);
    let all = layers.memory(layers.all()).0 as usize;
    let mut links = Links::default();
    let link =
        |random: &mut Random| Link { latency_millis: random.unit() * 20.0, bandwidth: 10.0 + random.unit() * 1_000.0 };
    let devices: Vec<Device> = (0..count as u8)
        .map(|id| {
            let peer = PeerId([id; 16]);
            if id > 0 {
                links.set_access(peer, AccessLink { up: link(random), down: link(random) });
            }
            let share = 0.2 + random.unit();
            let mut device = Device::declared(peer, Bytes((all as f64 * share) as u64), 0.0, random.unit() * 5.0);
            device.speed = Speed { decode: 1.0 + random.unit() * 60.0, prefill: 1.0 };
            device.download = 0.01 + random.unit();
            // Nothing has to be moved, so that no tie-break shows.
            device.holds = (0..blocks as u16).map(BlockIndex).collect();
            device
        })
        .collect();
    Instance { shape, layers, devices, links }
}

impl Instance {
    fn room(&self, sharing: Sharing) -> Room<'_> {
        Room {
            shape: &self.shape,
            layers: &self.layers,
            devices: &self.devices,
            links: &self.links,
            coordinator: PeerId([0; 16]),
            sharing,
            ends: Default::default(),
            replicas: potluck_plan::Pooling::REPLICAS,
            hedging: Hedging::default(),
            context: 4,
            overhead: Bytes(10),
            wire: WireType::F32,
            expert_wire: WireType::F32,
            arithmetic: Arithmetic::Exact,
            epoch: PlanEpoch(1),
            effort: Effort::default(),
        }
    }
}

/// A choice of the brute force: devices with how many blocks each takes.
type Choice = Vec<(usize, usize)>;

/// Every order of every set of devices with every partition.
fn all_choices(devices: usize, blocks: usize) -> Vec<Choice> {
    fn grow(choice: &mut Choice, devices: usize, left: usize, all: &mut Vec<Choice>) {
        if left == 0 {
            all.push(choice.clone());
        }
        for device in (0..devices).filter(|device| choice.iter().all(|(used, _)| used != device)).collect::<Vec<_>>() {
            for count in 1..=left {
                choice.push((device, count));
                grow(choice, devices, left - count, all);
                choice.pop();
            }
        }
    }
    let mut all = Vec::new();
    grow(&mut Vec::new(), devices, blocks, &mut all);
    all
}

/// Milliseconds of each stage, and of all messages, from the definition; `None` if it does not fit.
fn evaluate(instance: &Instance, choice: &Choice) -> Option<(Vec<f64>, f64)> {
    let shape = &instance.shape;
    let message = |from: PeerId, to: PeerId, bytes: u64| {
        if from == to {
            return 0.0;
        }
        let (up, down) = (instance.links.up(from), instance.links.down(to));
        up.latency_millis + bytes as f64 / up.bandwidth + down.latency_millis + bytes as f64 / down.bandwidth
    };
    let hidden = 48 + 4 * u64::from(shape.hidden);
    let coordinator = PeerId([0; 16]);
    let (mut at, mut block, mut messages, mut stages) = (coordinator, 0, 0.0, Vec::new());
    for (index, (device, count)) in choice.iter().enumerate() {
        let device = &instance.devices[*device];
        let (first, last) = (index == 0, index + 1 == choice.len());
        let range = &shape.blocks[block..block + count];
        let weights: u64 = range.iter().map(|block| block.weights().0).sum();
        let state: u64 = range.iter().map(|block| block.kv_cache_per_position.0 * 4).sum();
        let embedding = if first { shape.embedding.0 } else { 0 };
        let head = if last && !(first && shape.tied_lm_head) { shape.lm_head.0 } else { 0 };
        if weights + state + embedding + head + 10 > device.budget.0 {
            return None;
        }
        let reads = weights + if last { shape.lm_head.0 } else { 0 };
        stages.push(device.session_millis + reads as f64 / device.speed.decode);
        messages += message(at, device.peer, if first { 52 } else { hidden });
        (at, block) = (device.peer, block + count);
    }
    Some((stages, messages + message(at, coordinator, 64)))
}

fn total((stages, messages): &(Vec<f64>, f64)) -> f64 {
    stages.iter().sum::<f64>() + messages
}

fn slowest(stages: &[f64]) -> f64 {
    stages.iter().copied().fold(0.0, f64::max)
}

#[test]
fn the_fastest_plan_is_that_of_brute_force_in_ten_thousand_rooms() {
    let mut random = Random::new(1);
    let mut feasible = 0;
    for number in 0..10_000 {
        let mut instance = instance(&mut random, &SMALL);
        let mut choices = all_choices(instance.devices.len(), instance.shape.blocks.len());
        if number % 10 == 9 {
            instance.shape.cuts = Cuts::Nowhere;
            choices.retain(|choice| choice.len() == 1);
        }
        let fitting = choices.iter().filter_map(|choice| evaluate(&instance, choice));
        let expected = fitting.map(|found| total(&found)).min_by(f64::total_cmp);
        let found = plan(&instance.room(Sharing::Fastest));
        match (expected, found) {
            (None, Err(_)) => {}
            (Some(expected), Ok(Planned { plan, prediction, .. })) => {
                assert_eq!(plan.validate(&instance.shape), Ok(()), "room {number}");
                let millis = prediction.token_millis;
                assert!((millis - expected).abs() < TIES, "room {number}: {millis} instead of {expected}");
                feasible += 1;
            }
            (expected, found) => panic!("room {number}: brute force says {expected:?}, the planner {found:?}"),
        }
    }
    assert!((5_000..9_900).contains(&feasible), "{feasible} rooms had a plan: they must not be all alike");
}

/// Pauses that slow a device down by up to five times; nothing is known of every fourth one.
fn pauses(random: &mut Random) -> Vec<(f64, f64)> {
    let count = random.below(4);
    let (mut at, mut factor) = (0.0, 1.0);
    let points = (0..count).map(|_| {
        at += 1.0 + random.unit() * 30.0;
        factor += random.unit() * 1.3;
        (at, factor)
    });
    points.collect()
}

/// Milliseconds at which a choice settles: from work without pauses on, each token has the pauses of the one before.
fn settled_millis(instance: &Instance, choice: &Choice, (stages, messages): &(Vec<f64>, f64)) -> f64 {
    let devices = choice.iter().map(|(device, _)| &instance.devices[*device].pauses);
    let stages: Vec<_> = devices.zip(stages).collect();
    let mut token = total(&(stages.iter().map(|(_, busy)| **busy).collect(), *messages));
    for _ in 0..10_000 {
        let next = messages + stages.iter().map(|(pauses, busy)| paused_millis(pauses, **busy, token)).sum::<f64>();
        if next <= token * (1.0 + 1e-10) {
            break;
        }
        token = next;
    }
    token
}

#[test]
fn what_pauses_cost_is_part_of_what_the_search_minimises() {
    let mut random = Random::new(8);
    let (mut compared, mut others) = (0, 0);
    for number in 0..2_000 {
        let mut instance = instance(&mut random, &Bounds { devices: (2, 4), blocks: (2, 6) });
        instance.devices.iter_mut().for_each(|device| device.pauses = pauses(&mut random));
        let choices = all_choices(instance.devices.len(), instance.shape.blocks.len());
        let scored = choices.iter().filter_map(|choice| {
            let busy = evaluate(&instance, choice)?;
            Some((settled_millis(&instance, choice, &busy), total(&busy)))
        });
        let scored: Vec<(f64, f64)> = scored.collect();
        let Some(expected) = scored.iter().map(|(steady_millis, _)| *steady_millis).min_by(f64::total_cmp) else {
            continue;
        };
        let found = plan(&instance.room(Sharing::Fastest)).expect("brute force found one");
        let millis = found.prediction.token_millis;
        assert!((millis - expected).abs() < TIES, "room {number}: {millis} instead of {expected}");
        let without = scored.iter().min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0.0, |(steady_millis, _)| *steady_millis);
        others += u32::from(without > expected + TIES);
        compared += 1;
    }
    println!("{compared} rooms, in {others} of them pauses change what is best");
    assert!(compared > 1_000 && others > compared / 20, "{compared} rooms compared, pauses mattered in {others}");
}

#[test]
fn in_a_large_room_pauses_are_counted_as_well_as_time_allows() {
    let mut random = Random::new(9);
    let (mut with, mut without) = (0.0, 0.0);
    for _ in 0..8 {
        let mut instance = instance(&mut random, &Bounds { devices: (20, 20), blocks: (40, 40) });
        let ignorant = plan(&instance.room(Sharing::Fastest)).expect("it fits").plan;
        instance.devices.iter_mut().for_each(|device| device.pauses = pauses(&mut random));
        let room = instance.room(Sharing::Fastest);
        let found = plan(&room).expect("it fits").prediction.token_millis;
        let before = crate::predict(&room, &ignorant).token_millis;
        assert!(found <= before * 1.000_001, "{found} ms, ignoring pauses {before} ms");
        (with, without) = (with + found, without + before);
    }
    println!("large rooms: {with:.0} ms with pauses counted, {without:.0} ms without");
    assert!(with < 0.98 * without, "{with} against {without}");
}

#[test]
fn the_dynamic_program_over_an_order_is_brute_force_over_its_cuts() {
    let mut random = Random::new(2);
    for number in 0..2_000 {
        let instance = instance(&mut random, &SMALL);
        let room = instance.room(Sharing::Fastest);
        let chain = Chain::new(&room);
        let mut order: Vec<usize> = (0..instance.devices.len()).collect();
        random.shuffle(&mut order);
        let place = |device: usize| order.iter().position(|other| *other == device);
        let in_order = |choice: &Choice| choice.windows(2).all(|two| place(two[0].0) < place(two[1].0));
        let choices = all_choices(instance.devices.len(), instance.shape.blocks.len());
        for participation in [Participation::Any, Participation::All] {
            let fitting = choices.iter().filter(|choice| in_order(choice));
            let fitting = fitting.filter(|choice| participation == Participation::Any || choice.len() == order.len());
            let fitting = fitting.filter_map(|choice| evaluate(&instance, choice));
            let expected = fitting.map(|found| total(&found)).min_by(f64::total_cmp);
            let found = Program::new(&chain, None).partition(&order, participation).map(|partition| partition.millis);
            let equal = match (expected, found) {
                (Some(expected), Some(found)) => (expected - found).abs() < TIES,
                (expected, found) => expected.is_none() && found.is_none(),
            };
            assert!(equal, "room {number}, {participation:?}: {found:?} instead of {expected:?}");
        }
    }
}

#[test]
fn everyone_takes_part_with_the_slowest_stage_as_quick_as_can_be() {
    let mut random = Random::new(3);
    let mut compared = 0;
    for number in 0..2_000 {
        let instance = instance(&mut random, &SMALL);
        let count = instance.devices.len();
        let choices = all_choices(count, instance.shape.blocks.len());
        let fitting = choices.iter().filter(|choice| choice.len() == count);
        let fitting = fitting.filter_map(|choice| evaluate(&instance, choice));
        let expected = fitting.map(|found| (slowest(&found.0), total(&found)));
        let Some(expected) = expected.min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))) else { continue };
        let found = plan(&instance.room(Sharing::Everyone)).expect("brute force found one");
        assert_eq!(found.plan.peers().len(), count, "room {number}: everyone must take part");
        let found = (slowest(&found.prediction.stage_millis()), found.prediction.token_millis);
        assert!((found.0 - expected.0).abs() < TIES, "room {number}: slowest {found:?} instead of {expected:?}");
        assert!(found.1 < expected.1 + TIES, "room {number}: {found:?} instead of {expected:?}");
        compared += 1;
    }
    assert!(compared > 500, "{compared} rooms compared");
}

/// The cheapest partition over all orders, one by one (Heap's algorithm).
fn all_orders(program: &mut Program<'_>, count: usize) -> Option<f64> {
    let mut order: Vec<usize> = (0..count).collect();
    let mut counters = vec![0; count];
    let mut best = program.partition(&order, Participation::Any).map(|partition| partition.millis);
    let mut at = 0;
    while at < count {
        if counters[at] < at {
            order.swap(if at % 2 == 0 { 0 } else { counters[at] }, at);
            let millis = program.partition(&order, Participation::Any).map(|partition| partition.millis);
            best = [best, millis].into_iter().flatten().min_by(f64::total_cmp);
            counters[at] += 1;
            at = 0;
        } else {
            counters[at] = 0;
            at += 1;
        }
    }
    best
}

#[test]
fn annealing_is_within_two_percent_of_all_orders_at_the_median() {
    let mut random = Random::new(5);
    let mut excesses = Vec::new();
    while excesses.len() < 31 {
        let instance = instance(&mut random, &Bounds { devices: (3, 8), blocks: (6, 24) });
        let room = instance.room(Sharing::Fastest);
        let chain = Chain::new(&room);
        let mut program = Program::new(&chain, None);
        let Some(expected) = all_orders(&mut program, instance.devices.len()) else { continue };
        let exact = best_partition(&room, &chain).expect("there is a partition").millis;
        assert!((exact - expected).abs() < 1e-6, "the search over sets: {exact} instead of {expected}");
        let mut order: Vec<usize> = (0..instance.devices.len()).collect();
        random.shuffle(&mut order);
        let found = anneal(&mut program, &mut order, Participation::Any, &mut random, u64::MAX);
        excesses.push(found.map_or(f64::INFINITY, |partition| partition.millis / expected - 1.0));
    }
    excesses.sort_by(f64::total_cmp);
    let (median, worst) = (excesses[excesses.len() / 2], excesses[excesses.len() - 1]);
    println!("annealing against all orders: median {:.3}%, worst {:.3}%", 100.0 * median, 100.0 * worst);
    assert!(median <= 0.02, "median excess {median}");
}

#[test]
fn equal_devices_are_searched_as_one_kind() {
    // Twenty devices of two kinds are 11 × 11 sets; as twenty kinds they would be a million.
    let mut random = Random::new(6);
    let mut instance = instance(&mut random, &Bounds { devices: (2, 2), blocks: (30, 30) });
    let kinds = instance.devices.clone();
    instance.links = Links::default();
    instance.devices =
        (0..20).map(|id| Device { peer: PeerId([id + 1; 16]), ..kinds[usize::from(id % 2)].clone() }).collect();
    for device in &mut instance.devices {
        device.budget = Bytes(instance.layers.memory(instance.layers.all()).0 / 5);
        instance.links.set_access(device.peer, AccessLink::latency(3.0));
    }
    let room = instance.room(Sharing::Fastest);
    let chain = Chain::new(&room);
    assert_eq!(chain.classes().len(), 2);
    let few = Effort { steps: 1_000_000, seed: 1 };
    let found = plan(&Room { effort: few, ..room.clone() }).expect("it fits").prediction.token_millis;
    // An order of all members of the quicker kind first is as good as any.
    let mut program = Program::new(&chain, None);
    let mut order: Vec<usize> = (0..20).collect();
    let annealed = anneal(&mut program, &mut order, Participation::Any, &mut random, u64::MAX).expect("it fits").millis;
    assert!(found <= annealed + TIES, "{found} against {annealed}");
}

#[test]
fn the_same_seed_gives_the_same_plan_in_a_large_room() {
    let mut random = Random::new(7);
    let instance = instance(&mut random, &Bounds { devices: (40, 40), blocks: (40, 40) });
    let room = instance.room(Sharing::Fastest);
    let first = plan(&room).expect("it fits");
    assert_eq!(first.plan, plan(&room).expect("it fits").plan);
    assert_eq!(first.plan.validate(&instance.shape), Ok(()));
}
