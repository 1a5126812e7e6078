//! A slower device: the GPU repeats every piece of work before its result counts, or outputs of experts wait.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::rc::Rc;

use potluck_engine::{Engine, EngineError};
use potluck_node::platform::{Clock, ComputeInterceptor, Measured, Receiver, Spawn, WorkPath};
use potluck_plan::{Computed, Outcome, Task, Ticket, Work};

use super::delay::Hesitation;

/// Tickets from here on are repetitions; nobody waits for their results.
const FIRST_REPETITION: u64 = 1 << 63;

/// How a device computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Every piece of work runs so many times.
    Times(NonZeroU32),
    /// At full speed, but calls of experts are answered with zeros.
    NoExperts,
}

impl Pace {
    /// So many times; with 0 no experts are computed.
    pub fn of(times: u32) -> Self {
        NonZeroU32::new(times).map_or(Self::NoExperts, Self::Times)
    }

    fn times(self) -> u32 {
        match self {
            Self::Times(times) => times.get(),
            Self::NoExperts => 1,
        }
    }
}

/// Slows a device down.
pub struct SlowDevice {
    pace: Pace,
    /// How long outputs of experts wait, each for itself.
    hesitation: Option<Hesitation>,
    clock: Rc<dyn Clock>,
    spawn: Rc<dyn Spawn>,
    next: Cell<u64>,
    /// Milliseconds from the first repetition's submission to that of the work itself, until its result arrives.
    head_starts: Rc<RefCell<BTreeMap<Ticket, f64>>>,
}

impl SlowDevice {
    /// A device that computes so, and whose outputs of experts wait so long.
    pub fn new(pace: Pace, hesitation: Option<Hesitation>, clock: Rc<dyn Clock>, spawn: Rc<dyn Spawn>) -> Self {
        Self { pace, hesitation, clock, spawn, next: Cell::default(), head_starts: Rc::default() }
    }

    /// Submits the repetitions of work; the work itself follows. Tokens may be computed again at any time: their KV cache
    /// entries are overwritten.
    fn repeat(&self, engine: &Engine, work: &Work) {
        let started = self.clock.now().0;
        for _ in 1..self.pace.times() {
            let number = self.next.replace(self.next.get() + 1);
            let again = Work { ticket: Ticket(FIRST_REPETITION + number), task: work.task.clone() };
            // If this is refused, the work itself is refused too, with its own ticket.
            let _ = engine.submit(again);
        }
        if self.pace.times() > 1 {
            self.head_starts.borrow_mut().insert(work.ticket, self.clock.now().0 - started);
        }
    }
}

impl ComputeInterceptor for SlowDevice {
    fn room(&self, next: WorkPath) -> WorkPath {
        let results: Rc<dyn Fn(Computed)> = match self.hesitation.clone() {
            None => next.results,
            Some(hesitation) => {
                let (spawn, deliver) = (self.spawn.clone(), next.results);
                Rc::new(move |computed: Computed| match computed.outcome {
                    Outcome::ExpertOutputs(_) => {
                        let (wait, deliver) = (hesitation(), deliver.clone());
                        spawn.spawn(Box::pin(async move {
                            wait.await;
                            deliver(computed);
                        }));
                    }
                    _ => deliver(computed),
                })
            }
        };
        let submit: Rc<dyn Fn(Work)> = match self.pace {
            Pace::Times(_) => next.submit,
            Pace::NoExperts => {
                let (submit, answer) = (next.submit, results.clone());
                Rc::new(move |work: Work| match zeros(&work.task) {
                    Some(outcome) => answer(Computed { ticket: work.ticket, outcome, millis: 0.0 }),
                    None => submit(work),
                })
            }
        };
        WorkPath { submit, results }
    }

    fn submit(&self, engine: &Engine, work: Work) -> Result<(), EngineError> {
        self.repeat(engine, &work);
        engine.submit(work)
    }

