//! A relay, a host and joiners in one process, all real: several devices answer exactly like one.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::path::Path;

use common::*;
use potluck_gguf::TensorType;
use potluck_gguf::synthetic::{Architecture, Synthetic};
use potluck_panel::{
    Arithmetic, Bytes, Ends, HostChoice, Message, ModelSource, PeerId, PlanStatus, PromptRequest, RequestId, Role,
    Status,
};
use potluck_terminal::Session;

const TEXT: &str = "Once upon a time there was a";

/// Six blocks, so that three devices with room for two blocks and the embedding table each are needed.
fn layered() -> Synthetic {
    Synthetic { architecture: Architecture::Llama, blocks: 6, seed: 3, ..Synthetic::default() }
}

/// A budget for two blocks and a table, but not for three.
fn two_blocks(model: &Synthetic) -> u64 {
    let (shape, overhead) = sizes(model);
    let block = &shape.blocks[0];
    let with_kv_cache = block.weights().0 + block.kv_cache_per_position.0 * u64::from(CONTEXT);
    overhead.0 + 2 * with_kv_cache + shape.embedding.0.max(shape.lm_head.0) + with_kv_cache / 2
}

fn of_relay(name: &str) -> ModelSource {
    ModelSource::Relay { name: name.to_owned() }
}

fn stage_peers(status: &Status) -> Vec<PeerId> {
    status.plan.iter().flat_map(|plan| plan.stages.iter().map(|stage| stage.peer)).collect()
}

/// Host and joiners, each with the same budget; they share a cache, as tabs of one profile do.
async fn room(
    origin: &str,
    source: ModelSource,
    budget: u64,
    joiners: usize,
    cache: &Path,
) -> (Session, Vec<Session>, String) {
    let mut first = peer("host", origin, cache.to_path_buf());
    let link = host(&mut first, origin, source, budget).await;
    let joiners: Vec<Session> =
        (0..joiners).map(|number| peer(&format!("joiner {number}"), origin, cache.to_path_buf())).collect();
    joiners.iter().for_each(|joiner| join_room(joiner, &link, Some(budget)));
    (first, joiners, link)
}

#[test]
fn three_stages_answer_like_one_and_a_second_visit_downloads_nothing() {
    test(async {
        let (models, cache, model) = (folder("models"), folder("cache"), layered());
        let path = write(&model, &models, "model");
        let expected = alone(&path, TEXT, 24).await;
        assert!(expected.len() >= 12, "a seed whose answer is long enough to mean something: {expected:?}");
        let relay = relay(&models, 0).await;
        let budget = two_blocks(&model);
        let (mut first, joiners, link) = room(&relay.origin, of_relay("model"), budget, 2, &cache).await;
        until(&mut first, "three stages", |status| is_up(status, 3)).await;
        let peers = stage_peers(&first.status);
        assert!(peers.iter().all(|peer| peers.iter().filter(|other| *other == peer).count() == 1), "{peers:?}");
        assert_eq!(answer(&mut first, question(1, TEXT, 24), |_| {}).await, expected);

        // A guest asks too, and gets the same answer.
        let mut guest = peer("guest", &relay.origin, cache.clone());
        join_room(&guest, &link, None);
        until(&mut guest, "the guest", |status| is_up(status, 3)).await;
        assert_eq!(answer(&mut guest, question(1, TEXT, 24), |_| {}).await, expected);
        drop((first, joiners, guest));

        let downloaded = relay.metric("potluck_relay_weight_bytes_total").await;
        // Each byte once, although three peers loaded, plus what is read twice at the ends of groups.
        let all = std::fs::metadata(&path).unwrap().len();
        assert!(downloaded > 0 && downloaded < all + all / 4, "{downloaded} bytes were sent of a file of {all}");
        let (mut again, others, _) = room(&relay.origin, of_relay("model"), budget, 2, &cache).await;
        until(&mut again, "three stages again", |status| is_up(status, 3)).await;
        assert_eq!(answer(&mut again, question(1, TEXT, 24), |_| {}).await, expected);
        assert_eq!(relay.metric("potluck_relay_weight_bytes_total").await, downloaded);
        drop((again, others));
        relay.stop().await;
    });
}

