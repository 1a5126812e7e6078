//! Holders that are late: after how long a call goes to another holder as well, and for how long new calls prefer others. A
//! device that has vanished looks like a late one until the relay or its silence says so.

use potluck_plan::Millis;

/// A call is late after so many times its holder's own 95th percentile: of a steady holder's calls none takes that long, of
/// log-normal ones with a σ of 0.5 one in a thousand…
const LATE_FACTOR: f64 = 2.0;
/// … and not before this time, below which clocks and timers are not exact.
const MIN_LATE_MILLIS: f64 = 2.0;
/// After so many calls in a row that were given up, because copies of them were answered before, one is left open: is it late?
const UNANSWERED: u32 = 4;
/// A late holder is asked again after this time at the latest. Of a device that has vanished the relay says so after ten seconds.
pub(super) const AVOIDED_MILLIS: f64 = 12_000.0;

/// How long to wait for a holder before a call of it is late, from the 95th percentile of its answers.
pub(super) fn late_after(slow: f64) -> f64 {
    (LATE_FACTOR * slow).max(MIN_LATE_MILLIS)
}

/// When a call is late, and whether it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum LateTimer {
    /// It is never late: how long its holder takes is unknown, or the call is due before, or the holder has refused it.
    Off,
    /// It is late at this time, which is so many milliseconds after it was asked.
    Running { at: Millis, millis: f64 },
    /// It is late.
    Expired,
}

impl LateTimer {
    /// Of a call that is asked now, and late after so many milliseconds.
    pub fn start(now: Millis, millis: Option<f64>) -> Self {
        millis.map_or(Self::Off, |millis| Self::Running { at: Millis(now.0 + millis), millis })
    }

    /// When it expires.
    pub fn at(self) -> Option<Millis> {
        if let Self::Running { at, .. } = self { Some(at) } else { None }
    }

    pub fn is_expired(self) -> bool {
        self == Self::Expired
    }

    /// The call will not become late.
    pub fn stop(&mut self) {
        if !self.is_expired() {
            *self = Self::Off;
        }
    }

    /// Time has passed. True once: when the call becomes late.
    pub fn expires(&mut self, now: Millis) -> bool {
        let Self::Running { at, millis } = *self else { return false };
        if now.0 < at.0 {
            return false;
        }
        // Much later than that, this device itself was held up: answers may wait to be read.
        let is_held_up = now.0 - at.0 > millis;
        *self = if is_held_up { Self::start(now, Some(millis)) } else { Self::Expired };
        !is_held_up
    }

    /// Whether the time was put off since the call was asked.
    pub fn was_put_off(&self, asked: Millis) -> bool {
        matches!(self, Self::Running { at, millis } if at.0 - millis > asked.0 + 0.5)
    }
}

/// What a holder owes. An answer or a refusal ends it. A heartbeat does not: a device may beat whose GPU is slow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lateness {
    /// Others are preferred since then.
    since: Option<Millis>,
    /// Calls in a row that were given up without an answer.
    unanswered: u32,
}

impl Lateness {
    /// A call is late.
    pub fn is_late(&mut self, now: Millis) {
        if !self.is_overtaken(now) {
            self.since = Some(now);
        }
    }

    /// A call was given up, because somebody else was quicker.
    pub fn given_up(&mut self) {
        self.unanswered = self.unanswered.saturating_add(1);
    }

    /// A call that nobody waits for any more is left open, to see whether the holder is there.
    pub fn has_to_show(&self, now: Millis) -> bool {
        self.unanswered >= UNANSWERED || self.is_overtaken(now)
    }

    /// It said that it is there.
    pub fn is_there(&mut self) {
        self.unanswered = 0;
    }

    /// New calls prefer others. Nobody is left out for that: where there is no other, the holder is asked.
    pub fn is_overtaken(&self, now: Millis) -> bool {
        self.since.is_some_and(|since| now.0 - since.0 < AVOIDED_MILLIS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_holder_is_avoided_for_a_while_and_not_for_ever() {
        let mut lateness = Lateness::default();
        assert!(!lateness.is_overtaken(Millis(0.0)));
        lateness.is_late(Millis(100.0));
        lateness.is_late(Millis(4_000.0));
        assert!(lateness.is_overtaken(Millis(AVOIDED_MILLIS)));
        assert!(!lateness.is_overtaken(Millis(AVOIDED_MILLIS + 100.0)), "further late calls do not make it longer");
        lateness.is_late(Millis(20_000.0));
        assert!(lateness.is_overtaken(Millis(20_000.0)), "it was asked again, and is late again");
    }

    #[test]
    fn a_holder_that_others_overtake_every_time_has_to_show_that_it_is_there() {
        let mut lateness = Lateness::default();
        (1..UNANSWERED).for_each(|_| lateness.given_up());
        assert!(!lateness.has_to_show(Millis(10.0)));
        lateness.given_up();
        assert!(lateness.has_to_show(Millis(10.0)) && !lateness.is_overtaken(Millis(10.0)), "it may be there");
    }

    #[test]
    fn a_timer_expires_once_and_not_for_who_was_held_up_itself() {
        let mut timer = LateTimer::start(Millis(100.0), Some(20.0));
        assert_eq!((timer.expires(Millis(119.0)), timer.at()), (false, Some(Millis(120.0))));
        assert!(timer.expires(Millis(120.0)) && timer.is_expired());
        assert!(!timer.expires(Millis(121.0)), "once");
        timer.stop();
        assert!(timer.is_expired(), "it was late");
        let mut timer = LateTimer::start(Millis(100.0), Some(20.0));
        assert!(!timer.expires(Millis(141.0)), "nobody looked for 21 ms");
        assert_eq!(timer.at(), Some(Millis(161.0)));
        timer.stop();
        assert!(!timer.expires(Millis(161.0)) && !timer.is_expired());
    }

    #[test]
    fn a_call_is_late_after_twice_what_its_holder_takes() {
        assert_eq!(late_after(30.0), 60.0);
        assert_eq!(late_after(0.1), MIN_LATE_MILLIS, "timers are not more exact");
    }
}
