//! Conversations that go back on a device with two stages.

use super::*;

/// The first and the last stage on one device, another one between them.
pub(super) fn with_both_ends() -> (Executor, EventContext) {
    let (mut executor, cx) = on(FIRST);
    let stage = |id: u16, peer| Stage::new(StageId(id), peer, BlockRange::new(id, id + 1));
    executor.plan.stages = vec![stage(0, FIRST), stage(1, SECOND), stage(2, FIRST)];
    (executor, cx)
}

/// Which conversations and positions the engine gets for the block of the last stage.
fn at_the_end(executor: &mut Executor, cx: &mut EventContext) -> Vec<(u32, u32)> {
    executor.start(cx);
    let batch = |action| match action {
        Action::Compute(Work { task: Task::Forward { batch, blocks, .. }, .. }) if blocks.start == 2 => Some(batch),
        _ => None,
    };
    let batches = std::mem::take(&mut cx.out.actions).into_iter().filter_map(batch);
    batches.flatten().map(|row| (row.conversation.0, row.position.0)).collect()
}

/// A chunk of one of two conversations.
pub(super) fn of(conversation: u32, stage: u16, pass: u64, base: u32) -> Forward {
    let (conversation, live) = (ConversationId(conversation), vec![ConversationId(1), ConversationId(2)]);
    Forward { conversation, live, ..chunk(stage, pass, base) }
}

/// A guest stops and asks again while a token is in the stage between. Its pages are those of the new question already.
#[test]
fn a_chunk_between_two_stages_of_a_device_is_dropped_when_the_first_one_has_gone_back() {
    let (mut executor, mut cx) = with_both_ends();
    for (pass, base) in [(1, 0), (2, 1), (3, 2)] {
        executor.forward(HOST, of(1, 0, pass, base), &mut cx);
    }
    executor.forward(SECOND, of(1, 2, 1, 0), &mut cx);
    assert_eq!(at_the_end(&mut executor, &mut cx), [(1, 0)]);
    executor.forward(HOST, of(1, 0, 4, 0), &mut cx);
    executor.forward(SECOND, of(1, 2, 2, 1), &mut cx);
    executor.forward(HOST, of(2, 0, 5, 0), &mut cx);
    executor.forward(SECOND, of(2, 2, 5, 0), &mut cx);
    assert_eq!(at_the_end(&mut executor, &mut cx), [(2, 0)], "the other conversation has a batch of its own");
    executor.forward(SECOND, of(1, 2, 3, 2), &mut cx);
    assert!(sent(&mut cx).is_empty(), "nobody hears of what nobody waits for");
    executor.forward(SECOND, of(1, 2, 4, 0), &mut cx);
    executor.computed(Computed { ticket: Ticket(2), outcome: Outcome::Done, millis: 1.0 }, &mut cx);
    assert_eq!(at_the_end(&mut executor, &mut cx), [(1, 0)], "the new question goes on");
}

#[test]
fn a_chunk_that_waits_for_the_last_stage_is_dropped_when_the_first_one_goes_back() {
    let (mut executor, mut cx) = with_both_ends();
    for (pass, base) in [(1, 0), (2, 1)] {
        executor.forward(HOST, of(1, 0, pass, base), &mut cx);
        executor.forward(SECOND, of(1, 2, pass, base), &mut cx);
    }
    executor.forward(HOST, of(2, 0, 3, 0), &mut cx);
    executor.forward(SECOND, of(2, 2, 3, 0), &mut cx);
    executor.forward(HOST, of(1, 0, 4, 1), &mut cx);
    let waiting: Vec<(u32, u64)> =
        executor.queues[&StageId(2)].waiting().map(|forward| (forward.conversation.0, forward.pass.0)).collect();
    assert_eq!(waiting, [(1, 1), (2, 3)], "what comes before is needed");
    executor.forward(SECOND, of(1, 2, 4, 1), &mut cx);
    assert!(sent(&mut cx).is_empty(), "there is no gap");
}

#[test]
fn chunks_before_the_position_to_which_a_device_goes_back_still_count() {
    let (mut executor, mut cx) = with_both_ends();
    for (pass, base) in [(1, 0), (2, 1), (3, 2), (4, 1), (5, 2), (6, 2)] {
        executor.forward(HOST, of(1, 0, pass, base), &mut cx);
    }
    for (pass, base) in [(1, 0), (2, 1), (3, 2), (4, 1), (5, 2), (6, 2)] {
        executor.forward(SECOND, of(1, 2, pass, base), &mut cx);
    }
    let waiting: Vec<u64> = executor.queues[&StageId(2)].waiting().map(|forward| forward.pass.0).collect();
    assert_eq!(waiting, [1, 4, 6], "2, 3 and 5 are computed again by 4 and 6");
    assert!(sent(&mut cx).is_empty(), "there is no gap");
    assert!(executor.rewinds.is_empty(), "and nothing is remembered any longer");
}

