//! Experts on demand: work that ends at a router waits until the chosen experts are in slots, and goes on from there
//! (od-moe.txt 3.1). Whoever submits work sees none of this but the time it takes.

mod counts;
mod driver;
mod slots;
mod wave;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

use futures::channel::mpsc;
use futures::future::{AbortHandle, Abortable};
use futures::{FutureExt, StreamExt};
use potluck_panel::OnDemandReport;
use potluck_plan::{BlockIndex, Computed, ConversationId, ExpertId, Outcome, PooledExperts, Ticket, Work};

use self::driver::{Driver, is_part};
use self::slots::Slots;
use super::Compute;
use crate::loader::ExpertLoader;
use crate::platform::Platform;

/// What is asked of the driver, in order.
enum Order {
    Work(Work),
    Forget(ConversationId),
    Guess(Vec<(BlockIndex, ExpertId)>),
}

/// What was asked of the driver and not done yet.
#[derive(Default)]
struct Open {
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
    open: Rc<RefCell<Open>>,
    deliver: Rc<dyn Fn(Computed)>,
    task: AbortHandle,
}

impl Drop for OnDemandQueue {
    fn drop(&mut self) {
        self.task.abort();
        let Open { queued, running, forgets, .. } = std::mem::take(&mut *self.open.borrow_mut());
        forgets.into_iter().for_each(|conversation| self.driver.slots.engine().forget(conversation));
        for ticket in running.into_iter().chain(queued) {
            (self.deliver)(Computed { ticket, outcome: Outcome::Cancelled, millis: 0.0 });
        }
    }
}

impl Compute {
    /// Ends the driver of experts on demand unless it has this pool: the slots of another one are laid out anew.
    pub fn end_on_demand(&self, unless: &PooledExperts) {
        let is_other = |queue: &mut OnDemandQueue| queue.driver.pool != *unless;
        // Dropped after the borrow has ended: it delivers results.
        let ended = self.on_demand.borrow_mut().take_if(is_other);
        drop(ended);
    }

    /// From now on experts of these blocks come on demand; of none if the pool has no blocks. What was counted of the same
    /// pool goes on.
    /// `serves`: only what stages elsewhere call is computed here.
    pub fn set_on_demand(self: &Rc<Self>, loader: ExpertLoader, pool: PooledExperts, serves: bool) {
        self.end_on_demand(&pool);
        if self.on_demand.borrow().is_some() || pool.blocks.is_empty() {
            return;
        }
        let driver = Rc::new(Driver {
            experts: loader.experts(&pool.blocks),
            slots: Slots { platform: self.platform.clone(), loader },
            pool,
            next_part: self.next_part.clone(),
            parts: RefCell::default(),
            counts: Cell::default(),
            serves,
            called: RefCell::default(),
            guesses: RefCell::default(),
        });
        let this = Rc::downgrade(self);
        let deliver: Rc<dyn Fn(Computed)> = Rc::new(move |computed| {
            if let Some(this) = this.upgrade() {
                this.deliver(computed);
            }
        });
        let open = Rc::<RefCell<Open>>::default();
        let (orders, received) = mpsc::unbounded();
        let (task, registration) = AbortHandle::new_pair();
        let run = run(self.platform.clone(), driver.clone(), received, open.clone(), deliver.clone());
        self.platform.spawn.spawn(Box::pin(async move {
            // Whoever ends it answers for it.
            let _ = Abortable::new(run, registration).await;
        }));
        *self.on_demand.borrow_mut() = Some(OnDemandQueue { driver, orders, open, deliver, task });
    }

    /// What experts on demand cost so far; `None` if this device holds all of its experts.
    pub fn on_demand_report(&self) -> Option<OnDemandReport> {
        self.on_demand.borrow().as_ref().map(|queue| queue.driver.report())
    }

    /// Experts will probably be called: they load while there is no work.
    pub fn load_ahead(&self, experts: Vec<(BlockIndex, ExpertId)>) {
        if let Some(on_demand) = self.on_demand.borrow().as_ref() {
            on_demand.load_ahead(experts);
        }
    }

    /// A result of the engine, given back unless it is of a part of work: the driver takes that, if it still waits.
    pub(super) fn without_parts(&self, computed: Computed) -> Option<Computed> {
        if !is_part(computed.ticket) {
            return Some(computed);
        }
        let part =
            self.on_demand.borrow().as_ref().and_then(|queue| queue.driver.parts.borrow_mut().remove(&computed.ticket));
        if let Some(part) = part {
            // Nobody waits if the work was given up.
            let _ = part.send(computed);
        }
        None
    }
}

impl OnDemandQueue {
    /// Queues work; false if the driver has ended.
    pub fn submit(&self, work: Work) -> bool {
        let ticket = work.ticket;
        let is_sent = self.orders.unbounded_send(Order::Work(work)).is_ok();
        if is_sent {
            self.open.borrow_mut().queued.insert(ticket);
        }
        is_sent
    }

    /// Frees the KV cache of a conversation after the work that was queued before.
    pub fn forget(&self, conversation: ConversationId) {
        self.open.borrow_mut().forgets.push_back(conversation);
        // The driver lives as long as this.
        let _ = self.orders.unbounded_send(Order::Forget(conversation));
    }

    /// Experts to load while there is no work.
    pub fn load_ahead(&self, experts: Vec<(BlockIndex, ExpertId)>) {
        // The driver lives as long as this.
        let _ = self.orders.unbounded_send(Order::Guess(experts));
    }

    /// Drops work that has not begun.
    pub fn cancel(&self, ticket: Ticket) {
        let mut open = self.open.borrow_mut();
        if open.queued.contains(&ticket) {
            open.cancelled.insert(ticket);
        }
    }
}

/// The next order. Guesses load until there is one: it waits for the expert that is being loaded at most.
async fn next(orders: &mut mpsc::UnboundedReceiver<Order>, driver: &Driver) -> Option<Order> {
    loop {
        if let Some(order) = orders.next().now_or_never() {
            return order;
        }
        if !driver.load_guess().await {
            return orders.next().await;
        }
    }
}

/// Carries out orders one after another.
async fn run(
    platform: Platform,
    driver: Rc<Driver>,
    mut orders: mpsc::UnboundedReceiver<Order>,
    open: Rc<RefCell<Open>>,
    deliver: Rc<dyn Fn(Computed)>,
) {
    while let Some(order) = next(&mut orders, &driver).await {
        match order {
            Order::Guess(experts) => driver.guess(experts),
            Order::Forget(conversation) => {
                open.borrow_mut().forgets.pop_front();
                driver.slots.engine().forget(conversation);
            }
            Order::Work(Work { ticket, task }) => {
                let is_cancelled = {
                    let mut open = open.borrow_mut();
                    open.queued.remove(&ticket);
                    open.running = Some(ticket);
                    open.cancelled.remove(&ticket)
                };
                let started = platform.clock.now().0;
                let outcome = if is_cancelled { Outcome::Cancelled } else { driver.finish(task).await };
                open.borrow_mut().running = None;
                deliver(Computed { ticket, outcome, millis: platform.clock.now().0 - started });
            }
        }
    }
}
