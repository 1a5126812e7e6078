//! Loading progress in one line: phase, bytes, rate, time left.

use potluck_panel::LoadReport;

use crate::{rate, texts};

/// "about 40 s left", "about 3 min left", "almost done".
#[must_use]
pub fn seconds_left(seconds: f64) -> String {
    if !seconds.is_finite() || seconds < 0.0 {
        String::new()
    } else if seconds < 2.0 {
        texts().progress.almost_done().into()
    } else if seconds < 90.0 {
        texts().progress.seconds(seconds)
    } else if seconds < 5400.0 {
        texts().progress.minutes(seconds / 60.0)
    } else {
        texts().progress.hours(seconds / 3600.0)
    }
}

/// "Downloading: 410 MB of 1.2 GB · 12 MB/s · about 1 min left · already here: 120 MB".
#[must_use]
pub fn loading_line(loading: &LoadReport) -> String {
    let phase = texts().phase.of(loading.phase);
    let (done, total, cached) = (loading.done.0, loading.total.0, loading.cached.0);
    let mut line = if total > 0 { texts().progress.bytes(phase, done, total) } else { phase.to_owned() };
    if loading.waits > 0 {
        // A rate would be that of a time without bytes.
        line.push_str(&format!(" · {}", texts().progress.server_waits(loading.waits)));
        return line;
    }
    if loading.rate >= 1.0 && done < total {
        line.push_str(&format!(" · {}", rate(loading.rate)));
    }
    let left = loading.seconds_left().map(seconds_left).unwrap_or_default();
    if !left.is_empty() {
        line.push_str(&format!(" · {left}"));
    }
    if cached > 0 {
        // No percentage: a bar beside it shows another one.
        line.push_str(&format!(" · {}", texts().progress.cached(cached)));
    }
    line
}

#[cfg(test)]
mod tests {
    use potluck_panel::{Bytes, LoadPhase};

    use super::*;

    fn loading() -> LoadReport {
        LoadReport {
            phase: LoadPhase::Download,
            done: Bytes(410_000_000),
            total: Bytes(1_200_000_000),
            rate: 12_000_000.0,
            cached: Bytes(0),
            waits: 0,
        }
    }

    #[test]
    fn a_download_shows_bytes_rate_and_time() {
        assert_eq!(loading_line(&loading()), "Downloading: 410 MB of 1.2 GB · 12 MB/s · about 66 s left");
    }

    #[test]
    fn a_wait_is_told_instead_of_a_rate() {
        let waiting = LoadReport { waits: 42, ..loading() };
        assert_eq!(loading_line(&waiting), "Downloading: 410 MB of 1.2 GB · server busy, next try in 42 s");
    }

    #[test]
    fn the_share_that_was_here_already_is_shown() {
        let here = LoadReport { cached: Bytes(1_008_000_000), ..loading() };
        assert!(loading_line(&here).ends_with("already here: 1 GB"), "{}", loading_line(&here));
    }

    #[test]
    fn a_phase_without_bytes_is_just_its_name() {
        assert_eq!(loading_line(&LoadReport::begin(LoadPhase::Kernels)), "Preparing kernels");
    }

    #[test]
    fn time_left_is_coarse_when_it_is_long() {
        assert_eq!(seconds_left(1.0), "almost done");
        assert_eq!(seconds_left(600.0), "about 10 min left");
        assert_eq!(seconds_left(f64::INFINITY), "");
    }
}
