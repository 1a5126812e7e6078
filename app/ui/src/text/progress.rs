//! Loading progress in one line: phase, bytes, rate, time left.

use potluck_panel::LoadReport;
use potluck_text::texts;

use super::{bytes, rate};

/// "about 40 s left", "about 3 min left", "almost done".
#[must_use]
pub fn seconds_left(seconds: f64) -> String {
    if !seconds.is_finite() || seconds < 0.0 {
        String::new()
    } else if seconds < 2.0 {
        "almost done".into()
    } else if seconds < 90.0 {
        format!("about {seconds:.0} s left")
    } else if seconds < 5400.0 {
        format!("about {:.0} min left", seconds / 60.0)
    } else {
        format!("about {:.1} h left", seconds / 3600.0)
    }
}

/// "Downloading 410 MB of 1.2 GB · 12 MB/s · about 1 min left · already here: 120 MB".
#[must_use]
pub fn loading_line(loading: &LoadReport) -> String {
    let mut line = texts().phase.of(loading.phase).to_owned();
    let (done, total, cached) = (loading.done.0, loading.total.0, loading.cached.0);
    if total > 0 {
        line.push_str(&format!(" {} of {}", bytes(done), bytes(total)));
        if loading.rate >= 1.0 && done < total {
            line.push_str(&format!(" · {}", rate(loading.rate)));
        }
    }
    let left = loading.seconds_left().map(seconds_left).unwrap_or_default();
    if !left.is_empty() {
        line.push_str(&format!(" · {left}"));
    }
    if cached > 0 {
        // No percentage: a bar beside it shows another one.
        line.push_str(&format!(" · already here: {}", bytes(cached)));
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
        }
    }

    #[test]
    fn a_download_shows_bytes_rate_and_time() {
        assert_eq!(loading_line(&loading()), "Downloading 410 MB of 1.2 GB · 12 MB/s · about 66 s left");
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
