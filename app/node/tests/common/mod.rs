//! A relay, synthetic models, and peers on this machine's GPU (a software one will do).
#![allow(dead_code, reason = "each test binary uses a part")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use potluck_engine::{Gpu, GpuOptions};
use potluck_gguf::synthetic::Synthetic;
use potluck_gguf::{Requantized, TensorType, join, parse, requantize_rows};
use potluck_model::ModelSpec;
use potluck_node::compute::{GuessOptions, OwnShadow, ShadowOptions, ShadowSource};
use potluck_node::native::Network;
use potluck_node::node::Input;
use potluck_node::platform::LocalFile;
use potluck_panel::{
    AnswerPart, AnswerStop, ContributeChoice, HostChoice, LogitOptions, Message, ModelSource, OnDemandReport,
    PlanStatus, PromptRequest, RequestId, Role, Sampling, Sharing, Status, Timings, ToNode, ToPage, ToolOffer,
};
use potluck_plan::{Arithmetic, BlockShape, Bytes, KvCacheType, ModelId, ModelShape, PeerId};
use potluck_predict::Alignment;
use potluck_relay::limits::Limits;
use potluck_relay::net::tls::Identity;
use potluck_relay::{Config, Relay};
use potluck_swarm::HintOptions;
use potluck_terminal::{NO_RELAY, RoomLink, Session, Setup};
use tokio::sync::oneshot;

/// How long anything may take before a test fails instead of hanging.
const PATIENCE: Duration = Duration::from_secs(300);
/// Positions of context in all tests.
pub const CONTEXT: u32 = 256;

/// Runs a test on one thread, with a timeout.
pub fn test(work: impl Future<Output = ()>) {
    test_within(PATIENCE, work);
}

/// The same with another timeout.
pub fn test_within(patience: Duration, work: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let limited = async { tokio::time::timeout(patience, work).await.expect("the test ends in time") };
    tokio::task::LocalSet::new().block_on(&runtime, limited);
    runtime.shutdown_background();
}

/// An empty folder for each test.
pub fn folder(test: &str) -> PathBuf {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}-{}-{number}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// A relay in this process.
pub struct RunningRelay {
    pub origin: String,
    stop: Option<oneshot::Sender<()>>,
    task: tokio::task::JoinHandle<()>,
}

/// Starts a relay with a folder of models; `port` 0 takes a free one.
pub async fn relay(models: &Path, port: u16) -> RunningRelay {
    start_relay(models, port, None).await
}

/// Starts a relay that also speaks TLS with this identity.
pub async fn start_relay(models: &Path, port: u16, identity: Option<Identity>) -> RunningRelay {
    let config = Config {
        ip: Ipv4Addr::LOCALHOST.into(),
        port,
        page: None,
        models: vec![models.to_path_buf()],
        origin: Default::default(),
        cache: folder("relay").join("cache"),
        identity,
        machine: Default::default(),
        hosts: Vec::new(),
        proxies: Default::default(),
        peers: Vec::new(),
        access: Default::default(),
        public_metrics: false,
        limits: Limits::default(),
    };
    let relay = Relay::start(config).await.unwrap();
    let origin = format!("http://{}", relay.address());
    let (stop, stopped) = oneshot::channel();
    let task = tokio::spawn(relay.run(async { drop(stopped.await) }));
    RunningRelay { origin, stop: Some(stop), task }
}

impl RunningRelay {
    pub fn port(&self) -> u16 {
        self.origin.rsplit(':').next().unwrap().parse().unwrap()
    }

    /// Stops it and waits until it has stopped.
    pub async fn stop(mut self) {
        self.stop.take().unwrap().send(()).unwrap();
        self.task.await.unwrap();
    }

    /// A counter of `GET /metrics`.
    pub async fn metric(&self, name: &str) -> u64 {
        let url = format!("{}/metrics", self.origin);
        let text = tokio::task::spawn_blocking(move || ureq::get(&url).call().unwrap().body_mut().read_to_string());
        let text = text.await.unwrap().unwrap();
        let line = text.lines().find(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(' ')));
        line.unwrap_or_else(|| panic!("{name} in\n{text}")).rsplit(' ').next().unwrap().parse().unwrap()
    }
}

/// A small model with experts.
pub fn model() -> Synthetic {
    Synthetic { blocks: 3, experts: 16, seed: 3, ..Synthetic::default() }
}

/// Memory for everything of that model but the experts, and for `share` of those.
pub fn budget(share: f64) -> u64 {
    budget_of(&model(), share)
}

/// The report of a device that has answered.
pub fn report(session: &Session) -> OnDemandReport {
    session.status.on_demand.expect("experts come on demand")
}

