//! One room: relay, lines, peers, one answer, and when each of its tokens came.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use potluck_node::native::cli::{Options, Session, parse_link};
use potluck_panel::{
    AnswerEnd, AnswerEvent, ContributeChoice, HostChoice, Message, ModelSource, PlanReport, PlanState, Prompt,
    RequestId, Role, SamplingChoice, Status, ToNode, ToPage,
};
use potluck_relay::limits::Limits;
use potluck_relay::{Config, Relay};
use tokio::sync::oneshot;

use crate::configurations::{Configuration, Cut};
use crate::forwarder;
use crate::model::{CONTEXT, Measured};

/// A room that is not up, or an answer that is not complete by then, has failed.
const PATIENCE: Duration = Duration::from_secs(300);
/// The plan has not changed for so long: everyone is in.
const SETTLED: Duration = Duration::from_millis(2_500);
/// The same for the room in which devices time themselves.
const TIMED: Duration = Duration::from_secs(40);
/// After the tokens that are measured the host says anew what it expects.
const TOLD: Duration = Duration::from_millis(1_600);
/// Tokens whose measures may help to predict the others.
const WARM_UP: usize = 15;
const TEXT: &str = "Once upon a time there was a small kitchen in which everybody brought something to the table.";

/// What all rooms share.
pub struct Settings {
    /// Tokens of an answer.
    pub tokens: u32,
    /// Part of the adapter's name.
    pub gpu: Option<String>,
    /// Devices keep weights and measurements here.
    pub cache: PathBuf,
}

/// What came of a room.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The plan before it ever ran.
    pub before: PlanReport,
    /// The plan after the warm-up, with what was measured.
    pub running: PlanReport,
    /// The plan at the end.
    pub after: PlanReport,
    /// Round trips to the host, of each member.
    pub round_trips: Vec<f64>,
    /// Milliseconds between tokens after the warm-up.
    pub gaps: Vec<f64>,
}

impl Outcome {
    /// Mean milliseconds of the tokens after the warm-up.
    pub fn measured(&self) -> f64 {
        self.gaps.iter().sum::<f64>() / self.gaps.len().max(1) as f64
    }

    /// Another plan came while tokens were measured.
    pub fn moved(&self) -> bool {
        self.running.epoch != self.after.epoch
    }
}

/// Runs a configuration once.
///
/// # Errors
/// One sentence; the configuration counts as failed, it is not left out.
pub fn run(configuration: &Configuration, cut: Cut, model: &Measured, settings: &Settings) -> Result<Outcome, String> {
    on_a_thread(in_room(configuration, cut, model, settings, SETTLED))
}

/// Opens a room and waits until its devices have timed themselves; what they found is kept in the cache.
///
/// # Errors
/// One sentence.
pub fn time(configuration: &Configuration, model: &Measured, settings: &Settings) -> Result<(), String> {
    on_a_thread(in_room(configuration, Cut::Found, model, settings, TIMED)).map(drop)
}

fn on_a_thread(room: impl Future<Output = Result<Outcome, String>>) -> Result<Outcome, String> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
    let limited =
        async { tokio::time::timeout(PATIENCE, room).await.unwrap_or_else(|_| Err("It took too long.".to_owned())) };
    let outcome = tokio::task::LocalSet::new().block_on(&runtime, limited);
    runtime.shutdown_background();
    outcome
}

async fn in_room(
    configuration: &Configuration,
    cut: Cut,
    model: &Measured,
    settings: &Settings,
    settled: Duration,
) -> Result<Outcome, String> {
    let (relay, _stop) = start_relay(&model.folder, &settings.cache)?;
    let line = || forwarder::start(relay, Duration::from_secs_f64(configuration.one_way_ms / 2e3));
    let mut origins = Vec::new();
    for _ in configuration.devices {
        origins.push(format!("http://{}", line().map_err(|error| error.to_string())?));
    }
    let options = |index: usize| Options {
        name: format!("device {index}"),
        // One folder for all: they share the GPU, so one at a time is timed, and one of each speed is enough.
        cache: Some(settings.cache.clone()),
        gpu: settings.gpu.clone(),
        gpu_index: index,
        slow: configuration.devices[index].slow,
        ..Options::default()
    };
    let budget = |index: usize| match cut {
        Cut::Found => model.budget(configuration.devices[index].room),
        Cut::Equal => model.equal_budget(index, configuration.devices.len()),
    };
    let mut host = Session::start(&origins[0], &options(0));
    host.page(ToNode::Host(HostChoice {
        model: ModelSource::Relay { name: model.name.clone() },
        budget: budget(0),
        context: CONTEXT,
        cache: None,
        share: configuration.share,
        visible: false,
        resume: None,
    }));
    let link = host.link().await?;
    let joiners: Vec<Joiner> = (1..configuration.devices.len())
        .map(|index| Joiner::start(format!("{}{link}", origins[index]), options(index), budget(index)))
        .collect();
    settle(&mut host, configuration.devices.len(), settled).await?;
    let outcome = answer(&mut host, settings.tokens).await;
    joiners.into_iter().for_each(Joiner::stop);
    outcome
}

