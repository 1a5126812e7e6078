//! Ablation (dynamic-partitioning.txt 7.5): hides a measure from the planner, to see what it is worth. The devices do
//! not change.

use std::fmt;
use std::str::FromStr;

use potluck_plan::Bytes;

use potluck_planner::{Device, Link, Links, PlannerView, Speed};

/// Something that is measured of devices and links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Measure {
    /// Speed and overhead. Without it all devices count as the median one.
    Compute,
    /// Memory. Without it all devices count with the smallest budget, so that every plan can be loaded.
    Memory,
    /// Latency. Without it messages take only their transfer time.
    Latency,
    /// Bandwidth. Without it transfers take no time.
    Bandwidth,
    /// The cost of pauses. Without it devices count as always busy.
    Pauses,
}

impl Measure {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Compute, Self::Memory, Self::Latency, Self::Bandwidth, Self::Pauses];

    /// What a planner sees without this measure.
    pub fn view(self) -> PlannerView {
        match self {
            Self::Compute => |devices, links| Self::Compute.hide(devices, links),
            Self::Memory => |devices, links| Self::Memory.hide(devices, links),
            Self::Latency => |devices, links| Self::Latency.hide(devices, links),
            Self::Bandwidth => |devices, links| Self::Bandwidth.hide(devices, links),
            Self::Pauses => |devices, links| Self::Pauses.hide(devices, links),
        }
    }

    /// Hides the measure in the planner's input.
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
                let smallest = devices.iter().map(|device| device.budget).min().unwrap_or(Bytes::ZERO);
                devices.iter_mut().for_each(|device| device.budget = smallest);
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
