//! A room in memory: three devices share a model, one of them leaves in the middle of an answer, and the answer goes on.
//! `cargo run -p potluck-sim --example room`.
//!
//! The state machines are those of the page. Clock, network and GPUs are simulated, so it takes no time, and always the same happens.

use potluck_protocol::Sharing;
use potluck_sim::{Fault, SimDevice, SimModel, World, undisturbed};

const QUESTION: &str = "how do bees find home?";
const TOKENS: u32 = 40;

fn main() {
    // A block takes 160 bytes: no device can hold six of them and the rest, two can.
    let model = SimModel::dense(6);
    let mut world = World::new(7, model.clone(), Sharing::Fastest, SimDevice::with_budget(620));
    let laptop = world.add(SimDevice::with_budget(620), 0.0);
    world.add(SimDevice::with_budget(620).at_speed(0.5), 0.0);
    let guest = world.add(SimDevice::default(), 0.0);
    world.run(60_000.0, |world| world.plan_up().is_some());
    show(&world);

    let asked = world.now();
    world.prompt(guest, 1, QUESTION, TOKENS, asked);
    world.fault(Fault::Kill(laptop), asked + 400.0);
    world.run(asked + 60_000.0, |world| world.answer(guest, 1).is_some_and(|answer| answer.end.is_some()));
    let Some(answer) = world.answer(guest, 1) else { return println!("There is no answer.") };
    println!("{} tokens in {:.0} ms, {} recovery", answer.tokens.len(), world.now() - asked, answer.recoveries);
    for sentence in &answer.sentences {
        println!("  {sentence}");
    }
    show(&world);

    // One device that nobody disturbs writes the same.
    let prompt: Vec<u32> = QUESTION.bytes().map(u32::from).collect();
    assert_eq!(answer.tokens, undisturbed(&model, &prompt, TOKENS as usize), "another answer");
    println!("The answer is the undisturbed one.");
}

fn show(world: &World) {
    let plan = world.plan_up();
    println!("At {:.0} ms:", world.now());
    for stage in plan.iter().flat_map(|plan| &plan.stages) {
        println!("  device {} has blocks {}..{}", stage.peer.0[0], stage.blocks.start, stage.blocks.end);
    }
}