/// Sizes of a synthetic model, and a device's fixed overhead.
pub fn sizes(model: &Synthetic) -> (ModelShape, Bytes) {
    let (spec, units) = ModelSpec::from_gguf(&join([model.header().unwrap()]).unwrap()).unwrap();
    let overhead = potluck_node::open::overhead(&spec, CONTEXT);
    (spec.shape(&units, ModelId([0; 32]), KvCacheType::F32), overhead)
}

/// Bytes of all experts.
pub fn experts(shape: &ModelShape) -> u64 {
    shape.blocks.iter().map(|block| block.expert_bytes().0 * u64::from(block.expert_count())).sum()
}

/// Memory for everything of a model but the experts, and for `share` of those.
pub fn budget_of(model: &Synthetic, share: f64) -> u64 {
    let (shape, Bytes(overhead)) = sizes(model);
    let blocks: u64 = shape.blocks.iter().map(|block| BlockShape::without_experts(block).0).sum();
    let kv_cache = shape.kv_cache_bytes(shape.all_blocks(), CONTEXT).0;
    let head = if shape.tied_lm_head { 0 } else { shape.lm_head.0 };
    let slots = (experts(&shape) as f64 * share) as u64;
    // A part of the room for experts stays free.
    overhead + blocks + kv_cache + head + shape.embedding.0 + slots + slots / 32
}

/// Bytes that a shadow made from a model takes.
pub async fn shadow_bytes(model: &Synthetic, kind: Option<TensorType>, kv_cache: KvCacheType) -> u64 {
    let (spec, units) = ModelSpec::from_gguf(&join([model.header().unwrap()]).unwrap()).unwrap();
    let kind = kind.or(units.shadow_type()).unwrap();
    let gpu = Gpu::open(GpuOptions::default()).await.unwrap();
    let settings = potluck_node::open::settings(Bytes(u64::MAX), CONTEXT, kv_cache);
    OwnShadow::of(&spec, &units, kind, settings, gpu.capabilities()).unwrap().bytes().0
}

/// Writes a model into a folder.
pub fn write(model: &Synthetic, folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(format!("{name}.gguf"));
    std::fs::write(&path, model.to_bytes().unwrap()).unwrap();
    path
}

/// Who guesses, of a device's own experts and of those that it calls on others.
#[derive(Clone, Default)]
pub struct Guesses {
    pub own: GuessOptions,
    pub hints: HintOptions,
}

impl Guesses {
    /// Whether it pays or not.
    pub fn always(mut self) -> Self {
        (self.own.always, self.hints.always) = (true, true);
        self
    }

    /// So many blocks ahead.
    pub fn ahead(mut self, blocks: u16) -> Self {
        (self.own.lead, self.hints.lead) = (Some(blocks), blocks);
        self
    }

    /// A shadow guesses, or computes beside a recorded text.
    pub fn with_shadow(self, shadow: ShadowOptions) -> Self {
        Self { own: self.own.with_shadow(shadow), hints: self.hints.with_shadow() }
    }
}

/// A shadow that goes on from each token of its base.
pub fn shadow_from(source: ShadowSource) -> ShadowOptions {
    ShadowOptions { source, alignment: Alignment::each_token(), tokens: None }
}

/// A node before it starts, with a cache of its own.
pub fn setup(name: &str, origin: &str, cache: &Path) -> Setup {
    let network = Network { relay: origin.to_owned(), ..Network::default() };
    Setup { name: name.to_owned(), ..Setup::in_folder(&network, cache) }
}

/// A host that lets devices load experts on demand.
pub fn setup_on_demand(origin: &str, cache: &Path, guesses: Guesses) -> Setup {
    let mut setup = setup("host", origin, cache);
    setup.node.on_demand = true;
    (setup.node.guesses, setup.node.hints) = (guesses.own, guesses.hints);
    setup
}

/// A node with a cache of its own.
pub fn peer(name: &str, origin: &str, cache: PathBuf) -> Session {
    Session::start(setup(name, origin, &cache))
}

/// Devices that hold experts for a stage of the plan that is up.
pub fn holders(status: &Status) -> usize {
    let plan = status.plan.as_ref().filter(|plan| plan.state == potluck_panel::PlanStatus::Up);
    plan.map_or(0, |plan| plan.stages.iter().flat_map(|stage| &stage.expert_holders).count())
}

/// Which devices those are.
pub fn holder_ids(status: &Status) -> BTreeSet<PeerId> {
    let plan = status.plan.as_ref().filter(|plan| plan.state == potluck_panel::PlanStatus::Up);
    let holders = plan.into_iter().flat_map(|plan| &plan.stages).flat_map(|stage| &stage.expert_holders);
    holders.map(|holding| holding.peer).collect()
}

