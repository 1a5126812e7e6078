//! What a stage says of passes and live conversations, true or not.

use std::collections::BTreeSet;

use super::rewinds::{of, with_both_ends};
use super::*;

const MUCH_LATER: u64 = 1 << 30;

fn bad(pass: u64, peer: PeerId) -> (Option<PassId>, StageFaultKind) {
    (Some(PassId(pass)), StageFaultKind::BadResult(peer))
}

#[test]
fn a_chunk_that_cannot_be_computed_ends_no_conversation() {
    let (mut executor, mut cx) = on(SECOND);
    executor.forward(FIRST, of(1, 1, 1, 0), &mut cx);
    let alone = |base| Forward { live: vec![ConversationId(2)], ..of(2, 1, 2, base) };
    executor.forward(FIRST, Forward { hidden: vec![f32::NAN; WIDTH], ..alone(0) }, &mut cx);
    executor.forward(FIRST, alone(7), &mut cx);
    executor.forward(FIRST, of(1, 1, 3, 1), &mut cx);
    let gap = (Some(PassId(2)), StageFaultKind::Gap(Position(0)));
    assert_eq!(faults(&mut cx), [(None, StageFaultKind::BadResult(FIRST)), gap]);
    assert!(executor.conversations().contains(&ConversationId(1)), "it goes on");
}

#[test]
fn a_stage_that_contradicts_its_own_passes_is_named() {
    let lies = [
        (of(1, 1, MUCH_LATER, 1), "a newer chunk of the conversation"),
        (Forward { live: vec![ConversationId(2)], ..of(2, 1, MUCH_LATER, 0) }, "the conversation was over"),
    ];
    for (lie, what) in lies {
        let (mut executor, mut cx) = on(SECOND);
        executor.forward(FIRST, of(1, 1, 1, 0), &mut cx);
        executor.forward(FIRST, lie, &mut cx);
        executor.forward(FIRST, of(1, 1, 2, 1), &mut cx);
        assert_eq!(faults(&mut cx), [bad(2, FIRST)], "{what}");
    }
}

#[test]
fn the_host_may_say_twice_what_it_says() {
    let (mut executor, mut cx) = on(FIRST);
    executor.forward(HOST, of(1, 0, 5, 0), &mut cx);
    executor.forward(HOST, only(6, 2), &mut cx);
    executor.forward(HOST, of(2, 0, 6, 0), &mut cx);
    executor.forward(HOST, of(1, 0, 5, 0), &mut cx);
    assert!(sent(&mut cx).is_empty(), "nobody is named");
    assert_eq!(executor.conversations(), BTreeSet::from([ConversationId(2)]), "the other one is over");
}

/// The stage between the two ends says that everything else is over.
#[test]
fn what_the_host_says_itself_counts_more_than_what_a_stage_says() {
    let (mut executor, mut cx) = with_both_ends();
    executor.forward(HOST, of(1, 0, 1, 0), &mut cx);
    executor.forward(SECOND, Forward { live: vec![ConversationId(2)], ..of(2, 2, MUCH_LATER, 0) }, &mut cx);
    executor.forward(HOST, of(1, 0, 2, 1), &mut cx);
    executor.forward(SECOND, of(1, 2, 1, 0), &mut cx);
    assert!(sent(&mut cx).is_empty(), "there is no gap, and no chunk is late");
    assert!(executor.conversations().contains(&ConversationId(1)), "it goes on at both stages");
    assert_eq!(executor.queues[&StageId(2)].len(), 1, "the host has never sent the other one");
}

/// The host's device has a stage in the middle: what it hands on is still what other devices have made of it.
#[test]
fn the_hosts_device_speaks_for_the_host_only_where_a_token_begins() {
    let (mut executor, _) = on(SECOND);
    let stage = |id: u16, peer| Stage::new(StageId(id), peer, BlockRange::new(id, id + 1));
    executor.plan.stages = vec![stage(0, FIRST), stage(1, HOST), stage(2, SECOND)];
    assert_eq!(executor.author(HOST, &of(1, 2, 1, 0)), Some(HOST));
    executor.plan.stages[0].peer = HOST;
    assert_eq!(executor.author(HOST, &of(1, 2, 1, 0)), None, "it compares what comes back with what it sent");
    executor.plan.stages[0].peer = SECOND;
    assert_eq!(executor.author(HOST, &of(1, 0, 1, 0)), None, "the host itself");
}

