//! Holders that are late with their calls.

use potluck_plan::random::Random;

use super::*;

/// Expert 0 lies with A and B, expert 1 with B and C, all of which have answered after 10 ms so far. Calls enough for some
/// copies.
fn steady(hedging: Hedging) -> Room {
    let mut room = replicated(hedging);
    room.have_answered(&[A, B, C], 10.0);
    for _ in 0..20 {
        let calls = called(&room.begin(&[0, 1]));
        assert_eq!(calls.iter().map(|call| call.0).collect::<Vec<_>>(), [A, B], "as the plan prefers");
        answer_all(&mut room, &calls);
    }
    room
}

fn answer_all(room: &mut Room, calls: &[(PeerId, Vec<u16>, u64)]) -> Vec<DispatchStep> {
    let answer =
        |(from, experts, call): &(PeerId, Vec<u16>, u64)| room.answer(*call, *from, &vec![0.0; 2 * experts.len()]);
    calls.iter().flat_map(answer).collect()
}

/// A is asked for expert 0 and does not answer; B does in its place. Returns A's call.
fn overtake(room: &mut Room) -> u64 {
    let first = called(&room.begin(&[0]));
    assert_eq!(first[0].0, A);
    let other = called(&room.check_timers(room.now + 20.0));
    assert_eq!(other.iter().map(|call| call.0).collect::<Vec<_>>(), [B], "the next holder is asked, too");
    let steps = answer_all(room, &other);
    assert!(outputs(&steps).is_some());
    assert_eq!(cancelled(&steps), [], "its answer would show that it is there");
    first[0].2
}

#[test]
fn a_late_call_goes_to_the_next_holder_with_hedging_off_too() {
    for hedging in [Hedging::Off, Hedging::Adaptive] {
        let mut room = steady(hedging);
        let begun = room.now;
        room.begin(&[0]);
        assert_eq!(room.dispatch.next_deadline(), Some(Millis(begun + 20.0)), "the driver is asked to wake us then");
        assert_eq!(room.check_timers(begun + 19.0), []);
        assert_eq!(whom(&room.check_timers(begun + 20.0)), [(B, vec![0])], "{hedging:?}: it never takes twice as long");
        assert_eq!(room.check_timers(begun + 21.0), [], "once");
    }
}

#[test]
fn new_calls_prefer_others_while_a_holder_is_late() {
    let mut room = steady(Hedging::Off);
    let overtaken = overtake(&mut room);
    let calls = called(&room.begin(&[0, 1]));
    assert_eq!(calls.iter().map(|call| (call.0, &call.1[..])).collect::<Vec<_>>(), [(B, &[0, 1][..])]);
    answer_all(&mut room, &calls);
    room.members.known.remove(&B);
    room.check_timers(room.now);
    assert_eq!(whom(&room.begin(&[0])), [(A, vec![0])], "it is better than nobody");
    assert!(room.dispatch.awaits(overtaken, A) && !room.dispatch.awaits(overtaken, B));
}

#[test]
fn a_late_answer_brings_its_holder_back() {
    let mut room = steady(Hedging::Off);
    let overtaken = overtake(&mut room);
    room.now += 1.0;
    assert_eq!(room.answer(overtaken, B, &[0.0; 2]), [], "somebody else's does not count");
    assert_eq!(whom(&room.begin(&[0])), [(B, vec![0])]);
    assert_eq!(room.answer(overtaken, A, &[9.0; 2]), [], "nobody waits for it");
    assert_eq!(whom(&room.begin(&[0])), [(A, vec![0])], "and it is there");
    assert!(!room.dispatch.awaits(overtaken, A), "one answer is awaited");
}

#[test]
fn a_failure_shows_as_well_that_a_late_holder_is_there_and_a_heartbeat_says_nothing_of_its_gpu() {
    let mut room = steady(Hedging::Off);
    let overtaken = overtake(&mut room);
    room.holders.heartbeat(A);
    assert_eq!(whom(&room.begin(&[0])), [(B, vec![0])]);
    assert_eq!(room.fail(overtaken, A, ExpertFailure::Busy), []);
    assert_eq!(whom(&room.begin(&[0])), [(A, vec![0])]);
}

