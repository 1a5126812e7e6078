//! Makes this device act as another one: slower, behind a slower network, or with experts that answer late.

mod delay;
mod slow;
mod transport;

use std::path::PathBuf;
use std::rc::Rc;

use potluck_node::platform::Platform;

use delay::Delay;
use slow::{Pace, SlowDevice};
use transport::DelayedTransport;

/// How this device acts.
#[derive(Clone, Debug, PartialEq, clap::Args)]
#[group(id = "acting_device")]
pub struct DeviceOptions {
    /// How many times the device runs its work, to act as a slower one; 0 computes no experts and answers zeros
    #[arg(long, value_name = "TIMES", default_value_t = 1)]
    pub slow: u32,
    /// Delay of this device's messages: MEDIAN_MS, or MEDIAN_MS,SIGMA of a log-normal delay
    #[arg(long, value_name = "MILLIS")]
    pub delay: Option<Delay>,
    /// How long outputs of this device's experts wait before they are sent, each for itself: like --delay
    #[arg(long, value_name = "MILLIS")]
    pub hesitate: Option<Delay>,
    /// They do not wait any more once this file exists
    #[arg(long, value_name = "FILE")]
    pub hesitate_until: Option<PathBuf>,
}

impl Default for DeviceOptions {
    /// As the device is.
    fn default() -> Self {
        Self { slow: 1, delay: None, hesitate: None, hesitate_until: None }
    }
}

impl DeviceOptions {
    /// The adapters of a device that acts so. Must be called inside a `LocalSet`.
    pub fn adapt(&self, platform: Platform) -> Platform {
        let transport = match self.delay {
            Some(delay) => Rc::new(DelayedTransport::new(platform.transport, delay)),
            None => platform.transport,
        };
        let hesitation = self.hesitate.map(|delay| delay.hesitation(self.hesitate_until.clone()));
        let pace = Pace::of(self.slow);
        let compute = Rc::new(SlowDevice::new(pace, hesitation, platform.clock.clone(), platform.spawn.clone()));
        Platform { transport, compute, ..platform }
    }
}
