//! A stage and what others send it.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use potluck_plan::{
    BlockIndex, Computed, ExpertHolder, ExpertId, ExpertRoute, LmHeadRequest, LmHeadTokens, LogitBias, LogitsRequest,
    Millis, RemoteExperts, Ticket, WireType,
};
use potluck_protocol::{ExpertCall, ExpertCancel, ExpertFailure, ExpertResult, Hedging, Hello};

use super::*;
use crate::RelayRoute;
use crate::examples;
use crate::experts::Holders;
use crate::members::Members;
use crate::outbox::Outbox;

const HOST: PeerId = PeerId([1; 16]);
const FIRST: PeerId = PeerId([2; 16]);
const SECOND: PeerId = PeerId([3; 16]);
const EPOCH: PlanEpoch = PlanEpoch(4);
const WIDTH: usize = 2;

fn plan() -> Plan {
    let mut second = Stage::new(StageId(1), SECOND, BlockRange::new(1, 2));
    let remote = RemoteExperts { block: BlockIndex(1), holders: vec![vec![ExpertHolder::Peer(FIRST)]] };
    second.remote = vec![remote];
    Plan {
        epoch: EPOCH,
        context: 1_024,
        ..examples::plan(vec![Stage::new(StageId(0), FIRST, BlockRange::new(0, 1)), second])
    }
}

/// An executor on `me`, which reaches the others.
fn on(me: PeerId) -> (Executor, EventContext) {
    let mut out = Outbox::new(me);
    for peer in [HOST, FIRST, SECOND].into_iter().filter(|peer| *peer != me) {
        out.set_route(peer, Some(RelayRoute(u32::from(peer.0[0]))));
    }
    let (members, holders) = (Members::new(me), Holders::default());
    let settings = DispatchSettings { hedging: Hedging::Off, spot_checks: 0.0 };
    let setup = ExecutorSetup { me, coordinator: HOST, width: WIDTH, recurrent: false, settings, first_ticket: 0 };
    let executor = Executor::new(setup, plan());
    let (hints, kv_cache) = Default::default();
    let biases = Default::default();
    (executor, EventContext { now: Millis(0.0), members, holders, hints, kv_cache, biases, out })
}

fn chunk(stage: u16, pass: u64, base: u32) -> Forward {
    let last = LmHeadRequest { tokens: LmHeadTokens::Last, logits: LogitsRequest::Top(1) };
    Forward {
        epoch: EPOCH,
        stage: StageId(stage),
        pass: PassId(pass),
        live: vec![ConversationId(1)],
        conversation: ConversationId(1),
        base: Position(base),
        class: KernelClass::Decode,
        count: 1,
        tokens: if stage == 0 { vec![65] } else { Vec::new() },
        further_steps: 0,
        sampling: None,
        lm_head: Some(last),
        bias: LogitBias::default(),
        allowed: Vec::new(),
        stage_millis: Vec::new(),
        wire: WireType::F32,
        hidden: if stage == 0 { Vec::new() } else { vec![0.5; WIDTH] },
    }
}

/// A chunk of a conversation at the first stage, sent when no other one was live.
fn only(pass: u64, conversation: u32) -> Forward {
    let conversation = ConversationId(conversation);
    Forward { conversation, live: vec![conversation], ..chunk(0, pass, 0) }
}

fn sent(cx: &mut EventContext) -> Vec<Frame> {
    let frame = |action| match action {
        Action::Send { frame, .. } => Some(frame),
        _ => None,
    };
    std::mem::take(&mut cx.out.actions).into_iter().filter_map(frame).collect()
}

/// The faults that were reported: of which pass, and why.
fn faults(cx: &mut EventContext) -> Vec<(Option<PassId>, StageFaultKind)> {
    let fault = |frame| if let Frame::StageFault(fault) = frame { Some((fault.pass, fault.kind)) } else { None };
    sent(cx).into_iter().filter_map(fault).collect()
}

fn computes(executor: &mut Executor, cx: &mut EventContext) -> usize {
    executor.start(cx);
    let actions = std::mem::take(&mut cx.out.actions);
    actions.iter().filter(|action| matches!(action, Action::Compute(_))).count()
}

