//! Experts on demand: a device whose memory does not hold all experts answers with the same tokens.
#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use common::*;
use futures::future::LocalBoxFuture;
use potluck_engine::{Eviction, StagingPart};
use potluck_gguf::TensorType;
use potluck_gguf::synthetic::Synthetic;
use potluck_node::native::cli::{GuessArguments, Options, Session, ShadowFrom};
use potluck_node::native::study::{check_shadow_of, requantize};
use potluck_node::native::{DiskFile, open_model_files};
use potluck_node::platform::LocalFile;
use potluck_panel::{Guessing, ModelSource, OnDemandReport, PredictorKind, PromptRequest, RequestId, Status, ToPage};
use potluck_plan::{Bytes, KvCacheType};

const TEXT: &str = "Once upon a time there was a pot of soup";
const TOKENS: u32 = 24;

fn model() -> Synthetic {
    Synthetic { blocks: 3, experts: 16, seed: 3, ..Synthetic::default() }
}

/// Memory for everything but the experts, and for `share` of those.
fn budget(share: f64) -> u64 {
    budget_of(&model(), share)
}

/// The report of a device that has answered.
fn report(session: &Session) -> OnDemandReport {
    session.status.on_demand.expect("experts come on demand")
}

#[test]
fn a_device_with_memory_for_some_experts_answers_bit_for_bit_like_one_with_all() {
    test(async {
        let path = write(&model(), &folder("models"), "model");
        let expected = alone(&path, TEXT, TOKENS).await;
        for share in [1.0 / 3.0, 0.25, 0.07] {
            let mut device = open_alone(open_model_files(&path).unwrap(), budget(share));
            device.until_up().await.unwrap();
            assert_eq!(
                answer(&mut device, question(1, TEXT, TOKENS), |_| {}).await,
                expected,
                "{share} of the experts"
            );
            until(&mut device, "the answer is counted", |status| {
                status.on_demand.is_some_and(|report| report.tokens >= u64::from(TOKENS) - 1)
            })
            .await;
            let report = report(&device);
            let slots = f64::from(report.slots) / f64::from(report.experts);
            assert!((slots - share).abs() < 0.05, "{share}: {report:?}");
            assert!(report.misses > 0 && report.token_bytes > 0.0 && report.prompt_bytes > 0, "{report:?}");
            let again = answer(&mut device, question(2, TEXT, TOKENS), |_| {}).await;
            assert_eq!(again, expected, "with other experts in the slots, {share}");
        }
    });
}

/// Tokens are the same bits whoever guesses, and whatever the guesses are worth.
#[test]
fn guesses_change_no_token() {
    test(async {
        let path = write(&model(), &folder("models"), "model");
        let expected = alone(&path, TEXT, TOKENS).await;
        for predictor in [PredictorKind::Frequent, PredictorKind::Router] {
            for share in [0.5, 0.25, 0.07] {
                let guesses = GuessArguments { predictor, always_guess: true, ..GuessArguments::default() };
                let mut device = open_guessing(open_model_files(&path).unwrap(), budget(share), guesses);
                device.until_up().await.unwrap();
                for request in 1..3 {
                    let tokens = answer(&mut device, question(request, TEXT, TOKENS), |_| {}).await;
                    assert_eq!(tokens, expected, "{predictor}, {share} of the experts, answer {request}");
                }
                until(&mut device, "the answers are counted", |status| {
                    status.on_demand.is_some_and(|report| report.tokens >= 2 * (u64::from(TOKENS) - 1))
                })
                .await;
                let report = report(&device);
                let guesses = report.guesses.expect("somebody guesses");
                println!("{predictor}, {share}: {report:?}");
                assert_eq!((guesses.predictor, guesses.guessing), (predictor, Guessing::Always));
                assert!(guesses.used > 0 && guesses.recall.is_some_and(|recall| recall > 0.1), "{guesses:?}");
                assert!(guesses.loaded > 0 || share < 0.1, "{share}: {guesses:?}");
                let used = report.hits + report.misses;
                assert!(used > 0 && guesses.useful <= guesses.loaded, "{report:?}");
            }
        }
    });
}

