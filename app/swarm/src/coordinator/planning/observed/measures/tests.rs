//! Stages, holders and messages that were measured in use.

use potluck_plan::{Arithmetic, BlockRange, ExpertHolder, ModelShape, Stage, WireType};
use potluck_planner::{Effort, Hedging, Sharing, forecast, predict};
use potluck_protocol::{ExpertPhase, ExpertWaits};

use super::holders::SLOW_DEVIATIONS;
use super::*;
use crate::examples;
use potluck_plan::Bytes;
use potluck_planner::Layers;
use potluck_planner::{AccessLink, Link, Links};
use potluck_protocol::HolderReport;

#[test]
fn messages_of_another_plan_were_not_measured() {
    let (from, to) = (PeerId([1; 16]), PeerId([2; 16]));
    let hops = [HopCost { from, to, latency_millis: 4.0, transfer_millis: 0.0 }];
    let mut measures = Measures { epoch: PlanEpoch(3), ..Measures::default() };
    assert_eq!(measures.hop_millis_of(PlanEpoch(3), &hops), [0.0], "nothing is measured");
    measures.paths.push(14.0);
    assert_eq!(measures.hop_millis_of(PlanEpoch(3), &hops), [14.0]);
    assert_eq!(measures.hop_millis_of(PlanEpoch(2), &hops), [0.0], "that was another plan");
}

fn room<'a>(shape: &'a ModelShape, layers: &'a Layers, links: &'a Links, devices: &'a [Device]) -> Room<'a> {
    Room {
        shape,
        layers,
        devices,
        links,
        coordinator: PeerId([9; 16]),
        sharing: Sharing::Fastest,
        ends: Default::default(),
        replicas: potluck_plan::Pooling::REPLICAS,
        context: 64,
        overhead: Bytes(0),
        wire: WireType::F32,
        expert_wire: WireType::F32,
        arithmetic: Arithmetic::Exact,
        epoch: PlanEpoch(1),
        hedging: Hedging::default(),
        effort: Effort::default(),
    }
}

#[test]
fn measurements_before_the_clock_has_settled_do_not_count() {
    let peer = PeerId([1; 16]);
    let shape = examples::shape(6, 0);
    let layers = Layers::from_shape(&shape, 64, WireType::F32);
    // 10 ms for the model, and three times as long after pauses.
    let cost = layers.decode_cost(BlockRange::new(0, 6));
    let mut device = Device::declared(peer, Bytes(1 << 40), cost * 1e2, 0.0);
    device.pauses = vec![(20.0, 3.0)];
    let link = Link { latency_millis: 10.0, bandwidth: 1e9 };
    let mut links = Links::default();
    links.set_access(peer, AccessLink { up: link, down: link });
    let plan = examples::plan(vec![Stage::new(StageId(0), peer, BlockRange::new(0, 6))]);
    let pass =
        |compute: f64| DecodePass { steps: 1, stage_millis: vec![compute], millis: compute + 20.0, is_first: false };
    let expected = |measures: &Measures| {
        let mut device = device.clone();
        if let Some(measure) = measures.peers.get(&peer) {
            measure.apply(&mut device);
        }
        predict(&room(&shape, &layers, &links, &[device]), &plan).stage_millis()[0]
    };
    let timed = room(&shape, &layers, &links, std::slice::from_ref(&device));
    let mut measures = Measures::default();
    let mut at = 0.0;
    for _ in 0..15 {
        at += 32.0;
        measures.learn(&timed, &plan, &pass(12.0), Millis(at));
    }
    assert!((expected(&measures) - 30.0).abs() < 2.0, "the clock is still high: {}", expected(&measures));
    let seen = measures.seen(&plan).map(|seen| (seen.stages, seen.network_millis));
    assert_eq!(seen, Some((vec![ObservedStage { millis: 12.0, is_settled: false }], 20.0)));
    for _ in 0..90 {
        at += 56.0;
        measures.learn(&timed, &plan, &pass(36.0), Millis(at));
    }
    assert!((expected(&measures) - 36.0).abs() < 2.0, "this is what later tokens take: {}", expected(&measures));
    let seen = measures.seen(&plan).map(|seen| (seen.stages, seen.network_millis));
    assert_eq!(seen, Some((vec![ObservedStage { millis: 36.0, is_settled: true }], 20.0)));
    assert_eq!(measures.seen(&Plan { epoch: PlanEpoch(2), ..plan.clone() }), None, "of this plan nothing was seen");
}

