//! Experts pooled on devices that cannot hold a block: whoever answers, whoever leaves, the answer is the undisturbed one.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod phases;

use std::collections::BTreeSet;

use potluck_plan::PeerId;
use potluck_protocol::{AnswerStop, Hedging, MemberStatus, Sharing};
use potluck_sim::{
    Fault, Link, LogNormal, SimDevice, SimModel, World, Wrong, scenario, undisturbed, undisturbed_sampled,
};
use potluck_swarm::testing::{Mutation, set_mutation};

const TEXT: &str = "how do bees find home?";

/// A block takes 100 + 5 + 8 × 20 bytes.
fn model() -> SimModel {
    SimModel { blocks: 3, experts: 8, kv_bytes: 0, state_bytes: 0 }
}

/// Has room for twelve experts and not for a block.
fn helper() -> SimDevice {
    SimDevice::with_budget(250)
}

/// A host that holds everything but 19 experts, with helpers, and a guest that asks.
fn pooled(seed: u64, replicas: u8, hedging: Hedging, helpers: &[SimDevice]) -> (World, usize) {
    let mut world = World::new(seed, model(), Sharing::Fastest, SimDevice::with_budget(530));
    world.pool_experts(replicas, hedging);
    for (index, helper) in helpers.iter().enumerate() {
        world.add(*helper, 10.0 * index as f64);
    }
    let asker = world.add(SimDevice::default(), 100.0);
    (world, asker)
}

/// Helpers with experts, by their index.
fn holders(world: &World) -> Vec<usize> {
    let plan = world.plan_up().unwrap();
    plan.peers().into_iter().filter(|peer| !plan.has_stage(*peer)).map(|PeerId(id)| usize::from(id[0]) - 1).collect()
}

fn ended(world: &World, asker: usize, request: u32) -> bool {
    world.answer(asker, request).is_some_and(|answer| answer.end.is_some())
}

fn expected(tokens: u32) -> Vec<u32> {
    undisturbed(&model(), &TEXT.bytes().map(u32::from).collect::<Vec<_>>(), tokens as usize)
}

#[test]
fn replicas_are_loaded_while_the_plan_runs() {
    let (mut world, asker) = pooled(1, 2, Hedging::Adaptive, &[helper(); 5]);
    world.prompt(asker, 1, TEXT, 60, 300.0);
    world.run(30_000.0, |world| world.plan_up().is_some());
    let first = world.plan_up().unwrap().epoch;
    world.run(30_000.0, |world| world.fewest_holders() == 2);
    assert_eq!(world.fewest_holders(), 2, "every pooled expert has two holders: {:?}", world.plan_up());
    assert_eq!(world.plan_up().unwrap().epoch, first, "and the plan is the same");
    world.run(60_000.0, |world| ended(world, asker, 1));
    let answer = world.answer(asker, 1).unwrap();
    assert_eq!((&answer.tokens, answer.recoveries), (&expected(60), 0));
}

/// The plan places as many as the host wants, and nothing is loaded later.
#[test]
fn each_expert_has_as_many_holders_as_the_host_wants() {
    for wanted in 1..=3 {
        let (mut world, _) = pooled(1, wanted, Hedging::Adaptive, &[helper(); 6]);
        world.run(30_000.0, |world| world.plan_up().is_some_and(|plan| plan.peers().len() == 7));
        let counts = |world: &World| -> Vec<usize> {
            world.plan_up().unwrap().pooled().map(|(.., holders)| holders.len()).collect()
        };
        assert!(counts(&world).iter().all(|count| *count == usize::from(wanted)), "{wanted}: {:?}", counts(&world));
    }
}

