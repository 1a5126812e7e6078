//! Its devices (table 7.2), models (table 7.3) and networks (7.2.1 and 7.5.1).

use super::bed::{Bench, Dense};

/// Places in table 7.2.
pub const AIDOS: usize = 0;
pub const THOR: usize = 1;

/// Table 7.2: tokens a second with Qwen3-0.6B, milliseconds of a round trip, MB a second.
const DEVICES: [(&str, f64, f64, f64); 5] = [
    ("Aidos", 59.22, 0.64, 117.49),
    ("Thor", 48.08, 1.87, 32.43),
    ("Pgx", 25.23, 1.58, 37.53),
    ("Agx", 18.94, 1.97, 31.86),
    ("Nano", 9.96, 2.52, 31.26),
];
/// Bytes of Qwen3-0.6B as ONNX (table 7.3).
const SMALLEST: f64 = 3e9;
/// Assumed: the paper gives no session overhead.
const SESSION_MILLIS: f64 = 1.0;

/// Which network the devices are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// As table 7.2 measured it.
    Default,
    /// With delays and rates added.
    Slowed,
}

/// A row of table 7.7.
pub struct Assigned {
    pub device: &'static str,
    pub layers: &'static str,
    /// Milliseconds, estimated at first and measured.
    pub estimate: f64,
    pub computing: f64,
}

/// Table 7.7.
pub const PAPER_14B: [Assigned; 3] = [
    Assigned { device: "Pgx", layers: "0–1", estimate: 4.34, computing: 0.19 },
    Assigned { device: "Thor", layers: "1–35", estimate: 335.06, computing: 277.88 },
    Assigned { device: "Aidos", layers: "35–42", estimate: 34.56, computing: 31.14 },
];

/// A model of table 7.3 in 32-bit floats as ONNX: its vocabulary's two matrices, and blocks of what is left.
pub fn qwen3(name: &str) -> Dense {
    let (gigabytes, blocks, hidden) = match name {
        "0.6B" => (3.0, 28, 1024),
        "1.7B" => (6.9, 28, 2048),
        "4B" => (16.1, 36, 2560),
        "8B" => (32.7, 36, 4096),
        _ => (59.0, 40, 5120),
    };
    let end = 151_936 * u64::from(hidden) * 4;
    let block = ((gigabytes * 1e9) as u64 - 2 * end) / blocks as u64;
    Dense { blocks, block, hidden, ends: [end, end] }
}

/// The first devices of table 7.2 with so many GB of weights each. The slowed network is that of 7.5.1.
pub fn devices(count: usize, gigabytes: impl Fn(usize) -> f64, network: Network) -> Vec<Bench> {
    let bench = |(index, (name, tokens, round_trip, megabytes)): (usize, (&'static str, f64, f64, f64))| {
        let (added, bandwidth) = match (network, name) {
            (Network::Default, _) => (0.0, (megabytes * 1e3, megabytes * 1e3)),
            (Network::Slowed, "Aidos") => (105.0, (10e3, 50e3)),
            (Network::Slowed, "Pgx") => (5.0, (128.0, 128.0)),
            (Network::Slowed, _) => (5.0, (10e3, 50e3)),
        };
        Bench {
            name,
            speed: SMALLEST * tokens / 1e3,
            budget: (gigabytes(index) * 1e9) as u64,
            session_millis: SESSION_MILLIS,
            latency: (round_trip + added) / 2.0,
            bandwidth,
        }
    };
    DEVICES.into_iter().take(count).enumerate().map(bench).collect()
}

/// Workers on GPUs of Aidos. The slowed network is that of 7.2.1.
pub fn equal_aidos(count: usize, network: Network) -> Vec<Bench> {
    let (_, tokens, round_trip, megabytes) = DEVICES[AIDOS];
    let (added, bandwidth) = match network {
        Network::Default => (0.0, (megabytes * 1e3, megabytes * 1e3)),
        Network::Slowed => (20.0, (2e3, 10e3)),
    };
    let bench = Bench {
        name: "Aidos",
        // Of one worker's measured time: without its session, for what a token reads. It looks up one row of the embedding.
        speed: (SMALLEST - qwen3("0.6B").ends[0] as f64) / (1e3 / tokens - SESSION_MILLIS - round_trip),
        budget: u64::MAX / 8,
        session_millis: SESSION_MILLIS,
        latency: (round_trip + added) / 2.0,
        bandwidth,
    };
    vec![bench; count]
}