/// Waits until everyone lends and the plan has been up and the same for a while.
async fn settle(host: &mut Session, devices: usize, settled: Duration) -> Result<(), String> {
    let mut since: Option<(u32, Instant)> = None;
    loop {
        let status = &host.status;
        let plan = status.plan.as_ref().filter(|plan| plan.state == PlanState::Up && lending(status) == devices);
        since = plan.map(|plan| match since {
            Some((epoch, at)) if epoch == plan.epoch => (epoch, at),
            _ => (plan.epoch, Instant::now()),
        });
        if since.is_some_and(|(_, at)| at.elapsed() >= settled) {
            return Ok(());
        }
        if let Ok(told) = tokio::time::timeout(Duration::from_millis(200), host.next()).await {
            told?;
        }
    }
}

fn lending(status: &Status) -> usize {
    status.peers.iter().filter(|member| member.lent > 0).count()
}

async fn answer(host: &mut Session, tokens: u32) -> Result<Outcome, String> {
    let plan = |host: &Session| host.status.plan.clone().ok_or_else(|| "There is no plan.".to_owned());
    let before = plan(host)?;
    ask(host, RequestId(1), WARM_UP as u32 + 1).await?;
    listen(host, TOLD).await?;
    let running = plan(host)?;
    let round_trips = host.status.peers.iter().filter_map(|member| Some(member.link?.round_trip_ms)).collect();
    let gaps = ask(host, RequestId(2), tokens.saturating_sub(WARM_UP as u32).max(2)).await?;
    let after = plan(host)?;
    Ok(Outcome { before, running, after, round_trips, gaps })
}

/// Hears what the host tells for a while.
async fn listen(host: &mut Session, millis: Duration) -> Result<(), String> {
    let until = Instant::now() + millis;
    while let Some(left) = until.checked_duration_since(Instant::now()) {
        if let Ok(told) = tokio::time::timeout(left, host.next()).await {
            told?;
        }
    }
    Ok(())
}

/// Asks for so many tokens, each in a message of its own; milliseconds between them.
async fn ask(host: &mut Session, request: RequestId, tokens: u32) -> Result<Vec<f64>, String> {
    host.page(ToNode::Prompt(Prompt {
        request,
        conversation: format!("measure {}", request.0),
        messages: vec![Message { role: Role::User, content: TEXT.to_owned() }],
        raw: true,
        max_tokens: tokens,
        // Not greedy: neither tokens ahead nor drafts, so that every token is one pass through the plan.
        sampling: SamplingChoice {
            temperature: 2.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            seed: 1,
            ..SamplingChoice::default()
        },
    }));
    let (mut last, mut gaps) = (None, Vec::new());
    loop {
        let ToPage::Answer { event, .. } = host.next().await? else { continue };
        match event {
            AnswerEvent::Text { tokens, .. } => {
                let now = Instant::now();
                if let Some(last) = last.replace(now) {
                    // A token that is no whole character comes with the next one.
                    let millis = now.duration_since(last).as_secs_f64() * 1e3 / tokens.len().max(1) as f64;
                    gaps.extend(tokens.iter().map(|_| millis));
                }
            }
            AnswerEvent::End { end: AnswerEnd::Failed(sentence), .. } => return Err(sentence),
            AnswerEvent::End { .. } if gaps.len() + 1 < tokens as usize => {
                return Err(format!("The answer has only {} tokens.", gaps.len() + 1));
            }
            AnswerEvent::End { .. } => return Ok(gaps),
            _ => {}
        }
    }
}

/// A peer on a thread of its own, as a program of its own would be.
struct Joiner {
    stop: oneshot::Sender<()>,
    thread: thread::JoinHandle<()>,
}

impl Joiner {
    fn start(link: String, options: Options, budget: u64) -> Self {
        let (stop, stopped) = oneshot::channel();
        let thread = thread::spawn(move || {
            let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
            let tasks = tokio::task::LocalSet::new();
            tasks.block_on(&runtime, async {
                let Some((origin, room, key)) = parse_link(&link) else { return };
                let mut session = Session::start(&origin, &options);
                session.page(ToNode::Join { room, key });
                session.page(ToNode::Contribute(ContributeChoice { budget }));
                let stay = async { while let Ok(_told) = session.next().await {} };
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
        ip: Ipv4Addr::LOCALHOST,
        port: 0,
        page: None,
        models: vec![models.to_path_buf()],
        cache: cache.join("relay"),
        identity: None,
        addresses: Vec::new(),
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