/// What the host's device hands on, it answers for.
#[test]
fn a_chunk_that_comes_back_is_the_one_that_the_host_sent() {
    let (mut executor, mut cx) = with_both_ends();
    let stage = |id: u16, peer| Stage::new(StageId(id), peer, BlockRange::new(id, id + 1));
    executor.plan.stages.push(stage(3, SECOND));
    executor.forward(HOST, of(1, 0, 4, 0), &mut cx);
    let alone = Forward { live: vec![ConversationId(1)], lm_head: None, ..of(1, 2, 4, 0) };
    for made_up in [of(1, 2, 5, 0), of(2, 2, 4, 0), Forward { base: Position(1), ..of(1, 2, 4, 0) }] {
        executor.forward(SECOND, made_up, &mut cx);
    }
    executor.forward(SECOND, alone, &mut cx);
    executor.start(&mut cx);
    for ticket in 0..2 {
        let outcome = Outcome::Hidden(vec![0.5; WIDTH]);
        executor.computed(Computed { ticket: Ticket(ticket), outcome, millis: 1.0 }, &mut cx);
    }
    let frames = sent(&mut cx);
    let [Frame::Forward(between), Frame::Forward(handed_on)] = &frames[..] else { panic!("one chunk: {frames:?}") };
    assert_eq!((between.stage, handed_on.stage), (StageId(1), StageId(3)));
    let expected = of(1, 3, 4, 0);
    assert_eq!((&handed_on.live, handed_on.lm_head), (&expected.live, expected.lm_head));
    assert!(handed_on.tokens.is_empty(), "nobody else gets token ids");
}

/// A conversation whose KV cache was given up has begun again, and its first chunks are still here when the stage before says so.
#[test]
fn a_stage_never_hands_on_what_it_was_told_is_over() {
    let (mut executor, mut cx) = on(SECOND);
    executor.forward(FIRST, of(1, 1, 1, 0), &mut cx);
    executor.forward(FIRST, of(1, 1, 2, 1), &mut cx);
    executor.forward(FIRST, of(1, 1, 9, 0), &mut cx);
    executor.forward(FIRST, Forward { live: vec![ConversationId(2)], ..of(2, 1, 5, 0) }, &mut cx);
    let waiting: Vec<u64> = executor.queues[&StageId(1)].waiting().map(|forward| forward.pass.0).collect();
    assert_eq!(waiting, [9, 5], "1 and 2 belong to what was over at 5");
}

/// A stage says that a conversation is over while its chunks wait behind it, and then goes on with it.
#[test]
fn a_conversation_that_was_falsely_said_to_be_over_is_computed_again() {
    let (mut executor, mut cx) = on(SECOND);
    executor.forward(FIRST, with(98, 4, &[1, 98]), &mut cx);
    executor.forward(FIRST, with(1, 5, &[1, 98]), &mut cx);
    executor.forward(FIRST, Forward { base: Position(1), ..with(1, 7, &[1, 98]) }, &mut cx);
    executor.forward(FIRST, Forward { base: Position(1), ..with(98, 6, &[98]) }, &mut cx);
    let gap = (Some(PassId(7)), StageFaultKind::Gap(Position(0)));
    assert_eq!(faults(&mut cx), [gap], "the host goes back, and nobody's answer ends");
    let waiting: Vec<u32> = executor.queues[&StageId(1)].waiting().map(|forward| forward.conversation.0).collect();
    assert_eq!(waiting, [98, 98], "chunk 7 without 5 would fail in this device's name");
}

