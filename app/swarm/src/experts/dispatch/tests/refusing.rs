//! Holders that say that they cannot compute, and what they say of themselves.

use potluck_plan::ExpertPool;

use super::*;

#[test]
fn a_holder_that_cannot_compute_is_asked_last_and_tried_again_with_its_heartbeat() {
    let mut room = replicated(Hedging::Off);
    let refuse = |room: &mut Room| {
        let calls = called(&room.begin(&[0]));
        let other = called(&room.fail(calls[0].2, A, ExpertFailure::Failed));
        room.answer(other[0].2, B, &[0.0; 2]);
        calls[0].0
    };
    for time in 0..3 {
        assert_eq!(refuse(&mut room), A, "refusal {time}");
    }
    let calls = called(&room.begin(&[0]));
    assert_eq!(calls[0].0, B, "no block need find that out again");
    room.answer(calls[0].2, B, &[0.0; 2]);
    room.holders.heartbeat(A);
    assert_eq!(refuse(&mut room), A, "tried once more");
    let calls = called(&room.begin(&[0]));
    assert_eq!(calls[0].0, B);
    room.answer(calls[0].2, B, &[0.0; 2]);
    room.holders.heartbeat(A);
    let calls = called(&room.begin(&[0]));
    room.answer(calls[0].2, A, &[0.0; 2]);
    assert_eq!(refuse(&mut room), A, "it has answered, so one refusal is none");
}

#[test]
fn who_cannot_and_who_does_not_answer_is_named_and_nobody_who_left() {
    let failed = |steps: &[DispatchStep]| match steps {
        [DispatchStep::Lost { failed, .. }, ..] | [.., DispatchStep::Lost { failed, .. }, _] => failed.clone(),
        steps => panic!("the experts are lost, not {steps:?}"),
    };
    let mut refused = replicated(Hedging::Off);
    let calls = called(&refused.begin(&[0]));
    let other = called(&refused.fail(calls[0].2, A, ExpertFailure::NotHere));
    assert_eq!(failed(&refused.fail(other[0].2, B, ExpertFailure::Failed)), [A, B]);

    let mut busy = room(Hedging::Off, vec![vec![ExpertHolder::Peer(A)], vec![ExpertHolder::Peer(C)]]);
    let calls = called(&busy.begin(&[0, 1]));
    assert_eq!(failed(&busy.fail(calls[0].2, A, ExpertFailure::Failed)), [A], "C was asked just now");

    let mut silent = room(Hedging::Off, vec![vec![ExpertHolder::Peer(A)]]);
    silent.begin(&[0]);
    for at in [501.0, 1_502.0, 3_503.0, 7_504.0] {
        silent.check_timers(at);
    }
    assert_eq!(failed(&silent.check_timers(10_000.0)), [A], "asked again and again");

    let mut gone = replicated(Hedging::Off);
    gone.begin(&[0]);
    [A, B].iter().for_each(|peer| _ = gone.members.known.remove(peer));
    assert_eq!(failed(&gone.check_timers(1.0)), []);

    let mut without_plan = room(Hedging::Off, vec![vec![ExpertHolder::Peer(A)]]);
    let calls = called(&without_plan.begin(&[0]));
    assert_eq!(failed(&without_plan.fail(calls[0].2, A, ExpertFailure::NoPlan)), [], "it is told the plan again");
}

#[test]
fn an_answer_in_another_number_format_names_its_holder_and_others_are_asked() {
    let otherwise =
        |room: &mut Room, call| room.act(|dispatch, cx| dispatch.answered_otherwise(call, A, WireType::F32, cx));
    let named = DispatchStep::OtherWireType { stage: StageId(0), holder: A, answered: WireType::F32 };
    let mut room = replicated(Hedging::Off);
    let calls = called(&room.begin(&[0]));
    let steps = otherwise(&mut room, calls[0].2);
    assert_eq!((&steps[0], whom(&steps)), (&named, vec![(B, vec![0])]));
    assert_eq!(otherwise(&mut room, calls[0].2), [], "nobody waits for the same answer again");
    let other = called(&steps)[0].2;
    assert_eq!(outputs(&room.answer(other, B, &[1.0, 2.0])), Some(&[1.0, 2.0][..]));

    let mut alone = self::room(Hedging::Off, vec![vec![ExpertHolder::Peer(A)]]);
    let calls = called(&alone.begin(&[0]));
    let steps = otherwise(&mut alone, calls[0].2);
    assert_eq!(steps[0], named, "the holder is named before its block is lost");
    assert!(matches!(steps[1], DispatchStep::Lost { .. }), "{steps:?}");
}

#[test]
fn what_a_holder_says_of_its_engine_is_believed_up_to_what_was_waited() {
    let mut room = room(Hedging::Off, vec![vec![ExpertHolder::Peer(A)]]);
    for engine in [f64::NEG_INFINITY, f64::NAN, f64::INFINITY] {
        let calls = called(&room.begin(&[0]));
        room.now += 10.0;
        room.act(|dispatch, cx| dispatch.answered(calls[0].2, ExpertHolder::Peer(A), &[0.0; 2], engine, cx));
        let waits = room.dispatch.waits();
        assert!((0.0..=10.0).contains(&waits.engine_millis), "{engine}: {waits:?}");
    }
}

/// The stage would have to load the expert first.
#[test]
fn a_copy_that_is_not_sent_takes_no_bytes_from_those_that_are() {
    let mut room = room(Hedging::Adaptive, vec![vec![ExpertHolder::Peer(A), ExpertHolder::Own]]);
    room.plan.stages[0].pool = Some(ExpertPool { slots: 2 });
    room.have_answered(&[A], 10.0);
    for _ in 0..20 {
        let calls = called(&room.begin(&[0]));
        room.answer(calls[0].2, A, &[0.0; 2]);
    }
    let before = format!("{:?}", room.dispatch.budgets);
    room.begin(&[0]);
    assert_eq!(room.check_timers(room.now + 30.0), [], "nobody else is asked");
    let first = |budgets: &str| budgets.matches("copies: 0.0").count();
    let after = format!("{:?}", room.dispatch.budgets);
    assert_eq!((first(&before), first(&after)), (2, 2), "{after}");
}
