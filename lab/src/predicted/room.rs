//! Runs one room: relay, delayed lines, peers, one answer, and the time of each of its tokens.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use potluck_node::native::Network;
use potluck_panel::{
    AnswerPart, AnswerStop, ContributeChoice, ForecastView, HostChoice, LogitOptions, Message, ModelSource, PlanReport,
    PlanStatus, PromptRequest, RequestId, Role, Sampling, Status, Timings, ToNode, ToPage, ToolOffer,
};
use potluck_relay::limits::Limits;
use potluck_relay::{Config, Relay};
use potluck_swarm::Fact;
use potluck_terminal::{RoomLink, Session, Setup};
use tokio::sync::oneshot;

use super::configurations::{Case, Configuration, Cut, Device, Timing};
use super::forwarder::{self, Line};
use super::measure::Measure;
use super::model::{CONTEXT, Measured};
use crate::device::DeviceOptions;
use crate::room::asking::recorded;
use crate::room::recording;

/// A room that is not up, or an answer that is not complete by then, has failed.
const TIMEOUT: Duration = Duration::from_secs(300);
/// How long the plan must not have changed: everyone is in, and GPUs are idle. A GPU that was just loaded or timed keeps its
/// highest clock for three seconds, which no person's prompt would meet.
const SETTLED: Duration = Duration::from_millis(4_500);
/// How many seconds a person types a prompt.
const TYPING_SECONDS: u32 = 2;
/// Maximum age of the host's snapshot of the room.
const SNAPSHOT_AGE: Duration = Duration::from_millis(1_300);
/// Tokens that the coordinator observes before it forecasts the others.
pub const OBSERVED_TOKENS: usize = 15;
const TEXT: &str = "Once upon a time there was a small kitchen in which everybody brought something to the table.";

/// The settings of all rooms.
#[derive(Clone, Debug, clap::Args)]
pub struct Settings {
    /// Tokens of an answer in all; after 15 of them the others are forecast
    #[arg(long, value_name = "N", default_value_t = 80)]
    pub tokens: u32,
    /// Part of the adapter's name; of several adapters with it each device gets another one
    #[arg(long, value_name = "NAME")]
    pub gpu: Option<String>,
    /// Folder where devices keep weights and measurements (default: a new temporary folder)
    #[arg(long, value_name = "FOLDER", default_value_os_t = new_cache(), hide_default_value = true)]
    pub cache: PathBuf,
}

fn new_cache() -> PathBuf {
    std::env::temp_dir().join(format!("potluck-measure-{}", std::process::id()))
}

/// The result of a room.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The plan before it ever ran.
    pub before: PlanReport,
    /// The plan at the end.
    pub after: PlanReport,
    /// The coordinator's forecast after the first tokens, and what it measured.
    pub forecast: ForecastView,
    /// What the answer took, with what was expected of its first token.
    pub timings: Timings,
    /// Round trips to the host, of each member.
    pub round_trips: Vec<f64>,
    /// Milliseconds between all tokens.
    pub gaps: Vec<f64>,
    /// The host's recording of the answer: when each token came back, and what each stage took.
    pub tokens: Vec<Token>,
}

/// A token in the host's recording.
#[derive(Clone, Debug)]
pub struct Token {
    /// When it was back, milliseconds on the host's clock.
    pub at: f64,
    /// Milliseconds of each stage's engine.
    pub stages: Vec<f64>,
}

impl Outcome {
    /// Mean milliseconds of the tokens that were forecast.
    pub fn measured(&self) -> f64 {
        let rest = self.gaps.get(OBSERVED_TOKENS..).unwrap_or_default();
        rest.iter().sum::<f64>() / rest.len().max(1) as f64
    }

    /// Another plan came while tokens were measured.
    pub fn moved(&self) -> bool {
        self.before.epoch != self.after.epoch
    }
}

/// Runs a configuration once.
///
/// # Errors
/// One sentence; the configuration counts as failed, it is not left out.
pub fn run(case: &Case, model: &Measured, settings: &Settings) -> Result<Outcome, String> {
    on_a_thread(in_room(case, model, settings, SETTLED))
}

/// Opens a room and waits until its devices have timed themselves; the times are stored in the cache.
///
/// # Errors
/// One sentence.
pub fn time(timing: &Timing, model: &Measured, settings: &Settings) -> Result<(), String> {
    let case = Case { configuration: timing.configuration, cut: Cut::Found, hidden: None };
    on_a_thread(in_room(&case, model, settings, timing.lasting)).map(drop)
}

fn on_a_thread(room: impl Future<Output = Result<Outcome, String>>) -> Result<Outcome, String> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
    let limited =
        async { tokio::time::timeout(TIMEOUT, room).await.unwrap_or_else(|_| Err("It took too long.".to_owned())) };
    let outcome = tokio::task::LocalSet::new().block_on(&runtime, limited);
    runtime.shutdown_background();
    outcome
}

