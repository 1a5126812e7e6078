//! Five rooms that say why they run as they do: what was compared, and why each device is in or left out.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use potluck_panel::{
    Decision, DeviceDecision, KeptReason, LeftOut, NoPlanReason, Part, PartReason, Place, PlanDecision, ReplacedReason,
    StandbyDecision, WhyPlan,
};
use potluck_plan::{Bytes, PeerId};
use potluck_protocol::{Hedging, Sharing};
use potluck_sim::{Fault, Link, LogNormal, SimDevice, SimModel, World};

/// 6 blocks of 160 and two ends of 50: 1,060 bytes and 10 of overhead a device.
const DENSE: SimModel = SimModel::dense(6);
/// A block takes 100 + 5 + 8 × 20 bytes.
const EXPERTS: SimModel = SimModel { blocks: 3, experts: 8, kv_bytes: 0, state_bytes: 0 };

fn peer(index: usize) -> PeerId {
    PeerId([index as u8 + 1; 16])
}

fn part(why: &WhyPlan, index: usize) -> Part {
    match why.devices.iter().find(|device| device.peer == peer(index)) {
        Some(DeviceDecision { place: Place::Has(part), .. }) => *part,
        other => panic!("no part: {other:?}"),
    }
}

fn left_out(why: &WhyPlan, index: usize) -> LeftOut {
    match why.devices.iter().find(|device| device.peer == peer(index)) {
        Some(DeviceDecision { place: Place::LeftOut(reason), .. }) => *reason,
        other => panic!("not left out: {other:?}"),
    }
}

/// Prints what the host's page says behind "Why this plan?", with `--nocapture`.
fn record(room: &str, why: &WhyPlan) {
    let name = |peer: PeerId| match peer.0[0] {
        1 => "This device".to_owned(),
        other => format!("Device {other}"),
    };
    let texts = &potluck_text::texts().why;
    let part = |title: &str, sentences: Vec<String>| {
        let lines = sentences.iter().map(|sentence| format!("- {sentence}\n")).collect::<String>();
        if lines.is_empty() { lines } else { format!("{title}:\n\n{lines}\n") }
    };
    let choice = why.chosen.iter().chain([&why.plan]).map(potluck_text::plan_decision).collect::<Vec<_>>().join(" ");
    let compared =
        potluck_text::plans_compared(why, name).into_iter().map(|row| format!("{}: {}", row.plan, row.takes));
    let devices = why.devices.iter().map(|device| potluck_text::device_decision(device, name));
    let standbys = why.standbys.iter().map(|standby| potluck_text::standby_decision(standby, name));
    let parts = [
        part(texts.compared(), compared.collect()),
        part(texts.devices(), devices.collect()),
        part(texts.leaving(), standbys.collect()),
        part(texts.changes(), potluck_text::what_would_change(why, name)),
    ];
    println!("## {room}\n\n{choice}\n\n{}", parts.concat());
}

/// What the recording of the host keeps.
fn recorded(world: &World) -> Vec<Decision> {
    world.trace(0).into_iter().filter_map(|line| line.decision).map(|decision| *decision).collect()
}

#[test]
fn one_device_holds_the_model_since_no_other_lends() {
    let mut world = World::new(1, DENSE, Sharing::Fastest, SimDevice::with_budget(2_000));
    world.run(60_000.0, |_| false);
    let why = world.machine(0).why().unwrap();
    record("One device", &why);
    let Some(PlanDecision::Replaced { active_ms, new_ms, reason, .. }) = why.chosen else { panic!("{why:?}") };
    assert_eq!((active_ms, reason), (None, ReplacedReason::First));
    assert!(new_ms > 0.0);
    let PlanDecision::Kept { compared, reason, .. } = why.plan else { panic!("{why:?}") };
    assert_eq!(reason, KeptReason::IsBest, "{compared:?}");
    assert!(compared.needed_ms < compared.active_ms, "{compared:?}");
    let part = part(&why, 0);
    assert_eq!((part.blocks, part.lends, part.why), (6, Bytes(2_000), PartReason::OnlyDevice));
    assert!(why.standbys.is_empty() && why.spreading.is_none(), "{why:?}");
    let plans = recorded(&world).into_iter().filter(|decision| matches!(decision, Decision::Plan(_))).count();
    assert!(plans <= 4, "what does not change is recorded once: {:?}", recorded(&world));
}

