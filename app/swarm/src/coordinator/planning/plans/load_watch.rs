//! Whether a device still loads: bytes must arrive at a minimum rate, and no load may last for ever.

use potluck_plan::{Bytes, Millis};
use potluck_protocol::{LoadPhase, LoadReport};

/// A load that does not get further in this time will not end: it may wait for something forever. Long, because compiling
/// kernels on a loaded machine shows no progress for a while.
const STUCK_MILLIS: f64 = 120_000.0;
/// Bytes that must arrive in that time, 9 kB a second. At less, a model takes days.
const LEAST_PROGRESS: u64 = 1 << 20;
/// Of a part that is smaller than 64 of those, such a share must arrive.
const LEAST_SHARE: u64 = 64;
/// A device may say for so long at a stretch that its model's server lets it wait: three windows of five minutes, and some.
const LONGEST_WAIT_MILLIS: f64 = 20.0 * 60e3;
/// And for so long in all: by its word alone, it holds up whoever else waits for the plan.
const MOST_WAITING_MILLIS: f64 = 60.0 * 60e3;
/// No load lasts longer, whatever its device reports. An honest device has stored what it could, and goes on from there.
const LONGEST_MILLIS: f64 = 24.0 * 3_600e3;

/// Watches a device's load by its reports.
pub(in crate::coordinator::planning) struct LoadWatch {
    began: Millis,
    /// How far it was when it last got further, and when that was.
    phase: Option<LoadPhase>,
    done: Bytes,
    since: Millis,
    /// Since when its server lets it wait.
    waits_since: Option<Millis>,
    /// When it was last said that it waits, unless something else was said since.
    waited_at: Option<Millis>,
    /// Milliseconds that it has waited in all.
    waited: f64,
}

impl LoadWatch {
    /// The load begins.
    pub fn new(now: Millis) -> Self {
        Self { began: now, phase: None, done: Bytes::ZERO, since: now, waits_since: None, waited_at: None, waited: 0.0 }
    }

    /// Takes note of what the device reports now. True if the load will not end.
    pub fn is_stuck(&mut self, report: Option<LoadReport>, now: Millis) -> bool {
        let (phase, done) = (report.map(|report| report.phase), report.map_or(Bytes::ZERO, |report| report.done));
        // A load that does not fit beside the active plan is begun again, and kernels are tested again after they were tuned.
        let begun_again = phase != self.phase || done < self.done;
        if begun_again || done >= self.done.saturating_add(self.least(report)) {
            (self.phase, self.done, self.since, self.waits_since) = (phase, done, now, None);
        }
        if report.is_some_and(|report| report.waits > 0) {
            let waits_since = *self.waits_since.get_or_insert(now);
            self.waited += now.0 - self.waited_at.replace(now).unwrap_or(now).0;
            if now.0 - waits_since.0 < LONGEST_WAIT_MILLIS && self.waited < MOST_WAITING_MILLIS {
                self.since = now;
            }
        } else {
            self.waited_at = None;
        }
        now.0 - self.since.0 >= STUCK_MILLIS || now.0 - self.began.0 >= LONGEST_MILLIS
    }

