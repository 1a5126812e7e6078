//! A holder of experts that is told to load others while its plan goes on.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use potluck_plan::{
    BlockIndex, BlockRange, ExpertHolder, ExpertId, KernelClass, Outcome, RemoteExperts, Stage, StageId, Ticket,
    WireType,
};
use potluck_protocol::{Hedging, ModelSource};

use super::*;
use crate::RelayRoute;
use crate::examples;
use crate::members::Members;
use crate::outbox::Outbox;

const HOST: PeerId = PeerId([1; 16]);
const ME: PeerId = PeerId([2; 16]);
const EPOCH: PlanEpoch = PlanEpoch(4);
const BLOCK: BlockIndex = BlockIndex(0);

/// A device that lends memory, and what reaches the host.
fn worker() -> (Worker, EventContext) {
    let mut out = Outbox::new(ME);
    out.set_route(HOST, Some(RelayRoute(1)));
    let mut cx = EventContext {
        now: Millis(0.0),
        members: Members::new(ME),
        holders: crate::experts::Holders::default(),
        hints: Default::default(),
        out,
    };
    let mut worker = Worker::default();
    lend(&mut worker, &mut cx);
    (worker, cx)
}

fn lend(worker: &mut Worker, cx: &mut EventContext) {
    let contribution =
        Contribution { budget: Bytes(1_000), binding: Bytes(u64::MAX), bandwidth: 1.0, sync_millis: 1.0 };
    worker.contribute(contribution, cx);
}

/// The host has a stage and asks this device to hold these experts.
fn order(experts: &[u16]) -> Prepare {
    let mut stage = Stage::new(StageId(0), HOST, BlockRange::new(0, 1));
    let holder = |expert| {
        if experts.contains(&expert) {
            vec![ExpertHolder::Own, ExpertHolder::Peer(ME)]
        } else {
            vec![ExpertHolder::Own]
        }
    };
    stage.remote = vec![RemoteExperts { block: BLOCK, holders: (0..8).map(holder).collect() }];
    let shape = examples::shape(1, 8);
    let plan = Plan { epoch: EPOCH, model: shape.model, kv_cache: shape.kv_cache, ..examples::plan(vec![stage]) };
    let model = ModelCard {
        id: shape.model,
        source: ModelSource::Relay { name: String::new() },
        name: String::new(),
        architecture: String::new(),
        quantization: String::new(),
        bytes: Bytes::ZERO,
        parameters: 0,
        active_parameters: 0,
        blocks: 1,
        experts: 8,
        context: 64,
        licence: String::new(),
    };
    Prepare { plan, model, shape, overhead: Bytes::ZERO, keep: None, hedging: Hedging::Off, spot_checks: 0.0 }
}

/// Which experts are loaded, if any are, and whether the host was told that they are there.
fn load_and_answer(cx: &mut EventContext) -> (Option<Vec<WeightUnit>>, bool) {
    let actions = std::mem::take(&mut cx.out.actions);
    let load = |action: &Action| match action {
        Action::Load(load) => Some(load.units.clone()),
        _ => None,
    };
    let is_prepared = |action: &Action| matches!(action, Action::Send { frame: Frame::Prepared(EPOCH), .. });
    (actions.iter().find_map(load), actions.iter().any(is_prepared))
}

fn units(experts: &[u16]) -> Vec<WeightUnit> {
    experts.iter().map(|expert| WeightUnit::Expert(BLOCK, ExpertId(*expert))).collect()
}

/// It loads these experts and switches to the plan.
fn hold(worker: &mut Worker, experts: &[u16], cx: &mut EventContext) {
    worker.prepare(HOST, order(experts), cx);
    worker.loaded(EPOCH, cx);
    worker.commit(HOST, EPOCH, cx);
    cx.out.actions.clear();
}

/// It was struck off while it was away, and gets another order.
#[test]
fn other_experts_of_the_same_plan_are_loaded_before_the_host_is_told() {
    let (mut worker, mut cx) = worker();
    hold(&mut worker, &[0, 1], &mut cx);
    worker.prepare(HOST, order(&[0]), &mut cx);
    assert_eq!(load_and_answer(&mut cx), (None, true), "it is there");
    worker.prepare(HOST, order(&[2, 3]), &mut cx);
    assert_eq!(load_and_answer(&mut cx), (Some(units(&[2, 3])), false));
    worker.prepare(HOST, order(&[2, 3]), &mut cx);
    assert_eq!(load_and_answer(&mut cx), (None, false), "it is on its way");
    worker.loaded(EPOCH, &mut cx);
    assert_eq!(load_and_answer(&mut cx), (None, true));
}

/// The ticket of the engine's work for a call.
fn called(worker: &mut Worker, expert: u16, cx: &mut EventContext) -> Ticket {
    let (rows, normed) = (vec![vec![ExpertId(expert)]], vec![0.5; 2]);
    let (class, wire) = (KernelClass::Decode, WireType::F32);
    worker.expert_call(HOST, ExpertCall { epoch: EPOCH, call: 1, block: BLOCK, class, rows, wire, normed }, cx);
    let ticket = |action| match action {
        Action::Compute(work) => Some(work.ticket),
        _ => None,
    };
    std::mem::take(&mut cx.out.actions).into_iter().find_map(ticket).unwrap()
}

#[test]
fn a_late_result_is_never_another_works() {
    let (mut worker, mut cx) = worker();
    hold(&mut worker, &[0], &mut cx);
    let first = called(&mut worker, 0, &mut cx);
    hold(&mut worker, &[1], &mut cx);
    let second = called(&mut worker, 1, &mut cx);
    worker.stop(&mut cx);
    lend(&mut worker, &mut cx);
    hold(&mut worker, &[2], &mut cx);
    let third = called(&mut worker, 2, &mut cx);
    let computed = |ticket| Computed { ticket, outcome: Outcome::ExpertOutputs(vec![1.0; 2]), millis: 1.0 };
    for late in [first, second] {
        worker.computed(computed(late), &mut cx);
        assert!(cx.out.actions.is_empty(), "{late:?} was dropped, and {third:?} is waited for");
    }
    worker.computed(computed(third), &mut cx);
    assert!(matches!(cx.out.actions[..], [Action::Send { frame: Frame::ExpertResult(_), .. }]));
}
