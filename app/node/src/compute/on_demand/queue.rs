//! The way of work to the driver of experts on demand, and of its results back.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, VecDeque};
use std::pin::pin;
use std::rc::Rc;

use futures::StreamExt;
use futures::channel::mpsc;
use futures::future::{AbortHandle, Abortable, Either, select};
use potluck_panel::OnDemandReport;
use potluck_plan::{BlockIndex, Computed, ConversationId, ExpertId, Outcome, PooledExperts, Ticket, Work};

use super::ahead::LoadsAhead;
use super::driver::{Driver, is_part};
use super::guesses::Calls;
use super::slots::Slots;
use crate::loader::ExpertLoader;
use crate::platform::Platform;

/// What is asked of the driver, in order.
enum Order {
    /// With when it was asked for, in milliseconds.
    Work(Work, f64),
    Forget(ConversationId),
}

/// What was asked of the driver and not done yet.
#[derive(Default)]
struct OpenOrders {
    queued: BTreeSet<Ticket>,
    running: Option<Ticket>,
    /// Queued work that nobody waits for.
    cancelled: BTreeSet<Ticket>,
    forgets: VecDeque<ConversationId>,
}

/// The driver, and the way to give it work. Dropping this ends the driver: its work is answered as cancelled.
pub struct OnDemandQueue {
    driver: Rc<Driver>,
    orders: mpsc::UnboundedSender<Order>,
    open: Rc<RefCell<OpenOrders>>,
    deliver: Rc<dyn Fn(Computed)>,
    task: AbortHandle,
}

impl Drop for OnDemandQueue {
    fn drop(&mut self) {
        self.task.abort();
        let OpenOrders { queued, running, forgets, .. } = std::mem::take(&mut *self.open.borrow_mut());
        forgets.into_iter().for_each(|conversation| self.driver.slots.engine().forget(conversation));
        for ticket in running.into_iter().chain(queued) {
            (self.deliver)(Computed { ticket, outcome: Outcome::Cancelled, millis: 0.0 });
        }
    }
}

/// What a driver of experts on demand is made with.
pub(in crate::compute) struct QueueOptions {
    pub platform: Platform,
    pub loader: ExpertLoader,
    pub pool: PooledExperts,
    /// Experts that share its slots.
    pub experts: u32,
    pub calls: Calls,
    /// Number of the next part of work, of all drivers.
    pub next_part: Rc<Cell<u64>>,
    /// Receives results.
    pub deliver: Rc<dyn Fn(Computed)>,
}

impl OnDemandQueue {
    /// Starts a driver.
    pub fn start(options: QueueOptions) -> Self {
        let QueueOptions { platform, loader, pool, experts, calls, next_part, deliver } = options;
        let slots = Rc::new(Slots::new(platform.clone(), loader));
        let driver = Rc::new(Driver {
            experts: Cell::new(experts),
            ahead: LoadsAhead::new(slots.clone()),
            slots,
            pool,
            next_part,
            parts: RefCell::default(),
            counts: Cell::default(),
            serves: Cell::default(),
            guesses: RefCell::default(),
            at_once: RefCell::default(),
            called: RefCell::default(),
            hinted: RefCell::default(),
        });
        driver.set_calls(calls);
        let open = Rc::<RefCell<OpenOrders>>::default();
        let (orders, received) = mpsc::unbounded();
        let (task, registration) = AbortHandle::new_pair();
        let run = run(platform.clone(), driver.clone(), received, open.clone(), deliver.clone());
        let guessing = driver.clone();
        let run = async move {
            let (run, loads) = (pin!(run), pin!(guessing.load_ahead()));
            if let Either::Right(((), run)) = select(run, loads).await {
                run.await;
            }
        };
        platform.spawn.spawn(Box::pin(async move {
            // Whoever ends it answers for it.
            let _ = Abortable::new(run, registration).await;
        }));
        Self { driver, orders, open, deliver, task }
    }

