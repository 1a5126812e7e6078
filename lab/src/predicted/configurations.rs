//! The configurations, listed before they are run.

use std::fmt;
use std::time::Duration;

use super::measure::Measure;
use potluck_panel::Sharing;

/// One device of a room.
#[derive(Clone, Copy, Debug)]
pub struct Device {
    /// Share of the whole model's weights and KV cache that fits on it.
    pub room: f64,
    /// How many times it runs its work: 2 is half the speed.
    pub slow: u32,
    /// Extra one-way latency of its line, in milliseconds.
    pub far_ms: f64,
    /// Bytes a second of its line; `None` for no limit.
    pub rate: Option<f64>,
}

/// Who decides which device gets which blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The planner, within the budgets of the configuration.
    Found,
    /// As many blocks on each device: each contributes what they need and no more.
    Equal,
}

/// A room: the first device hosts.
#[derive(Clone, Copy, Debug)]
pub struct Configuration {
    /// Its name.
    pub name: &'static str,
    /// Who contributes what.
    pub devices: &'static [Device],
    /// One way from peer to peer, milliseconds; half of it on each leg.
    pub one_way_ms: f64,
    /// How the work is shared.
    pub share: Sharing,
}

/// A room in which devices time themselves, and how long it stays.
pub struct Timing {
    /// The room.
    pub configuration: &'static Configuration,
    /// From its plan on.
    pub lasting: Duration,
}

/// Which list is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Set {
    /// Predicted against measured times.
    Prediction,
    /// What each measure is worth (dynamic-partitioning.txt 7.5).
    Ablation,
    /// One to four devices, near and behind latency (7.2: worker scaling, network).
    Scaling,
    /// Three devices for models of several sizes (7.2: model size).
    Sizes,
}

/// One thing to run: a room, who cuts the model, and what the planner must not know.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The room.
    pub configuration: &'static Configuration,
    /// Who cuts.
    pub cut: Cut,
    /// What is hidden.
    pub hidden: Option<Measure>,
}

impl Set {
    /// Its name on the command line.
    pub const NAMES: [(&'static str, Self); 4] = [
        ("prediction", Self::Prediction),
        ("ablation", Self::Ablation),
        ("scaling", Self::Scaling),
        ("sizes", Self::Sizes),
    ];

    /// The set with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, set)| *set)
    }

    /// Comes before all others and is not counted. A device of one speed is timed for 13 s.
    pub fn timing(self) -> Timing {
        match self {
            Self::Prediction | Self::Ablation => Timing { configuration: &SPEEDS, lasting: Duration::from_secs(40) },
            Self::Scaling | Self::Sizes => Timing { configuration: &ALIKE, lasting: Duration::from_secs(15) },
        }
    }

    /// What it runs, in this order.
    pub fn cases(self) -> Vec<Case> {
        let found = |configuration: &'static Configuration| Case { configuration, cut: Cut::Found, hidden: None };
        match self {
            Self::Prediction => CONFIGURATIONS.iter().map(found).collect(),
            Self::Scaling => SCALING.iter().map(found).collect(),
            Self::Sizes => SIZES.iter().map(found).collect(),
            Self::Ablation => {
                let without = |room: &Ablation| {
                    let configuration = room.configuration;
                    let hidden = [None].into_iter().chain(room.hidden.iter().copied().map(Some));
                    hidden.map(move |hidden| Case { configuration, cut: Cut::Found, hidden }).collect::<Vec<_>>()
                };
                ABLATION.iter().flat_map(without).collect()
            }
        }
    }
}

/// A room with traps, and the measures that show them.
struct Ablation {
    configuration: &'static Configuration,
    hidden: &'static [Measure],
}

const fn device(room: f64, slow: u32) -> Device {
    Device { room, slow, far_ms: 0.0, rate: None }
}

const fn far(room: f64, far_ms: f64) -> Device {
    Device { room, slow: 1, far_ms, rate: None }
}

