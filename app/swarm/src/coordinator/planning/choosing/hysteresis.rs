//! Hysteresis against measurement noise. Of equal devices another one seems a little better at every look, so in an
//! unchanged room a plan must be better for a while.

use potluck_panel::KeptReason;
use potluck_plan::{Bytes, Millis, PeerId};
use potluck_planner::Room;

/// A plan must be better at every look for this long, if nothing else has changed: three looks ten seconds apart,
/// less the variation of their times.
const MIN_BETTER_MILLIS: f64 = 19_000.0;
/// … and at so many looks: while tokens are written, they are further apart.
const MIN_BETTER_LOOKS: u32 = 3;

/// Results of the last looks.
#[derive(Default)]
pub(in crate::coordinator::planning) struct Hysteresis {
    room: Option<Basis>,
    better_since: Option<Millis>,
    /// Looks since then.
    looks: u32,
    /// A change was granted and is on its way.
    granted: bool,
    /// A stage became much slower or faster.
    drifted: bool,
}

/// The contributions, and how many devices were timed.
#[derive(Clone, Debug, PartialEq)]
struct Basis {
    budgets: Vec<(PeerId, Bytes)>,
    timed: usize,
}

impl Hysteresis {
    /// The next better plan is worth a change at once.
    pub fn drifted(&mut self) {
        self.drifted = true;
    }

    /// The plan changed: the next change starts from nothing.
    pub fn over(&mut self) {
        (self.better_since, self.looks, self.granted) = (None, 0, false);
    }

    /// Takes the result of a look. True if the better plan is worth a change: at once if the room has changed, else
    /// after a while. `timed`: number of devices that were timed.
    pub fn is_over(&mut self, room: &Room<'_>, timed: usize, is_better: bool, now: Millis) -> bool {
        let budgets = room.devices.iter().map(|device| (device.peer, device.budget)).collect();
        self.looked(Basis { budgets, timed }, is_better, now)
    }

    /// How long the better plan has been better, and how long it must be.
    pub fn waits(&self, now: Millis) -> KeptReason {
        KeptReason::NotForLongEnough {
            looks: self.looks,
            needed_looks: MIN_BETTER_LOOKS,
            better_for_ms: self.better_since.map_or(0.0, |since| now.0 - since.0),
            needed_for_ms: MIN_BETTER_MILLIS,
        }
    }

    fn looked(&mut self, room: Basis, is_better: bool, now: Millis) -> bool {
        let has_changed = self.room.as_ref() != Some(&room) || std::mem::take(&mut self.drifted);
        self.room = Some(room);
        if !is_better {
            self.over();
            return false;
        }
        let since = *self.better_since.get_or_insert(now);
        self.looks += 1;
        let is_steady = self.looks >= MIN_BETTER_LOOKS && now.0 - since.0 >= MIN_BETTER_MILLIS;
        self.granted |= has_changed || is_steady;
        self.granted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(devices: u8) -> Basis {
        Basis { budgets: (0..devices).map(|index| (PeerId([index; 16]), Bytes(9))).collect(), timed: 0 }
    }

    #[test]
    fn in_an_unchanged_room_a_plan_must_be_better_for_a_while() {
        let mut hysteresis = Hysteresis::default();
        let mut look = |devices, is_better, at: f64| hysteresis.looked(room(devices), is_better, Millis(at));
        assert!(!look(3, false, 0.0));
        assert!(!look(3, true, 10_000.0), "it may be noise");
        assert!(!look(3, false, 20_000.0), "it was");
        assert!(!look(3, true, 30_000.0));
        assert!(!look(3, true, 40_000.0));
        assert!(look(3, true, 50_000.0), "three times in a row");
        assert!(look(3, true, 50_100.0), "until the change is made");
    }

    #[test]
    fn it_says_how_long_a_plan_has_been_better_and_how_long_it_must_be() {
        let mut hysteresis = Hysteresis::default();
        [(false, 0.0), (true, 10_000.0), (true, 20_000.0)].into_iter().for_each(|(is_better, at)| {
            hysteresis.looked(room(3), is_better, Millis(at));
        });
        let expected = KeptReason::NotForLongEnough {
            looks: 2,
            needed_looks: 3,
            better_for_ms: 10_000.0,
            needed_for_ms: 19_000.0,
        };
        assert_eq!(hysteresis.waits(Millis(20_000.0)), expected);
    }

    #[test]
    fn newcomers_and_slowdowns_are_planned_with_at_once() {
        let mut hysteresis = Hysteresis::default();
        assert!(!hysteresis.looked(room(2), false, Millis(0.0)));
        assert!(hysteresis.looked(room(3), true, Millis(100.0)), "a device came");
        hysteresis.over();
        assert!(!hysteresis.looked(room(3), true, Millis(200.0)), "that change was made");
        hysteresis.drifted();
        assert!(hysteresis.looked(room(3), true, Millis(300.0)));
        hysteresis.over();
        assert!(hysteresis.looked(Basis { timed: 1, ..room(3) }, true, Millis(400.0)), "a device was timed");
    }
}
