//! The log of a program, on its standard error.

use std::str::FromStr;

use log::{LevelFilter, Log, Metadata, Record};

use crate::output::say;

/// The variable that says how much is logged: `error`, `warn`, `info`, `debug` or `trace`. Without it nothing is.
const VARIABLE: &str = "POTLUCK_LOG";

struct StderrLog;

impl Log for StderrLog {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("potluck")
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            say(format!("{}: {}", record.level().as_str().to_lowercase(), record.args()));
        }
    }

    fn flush(&self) {}
}

/// Logs as much as `POTLUCK_LOG` says.
pub(crate) fn log_to_stderr() {
    let level = std::env::var(VARIABLE).ok().and_then(|level| LevelFilter::from_str(&level).ok());
    let Some(level) = level else { return };
    // A program that has another log keeps it.
    if log::set_logger(&StderrLog).is_ok() {
        log::set_max_level(level);
    }
}
