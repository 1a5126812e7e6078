//! Holders that are quick, slow, silent, gone or wrong.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use potluck_plan::{BlockRange, ExpertId, ExpertRoute, RemoteExperts, Stage, StageId};
use potluck_protocol::{Checkers, ExpertFailure, Lineage};

use super::*;
use crate::examples;
use crate::experts::gather::RouterOutput;
use crate::experts::holders::CallSize;

mod late;
mod refusing;
mod spot_checks;
mod tails;

const ME: PeerId = PeerId([1; 16]);
const A: PeerId = PeerId([2; 16]);
const B: PeerId = PeerId([3; 16]);
const C: PeerId = PeerId([4; 16]);
const BLOCK: BlockIndex = BlockIndex(0);

struct Room {
    dispatch: Dispatch,
    plan: Plan,
    members: Members,
    holders: Holders,
    now: f64,
}

/// A room with these holders of each expert, all of which are there.
fn room(hedging: Hedging, holders: Vec<Vec<ExpertHolder>>) -> Room {
    let mut stage = Stage::new(StageId(0), ME, BlockRange::new(0, 1));
    stage.remote = vec![RemoteExperts { block: BLOCK, holders }];
    let plan = examples::plan(vec![stage]);
    let mut members = Members::new(ME);
    for peer in plan.peers().into_iter().chain([A, B, C]) {
        members.enter(peer, &examples::hello());
    }
    came_in(&mut members, &[(ME, 1), (A, 2), (B, 3), (C, 4)]);
    Room {
        dispatch: Dispatch::new(DispatchSettings { hedging, spot_checks: 0.0 }, 0),
        plan,
        members,
        holders: Holders::default(),
        now: 0.0,
    }
}

/// Devices with the same number may be one person's; 0 is the host's.
fn came_in(members: &mut Members, lineages: &[(PeerId, u16)]) {
    let lineages = lineages.iter().map(|(peer, number)| (*peer, Lineage(*number))).collect();
    members.checkers = Checkers { secret: 7, lineages }.into();
}

/// Expert 0 lies with A and B, expert 1 with B and C.
fn replicated(hedging: Hedging) -> Room {
    let [a, b, c] = [A, B, C].map(ExpertHolder::Peer);
    room(hedging, vec![vec![a, b], vec![b, c]])
}

