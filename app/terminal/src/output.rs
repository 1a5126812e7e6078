//! Everything that the program prints. Nothing else writes to standard output or standard error, so nothing panics where a pipe is
//! closed or a disk is full, and peers' text reaches a terminal only as [`Printable`].

use std::ffi::OsString;
use std::io::{ErrorKind, IsTerminal, Write, stderr, stdout};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use potluck_text::texts;

use crate::failure::Failure;
use crate::printable::Printable;

/// Least time between two updates of a line on a terminal.
const REWRITE: Duration = Duration::from_millis(100);
/// A file or a pipe gets a line for each tenth of the way, at least this long after the last one.
const SOON: Duration = Duration::from_secs(1);
/// It also gets a line after this long without one.
const LATE: Duration = Duration::from_secs(5);
/// Longer lines would wrap, and a wrapped line cannot be rewritten.
const COLUMNS: usize = 79;

/// The variable of those who want no colours, nor dimmed text.
const NO_COLOR: &str = "NO_COLOR";

static PROGRESS: Mutex<ProgressLine> =
    Mutex::new(ProgressLine { step: String::new(), shown: None, is_open: false, is_aside: false });

/// How far something is, as it was printed last.
struct ProgressLine {
    /// What was under way.
    step: String,
    /// What was printed of it: which tenth, the line, and when.
    shown: Option<(u8, String, Instant)>,
    /// The line on the terminal has no end yet.
    is_open: bool,
    /// That line is text of a model, not progress.
    is_aside: bool,
}

/// How far a step is.
pub(crate) struct Progress<'a> {
    /// The step. Another one always gets a line.
    pub step: &'a str,
    /// Of the whole, from 0 to 1, where that is known.
    pub share: Option<f64>,
    /// The whole line.
    pub line: String,
}

/// True if standard output and standard error are both read on a terminal.
pub(crate) fn is_terminal() -> bool {
    stdout().is_terminal() && stderr().is_terminal()
}

/// Prints to standard output, at once.
///
/// # Errors
/// Nobody reads it any more, or it cannot be written.
pub(crate) fn print(text: &Printable) -> Result<(), Failure> {
    write_out(&text.to_string())
}

/// Prints text of an answer to standard output at once: to a terminal without control characters, elsewhere byte for byte.
///
/// # Errors
/// Nobody reads it any more, or it cannot be written.
pub(crate) fn print_answer(text: &str) -> Result<(), Failure> {
    write_out(&Printable::answer(text, stdout().is_terminal()))
}

fn write_out(text: &str) -> Result<(), Failure> {
    end_progress();
    let mut out = stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => Failure::OutputClosed,
        _ => Failure::Failed(texts().terminal.cannot_write(error.to_string())),
    })
}

/// Prints a line to standard error. If nobody reads it, nobody misses it.
pub(crate) fn say(line: impl Into<Printable>) {
    end_progress();
    let line = line.into();
    _ = writeln!(stderr().lock(), "{line}");
}

/// Prints a mark to standard error, behind which a person types.
pub(crate) fn ask_for(mark: &'static str) {
    end_progress();
    let mut out = stderr().lock();
    _ = write!(out, "{mark}").and_then(|()| out.flush());
}

/// Prints text of a model that is not part of its answer to standard error, dimmed on a terminal.
pub(crate) fn aside(text: &Printable) {
    if text.is_empty() {
        return;
    }
    let mut line = PROGRESS.lock().unwrap_or_else(PoisonError::into_inner);
    if !line.is_aside {
        line.end();
    }
    (line.is_open, line.is_aside) = (true, true);
    let is_plain = !stderr().is_terminal() || wants_no_color(std::env::var_os(NO_COLOR));
    let (dim, plain) = if is_plain { ("", "") } else { ("\x1b[2m", "\x1b[0m") };
    let mut out = stderr().lock();
    _ = write!(out, "{dim}{text}{plain}").and_then(|()| out.flush());
}