#[test]
fn a_late_holder_that_refuses_in_the_end_is_asked_last() {
    let mut room = steady(Hedging::Off);
    for _ in 0..3 {
        let overtaken = overtake(&mut room);
        assert_eq!(room.fail(overtaken, A, ExpertFailure::Failed), []);
    }
    assert_eq!(whom(&room.begin(&[0])), [(B, vec![0])], "it is there, but cannot compute");
}

#[test]
fn a_silent_holder_is_asked_again_after_twelve_seconds_at_the_latest() {
    let mut room = steady(Hedging::Off);
    let begun = room.now;
    let overtaken = overtake(&mut room);
    assert_eq!(cancelled(&room.check_timers(begun + 12_000.0)), []);
    let calls = called(&room.begin(&[0]));
    assert_eq!(calls[0].0, B);
    answer_all(&mut room, &calls);
    assert_eq!(cancelled(&room.check_timers(begun + 12_021.0)), [A], "its call is given up");
    assert_eq!(whom(&room.begin(&[0])), [(A, vec![0])]);
    assert!(!room.dispatch.awaits(overtaken, A), "nothing is kept of it");
}

#[test]
fn nothing_is_kept_of_a_late_holder_that_left() {
    let mut room = steady(Hedging::Off);
    let overtaken = overtake(&mut room);
    room.members.ended(A, Millis(room.now));
    room.holders.forget(A);
    room.check_timers(room.now + 1.0);
    assert!(!room.dispatch.awaits(overtaken, A));
    assert_eq!(room.holders.reports(|_| 0).iter().map(|report| report.peer).collect::<Vec<_>>(), [B, C]);
}

#[test]
fn a_call_that_is_late_at_both_holders_is_not_copied_further() {
    let mut room = steady(Hedging::Off);
    overtake(&mut room);
    room.begin(&[0]);
    assert_eq!(room.check_timers(room.now + 20.0), [], "B is late, and A is, too");
    assert_eq!(whom(&room.begin(&[1])), [(C, vec![1])]);
}

#[test]
fn a_device_that_was_held_up_itself_first_reads_what_has_come() {
    let mut room = steady(Hedging::Off);
    let begun = room.now;
    room.begin(&[0]);
    assert_eq!(room.check_timers(begun + 90.0), [], "nobody looked for 70 ms");
    assert_eq!(room.dispatch.next_deadline(), Some(Millis(begun + 100.0)), "the timeout is no later for that");
    assert_eq!(whom(&room.check_timers(begun + 110.0)), [(B, vec![0])]);
}

/// Both are asked at once and B is quicker each time, so that no call of A's is ever late.
#[test]
fn a_holder_that_is_overtaken_every_time_has_to_show_that_it_is_there() {
    for is_there in [true, false] {
        let mut room = room(Hedging::Copies(2), vec![[A, B].map(ExpertHolder::Peer).to_vec()]);
        room.have_answered(&[A, B], 10.0);
        let (mut asked, mut cancels) = (0, 0);
        for _ in 0..100 {
            let calls = called(&room.begin(&[0]));
            let (of_a, of_b): (Vec<_>, Vec<_>) = calls.into_iter().partition(|call| call.0 == A);
            asked += of_a.len();
            room.now += 9.0;
            let steps = answer_all(&mut room, &of_b);
            assert!(outputs(&steps).is_some());
            cancels += cancelled(&steps).len();
            room.check_timers(room.now + 2.0);
            for call in
                of_a.iter().filter(|call| is_there && room.dispatch.awaits(call.2, A)).cloned().collect::<Vec<_>>()
            {
                answer_all(&mut room, &[call]);
            }
        }
        if is_there {
            assert_eq!((asked, cancels), (100, 80), "one call in five is left open, and answered")
        } else {
            assert!((5..=7).contains(&asked), "it was asked {asked} times, and B alone from then on")
        }
    }
}

