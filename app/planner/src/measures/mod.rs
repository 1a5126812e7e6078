//! From measurements to speeds and links (dynamic-partitioning.txt 4.3): pure types that the caller feeds.

mod calibration;
mod link;
mod peer;
mod ring;

pub use calibration::{Calibrated, Calibration, CalibrationError, RUNS, WARM_UP};
pub use link::{IDLE_LATENCIES, LinkMeasure};
pub use peer::{PeerMeasure, SPEEDS};
pub use ring::Ring;