#[test]
fn wrong_rows_blame_who_sent_them() {
    let wrong = [
        Forward { hidden: vec![f32::NAN; WIDTH], ..chunk(1, 1, 0) },
        Forward { hidden: vec![0.5; 1], ..chunk(1, 1, 0) },
        Forward { count: u32::MAX, ..chunk(1, 1, 0) },
        Forward { base: Position(u32::MAX), ..chunk(1, 1, 0) },
        Forward { live: Vec::new(), ..chunk(1, u64::MAX, 0) },
        chunk(1, u64::MAX, 0),
        Forward { tokens: vec![65], ..chunk(1, 1, 0) },
        Forward { stage_millis: vec![1.0; 2], ..chunk(1, 1, 0) },
    ];
    for forward in wrong {
        let (mut executor, mut cx) = on(SECOND);
        let said = format!("{forward:?}");
        executor.forward(HOST, forward, &mut cx);
        let named = (None, StageFaultKind::BadResult(HOST));
        assert_eq!(faults(&mut cx), [named], "not the planned sender, but who sent it, awaited or not: {said}");
    }
}

/// Each stage adds its own time, so with one more than there are stages before, the next stage would get too many from this one.
#[test]
fn a_stage_is_sent_the_times_of_the_stages_before_it_only() {
    for (times, is_taken) in [(0, true), (1, true), (2, false)] {
        let (mut executor, mut cx) = on(SECOND);
        executor.forward(FIRST, Forward { stage_millis: vec![1.0; times], ..chunk(1, 1, 0) }, &mut cx);
        let named = faults(&mut cx);
        assert_eq!(named.is_empty(), is_taken, "the second of two stages got {times} times: {named:?}");
    }
}

#[test]
fn the_stage_after_the_first_gets_no_token_ids() {
    let (mut executor, mut cx) = on(FIRST);
    executor.forward(HOST, chunk(0, 1, 0), &mut cx);
    executor.start(&mut cx);
    let outcome = Outcome::Hidden(vec![0.5; WIDTH]);
    executor.computed(Computed { ticket: Ticket(0), outcome, millis: 1.0 }, &mut cx);
    let frames = sent(&mut cx);
    let [Frame::Forward(handed_on)] = &frames[..] else { panic!("the rows go to the second stage: {frames:?}") };
    assert_eq!((handed_on.count, &handed_on.tokens[..]), (1, &[][..]), "their number, not what they are");
}

#[test]
fn a_device_that_computed_nonsense_says_so_itself() {
    let (mut executor, mut cx) = on(FIRST);
    executor.forward(HOST, chunk(0, 1, 0), &mut cx);
    executor.start(&mut cx);
    let outcome = Outcome::Hidden(vec![f32::NAN; WIDTH]);
    executor.computed(Computed { ticket: Ticket(0), outcome, millis: 1.0 }, &mut cx);
    let frames = sent(&mut cx);
    let [Frame::StageFault(fault)] = &frames[..] else { panic!("nothing goes to the second stage: {frames:?}") };
    assert_eq!(fault.kind, StageFaultKind::BadResult(FIRST));
}

#[test]
fn a_chunk_sent_again_is_not_computed_again() {
    let (mut executor, mut cx) = on(SECOND);
    executor.forward(FIRST, chunk(1, 5, 0), &mut cx);
    assert_eq!(computes(&mut executor, &mut cx), 1);
    executor.forward(FIRST, chunk(1, 5, 0), &mut cx);
    executor.forward(FIRST, chunk(1, 4, 0), &mut cx);
    assert_eq!(computes(&mut executor, &mut cx), 0, "the KV cache is as it was");
    executor.hear_live(None, &only(6, 2), &mut cx);
    executor.forward(FIRST, chunk(1, 5, 0), &mut cx);
    assert_eq!(computes(&mut executor, &mut cx), 0, "its conversation is over");
}

#[test]
fn a_flood_of_chunks_waits_in_bounded_memory() {
    let (mut executor, mut cx) = on(SECOND);
    for pass in 1..10_000 {
        executor.forward(FIRST, chunk(1, pass, pass as u32 - 1), &mut cx);
    }
    assert_eq!(executor.queues[&StageId(1)].len(), limits::MAX_CHUNKS);
}

fn call(call: u64, rows: &[&[u16]]) -> ExpertCall {
    let (block, class, wire) = (BlockIndex(1), KernelClass::Decode, WireType::F32);
    let normed = vec![0.5; WIDTH * rows.len()];
    let rows = rows.iter().map(|row| row.iter().map(|expert| ExpertId(*expert)).collect()).collect();
    ExpertCall { epoch: EPOCH, call, block, class, rows, weights: Vec::new(), wire, normed }
}

/// What became of calls: how many are computed, and why others failed.
fn answered(cx: &mut EventContext) -> (usize, Vec<ExpertFailure>) {
    let actions = std::mem::take(&mut cx.out.actions);
    let failed = |action: &Action| match action {
        Action::Send { frame: Frame::ExpertResult(result), .. } => result.failed,
        _ => None,
    };
    let computed = actions.iter().filter(|action| matches!(action, Action::Compute(_))).count();
    (computed, actions.iter().filter_map(failed).collect())
}

