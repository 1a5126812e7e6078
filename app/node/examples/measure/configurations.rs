//! The configurations, listed before they are run.

use std::fmt;

use potluck_panel::Share;

/// One device of a room.
#[derive(Clone, Copy, Debug)]
pub struct Device {
    /// Share of the whole model's weights and state that fits on it.
    pub room: f64,
    /// It repeats its work so often: 2 is half the speed.
    pub slow: u32,
}

/// Who decides which device gets which blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The planner, within the budgets of the configuration.
    Found,
    /// As many blocks on each device: each lends what they take and no more.
    Equal,
}

/// A room: the first device hosts.
#[derive(Clone, Copy, Debug)]
pub struct Configuration {
    /// Its name.
    pub name: &'static str,
    /// Who lends what.
    pub devices: &'static [Device],
    /// One way from peer to peer, milliseconds; half of it on each leg.
    pub one_way_ms: f64,
    /// How the work is shared.
    pub share: Share,
}

const fn device(room: f64, slow: u32) -> Device {
    Device { room, slow }
}

const fn fastest(name: &'static str, devices: &'static [Device], one_way_ms: f64) -> Configuration {
    Configuration { name, devices, one_way_ms, share: Share::Fastest }
}

const fn everyone(name: &'static str, devices: &'static [Device], one_way_ms: f64) -> Configuration {
    Configuration { name, devices, one_way_ms, share: Share::Everyone }
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

/// Devices of every speed that occurs, run once before all others and not counted: each speed is timed then, one after
/// the other because they share the GPU, as devices of their own would have been when they came.
pub const SPEEDS: Configuration = fastest("devices of every speed", &HALVES, 0.0);

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

impl fmt::Display for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: devices", self.name)?;
        for device in self.devices {
            write!(f, " {:.0}% at 1/{}", device.room * 100.0, device.slow)?;
        }
        write!(f, ", {} ms one way, {:?}", self.one_way_ms, self.share)
    }
}