#[test]
fn copies_that_are_missing_are_shown_while_others_load_them() {
    let slow = SimDevice { download: 40.0, ..helper() };
    let (mut world, _) = pooled(1, 2, Hedging::Adaptive, &[slow; 5]);
    world.run(60_000.0, |world| world.fewest_holders() == 2);
    let shown = |world: &World| world.view(0).room.and_then(|room| room.plan.experts.clone()).unwrap_or_default();
    assert_eq!(shown(&world).short, 0, "{:?}", shown(&world));
    world.fault(Fault::Kill(holders(&world)[0]), world.now());
    let progress = |world: &World| {
        let holders = shown(world).holders;
        holders
            .into_iter()
            .find_map(|holder| Some((holder.ordered, holder.loading.filter(|report| report.done.0 > 0)?)))
    };
    world.run(world.now() + 10_000.0, |world| progress(world).is_some());
    let (ordered, report) = progress(&world).unwrap_or_else(|| panic!("{:?}", shown(&world)));
    assert!(shown(&world).short > 0, "{:?}", shown(&world));
    assert_eq!(report.total.0, 20 * u64::from(ordered), "an expert has 20 bytes: {report:?}");
    world.run(world.now() + 60_000.0, |world| shown(world).short == 0);
    let settled = shown(&world);
    assert_eq!((settled.short, settled.fewest_holders), (0, 2), "{settled:?}");
}

#[test]
fn a_lost_holder_is_not_missed_and_another_takes_its_place() {
    for seed in 0..20 {
        let (mut world, asker) = pooled(seed, 2, Hedging::Adaptive, &[helper(); 5]);
        world.run(30_000.0, |world| world.fewest_holders() == 2);
        let (epoch, victim) = (world.plan_up().unwrap().epoch, holders(&world)[seed as usize % 4]);
        let begin = world.now() + 100.0;
        world.prompt(asker, 1, TEXT, 60, begin);
        world.fault(Fault::Kill(victim), begin + 2_000.0);
        world.run(begin + 60_000.0, |world| ended(world, asker, 1));
        let answer = world.answer(asker, 1).unwrap().clone();
        let log = format!("seed {seed}, device {victim}");
        assert_eq!((&answer.tokens, answer.recoveries), (&expected(60), 0), "{log}: {:?}", answer.sentences);
        assert_eq!(world.plan_up().unwrap().epoch, epoch, "{log}: no other plan was needed");
        world.run(begin + 60_000.0, |world| world.fewest_holders() == 2);
        assert_eq!(world.fewest_holders(), 2, "{log}: the others have loaded what it held");
        assert!(!holders(&world).contains(&victim), "{log}");
        let mut gaps: Vec<f64> = answer.times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        gaps.sort_by(f64::total_cmp);
        let (usual, longest) = (gaps[gaps.len() / 2], gaps[gaps.len() - 1]);
        assert!(longest <= 2.0 * usual, "{log}: the longest gap is {longest:.0} ms, the usual one {usual:.0} ms");
    }
}

/// Nothing but the relay's word that a holder left brings its calls to the next one: there are no copies, and timeouts are
/// longer than a token.
#[test]
fn calls_at_a_holder_that_leaves_go_to_the_next_one_at_once() {
    const MILLI: f64 = 1.0;
    let near = |device: SimDevice| device.behind(Link::after(MILLI));
    for step in 0..20 {
        let mut world = World::new(step, model(), Sharing::Fastest, near(SimDevice::with_budget(530)));
        world.pool_experts(2, Hedging::Off);
        (0..5).for_each(|_| _ = world.add(near(helper()), 0.0));
        world.run(30_000.0, |world| world.fewest_holders() == 2);
        let victim = holders(&world)[step as usize % 4];
        let begin = world.now() + 100.0;
        world.prompt(0, 1, TEXT, 60, begin);
        // At any moment of a token.
        world.fault(Fault::Kill(victim), begin + 600.0 + f64::from(step as u32));
        world.run(begin + 60_000.0, |world| ended(world, 0, 1));
        let answer = world.answer(0, 1).unwrap();
        assert_eq!((&answer.tokens, answer.recoveries), (&expected(60), 0), "{step} ms: {:?}", answer.sentences);
        let mut gaps: Vec<f64> = answer.times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        gaps.sort_by(f64::total_cmp);
        let (usual, longest) = (gaps[gaps.len() / 2], gaps[gaps.len() - 1]);
        // A call that is lost as its answer leaves costs a round trip over the relay, the engine's work, and the relay's word.
        let most = usual + 5.0 * MILLI + 3.0;
        assert!(longest <= most, "{step} ms, device {victim}: a gap of {longest:.1} ms, usually {usual:.1} ms");
    }
}