async fn in_room(case: &Case, model: &Measured, settings: &Settings, settled: Duration) -> Result<Outcome, String> {
    let Case { configuration, cut, hidden } = *case;
    let (relay, _stop) = start_relay(&model.folder, &settings.cache)?;
    let mut origins = Vec::new();
    for device in configuration.devices {
        let address = forwarder::start(relay, line(configuration, device)).map_err(|error| error.to_string())?;
        origins.push(format!("http://{address}"));
    }
    let peer = |index: usize| Peer {
        index,
        settings: settings.clone(),
        hidden,
        device: DeviceOptions { slow: configuration.devices[index].slow, ..DeviceOptions::default() },
    };
    let budget = |index: usize| match cut {
        Cut::Found => model.budget(configuration.devices[index].room),
        Cut::Equal => model.equal_budget(index, configuration.devices.len()),
    };
    let mut host = Session::start(peer(0).setup(&origins[0]));
    host.page(ToNode::Host(HostChoice {
        model: ModelSource::Relay { name: model.name.clone() },
        budget: budget(0),
        context: CONTEXT,
        cache: None,
        arithmetic: Default::default(),
        sharing: configuration.share,
        ends: Default::default(),
        visible: false,
        resume: None,
        doors: Default::default(),
        protect: false,
        guesser: Default::default(),
        pooling: Default::default(),
        deputy: Default::default(),
        term: Default::default(),
    }));
    let link = host.link().await?;
    let joiners: Vec<Joiner> = (1..configuration.devices.len())
        .map(|index| Joiner::start(format!("{}{link}", origins[index]), peer(index), budget(index)))
        .collect();
    settle(&mut host, configuration.devices.len(), settled).await?;
    let outcome = answer(&mut host, settings.tokens).await;
    joiners.into_iter().for_each(Joiner::stop);
    outcome
}

fn line(configuration: &Configuration, device: &Device) -> Line {
    let millis = configuration.one_way_ms / 2.0 + device.far_ms;
    Line { delay: Duration::from_secs_f64(millis / 1e3), rate: device.rate }
}

/// Waits until everyone contributes and the plan has been up and the same for a while.
async fn settle(host: &mut Session, devices: usize, settled: Duration) -> Result<(), String> {
    let mut since: Option<(potluck_plan::PlanEpoch, Instant)> = None;
    loop {
        let status = &host.status;
        let plan = status.plan.as_ref().filter(|plan| plan.state == PlanStatus::Up && contributing(status) == devices);
        since = plan.map(|plan| match since {
            Some((epoch, at)) if epoch == plan.epoch => (epoch, at),
            _ => (plan.epoch, Instant::now()),
        });
        if since.is_some_and(|(_, at)| at.elapsed() >= settled) {
            return Ok(());
        }
        if let Ok(message) = tokio::time::timeout(Duration::from_millis(200), host.next()).await {
            message?;
        }
    }
}

fn contributing(status: &Status) -> usize {
    status.peers.iter().filter(|member| member.lent.is_some()).count()
}

async fn answer(host: &mut Session, tokens: u32) -> Result<Outcome, String> {
    let plan = |host: &Session| host.status.plan.clone().ok_or_else(|| "There is no plan.".to_owned());
    type_prompt(host).await?;
    let before = plan(host)?;
    let (gaps, forecast, timings) = ask(host, RequestId(1), tokens.max(OBSERVED_TOKENS as u32 + 2)).await?;
    listen(host, SNAPSHOT_AGE).await?;
    let after = plan(host)?;
    let round_trips = host.status.peers.iter().map(|member| member.round_trip_ms).collect();
    // If the plan changed since, the forecast of the first plan counts.
    let forecast = after
        .forecast
        .or(forecast)
        .ok_or("There is no forecast: the plan changed too early, or experts are elsewhere.")?;
    let tokens = recorded_tokens(host).await?;
    Ok(Outcome { before, after, forecast, timings, round_trips, gaps, tokens })
}

/// Types a prompt for as long as a person does at least, and says so as the page does.
async fn type_prompt(host: &mut Session) -> Result<(), String> {
    for _ in 0..TYPING_SECONDS {
        host.page(ToNode::Writing);
        listen(host, Duration::from_secs(1)).await?;
    }
    Ok(())
}

/// The tokens in the host's recording.
async fn recorded_tokens(host: &mut Session) -> Result<Vec<Token>, String> {
    let token = |line: recording::Line| match line.fact {
        Some(Fact::Picked { stage_millis, .. }) => Some(Token { at: line.at, stages: stage_millis }),
        _ => None,
    };
    Ok(recorded(host).await?.into_iter().filter_map(token).collect())
}

/// Handles the host's messages for a while.
async fn listen(host: &mut Session, millis: Duration) -> Result<(), String> {
    let until = Instant::now() + millis;
    while let Some(left) = until.checked_duration_since(Instant::now()) {
        if let Ok(message) = tokio::time::timeout(left, host.next()).await {
            message?;
        }
    }
    Ok(())
}