    /// Bytes that must arrive next, of what is left.
    fn least(&self, report: Option<LoadReport>) -> Bytes {
        let total = report.map_or(0, |report| report.total.0);
        if total == 0 {
            return Bytes(LEAST_PROGRESS);
        }
        let left = total.saturating_sub(self.done.0);
        Bytes(LEAST_PROGRESS.min(total / LEAST_SHARE).min(left).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const HOUR: f64 = 3_600.0;

    fn downloading(done: u64, total: u64) -> LoadReport {
        LoadReport { done: Bytes(done), total: Bytes(total), ..LoadReport::begin(LoadPhase::Download) }
    }

    /// The second in which a load is found stuck; `report` says what its device reports in each. `None`: not within 30 hours.
    fn stuck_at(report: impl Fn(u64) -> LoadReport) -> Option<u64> {
        let mut watch = LoadWatch::new(Millis(0.0));
        (0..(30.0 * HOUR) as u64).find(|&second| watch.is_stuck(Some(report(second)), Millis(second as f64 * 1e3)))
    }

    /// The same for so many bytes every so many seconds.
    fn stuck_with(bytes: u64, seconds: u64, total: u64) -> Option<u64> {
        stuck_at(|second| match (second / seconds).saturating_mul(bytes) {
            done if done < total => downloading(done, total),
            _ => LoadReport::begin(if second % 200 < 100 { LoadPhase::Kernels } else { LoadPhase::SelfTest }),
        })
        .filter(|&second| second < (24.0 * HOUR) as u64)
    }

    #[test]
    fn a_slow_line_is_waited_for_and_a_trickle_is_not() {
        let (large, small) = (600 * MIB, 6_400);
        assert_eq!(stuck_with(MIB, 119, large), None, "a megabyte in two minutes is enough");
        assert_eq!(stuck_with(MIB / 119, 1, large), None, "also in small pieces");
        assert_eq!(stuck_with(MIB / 2, 119, large), Some(120), "half of that is not");
        assert_eq!(stuck_with(1, 1, large), Some(120), "a byte a second is not");
        assert_eq!(stuck_with(100, 119, small), None, "of a small part a sixty-fourth is enough");
        assert_eq!(stuck_with(50, 119, small), Some(120));
    }

    #[test]
    fn the_last_bytes_are_fewer_than_the_least_progress() {
        let mut watch = LoadWatch::new(Millis(0.0));
        let total = 100 * MIB;
        assert!(!watch.is_stuck(Some(downloading(total - 9, total)), Millis(0.0)));
        assert!(!watch.is_stuck(Some(downloading(total, total)), Millis(119e3)));
        assert!(!watch.is_stuck(Some(downloading(total, total)), Millis(238e3)), "it was complete two minutes ago");
        assert!(watch.is_stuck(Some(downloading(total, total)), Millis(239e3)));
    }

    #[test]
    fn what_has_no_length_must_arrive_at_the_same_rate() {
        let finding = |done| LoadReport { done: Bytes(done), ..LoadReport::begin(LoadPhase::Find) };
        assert_eq!(stuck_at(|_| finding(0)), Some(120), "nothing comes");
        assert_eq!(stuck_at(|second| finding(second * 4_000)), Some(120), "too little comes");
        assert_eq!(stuck_at(|second| finding(second * 10_000)), Some((24.0 * HOUR) as u64), "a long header");
    }

    /// What a device reports that gets a hundredth of its part and then waits for so many seconds.
    fn waiting(second: u64, seconds: u64) -> LoadReport {
        let round = seconds + 1;
        let waits = if second.is_multiple_of(round) { 0 } else { (round - second % round) as u16 };
        LoadReport { waits, ..downloading((1 + second / round) * 20 * MIB, u64::MAX) }
    }

    #[test]
    fn a_server_that_lets_a_device_wait_is_waited_for() {
        let windows = stuck_at(|second| waiting(second, 300));
        assert!(windows > Some(3_600), "a window of five minutes, again and again: {windows:?}");
        assert!(windows < Some(2 * 3_600), "but not all day: {windows:?}");
        let day = Some((24.0 * HOUR) as u64);
        let short = |second| if second < 35 * 60 { waiting(second, 300) } else { waiting(second / 60 * 301, 300) };
        assert_eq!(stuck_at(short), day, "what was waited for counts no more once the server sends");
        let longest = (LONGEST_WAIT_MILLIS / 1e3) as u64;
        let patience = (STUCK_MILLIS / 1e3) as u64;
        let only_waits = LoadReport { waits: 9, ..downloading(0, 10 * MIB) };
        assert_eq!(stuck_at(|_| only_waits), Some(longest + patience - 1), "but not for ever");
    }

    #[test]
    fn a_device_that_says_nothing_is_stuck() {
        let mut watch = LoadWatch::new(Millis(0.0));
        assert!(!watch.is_stuck(None, Millis(119e3)));
        assert!(watch.is_stuck(None, Millis(120e3)));
    }

    #[test]
    fn a_load_that_is_begun_again_gets_its_time_again() {
        let mut watch = LoadWatch::new(Millis(0.0));
        assert!(!watch.is_stuck(Some(downloading(9 * MIB, 10 * MIB)), Millis(0.0)));
        assert!(!watch.is_stuck(Some(downloading(0, 10 * MIB)), Millis(100e3)));
        assert!(!watch.is_stuck(Some(downloading(0, 10 * MIB)), Millis(219e3)));
        assert!(watch.is_stuck(Some(downloading(0, 10 * MIB)), Millis(220e3)));
    }

    #[test]
    fn whoever_only_pretends_to_get_further_is_given_up_after_a_day() {
        let day = Some((24.0 * HOUR) as u64);
        let phases = [LoadPhase::Kernels, LoadPhase::SelfTest];
        assert_eq!(stuck_at(|second| LoadReport::begin(phases[second as usize % 2])), day, "to and fro");
        assert_eq!(stuck_at(|second| downloading((second % 2) * MIB, 10 * MIB)), day, "up and down");
        assert_eq!(stuck_at(|second| downloading(second * MIB, u64::MAX)), day, "a part without end");
        assert_eq!(stuck_at(|second| downloading(u64::MAX - 1 + second % 2, 1)), day, "more than all");
    }
}