/// Plans with pooled experts teach as others do: stages by their own share, holders by their engines' times.
#[test]
fn holders_are_measured_by_the_calls_that_they_answer() {
    let (hub, holder) = (PeerId([1; 16]), PeerId([2; 16]));
    let shape = examples::shape(2, 8);
    let layers = Layers::from_shape(&shape, 64, WireType::F32);
    let device = |peer| Device::declared(peer, Bytes(1 << 40), 20_000.0, 1.0);
    let devices = [device(hub), device(holder), device(PeerId([3; 16]))];
    let link = Link { latency_millis: 5.0, bandwidth: 1e9 };
    let mut links = Links::default();
    [hub, holder].iter().for_each(|peer| links.set_access(*peer, AccessLink { up: link, down: link }));
    let mut stage = Stage::new(StageId(0), hub, BlockRange::new(0, 2));
    let holders = vec![vec![ExpertHolder::Peer(holder)]; 8];
    stage.remote = vec![RemoteExperts { block: potluck_plan::BlockIndex(1), holders }];
    let plan = examples::plan(vec![stage]);
    let room = room(&shape, &layers, &links, &devices);
    let mut measures = Measures::default();
    let report = |answers| HolderReport {
        slow_millis: 62.0,
        timeouts: 0,
        is_unhealthy: false,
        work: potluck_protocol::Work::default(),
        peer: holder,
        answers,
        round_trip_millis: 31.0,
        engine_millis: 9.0,
        experts: 2.0,
        hedges: 0,
        hedges_won: 0,
        open: 0,
    };
    // The second report says nothing new, and a guest has no stage to report of.
    for answers in [10, 10, 20, 30, 40] {
        measures.learn_holders(&room, &plan, hub, &[report(answers)]);
        measures.learn_holders(&room, &plan, PeerId([7; 16]), &[report(answers + 1)]);
    }
    let Answering { answers, way_millis, spread } = measures.holders[&(hub, holder)];
    assert_eq!((answers, way_millis), (40, 22.0), "of 31 ms the engine took 9");
    assert!((spread - 2f64.ln() / SLOW_DEVIATIONS).abs() < 1e-9, "one call in twenty takes twice as long: {spread}");
    // Neither does it believe what the stage says of itself, or of devices that hold nothing or are not there.
    let [guest, gone] = [PeerId([3; 16]), PeerId([4; 16])];
    for peer in [hub, guest, gone] {
        measures.learn_holders(&room, &plan, hub, &[HolderReport { peer, ..report(50) }]);
    }
    assert_eq!(measures.peers.keys().collect::<Vec<_>>(), [&holder]);
    assert_eq!(measures.holders.keys().collect::<Vec<_>>(), [&(hub, holder)]);
    // Two experts of 20 bytes in 9 ms instead of 3, of which a submit takes one.
    let known = measures.peers.get(&holder).map(|measure| (measure.speed().decode, measure.session_millis()));
    assert_eq!(known, Some((20.0 / 3.0, 3.0)), "all of it took three times as long");
    // 22 ms on the way instead of 20: a message takes a millisecond more than was assumed.
    assert!((measures.hop_millis() - HOP_MILLIS - 1.0).abs() < 0.1, "{}", measures.hop_millis());
    // The stage's own share: all but two experts of 20 bytes, besides the readback before its router's experts.
    let own = own_cost(&room, &plan, &plan.stages[0]);
    assert_eq!(own, layers.stage_decode(&plan, &plan.stages[0]) - 40.0);
    for _ in 0..8 {
        let pass = DecodePass { steps: 1, stage_millis: vec![22.0], millis: 60.0, is_first: false };
        measures.learn(&room, &plan, &pass, Millis(1e6));
    }
    let speed = measures.peers.get(&hub).map(|measure| measure.speed().decode).unwrap_or_default();
    assert!((speed - own / 20.0).abs() < 0.5, "22 ms without submit and readback: {speed}, not {}", own / 20.0);
    // What is left of a token are messages and experts. Reports of the stage tell them apart.
    let seen = measures.seen(&plan).map(|seen| (seen.token_millis(), seen.network_millis));
    assert!(seen.is_some_and(|(token, _)| (token - 60.0).abs() < 1e-9), "{seen:?}");
    let status = WorkerStatus {
        expert_waits: ExpertWaits { trips: 1.0, ..ExpertWaits::default() },
        expert_phases: vec![ExpertPhase { asked: 1, passes: 20, millis: 30.0 }],
        ..WorkerStatus::default()
    };
    measures.learn_waits(&plan, hub, &status);
    for _ in 0..SPEEDS {
        let pass = DecodePass { steps: 1, stage_millis: vec![22.0], millis: 60.0, is_first: false };
        measures.learn(&room, &plan, &pass, Millis(1e6));
    }
    let seen = measures.seen(&plan).map(|seen| (seen.experts_millis, seen.network_millis));
    assert_eq!(seen, Some((Some(30.0), 8.0)), "22 ms of the engine and 30 of 60 for experts");
    assert_eq!(forecast(&predict(&room, &plan), &measures.seen(&plan).unwrap_or_default()).token_millis, 60.0);
    let room = Room { devices: &devices[..1], ..room };
    measures.learn_holders(&room, &plan, hub, &[report(60)]);
    assert!(measures.holders.is_empty(), "the holder has left: {:?}", measures.holders);
}