/// Which expert makes room changes what is loaded, and no token.
#[test]
fn evicting_the_least_often_used_changes_no_token() {
    test(async {
        let path = write(&model(), &folder("models"), "model");
        let expected = alone(&path, TEXT, TOKENS).await;
        let mut misses = Vec::new();
        for eviction in [Eviction::Lru, Eviction::Lfu] {
            let guesses = GuessArguments { eviction, ..GuessArguments::default() };
            let mut device = open_guessing(open_model_files(&path).unwrap(), budget(0.33), guesses);
            device.until_up().await.unwrap();
            for request in 1..3 {
                let tokens = answer(&mut device, question(request, TEXT, TOKENS), |_| {}).await;
                assert_eq!(tokens, expected, "{eviction:?}, answer {request}");
            }
            until(&mut device, "the answers are counted", |status| {
                status.on_demand.is_some_and(|report| report.tokens >= 2 * (u64::from(TOKENS) - 1))
            })
            .await;
            misses.push(report(&device).misses);
        }
        println!("misses: {misses:?}");
        assert_ne!(misses[0], misses[1], "others made room");
    });
}

/// A text that is asked again is guessed with the recall that was asked for, some blocks and a token ahead.
#[test]
fn a_recorded_text_is_guessed_with_a_known_recall_and_changes_no_token() {
    test(async {
        let path = write(&model(), &folder("models"), "model");
        let expected = alone(&path, TEXT, TOKENS).await;
        for (share, lead) in [(0.5, 1), (0.5, 2), (0.25, 2), (0.07, 2)] {
            let guesses = GuessArguments {
                predictor: PredictorKind::Recorded,
                always_guess: true,
                recalls: vec![0.0, 0.5, 1.0],
                lead: Some(lead),
                ..GuessArguments::default()
            };
            let mut device = open_guessing(open_model_files(&path).unwrap(), budget(share), guesses);
            device.until_up().await.unwrap();
            let mut before = OnDemandReport::default();
            for (round, recall) in [(0, None), (1, None), (2, Some(0.5)), (3, Some(1.0))] {
                let tokens = answer(&mut device, question(round + 1, TEXT, TOKENS), |_| {}).await;
                assert_eq!(tokens, expected, "{share} of the experts, {lead} blocks ahead, round {round}");
                let all = u64::from(round + 1) * (u64::from(TOKENS) - 1);
                until(&mut device, "the answer is counted", |status| {
                    status.on_demand.is_some_and(|report| report.tokens >= all)
                })
                .await;
                let report = report(&device);
                let guesses = report.since(&before).guesses.expect("somebody guesses");
                before = report;
                println!("{share}, {lead} ahead, round {round}: {guesses:?}");
                match (recall, guesses.recall) {
                    (Some(recall), Some(measured)) => assert!((measured - recall).abs() < 0.15, "{guesses:?}"),
                    (recall, measured) => assert!(recall.is_none() && measured.unwrap_or(0.0) == 0.0, "{guesses:?}"),
                }
                assert!(guesses.loaded > 0 || recall.is_none() || share < 0.1, "{guesses:?}");
            }
        }
    });
}

/// A shadow on the same GPU changes no token either, however rarely it is aligned.
#[test]
fn a_shadow_changes_no_token_and_knows_most_experts() {
    test(async {
        let models = folder("models");
        let path = write(&model(), &models, "model");
        let expected = alone(&path, TEXT, TOKENS).await;
        let shadow = models.join("shadow.gguf");
        requantize(&path, &shadow, TensorType::Q8_0, |_, _| {}).unwrap();
        check_shadow_of(&path, &shadow).unwrap();
        for align in ["unaligned", "T1", "T4KV2", "T1KV1"] {
            let align = align.parse().unwrap();
            let guesses = GuessArguments {
                always_guess: true,
                shadow: Some(ShadowFrom::File(shadow.clone())),
                align,
                ..Default::default()
            };
            let mut device = open_guessing(open_model_files(&path).unwrap(), budget(0.5), guesses);
            device.until_up().await.unwrap();
            for request in 1..3 {
                let tokens = answer(&mut device, question(request, TEXT, TOKENS), |_| {}).await;
                assert_eq!(tokens, expected, "{align}, answer {request}");
            }
            until(&mut device, "the answers are counted", |status| {
                status.on_demand.is_some_and(|report| report.tokens >= 2 * (u64::from(TOKENS) - 1))
            })
            .await;
            let report = report(&device);
            let guesses = report.guesses.expect("somebody guesses");
            println!("{align}: {report:?}");
            assert_eq!(guesses.predictor, PredictorKind::Shadow);
            // In time or not: how fast the shadow is depends on the machine.
            assert!(guesses.shadow.is_some_and(|recall| recall > 0.4), "{align}: {guesses:?}");
        }
    });
}