#[test]
fn a_chunk_that_fails_late_is_not_heard_of_where_its_tokens_were_sent_again() {
    let (mut executor, mut cx) = with_half_of_the_experts();
    executor.forward(FIRST, prompt(1, 0), &mut cx);
    executor.forward(FIRST, prompt(2, 1), &mut cx);
    executor.forward(FIRST, prompt(3, 2), &mut cx);
    assert_eq!(computes(&mut executor, &mut cx), 2, "the engine has no room for the third one");
    // The coordinator begins again at the second chunk before it hears that it fails.
    executor.forward(FIRST, prompt(4, 1), &mut cx);
    executor.forward(FIRST, prompt(5, 2), &mut cx);
    let waiting: Vec<u64> = executor.queues[&StageId(1)].waiting().map(|forward| forward.pass.0).collect();
    assert_eq!(waiting, [4, 5], "the third chunk would leave a gap, what was sent again does not");
    executor.computed(routed(1, vec![f32::NAN; WIDTH], &[1]), &mut cx);
    executor.forward(FIRST, prompt(6, 3), &mut cx);
    let frames = sent(&mut cx);
    assert!(frames.is_empty(), "and goes on up to the same position: {frames:?}");
}

#[test]
fn chunks_that_wait_for_a_stage_are_dropped_when_it_goes_back() {
    let (mut executor, mut cx) = on(FIRST);
    for (pass, base) in [(1, 0), (2, 1), (3, 2), (4, 1)] {
        executor.forward(HOST, of(1, 0, pass, base), &mut cx);
    }
    let waiting: Vec<u64> = executor.queues[&StageId(0)].waiting().map(|forward| forward.pass.0).collect();
    assert_eq!(waiting, [1, 4], "2 and 3 are computed again by 4");
    assert!(sent(&mut cx).is_empty(), "nobody hears of what nobody waits for");
}

#[test]
fn a_recurrent_state_goes_on_through_every_chunk_that_was_admitted() {
    let (mut executor, mut cx) = on(FIRST);
    executor.recurrent = true;
    for (pass, base) in [(1, 0), (2, 1), (3, 0)] {
        executor.forward(HOST, of(1, 0, pass, base), &mut cx);
    }
    let waiting: Vec<u64> = executor.queues[&StageId(0)].waiting().map(|forward| forward.pass.0).collect();
    assert_eq!(waiting, [1, 2, 3], "the engine keeps the copies that the coordinator knows of");
}

/// The stage between goes back with every chunk and never hands one on.
#[test]
fn few_positions_are_remembered_to_which_a_device_went_back() {
    let (mut executor, mut cx) = with_both_ends();
    for pass in 0..1_000u32 {
        executor.forward(HOST, Forward { count: 2, tokens: vec![65; 2], ..of(1, 0, pass.into(), pass) }, &mut cx);
        executor.start(&mut cx);
        executor.queue(StageId(0)).answered();
    }
    let remembered = executor.rewinds.remembered(&(StageId(2), ConversationId(1)));
    assert_eq!(remembered, limits::MAX_CHUNKS, "the newest ones");
}

/// A chunk in the middle of a stage would go on in a block from which the engine has taken its positions.
#[test]
fn chunks_that_wait_for_experts_are_dropped_when_their_stage_goes_back() {
    let (mut executor, mut cx) = with_half_of_the_experts();
    executor.forward(FIRST, prompt(1, 0), &mut cx);
    executor.forward(FIRST, prompt(2, 1), &mut cx);
    assert_eq!(computes(&mut executor, &mut cx), 2);
    for ticket in 0..2 {
        executor.computed(routed(ticket, vec![0.5; WIDTH], &[1]), &mut cx);
    }
    let calls = calls(&mut cx);
    executor.forward(FIRST, prompt(3, 1), &mut cx);
    let frames = sent(&mut cx);
    assert!(matches!(&frames[..], [Frame::ExpertCancel(cancel)] if cancel.call == calls[1].call), "{frames:?}");
    executor.expert_result(FIRST, result(&calls[0], vec![0.5; WIDTH]), &mut cx);
    assert_eq!(computes(&mut executor, &mut cx), 2, "what comes before goes on, and so does what was sent again");
}
