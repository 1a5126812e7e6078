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
use potluck_gguf::synthetic::Synthetic;
use potluck_node::compute::GuessOptions;
use potluck_node::native::{DiskFile, open_model_files};
use potluck_node::platform::LocalFile;
use potluck_panel::{Guessing, ModelSource, OnDemandReport, PredictorKind, PromptRequest};
use potluck_terminal::{Answer, Session};

const TEXT: &str = "Once upon a time there was a pot of soup";
const TOKENS: u32 = 24;

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
                let own = GuessOptions { predictor, ..GuessOptions::default() };
                let guesses = Guesses { own, ..Guesses::default() }.always();
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
            let own = GuessOptions { eviction, ..GuessOptions::default() };
            let guesses = Guesses { own, ..Guesses::default() };
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
            let recalls = vec![0.0, 0.5, 1.0];
            let own = GuessOptions { predictor: PredictorKind::Recorded, recalls, ..GuessOptions::default() };
            let guesses = Guesses { own, ..Guesses::default() }.always().ahead(lead);
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

#[test]
fn a_cache_that_is_deleted_in_mid_answer_is_fetched_again() {
    test(async {
        let models = folder("models");
        let path = write(&model(), &models, "model");
        let expected = alone(&path, TEXT, TOKENS).await;
        let relay = relay(&models, 0).await;
        let cache = folder("cache");
        let mut host = Session::start(setup_on_demand(&relay.origin, &cache, Guesses::default()));
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
            let mut host = Session::start(setup_on_demand(&relay.origin, &cache, Guesses::default()));
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
        let sentence = device.until_up().await.unwrap_err().to_string();
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
            let failed =
                device.chat(question(1, TEXT, TOKENS), |_, _| Ok(())).await.map(|_| ()).unwrap_err().to_string();
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
                let Answer { tokens: answer, timings, .. } = session.chat(asked, |_, _| Ok(())).await.unwrap();
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