/// Opens a room; returns its link.
pub async fn host(session: &mut Session, origin: &str, source: ModelSource, budget: u64) -> String {
    host_with(session, origin, source, budget, Vec::new()).await
}

/// Opens a room with a model on this disk; returns its link.
pub async fn host_with(
    session: &mut Session,
    origin: &str,
    source: ModelSource,
    budget: u64,
    files: Vec<Rc<dyn LocalFile>>,
) -> String {
    host_sharing(session, origin, source, (budget, Sharing::Fastest), files).await
}

/// Opens a room whose work is shared in this way; returns its link.
pub async fn host_sharing(
    session: &mut Session,
    origin: &str,
    source: ModelSource,
    (budget, sharing): (u64, Sharing),
    files: Vec<Rc<dyn LocalFile>>,
) -> String {
    host_as(session, origin, HostChoice { sharing, ..choice(source, budget) }, files).await
}

/// A choice of defaults.
pub fn choice(model: ModelSource, budget: u64) -> HostChoice {
    HostChoice {
        model,
        budget,
        context: CONTEXT,
        cache: None,
        arithmetic: Some(Arithmetic::Exact),
        sharing: Sharing::Fastest,
        ends: Default::default(),
        visible: false,
        resume: None,
        doors: Default::default(),
        protect: false,
        guesser: Default::default(),
        pooling: Default::default(),
        deputy: Default::default(),
        term: Default::default(),
    }
}

/// Opens a room; returns its link.
pub async fn host_as(session: &mut Session, origin: &str, choice: HostChoice, files: Vec<Rc<dyn LocalFile>>) -> String {
    session.send(Input::Page(ToNode::Host(choice), files));
    format!("{origin}{}", session.link().await.unwrap())
}

/// Joins the room of a link and contributes a device.
pub fn join_room(session: &Session, link: &str, budget: Option<u64>) {
    let RoomLink { room, key, .. } = link.parse().unwrap();
    session.page(ToNode::Join { room, key });
    if let Some(budget) = budget {
        session.page(ToNode::Contribute(ContributeChoice { budget }));
    }
}

/// Waits for a snapshot that meets a condition.
pub async fn until(session: &mut Session, what: &str, wanted: impl Fn(&Status) -> bool) {
    while !wanted(&session.status) {
        if let Err(sentence) = session.next().await {
            panic!("{what}: {sentence}");
        }
    }
}

/// True if the plan is up with this many stages.
pub fn is_up(status: &Status, stages: usize) -> bool {
    status.plan.as_ref().is_some_and(|plan| plan.state == PlanStatus::Up && plan.stages.len() == stages)
}

/// A greedy question without template.
pub fn question(request: u32, text: &str, max_tokens: u32) -> PromptRequest {
    PromptRequest {
        request: RequestId(request),
        conversation: format!("test {request}"),
        messages: vec![Message::new(Role::User, text.to_owned())],
        raw: true,
        max_tokens,
        sampling: Sampling { temperature: 0.0, ..Sampling::default() },
        reasoning: None,
        tools: ToolOffer::default(),
        logits: LogitOptions::default(),
    }
}

/// The tokens of an answer. `at` receives their number after each piece of text.
pub async fn answer(session: &mut Session, prompt: PromptRequest, at: impl FnMut(usize)) -> Vec<u32> {
    answer_and_recoveries(session, prompt, at).await.0
}

/// The tokens of an answer, and why it had to wait for another plan.
pub async fn answer_and_recoveries(
    session: &mut Session,
    prompt: PromptRequest,
    mut at: impl FnMut(usize),
) -> (Vec<u32>, Vec<String>) {
    answer_with_status(session, prompt, |tokens, _| at(tokens)).await
}

/// The same. `at` receives the last snapshot, too.
pub async fn answer_with_status(
    session: &mut Session,
    prompt: PromptRequest,
    mut at: impl FnMut(usize, &Status),
) -> (Vec<u32>, Vec<String>) {
    let request = prompt.request;
    session.page(ToNode::Prompt(prompt));
    let (mut all, mut recoveries) = (Vec::new(), Vec::new());
    loop {
        let ToPage::Answer { request: of, event } = session.next().await.unwrap() else { continue };
        assert_eq!(of, request);
        match event {
            AnswerPart::Text { tokens, .. } => {
                all.extend(tokens);
                at(all.len(), &session.status);
            }
            AnswerPart::End { stop: AnswerStop::Failed(sentence) | AnswerStop::Refused(sentence), .. } => {
                panic!("the answer failed: {sentence}")
            }
            AnswerPart::Recovering(reason) => recoveries.push(reason),
            AnswerPart::Void { .. } => all.clear(),
            AnswerPart::End { .. } => return (all, recoveries),
            _ => {}
        }
    }
}

