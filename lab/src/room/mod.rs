//! `lab room`: rooms of native peers that are measured. Each verb has all options of `potluck-node`'s, and those with which only
//! measurements change something.

pub mod asking;
mod holder_changes;
mod options;
pub mod recording;
mod report;
mod rounds;
mod served;

use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use clap::Subcommand;
use potluck_panel::PromptRequest;
use potluck_terminal::{HostOptions, JoinOptions, RunOptions, Session, Setup};

use self::options::{HintArguments, RecallOptions, RoundOptions, TierOption};
use self::rounds::{Pause, Rounds};
use self::served::Served;
use crate::device::DeviceOptions;

/// Lines of the recording of a whole round.
const RECORDED: usize = 200_000;

/// How often a device that holds experts looks whether a round is over.
const LOOK: Duration = Duration::from_millis(100);

/// How to take part in what is measured.
#[derive(Debug, Subcommand)]
pub enum Room {
    /// Ask one device without a network in rounds
    Alone(Box<Alone>),
    /// Open a room and ask in rounds
    Host(Box<Host>),
    /// Enter a room: ask in rounds, or print what others' rounds cost this device
    Join(Box<Join>),
}

/// Options of `lab room alone`.
#[derive(Debug, clap::Args)]
pub struct Alone {
    #[command(flatten)]
    run: RunOptions,
    #[command(flatten)]
    rounds: RoundOptions,
    #[command(flatten)]
    recall: RecallOptions,
    #[command(flatten)]
    tier: TierOption,
    #[command(flatten)]
    device: DeviceOptions,
}

/// Options of `lab room host`.
#[derive(Debug, clap::Args)]
pub struct Host {
    #[command(flatten)]
    host: HostOptions,
    #[command(flatten)]
    rounds: RoundOptions,
    #[command(flatten)]
    hints: HintArguments,
    #[command(flatten)]
    recall: RecallOptions,
    #[command(flatten)]
    tier: TierOption,
    #[command(flatten)]
    device: DeviceOptions,
}

/// Options of `lab room join`.
#[derive(Debug, clap::Args)]
pub struct Join {
    #[command(flatten)]
    join: JoinOptions,
    #[command(flatten)]
    rounds: RoundOptions,
    #[command(flatten)]
    tier: TierOption,
    #[command(flatten)]
    device: DeviceOptions,
}

/// Takes part.
///
/// # Errors
/// A sentence on what failed.
pub fn run(room: Room) -> Result<()> {
    let done = match room {
        Room::Alone(options) => potluck_terminal::in_tasks(async move { alone(&options).await }),
        Room::Host(options) => potluck_terminal::in_tasks(async move { host(&options).await }),
        Room::Join(options) => potluck_terminal::in_tasks(async move { join(&options).await }),
    };
    done.map_err(|sentence| anyhow!(sentence))
}

async fn alone(options: &Alone) -> Result<(), String> {
    let Some(question) = options.run.answer.question() else {
        return Err("A room is measured by a question: --prompt TEXT.".to_owned());
    };
    let mut setup = options.run.setup()?;
    options.recall.apply_to_own(&mut setup);
    let mut session = start(setup, &options.device, &options.tier);
    options.run.open(&mut session).await?;
    Rounds { options: &options.rounds, recall: &options.recall, pause: Pause::Reported }
        .ask(&mut session, &question)
        .await
}

async fn host(options: &Host) -> Result<(), String> {
    let mut setup = options.host.setup()?;
    options.hints.apply(&mut setup);
    options.recall.apply_to_hints(&mut setup);
    let mut session = start(setup, &options.device, &options.tier);
    options.host.open(&mut session).await?;
    let pause = if options.host.pooling.on_demand { Pause::Served } else { Pause::Reported };
    let rounds = Rounds { options: &options.rounds, recall: &options.recall, pause };
    take_part(&mut session, options.host.answer.question(), &rounds).await
}

async fn join(options: &Join) -> Result<(), String> {
    let setup = options.join.setup()?;
    let mut session = start(setup, &options.device, &options.tier);
    options.join.enter(&mut session)?;
    let recall = RecallOptions::default();
    let rounds = Rounds { options: &options.rounds, recall: &recall, pause: Pause::Reported };
    take_part(&mut session, options.join.answer.question(), &rounds).await
}

fn start(mut setup: Setup, device: &DeviceOptions, tier: &TierOption) -> Session {
    setup.platform = device.adapt(setup.platform);
    setup.node.gpu.tier = tier.tier;
    setup.node.peer_setup = Some(Rc::new(|peer| peer.with_trace(RECORDED)));
    Session::start(setup)
}

/// Asks in rounds and leaves, or serves others until Ctrl-C.
async fn take_part(session: &mut Session, question: Option<PromptRequest>, rounds: &Rounds<'_>) -> Result<(), String> {
    if let Some(question) = question {
        rounds.until_ready(session).await?;
        rounds.ask(session, &question).await?;
        session.leave().await;
        return Ok(());
    }
    let mut served = Served::default();
    let mut look = tokio::time::interval(LOOK);
    loop {
        tokio::select! {
            message = session.next() => drop(message?),
            _ = look.tick() => {
                if let Some(line) = session.status.on_demand.and_then(|report| served.round(report, Instant::now())) {
                    println!("{line}");
                }
            }
            _ = tokio::signal::ctrl_c() => {
                if let Some(report) = session.status.on_demand {
                    eprintln!("{}", serde_json::to_string(&report).map_err(|error| error.to_string())?);
                }
                session.leave().await;
                return Ok(());
            }
        }
    }
}