/// The shadow is made from the device's own model, while that answers, and of the memory that it lends.
#[test]
fn a_shadow_made_from_the_own_model_changes_no_token_and_knows_most_experts() {
    test(async {
        let path = write(&model(), &folder("models"), "model");
        let expected = alone(&path, TEXT, TOKENS).await;
        let types = [(None, "T1", KvCacheType::F16), (Some(TensorType::Q8_0), "T4KV2", KvCacheType::F32)];
        for (kind, align, kv_cache) in types {
            let (shadow, align) = (Some(ShadowFrom::Own(kind)), align.parse().unwrap());
            let guesses = GuessArguments { always_guess: true, shadow, align, ..Default::default() };
            let bytes = shadow_bytes(&model(), kind, kv_cache).await;
            let lent = budget(0.5) + bytes;
            let mut device = open_guessing(open_model_files(&path).unwrap(), lent, guesses);
            device.until_up().await.unwrap();
            let is_ready = |status: &Status| status.shadow.is_some_and(|shadow| shadow.ready);
            assert_eq!(answer(&mut device, question(1, TEXT, TOKENS), |_| {}).await, expected, "while it is made");
            until(&mut device, "the shadow is made", is_ready).await;
            assert_eq!(device.status.shadow.map(|shadow| shadow.bytes), Some(bytes));
            let member = device.status.peers.first().unwrap();
            let shown = member.lent.map(|Bytes(lent)| lent);
            assert_eq!(shown, Some(lent - bytes), "the room gets what is left");
            for request in 2..4 {
                let tokens = answer(&mut device, question(request, TEXT, TOKENS), |_| {}).await;
                assert_eq!(tokens, expected, "{kind:?}, answer {request}");
            }
            let is_known = |status: &Status| {
                let guesses = status.on_demand.and_then(|report| report.guesses);
                guesses.is_some_and(|guesses| guesses.shadow_tokens > u64::from(TOKENS))
            };
            until(&mut device, "the shadow has followed an answer", is_known).await;
            let guesses = report(&device).guesses.unwrap();
            println!("{kind:?}: {bytes} bytes, {guesses:?}");
            assert_eq!(guesses.predictor, PredictorKind::Shadow);
            assert!(guesses.shadow.is_some_and(|recall| recall > 0.25), "{kind:?}: {guesses:?}");
        }
    });
}

/// In a room the shadow is made from what is in the cache; what is not, comes over the network once and stays there.
#[test]
fn a_shadow_is_made_from_the_cache_of_its_base() {
    test(async {
        let (models, cache) = (folder("models"), folder("cache"));
        // The LM head shares the embedding's bytes.
        let tied = Synthetic { tied: true, ..model() };
        let path = write(&tied, &models, "model");
        let expected = alone(&path, TEXT, TOKENS).await;
        let relay = relay(&models, 0).await;
        let lent = budget_of(&tied, 0.25) + shadow_bytes(&tied, None, KvCacheType::F16).await;
        let served = async || relay.metric("potluck_relay_weight_bytes_total").await;
        let mut before = 0;
        for (visit, most) in [("first", path.metadata().unwrap().len() * 5 / 4), ("second", 1 << 20)] {
            let guesses = GuessArguments { shadow: Some(ShadowFrom::Own(None)), ..GuessArguments::default() };
            let options = Options { guesses, cache: Some(cache.clone()), on_demand: true, ..Options::default() };
            let mut host = Session::start(&relay.origin, &options);
            let source = ModelSource::Relay { name: "model".into() };
            common::host(&mut host, &relay.origin, source, lent).await;
            host.until_up().await.unwrap();
            assert_eq!(answer(&mut host, question(1, TEXT, TOKENS), |_| {}).await, expected, "{visit} visit");
            until(&mut host, "the shadow is made", |status| status.shadow.is_some_and(|shadow| shadow.ready)).await;
            assert_eq!(answer(&mut host, question(2, TEXT, TOKENS), |_| {}).await, expected, "{visit} visit, again");
            let now = served().await;
            assert!(now - before < most, "{visit} visit: {} bytes came over the network", now - before);
            before = now;
            drop(host);
        }
        relay.stop().await;
    });
}

