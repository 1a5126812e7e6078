//! A shadow beside a device whose experts come on demand: from a file, or made from the device's own model. It changes no token.
#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::ops::Range;
use std::rc::Rc;

use common::*;
use futures::future::LocalBoxFuture;
use potluck_gguf::synthetic::Synthetic;
use potluck_gguf::{TensorType, join};
use potluck_node::compute::{ShadowOptions, ShadowSource};
use potluck_node::native::{DiskFile, check_shadow_of, open_model_files};
use potluck_node::platform::{Clock, ComputeInterceptor, LocalFile, Platform, Spawn, WorkPath};
use potluck_panel::{HostChoice, ModelSource, PredictorKind, Sharing, Status, ToPage};
use potluck_plan::{Bytes, Computed, KvCacheType, Outcome, Pooling};
use potluck_terminal::{Session, Setup};

const TEXT: &str = "Once upon a time there was a pot of soup";
const TOKENS: u32 = 24;

/// A shadow made from the model that it guesses for, in this type.
fn own_shadow(kind: Option<TensorType>) -> ShadowOptions {
    shadow_from(ShadowSource::Own(kind))
}

/// A shadow on the same GPU changes no token either, however rarely it is aligned.
#[test]
fn a_shadow_changes_no_token_and_knows_most_experts() {
    test(async {
        let models = folder("models");
        let path = write(&model(), &models, "model");
        let expected = alone(&path, TEXT, TOKENS).await;
        let shadow = models.join("shadow.gguf");
        requantize(&path, &shadow, TensorType::Q8_0);
        check_shadow_of(&path, &shadow).unwrap();
        for align in ["unaligned", "T1", "T4KV2", "T1KV1"] {
            let of_file = shadow_from(ShadowSource::File(shadow.clone()));
            let shadow = ShadowOptions { alignment: align.parse().unwrap(), ..of_file };
            let guesses = Guesses::default().always().with_shadow(shadow);
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
            let shadow = ShadowOptions { alignment: align.parse().unwrap(), ..own_shadow(kind) };
            let guesses = Guesses::default().always().with_shadow(shadow);
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
            let is_known = |status: &Status| {
                let guesses = status.on_demand.and_then(|report| report.guesses);
                guesses.is_some_and(|guesses| guesses.shadow_tokens > u64::from(TOKENS))
            };
            // How many answers it takes until the shadow has followed one depends on the machine.
            for request in 2..20 {
                let tokens = answer(&mut device, question(request, TEXT, TOKENS), |_| {}).await;
                assert_eq!(tokens, expected, "{kind:?}, answer {request}");
                if request > 2 && is_known(&device.status) {
                    break;
                }
            }
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
            let guesses = Guesses::default().with_shadow(own_shadow(None));
            let mut host = Session::start(setup_on_demand(&relay.origin, &cache, guesses));
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

/// A device whose outputs of experts wait.
struct LateExperts {
    millis: f64,
    clock: Rc<dyn Clock>,
    spawn: Rc<dyn Spawn>,
}

impl LateExperts {
    fn on(platform: Platform, millis: f64) -> Platform {
        let compute = Rc::new(Self { millis, clock: platform.clock.clone(), spawn: platform.spawn.clone() });
        Platform { compute, ..platform }
    }
}

impl ComputeInterceptor for LateExperts {
    fn room(&self, next: WorkPath) -> WorkPath {
        let (millis, clock, spawn) = (self.millis, self.clock.clone(), self.spawn.clone());
        let WorkPath { submit, results: deliver } = next;
        let results: Rc<dyn Fn(Computed)> = Rc::new(move |computed| match computed.outcome {
            Outcome::ExpertOutputs(_) => {
                let (wait, results) = (clock.sleep(millis), deliver.clone());
                spawn.spawn(Box::pin(async move {
                    wait.await;
                    results(computed);
                }));
            }
            _ => deliver(computed),
        });
        WorkPath { submit, results }
    }
}

/// A room whose host has a shadow of its own model.
struct ShadowRoom {
    host: Session,
    /// Two, with slots for some of their experts.
    holders: Vec<Session>,
    relay: RunningRelay,
    /// What one device answers.
    expected: Vec<u32>,
}

impl ShadowRoom {
    /// Outputs of the holders' experts wait for so many milliseconds.
    async fn open(wait_millis: f64) -> Self {
        let models = folder("models");
        let model = Synthetic { blocks: 3, experts: 16, seed: 3, ..Synthetic::default() };
        let expected = alone(&write(&model, &models, "model"), TEXT, TOKENS).await;
        let relay = relay(&models, 0).await;
        let (shape, Bytes(overhead)) = sizes(&model);
        let takes = shadow_bytes(&model, Some(TensorType::Q8_0), KvCacheType::F16).await;
        let guesses = Guesses::default().always().ahead(2).with_shadow(own_shadow(Some(TensorType::Q8_0)));
        let mut host = Session::start(setup_on_demand(&relay.origin, &folder("cache"), guesses));
        // As on one device.
        let kv_cache = Some(KvCacheType::F32);
        let choice = choice(ModelSource::Relay { name: "model".into() }, budget_of(&model, 0.2) + takes);
        let pooling = Pooling { replicas: 1, ..Pooling::default() };
        let choice = HostChoice { cache: kv_cache, sharing: Sharing::Experts, pooling, ..choice };
        let link = host_as(&mut host, &relay.origin, choice, Vec::new()).await;
        let late = |_| {
            let setup = setup("holder", &relay.origin, &folder("cache"));
            Session::start(Setup { platform: LateExperts::on(setup.platform, wait_millis), ..setup })
        };
        let holding: Vec<Session> = (0..2).map(late).collect();
        // Too little for the stage: the shadow is beside it, at the host.
        let lent = Some(overhead + experts(&shape) / 10);
        holding.iter().for_each(|joiner| join_room(joiner, &link, lent));
        until(&mut host, "two holders with slots", |status| holders(status) == 2).await;
        until(&mut host, "the shadow is made", |status| status.shadow.is_some_and(|shadow| shadow.ready)).await;
        Self { host, holders: holding, relay, expected }
    }

    /// Answers until this is so, at most `most` times. A shadow may be late on a busy machine.
    async fn answer_until(&mut self, most: u32, is_so: impl Fn(&Status) -> bool) {
        for request in 1..most {
            let tokens = answer(&mut self.host, question(request, TEXT, TOKENS), |_| {}).await;
            assert_eq!(tokens, self.expected, "{request}");
            if request > 1 && is_so(&self.host.status) {
                break;
            }
        }
    }

    async fn close(self) {
        drop((self.host, self.holders));
        self.relay.stop().await;
    }
}

#[test]
fn a_shadow_made_from_the_hosts_model_tells_holders_what_is_called() {
    test(async {
        let mut room = ShadowRoom::open(0.0).await;
        let has_spoken = |status: &Status| status.hints.is_some_and(|hints| hints.shadow_tokens > 0);
        room.answer_until(20, has_spoken).await;
        until(&mut room.host, "the shadow speaks to holders", has_spoken).await;
        let hints = room.host.status.hints.unwrap();
        assert!(hints.shadow.is_some_and(|recall| recall > 0.4), "{hints:?}");
        assert_eq!(hints.predictor, PredictorKind::Shadow);
        room.close().await;
    });
}

/// The tokens that a shadow expects pass the blocks beside the certain one. Holders take their time, so that it is ahead of the
/// room on any machine.
#[test]
fn what_a_shadow_expects_is_drafted_and_changes_no_token() {
    test(async {
        let mut room = ShadowRoom::open(30.0).await;
        let accepted = |status: &Status| status.drafts.map_or(0, |drafts| drafts.from_shadow.accepted);
        room.answer_until(30, |status| accepted(status) > 3).await;
        let Status { drafts, hints, .. } = &room.host.status;
        println!("{drafts:?}, {hints:?}");
        assert!(accepted(&room.host.status) > 3, "{drafts:?}, {hints:?}");
        room.close().await;
    });
}

#[test]
fn a_shadow_that_is_gone_in_mid_answer_leaves_the_answer_as_it_is() {
    test(async {
        let path = write(&model(), &folder("models"), "model");
        let expected = alone(&path, TEXT, TOKENS).await;
        let shadow = ShadowOptions { tokens: Some(8), ..own_shadow(None) };
        let guesses = Guesses::default().always().with_shadow(shadow);
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
            let guesses = Guesses::default().with_shadow(own_shadow(None));
            let mut device = open_guessing(open_model_files(&path).unwrap(), lent, guesses);
            let told = notice(&mut device).await;
            assert!(told.contains(sentence), "{told}");
            device.until_up().await.unwrap();
            assert_eq!(answer(&mut device, question(1, TEXT, TOKENS), |_| {}).await, expected, "{lent}");
            assert_eq!(device.status.shadow, None);
        }
    });
}

/// A file whose embedding cannot be read in small pieces: its model has it then, and no shadow gets it.
struct InOnePiece {
    file: DiskFile,
    embedding: Range<u64>,
}

impl LocalFile for InOnePiece {
    fn name(&self) -> String {
        self.file.name()
    }

    fn len(&self) -> u64 {
        self.file.len()
    }

    fn read(&self, offset: u64, len: u64) -> LocalBoxFuture<'static, Result<Vec<u8>, String>> {
        if self.embedding.contains(&offset) && offset + len < self.embedding.end {
            return Box::pin(std::future::ready(Err("the disk is gone.".to_owned())));
        }
        self.file.read(offset, len)
    }
}

#[test]
fn a_shadow_that_cannot_be_made_gives_its_memory_back_and_answers_go_on() {
    test(async {
        let path = write(&model(), &folder("models"), "model");
        let expected = alone(&path, TEXT, TOKENS).await;
        let header = join([model().header().unwrap()]).unwrap();
        let tensor = header.tensors.iter().find(|tensor| tensor.name == "token_embd.weight").unwrap();
        let embedding = tensor.offset..tensor.offset + tensor.bytes;
        let file = InOnePiece { file: DiskFile::open(&path).unwrap(), embedding };
        let guesses = Guesses::default().with_shadow(own_shadow(None));
        let lent = budget(0.5) + shadow_bytes(&model(), None, KvCacheType::F16).await;
        let mut device = open_guessing(vec![Rc::new(file)], lent, guesses);
        let told = notice(&mut device).await;
        assert!(told.contains("cannot be made") && told.contains("the disk is gone"), "{told}");
        until(&mut device, "all is lent to the room again", |status| {
            status.peers.first().is_some_and(|member| member.lent == Some(Bytes(lent)))
        })
        .await;
        device.until_up().await.unwrap();
        assert_eq!(answer(&mut device, question(1, TEXT, TOKENS), |_| {}).await, expected);
        assert_eq!(device.status.shadow, None);
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