const fn thin(room: f64, rate: f64) -> Device {
    Device { room, slow: 1, far_ms: 0.0, rate: Some(rate) }
}

const fn fastest(name: &'static str, devices: &'static [Device], one_way_ms: f64) -> Configuration {
    Configuration { name, devices, one_way_ms, share: Sharing::Fastest }
}

const fn everyone(name: &'static str, devices: &'static [Device], one_way_ms: f64) -> Configuration {
    Configuration { name, devices, one_way_ms, share: Sharing::Everyone }
}

const ALONE: [Device; 1] = [device(1.1, 1)];
const ALONE_HALF: [Device; 1] = [device(1.1, 2)];
const ALONE_QUARTER: [Device; 1] = [device(1.1, 4)];
const TWO: [Device; 2] = [device(0.65, 1), device(0.65, 1)];
const TWO_UNEQUAL: [Device; 2] = [device(0.65, 1), device(0.65, 2)];
const TWO_FAR_APART: [Device; 2] = [device(0.65, 1), device(0.65, 4)];
const THREE: [Device; 3] = [device(0.45, 1), device(0.45, 1), device(0.45, 1)];
/// Speeds 1 : ½ : ¼, budgets 2 : 1 : 1.
const HALVES: [Device; 3] = [device(0.8, 1), device(0.4, 2), device(0.4, 4)];
const FOUR: [Device; 4] = [device(0.35, 1), device(0.35, 1), device(0.35, 1), device(0.35, 1)];
const FOUR_UNEQUAL: [Device; 4] = [device(0.4, 1), device(0.3, 1), device(0.4, 2), device(0.4, 4)];
const THREE_LARGE: [Device; 3] = [device(1.1, 1), device(1.1, 1), device(1.1, 1)];

/// A host that needs one other device, and three of them: one is slow, one far away, one behind a thin line.
const TRAPS: [Device; 4] = [device(0.5, 1), device(0.65, 4), far(0.65, 40.0), thin(0.65, 4e5)];
/// A host that needs one other device; the slower one is nearer and contributes more.
const SPEEDS_APART: [Device; 3] = [device(0.5, 1), Device { far_ms: 0.5, ..device(0.6, 2) }, device(0.9, 4)];
const TRAPS_ROOM: Configuration = fastest("slow, far and thin", &TRAPS, 0.0);
const SPEEDS_ROOM: Configuration = fastest("near and slow", &SPEEDS_APART, 0.0);
const LATENCY_ROOM: Configuration = fastest("two of 1 : 1/4, 20 ms", &TWO_FAR_APART, 20.0);
/// The rooms that every measure is hidden in.
const ABLATION: [Ablation; 3] = [
    Ablation {
        configuration: &TRAPS_ROOM,
        hidden: &[Measure::Compute, Measure::Latency, Measure::Bandwidth, Measure::Memory, Measure::Pauses],
    },
    Ablation { configuration: &SPEEDS_ROOM, hidden: &[Measure::Compute, Measure::Memory, Measure::Pauses] },
    Ablation { configuration: &LATENCY_ROOM, hidden: &[Measure::Compute, Measure::Latency, Measure::Pauses] },
];
/// One to four devices of which all are needed.
const SCALING: [Configuration; 8] = [
    fastest("1 device, 0 ms", &ALONE, 0.0),
    fastest("2 devices, 0 ms", &TWO, 0.0),
    fastest("3 devices, 0 ms", &THREE, 0.0),
    fastest("4 devices, 0 ms", &FOUR, 0.0),
    fastest("1 device, 20 ms", &ALONE, 20.0),
    fastest("2 devices, 20 ms", &TWO, 20.0),
    fastest("3 devices, 20 ms", &THREE, 20.0),
    fastest("4 devices, 20 ms", &FOUR, 20.0),
];
/// Three devices of which all are needed, for models of several sizes.
const SIZES: [Configuration; 1] = [fastest("3 devices, 0 ms", &THREE, 0.0)];

