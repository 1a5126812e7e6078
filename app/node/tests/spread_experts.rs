//! Experts on other devices, over a real relay and a real GPU adapter: the same bits as one device, whoever answers.
#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::*;
use potluck_gguf::synthetic::Synthetic;
use potluck_node::native::cli::Session;
use potluck_panel::{ModelSource, PromptRequest, Sampling, Sharing, Status};

const TEXT: &str = "Once upon a time";

fn model() -> Synthetic {
    Synthetic { blocks: 3, experts: 16, seed: 3, ..Synthetic::default() }
}

/// The plan is up, and this many devices hold experts for a stage.
fn has_holders(status: &Status, devices: usize) -> bool {
    let plan = status.plan.as_ref().filter(|plan| plan.state == potluck_panel::PlanStatus::Up);
    plan.is_some_and(|plan| {
        let holders = plan.stages.iter().flat_map(|stage| &stage.expert_holders);
        holders.map(|holding| holding.peer).collect::<std::collections::BTreeSet<_>>().len() == devices
    })
}

/// The page knows how holders answer, and what the host and at least one of them have computed.
fn is_measured(status: &Status) -> bool {
    let experts = status.plan.as_ref().and_then(|plan| plan.experts.as_ref());
    let has_worked = |work: potluck_panel::Work| work.tokens > 0 && work.gpu_millis > 0.0;
    let worked = status.credits.iter().filter(|credit| has_worked(credit.work)).count();
    experts.is_some_and(|experts| experts.round_trip_ms > 0.0) && worked >= 2
}

fn sampled(request: u32, max_tokens: u32) -> PromptRequest {
    PromptRequest {
        sampling: Sampling { temperature: 0.9, ..Sampling::default() },
        ..question(request, TEXT, max_tokens)
    }
}

/// A room in which the host keeps all token mixers, and these many others hold the experts.
async fn spread(relay: &RunningRelay, holders: usize) -> (Session, Vec<Session>) {
    let mut host = peer("host", &relay.origin, folder("cache"));
    let sharing = (4_000_000_000, Sharing::Experts);
    let link =
        host_sharing(&mut host, &relay.origin, ModelSource::Relay { name: "model".into() }, sharing, Vec::new()).await;
    let joiners: Vec<Session> = (0..holders).map(|_| peer("joiner", &relay.origin, folder("cache"))).collect();
    joiners.iter().for_each(|joiner| join_room(joiner, &link, Some(1_000_000_000)));
    until(&mut host, "experts on all other devices", |status| has_holders(status, holders)).await;
    (host, joiners)
}

#[test]
fn spread_experts_answer_bit_for_bit_like_one_device() {
    test(async {
        let models = folder("models");
        let path = write(&model(), &models, "model");
        let greedy = alone(&path, TEXT, 16).await;
        let relay = relay(&models, 0).await;
        for holders in [2, 4] {
            let (mut host, joiners) = spread(&relay, holders).await;
            assert_eq!(answer(&mut host, question(1, TEXT, 16), |_| {}).await, greedy, "{holders} holders");
            until(&mut host, "calls are measured and counted", is_measured).await;
            drop((host, joiners));
        }
        relay.stop().await;
    });
}

#[test]
fn holders_that_vanish_change_no_token_and_stop_no_answer() {
    test(async {
        let models = folder("models");
        let path = write(&model(), &models, "model");
        let mut lone = open_alone(potluck_node::native::open_model_files(&path).unwrap(), 4_000_000_000);
        until(&mut lone, "alone", |status| is_up(status, 1)).await;
        let greedy = answer(&mut lone, question(1, TEXT, 40), |_| {}).await;
        let by_chance = answer(&mut lone, sampled(2, 40), |_| {}).await;
        drop(lone);
        let relay = relay(&models, 0).await;
        let (mut host, mut joiners) = spread(&relay, 3).await;
        for (prompt, expected) in [(question(1, TEXT, 40), greedy), (sampled(2, 40), by_chance)] {
            let mut victim = joiners.pop();
            let (tokens, recoveries) = answer_and_recoveries(&mut host, prompt, |count| {
                if let Some(victim) = victim.take_if(|_| count >= 10) {
                    victim.kill();
                }
            })
            .await;
            assert_eq!(tokens, expected, "with {} holders left", joiners.len());
            assert_eq!(recoveries, [""; 0], "with {} holders left nobody waits for another plan", joiners.len());
        }
        drop((host, joiners));
        relay.stop().await;
    });
}
