//! Reports the progress of a load.

use std::cell::{Cell, RefCell};

use potluck_plan::{Bytes, Millis};
use potluck_protocol::{LoadPhase, LoadReport};

use crate::platform::Platform;

/// Minimum time between two reports, in milliseconds.
const REPORT_INTERVAL: f64 = 200.0;

/// A moving average of bytes a second.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rate {
    last: Option<(f64, u64)>,
    mean: f64,
}

impl Rate {
    /// Adds a reading: `done` bytes in all by `now`. Readings less than 100 ms apart are merged. Returns the average.
    pub fn add(&mut self, now: Millis, done: u64) -> f64 {
        match self.last {
            None => self.last = Some((now.0, done)),
            Some((then, before)) if now.0 - then >= 100.0 => {
                let seconds = (now.0 - then) / 1000.0;
                let rate = done.saturating_sub(before) as f64 / seconds;
                // A time constant of two seconds, however far apart the readings are.
                let weight = 1.0 - (-seconds / 2.0).exp();
                self.mean = if self.mean == 0.0 { rate } else { self.mean + weight * (rate - self.mean) };
                self.last = Some((now.0, done));
            }
            Some(_) => {}
        }
        self.mean
    }
}

/// Receives the progress of a load, and how many bytes it uses on the GPU.
pub type Listener = Box<dyn Fn(LoadReport, Bytes)>;

/// Tracks and reports a load's progress.
pub struct Progress {
    platform: Platform,
    listener: Listener,
    report: RefCell<LoadReport>,
    rate: Cell<Rate>,
    used: Cell<Bytes>,
    last_report: Cell<f64>,
    /// What runs in parallel with the transfer.
    beside: Cell<Option<LoadPhase>>,
    /// The transfer is complete.
    complete: Cell<bool>,
}

impl Progress {
    /// For one load.
    pub fn new(platform: Platform, listener: Listener) -> Self {
        let report =
            LoadReport { phase: LoadPhase::Find, done: Bytes(0), total: Bytes(0), rate: 0.0, cached: Bytes(0) };
        Self {
            platform,
            listener,
            report: RefCell::new(report),
            rate: Cell::default(),
            used: Cell::default(),
            last_report: Cell::new(f64::MIN),
            beside: Cell::default(),
            complete: Cell::default(),
        }
    }

    /// A phase without bytes begins.
    pub fn phase(&self, phase: LoadPhase) {
        {
            let mut report = self.report.borrow_mut();
            *report = LoadReport { phase, done: Bytes(0), total: Bytes(0), rate: 0.0, ..*report };
        }
        self.report_now();
    }

    /// The transfer begins.
    pub fn start(&self, phase: LoadPhase, total: Bytes, cached: Bytes) {
        *self.report.borrow_mut() = LoadReport { phase, done: Bytes(0), total, rate: 0.0, cached };
        self.rate.set(Rate::default());
        self.complete.set(false);
        self.report_now();
    }

    /// A phase begins in parallel with the transfer. It is reported once the transfer is complete.
    pub fn beside(&self, phase: LoadPhase) {
        self.beside.set(Some(phase));
        if self.complete.get() {
            self.phase(phase);
        }
    }

    /// The transfer is complete; from now on what runs in parallel is reported.
    pub fn complete(&self) {
        self.complete.set(true);
        if let Some(phase) = self.beside.get() {
            self.phase(phase);
        }
    }

    /// More bytes were transferred.
    pub fn done(&self, bytes: u64) {
        let now = self.platform.clock.now();
        {
            let mut report = self.report.borrow_mut();
            report.done = report.done.saturating_add(Bytes(bytes));
            let mut rate = self.rate.get();
            report.rate = rate.add(now, report.done.0);
            self.rate.set(rate);
        }
        if now.0 - self.last_report.get() >= REPORT_INTERVAL {
            self.report_now();
        }
    }

    /// Sets how many bytes the load uses on the GPU.
    pub fn used(&self, used: Bytes) {
        self.used.set(used);
    }

    fn report_now(&self) {
        self.last_report.set(self.platform.clock.now().0);
        let (report, used) = (*self.report.borrow(), self.used.get());
        (self.listener)(report, used);
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;

    #[test]
    fn the_rate_follows_a_change_within_seconds() {
        let mut rate = Rate::default();
        let mut done = 0;
        for tick in 0..50 {
            done += 100_000;
            rate.add(Millis(f64::from(tick) * 100.0), done);
        }
        assert!((rate.mean - 1e6).abs() < 1e3, "a steady million a second");
        for tick in 50..150 {
            done += 10_000;
            rate.add(Millis(f64::from(tick) * 100.0), done);
        }
        assert!(rate.mean < 1.2e5, "ten seconds later it is about a tenth: {}", rate.mean);
    }

    #[tokio::test]
    async fn a_parallel_phase_is_reported_once_the_transfer_is_complete() {
        let reported: Rc<RefCell<Vec<LoadPhase>>> = Rc::default();
        let sink = reported.clone();
        let platform = crate::native::platform(std::env::temp_dir(), &crate::native::Network::default());
        let progress = Progress::new(platform, Box::new(move |report, _| sink.borrow_mut().push(report.phase)));
        progress.start(LoadPhase::Upload, Bytes(10), Bytes(10));
        progress.beside(LoadPhase::Kernels);
        assert_eq!(*reported.borrow(), [LoadPhase::Upload], "the transfer says more");
        progress.complete();
        progress.beside(LoadPhase::SelfTest);
        assert_eq!(*reported.borrow(), [LoadPhase::Upload, LoadPhase::Kernels, LoadPhase::SelfTest]);
    }
}
