//! A stage that lies about passes: no answer is lost or wrong for it, and nobody else is named. Thousands of rooms by command:
//! `cargo xtask simulate false-passes --seeds 2000`.

use potluck_sim::{LIAR_NAMED, of_seeds, scenario};

#[test]
fn in_hundreds_of_rooms_no_answer_is_lost_or_wrong_for_false_passes() {
    let lies = scenario("false-passes").expect("it is in the list");
    let named = of_seeds(0..700, |seed| {
        let run = (lies.run)(seed);
        if let Some(failure) = run.failure {
            panic!("{failure}\n{}\nreplay: cargo xtask simulate false-passes --seed {seed}", run.event_log.join("\n"));
        }
        run.event_log.iter().any(|line| line == LIAR_NAMED)
    });
    let named = named.into_iter().filter(|named| *named).count();
    assert!(named > 70, "the liar must often have a stage and be found out, only {named} times it was");
}