/// Devices of every speed that occurs, run once before all others and not counted: each speed is timed then, one after
/// the other because they share the GPU, as devices of their own would have been when they came.
const SPEEDS: Configuration = fastest("devices of every speed", &HALVES, 0.0);
/// The same where all are alike.
const ALIKE: Configuration = fastest("devices of one speed", &THREE, 0.0);

/// All of them.
pub const CONFIGURATIONS: [Configuration; 32] = [
    fastest("alone", &ALONE, 0.0),
    fastest("alone at half speed", &ALONE_HALF, 0.0),
    fastest("alone at a quarter of the speed", &ALONE_QUARTER, 0.0),
    fastest("two, 0 ms", &TWO, 0.0),
    fastest("two, 5 ms", &TWO, 5.0),
    fastest("two, 20 ms", &TWO, 20.0),
    fastest("two, 50 ms", &TWO, 50.0),
    fastest("two of 1 : 1/2, 0 ms", &TWO_UNEQUAL, 0.0),
    fastest("two of 1 : 1/2, 5 ms", &TWO_UNEQUAL, 5.0),
    fastest("two of 1 : 1/2, 20 ms", &TWO_UNEQUAL, 20.0),
    fastest("two of 1 : 1/2, 50 ms", &TWO_UNEQUAL, 50.0),
    fastest("two of 1 : 1/4, 0 ms", &TWO_FAR_APART, 0.0),
    fastest("two of 1 : 1/4, 20 ms", &TWO_FAR_APART, 20.0),
    fastest("three, 0 ms", &THREE, 0.0),
    fastest("three, 5 ms", &THREE, 5.0),
    fastest("three, 10 ms", &THREE, 10.0),
    fastest("three, 20 ms", &THREE, 20.0),
    fastest("three, 50 ms", &THREE, 50.0),
    fastest("three of 1 : 1/2 : 1/4, 0 ms", &HALVES, 0.0),
    fastest("three of 1 : 1/2 : 1/4, 5 ms", &HALVES, 5.0),
    fastest("three of 1 : 1/2 : 1/4, 20 ms", &HALVES, 20.0),
    fastest("three of 1 : 1/2 : 1/4, 50 ms", &HALVES, 50.0),
    fastest("four, 0 ms", &FOUR, 0.0),
    fastest("four, 5 ms", &FOUR, 5.0),
    fastest("four, 20 ms", &FOUR, 20.0),
    fastest("four, 50 ms", &FOUR, 50.0),
    fastest("four of 1 : 1 : 1/2 : 1/4, 0 ms", &FOUR_UNEQUAL, 0.0),
    fastest("four of 1 : 1 : 1/2 : 1/4, 20 ms", &FOUR_UNEQUAL, 20.0),
    everyone("everyone of three, 0 ms", &THREE_LARGE, 0.0),
    everyone("everyone of three, 20 ms", &THREE_LARGE, 20.0),
    everyone("everyone of 1 : 1/2 : 1/4, 0 ms", &HALVES, 0.0),
    everyone("everyone of 1 : 1/2 : 1/4, 20 ms", &HALVES, 20.0),
];

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.configuration)?;
        self.hidden.map_or(Ok(()), |hidden| write!(f, ", planned without {hidden}"))
    }
}

impl fmt::Display for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: devices", self.name)?;
        for device in self.devices {
            write!(f, " {:.0}% at 1/{}", device.room * 100.0, device.slow)?;
            if device.far_ms > 0.0 {
                write!(f, " {} ms away", device.far_ms)?;
            }
            if let Some(rate) = device.rate {
                write!(f, " at {:.1} MB/s", rate / 1e6)?;
            }
        }
        write!(f, ", {} ms one way, {:?}", self.one_way_ms, self.share)
    }
}
