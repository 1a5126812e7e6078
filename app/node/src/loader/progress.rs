//! How far a load is.

use std::cell::{Cell, RefCell};

use potluck_plan::{Bytes, Millis};
use potluck_protocol::{LoadPhase, LoadReport};

use crate::platform::Platform;

/// Reports are at least so far apart, in milliseconds.
const PAUSE: f64 = 200.0;

/// A running mean of bytes a second.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rate {
    last: Option<(f64, u64)>,
    mean: f64,
}

impl Rate {
    /// `done` bytes at a moment, in milliseconds; readings less than 100 ms apart are put together.
    pub fn add(&mut self, now: Millis, done: u64) -> f64 {
        match self.last {
            None => self.last = Some((now.0, done)),
            Some((then, before)) if now.0 - then >= 100.0 => {
                let seconds = (now.0 - then) / 1000.0;
                let rate = done.saturating_sub(before) as f64 / seconds;
                // A time constant of about two seconds, whatever the distance of the readings.
                let weight = 1.0 - (-seconds / 2.0).exp();
                self.mean = if self.mean == 0.0 { rate } else { self.mean + weight * (rate - self.mean) };
                self.last = Some((now.0, done));
            }
            Some(_) => {}
        }
        self.mean
    }
}

/// Hears how far a load is, and how many bytes it uses on the GPU.
pub type Listener = Box<dyn Fn(LoadReport, Bytes)>;

/// Reports a load's progress.
pub struct Progress {
    platform: Platform,
    listener: Listener,
    report: RefCell<LoadReport>,
    rate: Cell<Rate>,
    used: Cell<Bytes>,
    told: Cell<f64>,
    /// What goes on beside the bytes.
    beside: Cell<Option<LoadPhase>>,
    /// All bytes are there.
    complete: Cell<bool>,
}

impl Progress {
    /// Of one load.
    pub fn new(platform: Platform, listener: Listener) -> Self {
        let report =
            LoadReport { phase: LoadPhase::Find, done: Bytes(0), total: Bytes(0), rate: 0.0, cached: Bytes(0) };
        Self {
            platform,
            listener,
            report: RefCell::new(report),
            rate: Cell::default(),
            used: Cell::default(),
            told: Cell::new(f64::MIN),
            beside: Cell::default(),
            complete: Cell::default(),
        }
    }

    /// A phase without bytes.
    pub fn phase(&self, phase: LoadPhase) {
        {
            let mut report = self.report.borrow_mut();
            *report = LoadReport { phase, done: Bytes(0), total: Bytes(0), rate: 0.0, ..*report };
        }
        self.tell();
    }

    /// The phase with all the bytes.
    pub fn start(&self, phase: LoadPhase, total: Bytes, cached: Bytes) {
        *self.report.borrow_mut() = LoadReport { phase, done: Bytes(0), total, rate: 0.0, cached };
        self.rate.set(Rate::default());
        self.complete.set(false);
        self.tell();
    }

    /// A phase beside that with the bytes: of interest once they are all there.
    pub fn beside(&self, phase: LoadPhase) {
        self.beside.set(Some(phase));
        if self.complete.get() {
            self.phase(phase);
        }
    }

    /// All bytes are there; what goes on beside them is what is waited for.
    pub fn complete(&self) {
        self.complete.set(true);
        if let Some(phase) = self.beside.get() {
            self.phase(phase);
        }
    }

    /// More bytes are there.
    pub fn done(&self, bytes: u64) {
        let now = self.platform.clock.now();
        {
            let mut report = self.report.borrow_mut();
            report.done = report.done.saturating_add(Bytes(bytes));
            let mut rate = self.rate.get();
            report.rate = rate.add(now, report.done.0);
            self.rate.set(rate);
        }
        if now.0 - self.told.get() >= PAUSE {
            self.tell();
        }
    }

    /// Bytes on the GPU.
    pub fn used(&self, used: Bytes) {
        self.used.set(used);
    }

    fn tell(&self) {
        self.told.set(self.platform.clock.now().0);
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
    async fn what_goes_on_beside_the_bytes_is_told_when_they_are_there() {
        let told: Rc<RefCell<Vec<LoadPhase>>> = Rc::default();
        let heard = told.clone();
        let platform = crate::native::platform(std::env::temp_dir(), false);
        let progress = Progress::new(platform, Box::new(move |report, _| heard.borrow_mut().push(report.phase)));
        progress.start(LoadPhase::Upload, Bytes(10), Bytes(10));
        progress.beside(LoadPhase::Kernels);
        assert_eq!(*told.borrow(), [LoadPhase::Upload], "bytes tell more");
        progress.complete();
        progress.beside(LoadPhase::SelfTest);
        assert_eq!(*told.borrow(), [LoadPhase::Upload, LoadPhase::Kernels, LoadPhase::SelfTest]);
    }
}