#[test]
fn a_shadow_that_is_gone_in_mid_answer_leaves_the_answer_as_it_is() {
    test(async {
        let path = write(&model(), &folder("models"), "model");
        let expected = alone(&path, TEXT, TOKENS).await;
        let shadow = Some(ShadowFrom::Own(None));
        let guesses = GuessArguments { always_guess: true, shadow, shadow_tokens: Some(8), ..Default::default() };
        let lent = budget(0.5) + shadow_bytes(&model(), None, KvCacheType::F16).await;
        let mut device = open_guessing(open_model_files(&path).unwrap(), lent, guesses);
        device.until_up().await.unwrap();
        until(&mut device, "the shadow is made", |status| status.shadow.is_some_and(|shadow| shadow.ready)).await;
        for request in 1..3 {
            assert_eq!(answer(&mut device, question(request, TEXT, TOKENS), |_| {}).await, expected, "{request}");
        }
        let guesses = report(&device).guesses.unwrap();
        assert!(guesses.shadow_tokens <= 8 + 3, "it spoke of few tokens: {guesses:?}");
    });
}

/// The next sentence for people.
async fn notice(device: &mut Session) -> String {
    loop {
        if let ToPage::Notice(notice) = device.next().await.unwrap() {
            return notice.sentence;
        }
    }
}

#[test]
fn where_the_model_would_have_too_little_there_is_no_shadow_and_one_sentence() {
    test(async {
        let path = write(&model(), &folder("models"), "model");
        let expected = alone(&path, TEXT, TOKENS).await;
        for (lent, sentence) in [
            (budget(0.25), "that leaves too little for the model"),
            (4_000_000_000, "no smaller copy has to guess its experts"),
        ] {
            let guesses = GuessArguments { shadow: Some(ShadowFrom::Own(None)), ..Default::default() };
            let mut device = open_guessing(open_model_files(&path).unwrap(), lent, guesses);
            let told = notice(&mut device).await;
            assert!(told.contains(sentence), "{told}");
            device.until_up().await.unwrap();
            assert_eq!(answer(&mut device, question(1, TEXT, TOKENS), |_| {}).await, expected, "{lent}");
            assert_eq!(device.status.shadow, None);
        }
    });
}

#[test]
fn a_shadow_of_another_model_is_refused_with_a_sentence() {
    let models = folder("models");
    let path = write(&model(), &models, "model");
    let other = write(&Synthetic { blocks: 2, ..model() }, &models, "other");
    let sentence = check_shadow_of(&path, &other).unwrap_err().to_string();
    assert!(sentence.contains("is no shadow of") && sentence.contains("its blocks have other sizes"), "{sentence}");
}

#[test]
fn a_cache_that_is_deleted_in_mid_answer_is_fetched_again() {
    test(async {
        let models = folder("models");
        let path = write(&model(), &models, "model");
        let expected = alone(&path, TEXT, TOKENS).await;
        let relay = relay(&models, 0).await;
        let cache = folder("cache");
        let options = Options { cache: Some(cache.clone()), on_demand: true, ..Options::default() };
        let mut host = Session::start(&relay.origin, &options);
        host_of(&mut host, &relay).await;
        let mut deleted = false;
        let tokens = answer(&mut host, question(1, TEXT, TOKENS), |count| {
            if count >= 8 && !std::mem::replace(&mut deleted, true) {
                std::fs::remove_dir_all(&cache).unwrap();
            }
        })
        .await;
        assert!(deleted);
        assert_eq!(tokens, expected, "the answer goes on");
        assert_eq!(answer(&mut host, question(2, TEXT, TOKENS), |_| {}).await, expected, "and so does the next one");
        drop(host);
        relay.stop().await;
    });
}