#[test]
fn parallel_conversations_answer_like_one_device_each_and_follow_ups_reuse_the_kv_cache() {
    test(async {
        let (models, model) = (folder("models"), layered());
        let path = write(&model, &models, "model");
        let texts = ["Once upon a time", "la la la la la la", "The cat sat on", "la la la one two three la la"];
        let mut expected = Vec::new();
        for text in texts {
            expected.push(alone(&path, text, 32).await);
        }
        let relay = relay(&models, 0).await;
        let (mut first, joiners, _) =
            room(&relay.origin, of_relay("model"), two_blocks(&model), 2, &folder("cache")).await;
        until(&mut first, "three stages", |status| is_up(status, 3)).await;
        let prompts = texts.iter().zip(1..).map(|(text, request)| question(request, text, 32));
        assert_eq!(answers(&mut first, prompts.collect()).await, expected);

        let tokens = answer(&mut first, question(5, texts[1], 32), |_| {}).await;
        assert_eq!(tokens, expected[1], "alone in the pipeline");

        let said = |role, content: &str| Message::new(role, content);
        let ask = PromptRequest { raw: false, messages: vec![said(Role::User, TEXT)], ..question(6, TEXT, 16) };
        let (text, timings) = text_and_timings(&mut first, ask.clone()).await;
        let messages = vec![said(Role::User, TEXT), said(Role::Assistant, &text), said(Role::User, "Go on")];
        let (_, again) = text_and_timings(&mut first, PromptRequest { request: RequestId(7), messages, ..ask }).await;
        // The text of an answer may become other tokens: this model also writes halves of characters.
        let (reused, known) = (again.reused_tokens, timings.prompt_tokens);
        assert!(reused + 1 >= known, "{reused} of {known} tokens of the prompt are reused for {text:?}");
        drop((first, joiners));
        relay.stop().await;
    });
}

#[test]
fn a_killed_stage_is_replaced_and_the_answer_stays_the_same() {
    kill_a_stage(Arithmetic::Exact);
}

#[test]
fn packed_prompts_are_replayed_with_the_same_bits() {
    kill_a_stage(Arithmetic::Packed);
}

fn kill_a_stage(arithmetic: Arithmetic) {
    test(async move {
        // Only quantized weights are multiplied as packed integers.
        let weights = if arithmetic == Arithmetic::Packed { TensorType::Q4_K } else { TensorType::F32 };
        let model = Synthetic { weights, ..layered() };
        let (models, cache) = (folder("models"), folder("cache"));
        let path = write(&model, &models, "model");
        let expected = alone_by(arithmetic, &path, TEXT, 64).await;
        if arithmetic != Arithmetic::Exact {
            assert_ne!(expected, alone(&path, TEXT, 64).await, "the arithmetic makes a difference");
        }
        let relay = relay(&models, 0).await;
        let mut first = peer("host", &relay.origin, cache.clone());
        let choice = HostChoice { arithmetic: Some(arithmetic), ..choice(of_relay("model"), two_blocks(&model)) };
        let link = host_as(&mut first, &relay.origin, choice, Vec::new()).await;
        let mut joiners: Vec<Session> =
            (0..3).map(|number| peer(&format!("joiner {number}"), &relay.origin, cache.clone())).collect();
        joiners.iter().for_each(|joiner| join_room(joiner, &link, Some(two_blocks(&model))));
        until(&mut first, "three stages", |status| is_up(status, 3)).await;
        let own = first.status.peer;
        let lost = stage_peers(&first.status).into_iter().find(|peer| Some(*peer) != own).unwrap();
        for joiner in &mut joiners {
            until(joiner, "a joiner's own id", |status| status.peer.is_some()).await;
        }
        let victim = joiners.iter().find(|joiner| joiner.status.peer == Some(lost)).unwrap();
        let mut killed_at = None;
        let tokens = answer(&mut first, question(1, TEXT, 64), |count| {
            if count >= 4 && killed_at.is_none() {
                killed_at = Some(count);
                victim.kill();
            }
        })
        .await;
        assert!(killed_at.is_some_and(|count| count < expected.len()), "killed in the middle: {killed_at:?}");
        assert_eq!(tokens, expected);
        assert!(!stage_peers(&first.status).contains(&lost), "the plan goes on without the lost device");
        drop((first, joiners));
        relay.stop().await;
    });
}