/// A host that runs everything alone spreads the experts over whoever comes later, if it was asked to. What that costs is
/// known, and no reason against it.
#[test]
fn experts_are_spread_over_devices_that_come_later() {
    let mut world = World::new(1, model(), Sharing::Experts, SimDevice::with_budget(2_000));
    let alone = |world: &World| world.plan_up().is_some_and(|plan| plan.peers().len() == 1);
    world.run(10_000.0, alone);
    assert!(alone(&world), "{:?}", world.plan_up());
    for helpers in 1..=2 {
        world.add(helper(), world.now());
        world.run(world.now() + 30_000.0, |world| world.plan_up().is_some() && holders(world).len() == helpers);
        assert_eq!(holders(&world).len(), helpers, "{:?}", world.plan_up());
    }
    world.prompt(0, 1, TEXT, 30, world.now());
    world.run(world.now() + 60_000.0, |world| ended(world, 0, 1));
    assert_eq!(world.answer(0, 1).unwrap().tokens, expected(30));
    world.run(world.now() + 5_000.0, |_| false);
    let sentence = world.view(0).room.unwrap().plan.spreading.clone().unwrap();
    assert!(sentence.starts_with("Experts are spread: "), "{sentence}");
    let second = holders(&world)[1];
    world.fault(Fault::Kill(second), world.now());
    world.run(world.now() + 20_000.0, |world| world.plan_up().is_some() && holders(world).len() == 1);
    assert_eq!(
        (holders(&world).len(), world.fewest_holders()),
        (1, 2),
        "the other one has copies of all: {:?}",
        world.plan_up()
    );
}

#[test]
fn a_thousand_rooms_with_pooled_experts_survive_holders_that_are_killed() {
    let pooled = scenario("pooled-experts").unwrap();
    let mut recoveries = [0; 2];
    for seed in 0..1_000 {
        let run = (pooled.run)(seed);
        // The rooms of two seeds in six have one holder of each expert, the others two.
        recoveries[usize::from(seed % 6 > 1)] += run.recoveries;
        if let Some(failure) = run.failure {
            let log = run.event_log.join("\n");
            panic!("{failure}\n{log}\nreplay: cargo xtask simulate pooled-experts --seed {seed}");
        }
    }
    println!(
        "recoveries of a third of the rooms with one holder an expert: {}, of the others: {}",
        recoveries[0], recoveries[1]
    );
    assert!(recoveries[1] < recoveries[0], "two holders of each expert must spare most of them: {recoveries:?}");
}

/// A thousand rooms: `cargo xtask simulate vanishing-holder --seeds 1000`.
#[test]
fn a_holder_that_vanishes_in_mid_answer_is_hardly_noticed() {
    let rooms = scenario("vanishing-holder").unwrap();
    for seed in 0..72 {
        let run = (rooms.run)(seed);
        if let Some(failure) = run.failure {
            let log = run.event_log.join("\n");
            panic!("{failure}\n{log}\nreplay: cargo xtask simulate vanishing-holder --seed {seed}");
        }
        assert_eq!(run.recoveries, 0, "seed {seed}: the answer goes on");
    }
}

/// Side by side: `cargo xtask simulate pooled-forecast`.
#[test]
fn tokens_take_what_was_predicted_whoever_holds_the_experts() {
    let rooms = scenario("pooled-forecast").unwrap();
    let run = (rooms.run)(1);
    let log = run.event_log.join("\n");
    println!("{log}");
    assert!(run.event_log.len() > 10, "at least ten rooms: {log}");
    assert_eq!(run.failure, None, "a prediction is off by more than 12%\n{log}");
}

/// Nothing passes a holder's link for a while, and then everything arrives at once.
#[test]
fn a_storm_of_late_answers_changes_nothing() {
    for seed in 0..20 {
        let (mut world, asker) = pooled(seed, 2, Hedging::Adaptive, &[helper(); 5]);
        world.run(30_000.0, |world| world.fewest_holders() == 2);
        let begin = world.now() + 100.0;
        world.prompt(asker, 1, TEXT, 60, begin);
        for (index, holder) in holders(&world).into_iter().enumerate().take(2) {
            world.fault(Fault::Cut(holder, 1_500.0), begin + 1_000.0 + 2_000.0 * index as f64);
        }
        world.run(begin + 120_000.0, |world| ended(world, asker, 1));
        let answer = world.answer(asker, 1).unwrap();
        assert_eq!((&answer.tokens, answer.recoveries), (&expected(60), 0), "seed {seed}: {:?}", answer.sentences);
    }
}