/// Every expert of a model in the only cache in a folder.
fn stored_experts(cache: &Path) -> Vec<PathBuf> {
    let files = |folder: PathBuf| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_expert = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("expert-"));
    files(cache.to_owned()).filter(|path| path.is_dir()).flat_map(files).filter(is_expert).collect()
}

/// Experts of several megabytes that are cut short in the cache: while a device believes that they are whole, and before
/// another one looks. Either way what is missing comes from the network, and loading ends.
#[test]
fn experts_that_are_cut_short_in_the_cache_are_fetched_again() {
    test(async {
        let large = Synthetic { blocks: 2, experts: 6, intermediate: 1792, seed: 5, ..Synthetic::default() };
        let (shape, _) = sizes(&large);
        let bytes = shape.blocks[0].expert_bytes().0;
        assert!(bytes > 5_000_000, "{bytes} bytes are too few: pieces of 4 MB");
        let (models, cache) = (folder("models"), folder("cache"));
        let path = write(&large, &models, "model");
        let expected = alone(&path, TEXT, TOKENS).await;
        let relay = relay(&models, 0).await;
        let cut = |share: f64| {
            let stored = stored_experts(&cache);
            for path in &stored {
                let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
                file.set_len((bytes as f64 * share) as u64).unwrap();
            }
            stored.len()
        };
        let served = async || relay.metric("potluck_relay_weight_bytes_total").await;
        for (name, before, within) in [("cut while it is open", None, Some(0.6)), ("half stored", Some(0.5), None)] {
            if let Some(share) = before {
                assert!(cut(share) > 2, "{name}: too few are stored");
            }
            let options = Options { cache: Some(cache.clone()), on_demand: true, ..Options::default() };
            let mut host = Session::start(&relay.origin, &options);
            let source = ModelSource::Relay { name: "model".into() };
            common::host(&mut host, &relay.origin, source, budget_of(&large, 0.4)).await;
            host.until_up().await.unwrap();
            let mut was_cut = within.is_none();
            let (before, mut after) = (served().await, 0);
            let tokens = answer(&mut host, question(1, TEXT, TOKENS), |count| {
                if let Some(share) = within.filter(|_| count >= 8 && !std::mem::replace(&mut was_cut, true)) {
                    after = cut(share);
                }
            })
            .await;
            assert_eq!(tokens, expected, "{name}");
            assert!(was_cut, "{name}: the answer was too short");
            assert!(served().await > before, "{name}: nothing came from the network; {after} were cut");
            assert_eq!(answer(&mut host, question(2, TEXT, TOKENS), |_| {}).await, expected, "{name}, again");
            let whole = stored_experts(&cache).iter().filter(|path| path.metadata().unwrap().len() == bytes).count();
            assert!(whole > 0, "{name}: what was fetched is stored again");
            drop(host);
        }
        relay.stop().await;
    });
}

async fn host_of(session: &mut Session, relay: &RunningRelay) {
    host(session, &relay.origin, ModelSource::Relay { name: "model".into() }, budget(0.25)).await;
    session.until_up().await.unwrap();
}

#[test]
fn memory_that_does_not_hold_a_tokens_experts_is_refused_with_what_is_missing() {
    test(async {
        let path = write(&model(), &folder("models"), "model");
        let mut device = open_alone(open_model_files(&path).unwrap(), budget(0.01));
        let sentence = device.until_up().await.unwrap_err();
        assert!(sentence.contains("more on one device its experts could be loaded on demand"), "{sentence}");
    });
}