#[test]
fn two_equal_devices_are_both_needed() {
    let mut world = World::new(1, DENSE, Sharing::Fastest, SimDevice::with_budget(620));
    world.add(SimDevice::with_budget(620), 100.0);
    world.run(60_000.0, |_| false);
    let why = world.machine(0).why().unwrap();
    record("Two equal devices", &why);
    let parts = [0, 1].map(|index| part(&why, index));
    assert_eq!(parts.iter().map(|part| part.blocks).sum::<u32>(), 6, "{why:?}");
    let needed = PartReason::NeededForMemory { needed: Bytes(1_070), others_lend: Bytes(620) };
    assert!(parts.iter().all(|part| part.why == needed && part.ms > 0.0), "{why:?}");
    let not_made =
        |standby: &StandbyDecision| matches!(standby, StandbyDecision::NotMade { missing, .. } if missing.0 > 0);
    assert!(!why.standbys.is_empty() && why.standbys.iter().all(not_made), "nobody holds the other's part: {why:?}");
}

#[test]
fn a_slow_phone_is_left_out_and_what_it_would_cost_is_said() {
    let mut world = World::new(1, DENSE, Sharing::Fastest, SimDevice::with_budget(2_000));
    world.add(SimDevice::with_budget(2_000).at_speed(0.1).behind(Link::after(20.0)), 100.0);
    world.run(60_000.0, |_| false);
    let why = world.machine(0).why().unwrap();
    record("A slow phone left out", &why);
    let LeftOut::TooSlow { with_ms, without_ms } = left_out(&why, 1) else { panic!("{why:?}") };
    assert!(with_ms > without_ms + 40.0, "two messages of 20 ms: {with_ms} and {without_ms} ms");
    let PlanDecision::Kept { compared, reason: KeptReason::IsBest, .. } = why.plan else { panic!("{why:?}") };
    assert!((without_ms / compared.active_ms - 1.0).abs() < 0.01, "{without_ms} ms and {compared:?}");
    // The host wants everyone to take part.
    world.set_sharing(Sharing::Everyone);
    world.run(120_000.0, |_| false);
    let why = world.machine(0).why().unwrap();
    assert_eq!(part(&why, 1).why, PartReason::EveryoneTakesPart);
    let Some(PlanDecision::Replaced { reason: ReplacedReason::SharingChanged, active_ms, new_ms, .. }) = why.chosen
    else {
        panic!("{why:?}")
    };
    assert!(active_ms.is_some_and(|active_ms| active_ms < new_ms), "{why:?}");
}

#[test]
fn pooled_experts_say_who_holds_them_and_why() {
    let mut world = World::new(1, EXPERTS, Sharing::Experts, SimDevice::with_budget(2_000));
    (0..2).for_each(|_| _ = world.add(SimDevice::with_budget(600), 100.0));
    world.run(60_000.0, |_| false);
    let why = world.machine(0).why().unwrap();
    record("Experts pooled", &why);
    assert_eq!((part(&why, 0).blocks, part(&why, 0).why), (3, PartReason::ExpertsAreSpread), "{why:?}");
    for holder in [1, 2] {
        let part = part(&why, holder);
        assert!(part.blocks == 0 && part.experts > 0, "{why:?}");
        assert_eq!(part.why, PartReason::ExpertsAreSpread, "{why:?}");
    }
    let spreading = why.spreading.unwrap();
    assert_eq!(spreading.trips, 3);
    assert!(spreading.whole_ms.is_some_and(|whole| whole < spreading.spread_ms), "{spreading:?}");
}

#[test]
fn a_room_that_is_too_small_says_how_much_is_missing() {
    let mut world = World::new(1, DENSE, Sharing::Fastest, SimDevice::with_budget(700));
    world.run(20_000.0, |_| false);
    let why = world.machine(0).why().unwrap();
    record("Not enough memory", &why);
    let reason = NoPlanReason::NotEnoughMemory { needed: Bytes(1_070), offered: Bytes(700), missing: Bytes(370) };
    assert_eq!(why.plan, PlanDecision::NoPlan { reason });
    assert_eq!(left_out(&why, 0), LeftOut::NoPlan { offered: Bytes(700) });
    assert!(why.chosen.is_none());
    assert!(recorded(&world).contains(&Decision::Plan(PlanDecision::NoPlan { reason })));
}

#[test]
fn while_a_plan_goes_on_nobody_says_that_there_is_none() {
    let mut world = World::new(1, DENSE, Sharing::Fastest, SimDevice::with_budget(2_000));
    world.run(60_000.0, |_| false);
    world.fault(Fault::SetBudget(0, 500), 61_000.0);
    world.run(120_000.0, |_| false);
    let goes_on =
        !world.machine(0).why().unwrap().devices.iter().all(|device| matches!(device.place, Place::LeftOut(_)));
    let says_none = matches!(world.machine(0).why().unwrap().plan, PlanDecision::NoPlan { .. });
    assert!(goes_on && !says_none, "{:?}", world.machine(0).why());
}