    fn results(&self, next: Receiver) -> Receiver {
        let head_starts = self.head_starts.clone();
        Box::new(move |mut computed| {
            if computed.ticket.0 < FIRST_REPETITION {
                computed.millis += head_starts.borrow_mut().remove(&computed.ticket).unwrap_or(0.0);
                next(computed);
            }
        })
    }

    fn measured(&self, measured: Measured) -> Measured {
        let times = f64::from(self.pace.times());
        Measured { bandwidth: measured.bandwidth / times, sync_millis: measured.sync_millis * times }
    }

    fn device(&self, adapter: String) -> String {
        match self.pace.times() {
            1 => adapter,
            times => format!("{adapter}, {times} times"),
        }
    }
}

/// Zeros instead of the outputs of experts.
fn zeros(task: &Task) -> Option<Outcome> {
    let Task::Experts { normed, experts, .. } = task else { return None };
    let width = normed.len() / experts.len().max(1);
    let vectors: usize = experts.iter().map(Vec::len).sum();
    Some(Outcome::ExpertOutputs(vec![0.0; vectors * width]))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use potluck_node::native::{LocalSpawn, MonotonicClock};
    use potluck_plan::{BlockIndex, ExpertId, KernelClass};

    use super::*;

    fn device(pace: Pace) -> SlowDevice {
        SlowDevice::new(pace, None, Rc::new(MonotonicClock::default()), Rc::new(LocalSpawn))
    }

    fn call(ticket: u64) -> Work {
        let (block, class) = (BlockIndex(0), KernelClass::Decode);
        let task = Task::Experts {
            block,
            class,
            normed: vec![1.0; 4],
            experts: vec![vec![ExpertId(1), ExpertId(2)]],
            sum: None,
        };
        Work { ticket: Ticket(ticket), task }
    }

    /// The way through a device, and what comes out at both ends.
    struct Through {
        path: WorkPath,
        begun: Rc<RefCell<Vec<Work>>>,
        ended: Rc<RefCell<Vec<Computed>>>,
    }

    fn through(device: &SlowDevice) -> Through {
        let (begun, ended) = (Rc::<RefCell<Vec<Work>>>::default(), Rc::<RefCell<Vec<Computed>>>::default());
        let (work, results) = (begun.clone(), ended.clone());
        let path = device.room(WorkPath {
            submit: Rc::new(move |item| work.borrow_mut().push(item)),
            results: Rc::new(move |item| results.borrow_mut().push(item)),
        });
        Through { path, begun, ended }
    }

    #[test]
    fn a_device_without_experts_answers_calls_with_zeros_and_computes_the_rest() {
        let Through { path, begun, ended } = through(&device(Pace::of(0)));
        (path.submit)(call(7));
        assert!(begun.borrow().is_empty());
        assert_eq!(ended.borrow()[0].outcome, Outcome::ExpertOutputs(vec![0.0; 8]), "two vectors of width 4");
        let Through { path, begun, .. } = through(&device(Pace::of(3)));
        (path.submit)(call(8));
        assert_eq!(begun.borrow().len(), 1, "slower, not without");
    }

    #[test]
    fn repetitions_have_no_results_and_their_time_counts() {
        let device = device(Pace::of(3));
        let ended = Rc::<RefCell<Vec<Computed>>>::default();
        let results = ended.clone();
        let receive = device.results(Box::new(move |item| results.borrow_mut().push(item)));
        device.head_starts.borrow_mut().insert(Ticket(1), 2.0);
        for ticket in [FIRST_REPETITION, 1, 2] {
            receive(Computed { ticket: Ticket(ticket), outcome: Outcome::Cancelled, millis: 1.0 });
        }
        let millis: Vec<f64> = ended.borrow().iter().map(|computed| computed.millis).collect();
        assert_eq!(millis, [3.0, 1.0]);
        assert_eq!(device.measured(Measured { bandwidth: 6.0, sync_millis: 1.0 }).bandwidth, 2.0);
        assert_eq!(device.device("a GPU".to_owned()), "a GPU, 3 times", "its times are stored apart");
    }
}