#[test]
fn a_flood_of_calls_is_answered_with_a_failure() {
    let (mut executor, mut cx) = on(FIRST);
    for id in 0..1_000 {
        executor.expert_call(SECOND, call(id, &[&[0]]), &mut cx);
    }
    let (computed, failed) = answered(&mut cx);
    assert_eq!((computed, failed), (limits::MAX_CALLS, vec![ExpertFailure::Busy; 1_000 - limits::MAX_CALLS]));
}

#[test]
fn a_plan_that_ends_answers_the_calls_it_has_not_computed() {
    let (mut executor, mut cx) = on(FIRST);
    executor.expert_call(SECOND, call(1, &[&[0]]), &mut cx);
    executor.expert_call(SECOND, call(2, &[&[0]]), &mut cx);
    answered(&mut cx);
    executor.end_calls(&mut cx);
    assert_eq!(answered(&mut cx), (0, vec![ExpertFailure::NoPlan; 2]));
}

#[test]
fn calls_that_cannot_be_right_are_refused_and_never_reach_the_engine() {
    let many: Vec<&[u16]> = vec![&[0]; Work::DECODE_TOKENS + 1];
    let wrong = [
        (call(1, &[]), "no row"),
        (call(1, &[&[]]), "a row without expert"),
        (call(1, &[&[0, 0]]), "an expert twice"),
        (call(1, &many), "more rows than a piece of work has"),
        (ExpertCall { normed: vec![0.5; WIDTH + 1], ..call(1, &[&[0]]) }, "a value too many"),
        (ExpertCall { normed: vec![0.5, f32::NAN], ..call(1, &[&[0]]) }, "not a number"),
        (ExpertCall { weights: vec![vec![0.5, 0.5]], ..call(1, &[&[0]]) }, "a weight too many"),
        (ExpertCall { weights: vec![vec![0.5]; 2], ..call(1, &[&[0]]) }, "weights of a token too many"),
        (ExpertCall { weights: vec![vec![f32::INFINITY]], ..call(1, &[&[0]]) }, "an infinite weight"),
    ];
    for (wrong, what) in wrong {
        let (mut executor, mut cx) = on(FIRST);
        executor.expert_call(SECOND, wrong, &mut cx);
        assert_eq!(answered(&mut cx), (0, vec![ExpertFailure::BadCall]), "{what}");
    }
    for (block, expert, what) in [(1, 7, "no such expert"), (0, 0, "its own block"), (9, 0, "no such block")] {
        let (mut executor, mut cx) = on(FIRST);
        let elsewhere = ExpertCall { block: BlockIndex(block), ..call(1, &[&[expert]]) };
        executor.expert_call(SECOND, elsewhere, &mut cx);
        assert_eq!(answered(&mut cx), (0, vec![ExpertFailure::NotHere]), "{what}");
    }
}

#[test]
fn the_same_call_again_is_computed_once_and_a_cancelled_one_is_dropped() {
    let (mut executor, mut cx) = on(FIRST);
    executor.expert_call(SECOND, call(5, &[&[0]]), &mut cx);
    executor.expert_call(SECOND, call(5, &[&[0]]), &mut cx);
    assert_eq!(answered(&mut cx), (1, Vec::new()));
    executor.expert_cancel(HOST, ExpertCancel { epoch: EPOCH, call: 5 }, &mut cx);
    assert!(cx.out.actions.is_empty(), "somebody else's call");
    executor.expert_cancel(SECOND, ExpertCancel { epoch: EPOCH, call: 5 }, &mut cx);
    let actions = std::mem::take(&mut cx.out.actions);
    assert!(matches!(actions[..], [Action::Cancel(Ticket(0))]), "the engine drops it");
    let outcome = Outcome::ExpertOutputs(vec![0.5; WIDTH]);
    executor.computed(Computed { ticket: Ticket(0), outcome, millis: 1.0 }, &mut cx);
    assert!(cx.out.actions.is_empty(), "a result that comes nevertheless is nobody's");
}