/// A recurrent stage keeps chunks that a newer one gives up: only the next one tells whether it begins again.
#[test]
fn a_false_end_leaves_no_hole_in_a_recurrent_stage() {
    let (mut executor, mut cx) = on(SECOND);
    executor.recurrent = true;
    executor.plan.stages.iter_mut().for_each(|stage| stage.remote.clear());
    executor.forward(FIRST, with(98, 4, &[1, 98]), &mut cx);
    executor.forward(FIRST, with(1, 5, &[1, 98]), &mut cx);
    executor.forward(FIRST, Forward { base: Position(1), ..with(1, 8, &[1, 98]) }, &mut cx);
    executor.forward(FIRST, with(1, 9, &[1, 98]), &mut cx);
    assert_eq!(executor.queues[&StageId(1)].len(), 4, "all wait");
    executor.forward(FIRST, Forward { base: Position(1), ..with(98, 6, &[98]) }, &mut cx);
    assert_eq!(faults(&mut cx), [(Some(PassId(9)), StageFaultKind::Gap(Position(0)))]);
    let waiting: Vec<u32> = executor.queues[&StageId(1)].waiting().map(|forward| forward.conversation.0).collect();
    assert_eq!(waiting, [98, 98], "chunk 8 without 5 would fail in this device's name");
}

/// Many that are live at once, and many that the next one ends: with ever newer passes, with ever the same one, or with ever older ones.
#[test]
fn made_up_conversations_are_remembered_in_bounded_memory() {
    for (first_live, step, known, is_named) in
        [(Some(1), 1, 16, true), (None, 1, 1, false), (None, 0, 1, true), (None, -1, 1, true)]
    {
        let (mut executor, mut cx) = on(SECOND);
        for conversation in 1..1_000_u32 {
            let pass = (1_u64 << 30).saturating_add_signed(step * i64::from(conversation));
            let live = (first_live.unwrap_or(conversation)..=conversation).map(ConversationId).collect();
            executor.forward(FIRST, Forward { live, ..of(conversation, 1, pass, 0) }, &mut cx);
        }
        let (remembered, named) = (executor.conversations().len(), !faults(&mut cx).is_empty());
        let expected = (known, is_named);
        assert_eq!((remembered, named), expected, "a context of 1,024 positions has 16 pages; passes go by {step}");
    }
}

fn with(conversation: u32, pass: u64, live: &[u32]) -> Forward {
    Forward { live: live.iter().map(|id| ConversationId(*id)).collect(), ..of(conversation, 1, pass, 0) }
}

/// A pass is of one conversation, so one of the two is made up.
#[test]
fn of_two_chunks_with_the_same_pass_the_second_one_is_refused() {
    let (mut executor, mut cx) = on(SECOND);
    executor.forward(FIRST, with(1, 10, &[1]), &mut cx);
    executor.forward(FIRST, with(99, 10, &[99]), &mut cx);
    assert_eq!(faults(&mut cx), [bad(10, FIRST)]);
    executor.forward(FIRST, with(1, 10, &[1]), &mut cx);
    assert_eq!(faults(&mut cx), [bad(10, FIRST)], "and so is the first one, if it comes again");
    assert_eq!(executor.conversations(), BTreeSet::from([ConversationId(1)]));
}

/// Lies that had the device behind the liar contradict itself: the next one had heard other words, or the same ones in another order.
#[test]
fn what_a_stage_says_in_any_order_never_has_the_device_behind_it_hand_on_a_contradiction() {
    let lies: [&[Forward]; 3] = [
        &[with(1, 10, &[1]), with(99, 10, &[99]), with(1, 10, &[1])],
        &[
            with(1, 8, &[1]),
            with(99, 10, &[99]),
            with(98, 11, &[98, 99]),
            with(97, 20, &[1, 97, 98, 99]),
            with(1, 9, &[1]),
        ],
        &[with(1, 10, &[1]), with(2, 20, &[1, 2, 3]), with(3, 11, &[3]), with(1, 10, &[1])],
    ];
    for lies in lies {
        let (mut executor, mut cx) = on(SECOND);
        let named =
            |cx: &mut EventContext| faults(cx).iter().any(|(_, kind)| *kind == StageFaultKind::BadResult(FIRST));
        for (at, lie) in lies.iter().enumerate() {
            executor.forward(FIRST, lie.clone(), &mut cx);
            let is_last = at + 1 == lies.len();
            assert!(!is_last || named(&mut cx), "the liar is named for {lie:?}");
        }
    }
}