/// The host has the first and the last block in two stages. One of the devices between them is killed.
#[test]
fn a_host_with_both_ends_answers_like_one_device_also_after_a_loss() {
    test(async {
        let (models, cache, model) = (folder("models"), folder("cache"), layered());
        let path = write(&model, &models, "model");
        let expected = alone(&path, TEXT, 64).await;
        let relay = relay(&models, 0).await;
        let mut first = peer("host", &relay.origin, cache.clone());
        let (shape, _) = sizes(&model);
        let both_tables = two_blocks(&model) + shape.embedding.0.min(shape.lm_head.0);
        let choice = HostChoice { ends: Ends::OnHost, ..choice(of_relay("model"), both_tables) };
        let link = host_as(&mut first, &relay.origin, choice, Vec::new()).await;
        let mut joiners: Vec<Session> =
            (0..3).map(|number| peer(&format!("joiner {number}"), &relay.origin, cache.clone())).collect();
        joiners.iter().for_each(|joiner| join_room(joiner, &link, Some(two_blocks(&model))));
        until(&mut first, "two stages of the host, and two between them", |status| is_up(status, 4)).await;
        let own = first.status.peer.unwrap();
        let has_ends = |status: &Status| {
            let peers = stage_peers(status);
            let inner = &peers[1..peers.len() - 1];
            peers.first() == Some(&own) && peers.last() == Some(&own) && !inner.contains(&own)
        };
        assert!(has_ends(&first.status), "{:?}", stage_peers(&first.status));
        let lost = stage_peers(&first.status)[1];
        for joiner in &mut joiners {
            until(joiner, "a joiner's own id", |status| status.peer.is_some()).await;
        }
        let victim = joiners.iter().find(|joiner| joiner.status.peer == Some(lost)).unwrap();
        let mut killed_at = None;
        let tokens = answer(&mut first, question(1, TEXT, 64), |count| {
            if count >= 4 && killed_at.is_none() {
                killed_at = Some(count);
                victim.kill();
            }
        })
        .await;
        assert!(killed_at.is_some_and(|count| count < expected.len()), "killed in the middle: {killed_at:?}");
        assert_eq!(tokens, expected);
        assert!(has_ends(&first.status), "{:?}", stage_peers(&first.status));
        drop((first, joiners));
        relay.stop().await;
    });
}

