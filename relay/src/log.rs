//! The log: standard error, warnings only unless more is asked for.
//!
//! No event names a room, a key or a client. Files of models, this machine's own names and addresses, and faults of the system may
//! stand there.

use std::io::IsTerminal;

use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::options::LogFormat;

/// Starts the log. Without a level, the filter of the environment variable `RUST_LOG` counts.
pub fn start(level: Option<LevelFilter>, format: LogFormat) {
    let filter = level
        // Of libraries, what goes wrong is enough; RUST_LOG can ask for more.
        .map(|level| Targets::new().with_default(level.min(LevelFilter::WARN)).with_target("potluck_relay", level))
        .or_else(of_environment)
        .unwrap_or_else(|| Targets::new().with_default(LevelFilter::WARN));
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false);
    let lines = match format {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    // It fails only if there is a log already.
    let _ = tracing_subscriber::registry().with(lines).with(filter).try_init();
}

fn of_environment() -> Option<Targets> {
    let text = std::env::var("RUST_LOG").ok().filter(|text| !text.is_empty())?;
    text.parse().inspect_err(|error| eprintln!("potluck-relay: RUST_LOG is not a filter: {error}")).ok()
}
