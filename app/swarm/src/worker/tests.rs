//! Plans on a device: stages that others send work to, true or not, and holders of experts that are told to load others.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;

use potluck_plan::{
    BlockIndex, BlockRange, ExpertHolder, ExpertId, KernelClass, LogitBias, Outcome, Position, RemoteExperts, Stage,
    StageId, Task, Ticket, WireType, Work,
};
use potluck_protocol::{Hedging, ModelSource, PassId, StageFault};

use super::*;
use crate::RelayRoute;
use crate::examples;
use crate::members::Members;
use crate::outbox::Outbox;

const HOST: PeerId = PeerId([1; 16]);
const ME: PeerId = PeerId([2; 16]);
const EPOCH: PlanEpoch = PlanEpoch(4);
const BLOCK: BlockIndex = BlockIndex(0);
const LIAR: PeerId = PeerId([3; 16]);
const HONEST: PeerId = PeerId([4; 16]);
/// Of the plan that is prepared beside the first one.
const NEXT: PlanEpoch = PlanEpoch(5);

/// A device that lends memory, and what reaches the host.
fn worker() -> (Worker, EventContext) {
    let mut out = Outbox::new(ME);
    out.set_route(HOST, Some(RelayRoute(1)));
    let mut cx = EventContext {
        now: Millis(0.0),
        members: Members::new(ME),
        holders: crate::experts::Holders::default(),
        hints: Default::default(),
        kv_cache: Default::default(),
        biases: Default::default(),
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

/// A plan in which this device has the last of three blocks, and another one the block before.
fn last_stage_behind(before: PeerId, epoch: PlanEpoch, keep: Option<PlanEpoch>) -> Prepare {
    let stage = |id: u16, peer| Stage::new(StageId(id), peer, BlockRange::new(id, id + 1));
    let shape = examples::shape(3, 0);
    let stages = vec![stage(0, HOST), stage(1, before), stage(2, ME)];
    let plan = Plan { epoch, model: shape.model, kv_cache: shape.kv_cache, context: 256, ..examples::plan(stages) };
    Prepare { plan, shape, keep, ..order(&[]) }
}

/// A chunk of one token for that stage.
fn token(epoch: PlanEpoch, conversation: u32, pass: u64, base: u32, live: &[u32]) -> Forward {
    Forward {
        epoch,
        stage: StageId(2),
        pass: PassId(pass),
        live: live.iter().map(|live| ConversationId(*live)).collect(),
        conversation: ConversationId(conversation),
        base: Position(base),
        class: KernelClass::Decode,
        count: 1,
        tokens: Vec::new(),
        further_steps: 0,
        sampling: None,
        lm_head: None,
        bias: LogitBias::default(),
        allowed: Vec::new(),
        stage_millis: Vec::new(),
        wire: WireType::F32,
        hidden: vec![0.5; 2],
    }
}

/// Chunks that the engine got, and faults that the host was told.
fn computed_and_faults(worker: &mut Worker, cx: &mut EventContext) -> (usize, Vec<StageFaultKind>) {
    worker.start(cx);
    let actions = std::mem::take(&mut cx.out.actions);
    let fault = |action: &Action| match action {
        Action::Send { frame: Frame::StageFault(fault), .. } => Some(fault.kind.clone()),
        _ => None,
    };
    let computed = actions.iter().filter(|action| matches!(action, Action::Compute(_))).count();
    (computed, actions.iter().filter_map(fault).collect())
}

/// The last stage of a plan that computes, behind one device, and of the next plan, which is prepared, behind another.
fn in_two_plans(before: PeerId, next_before: PeerId) -> (Worker, EventContext) {
    let (mut worker, mut cx) = worker();
    worker.prepare(HOST, last_stage_behind(before, EPOCH, None), &mut cx);
    worker.loaded(EPOCH, &mut cx);
    worker.commit(HOST, EPOCH, &mut cx);
    worker.prepare(HOST, last_stage_behind(next_before, NEXT, Some(EPOCH)), &mut cx);
    worker.loaded(NEXT, &mut cx);
    cx.out.actions.clear();
    (worker, cx)
}

/// Conversations and positions that the engine is given, and conversations that it is to forget.
fn written_and_forgotten(worker: &mut Worker, cx: &mut EventContext) -> (Vec<(u32, u32)>, Vec<u32>) {
    worker.start(cx);
    let (mut written, mut forgotten) = (Vec::new(), Vec::new());
    for action in std::mem::take(&mut cx.out.actions) {
        match action {
            Action::Compute(Work { task: Task::Forward { batch, .. }, .. }) => {
                written.extend(batch.iter().map(|row| (row.conversation.0, row.position.0)));
            }
            Action::Forget(conversation) => forgotten.push(conversation.0),
            _ => {}
        }
    }
    (written, forgotten)
}

/// A stage of the next plan, which is not committed, names a conversation that is being answered: once it has it computed from its own
/// numbers, and once it says that it is over.
#[test]
fn a_stage_of_another_plan_reaches_no_kv_cache_of_an_answer() {
    let (mut worker, mut cx) = in_two_plans(HONEST, LIAR);
    worker.forward(HONEST, token(EPOCH, 1, 1, 0, &[1]), &mut cx);
    let (answer, _) = written_and_forgotten(&mut worker, &mut cx);
    worker.forward(LIAR, token(NEXT, 1, 1 << 30, 0, &[1]), &mut cx);
    let (lie, _) = written_and_forgotten(&mut worker, &mut cx);
    let ([(answer, 0)], [(lie, 0)]) = (&answer[..], &lie[..]) else { panic!("{answer:?}, {lie:?}") };
    assert_ne!(answer, lie, "the liar's numbers would take the place of the answer's");
    worker.forward(LIAR, token(NEXT, 2, 1 << 31, 0, &[2]), &mut cx);
    let (_, forgotten) = written_and_forgotten(&mut worker, &mut cx);
    assert!(!forgotten.contains(answer), "the answer's KV cache stays: {forgotten:?}");
    worker.forward(HONEST, token(EPOCH, 1, 2, 1, &[1]), &mut cx);
    assert_eq!(written_and_forgotten(&mut worker, &mut cx).0, [(*answer, 1)], "and goes on");
}

/// The engine begins work later than it gets it: after its conversation is over, or its plan. It would keep the pages for ever.
#[test]
fn work_whose_conversation_is_over_before_it_begins_leaves_no_pages() {
    for by_commit in [false, true] {
        let (mut worker, mut cx) = in_two_plans(LIAR, HONEST);
        worker.forward(LIAR, prompt(EPOCH, 7, 1, 64, &[7]), &mut cx);
        worker.start(&mut cx);
        let [Action::Compute(Work { ticket, task: Task::Forward { batch, .. } })] = &cx.out.actions[..] else {
            panic!("one piece of work")
        };
        let (ticket, on_engine) = (*ticket, batch[0].conversation);
        cx.out.actions.clear();
        if by_commit {
            worker.commit(HOST, NEXT, &mut cx);
        } else {
            worker.forward(LIAR, token(EPOCH, 1, 2, 0, &[1]), &mut cx);
        }
        let is = |wanted: fn(&Action, Ticket, ConversationId) -> bool| {
            cx.out.actions.iter().position(|action| wanted(action, ticket, on_engine))
        };
        let cancelled = is(|action, ticket, _| matches!(action, Action::Cancel(known) if *known == ticket));
        let forgotten = is(|action, _, id| matches!(action, Action::Forget(known) if *known == id));
        assert!(
            cancelled.is_some() && cancelled < forgotten,
            "first the work goes, then its pages: {cancelled:?}, {forgotten:?}"
        );
        cx.out.actions.clear();
        // It had begun, or shared its batch with others.
        worker.computed(Computed { ticket, outcome: Outcome::Done, millis: 1.0 }, &mut cx);
        let again = cx.out.actions.iter().any(|action| matches!(action, Action::Forget(id) if *id == on_engine));
        assert_eq!(again, !by_commit, "an engine that ends a plan has nothing of it that waits");
    }
}

/// What a device computes again, and what it timed, is no plan's.
#[test]
fn a_plan_that_ends_frees_its_own_kv_cache_only() {
    let (mut worker, mut cx) = in_two_plans(HONEST, LIAR);
    let other = cx.kv_cache.fresh_id();
    worker.forward(HONEST, token(EPOCH, other.0, 1, 0, &[other.0]), &mut cx);
    worker.forward(LIAR, token(NEXT, other.0, 2, 0, &[other.0]), &mut cx);
    let (written, _) = written_and_forgotten(&mut worker, &mut cx);
    let [(answer, _), (replay, _)] = written[..] else { panic!("both plans compute: {written:?}") };
    assert!(answer != replay && ![answer, replay].contains(&other.0), "{answer}, {replay} and {other:?}");
    worker.commit(HOST, NEXT, &mut cx);
    assert_eq!(written_and_forgotten(&mut worker, &mut cx).1, [answer], "not {replay}, and not {other:?}");
}

/// Answers move from a plan with a liar to one without it.
#[test]
fn a_stage_cannot_end_the_conversations_of_another_plan() {
    for pass in [u64::MAX, 1 << 39] {
        let (mut worker, mut cx) = in_two_plans(LIAR, HONEST);
        worker.forward(LIAR, token(EPOCH, 1, 1, 0, &[1]), &mut cx);
        worker.forward(HONEST, token(NEXT, 2, 2, 0, &[1, 2]), &mut cx);
        assert_eq!(computed_and_faults(&mut worker, &mut cx), (2, Vec::new()), "both plans compute");
        worker.forward(LIAR, token(EPOCH, 1, pass, 1, &[1]), &mut cx);
        computed_and_faults(&mut worker, &mut cx);
        worker.forward(HONEST, token(NEXT, 2, 3, 1, &[1, 2]), &mut cx);
        assert_eq!(computed_and_faults(&mut worker, &mut cx), (1, Vec::new()), "after pass {pass}");
    }
}

/// A chunk of a prompt for that stage, from the beginning.
fn prompt(epoch: PlanEpoch, conversation: u32, pass: u64, count: u32, live: &[u32]) -> Forward {
    let hidden = vec![0.5; 2 * count as usize];
    Forward { class: KernelClass::Prefill, count, hidden, ..token(epoch, conversation, pass, 0, live) }
}

/// Positions of each conversation on the engine, which has four pages of 64.
#[derive(Default)]
struct Engine(BTreeMap<u32, u32>);

impl Engine {
    /// Carries out what the worker says. Returns what the host was told.
    fn run(&mut self, worker: &mut Worker, cx: &mut EventContext) -> Vec<StageFault> {
        worker.start(cx);
        let mut faults = Vec::new();
        for action in std::mem::take(&mut cx.out.actions) {
            match action {
                Action::Forget(conversation) => {
                    self.0.remove(&conversation.0);
                }
                Action::Compute(Work { ticket, task: Task::Forward { batch, .. } }) => {
                    for row in batch {
                        self.0.insert(row.conversation.0, row.position.0 + 1);
                    }
                    let pages: u32 = self.0.values().map(|positions| positions.div_ceil(64)).sum();
                    assert!(pages <= 4, "{ticket:?} finds no page: {:?}", self.0);
                    worker.computed(Computed { ticket, outcome: Outcome::Done, millis: 1.0 }, cx);
                }
                Action::Send { frame: Frame::StageFault(fault), .. } => faults.push(fault),
                _ => {}
            }
        }
        faults
    }
}

#[test]
fn made_up_conversations_leave_pages_to_the_hosts() {
    let (mut worker, mut cx) = in_two_plans(LIAR, HONEST);
    let mut engine = Engine::default();
    let mut send = |forward: Forward| {
        worker.forward(LIAR, forward, &mut cx);
        engine.run(&mut worker, &mut cx).into_iter().map(|fault| (fault.conversation.0, fault.kind)).collect::<Vec<_>>()
    };
    assert_eq!(send(prompt(EPOCH, 1, 1, 64, &[1])), [], "an answer begins");
    assert_eq!(send(prompt(EPOCH, 2, 2, 192, &[1, 2])), [], "three pages are left");
    assert_eq!(send(prompt(EPOCH, 3, 3, 64, &[1, 2, 3])), [], "and one that is made up, too, gets room");
    let gap = (1, StageFaultKind::Gap(Position(0)));
    assert_eq!(send(token(EPOCH, 1, 4, 64, &[1, 2, 3])), [gap], "the host sends the oldest one again");
    assert_eq!(send(prompt(EPOCH, 1, 5, 65, &[1, 2, 3])), [], "and it gets room again");
}

#[test]
fn made_up_conversations_of_the_next_plan_cost_the_running_one_nothing() {
    let (mut worker, mut cx) = in_two_plans(HONEST, LIAR);
    let mut engine = Engine::default();
    for (conversation, pass) in [(7, 1 << 30), (8, 1 << 31)] {
        worker.forward(LIAR, prompt(NEXT, conversation, pass, 128, &[7, 8]), &mut cx);
    }
    assert!(engine.run(&mut worker, &mut cx).is_empty(), "they have all four pages");
    worker.forward(HONEST, prompt(EPOCH, 1, 1, 64, &[1]), &mut cx);
    assert!(engine.run(&mut worker, &mut cx).is_empty(), "the answer is computed");
    worker.forward(HONEST, token(EPOCH, 1, 2, 64, &[1]), &mut cx);
    assert!(engine.run(&mut worker, &mut cx).is_empty(), "and goes on");
}

/// The host has given up a conversation to make room for a replay, which comes another way and is faster.
#[test]
fn a_replay_waits_for_pages_that_the_running_plan_is_about_to_free() {
    let (mut worker, mut cx) = in_two_plans(LIAR, HONEST);
    worker.forward(LIAR, prompt(EPOCH, 1, 1, 192, &[1]), &mut cx);
    assert_eq!(written_and_forgotten(&mut worker, &mut cx).0.len(), 192);
    worker.forward(HONEST, prompt(NEXT, 3, 3, 128, &[2, 3]), &mut cx);
    assert_eq!(computed_and_faults(&mut worker, &mut cx), (0, Vec::new()), "there is one page left");
    worker.forward(LIAR, prompt(EPOCH, 2, 4, 64, &[2, 3]), &mut cx);
    assert_eq!(computed_and_faults(&mut worker, &mut cx), (2, Vec::new()), "the answer's chunk and the replay's");
}

/// The engine has a token of the answer while a stage of the next plan says that everything else is over.
#[test]
fn a_stage_cannot_drop_a_token_of_another_plan_from_the_engine() {
    let (mut worker, mut cx) = in_two_plans(HONEST, LIAR);
    worker.forward(HONEST, token(EPOCH, 1, 1, 0, &[1]), &mut cx);
    worker.start(&mut cx);
    let ticket = cx.out.actions.iter().find_map(|action| match action {
        Action::Compute(work) => Some(work.ticket),
        _ => None,
    });
    worker.forward(LIAR, token(NEXT, 4_000_000_000, 1 << 40, 0, &[4_000_000_000]), &mut cx);
    cx.out.actions.clear();
    worker.computed(Computed { ticket: ticket.unwrap(), outcome: Outcome::Done, millis: 1.0 }, &mut cx);
    let is_result = |action: &Action| matches!(action, Action::Send { frame: Frame::LogitsResult(_), .. });
    assert!(cx.out.actions.iter().any(is_result), "the host waits for it");
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
    worker.expert_call(
        HOST,
        ExpertCall { epoch: EPOCH, call: 1, block: BLOCK, class, rows, weights: Vec::new(), wire, normed },
        cx,
    );
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