    /// It has the slots of this pool.
    pub fn has(&self, pool: &PooledExperts) -> bool {
        self.driver.pool == *pool
    }

    /// Others call its experts now, or guess them; `experts` share its slots.
    pub fn set_calls(&self, calls: Calls, experts: u32) {
        self.driver.experts.set(experts);
        self.driver.set_calls(calls);
    }

    /// What experts on demand cost so far.
    pub fn report(&self) -> OnDemandReport {
        self.driver.report()
    }

    /// Experts will probably be called: they load beside the work.
    pub fn load_ahead(&self, experts: Vec<(BlockIndex, ExpertId)>) {
        self.driver.hint(experts);
    }

    /// A result of the engine, given back unless it is of a part of work: the driver, if there is one, takes that if it still waits.
    pub fn without_parts(queue: Option<&Self>, mut computed: Computed) -> Option<Computed> {
        if is_part(computed.ticket) {
            let part = queue.and_then(|queue| queue.driver.parts.borrow_mut().remove(&computed.ticket));
            if let Some(part) = part {
                // Nobody waits if the work was given up.
                let _ = part.send(computed);
            }
            return None;
        }
        if let Some(queue) = queue {
            queue.driver.ended_at_once(computed.ticket);
        }
        if matches!(computed.outcome, Outcome::Missing { .. }) {
            // It waited in the engine while its slots were laid out anew.
            computed.outcome = Outcome::Cancelled;
        }
        Some(computed)
    }

    /// Queues work. What cannot be queued is answered at once.
    pub fn submit(&self, work: Work) {
        let ticket = work.ticket;
        let work = match self.driver.at_once(work) {
            Ok(Some(work)) => work,
            Ok(None) => return,
            Err(outcome) => return (self.deliver)(Computed { ticket, outcome, millis: 0.0 }),
        };
        let now = self.driver.now();
        if self.orders.unbounded_send(Order::Work(work, now)).is_ok() {
            self.open.borrow_mut().queued.insert(ticket);
        } else {
            // The driver has ended.
            (self.deliver)(Computed { ticket, outcome: Outcome::DeviceLost, millis: 0.0 });
        }
    }

    /// Frees the KV cache of a conversation after the work that was queued before.
    pub fn forget(&self, conversation: ConversationId) {
        self.open.borrow_mut().forgets.push_back(conversation);
        // The driver lives as long as this.
        let _ = self.orders.unbounded_send(Order::Forget(conversation));
    }

    /// Drops work that has not begun.
    pub fn cancel(&self, ticket: Ticket) {
        let is_at_once = self.driver.at_once.borrow().contains_key(&ticket);
        if !is_at_once && self.open.borrow().queued.contains(&ticket) {
            self.open.borrow_mut().cancelled.insert(ticket);
        } else {
            // It is computed at once, or went to the engine before experts were loaded on demand.
            self.driver.slots.engine().cancel(ticket);
        }
    }
}

/// Carries out orders one after another.
async fn run(
    platform: Platform,
    driver: Rc<Driver>,
    mut orders: mpsc::UnboundedReceiver<Order>,
    open: Rc<RefCell<OpenOrders>>,
    deliver: Rc<dyn Fn(Computed)>,
) {
    while let Some(order) = orders.next().await {
        match order {
            Order::Forget(conversation) => {
                open.borrow_mut().forgets.pop_front();
                driver.slots.engine().forget(conversation);
            }
            Order::Work(Work { ticket, task }, queued) => {
                let is_cancelled = {
                    let mut open = open.borrow_mut();
                    open.queued.remove(&ticket);
                    open.running = Some(ticket);
                    open.cancelled.remove(&ticket)
                };
                let started = platform.clock.now().0;
                let outcome = if is_cancelled { Outcome::Cancelled } else { driver.finish(task, queued).await };
                open.borrow_mut().running = None;
                deliver(Computed { ticket, outcome, millis: platform.clock.now().0 - started });
            }
        }
    }
}