/// Asks for `tokens` tokens, each in a message of its own. Returns the milliseconds between them, the forecast and the timings.
async fn ask(
    host: &mut Session,
    request: RequestId,
    tokens: u32,
) -> Result<(Vec<f64>, Option<ForecastView>, Timings), String> {
    host.page(ToNode::Prompt(PromptRequest {
        request,
        conversation: format!("measure {}", request.0),
        messages: vec![Message::new(Role::User, TEXT.to_owned())],
        raw: true,
        max_tokens: tokens,
        // Not greedy: neither tokens ahead nor drafts, so that every token is one pass through the plan.
        sampling: Sampling { temperature: 2.0, top_k: 0, top_p: 1.0, min_p: 0.0, seed: 1, ..Sampling::default() },
        reasoning: None,
        tools: ToolOffer::default(),
        logits: LogitOptions::default(),
    }));
    let (mut last, mut gaps, mut forecast) = (None, Vec::new(), None);
    loop {
        let message = host.next().await?;
        forecast = host.status.plan.as_ref().and_then(|plan| plan.forecast).or(forecast);
        let ToPage::Answer { event, .. } = message else { continue };
        match event {
            AnswerPart::Text { tokens, .. } => {
                let now = Instant::now();
                if let Some(last) = last.replace(now) {
                    // A token that is no whole character comes with the next one.
                    let millis = now.duration_since(last).as_secs_f64() * 1e3 / tokens.len().max(1) as f64;
                    gaps.extend(tokens.iter().map(|_| millis));
                }
            }
            AnswerPart::End { stop: AnswerStop::Failed(sentence) | AnswerStop::Refused(sentence), .. } => {
                return Err(sentence);
            }
            AnswerPart::End { .. } if gaps.len() + 1 < tokens as usize => {
                return Err(format!("The answer has only {} tokens.", gaps.len() + 1));
            }
            AnswerPart::End { timings, .. } => return Ok((gaps, forecast, timings)),
            _ => {}
        }
    }
}

/// What a peer is started with, on whichever thread.
struct Peer {
    index: usize,
    settings: Settings,
    hidden: Option<Measure>,
    device: DeviceOptions,
}

impl Peer {
    /// Must be called where it starts.
    fn setup(&self, relay: &str) -> Setup {
        let network = Network { relay: relay.to_owned(), ..Network::default() };
        // One folder for all: they share the GPU, so one at a time is timed, and one of each speed is enough.
        let mut setup = Setup::in_folder(&network, &self.settings.cache);
        setup.name = format!("device {}", self.index);
        setup.node.gpu.adapter_name.clone_from(&self.settings.gpu);
        setup.node.gpu.adapter_index = self.index;
        if let Some(hidden) = self.hidden {
            setup.node.peer_setup = Some(Rc::new(move |peer| peer.with_planner_view(hidden.view())));
        }
        Setup { platform: self.device.adapt(setup.platform), ..setup }
    }
}

/// A peer on a thread of its own, as a program of its own would be.
struct Joiner {
    stop: oneshot::Sender<()>,
    thread: thread::JoinHandle<()>,
}

impl Joiner {
    fn start(link: String, peer: Peer, budget: u64) -> Self {
        let (stop, stopped) = oneshot::channel();
        let thread = thread::spawn(move || {
            let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
            let tasks = tokio::task::LocalSet::new();
            tasks.block_on(&runtime, async {
                let Ok(RoomLink { relay, room, key, .. }) = link.parse() else { return };
                let mut session = Session::start(peer.setup(&relay));
                session.page(ToNode::Join { room, key });
                session.page(ToNode::Contribute(ContributeChoice { budget }));
                let stay = async { while let Ok(_message) = session.next().await {} };
                tokio::select! { () = stay => {}, _ = stopped => {} }
            });
            runtime.shutdown_background();
        });
        Self { stop, thread }
    }

    fn stop(self) {
        // A joiner that has ended already does not listen.
        let _ = self.stop.send(());
        let _ = self.thread.join();
    }
}

/// A relay on a thread of its own; it ends when the sender is dropped.
fn start_relay(models: &Path, cache: &Path) -> Result<(SocketAddr, oneshot::Sender<()>), String> {
    let config = Config {
        ip: Ipv4Addr::LOCALHOST.into(),
        port: 0,
        page: None,
        models: vec![models.to_path_buf()],
        origin: Default::default(),
        cache: cache.join("relay"),
        identity: None,
        machine: Default::default(),
        hosts: Vec::new(),
        proxies: Default::default(),
        peers: Vec::new(),
        access: Default::default(),
        public_metrics: false,
        limits: Limits::default(),
    };
    let (stop, stopped) = oneshot::channel::<()>();
    let (started, address) = std::sync::mpsc::channel();
    thread::spawn(move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
        runtime.block_on(async {
            match Relay::start(config).await {
                Ok(relay) => {
                    // The measuring thread waits for this.
                    let _ = started.send(Ok(relay.address()));
                    let _ = relay.run(async { drop(stopped.await) }).await;
                }
                Err(error) => drop(started.send(Err(error.to_string()))),
            }
        });
    });
    let address = address.recv().map_err(|_| "The relay did not start.".to_owned())??;
    Ok((address, stop))
}
