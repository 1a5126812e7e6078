//! The host computes again what stages on other devices computed: a relay, a host and joiners in one process, all real.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::*;
use potluck_gguf::synthetic::{Architecture, Synthetic};
use potluck_panel::{HostChoice, LayerChecksView, MemberStatus, ModelSource, PromptRequest, Sharing, Status};
use potluck_swarm::SpotChecks;
use potluck_terminal::Session;

const TEXT: &str = "Once upon a time there was a";

fn checks(status: &Status) -> LayerChecksView {
    status.plan.as_ref().map(|plan| plan.checks.clone()).unwrap_or_default()
}

/// A budget for one block and a table, so that nobody but the host has memory for what another device computes.
fn one_block(model: &Synthetic) -> u64 {
    let (shape, overhead) = sizes(model);
    let block = &shape.blocks[0];
    let with_kv_cache = block.weights().0 + block.kv_cache_per_position.0 * u64::from(CONTEXT);
    overhead.0 + with_kv_cache + shape.embedding.0.max(shape.lm_head.0) + with_kv_cache / 8
}

/// For prompts of more than a page, decoded tokens and a conversation that goes on.
#[test]
fn the_host_gets_the_bits_of_the_stages_that_it_checks() {
    test(async {
        let (models, cache) = (folder("models"), folder("cache"));
        let model = Synthetic { architecture: Architecture::Llama, blocks: 6, seed: 3, ..Synthetic::default() };
        write(&model, &models, "model");
        let relay = relay(&models, 0).await;
        let mut setup = setup("host", &relay.origin, &cache);
        setup.node.spot_checks = SpotChecks { share: 1.0, ..SpotChecks::default() };
        let mut host = Session::start(setup);
        let source = ModelSource::Relay { name: "model".into() };
        let wanted = HostChoice { sharing: Sharing::Everyone, ..choice(source, 2_000_000_000) };
        let link = host_as(&mut host, &relay.origin, wanted, Vec::new()).await;
        let joiners: Vec<Session> = (0..2).map(|_| peer("joiner", &relay.origin, cache.clone())).collect();
        joiners.iter().for_each(|joiner| join_room(joiner, &link, Some(one_block(&model))));
        until(&mut host, "stages that the host can check", |status| checks(status).checked.len() == 2).await;
        let (long, longer) = ("la ".repeat(30), format!("{TEXT} little girl who"));
        for (request, conversation, text) in [(1, 1, TEXT), (2, 2, long.as_str()), (3, 1, longer.as_str())] {
            let conversation = format!("test {conversation}");
            answer(&mut host, PromptRequest { conversation, ..question(request, text, 24) }, |_| {}).await;
        }
        until(&mut host, "work that was computed again", |status| checks(status).repeated >= 3).await;
        let found = checks(&host.status);
        assert_eq!(found.equal, found.repeated, "{found:?}");
        assert!(found.differ.is_empty() && found.withheld.is_empty(), "{found:?}");
        assert!(host.status.peers.iter().all(|member| member.status != MemberStatus::Failed), "somebody is blamed");
        drop((host, joiners));
        relay.stop().await;
    });
}
