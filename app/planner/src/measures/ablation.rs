//! Hiding a measure from the planner, to see what it is worth (dynamic-partitioning.txt 7.5). The devices stay what they are.

use std::fmt;
use std::str::FromStr;

use potluck_plan::Bytes;

use crate::{Device, Link, Links, Speed};

/// Something that is measured of devices and lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Measure {
    /// Speed and overhead: all devices are taken to be like the middle one.
    Compute,
    /// Memory: all devices are taken to lend what the least one lends, so that what is planned can be loaded.
    Memory,
    /// Latency: messages are taken to need no time but for their bytes.
    Latency,
    /// Bandwidth: bytes are taken to need no time.
    Bandwidth,
    /// What pauses cost: devices are taken to be always busy.
    Pauses,
}

impl Measure {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Compute, Self::Memory, Self::Latency, Self::Bandwidth, Self::Pauses];

    /// The planner knows nothing of it any more.
    pub fn hide(self, devices: &mut [Device], links: &mut Links) {
        match self {
            Self::Compute => {
                let middle = |of: fn(&Device) -> f64| {
                    let mut values: Vec<f64> = devices.iter().map(of).collect();
                    values.sort_by(f64::total_cmp);
                    values.get(values.len() / 2).copied().unwrap_or(0.0)
                };
                let speed = Speed {
                    decode: middle(|device| device.speed.decode),
                    prefill: middle(|device| device.speed.prefill),
                };
                let (session, sync) = (middle(|device| device.session_millis), middle(|device| device.sync_millis));
                for device in devices {
                    (device.speed, device.session_millis, device.sync_millis) = (speed, session, sync);
                }
            }
            Self::Memory => {
                let least = devices.iter().map(|device| device.budget).min().unwrap_or(Bytes::ZERO);
                devices.iter_mut().for_each(|device| device.budget = least);
            }
            Self::Latency => links.change(|link| Link { latency_millis: 0.0, ..link }),
            Self::Bandwidth => links.change(|link| Link { bandwidth: f64::INFINITY, ..link }),
            Self::Pauses => devices.iter_mut().for_each(|device| device.pauses.clear()),
        }
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Compute => "compute",
            Self::Memory => "memory",
            Self::Latency => "latency",
            Self::Bandwidth => "bandwidth",
            Self::Pauses => "pauses",
        })
    }
}

impl FromStr for Measure {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|measure| measure.to_string() == text);
        known.ok_or_else(|| {
            format!("\"{text}\" is no measure; there are {}.", Self::ALL.map(|known| known.to_string()).join(", "))
        })
    }
}
