//! Rooms in the simulator: whatever happens, the answer is the undisturbed one.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use potluck_protocol::{AnswerStop, MemberStatus, Message, PlanStatus, Role, Sharing};
use potluck_sim::{Answer, Fault, SimDevice, SimModel, THOUGHT, World, undisturbed};
use potluck_swarm::Membership;

const TEXT: &str = "a question that is a little longer than one chunk of sixty-four positions, so that chunks overlap";
const TOKENS: u32 = 24;

fn device(budget: u64) -> SimDevice {
    SimDevice::with_budget(budget)
}

fn guest() -> SimDevice {
    SimDevice::default()
}

fn expected(model: &SimModel) -> Vec<u32> {
    let prompt: Vec<u32> = TEXT.bytes().map(u32::from).collect();
    undisturbed(model, &prompt, TOKENS as usize)
}

fn finished(index: usize) -> impl Fn(&World) -> bool {
    move |world| world.answer(index, 1).is_some_and(|answer| answer.end.is_some())
}

fn assert_undisturbed(answer: &Answer, model: &SimModel, event_log: &str) {
    assert_eq!(answer.end, Some(AnswerStop::Length), "{event_log}: the answer must end by length: {answer:?}");
    assert_eq!(answer.tokens, expected(model), "{event_log}: the answer must be the undisturbed one");
}

/// Six dense blocks of 160 and two ends of 50: 1,060 bytes and 10 of overhead a device.
#[test]
fn three_devices_answer_what_one_would() {
    let mut world = World::new(1, SimModel::dense(6), Sharing::Fastest, device(460));
    world.add(device(460), 10.0);
    world.add(device(460), 20.0);
    let asker = world.add(guest(), 30.0);
    world.prompt(asker, 1, TEXT, TOKENS, 5_000.0);
    world.run(120_000.0, finished(asker));
    assert_undisturbed(world.answer(asker, 1).unwrap(), &SimModel::dense(6), "three stages");
    let room = world.view(0).room.unwrap().clone();
    assert_eq!(room.plan.status, PlanStatus::Up);
    assert_eq!(room.plan.plan.unwrap().stages.len(), 3);
}

/// The next prompt has what was said, not what was thought; a continued answer has both.
#[test]
fn reasoning_and_answer_reach_the_asker_apart_and_go_into_the_next_prompt_as_the_template_wants() {
    let mut world = World::new(1, SimModel::dense(6), Sharing::Fastest, device(2_000));
    let asked = Message::new(Role::User, "why?<think>");
    world.converse(0, 1, vec![asked.clone()], TOKENS, 5_000.0);
    world.run(60_000.0, |world| world.answer(0, 1).is_some_and(|answer| answer.end.is_some()));
    let first = world.answer(0, 1).unwrap().clone();
    let written = |answer: &Answer| answer.tokens.iter().filter_map(|token| char::from_u32(*token)).collect::<String>();
    assert_eq!(format!("{}{}", first.reasoning, first.text), written(&first));
    assert_eq!(first.reasoning.len(), THOUGHT);
    let answer = Message { reasoning: first.reasoning.clone(), ..Message::new(Role::Assistant, &first.text) };
    world.converse(0, 2, vec![asked.clone(), answer, Message::new(Role::User, "and?")], TOKENS, 60_000.0);
    let thought = Message { reasoning: first.reasoning[..2].to_owned(), ..Message::new(Role::Assistant, "") };
    world.converse(0, 3, vec![asked.clone(), thought], TOKENS, 120_000.0);
    world.run(300_000.0, |world| world.answer(0, 3).is_some_and(|answer| answer.end.is_some()));
    let [next, continued] = [2, 3].map(|request| world.answer(0, request).unwrap());
    let said = asked.content.len() + first.text.len() + "and?".len();
    assert_eq!(next.timings.unwrap().prompt_tokens as usize, said, "what was thought is left out");
    assert_eq!((next.reasoning.as_str(), &next.text), ("", &written(next)));
    assert_eq!(continued.timings.unwrap().prompt_tokens as usize, asked.content.len() + 2);
    assert_eq!(continued.reasoning.len(), THOUGHT - 2, "it goes on in the middle of a thought");
}