/// A file that cannot be read any more once its disk is gone.
struct Removable {
    file: DiskFile,
    gone: Rc<Cell<bool>>,
    /// Read in other threads, straight into staging buffers.
    beside: bool,
}

impl LocalFile for Removable {
    fn name(&self) -> String {
        self.file.name()
    }

    fn len(&self) -> u64 {
        self.file.len()
    }

    fn read(&self, offset: u64, len: u64) -> LocalBoxFuture<'static, Result<Vec<u8>, String>> {
        match self.gone.get() {
            true => Box::pin(std::future::ready(Err("the disk is gone.".to_owned()))),
            false => self.file.read(offset, len),
        }
    }

    fn reads_beside(&self) -> bool {
        self.beside
    }

    fn read_into(&self, offset: u64, part: StagingPart) -> LocalBoxFuture<'static, Result<(), String>> {
        match self.gone.get() {
            true => Box::pin(std::future::ready(Err("the disk is gone.".to_owned()))),
            false => self.file.read_into(offset, part),
        }
    }
}

#[test]
fn an_expert_that_cannot_be_read_ends_the_answer_with_a_sentence() {
    test(async {
        let path = write(&model(), &folder("models"), "model");
        let expected = alone(&path, TEXT, TOKENS).await;
        for beside in [false, true] {
            let gone = Rc::new(Cell::new(false));
            let file = Removable { file: DiskFile::open(&path).unwrap(), gone: gone.clone(), beside };
            let mut device = open_alone(vec![Rc::new(file)], budget(0.25));
            device.until_up().await.unwrap();
            gone.set(true);
            let failed = device.chat(RequestId(1), question(1, TEXT, TOKENS), false).await.unwrap_err();
            assert!(failed.contains("An expert cannot be loaded") && failed.contains("the disk is gone"), "{failed}");
            gone.set(false);
            assert_eq!(answer(&mut device, question(2, TEXT, TOKENS), |_| {}).await, expected, "no slot was lost");
        }
    });
}

/// Exact experts change nothing (od-moe.txt, table 2, part iii). Minutes on a software adapter.
#[test]
#[ignore = "minutes: the figures are in docs/lab/on-demand.md"]
fn the_50_prompts_of_the_built_in_model_get_the_same_answers_with_a_third_of_its_experts() {
    /// Bytes of all experts.
    const EXPERTS: u64 = 16_736_256;
    test_within(Duration::from_secs(1800), async {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let files = || open_model_files(&root.join("public/models/potluck-small-Q4_K_M.gguf")).unwrap();
        let prompts = std::fs::read_to_string(root.join("train/eval/prompts.jsonl")).unwrap();
        let prompts = prompts.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let prompts: Vec<String> = prompts.map(|line| line["prompt"].as_str().unwrap().to_owned()).collect();
        let mut whole = open_alone(files(), 4_000_000_000);
        whole.until_up().await.unwrap();
        let plan = whole.status.plan.clone().unwrap();
        let needs = plan.overhead + plan.stages[0].bytes + plan.stages[0].kv_cache_bytes;
        let mut third = open_alone(files(), needs - EXPERTS + EXPERTS / 3 + EXPERTS / 64);
        third.until_up().await.unwrap();
        let mut tokens = [0, 0];
        let mut millis = [0.0, 0.0];
        for (number, prompt) in (1..).zip(&prompts) {
            let mut answers = Vec::new();
            for (index, session) in [&mut whole, &mut third].into_iter().enumerate() {
                let asked = PromptRequest { raw: false, ..question(number, prompt, 64) };
                let (_, answer, timings) = session.chat(RequestId(number), asked, false).await.unwrap();
                tokens[index] += answer.len();
                millis[index] += timings.first_token_ms + timings.decode_ms;
                answers.push(answer);
            }
            assert_eq!(answers[0], answers[1], "{prompt}");
            println!("{number}: {} tokens", answers[0].len());
        }
        let report = report(&third);
        println!("{} prompts, {tokens:?} tokens in {millis:?} ms: {report:?}", prompts.len());
        assert!(report.misses > 0 && f64::from(report.slots) < 0.4 * f64::from(report.experts), "{report:?}");
    });
}
