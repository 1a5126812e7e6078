//! When a page starts its node worker again: a state machine that the page half feeds and obeys.
//!
//! A worker dies in three ways: it reports an error, it answers no more, or it never starts: its program cannot be loaded, or the
//! browser does not go on with it.

/// Milliseconds between two checks of the worker.
pub const CHECK_INTERVAL: i32 = 4_000;
/// Unanswered checks after which it counts as dead: twenty seconds, longer than any work between two events.
const MAX_MISSED: u32 = 5;
/// Checks that its start may take: half a minute, and twice as long after each start that took too long. A slow line gets as far as
/// it must.
const MAX_STARTING: u32 = 8;
const MAX_DOUBLINGS: u32 = 5;
/// Deaths within [`DEATH_SPAN`] milliseconds after which it is not started again.
const MAX_DEATHS: usize = 4;
const DEATH_SPAN: f64 = 120_000.0;
/// Milliseconds before it is started after its second death; twice as long after each further one.
const PAUSE: i32 = 1_000;

/// What to do at a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// It has time.
    Wait,
    /// Ask it for a sign of life.
    Ask,
    /// It counts as dead.
    Dead,
}

/// What to do after a death.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Death {
    /// It had worked: start it again after so many milliseconds.
    Stopped(i32),
    /// It had never worked: start it again after so many milliseconds.
    NotStarted(i32),
    /// It dies too often.
    TooOften,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// There is none.
    #[default]
    None,
    Starting,
    Up,
}

/// What a page knows of its worker's life.
#[derive(Debug, Default)]
pub struct Supervision {
    phase: Phase,
    /// Checks since it was last heard of.
    missed: u32,
    /// Starts in a row that took too long.
    slow_starts: u32,
    deaths: Vec<f64>,
}

impl Supervision {
    /// The worker begins to start.
    pub fn starts(&mut self) {
        (self.phase, self.missed) = (Phase::Starting, 0);
    }

    /// The worker works.
    pub fn is_up(&mut self) {
        self.phase = Phase::Up;
        self.slow_starts = 0;
    }

    /// The worker was heard of.
    pub fn heard(&mut self) {
        self.missed = 0;
    }

    /// To be called every [`CHECK_INTERVAL`]. Checks are counted, not seconds: a tab that slept finds no worker dead.
    pub fn check(&mut self) -> Check {
        self.missed += 1;
        match self.phase {
            Phase::Starting if self.missed > MAX_STARTING << self.slow_starts.min(MAX_DOUBLINGS) => {
                self.slow_starts += 1;
                Check::Dead
            }
            Phase::Up if self.missed > MAX_MISSED => Check::Dead,
            Phase::Up => Check::Ask,
            Phase::None | Phase::Starting => Check::Wait,
        }
    }

    /// The worker died, at this time in milliseconds.
    pub fn died(&mut self, now: f64) -> Death {
        let was = std::mem::take(&mut self.phase);
        self.deaths.retain(|then| now - then < DEATH_SPAN);
        self.deaths.push(now);
        let deaths = self.deaths.len();
        let pause = if deaths > 1 { PAUSE << (deaths - 2).min(MAX_DEATHS) } else { 0 };
        match was {
            _ if deaths > MAX_DEATHS => Death::TooOften,
            Phase::Up => Death::Stopped(pause),
            Phase::None | Phase::Starting => Death::NotStarted(pause),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn up() -> Supervision {
        let mut supervision = Supervision::default();
        supervision.starts();
        supervision.is_up();
        supervision
    }

    /// Checks until one finds it dead.
    fn checks(supervision: &mut Supervision) -> usize {
        1 + std::iter::from_fn(|| (supervision.check() != Check::Dead).then_some(())).take(10_000).count()
    }

    #[test]
    fn a_worker_that_answers_lives_and_one_that_does_not_is_dead_after_twenty_seconds() {
        let mut supervision = up();
        for _ in 0..1_000 {
            assert_eq!(supervision.check(), Check::Ask);
            supervision.heard();
        }
        assert_eq!(checks(&mut supervision), 6);
        assert_eq!(supervision.died(0.0), Death::Stopped(0));
        assert_eq!(supervision.check(), Check::Wait, "there is none to be asked");
    }

    #[test]
    fn a_worker_that_never_starts_is_started_again_and_gets_twice_the_time() {
        let mut supervision = Supervision::default();
        let mut now = 0.0;
        for limit in [9, 17, 33, 65] {
            supervision.starts();
            assert_eq!(checks(&mut supervision), limit);
            now += limit as f64 * f64::from(CHECK_INTERVAL);
            assert!(matches!(supervision.died(now), Death::NotStarted(_)), "a slow line is no reason to give up");
        }
        supervision.starts();
        supervision.is_up();
        supervision.died(now + 1e6);
        supervision.starts();
        assert_eq!(checks(&mut supervision), 9, "once it has worked, it has the time of a first start again");
    }

    #[test]
    fn it_is_started_at_once_then_later_and_later_then_no_more() {
        let mut supervision = Supervision::default();
        let mut pauses = Vec::new();
        for at in 0..4 {
            supervision.starts();
            pauses.push(supervision.died(f64::from(at)));
        }
        assert_eq!(pauses, [0, 1_000, 2_000, 4_000].map(Death::NotStarted));
        assert_eq!(supervision.died(5.0), Death::TooOften);
        supervision.starts();
        supervision.is_up();
        assert_eq!(supervision.died(DEATH_SPAN * 2.0), Death::Stopped(0), "what was long ago does not count");
    }
}