#[test]
fn a_model_too_large_for_the_room_says_by_how_much_and_starts_when_help_comes() {
    let mut world = World::new(2, SimModel::dense(6), Sharing::Fastest, device(460));
    world.prompt(0, 1, TEXT, TOKENS, 500.0);
    world.run(5_000.0, |_| false);
    let plan = world.view(0).room.unwrap().plan.clone();
    assert_eq!(plan.status, PlanStatus::Waiting);
    assert!(plan.reason.contains("610 bytes more"), "{}", plan.reason);
    world.add(device(400), 6_000.0);
    world.add(device(400), 6_000.0);
    world.run(120_000.0, finished(0));
    assert_undisturbed(world.answer(0, 1).unwrap(), &SimModel::dense(6), "help came later");
}

#[test]
fn experts_on_other_peers_answer_what_one_device_would() {
    // A block is 100 + 5 + 8 × 20; the helpers hold experts only, 250 bytes each.
    let model = SimModel { blocks: 3, experts: 8, kv_bytes: 0, state_bytes: 0 };
    let mut world = World::new(3, model.clone(), Sharing::Fastest, device(530));
    world.add(device(250), 10.0);
    world.add(device(250), 20.0);
    world.prompt(0, 1, TEXT, TOKENS, 5_000.0);
    world.run(300_000.0, finished(0));
    assert_undisturbed(world.answer(0, 1).unwrap(), &model, "remote experts");
    let plan = world.view(0).room.unwrap().plan.plan.clone().unwrap();
    assert!(!plan.stages[0].remote.is_empty(), "experts must be on the other peers: {plan:?}");
}

#[test]
fn a_device_without_the_key_gets_nothing_until_the_host_lets_it_in() {
    let mut world = World::new(4, SimModel::dense(6), Sharing::Everyone, device(2_000));
    let stranger = world.add(SimDevice { invited: false, ..device(2_000) }, 10.0);
    world.run(3_000.0, |_| false);
    assert_eq!(world.view(stranger).membership, Membership::Waiting);
    assert!(world.view(stranger).room.is_none(), "the room's picture is for those who are in");
    assert_eq!(world.view(0).room.unwrap().members[1].status, MemberStatus::Asking);
    world.admit(stranger, true);
    world.run(10_000.0, |_| false);
    assert_eq!(world.view(stranger).membership, Membership::Inside);
    let plan = world.view(0).room.unwrap().plan.plan.clone().unwrap();
    assert_eq!(plan.stages.len(), 2, "everyone takes part, the newcomer too");
}

#[test]
fn a_device_that_is_turned_away_is_out() {
    let mut world = World::new(5, SimModel::dense(6), Sharing::Everyone, device(2_000));
    let stranger = world.add(SimDevice { invited: false, ..device(2_000) }, 10.0);
    world.run(1_000.0, |_| false);
    world.admit(stranger, false);
    world.run(3_000.0, |_| false);
    assert_eq!(world.view(stranger).membership, Membership::Outside);
}

#[test]
fn a_removed_device_comes_back_and_a_banned_one_does_not() {
    let mut world = World::new(6, SimModel::dense(6), Sharing::Everyone, device(620));
    let [removed, banned] = [5.0, 9.0].map(|at| world.add(device(620), at));
    world.run(5_000.0, |_| false);
    world.remove(removed);
    world.ban(banned);
    world.run(10_000.0, |_| false);
    for (index, sentence) in [(removed, "removed"), (banned, "does not let it in again")] {
        assert_eq!(world.view(index).membership, Membership::Outside);
        assert!(world.closed(index).is_some_and(|reason| reason.contains(sentence)), "{:?}", world.closed(index));
    }
    for index in [removed, banned] {
        world.fault(Fault::Reload(index, 500.0), 11_000.0);
    }
    world.run(20_000.0, |_| false);
    assert_eq!(world.view(removed).membership, Membership::Inside);
    assert_eq!(world.view(banned).membership, Membership::Outside);
}

