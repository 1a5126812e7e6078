//! Rooms in which anything happens, and the named scenarios. `cargo xtask simulate` runs and draws them.

use potluck_sim::{SCENARIOS, of_seeds, scenario};

#[test]
fn a_seed_replays_identically() {
    let churn = scenario("churn").expect("the scenario is there");
    for seed in [3, 141, 592] {
        let (first, second) = ((churn.run)(seed), (churn.run)(seed));
        assert_eq!(first.fingerprint, second.fingerprint, "seed {seed} must replay event by event");
        assert_eq!(first.timeline, second.timeline);
    }
}

#[test]
fn every_scenario_ends_well() {
    for scenario in SCENARIOS.iter().filter(|scenario| scenario.name != "churn") {
        let run = (scenario.run)(1);
        assert_eq!(run.failure, None, "{}: {}", scenario.name, run.event_log.join("\n"));
        assert!(!run.timeline.samples.is_empty(), "{}: tokens must be on the timeline", scenario.name);
    }
}

#[test]
fn a_thousand_rooms_survive_anything() {
    let churn = scenario("churn").expect("the scenario is there");
    let recoveries = of_seeds(0..1_000, |seed| {
        let run = (churn.run)(seed);
        if let Some(failure) = run.failure {
            panic!("{failure}\n{}\nreplay: cargo xtask simulate churn --seed {seed}", run.event_log.join("\n"));
        }
        run.recoveries
    });
    let recoveries: u32 = recoveries.into_iter().sum();
    assert!(recoveries > 200, "the faults must hit answers, only {recoveries} recoveries happened");
}