#[test]
fn copies_at_once_cancel_the_slower_ones() {
    let slow = SimDevice { hesitation: Some(LogNormal { median: 20.0, sigma: 0.5 }), ..helper() };
    let (mut world, asker) = pooled(1, 2, Hedging::Copies(2), &[slow; 5]);
    world.run(30_000.0, |world| world.fewest_holders() == 2);
    let begin = world.now() + 100.0;
    world.prompt(asker, 1, TEXT, 60, begin);
    world.run(begin + 60_000.0, |world| ended(world, asker, 1));
    assert_eq!(world.answer(asker, 1).unwrap().tokens, expected(60));
    world.run(world.now() + 3_000.0, |_| false);
    let shown = world.view(0).room.unwrap().plan.experts.clone().unwrap();
    assert!(shown.pooled > 12, "{shown:?}");
    assert_eq!((shown.fewest_holders, shown.open_calls), (2, 0), "{shown:?}");
    assert!(shown.hedges > 60 && (1..shown.hedges).contains(&shown.hedges_won), "{shown:?}");
    assert!(shown.round_trip_ms > 20.0, "longer than the holders hesitate: {shown:?}");
    let passes: u32 = shown.phases.iter().map(|phase| phase.passes).sum();
    assert!(passes > 59, "each token has asked others: {shown:?}");
    assert!(shown.phases.iter().all(|phase| (1..=2).contains(&phase.asked)), "for two experts: {shown:?}");
    assert!(shown.phases.iter().all(|phase| phase.millis > 10.0 && phase.millis < 200.0), "{shown:?}");
    let cancelled: u32 = (1..6).map(|device| world.cancelled(device)).sum();
    assert!(cancelled > 20, "engines drop what lost early enough: {cancelled}");
}

#[test]
fn the_room_shows_who_holds_which_experts_what_they_cost_and_who_computed_how_much() {
    let (mut world, asker) = pooled(1, 2, Hedging::Adaptive, &[helper(); 5]);
    world.run(30_000.0, |world| world.fewest_holders() == 2);
    let begin = world.now() + 100.0;
    world.prompt(asker, 1, TEXT, 60, begin);
    world.run(begin + 60_000.0, |world| ended(world, asker, 1));
    world.run(world.now() + 3_000.0, |_| false);
    let plan = world.plan_up().unwrap();
    let room = world.view(0).room.unwrap();
    let shown = room.plan.experts.clone().unwrap();
    let copies: usize = plan.pooled().map(|(.., holders)| holders.len()).sum();
    assert_eq!((shown.wanted_holders, shown.short), (2, 0), "{shown:?}");
    assert!((shown.mean_holders - copies as f64 / f64::from(shown.pooled)).abs() < 1e-9, "{shown:?}");
    assert_eq!(shown.holders.iter().map(|holder| holder.peer).collect::<Vec<_>>(), {
        holders(&world).into_iter().map(|device| PeerId([device as u8 + 1; 16])).collect::<Vec<_>>()
    });
    for holder in &shown.holders {
        assert_eq!(holder.bytes.0, 20 * u64::from(holder.experts), "an expert has 20 bytes: {holder:?}");
        assert!(holder.answers > 0 && holder.median_ms > 0.0 && holder.slow_ms >= holder.median_ms, "{holder:?}");
    }
    let blocks = plan.stages.iter().map(|stage| stage.remote.len()).sum::<usize>() as f64;
    assert!(shown.trips > blocks - 0.5 && shown.trips <= blocks, "{blocks} blocks, {shown:?}");
    let token = room.plan.measured_token_ms;
    assert!(shown.trips_ms > shown.round_trip_ms && shown.trips_ms < token, "a token takes {token} ms: {shown:?}");
    // 22 letters and 59 tokens pass: the last one is not computed.
    let tokens = TEXT.len() as u64 + 59;
    let credit = |peer: PeerId| room.credits.iter().find(|credit| credit.peers.contains(&peer)).unwrap().work;
    assert_eq!(credit(plan.stages[0].peer).tokens, tokens, "the stage has computed every token once");
    for holder in &shown.holders {
        let work = credit(holder.peer);
        assert!(work.tokens > 0 && work.tokens <= tokens && work.gpu_millis > 0.0 && work.bytes.0 > 0, "{work:?}");
    }
    let guest = PeerId([asker as u8 + 1; 16]);
    assert!(room.credits.iter().all(|credit| !credit.peers.contains(&guest)), "who asks has computed nothing");
    let sentence = room.plan.spreading.clone().unwrap();
    assert!(sentence.starts_with("Experts are spread because whole blocks do not fit:"), "{sentence}");
}