/// A ban in the middle of an answer: the others meet under another secret, and the answer is the undisturbed one.
#[test]
fn a_ban_during_an_answer_does_not_change_it() {
    for seed in 0..300u64 {
        let mut world = World::new(seed, SimModel::dense(6), Sharing::Everyone, device(620));
        let workers = [5.0, 9.0, 13.0].map(|at| world.add(device(620), at));
        let banned = workers[(seed % 3) as usize];
        let asker = world.add(guest(), 20.0);
        world.prompt(asker, 1, TEXT, TOKENS, 3_000.0);
        world.run(3_000.0 + (seed * 37 % 900) as f64, |_| false);
        world.ban(banned);
        world.run(400_000.0, finished(asker));
        assert_undisturbed(world.answer(asker, 1).unwrap(), &SimModel::dense(6), &format!("seed {seed}"));
        let later = world.now() + 5_000.0;
        world.run(later, |_| false);
        for index in workers.into_iter().filter(|index| *index != banned) {
            assert!(!world.in_session(index).contains(&banned), "seed {seed}: device {index} still talks to it");
            assert!(world.in_session(index).len() >= 3, "seed {seed}: the host, the other one and the asker");
        }
    }
}

/// One random fault in the middle of an answer; the devices left over always suffice.
#[test]
fn thousands_of_rooms_survive_one_fault() {
    let mut recoveries = 0;
    for seed in 0..3_000u64 {
        let hash = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let model = if seed % 3 == 0 {
            SimModel { blocks: 4, experts: 6, kv_bytes: 0, state_bytes: 0 }
        } else {
            SimModel::dense(6)
        };
        let share = if seed % 2 == 0 { Sharing::Fastest } else { Sharing::Everyone };
        let budget = 620;
        let mut world = World::new(seed, model.clone(), share, device(budget));
        for i in 1..4 {
            world.add(device(budget), f64::from(i) * 7.0);
        }
        let asker = world.add(guest(), 30.0);
        world.prompt(asker, 1, TEXT, TOKENS, 3_000.0);
        let victim = 1 + (hash >> 20) as usize % 3;
        let back = 200.0 + (hash >> 30) as f64 % 4_000.0;
        let fault = match (hash >> 8) % 5 {
            0 => Fault::Kill(victim),
            1 => Fault::Reload(victim, back),
            2 => Fault::Outage(victim, back),
            3 => Fault::RelayRestart(back),
            _ => Fault::DeviceLost(victim),
        };
        let at = 3_000.0 + (hash >> 40) as f64 % 3_000.0;
        world.fault(fault, at);
        world.run(400_000.0, finished(asker));
        let event_log = format!("seed {seed}, {share:?}, {fault:?} at {at:.0} ms");
        let answer = world.answer(asker, 1).unwrap_or_else(|| panic!("{event_log}: no answer"));
        assert_undisturbed(answer, &model, &event_log);
        recoveries += answer.recoveries;
    }
    assert!(recoveries > 300, "the faults must hit answers, only {recoveries} recoveries happened");
}

#[test]
fn joins_during_an_answer_do_not_disturb_it() {
    for seed in 0..500u64 {
        let share = if seed % 2 == 0 { Sharing::Fastest } else { Sharing::Everyone };
        let mut world = World::new(seed, SimModel::dense(6), share, device(1_100));
        world.prompt(0, 1, TEXT, TOKENS, 1_000.0);
        for i in 0..3 {
            let at = 1_000.0 + (seed.wrapping_mul(77 + i) % 1_500) as f64;
            world.add(device(700), at);
        }
        world.prompt(0, 2, TEXT, TOKENS, 30_000.0);
        world.run(400_000.0, |world| world.answer(0, 2).is_some_and(|answer| answer.end.is_some()));
        for request in [1, 2] {
            assert_undisturbed(
                world.answer(0, request).unwrap(),
                &SimModel::dense(6),
                &format!("seed {seed}, question {request}"),
            );
        }
    }
}

