//! From measurements to speeds and links (dynamic-partitioning.txt 4.3). The types do no I/O; callers record
//! measurements in them.

mod access_links;
mod calibration;
mod link;
mod peer;
mod ring;

pub use access_links::access_latencies;
pub use calibration::{Calibrated, Calibration, CalibrationError, MIN_RUNS, RUNS, WARM_UP, typical};
pub use link::{IDLE_LATENCIES, LinkMeasure};
pub use peer::{PeerMeasure, SPEEDS};
pub use ring::Ring;