impl Room {
    fn act<T>(&mut self, with: impl FnOnce(&mut Dispatch, &mut DispatchContext<'_>) -> T) -> T {
        let Self { dispatch, plan, members, holders, now } = self;
        with(dispatch, &mut DispatchContext { plan, members, holders, now: Millis(*now) })
    }

    /// One token that uses these experts.
    fn begin(&mut self, experts: &[u16]) -> Vec<DispatchStep> {
        let route = ExpertRoute { experts: experts.iter().map(|expert| (ExpertId(*expert), 0.5)).collect() };
        let output = RouterOutput { residual: vec![1.0, 2.0], normed: vec![3.0, 4.0], routes: vec![route] };
        let gather = Gather::new(StageId(0), BLOCK, KernelClass::Decode, output, 2, Millis(self.now)).unwrap();
        self.act(|dispatch, cx| dispatch.begin(gather, cx).1)
    }

    fn answer(&mut self, call: u64, from: PeerId, outputs: &[f32]) -> Vec<DispatchStep> {
        self.act(|dispatch, cx| dispatch.answered(call, ExpertHolder::Peer(from), outputs, 0.5, cx))
    }

    fn fail(&mut self, call: u64, from: PeerId, failure: ExpertFailure) -> Vec<DispatchStep> {
        self.act(|dispatch, cx| dispatch.failed(call, ExpertHolder::Peer(from), failure, cx))
    }

    fn check_timers(&mut self, now: f64) -> Vec<DispatchStep> {
        self.now = now;
        self.act(Dispatch::check_timers)
    }

    /// These peers have always answered after so many milliseconds.
    fn have_answered(&mut self, peers: &[PeerId], millis: f64) {
        let size = CallSize { class: KernelClass::Decode, bytes: 1, pairs: 1 };
        for peer in peers {
            (0..64).for_each(|_| self.holders.answered(*peer, size, millis, 0.5));
        }
    }
}

/// Whom calls went to, with their experts and ids.
fn called(steps: &[DispatchStep]) -> Vec<(PeerId, Vec<u16>, u64)> {
    let call = |step: &DispatchStep| match step {
        DispatchStep::Call { to, call, share, .. } => {
            Some((*to, share.rows.iter().flatten().map(|expert| expert.0).collect(), *call))
        }
        _ => None,
    };
    steps.iter().filter_map(call).collect()
}

fn whom(steps: &[DispatchStep]) -> Vec<(PeerId, Vec<u16>)> {
    called(steps).into_iter().map(|(to, experts, _)| (to, experts)).collect()
}

fn cancelled(steps: &[DispatchStep]) -> Vec<PeerId> {
    let to = |step: &DispatchStep| if let DispatchStep::Cancel { to, .. } = step { Some(*to) } else { None };
    steps.iter().filter_map(to).collect()
}

fn outputs(steps: &[DispatchStep]) -> Option<&[f32]> {
    steps
        .iter()
        .find_map(|step| if let DispatchStep::Done { outputs, .. } = step { Some(&outputs.outputs[..]) } else { None })
}

#[test]
fn each_holder_is_called_once_and_the_result_is_in_router_order() {
    let mut room = replicated(Hedging::Adaptive);
    let calls = called(&room.begin(&[1, 0]));
    assert_eq!(
        calls.iter().map(|(to, experts, _)| (*to, &experts[..])).collect::<Vec<_>>(),
        [(A, &[0][..]), (B, &[1])]
    );
    assert_eq!(outputs(&room.answer(calls[0].2, A, &[7.0, 7.5])), None);
    let steps = room.answer(calls[1].2, B, &[8.0, 8.5]);
    assert_eq!(outputs(&steps), Some(&[8.0, 8.5, 7.0, 7.5][..]), "expert 1 came first in the route");
}

#[test]
fn copies_at_once_race_and_the_loser_is_cancelled() {
    let mut room = replicated(Hedging::Copies(2));
    let calls = called(&room.begin(&[0]));
    assert_eq!(calls.iter().map(|(to, ..)| *to).collect::<Vec<_>>(), [A, B]);
    let steps = room.answer(calls[1].2, B, &[1.0, 2.0]);
    assert_eq!((outputs(&steps), cancelled(&steps)), (Some(&[1.0, 2.0][..]), vec![A]));
    assert!(!room.dispatch.awaits(calls[0].2, A), "what comes late is refused");
    assert_eq!(room.answer(calls[0].2, A, &[9.0, 9.0]), [], "and changes nothing");
    assert_eq!(room.answer(calls[1].2, B, &[9.0, 9.0]), [], "nor does the same answer again");
}

#[test]
fn the_time_of_a_blocks_experts_ends_with_the_last_vector_that_was_needed() {
    let mut room = replicated(Hedging::Copies(2));
    let calls = called(&room.begin(&[0, 1]));
    assert_eq!(calls.len(), 4, "two at once for each: {calls:?}");
    room.now = 20.0;
    room.answer(calls[0].2, calls[0].0, &[7.0, 7.5]);
    room.now = 30.0;
    let other = calls.iter().find(|call| call.1 != calls[0].1).unwrap();
    assert!(outputs(&room.answer(other.2, other.0, &[8.0, 8.5])).is_some());
    assert_eq!(room.dispatch.phases(), [ExpertPhase { asked: 2, passes: 1, millis: 30.0 }]);
}

#[test]
fn a_call_is_copied_after_the_holders_own_delay_and_not_before() {
    let mut room = replicated(Hedging::Adaptive);
    // A has a tail: three of four calls take at most 10 ms.
    let size = CallSize { class: KernelClass::Decode, bytes: 1, pairs: 1 };
    for call in 0..64 {
        room.holders.answered(A, size, if call % 4 == 0 { 80.0 } else { 10.0 }, 0.5);
    }
    room.have_answered(&[B], 10.0);
    for _ in 0..10 {
        let calls = called(&room.begin(&[0]));
        room.answer(calls[0].2, A, &[0.0; 2]);
    }
    let begun = room.now;
    room.begin(&[0]);
    assert_eq!(
        room.dispatch.next_deadline(),
        Some(Millis(begun + 10.0)),
        "the driver is asked to wake us exactly then"
    );
    assert_eq!(room.check_timers(begun + 9.0), []);
    assert_eq!(whom(&room.check_timers(begun + 10.0)), [(B, vec![0])]);
}

#[test]
fn a_steady_pool_is_not_hedged() {
    let mut room = replicated(Hedging::Adaptive);
    room.have_answered(&[A, B, C], 10.0);
    for _ in 0..10 {
        let calls = called(&room.begin(&[0]));
        room.answer(calls[0].2, A, &[0.0; 2]);
    }
    let begun = room.now;
    room.begin(&[0]);
    assert_eq!(room.check_timers(begun + 15.0), [], "half as long again as usual is nothing");
    assert_eq!(whom(&room.check_timers(begun + 25.0)), [(B, vec![0])], "something has happened to it");
}

#[test]
fn a_silent_holder_is_replaced_after_half_a_second_and_may_still_win() {
    let mut room = replicated(Hedging::Off);
    let first = called(&room.begin(&[0]));
    assert_eq!(room.check_timers(499.0), []);
    let second = called(&room.check_timers(501.0));
    assert_eq!(second[0].0, B);
    let steps = room.answer(first[0].2, A, &[1.0, 2.0]);
    assert_eq!((outputs(&steps), cancelled(&steps)), (Some(&[1.0, 2.0][..]), vec![B]));
}

#[test]
fn the_only_holder_is_asked_again_with_the_same_call() {
    let mut room = room(Hedging::Adaptive, vec![vec![ExpertHolder::Peer(A)]]);
    let first = called(&room.begin(&[0]));
    assert_eq!(called(&room.check_timers(501.0)), first, "the frame may be lost");
    assert_eq!(room.check_timers(1_400.0), [], "it is given twice the time");
    assert_eq!(called(&room.check_timers(1_502.0)), first);
    let lost = room.check_timers(10_000.0);
    assert!(
        matches!(lost[..], [.., DispatchStep::Lost { wrong: None, .. }, DispatchStep::Cancel { to: A, .. }]),
        "{lost:?}"
    );
    assert_eq!(room.dispatch.next_deadline(), None, "nothing is waited for");
}

#[test]
fn three_timeouts_in_a_row_put_a_holder_last_until_its_heartbeat() {
    let mut room = replicated(Hedging::Off);
    for timeout in 1..=3 {
        let calls = called(&room.begin(&[0]));
        assert_eq!(calls[0].0, A, "timeout {timeout}");
        let other = called(&room.check_timers(room.now + 501.0));
        room.answer(other[0].2, B, &[0.0; 2]);
    }
    assert_eq!(whom(&room.begin(&[0])), [(B, vec![0])], "A does not answer");
    room.members.known.remove(&B);
    room.check_timers(room.now);
    assert_eq!(whom(&room.begin(&[0])), [(A, vec![0])], "but it is better than nobody");
    room.members.enter(B, &examples::hello());
    room.holders.heartbeat(A);
    assert_eq!(whom(&room.begin(&[0])), [(A, vec![0])], "it is there again");
}

#[test]
fn a_holder_that_left_is_replaced_at_once() {
    let mut room = replicated(Hedging::Off);
    room.begin(&[0, 1]);
    room.members.ended(B, Millis(0.0));
    assert_eq!(whom(&room.check_timers(1.0)), [(C, vec![1])], "no timeout is waited for");
    room.members.known.remove(&A);
    assert_eq!(room.check_timers(2.0), [], "B may be back in a moment");
    room.members.known.get_mut(&B).unwrap().away_until = None;
    assert_eq!(whom(&room.check_timers(3.0)), [(B, vec![0])]);
}

#[test]
fn all_holders_gone_at_once_is_said_at_once() {
    let mut room = replicated(Hedging::Adaptive);
    room.begin(&[0, 1]);
    [A, B, C].iter().for_each(|peer| _ = room.members.known.remove(peer));
    let steps = room.check_timers(1.0);
    assert!(matches!(steps[..], [DispatchStep::Lost { block: BLOCK, wrong: None, .. }]), "{steps:?}");
}

#[test]
fn a_holder_without_the_expert_is_not_asked_again_for_it() {
    let mut room = replicated(Hedging::Adaptive);
    let calls = called(&room.begin(&[0]));
    let steps = room.fail(calls[0].2, A, ExpertFailure::NotHere);
    assert_eq!(whom(&steps), [(B, vec![0])]);
    let steps = room.fail(called(&steps)[0].2, B, ExpertFailure::Failed);
    assert!(matches!(steps[..], [DispatchStep::Lost { .. }]), "nobody is left: {steps:?}");
}

#[test]
fn a_holder_without_the_plan_is_replaced_at_once_and_asked_last_until_its_heartbeat() {
    let mut room = replicated(Hedging::Off);
    let calls = called(&room.begin(&[0]));
    let steps = room.fail(calls[0].2, A, ExpertFailure::NoPlan);
    assert_eq!(whom(&steps), [(B, vec![0])], "no timeout is waited for");
    room.answer(called(&steps)[0].2, B, &[0.0; 2]);
    assert_eq!(whom(&room.begin(&[0])), [(B, vec![0])], "nor a round trip for each block");
    room.holders.heartbeat(A);
    assert_eq!(whom(&room.begin(&[0])), [(A, vec![0])], "the host still names it");
}

#[test]
fn a_busy_holder_is_asked_again_soon_if_there_is_nobody_else() {
    let mut room = room(Hedging::Adaptive, vec![vec![ExpertHolder::Peer(A)]]);
    let calls = called(&room.begin(&[0]));
    assert_eq!(room.fail(calls[0].2, A, ExpertFailure::Busy), []);
    assert_eq!(called(&room.check_timers(BUSY_MILLIS)), calls);
    assert_eq!(room.holders.reports(|_| 0), [], "it has answered in time");
    assert_eq!(called(&room.check_timers(BUSY_MILLIS + 501.0)), calls, "the second time it has not");
    assert_eq!(room.holders.reports(|_| 0)[0].timeouts, 1);
}

#[test]
fn a_busy_holder_is_left_alone_while_another_one_is_asked() {
    let mut room = replicated(Hedging::Off);
    let calls = called(&room.begin(&[0]));
    assert_eq!(whom(&room.fail(calls[0].2, A, ExpertFailure::Busy)), [(B, vec![0])]);
    assert_eq!(room.check_timers(BUSY_MILLIS), []);
    assert_eq!(whom(&room.check_timers(502.0)), [(B, vec![0])], "B is late, and may not have heard");
    assert_eq!(whom(&room.check_timers(523.0)), [(A, vec![0])], "A may have less to do by now");
    assert_eq!(
        room.holders.reports(|_| 0).iter().map(|report| report.peer).collect::<Vec<_>>(),
        [B],
        "B alone is late"
    );
}

#[test]
fn a_late_holder_is_asked_again_when_the_one_in_its_place_fails() {
    let mut room = replicated(Hedging::Off);
    let first = called(&room.begin(&[0]));
    let second = called(&room.check_timers(501.0));
    assert_eq!(second[0].0, B);
    assert_eq!(room.fail(second[0].2, B, ExpertFailure::Failed), [], "A may still answer");
    assert_eq!(called(&room.check_timers(1_502.0)), first, "once more, because a frame may be lost");
    let steps = room.answer(first[0].2, A, &[1.0, 2.0]);
    assert_eq!(outputs(&steps), Some(&[1.0, 2.0][..]));
}

#[test]
fn holders_that_are_both_silent_are_both_asked_again() {
    let mut room = replicated(Hedging::Off);
    let first = called(&room.begin(&[0]));
    let second = called(&room.check_timers(501.0));
    assert_eq!(called(&room.check_timers(1_002.0)), second);
    assert_eq!(called(&room.check_timers(1_503.0)), first);
}

#[test]
fn wrong_numbers_are_reported_and_asked_for_elsewhere() {
    for wrong in [vec![1.0], vec![1.0; 3], vec![f32::NAN, 0.0], vec![0.0, f32::NEG_INFINITY], Vec::new()] {
        let mut room = replicated(Hedging::Adaptive);
        let calls = called(&room.begin(&[0]));
        let steps = room.answer(calls[0].2, A, &wrong);
        assert_eq!(whom(&steps), [(B, vec![0])], "{wrong:?}");
        assert!(matches!(steps[..], [_, DispatchStep::Wrong { holder: A, .. }]), "{steps:?}");
        let steps = room.answer(called(&steps)[0].2, B, &wrong);
        assert!(matches!(steps[..], [DispatchStep::Lost { wrong: Some(B), .. }]), "nobody is left: {steps:?}");
    }
}

#[test]
fn somebody_elses_answer_does_not_count() {
    let mut room = replicated(Hedging::Adaptive);
    let calls = called(&room.begin(&[0]));
    assert!(!room.dispatch.awaits(calls[0].2, B));
    assert_eq!(room.answer(calls[0].2, B, &[0.0; 2]), []);
    assert_eq!(outputs(&room.answer(calls[0].2, A, &[1.0, 2.0])), Some(&[1.0, 2.0][..]));
}

/// An hour of late answers: nothing is kept of them.
#[test]
fn a_storm_of_late_answers_leaves_nothing() {
    let mut room = replicated(Hedging::Copies(2));
    for _ in 0..1_000 {
        let calls = called(&room.begin(&[0, 1]));
        for (from, experts, call) in &calls {
            room.answer(*call, *from, &vec![0.0; 2 * experts.len()]);
        }
        for (from, experts, call) in &calls {
            assert_eq!(room.answer(*call, *from, &vec![0.0; 2 * experts.len()]), []);
        }
    }
    assert!(room.dispatch.calls.is_empty() && room.dispatch.gathers.is_empty());
}

#[test]
fn the_own_engine_takes_part_and_is_cancelled_like_others() {
    let mut room = room(Hedging::Copies(2), vec![vec![ExpertHolder::Peer(A), ExpertHolder::Own]]);
    let steps = room.begin(&[0]);
    let [DispatchStep::Call { to: A, call, .. }, DispatchStep::Own { call: own, .. }] = steps[..] else {
        panic!("{steps:?}")
    };
    let steps = room.answer(call, A, &[1.0, 2.0]);
    assert!(steps.contains(&DispatchStep::CancelOwn { call: own }), "{steps:?}");
}

#[test]
fn what_nobody_waits_for_is_cancelled() {
    let mut room = replicated(Hedging::Off);
    room.begin(&[0, 1]);
    let gather = *room.dispatch.gathers.keys().next().unwrap();
    let steps = room.act(|dispatch, cx| dispatch.drop_gather(gather, cx));
    assert_eq!(cancelled(&steps), [A, B]);
}

#[test]
fn a_holder_that_was_struck_off_is_not_waited_for() {
    let mut room = replicated(Hedging::Off);
    room.begin(&[0]);
    room.plan.drop_holder(A);
    assert_eq!(whom(&room.check_timers(1.0)), [(B, vec![0])]);
}

#[test]
fn a_long_chunk_goes_out_in_frames_that_fit() {
    const WIDTH: usize = 2_048;
    // Of one holder with all experts, and of two with one half each.
    for (of_last, answers, calls) in [(A, 512, 2), (B, 512 * 8, 8)] {
        let mut holders = vec![vec![ExpertHolder::Peer(A)]; 8];
        holders[4..].fill(vec![ExpertHolder::Peer(of_last)]);
        let mut room = room(Hedging::Off, holders);
        let route = ExpertRoute { experts: (0..8).map(|expert| (ExpertId(expert), 0.125)).collect() };
        let values = || vec![0.0; 512 * WIDTH];
        let output = RouterOutput { residual: values(), normed: values(), routes: vec![route; 512] };
        let gather = Gather::new(StageId(0), BLOCK, KernelClass::Prefill, output, WIDTH, Millis(0.0)).unwrap();
        let mut steps = room.act(|dispatch, cx| dispatch.begin(gather, cx).1);
        assert!(steps.len() >= calls, "{answers} vectors of 8 KB come back in {} calls", steps.len());
        for step in std::mem::take(&mut steps) {
            let DispatchStep::Call { to, call, share, .. } = step else { panic!("{step:?}") };
            let vectors = share.vectors();
            assert!(4 * WIDTH * vectors.max(share.rows.len()) < potluck_protocol::MAX_FRAME, "{vectors} vectors");
            steps = room.answer(call, to, &vec![0.5; WIDTH * vectors]);
        }
        assert_eq!(outputs(&steps).map(<[f32]>::len), Some(answers * WIDTH));
    }
}

/// A room whose first two experts lie with these holders, and what it asks of them.
fn weights_asked(room: &mut Room, experts: &[u16]) -> Vec<usize> {
    let weights = |step: &DispatchStep| match step {
        DispatchStep::Call { share, .. } | DispatchStep::Own { share, .. } => Some(share.weights.len()),
        _ => None,
    };
    room.begin(experts).iter().filter_map(weights).collect()
}

#[test]
fn sums_are_asked_of_a_holder_of_all_experts_of_a_token() {
    let [a, b] = [A, B].map(ExpertHolder::Peer);
    let together = || room(Hedging::Off, vec![vec![a, b], vec![a, b]]);
    assert_eq!(weights_asked(&mut together(), &[0, 1]), [1], "one token");
    assert_eq!(weights_asked(&mut together(), &[0]), [0], "of one expert the vector is no longer than the sum");
    assert_eq!(weights_asked(&mut room(Hedging::Off, vec![vec![a], vec![b]]), &[0, 1]), [0, 0], "each has a part");
    let mut partly = room(Hedging::Off, vec![vec![a, b], vec![a]]);
    assert_eq!(weights_asked(&mut partly, &[0, 1]), [1], "of f32 the bits are the same whoever answers");
    partly.plan.expert_wire = WireType::F16;
    assert_eq!(weights_asked(&mut partly, &[0, 1]), [0], "with the other holder they would be others");
    let mut rounded = together();
    rounded.plan.expert_wire = WireType::F16;
    assert_eq!(weights_asked(&mut rounded, &[0, 1]), [1], "all holders answer with sums");
    let mut loading = together();
    loading.plan.pools = vec![potluck_plan::HolderPool { peer: A, slots: 1 }];
    assert_eq!(weights_asked(&mut loading, &[0, 1]), [0], "who loads on demand has no sums");
    let mut other = together();
    (other.plan.expert_wire, other.plan.pools) = (WireType::F16, vec![potluck_plan::HolderPool { peer: B, slots: 1 }]);
    assert_eq!(weights_asked(&mut other, &[0, 1]), [0], "the other holder would answer with vectors");
}

#[test]
fn another_holder_is_asked_for_the_sum_when_the_first_one_fails() {
    let [a, b] = [A, B].map(ExpertHolder::Peer);
    let mut room = room(Hedging::Off, vec![vec![a, b], vec![a, b]]);
    let (_, _, call) = called(&room.begin(&[0, 1])).remove(0);
    let steps = room.fail(call, A, ExpertFailure::Failed);
    let (to, experts, call) = called(&steps).remove(0);
    assert_eq!((to, experts), (B, vec![0, 1]));
    assert!(room.answer(call, B, &[1.0; 4]).iter().all(|step| !matches!(step, DispatchStep::Done { .. })), "too long");
}
