//! Loading in words: phase, bytes, rate, time left.

use potluck_panel::Loading;

use super::{bytes, percent, rate};

/// The phases of loading in their order, as the node names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Which files hold the parts.
    Find,
    /// Bytes come over the network.
    Download,
    /// Hashes are compared.
    Check,
    /// Bytes go to the GPU.
    Upload,
    /// Shaders are compiled.
    Kernels,
    /// Kernels are compared with the reference.
    SelfTest,
    /// All done.
    Ready,
}

impl Phase {
    /// Every phase, in order.
    pub const ALL: [Self; 7] =
        [Self::Find, Self::Download, Self::Check, Self::Upload, Self::Kernels, Self::SelfTest, Self::Ready];

    /// The phase the node names, if it is one of the known ones.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|phase| phase.name() == name)
    }

    /// The node's name of it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Find => "find",
            Self::Download => "download",
            Self::Check => "check",
            Self::Upload => "upload",
            Self::Kernels => "prepare kernels",
            Self::SelfTest => "self-test",
            Self::Ready => "ready",
        }
    }
}

/// What a phase does, as the start of a line.
#[must_use]
pub fn phase_label(name: &str) -> String {
    match Phase::named(name) {
        Some(Phase::Find) => "Finding the parts".into(),
        Some(Phase::Download) => "Downloading".into(),
        Some(Phase::Check) => "Checking".into(),
        Some(Phase::Upload) => "Moving to the GPU".into(),
        Some(Phase::Kernels) => "Preparing kernels".into(),
        Some(Phase::SelfTest) => "Testing kernels".into(),
        Some(Phase::Ready) => "Ready".into(),
        None => {
            let mut letters = name.chars();
            letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
        }
    }
}

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

/// "Downloading 410 MB of 1.2 GB · 12 MB/s · about 1 min left · already here: 12%".
#[must_use]
pub fn loading_line(loading: &Loading) -> String {
    let mut line = phase_label(&loading.phase);
    if loading.total > 0 {
        line.push_str(&format!(" {} of {}", bytes(loading.done), bytes(loading.total)));
        if loading.rate >= 1.0 && loading.done < loading.total {
            line.push_str(&format!(" · {}", rate(loading.rate)));
        }
    }
    let left = loading.seconds_left.map(seconds_left).unwrap_or_default();
    if !left.is_empty() {
        line.push_str(&format!(" · {left}"));
    }
    if loading.cached > 0 {
        let whole = loading.total.max(loading.cached);
        line.push_str(&format!(" · already here: {}%", percent(loading.cached, whole)));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loading() -> Loading {
        Loading {
            phase: "download".into(),
            done: 410_000_000,
            total: 1_200_000_000,
            rate: 12_000_000.0,
            seconds_left: Some(66.0),
            cached: 0,
        }
    }

    #[test]
    fn a_download_tells_bytes_rate_and_time() {
        assert_eq!(loading_line(&loading()), "Downloading 410 MB of 1.2 GB · 12 MB/s · about 66 s left");
    }

    #[test]
    fn what_was_here_already_is_told() {
        let here = Loading { cached: 1_008_000_000, ..loading() };
        assert!(loading_line(&here).ends_with("already here: 84%"), "{}", loading_line(&here));
    }

    #[test]
    fn a_phase_without_bytes_is_just_its_name() {
        let kernels =
            Loading { phase: "prepare kernels".into(), done: 0, total: 0, rate: 0.0, seconds_left: None, cached: 0 };
        assert_eq!(loading_line(&kernels), "Preparing kernels");
    }

    #[test]
    fn phases_keep_their_order_and_unknown_ones_still_read_well() {
        assert!(Phase::Find < Phase::Ready);
        assert_eq!(Phase::ALL.map(Phase::name).map(Phase::named), Phase::ALL.map(Some));
        assert_eq!(phase_label("warming up"), "Warming up");
        assert_eq!(phase_label(""), "");
    }

    #[test]
    fn time_left_is_coarse_when_it_is_long() {
        assert_eq!(seconds_left(1.0), "almost done");
        assert_eq!(seconds_left(600.0), "about 10 min left");
        assert_eq!(seconds_left(f64::INFINITY), "");
    }
}
