//! A stage and what others send it.

use potluck_plan::{
    BlockIndex, Computed, ExpertId, KvCacheType, LmHeadRequest, LmHeadTokens, LogitsRequest, Millis, ModelId,
    RemoteExperts, Route, WireType,
};
use potluck_protocol::ExpertCall;

use super::*;
use crate::RelayRoute;
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
        model: ModelId([0; 32]),
        stages: vec![Stage::new(StageId(0), FIRST, BlockRange::new(0, 1)), second],
        wire: WireType::F32,
        context: 64,
        kv_cache: KvCacheType::F32,
    }
}

/// An executor on `me`, which reaches the others.
fn on(me: PeerId) -> (Executor, EventContext) {
    let mut out = Outbox::new(me);
    for peer in [HOST, FIRST, SECOND].into_iter().filter(|peer| *peer != me) {
        out.set_route(peer, Some(RelayRoute(u32::from(peer.0[0]))));
    }
    (Executor::new(me, HOST, plan(), WIDTH, 0), EventContext { now: Millis(0.0), members: Members::new(me), out })
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
        lm_head: Some(last),
        stage_millis: Vec::new(),
        wire: WireType::F32,
        hidden: if stage == 0 { Vec::new() } else { vec![0.5; WIDTH] },
    }
}

fn sent(cx: &mut EventContext) -> Vec<Frame> {
    let frame = |action| match action {
        Action::Send { frame, .. } => Some(frame),
        _ => None,
    };
    std::mem::take(&mut cx.out.actions).into_iter().filter_map(frame).collect()
}

fn computes(executor: &mut Executor, cx: &mut EventContext) -> usize {
    executor.start(cx);
    let actions = std::mem::take(&mut cx.out.actions);
    actions.iter().filter(|action| matches!(action, Action::Compute(_))).count()
}

#[test]
fn row_3_wrong_rows_blame_who_sent_them() {
    let wrong = [
        Forward { hidden: vec![f32::NAN; WIDTH], ..chunk(1, 1, 0) },
        Forward { hidden: vec![0.5; 1], ..chunk(1, 1, 0) },
        Forward { count: u32::MAX, ..chunk(1, 1, 0) },
        Forward { base: Position(u32::MAX), ..chunk(1, 1, 0) },
        Forward { live: Vec::new(), ..chunk(1, u64::MAX, 0) },
        Forward { tokens: vec![65], ..chunk(1, 1, 0) },
    ];
    for forward in wrong {
        let (mut executor, mut cx) = on(SECOND);
        let said = format!("{forward:?}");
        executor.forward(HOST, forward, &mut cx);
        let kinds: Vec<StageFaultKind> = sent(&mut cx)
            .into_iter()
            .filter_map(|frame| if let Frame::StageFault(fault) = frame { Some(fault.kind) } else { None })
            .collect();
        assert_eq!(kinds, [StageFaultKind::BadResult(HOST)], "not the planned sender, but who sent it: {said}");
    }
}

#[test]
fn row_16_the_stage_after_the_first_gets_no_token_ids() {
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
    executor.forget_others(PassId(6), &[ConversationId(2)], &mut cx);
    executor.forward(FIRST, chunk(1, 5, 0), &mut cx);
    assert_eq!(computes(&mut executor, &mut cx), 0, "its conversation is over");
}

#[test]
fn a_flood_of_chunks_waits_in_bounded_memory() {
    let (mut executor, mut cx) = on(SECOND);
    for pass in 1..10_000 {
        executor.forward(FIRST, chunk(1, pass, 0), &mut cx);
    }
    assert_eq!(executor.queues[&StageId(1)].len(), limits::MAX_CHUNKS);
}

#[test]
fn a_flood_of_calls_is_answered_with_a_failure() {
    let (mut executor, mut cx) = on(FIRST);
    for call in 0..1_000 {
        let (block, class, wire) = (BlockIndex(1), KernelClass::Decode, WireType::F32);
        let routes = vec![Route { experts: vec![(ExpertId(0), 1.0)] }];
        let call = ExpertCall { epoch: EPOCH, call, block, class, routes, wire, normed: vec![0.5; WIDTH] };
        executor.expert_call(SECOND, call, &mut cx);
    }
    let actions = std::mem::take(&mut cx.out.actions);
    let failed =
        |action: &&Action| matches!(action, Action::Send { frame: Frame::ExpertSum(sum), .. } if sum.failed.is_some());
    let computed = actions.iter().filter(|action| matches!(action, Action::Compute(_))).count();
    assert_eq!((computed, actions.iter().filter(failed).count()), (limits::MAX_CALLS, 1_000 - limits::MAX_CALLS));
}