#[test]
fn residency_of_the_past_changes_nothing() {
    let (mut executor, mut cx) = on(SECOND);
    let holders = |executor: &Executor| executor.plan.stages[1].remote[0].holders[0].len();
    let add = ResidencyChange::Add { block: BlockIndex(1), expert: ExpertId(0), peer: HOST };
    assert!(executor.move_experts(2, &[add], &mut cx));
    assert_eq!(holders(&executor), 2);
    assert!(!executor.move_experts(1, &[ResidencyChange::Drop(HOST)], &mut cx));
    assert!(!executor.move_experts(2, &[ResidencyChange::Drop(HOST)], &mut cx));
    assert_eq!(holders(&executor), 2, "older versions");
    let nowhere = ResidencyChange::Add { block: BlockIndex(7), expert: ExpertId(900), peer: HOST };
    executor.move_experts(3, &[add, nowhere, ResidencyChange::Drop(PeerId([99; 16]))], &mut cx);
    assert_eq!(holders(&executor), 2, "what was done already, no such expert, a device that is not there");
}

/// The second stage has passed its router when its conversation is over.
#[test]
fn experts_are_not_asked_for_a_conversation_that_is_over() {
    for normed in [vec![0.5; WIDTH], vec![f32::NAN; WIDTH]] {
        let (mut executor, mut cx) = on(SECOND);
        executor.forward(FIRST, chunk(1, 1, 0), &mut cx);
        assert_eq!(computes(&mut executor, &mut cx), 1);
        executor.hear_live(None, &only(2, 7), &mut cx);
        let routes = vec![ExpertRoute { experts: vec![(ExpertId(0), 1.0)] }];
        let outcome = Outcome::Routed { residual: vec![0.5; WIDTH], normed, routes };
        executor.computed(Computed { ticket: Ticket(0), outcome, millis: 1.0 }, &mut cx);
        let frames = sent(&mut cx);
        assert!(frames.is_empty() && executor.waiting.is_empty(), "nobody waits for it: {frames:?}");
    }
}

/// The second stage, where the other device is in the room and holds expert 1 of its block; expert 0 is its own.
fn with_half_of_the_experts() -> (Executor, EventContext) {
    let (mut executor, mut cx) = on(SECOND);
    executor.plan.stages[1].remote[0].holders = vec![vec![ExpertHolder::Own], vec![ExpertHolder::Peer(FIRST)]];
    let hello = Hello { epoch: EPOCH, ..examples::hello() };
    cx.members.enter(FIRST, &hello);
    (executor, cx)
}

/// The engine has passed a router, which chose these experts with equal weights.
fn routed(ticket: u64, normed: Vec<f32>, experts: &[u16]) -> Computed {
    let routes = vec![ExpertRoute { experts: experts.iter().map(|expert| (ExpertId(*expert), 0.5)).collect() }];
    let outcome = Outcome::Routed { residual: vec![0.5; WIDTH], normed, routes };
    Computed { ticket: Ticket(ticket), outcome, millis: 1.0 }
}

fn calls(cx: &mut EventContext) -> Vec<ExpertCall> {
    let call = |frame| if let Frame::ExpertCall(call) = frame { Some(call) } else { None };
    sent(cx).into_iter().filter_map(call).collect()
}

fn result(call: &ExpertCall, outputs: Vec<f32>) -> ExpertResult {
    ExpertResult { epoch: EPOCH, call: call.call, millis: 0.5, failed: None, wire: call.wire, outputs }
}

#[test]
fn own_experts_get_and_give_what_those_of_others_do() {
    let (mut executor, mut cx) = with_half_of_the_experts();
    executor.plan.expert_wire = WireType::F16;
    executor.forward(FIRST, chunk(1, 1, 0), &mut cx);
    assert_eq!(computes(&mut executor, &mut cx), 1);
    executor.computed(routed(0, vec![0.1, 1e6], &[0, 1]), &mut cx);
    let own = cx.out.actions.iter().find_map(|action| match action {
        Action::Compute(Work { task: Task::Experts { normed, .. }, .. }) => Some(normed.clone()),
        _ => None,
    });
    let rounded = |values: &[f32]| {
        let mut values = values.to_vec();
        potluck_protocol::round(&mut values, WireType::F16);
        values
    };
    assert_eq!(own, Some(rounded(&[0.1, 1e6])), "as the other device gets it");
    let calls = calls(&mut cx);
    let [call] = &calls[..] else { panic!("one call: {calls:?}") };
    assert_eq!((call.wire, &call.normed[..]), (WireType::F16, &[0.1, 1e6][..]), "rounded when it is encoded");
    let outcome = Outcome::ExpertOutputs(vec![0.3; WIDTH]);
    executor.computed(Computed { ticket: Ticket(1), outcome, millis: 1.0 }, &mut cx);
    executor.expert_result(FIRST, result(call, rounded(&[0.3; WIDTH])), &mut cx);
    executor.start(&mut cx);
    let outputs = cx.out.actions.iter().find_map(|action| match action {
        Action::Compute(Work { task: Task::Forward { input: Input::Experts(experts), .. }, .. }) => {
            Some(experts.outputs.clone())
        }
        _ => None,
    });
    assert_eq!(outputs, Some(rounded(&[0.3; 2 * WIDTH])), "the same bits, whoever computed them");
}

