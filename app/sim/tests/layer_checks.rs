//! Checks of what stages compute: the host repeats the work of stages for which it stands by.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use potluck_plan::PeerId;
use potluck_protocol::{LayerChecksView, MemberStatus, Sharing};
use potluck_sim::{Fault, SimDevice, SimModel, World, Wrong, undisturbed};

const TEXT: &str = "a question that is a little longer than one chunk of sixty-four positions, so that chunks overlap";
const TOKENS: u32 = 60;
/// A conversation of one page: it can be computed again beside the next one.
const SHORT: &str = "a short question";
const FEW: u32 = 40;

fn hash(seed: u64) -> u64 {
    let value = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (value ^ (value >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

fn checks(world: &World) -> LayerChecksView {
    world.view(0).room.map(|room| room.plan.checks.clone()).unwrap_or_default()
}

fn ended(world: &World, index: usize, request: u32) -> bool {
    world.answer(index, request).is_some_and(|answer| answer.end.is_some())
}

/// The others have memory for two blocks. A host with memory for everything stands by for all of them.
fn room(seed: u64, model: SimModel, host: SimDevice) -> World {
    let mut world = World::new(seed, model, Sharing::Everyone, host);
    (0..3).for_each(|index| _ = world.add(SimDevice::with_budget(430), 10.0 * f64::from(index)));
    world.check_answers(1.0);
    world
}

fn peer(index: usize) -> PeerId {
    PeerId([index as u8 + 1; 16])
}

fn failed(world: &World) -> Vec<usize> {
    let members = &world.view(0).room.unwrap().members;
    let failed = members.iter().filter(|member| member.status == MemberStatus::Failed);
    failed.map(|member| usize::from(member.peer.0[0]) - 1).collect()
}

#[test]
fn honest_stages_are_checked_and_answers_stay_what_they_are() {
    let prompt: Vec<u32> = TEXT.bytes().map(u32::from).collect();
    let expected = undisturbed(&SimModel::dense(6), &prompt, TOKENS as usize);
    let mut repeated = 0;
    for seed in 0..40 {
        let mut world = room(seed, SimModel::dense(6), SimDevice::with_budget(2_000));
        let asker = world.add(SimDevice::default(), 40.0);
        world.run(60_000.0, |world| checks(world).checked.len() >= 2);
        let begin = world.now() + 100.0;
        (1..=4).for_each(|request| world.prompt(asker, request, TEXT, TOKENS, begin + 300.0 * f64::from(request)));
        world.run(begin + 60_000.0, |world| (1..=4).all(|request| ended(world, asker, request)));
        world.run(world.now() + 5_000.0, |_| false);
        for request in 1..=4 {
            assert_eq!(world.answer(asker, request).unwrap().tokens, expected, "seed {seed}, answer {request}");
        }
        let found = checks(&world);
        assert!(found.differ.is_empty() && found.withheld.is_empty(), "seed {seed}: {found:?}");
        assert_eq!(failed(&world), [] as [usize; 0], "seed {seed}: {found:?}");
        assert_eq!(found.equal, found.repeated, "seed {seed}: {found:?}");
        repeated += found.repeated;
    }
    assert!(repeated > 100, "of 40 rooms with 4 answers of 3 stages {repeated} parts were computed again");
}

#[test]
fn honest_stages_are_not_blamed_when_devices_come_and_go() {
    let mut repeated = 0;
    for seed in 0..60 {
        let hash = hash(seed);
        let mut world = room(seed, SimModel::dense(6), SimDevice::with_budget(2_000));
        let asker = world.add(SimDevice::default(), 40.0);
        world.run(60_000.0, |world| !checks(world).checked.is_empty());
        let begin = world.now() + 100.0;
        world.chat(asker, SHORT, FEW, begin, begin + 20_000.0);
        let victim = 1 + hash as usize % 3;
        let at = begin + (hash >> 8) as f64 % 10_000.0;
        world.fault(
            match hash >> 40 & 3 {
                0 => Fault::Reload(victim, 500.0),
                1 => Fault::Outage(victim, 800.0),
                2 => Fault::DeviceLost(victim),
                _ => Fault::Freeze(victim, 3_000.0),
            },
            at,
        );
        world.run(begin + 40_000.0, |_| false);
        let found = checks(&world);
        assert!(found.differ.is_empty(), "seed {seed}: {found:?}");
        assert!(found.withheld.iter().all(|named| *named == peer(victim)), "seed {seed}: {victim} was away, {found:?}");
        let blamed: Vec<usize> = (0..4).filter(|index| world.has_blamed(*index)).collect();
        assert!(blamed.is_empty(), "seed {seed}: {blamed:?}, {found:?}");
        assert_eq!(found.equal, found.repeated, "seed {seed}: {found:?}");
        repeated += found.repeated;
    }
    assert!(repeated > 200, "{repeated} parts were computed again");
}

#[test]
fn a_stage_that_lies_loses_its_work_and_no_other_does() {
    let mut found = 0;
    for seed in 0..60 {
        let mut world = room(seed, SimModel::dense(6), SimDevice::with_budget(2_000));
        let asker = world.add(SimDevice::default(), 40.0);
        world.run(60_000.0, |world| checks(world).checked.len() >= 2);
        let checked = checks(&world).checked;
        let liar = usize::from(checked[hash(seed) as usize % checked.len()].0[0]) - 1;
        let begin = world.now() + 100.0;
        world.fault(Fault::Wrong(liar, Wrong::LiesInLayers(20)), begin);
        world.chat(asker, SHORT, FEW, begin + 100.0, begin + 60_000.0);
        world.run(begin + 60_000.0, |world| world.has_blamed(liar));
        for index in (0..4).filter(|index| *index != liar) {
            assert!(!world.has_blamed(index), "seed {seed}: {index} was blamed for {liar}");
        }
        if world.has_blamed(liar) {
            found += 1;
            // The view comes a little later.
            world.run(world.now() + 2_000.0, |world| !failed(world).is_empty());
            assert_eq!(failed(&world), [liar], "seed {seed}");
            let is_out = |world: &World| world.plan_up().is_some_and(|plan| !plan.peers().contains(&peer(liar)));
            world.run(world.now() + 30_000.0, is_out);
            assert!(is_out(&world), "seed {seed}: the room goes on without it");
        }
    }
    assert!(found > 50, "found in {found} of 60 rooms");
}

/// What was read of a liar's answers is marked. What is being written begins again, and then nothing of the liar is in it.
#[test]
fn answers_of_a_stage_that_lied_are_marked_or_written_again() {
    let prompt: Vec<u32> = SHORT.bytes().map(u32::from).collect();
    let expected = undisturbed(&SimModel::dense(6), &prompt, FEW as usize);
    let (mut marked, mut begun_again, mut wrong) = (0, 0, 0);
    for seed in 100..160 {
        let mut world = room(seed, SimModel::dense(6), SimDevice::with_budget(2_000));
        let askers = [1, 2].map(|index| world.add(SimDevice::default(), 40.0 * f64::from(index)));
        world.run(60_000.0, |world| checks(world).checked.len() >= 2);
        let checked = checks(&world).checked;
        let liar = usize::from(checked[hash(seed) as usize % checked.len()].0[0]) - 1;
        let begin = world.now() + 100.0;
        world.fault(Fault::Wrong(liar, Wrong::LiesInLayers(20)), begin);
        for (index, asker) in askers.into_iter().enumerate() {
            world.chat(asker, SHORT, FEW, begin + 100.0 + 700.0 * index as f64, begin + 60_000.0);
        }
        world.run(begin + 60_000.0, |world| world.has_blamed(liar));
        if !world.has_blamed(liar) {
            continue;
        }
        let before: usize = world.answers().filter(|(_, answer)| answer.end.is_some()).count();
        world.run(world.now() + 30_000.0, |_| false);
        let ended = || world.answers().filter(|(_, answer)| answer.end.is_some()).map(|(_, answer)| answer);
        for answer in ended() {
            assert!(
                answer.is_doubtful || answer.tokens == expected,
                "seed {seed}: {:?} differs and is not marked",
                answer.tokens
            );
            assert!(!(answer.is_doubtful && answer.begun_again > 0), "seed {seed}: it was computed without the liar");
        }
        let count = ended().filter(|answer| answer.is_doubtful).count();
        assert!(count >= before, "seed {seed}: {count} of {before} answers are marked");
        assert!(ended().count() > count, "seed {seed}: the room goes on");
        marked += count;
        begun_again += ended().filter(|answer| answer.begun_again > 0).count();
        wrong += ended().filter(|answer| answer.is_doubtful && answer.tokens != expected).count();
    }
    assert!(marked > 50 && begun_again > 50, "{marked} marked, {begun_again} written again");
    assert!(wrong > 30, "{wrong} answers were wrong");
}

/// A model with recurrent state: what a stage keeps of it is computed again as well.
#[test]
fn recurrent_stages_are_checked_too() {
    let model = SimModel { state_bytes: 1, ..SimModel::dense(6) };
    let mut repeated = 0;
    for seed in 0..20 {
        let mut world = room(seed, model.clone(), SimDevice::with_budget(3_000));
        let asker = world.add(SimDevice::default(), 40.0);
        world.run(60_000.0, |world| !checks(world).checked.is_empty());
        let begin = world.now() + 100.0;
        world.chat(asker, SHORT, FEW, begin, begin + 10_000.0);
        world.run(begin + 20_000.0, |_| false);
        let found = checks(&world);
        assert!(found.differ.is_empty() && found.withheld.is_empty(), "seed {seed}: {found:?}");
        assert!(!(0..4).any(|index| world.has_blamed(index)), "seed {seed}: {found:?}");
        assert_eq!(found.equal, found.repeated, "seed {seed}: {found:?}");
        repeated += found.repeated;
    }
    assert!(repeated > 20, "{repeated} parts were computed again");
}

/// Tokens that rooms write in half a minute of their own time, and parts of answers that the host computes again meanwhile.
fn written(share: f64, seeds: std::ops::Range<u64>) -> (usize, u32) {
    let (mut tokens, mut repeated) = (0, 0);
    for seed in seeds {
        let mut world = room(seed, SimModel::dense(6), SimDevice::with_budget(2_000));
        world.check_answers(share);
        world.check_by(hash(seed));
        let asker = world.add(SimDevice::default(), 40.0);
        // Where nothing is checked, nobody says so.
        world.run(20_000.0, |_| false);
        let begin = world.now();
        world.chat(asker, SHORT, FEW, begin, begin + 30_000.0);
        world.run(begin + 30_000.0, |_| false);
        tokens += world.answers().map(|(_, answer)| answer.tokens.len()).sum::<usize>();
        repeated += checks(&world).repeated;
    }
    (tokens, repeated)
}

#[test]
fn checks_take_little_of_a_rooms_time() {
    let (without, nothing) = written(0.0, 0..40);
    assert_eq!(nothing, 0);
    for share in [0.02, 1.0] {
        let (tokens, repeated) = written(share, 0..40);
        println!("{share} of the answers: {tokens} tokens, {without} without checks, {repeated} parts computed again");
        assert!(repeated > 0 && tokens as f64 >= 0.97 * without as f64, "{share}: {tokens} of {without} tokens");
    }
}

#[test]
fn a_stage_of_another_or_an_unknown_kind_that_lies_is_named_and_not_convicted() {
    let mut apart = 0;
    for seed in 0..20 {
        // Browsers may hide their GPUs: two without a name need not be of one kind.
        let (hosts, others) = if seed % 2 == 0 { ("simulated", "another") } else { ("", "") };
        let host = SimDevice { adapter: hosts, ..SimDevice::with_budget(2_000) };
        let mut world = World::new(seed, SimModel::dense(6), Sharing::Everyone, host);
        let other = SimDevice { adapter: others, ..SimDevice::with_budget(430) };
        (0..3).for_each(|index| _ = world.add(other, 10.0 * f64::from(index)));
        world.check_answers(1.0);
        let asker = world.add(SimDevice::default(), 40.0);
        world.run(60_000.0, |world| checks(world).unlike.len() >= 2);
        let begin = world.now() + 100.0;
        let liar = usize::from(checks(&world).unlike[0].0[0]) - 1;
        world.fault(Fault::Wrong(liar, Wrong::LiesInLayers(20)), begin);
        world.chat(asker, SHORT, FEW, begin + 100.0, begin + 20_000.0);
        world.run(begin + 25_000.0, |_| false);
        let found = checks(&world);
        assert!(found.checked.is_empty() && found.repeated > 0, "seed {seed}: {found:?}");
        assert!(found.apart.iter().all(|named| *named == peer(liar)), "seed {seed}: {liar} lied, {found:?}");
        assert!(!(0..4).any(|index| world.has_blamed(index)), "seed {seed}: {found:?}");
        apart += found.apart.len();
    }
    assert!(apart > 15, "named in {apart} of 20 rooms");
}

#[test]
fn where_the_host_holds_no_copy_nobody_is_checked_or_convicted() {
    for seed in 0..10 {
        let mut world = room(seed, SimModel::dense(6), SimDevice::default());
        let asker = world.add(SimDevice::default(), 40.0);
        world.run(60_000.0, |world| world.plan_up().is_some());
        let begin = world.now() + 100.0;
        (1..4).for_each(|index| world.fault(Fault::Wrong(index, Wrong::LiesInLayers(4)), begin));
        world.chat(asker, SHORT, FEW, begin + 100.0, begin + 10_000.0);
        world.run(begin + 20_000.0, |_| false);
        let found = checks(&world);
        assert!(
            found.asked && found.checked.is_empty() && found.unlike.is_empty() && found.repeated == 0,
            "seed {seed}: {found:?}"
        );
        assert!(!(0..4).any(|index| world.has_blamed(index)), "seed {seed}");
    }
}