/// A copy is asked for while the first holder hesitates, so a long tail costs less.
#[test]
fn hedging_after_a_delay_is_quicker_than_waiting() {
    let tail = SimDevice { hesitation: Some(LogNormal { median: 20.0, sigma: 1.0 }), ..helper() };
    let room = |seed, hedging| {
        let (mut world, asker) = pooled(seed, 2, hedging, &[tail; 6]);
        world.run(30_000.0, |world| world.fewest_holders() == 2);
        let begin = world.now() + 100.0;
        world.prompt(asker, 1, TEXT, 200, begin);
        world.run(begin + 200_000.0, |world| ended(world, asker, 1));
        assert_eq!(world.answer(asker, 1).unwrap().tokens, expected(200));
        world.answer(asker, 1).unwrap().token_millis(20).unwrap()
    };
    let millis = |hedging| (0..12).map(|seed| room(seed, hedging)).sum::<f64>() / 12.0;
    let (off, adaptive) = (millis(Hedging::Off), millis(Hedging::Adaptive));
    println!("milliseconds a token: without copies {off:.0}, adaptive {adaptive:.0}");
    assert!(adaptive < 0.95 * off, "without copies {off:.0} ms a token, adaptive {adaptive:.0}");
}

#[test]
fn all_holders_gone_at_once_ends_in_another_plan() {
    let (mut world, asker) = pooled(3, 2, Hedging::Adaptive, &[helper(); 4]);
    world.run(30_000.0, |world| world.fewest_holders() == 2);
    let begin = world.now() + 100.0;
    world.prompt(asker, 1, TEXT, 60, begin);
    for holder in holders(&world) {
        world.fault(Fault::Kill(holder), begin + 1_500.0);
    }
    for late in 0..3 {
        world.add(helper(), begin + 3_000.0 + f64::from(late));
    }
    world.run(begin + 120_000.0, |world| ended(world, asker, 1));
    let answer = world.answer(asker, 1).unwrap();
    assert_eq!(answer.tokens, expected(60));
    assert!(answer.recoveries > 0, "its experts were nowhere for a while");
}

/// Whoever holds all copies of an expert says that it cannot compute it, each time it is asked.
#[test]
fn an_answer_goes_on_without_a_holder_that_cannot_compute_or_ends_with_a_sentence() {
    for (seed, helpers) in [(0, 3), (1, 3), (2, 2), (3, 2)] {
        let (mut world, asker) = pooled(seed, 1, Hedging::Adaptive, &vec![helper(); helpers]);
        world.run(30_000.0, |world| world.fewest_holders() == 1);
        let unable = holders(&world)[0];
        let begin = world.now() + 100.0;
        world.fault(Fault::Wrong(unable, Wrong::Unable), begin);
        world.prompt(asker, 1, TEXT, 60, begin + 1.0);
        world.run(begin + 120_000.0, |world| ended(world, asker, 1));
        let answer = world.answer(asker, 1).unwrap();
        match answer.end.clone() {
            // 19 experts of 20 bytes: two helpers of 250 bytes hold them too, one does not.
            Some(AnswerStop::Length) if helpers == 3 => assert_eq!(answer.tokens, expected(60), "seed {seed}"),
            Some(AnswerStop::Failed(sentence)) if helpers == 2 => {
                assert!(sentence.contains("could not compute the experts of block"), "seed {seed}: {sentence}");
            }
            end => panic!("seed {seed}, {helpers} helpers: {end:?} after {} recoveries", answer.recoveries),
        }
    }
}