/// A token waits for both stages' experts, and each of their devices idles while the other one waits.
#[test]
fn a_stage_waits_for_its_own_experts_alone() {
    let [first, second, holder] = [1, 2, 3].map(|peer| PeerId([peer; 16]));
    let shape = examples::shape(2, 8);
    let layers = Layers::from_shape(&shape, 64, WireType::F32);
    // A pause of 100 ms makes work three times as slow.
    let device = |peer| Device { pauses: vec![(100.0, 3.0)], ..Device::declared(peer, Bytes(1 << 40), 20_000.0, 0.0) };
    let devices = [first, second, holder].map(device);
    let links = Links::default();
    let stage = |index: u16, peer| {
        let holders = vec![vec![ExpertHolder::Peer(holder)]; 8];
        let remote = vec![RemoteExperts { block: potluck_plan::BlockIndex(index), holders }];
        Stage { remote, ..Stage::new(StageId(index), peer, BlockRange::new(index, index + 1)) }
    };
    let plan = examples::plan(vec![stage(0, first), stage(1, second)]);
    let room = room(&shape, &layers, &links, &devices);
    let mut measures = Measures::default();
    // Each engine takes 10 ms of a token's 100, experts of the first stage take 10 and those of the second one 30.
    let pass = DecodePass { steps: 1, stage_millis: vec![10.0, 10.0], millis: 100.0, is_first: false };
    measures.learn(&room, &plan, &pass, Millis(0.0));
    for (peer, millis) in [(first, 10.0), (second, 30.0)] {
        let status = WorkerStatus {
            expert_waits: ExpertWaits { trips: 1.0, ..ExpertWaits::default() },
            expert_phases: vec![ExpertPhase { asked: 1, passes: 20, millis }],
            ..WorkerStatus::default()
        };
        measures.learn_waits(&plan, peer, &status);
    }
    for token in 1..100 {
        measures.learn(&room, &plan, &pass, Millis(f64::from(token) * 100.0));
    }
    for (stage, pause) in plan.stages.iter().zip([80.0, 60.0]) {
        let slower = 1.0 + 2.0 * pause / 100.0;
        let speed = measures.peers[&stage.peer].speed().decode;
        let expected = own_cost(&room, &plan, stage) * slower / 10.0;
        assert!((speed / expected - 1.0).abs() < 1e-6, "{speed} instead of {expected}, after pauses of {pause} ms");
    }
    let seen = measures.seen(&plan).map(|seen| seen.network_millis);
    assert_eq!(seen, Some(40.0), "messages take what engines and all experts leave");
}
