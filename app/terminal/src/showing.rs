//! How far a load and a prompt are, on standard error.

use std::time::Duration;

use potluck_panel::LoadReport;
use potluck_text::{loading_line, texts};

use crate::output::{Progress, progress};

/// A prompt of fewer tokens is read before anybody wonders.
const SHORT_PROMPT: u32 = 256;

/// Shows how far a load is.
pub(crate) fn show_loading(loading: &LoadReport) {
    progress(&load_progress(loading));
}

fn load_progress(loading: &LoadReport) -> Progress<'static> {
    let share = (loading.total.0 > 0).then(|| loading.done.0 as f64 / loading.total.0 as f64);
    let line = loading_line(loading);
    let line = share.map_or_else(|| line.clone(), |share| format!("{:>3.0}% {line}", 100.0 * share.min(1.0)));
    Progress { step: texts().phase.of(loading.phase), share, line }
}

/// Shows how many tokens of a prompt are read.
pub(crate) fn show_reading(done: u32, all: u32, since: Duration) {
    if all < SHORT_PROMPT {
        return;
    }
    let (terminal, seconds) = (&texts().terminal, since.as_secs_f64());
    let line = match done {
        0 => terminal.reading(done, all),
        _ => terminal.reading_at(done, all, f64::from(done) / seconds.max(1e-3)),
    };
    let share = f64::from(done) / f64::from(all.max(1));
    progress(&Progress { step: "reading", share: Some(share), line: format!("{:>3.0}% {line}", 100.0 * share) });
}

#[cfg(test)]
mod tests {
    use potluck_panel::{Bytes, LoadPhase};

    use super::*;

    #[test]
    fn a_download_shows_percent_bytes_rate_and_time() {
        let (done, total) = (Bytes(410_000_000), Bytes(1_200_000_000));
        let loading = LoadReport { done, total, rate: 12e6, ..LoadReport::begin(LoadPhase::Download) };
        assert_eq!(load_progress(&loading).line, " 34% Downloading: 410 MB of 1.2 GB · 12 MB/s · about 66 s left");
        assert_eq!(load_progress(&LoadReport::begin(LoadPhase::Kernels)).line, "Preparing kernels");
    }
}