#[test]
fn answers_that_stand_still_together_fail_together() {
    let (mut world, asker) = pooled(2, 1, Hedging::Adaptive, &[helper(); 2]);
    world.run(30_000.0, |world| world.fewest_holders() == 1);
    let begin = world.now() + 100.0;
    world.fault(Fault::Wrong(holders(&world)[0], Wrong::Unable), begin);
    let requests = 1..=4;
    requests.clone().for_each(|request| world.prompt(asker, request, TEXT, 60, begin + f64::from(request)));
    let all_ended = |world: &World| requests.clone().all(|request| ended(world, asker, request));
    world.run(begin + 600_000.0, all_ended);
    assert!(all_ended(&world), "after {:.0} s", (world.now() - begin) / 1e3);
    let recoveries: Vec<u32> = world.answers().map(|(_, answer)| answer.recoveries).collect();
    assert!(recoveries.iter().all(|&recoveries| recoveries <= 4), "none waits for the others' plans: {recoveries:?}");
}

/// Members that the host found wrong, by their index.
fn failed(world: &World) -> Vec<usize> {
    let members = world.view(0).room.unwrap().members.clone();
    let failed = members.iter().filter(|member| member.status == MemberStatus::Failed);
    failed.map(|member| usize::from(member.peer.0[0]) - 1).collect()
}

/// A cheater has two devices, or two profiles of one, which give the same wrong answers. `invite`: by which invite a helper
/// came, of those that are the cheater's or of the others. Who was found wrong in the end, and who was.
fn two_that_collude(seed: u64, invite: impl Fn(usize, [usize; 2]) -> Option<u8>) -> (BTreeSet<usize>, [usize; 2]) {
    let room = |helpers: &[SimDevice]| {
        let (mut world, asker) = pooled(seed, 3, Hedging::Adaptive, helpers);
        world.give_out_invites(16);
        world.check_answers(0.5);
        world.run(30_000.0, |world| world.fewest_holders() == 3);
        (world, asker)
    };
    // Which helpers hold experts does not depend on how they came.
    let known = holders(&room(&[helper(); 7]).0);
    let cheaters = [known[seed as usize % 4], known[4]];
    let helpers: Vec<SimDevice> =
        (1..=7).map(|index| SimDevice { invite: invite(index, cheaters), ..helper() }).collect();
    let (mut world, asker) = room(&helpers);
    let begin = world.now() + 100.0;
    cheaters.iter().for_each(|cheater| world.fault(Fault::Wrong(*cheater, Wrong::Colludes(4)), begin));
    (1..=3).for_each(|request| world.prompt(asker, request, TEXT, 200, begin + f64::from(request)));
    let mut found = BTreeSet::new();
    while !ended(&world, asker, 3) && world.now() < begin + 300_000.0 {
        world.run(world.now() + 500.0, |_| false);
        found.extend(failed(&world));
    }
    (found, cheaters)
}

/// Two tabs or profiles of a cheater used to outvote the honest third holder.
#[test]
fn two_devices_that_came_by_one_invite_never_convict_an_honest_one_and_are_found() {
    let mut found = 0;
    for seed in 0..40 {
        let invite = |index: usize, cheaters: [usize; 2]| Some(if cheaters.contains(&index) { 0 } else { index as u8 });
        let (failed, cheaters) = two_that_collude(seed, invite);
        assert!(failed.iter().all(|device| cheaters.contains(device)), "seed {seed}: {failed:?} of {cheaters:?}");
        found += usize::from(!failed.is_empty());
    }
    assert!(found >= 20, "found in {found} of 40 rooms");
}

/// Without this the test above would show nothing.
#[test]
fn an_honest_one_is_convicted_where_anybody_checks() {
    set_mutation(Some(Mutation::AnyChecker));
    let wronged = (0..40).filter(|seed| {
        let (failed, cheaters) = two_that_collude(*seed, |index, _| Some(index as u8));
        failed.iter().any(|device| !cheaters.contains(device))
    });
    let wronged = wronged.count();
    set_mutation(None);
    assert!(wronged > 0, "in none of 40 rooms");
}