#[test]
fn a_host_that_reloads_answers_the_next_question_without_a_press() {
    for seed in 0..200u64 {
        let mut world = World::new(seed, SimModel::dense(6), Sharing::Everyone, device(620));
        world.add(device(620), 5.0);
        world.add(device(620), 9.0);
        let asker = world.add(guest(), 12.0);
        world.prompt(asker, 1, TEXT, TOKENS, 3_000.0);
        world.fault(Fault::Reload(0, 300.0 + (seed * 13 % 3_000) as f64), 3_000.0 + (seed * 7 % 900) as f64);
        world.prompt(asker, 2, TEXT, TOKENS, 40_000.0);
        world.run(200_000.0, |world| world.answer(asker, 2).is_some_and(|answer| answer.end.is_some()));
        let first = world.answer(asker, 1).unwrap();
        assert!(first.end.is_some(), "seed {seed}: the interrupted answer must end and say so");
        assert_undisturbed(
            world.answer(asker, 2).unwrap(),
            &SimModel::dense(6),
            &format!("seed {seed}, after the reload"),
        );
    }
}

#[test]
fn a_room_whose_host_leaves_is_over_for_its_workers_and_askers() {
    for seed in 0..200u64 {
        let mut world = World::new(seed, SimModel::dense(6), Sharing::Everyone, device(620));
        let workers = [5.0, 9.0].map(|at| world.add(device(620), at));
        let asker = world.add(guest(), 12.0);
        world.prompt(asker, 1, TEXT, TOKENS, 3_000.0);
        let left = 500.0 + (seed * 37 % 4_000) as f64;
        world.fault(Fault::Leave(0), left);
        let others = [workers[0], workers[1], asker];
        let are_out = move |world: &World| others.iter().all(|index| world.closed(*index).is_some());
        world.run(60_000.0, are_out);
        for index in others {
            assert_eq!(world.closed(index), Some("The host has ended this room."), "seed {seed}, device {index}");
            assert_eq!(world.view(index).membership, Membership::Outside, "seed {seed}, device {index}");
            assert_eq!(world.view(index).contribution, None, "seed {seed}, device {index}");
        }
        if left > 3_000.0 {
            assert!(world.answer(asker, 1).unwrap().end.is_some(), "seed {seed}: the question must end and say so");
        }
    }
}

#[test]
fn a_room_that_is_closed_for_now_is_waited_for_and_answers_when_it_is_open_again() {
    for seed in 0..200u64 {
        let mut world = World::new(seed, SimModel::dense(6), Sharing::Everyone, device(620));
        let workers = [5.0, 9.0].map(|at| world.add(device(620), at));
        let asker = world.add(guest(), 12.0);
        world.prompt(asker, 1, TEXT, TOKENS, 3_000.0);
        let closed = 3_000.0 + (seed * 7 % 900) as f64;
        world.fault(Fault::CloseForNow(20_000.0), closed);
        world.run(closed + 10_000.0, |_| false);
        for index in [workers[0], workers[1], asker] {
            assert_eq!(world.view(index).membership, Membership::Waiting, "seed {seed}, device {index}");
        }
        world.prompt(asker, 2, TEXT, TOKENS, 60_000.0);
        world.run(200_000.0, |world| world.answer(asker, 2).is_some_and(|answer| answer.end.is_some()));
        let first = world.answer(asker, 1).unwrap();
        assert!(first.end.is_some(), "seed {seed}: the interrupted answer must end and say so");
        assert_undisturbed(world.answer(asker, 2).unwrap(), &SimModel::dense(6), &format!("seed {seed}, open again"));
    }
}

#[test]
fn the_kv_cache_of_conversations_that_a_reloaded_host_forgot_is_freed() {
    let mut world = World::new(7, SimModel::dense(6), Sharing::Everyone, device(620));
    world.add(device(620), 5.0);
    let asker = world.add(guest(), 12.0);
    world.prompt(asker, 1, TEXT, TOKENS, 3_000.0);
    world.prompt(asker, 2, TEXT, TOKENS, 20_000.0);
    world.fault(Fault::Reload(0, 500.0), 60_000.0);
    let long = TEXT.repeat(2);
    world.prompt(asker, 3, &long, TOKENS, 90_000.0);
    world.run(300_000.0, |world| world.answer(asker, 3).is_some_and(|answer| answer.end.is_some()));
    let prompt: Vec<u32> = long.bytes().map(u32::from).collect();
    let answer = world.answer(asker, 3).unwrap();
    assert_eq!(answer.end, Some(AnswerStop::Length), "the whole context must be free again");
    assert_eq!(answer.tokens, undisturbed(&SimModel::dense(6), &prompt, TOKENS as usize));
}
