//! A stage that lies about passes: no answer is lost or wrong for it, and nobody else is named. Thousands of rooms by command:
//! `cargo xtask simulate false-passes --seeds 2000`.

use potluck_sim::{LIAR_NAMED, scenario};

#[test]
fn in_hundreds_of_rooms_no_answer_is_lost_or_wrong_for_false_passes() {
    let lies = scenario("false-passes").expect("it is in the list");
    let mut named = 0;
    for seed in 0..700 {
        let run = (lies.run)(seed);
        named += u32::from(run.event_log.iter().any(|line| line == LIAR_NAMED));
        if let Some(failure) = run.failure {
            panic!("{failure}\n{}\nreplay: cargo xtask simulate false-passes --seed {seed}", run.event_log.join("\n"));
        }
    }
    assert!(named > 70, "the liar must often have a stage and be found out, only {named} times it was");
}