/// Every peer has a cache of its own, so the relay counts every download.
#[test]
fn a_warm_standby_takes_over_without_a_download() {
    test(async {
        let (models, model) = (folder("models"), layered());
        let path = write(&model, &models, "model");
        let expected = alone(&path, TEXT, 64).await;
        let relay = relay(&models, 0).await;
        let budget = two_blocks(&model);
        let mut first = peer("host", &relay.origin, folder("cache"));
        let link = host(&mut first, &relay.origin, of_relay("model"), budget).await;
        let joiners: Vec<Session> =
            (0..3).map(|number| peer(&format!("joiner {number}"), &relay.origin, folder("cache"))).collect();
        joiners.iter().for_each(|joiner| join_room(joiner, &link, Some(budget)));
        let warm = |status: &Status| {
            let mut said = status.peers.iter().filter_map(|member| Some((member.peer, member.standby.clone()?)));
            said.find_map(|(peer, said)| Some((peer, said.strip_prefix("Warm standby for ")?.to_owned())))
        };
        until(&mut first, "a warm standby", |status| is_up(status, 3) && warm(status).is_some()).await;
        let (spare, of) = warm(&first.status).unwrap();
        assert!(!stage_peers(&first.status).contains(&spare), "the spare has no work");
        let number = (0..joiners.len()).find(|number| of == format!("joiner {number}'s part.")).unwrap();
        let lost = first.status.peers.iter().find(|member| member.name == format!("joiner {number}")).unwrap();
        let lost = lost.peer;
        assert!(stage_peers(&first.status).contains(&lost));

        let mut downloaded = None;
        let bytes = || relay.metric("potluck_relay_weight_bytes_total");
        let before = bytes().await;
        let tokens = answer(&mut first, question(1, TEXT, 64), |count| {
            if count >= 4 && downloaded.is_none() {
                downloaded = Some(before);
                joiners[number].kill();
            }
        })
        .await;
        assert_eq!(downloaded, Some(bytes().await), "killed in the middle, and nothing was downloaded afterwards");
        assert_eq!(tokens, expected);
        let peers = stage_peers(&first.status);
        assert!(peers.contains(&spare) && !peers.contains(&lost), "the standby took over: {peers:?}");
        drop((first, joiners));
        relay.stop().await;
    });
}

#[test]
fn experts_on_other_peers_answer_like_one_device() {
    test(async {
        let model = Synthetic { blocks: 2, experts: 16, seed: 3, ..Synthetic::default() };
        let models = folder("models");
        let path = write(&model, &models, "model");
        let expected = alone(&path, TEXT, 16).await;
        // Room for a block's experts, but not for its token mixer and KV cache too: experts are on another device than their block.
        let (shape, overhead) = sizes(&model);
        let block = &shape.blocks[0];
        let experts = block.expert_bytes().0 * u64::from(block.expert_count());
        let rest = block.without_experts().0 + block.kv_cache_per_position.0 * u64::from(CONTEXT);
        let budget = overhead.0 + experts + rest / 2;
        let relay = relay(&models, 0).await;
        let (mut first, joiners, _) = room(&relay.origin, of_relay("model"), budget, 2, &folder("cache")).await;
        until(&mut first, "a plan with experts elsewhere", |status| {
            let plan = status.plan.as_ref().filter(|plan| plan.state == PlanStatus::Up);
            plan.is_some_and(|plan| plan.stages.iter().any(|stage| !stage.expert_holders.is_empty()))
        })
        .await;
        assert_eq!(answer(&mut first, question(1, TEXT, 16), |_| {}).await, expected);
        drop((first, joiners));
        relay.stop().await;
    });
}

#[test]
fn a_file_on_the_hosts_disk_is_sent_to_the_others_through_the_room() {
    test(async {
        let (folder_of_host, model) = (folder("disk"), layered());
        let path = write(&model, &folder_of_host, "mine");
        let expected = alone(&path, TEXT, 16).await;
        let relay = relay(&folder("models"), 0).await;
        let files = potluck_node::native::open_model_files(&path).unwrap();
        let source = ModelSource::File { name: files[0].name(), bytes: Bytes(files[0].len()) };
        let budget = two_blocks(&model);
        let mut first = peer("host", &relay.origin, folder("host"));
        let link = host_with(&mut first, &relay.origin, source, budget, files).await;
        let joiners = [0, 1].map(|_| peer("joiner", &relay.origin, folder("joiner")));
        joiners.iter().for_each(|joiner| join_room(joiner, &link, Some(budget)));
        until(&mut first, "three stages", |status| is_up(status, 3)).await;
        assert_eq!(answer(&mut first, question(1, TEXT, 16), |_| {}).await, expected);
        assert_eq!(relay.metric("potluck_relay_weight_bytes_total").await, 0);
        drop((first, joiners));
        relay.stop().await;
    });
}
