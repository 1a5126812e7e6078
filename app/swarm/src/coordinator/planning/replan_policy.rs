//! When a better plan is looked for, and whether it is worth a change.

use potluck_plan::Millis;

use super::hysteresis::Hysteresis;
use super::in_place::InPlace;
use super::measures::Drift;

/// A better plan is looked for this often, whatever happens.
const CHECK_MILLIS: f64 = 10_000.0;

#[derive(Default)]
pub(super) struct ReplanPolicy {
    /// When a plan was last looked for.
    checked: Millis,
    /// When the active plan's times were last predicted.
    pub predicted: Millis,
    /// Planning waits until devices have timed themselves.
    pub awaits_calibration: bool,
    /// The active plan has to go, once the answers that are being given have ended.
    pub when_idle: bool,
    pub in_place: InPlace,
    pub drift: Drift,
    pub hysteresis: Hysteresis,
}

impl ReplanPolicy {
    /// A plan is looked for now.
    pub fn checked(&mut self, now: Millis) {
        self.checked = now;
    }

    /// A plan is to be looked for at the next tick.
    pub fn check_soon(&mut self) {
        self.checked = Millis(f64::MIN);
    }

    /// Nobody has looked for a while.
    pub fn is_check_due(&self, now: Millis) -> bool {
        now.0 - self.checked.0 >= CHECK_MILLIS
    }

    /// Another plan is active from now on; `tokens` were written in the room so far.
    pub fn plan_changed(&mut self, tokens: u64) {
        self.hysteresis.over();
        self.in_place.plan_changed(tokens);
    }
}
