//! Experts on demand: work that ends at a router waits until the chosen experts are in slots, and goes on from there
//! (od-moe.txt 3.1). Whoever submits work sees none of this but the time it takes.

mod ahead;
mod calls;
mod counts;
mod driver;
mod following;
mod guesses;
#[cfg(not(target_arch = "wasm32"))]
mod routers;
mod shadow;
mod slots;
mod wave;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, VecDeque};
use std::pin::pin;
use std::rc::Rc;

use futures::StreamExt;
use futures::channel::mpsc;
use futures::future::{AbortHandle, Abortable, Either, select};
use potluck_engine::Eviction;
use potluck_model::FeedForwardSpec;
use potluck_panel::OnDemandReport;
use potluck_plan::{
    BlockIndex, Bytes, Computed, ConversationId, ExpertId, Outcome, PooledExperts, Ticket, WeightUnit, Work,
};
use potluck_predict::{
    FirstOf, Foresight, GivenLast, KnownRecall, Predictor, PredictorKind, Published, Switch, TraceShape,
};
use potluck_swarm::HintOptions;

use self::ahead::LoadsAhead;
use self::driver::{Driver, is_part};
use self::guesses::Guesses;
pub(super) use self::shadow::{Listener, Shadow};
pub use self::shadow::{ShadowOptions, ShadowSource};
use self::slots::Slots;
use super::Compute;
use super::shadows::{Hearer, RunningShadow};
use crate::loader::{ExpertLoader, Load};
use crate::node::Input;
use crate::open::Model;
use crate::platform::Platform;

/// The seed of guesses that are wrong on purpose.
const SEED: u64 = 15;

/// Who guesses which experts come next, and whether anybody asks if that pays.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GuessOptions {
    /// Who guesses.
    pub predictor: PredictorKind,
    /// Load guesses whether they pay or not.
    pub always: bool,
    /// What [`PredictorKind::Recorded`] knows, as shares, by round.
    pub recalls: Vec<f64>,
    /// Blocks to look ahead; by default one, of a recorded text four.
    pub lead: Option<u16>,
    /// Which expert makes room where they come on demand, for this device or for others.
    pub eviction: Eviction,
    /// The shadow, for [`PredictorKind::Shadow`].
    pub shadow: Option<ShadowOptions>,
}

/// What is asked of the driver, in order.
enum Order {
    /// With when it was asked for, in milliseconds.
    Work(Work, f64),
    Forget(ConversationId),
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

/// Who calls the experts of a pool.
pub enum Calls {
    /// Stages of this device; perhaps its own predictor loads ahead.
    Own(Option<OnDemandGuesses>),
    /// Stages elsewhere, which may hint what they will call: only that is computed here.
    FromElsewhere,
}

/// Guesses for one pool ([`Compute::guesses`]).
pub struct OnDemandGuesses(Rc<Guesses>);

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

    /// Who guesses experts of a model in this pool; `None` if nobody does, or if what the predictor needs cannot be read.
    /// `load` reads the model.
    pub async fn guesses(self: &Rc<Self>, model: &Model, pool: &PooledExperts, load: Load) -> Option<OnDemandGuesses> {
        let options = self.guesses.borrow().clone();
        if pool.blocks.is_empty() || options.predictor == PredictorKind::None {
            return None;
        }
        let sizes = model.spec.blocks.iter().filter_map(|block| match &block.feed_forward {
            FeedForwardSpec::Experts(experts) => Some((experts.count, experts.used)),
            FeedForwardSpec::Dense(_) => None,
        });
        let (experts, used) = sizes.fold((0, 0), |most, size| (most.0.max(size.0), most.1.max(size.1)));
        let shape = TraceShape { blocks: model.spec.blocks.len() as u16, experts: experts as u16, used: used as u8 };
        let bytes = |block: &BlockIndex| model.units.bytes(WeightUnit::Expert(*block, ExpertId(0))).0 * u64::from(used);
        let token = Bytes(pool.blocks.iter().map(bytes).sum());
        let frequent = Box::new(GivenLast::new(shape));
        #[cfg(not(target_arch = "wasm32"))]
        let mut routers = None;
        let mut shadow = None;
        let predictor: Box<dyn Predictor> = match options.predictor {
            #[cfg(not(target_arch = "wasm32"))]
            PredictorKind::Router => {
                let read = routers::read(&model.spec, &model.units, model.source.as_ref()).await;
                let read = read.inspect_err(|error| log::warn!("no router guesses: {error}")).ok()?;
                let read = routers.insert(Rc::new(read)).clone();
                // Nobody can be asked before the first block.
                Box::new(FirstOf(vec![Box::new(routers::NextRouters::new(read)), frequent]))
            }
            PredictorKind::Shadow => {
                shadow = self.shadow_for_own(load).await;
                match &shadow {
                    // Where the shadow is late or gone, the next in line is believed.
                    Some((_, published)) => Box::new(FirstOf(vec![Box::new(published.clone()), frequent])),
                    None => frequent,
                }
            }
            PredictorKind::Recorded => {
                let recorded = Box::new(KnownRecall::new(shape, options.recalls, SEED));
                if self.has_shadow() {
                    shadow = self.shadow_for_own(load).await;
                }
                recorded
            }
            _ => frequent,
        };
        let switch = (!options.always).then(Switch::new);
        let foresight = Foresight::new(options.predictor, predictor, shape, token, switch);
        let mut guesses = Guesses::new(foresight, used as usize);
        guesses.lead = options.lead.unwrap_or(match options.predictor {
            PredictorKind::Recorded => HintOptions::LEAD,
            _ => 1,
        });
        #[cfg(not(target_arch = "wasm32"))]
        {
            guesses.routers = routers;
        }
        guesses.shadow = shadow;
        Some(OnDemandGuesses(Rc::new(guesses)))
    }