#[test]
fn where_all_came_by_one_link_nobody_checks_and_nobody_is_blamed() {
    for seed in 0..20 {
        let (failed, _) = two_that_collude(seed, |_, _| None);
        assert!(failed.is_empty(), "seed {seed}: {failed:?}");
    }
}

/// Three holders of each expert: a third computation decides, and the liar alone is dropped. The others go on.
#[test]
fn a_holder_that_lies_now_and_then_is_dropped_and_no_honest_one_is() {
    for seed in 0..20 {
        let helpers = [0, 1, 2, 3, 4, 5, 6].map(|invite| SimDevice { invite: Some(invite), ..helper() });
        let (mut world, asker) = pooled(seed, 3, Hedging::Adaptive, &helpers);
        world.give_out_invites(7);
        world.check_answers(0.5);
        world.run(30_000.0, |world| world.fewest_holders() == 3);
        let liar = holders(&world)[seed as usize % 5];
        let begin = world.now() + 100.0;
        world.fault(Fault::Wrong(liar, Wrong::Lies(4)), begin);
        (1..=3).for_each(|request| world.prompt(asker, request, TEXT, 200, begin + f64::from(request)));
        let peer = PeerId([liar as u8 + 1; 16]);
        let is_dropped = |world: &World| world.plan_up().is_some_and(|plan| !plan.peers().contains(&peer));
        world.run(begin + 300_000.0, |world| ended(world, asker, 3) || is_dropped(world));
        assert_eq!(failed(&world), [liar], "seed {seed}, after {:.0} ms", world.now() - begin);
        let recoveries: u32 = world.answers().map(|(_, answer)| answer.recoveries).sum();
        assert_eq!(recoveries, 0, "seed {seed}: the answers go on");
    }
}

/// What follows a token that was chosen before is tried beside it: its experts come with the same round trip a block.
#[test]
fn drafts_share_the_round_trips_of_their_token() {
    const SONG: &str = "row row row your boat";
    let prompt: Vec<u32> = SONG.bytes().map(u32::from).collect();
    let room = |seed: u64, song: bool| {
        let far = |device: SimDevice| SimDevice { link: Link { latency: 10.0, ..Link::default() }, ..device };
        let mut world = World::new(seed, model(), Sharing::Fastest, far(SimDevice::with_budget(530)));
        world.pool_experts(2, Hedging::Adaptive);
        (0..5).for_each(|_| _ = world.add(far(helper()), 0.0));
        world.run(30_000.0, |world| world.fewest_holders() == 2);
        let begin = world.now() + 100.0;
        let expected = if song {
            world.ask_sampled(0, 1, SONG, 200, 7, begin);
            undisturbed_sampled(&model(), &prompt, 200, 7)
        } else {
            world.prompt(0, 1, SONG, 200, begin);
            undisturbed(&model(), &prompt, 200)
        };
        world.run(begin + 200_000.0, |world| ended(world, 0, 1));
        assert_eq!(world.answer(0, 1).unwrap().tokens, expected, "seed {seed}, song: {song}");
        world.run(world.now() + 3_000.0, |_| false);
        let shown = world.view(0).room.unwrap().plan.experts.clone().unwrap();
        let trips: u32 = shown.phases.iter().map(|phase| phase.passes).sum();
        (world.answer(0, 1).unwrap().token_millis(20).unwrap(), f64::from(trips) / 200.0)
    };
    let mean = |song| {
        let all: Vec<(f64, f64)> = (0..8).map(|seed| room(seed, song)).collect();
        let of = |value: fn(&(f64, f64)) -> f64| all.iter().map(value).sum::<f64>() / all.len() as f64;
        (of(|room| room.0), of(|room| room.1))
    };
    let ((plain, plain_trips), (song, trips)) = (mean(false), mean(true));
    println!("{plain:.0} ms and {plain_trips:.1} round trips a token, of a song {song:.0} ms and {trips:.1}");
    assert!(song < 0.6 * plain, "{song:.0} ms a token of a song, otherwise {plain:.0}");
    assert!(trips < 0.6 * plain_trips, "{trips:.1} round trips a token of a song, otherwise {plain_trips:.1}");
}