#[test]
fn an_answer_in_another_number_format_than_the_plans_is_not_used_and_its_holder_is_named() {
    let (mut executor, mut cx) = with_half_of_the_experts();
    executor.plan.expert_wire = WireType::F16;
    executor.forward(FIRST, chunk(1, 1, 0), &mut cx);
    assert_eq!(computes(&mut executor, &mut cx), 1);
    executor.computed(routed(0, vec![0.5; WIDTH], &[1]), &mut cx);
    let call = calls(&mut cx).pop().unwrap();
    let otherwise = ExpertResult { wire: WireType::F32, ..result(&call, vec![0.5; WIDTH]) };
    executor.expert_result(FIRST, otherwise, &mut cx);
    let named = (None, StageFaultKind::OtherWireType { holder: FIRST, answered: WireType::F32 });
    assert_eq!(faults(&mut cx).first(), Some(&named));
    assert_eq!(computes(&mut executor, &mut cx), 0, "its numbers go nowhere");
}

#[test]
fn a_holder_answers_in_the_number_format_of_the_call() {
    for wire in WireType::ALL {
        let (mut executor, mut cx) = on(FIRST);
        executor.expert_call(SECOND, ExpertCall { wire, ..call(1, &[&[0]]) }, &mut cx);
        let outcome = Outcome::ExpertOutputs(vec![0.5; WIDTH]);
        executor.computed(Computed { ticket: Ticket(0), outcome, millis: 1.0 }, &mut cx);
        let frames = sent(&mut cx);
        let [Frame::ExpertResult(answer)] = &frames[..] else { panic!("one answer: {frames:?}") };
        assert_eq!((answer.wire, answer.failed, answer.outputs.len()), (wire, None, WIDTH));
    }
}

/// A chunk of a prompt.
fn prompt(pass: u64, base: u32) -> Forward {
    Forward { class: KernelClass::Prefill, ..chunk(1, pass, base) }
}

#[test]
fn a_chunk_computes_while_the_one_before_waits_for_experts() {
    let (mut executor, mut cx) = with_half_of_the_experts();
    executor.forward(FIRST, prompt(1, 0), &mut cx);
    executor.forward(FIRST, prompt(2, 1), &mut cx);
    assert_eq!(computes(&mut executor, &mut cx), 2, "attention up to the same block, one after the other");
    for ticket in 0..2 {
        executor.computed(routed(ticket, vec![0.5; WIDTH], &[1]), &mut cx);
    }
    let calls = calls(&mut cx);
    assert_eq!(calls.len(), 2, "both are on their way");
    executor.expert_result(FIRST, result(&calls[1], vec![0.5; WIDTH]), &mut cx);
    assert_eq!(computes(&mut executor, &mut cx), 0, "the first chunk's keys come first");
    executor.expert_result(FIRST, result(&calls[0], vec![0.5; WIDTH]), &mut cx);
    assert_eq!(computes(&mut executor, &mut cx), 2);
}

#[test]
fn a_chunk_that_fails_takes_those_behind_it_along() {
    let (mut executor, mut cx) = with_half_of_the_experts();
    executor.forward(FIRST, prompt(1, 0), &mut cx);
    executor.forward(FIRST, prompt(2, 1), &mut cx);
    assert_eq!(computes(&mut executor, &mut cx), 2);
    executor.computed(routed(1, vec![0.5; WIDTH], &[1]), &mut cx);
    let second = calls(&mut cx).pop().unwrap();
    executor.computed(routed(0, vec![f32::NAN; WIDTH], &[1]), &mut cx);
    let frames = sent(&mut cx);
    let [Frame::ExpertCancel(cancel), Frame::StageFault(fault)] = &frames[..] else { panic!("{frames:?}") };
    assert_eq!((cancel.call, fault.pass), (second.call, Some(PassId(1))), "nobody waits for the second one's experts");
    executor.expert_result(FIRST, result(&second, vec![0.5; WIDTH]), &mut cx);
    assert_eq!(computes(&mut executor, &mut cx), 0, "it would leave a gap");
    executor.forward(FIRST, prompt(3, 0), &mut cx);
    assert_eq!(computes(&mut executor, &mut cx), 1, "what is sent again goes on");
}

mod passes;
mod rewinds;