/// The tokens of several concurrent answers, in the order of the prompts.
pub async fn answers(session: &mut Session, prompts: Vec<PromptRequest>) -> Vec<Vec<u32>> {
    let requests: Vec<RequestId> = prompts.iter().map(|prompt| prompt.request).collect();
    prompts.into_iter().for_each(|prompt| session.page(ToNode::Prompt(prompt)));
    let mut all = vec![Vec::new(); requests.len()];
    let mut left = requests.len();
    while left > 0 {
        let ToPage::Answer { request, event } = session.next().await.unwrap() else { continue };
        let index = requests.iter().position(|known| *known == request).unwrap();
        match event {
            AnswerPart::Text { tokens, .. } => all[index].extend(tokens),
            AnswerPart::End { stop: AnswerStop::Failed(sentence) | AnswerStop::Refused(sentence), .. } => {
                panic!("an answer failed: {sentence}")
            }
            AnswerPart::End { .. } => left -= 1,
            _ => {}
        }
    }
    all
}

/// The text of an answer, and its timings.
pub async fn text_and_timings(session: &mut Session, prompt: PromptRequest) -> (String, Timings) {
    session.page(ToNode::Prompt(prompt));
    let mut text = String::new();
    loop {
        match session.next().await.unwrap() {
            ToPage::Answer { event: AnswerPart::Text { delta, .. }, .. } => text += &delta,
            ToPage::Answer {
                event: AnswerPart::End { stop: AnswerStop::Failed(sentence) | AnswerStop::Refused(sentence), .. },
                ..
            } => {
                panic!("the answer failed: {sentence}")
            }
            ToPage::Answer { event: AnswerPart::End { timings, .. }, .. } => return (text, timings),
            _ => {}
        }
    }
}

/// The answer of one device alone, from the file.
pub async fn alone(path: &Path, text: &str, max_tokens: u32) -> Vec<u32> {
    alone_by(Arithmetic::Exact, path, text, max_tokens).await
}

/// Writes a model again with its matrices in another type.
pub fn requantize(from: &Path, to: &Path, kind: TensorType) {
    let file = std::fs::read(from).unwrap();
    let model = join([parse(&file).unwrap()]).unwrap();
    let plan = Requantized::new(&model, kind).unwrap();
    let mut tensors = model.tensors.iter().zip(&plan.kinds);
    let next = |_: &_| {
        let (tensor, kind) = tensors.next().unwrap();
        let mut rows = Vec::new();
        let bytes = &file[tensor.offset as usize..tensor.end() as usize];
        requantize_rows((tensor.kind, *kind), tensor.cols(), bytes, &mut rows).unwrap();
        rows
    };
    std::fs::write(to, plan.writer.to_bytes(next).unwrap()).unwrap();
}

/// The same by another arithmetic.
pub async fn alone_by(arithmetic: Arithmetic, path: &Path, text: &str, max_tokens: u32) -> Vec<u32> {
    let files = potluck_node::native::open_model_files(path).unwrap();
    let mut session = open_alone_by(arithmetic, files, 4_000_000_000);
    until(&mut session, "alone", |status| is_up(status, 1)).await;
    answer(&mut session, question(1, text, max_tokens), |_| {}).await
}

/// A device that opens a file without any room.
pub fn open_alone(files: Vec<Rc<dyn LocalFile>>, budget: u64) -> Session {
    open_alone_by(Arithmetic::Exact, files, budget)
}

/// The same, with somebody who guesses which experts come next.
pub fn open_guessing(files: Vec<Rc<dyn LocalFile>>, budget: u64, guesses: Guesses) -> Session {
    let mut setup = setup("alone", NO_RELAY, &folder("alone"));
    (setup.node.guesses, setup.node.hints) = (guesses.own, guesses.hints);
    open_in(Session::start(setup), Arithmetic::Exact, files, budget)
}

fn open_alone_by(arithmetic: Arithmetic, files: Vec<Rc<dyn LocalFile>>, budget: u64) -> Session {
    open_in(peer("alone", NO_RELAY, folder("alone")), arithmetic, files, budget)
}

fn open_in(session: Session, arithmetic: Arithmetic, files: Vec<Rc<dyn LocalFile>>, budget: u64) -> Session {
    let source = ModelSource::File { name: files[0].name(), bytes: Bytes(files[0].len()) };
    session.send(Input::Alone(potluck_swarm::HostCommand { arithmetic, ..command(source) }, budget, files));
    session
}

/// Opens a model on this device alone.
pub fn command(source: ModelSource) -> potluck_swarm::HostCommand {
    potluck_swarm::HostCommand::of(source, CONTEXT)
}