#[test]
fn a_device_that_lends_too_little_is_told_how_much_would_do() {
    let mut world = World::new(1, DENSE, Sharing::Fastest, SimDevice::with_budget(2_000));
    world.add(SimDevice::with_budget(100), 100.0);
    world.run(30_000.0, |_| false);
    let why = world.machine(0).why().unwrap();
    let reason = LeftOut::NotEnoughMemory { needed: Bytes(170), offered: Bytes(100) };
    assert_eq!(left_out(&why, 1), reason, "a block and the overhead");
}

#[test]
fn a_device_that_leaves_is_replaced_by_who_stood_by_and_the_recording_says_so() {
    let mut world = World::new(1, DENSE, Sharing::Everyone, SimDevice::with_budget(1_500));
    world.add(SimDevice::with_budget(1_500), 100.0);
    world.run(30_000.0, |_| false);
    let ready = StandbyDecision::Made { lost: peer(1), helpers: vec![peer(0)], ready: true };
    assert!(world.machine(0).why().unwrap().standbys.contains(&ready), "{:?}", world.machine(0).why());
    world.fault(Fault::Kill(1), 30_000.0);
    world.run(60_000.0, |_| false);
    let taken_over = |decision: &Decision| {
        matches!(decision, Decision::Plan(PlanDecision::Replaced { reason: ReplacedReason::TakesOver, .. }))
    };
    assert!(recorded(&world).iter().any(taken_over), "{:?}", recorded(&world));
    assert_eq!(part(&world.machine(0).why().unwrap(), 0).why, PartReason::OnlyDevice);
}

/// Equal devices, whose times jitter: another one seems a little better at every look.
#[test]
fn a_plan_that_stays_says_what_a_better_one_would_have_to_take() {
    let device = SimDevice { noise: 0.1, ..SimDevice::with_budget(620) };
    let mut world = World::new(3, DENSE, Sharing::Fastest, device);
    (0..3).for_each(|_| _ = world.add(device, 100.0));
    let mut small = 0;
    for look in 1..30 {
        world.run(30_000.0 + 10_000.0 * f64::from(look), |_| false);
        if let PlanDecision::Kept { compared, reason: KeptReason::GainTooSmall, .. } =
            world.machine(0).why().unwrap().plan
        {
            assert!(compared.best_ms >= compared.needed_ms && compared.needed_ms < compared.active_ms, "{compared:?}");
            small += 1;
        }
    }
    assert!(small > 0, "one look at least finds another plan: {:?}", recorded(&world));
    assert!(recorded(&world).len() < 120, "{}", recorded(&world).len());
}

/// Nobody but the host knows why.
#[test]
fn what_was_decided_is_the_hosts_own() {
    let mut world = World::new(1, DENSE, Sharing::Everyone, SimDevice::with_budget(1_500));
    let guest = world.add(SimDevice::with_budget(1_500), 100.0);
    world.run(30_000.0, |_| false);
    assert!(world.machine(0).why().is_some() && world.machine(guest).why().is_none());
    assert!(world.trace(guest).iter().all(|line| line.decision.is_none()));
}

/// Holders whose calls vary much: copies go to others, and one that vanishes is avoided until the room knows.
#[test]
fn what_is_chosen_while_tokens_are_written_is_recorded_when_it_changes() {
    let varying = SimDevice { hesitation: Some(LogNormal { median: 20.0, sigma: 0.8 }), ..SimDevice::with_budget(250) };
    let mut world = World::new(4, EXPERTS, Sharing::Fastest, SimDevice::with_budget(530));
    world.pool_experts(2, Hedging::Adaptive);
    (0..5).for_each(|_| _ = world.add(varying, 100.0));
    world.run(60_000.0, |world| world.fewest_holders() == 2);
    let begin = world.now();
    world.prompt(0, 1, "how do bees find home?", 200, begin);
    world.run(begin + 120_000.0, |world| world.answer(0, 1).is_some_and(|answer| answer.end.is_some()));
    let recorded = recorded(&world);
    let hedged = |decision: &Decision| matches!(decision, Decision::Hedging(hedging) if hedging.copies >= hedging.won);
    assert!(recorded.iter().any(hedged), "{recorded:?}");
    let drafts = |decision: &Decision| matches!(decision, Decision::Drafts(drafts) if drafts.gain >= 1.0);
    assert!(recorded.iter().any(drafts), "{recorded:?}");
    let tokens = world.answer(0, 1).unwrap().tokens.len();
    assert!(recorded.len() < tokens, "{} decisions for {tokens} tokens: {recorded:?}", recorded.len());
}