/// Calls of 200 blocks, each with all experts, after 200 quick ones: how many there were for each expert. All holders take
/// 10 ms, and from then on so many times as long.
fn calls_if_all_slow_down(hedging: Hedging, times: f64) -> f64 {
    let peers: Vec<PeerId> = (10..15).map(|peer| PeerId([peer; 16])).collect();
    let pair = |index: usize| vec![ExpertHolder::Peer(peers[index]), ExpertHolder::Peer(peers[(index + 1) % 5])];
    let mut room = room(hedging, (0..5).map(pair).collect());
    let mut random = Random::new(3);
    let mut count = 0;
    for block in 0..400 {
        let mut due: Vec<(f64, PeerId, u64, usize)> = Vec::new();
        let mut steps = room.begin(&[0, 1, 2, 3, 4]);
        while outputs(&steps).is_none() {
            for (to, experts, call) in called(&steps) {
                let millis = (9.0 + 2.0 * random.unit()) * if block < 200 { 1.0 } else { times };
                due.push((room.now + millis, to, call, experts.len()));
                count += usize::from(block >= 200) * experts.len();
            }
            due.sort_by(|a, b| b.0.total_cmp(&a.0));
            let next = due.last().map_or(f64::INFINITY, |(at, ..)| *at);
            let deadline = room.dispatch.next_deadline().map_or(f64::INFINITY, |at| at.0);
            room.now = next.min(deadline);
            steps = if deadline < next {
                room.act(Dispatch::check_timers)
            } else {
                let (_, from, call, experts) = due.pop().unwrap();
                room.answer(call, from, &vec![0.0; 2 * experts])
            };
        }
    }
    count as f64 / 1_000.0
}

#[test]
fn a_busy_host_that_slows_all_holders_down_is_not_asked_twice_as_much() {
    for (hedging, most) in [(Hedging::Off, 1.05), (Hedging::Adaptive, 1.1)] {
        for times in [1.5, 3.0, 10.0] {
            let calls = calls_if_all_slow_down(hedging, times);
            println!("{hedging:?}, {times} times as slow: {calls:.3} calls for one");
            assert!(calls <= most, "{hedging:?}, {times} times as slow: {calls:.3} calls for one");
        }
    }
}

/// The mean phase of 20 s in which A takes so long for each call, B takes 10 ms, and both beat once a second.
fn phase_if_one_is_slow(hedging: Hedging, slow: f64) -> f64 {
    let mut room = room(hedging, vec![[A, B].map(ExpertHolder::Peer).to_vec()]);
    room.have_answered(&[A, B], 10.0);
    for _ in 0..50 {
        let calls = called(&room.begin(&[0]));
        room.now += 10.0;
        answer_all(&mut room, &calls);
    }
    let (begun, mut beat) = (room.now, room.now + 500.0);
    let mut due: Vec<(f64, PeerId, u64)> = Vec::new();
    let mut phases = 0;
    while room.now < begun + 20_000.0 {
        phases += 1;
        let mut steps = room.begin(&[0]);
        loop {
            for (to, _, call) in called(&steps) {
                due.push((room.now + if to == A { slow } else { 10.0 }, to, call));
            }
            if outputs(&steps).is_some() {
                break;
            }
            due.sort_by(|a, b| b.0.total_cmp(&a.0));
            let next = due.last().map_or(f64::INFINITY, |(at, ..)| *at);
            let deadline = room.dispatch.next_deadline().map_or(f64::INFINITY, |at| at.0);
            room.now = room.now.max(next.min(deadline).min(beat));
            steps = if beat <= room.now {
                beat += 1_000.0;
                room.holders.heartbeat(A);
                room.holders.heartbeat(B);
                room.act(Dispatch::check_timers)
            } else if deadline < next {
                room.act(Dispatch::check_timers)
            } else {
                let (_, from, call) = due.pop().unwrap();
                room.answer(call, from, &[0.0; 2])
            };
        }
    }
    (room.now - begun) / f64::from(phases)
}

#[test]
fn a_slow_gpu_that_still_beats_holds_up_few_tokens() {
    for hedging in [Hedging::Off, Hedging::Adaptive] {
        for slow in [100.0, 400.0, 900.0, 1_500.0, 5_000.0, 15_000.0] {
            let millis = phase_if_one_is_slow(hedging, slow);
            println!("{hedging:?}, calls of {slow} ms: {millis:.1} ms");
            assert!(millis < 17.0, "{hedging:?}, calls of {slow} ms: {millis:.1} ms instead of 10");
        }
    }
}