/// True if the variable is set to anything, as <https://no-color.org> asks.
fn wants_no_color(variable: Option<OsString>) -> bool {
    variable.is_some_and(|value| !value.is_empty())
}

/// Shows on standard error how far a step is: on a terminal in one line that changes, elsewhere in a line now and then.
pub(crate) fn progress(progress: &Progress<'_>) {
    let mut line = PROGRESS.lock().unwrap_or_else(PoisonError::into_inner);
    let is_terminal = stderr().is_terminal();
    if !line.is_due(progress, is_terminal, Instant::now()) {
        return;
    }
    if line.is_aside {
        line.end();
    }
    let mut out = stderr().lock();
    if is_terminal {
        let text = Printable::line(&progress.line).cut(COLUMNS);
        _ = write!(out, "\r{text}\x1b[K").and_then(|()| out.flush());
        line.is_open = true;
    } else {
        _ = writeln!(out, "{}", Printable::line(&progress.line));
    }
}

/// What follows begins on a line of its own.
pub(crate) fn end_progress() {
    PROGRESS.lock().unwrap_or_else(PoisonError::into_inner).end();
}

impl ProgressLine {
    fn end(&mut self) {
        self.is_aside = false;
        if std::mem::take(&mut self.is_open) {
            _ = writeln!(stderr().lock());
        }
    }

    /// Whether a line is printed now, which then counts as printed.
    fn is_due(&mut self, progress: &Progress<'_>, is_terminal: bool, now: Instant) -> bool {
        let tenth = (progress.share.unwrap_or(0.0).clamp(0.0, 1.0) * 10.0) as u8;
        let is_new = self.step != progress.step;
        let is_due = match &self.shown {
            _ if is_new => true,
            Some((_, line, _)) if *line == progress.line => false,
            Some((before, _, at)) => {
                let since = now.saturating_duration_since(*at);
                match is_terminal {
                    true => since >= REWRITE || tenth == 10,
                    false => since >= LATE || (tenth > *before && since >= SOON) || (tenth == 10 && *before < 10),
                }
            }
            None => true,
        };
        if is_due {
            progress.step.clone_into(&mut self.step);
            self.shown = Some((tenth, progress.line.clone(), now));
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> ProgressLine {
        ProgressLine { step: String::new(), shown: None, is_open: false, is_aside: false }
    }

    /// Which of these a minute of a download prints, with a report four times a second.
    fn printed(is_terminal: bool) -> usize {
        let (mut line, begin) = (line(), Instant::now());
        let due = |quarter: u32| {
            let (share, at) = (f64::from(quarter) / 240.0, begin + Duration::from_millis(250) * quarter);
            let text = format!("{:.1} %", share * 100.0);
            line.is_due(&Progress { step: "Downloading", share: Some(share), line: text }, is_terminal, at)
        };
        (0..=240).map(due).filter(|due| *due).count()
    }

    #[test]
    fn a_terminal_shows_every_report_and_a_file_has_a_line_every_few_seconds() {
        assert_eq!(printed(true), 241);
        assert!((11..=25).contains(&printed(false)), "{}", printed(false));
    }

    #[test]
    fn text_is_dimmed_unless_the_variable_says_otherwise() {
        let given = [None, Some(""), Some("1"), Some("0")].map(|value| wants_no_color(value.map(OsString::from)));
        assert_eq!(given, [false, false, true, true]);
    }

    #[test]
    fn another_step_gets_a_line_and_the_same_line_none() {
        let (mut line, now) = (line(), Instant::now());
        let mut due = |step, text: &str| line.is_due(&Progress { step, share: None, line: text.into() }, false, now);
        assert!(due("Finding the parts", "Finding the parts"));
        assert!(!due("Finding the parts", "Finding the parts"));
        assert!(due("Downloading", "Downloading"));
        assert!(!due("Downloading", "Downloading 1 MB"), "too soon");
    }
}
