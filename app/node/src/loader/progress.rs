//! Reports the progress of a load.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::pin::pin;
use std::rc::{Rc, Weak};

use futures::future::{Either, select};
use potluck_plan::{Bytes, Millis};
use potluck_protocol::{LoadPhase, LoadReport};

use crate::platform::{Platform, Traffic};

/// Minimum time between two reports, in milliseconds.
const REPORT_INTERVAL: f64 = 200.0;
/// Milliseconds between two looks at what has arrived.
const LOOK_INTERVAL: f64 = 500.0;

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

/// Bytes on their way. Those that have arrived count as done before they are uploaded: on a slow line a read takes minutes.
pub struct Arriving {
    /// Counts them.
    pub count: Traffic,
    /// Bytes that are not uploaded yet.
    left: Cell<u64>,
}

impl Arriving {
    fn bytes(&self) -> u64 {
        self.count.bytes().min(self.left.get())
    }
}

/// Tracks and reports a load's progress.
pub struct Progress {
    platform: Platform,
    listener: Listener,
    report: RefCell<LoadReport>,
    /// Bytes of this phase that are uploaded.
    uploaded: Cell<u64>,
    arriving: RefCell<Vec<Weak<Arriving>>>,
    /// Everything that this node receives: nothing else counts headers and hashes.
    traffic: Traffic,
    /// What it had received before this phase.
    received_before: Cell<u64>,
    rate: Cell<Rate>,
    used: Cell<Bytes>,
    last_report: Cell<f64>,
    /// Bytes that the last report said were done.
    reported: Cell<Bytes>,
    /// What runs in parallel with the transfer.
    beside: Cell<Option<LoadPhase>>,
    /// The transfer is complete.
    complete: Cell<bool>,
}

impl Progress {
    /// For one load.
    pub fn new(platform: Platform, listener: Listener) -> Self {
        let report = LoadReport {
            phase: LoadPhase::Find,
            done: Bytes(0),
            total: Bytes(0),
            rate: 0.0,
            cached: Bytes(0),
            waits: 0,
        };
        Self {
            platform,
            listener,
            report: RefCell::new(report),
            uploaded: Cell::default(),
            arriving: RefCell::default(),
            traffic: Traffic::default(),
            received_before: Cell::default(),
            rate: Cell::default(),
            used: Cell::default(),
            last_report: Cell::new(f64::MIN),
            reported: Cell::default(),
            beside: Cell::default(),
            complete: Cell::default(),
        }
    }

    /// Counts what this node receives while [`LoadPhase::Find`] lasts.
    #[must_use]
    pub fn counting(self, traffic: Traffic) -> Self {
        Self { traffic, ..self }
    }

    /// A phase begins that has no known number of bytes.
    pub fn phase(&self, phase: LoadPhase) {
        self.received_before.set(self.traffic.bytes());
        {
            let mut report = self.report.borrow_mut();
            *report = LoadReport { phase, done: Bytes(0), total: Bytes(0), rate: 0.0, waits: 0, ..*report };
        }
        self.report_now();
    }

    /// The transfer begins.
    pub fn start(&self, phase: LoadPhase, total: Bytes, cached: Bytes) {
        *self.report.borrow_mut() = LoadReport { phase, done: Bytes(0), total, rate: 0.0, cached, waits: 0 };
        self.uploaded.set(0);
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

    /// Bytes are going to arrive.
    pub fn arriving(&self, bytes: u64) -> Rc<Arriving> {
        let arriving = Rc::new(Arriving { count: Traffic::default(), left: Cell::new(bytes) });
        let mut all = self.arriving.borrow_mut();
        all.retain(|one| one.strong_count() > 0);
        all.push(Rc::downgrade(&arriving));
        arriving
    }

    /// More bytes were uploaded, of those that have arrived if they came from elsewhere.
    pub fn done(&self, bytes: u64, arrived: Option<&Arriving>) {
        if let Some(arrived) = arrived {
            arrived.left.set(arrived.left.get().saturating_sub(bytes));
        }
        self.uploaded.set(self.uploaded.get() + bytes);
        self.recount();
        if self.platform.clock.now().0 - self.last_report.get() >= REPORT_INTERVAL {
            self.report_now();
        }
    }

    /// Does some work, and reports meanwhile what arrives.
    pub async fn watch<T>(&self, work: impl Future<Output = T>) -> T {
        match select(pin!(work), pin!(self.look_often())).await {
            Either::Left((done, _)) => done,
            Either::Right((never, _)) => match never {},
        }
    }

    async fn look_often(&self) -> Infallible {
        loop {
            self.platform.clock.sleep(LOOK_INTERVAL).await;
            self.look();
        }
    }

    /// Reports what has arrived since the last report, and how long its server lets this device wait. If neither has changed it says
    /// nothing: a report is a sign of life.
    fn look(&self) {
        self.recount();
        let waits = self.traffic.waits(self.platform.clock.now()).unwrap_or(0);
        let waits = u16::try_from(waits).unwrap_or(u16::MAX);
        let before = std::mem::replace(&mut self.report.borrow_mut().waits, waits);
        if before != waits || self.report.borrow().done != self.reported.get() {
            self.report_now();
        }
    }

    /// Counts the bytes that are done. They never become fewer: what has to be fetched again does not count before there is more of it.
    fn recount(&self) {
        let mut report = self.report.borrow_mut();
        let counted = match report.phase {
            LoadPhase::Find => self.traffic.bytes().saturating_sub(self.received_before.get()),
            _ => self.uploaded.get().saturating_add(self.arrived()).min(report.total.0),
        };
        let done = counted.max(report.done.0);
        let mut rate = self.rate.get();
        let mean = rate.add(self.platform.clock.now(), done);
        self.rate.set(rate);
        if done > report.done.0 {
            (report.done, report.rate) = (Bytes(done), mean);
        }
    }

    /// Bytes that have arrived and are not uploaded yet.
    fn arrived(&self) -> u64 {
        self.arriving.borrow().iter().filter_map(Weak::upgrade).map(|one| one.bytes()).sum()
    }

    /// Sets how many bytes the load uses on the GPU.
    pub fn used(&self, used: Bytes) {
        self.used.set(used);
    }

    fn report_now(&self) {
        self.last_report.set(self.platform.clock.now().0);
        let (report, used) = (*self.report.borrow(), self.used.get());
        self.reported.set(report.done);
        (self.listener)(report, used);
    }
}

#[cfg(test)]
mod tests;