    /// A shadow for experts of this device, and where it publishes what it chooses.
    async fn shadow_for_own(self: &Rc<Self>, load: Load) -> Option<(Rc<Shadow>, Published)> {
        // Guesses that hear it already go on if the pool stays.
        let heard = self.shadow.borrow().as_ref().and_then(RunningShadow::published);
        let published = heard.unwrap_or_default();
        let loaded = self.shadow(Hearer::Own(published.clone()), load).await;
        let shadow = loaded.map_err(|sentence| self.inputs.send(Input::ShadowFailed(sentence))).ok()?;
        Some((shadow, published))
    }

    /// From now on experts of these blocks come on demand; of none if the pool has no blocks. What was counted of the same
    /// pool goes on, also where others call them now or guess. `experts`: how many share its slots.
    pub fn set_on_demand(self: &Rc<Self>, loader: ExpertLoader, (pool, experts): (PooledExperts, u32), calls: Calls) {
        self.end_on_demand(&pool);
        if let Some(on_demand) = self.on_demand.borrow().as_ref() {
            on_demand.driver.experts.set(experts);
            on_demand.driver.set_calls(calls);
            return;
        }
        if pool.blocks.is_empty() {
            return;
        }
        let driver = Rc::new(Driver {
            experts: Cell::new(experts),
            slots: Slots::new(self.platform.clone(), loader, LoadsAhead::default()),
            pool,
            next_part: self.next_part.clone(),
            parts: RefCell::default(),
            counts: Cell::default(),
            serves: Cell::default(),
            guesses: RefCell::default(),
            slow_down: self.slow_down.clone(),
            at_once: RefCell::default(),
            called: RefCell::default(),
            hinted: RefCell::default(),
        });
        driver.set_calls(calls);
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
        let guessing = driver.clone();
        let run = async move {
            let (run, loads) = (pin!(run), pin!(guessing.load_ahead()));
            if let Either::Right(((), run)) = select(run, loads).await {
                run.await;
            }
        };
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

    /// Experts will probably be called: they load beside the work.
    pub fn load_ahead(&self, experts: Vec<(BlockIndex, ExpertId)>) {
        if let Some(on_demand) = self.on_demand.borrow().as_ref() {
            on_demand.driver.hint(experts);
        }
    }

    /// A result of the engine, given back unless it is of a part of work: the driver takes that, if it still waits.
    pub(super) fn without_parts(&self, mut computed: Computed) -> Option<Computed> {
        if !is_part(computed.ticket) {
            if let Some(queue) = self.on_demand.borrow().as_ref() {
                queue.driver.ended_at_once(computed.ticket);
            }
            if matches!(computed.outcome, Outcome::Missing { .. }) {
                // It waited in the engine while its slots were laid out anew.
                computed.outcome = Outcome::Cancelled;
            }
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
        let work = match self.driver.at_once(work) {
            Ok(Some(work)) => work,
            Ok(None) => return true,
            Err(outcome) => {
                (self.deliver)(Computed { ticket, outcome, millis: 0.0 });
                return true;
            }
        };
        let now = self.driver.now();
        let is_sent = self.orders.unbounded_send(Order::Work(work, now)).is_ok();
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

    /// Drops work that has not begun.
    pub fn cancel(&self, ticket: Ticket) {
        if self.driver.at_once.borrow().contains_key(&ticket) {
            self.driver.slots.engine().cancel(ticket);
            return;
        }
        let mut open = self.open.borrow_mut();
        if open.queued.contains(&ticket) {
            open.cancelled.insert(ticket);
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
