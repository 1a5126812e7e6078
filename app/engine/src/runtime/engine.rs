//! The engine's public API.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use potluck_model::{ModelSpec, UnitMap};
use potluck_plan::{Bytes, Computed, ConversationId, PooledExperts, Ticket, WeightUnit, Work};

use crate::runtime::core::Core;
use crate::runtime::error::EngineError;
use crate::runtime::gpu::Gpu;
use crate::runtime::layout::Layout;
use crate::runtime::notify::Notify;
#[cfg(not(target_arch = "wasm32"))]
use crate::runtime::polling::{self, Unpolled};
use crate::runtime::settings::Settings;
use crate::runtime::staging::{Piece, Staging};
use crate::runtime::turns::{GiveWay, Turns};

/// State shared by all clones of an engine.
pub struct Inner {
    pub(crate) core: RefCell<Core>,
    on_result: Box<dyn Fn(Computed)>,
    pub(crate) notify: Notify,
    pub(crate) turns: Turns,
}

/// Runs parts of a model on one GPU. Clones share the engine, which stays on its thread.
///
/// Natively, call [`Engine::poll`] while work is pending: it drives the device and delivers results. On the web results
/// arrive without polling. `on_result` may call the engine.
#[derive(Clone)]
pub struct Engine {
    pub(crate) inner: Rc<Inner>,
}

impl Inner {
    fn new(core: Core, on_result: Box<dyn Fn(Computed)>, notify: Notify) -> Self {
        Self { core: RefCell::new(core), on_result, notify, turns: Turns::default() }
    }

    /// Handles device events, starts waiting work and delivers results.
    pub(crate) fn deliver(&self) {
        let mut answered = false;
        loop {
            let answers = {
                let mut core = self.core.borrow_mut();
                while let Some(event) = core.inbox().pop() {
                    core.handle(event);
                }
                if core.model.gpu.lost() {
                    core.fail_all();
                } else {
                    core.pump(&self.notify);
                }
                core.take_answers()
            };
            if answers.is_empty() {
                break;
            }
            answered = true;
            answers.into_iter().for_each(&self.on_result);
        }
        if answered {
            #[cfg(target_arch = "wasm32")]
            self.core.borrow_mut().begin_kicks(&self.notify);
            #[cfg(target_arch = "wasm32")]
            self.notify.encode_next();
            #[cfg(not(target_arch = "wasm32"))]
            self.core.borrow_mut().encode_next();
        }
    }
}

#[cfg(target_arch = "wasm32")]
impl crate::runtime::notify::Woken for Inner {
    fn deliver(&self) {
        self.deliver();
    }

    fn encode_next(&self) {
        self.core.borrow_mut().encode_next();
    }

    fn next_kick(&self, by: crate::runtime::poll_kick::LoopId) -> crate::runtime::poll_kick::Next {
        self.core.borrow_mut().next_kick(by)
    }

    fn kick(&self) {
        self.core.borrow().model.gpu.queue.submit([]);
    }
}

impl Engine {
    /// Creates an engine for a model. Readback buffers are allocated immediately, at the size of usual results; staging
    /// buffers when a load begins; and everything else in [`Engine::reserve`].
    ///
    /// # Errors
    /// The model has shapes that no kernel supports, or its fixed buffers exceed the budget or a device limit.
    pub fn new(
        gpu: &Gpu,
        spec: ModelSpec,
        units: UnitMap,
        settings: Settings,
        on_result: Box<dyn Fn(Computed)>,
    ) -> Result<Engine, EngineError> {
        let core = Core::new(gpu, spec, units, settings)?;
        let inbox = core.inbox().clone();
        #[cfg(not(target_arch = "wasm32"))]
        let inner = Rc::new(Inner::new(core, on_result, Notify::new(inbox)));
        #[cfg(target_arch = "wasm32")]
        let inner = Rc::new_cyclic(|engine: &std::rc::Weak<Inner>| {
            Inner::new(core, on_result, Notify::new(inbox, engine.clone()))
        });
        Ok(Engine { inner })
    }

    /// Allocates memory for new units and frees that of dropped ones, and a pool of slots. Units in both sets keep their
    /// bytes. Results in flight still arrive.
    ///
    /// # Errors
    /// The device is lost, or the units exceed the budget or a device limit. On error nothing changes.
    pub fn reserve(&self, units: &BTreeSet<WeightUnit>) -> Result<Layout, EngineError> {
        self.inner.core.borrow_mut().hold(units, &PooledExperts::default())
    }

    /// Sets the engine's total memory budget. Held units stay even if they exceed it; the next [`Engine::reserve`]
    /// enforces it.
    pub fn set_budget(&self, budget: Bytes) {
        self.inner.core.borrow_mut().set_budget(budget);
    }

    /// Units that were reserved.
    pub fn reserved(&self) -> BTreeSet<WeightUnit> {
        self.inner.core.borrow().model.weights.held().clone()
    }

    /// Reserved units that are not finished.
    pub fn missing(&self) -> Vec<WeightUnit> {
        self.inner.core.borrow().model.weights.missing().into_iter().collect()
    }

    /// False if the tensor's bytes are already resident: its unit is finished, or another unit uploaded the shared
    /// table.
    pub fn needs(&self, unit: WeightUnit, tensor: usize) -> bool {
        self.inner.core.borrow().needs(unit, tensor)
    }

    /// True once the unit is finished.
    pub fn is_resident(&self, unit: WeightUnit) -> bool {
        let core = self.inner.core.borrow();
        let weights = &core.model.weights;
        let in_slot = matches!(unit, WeightUnit::Expert(block, expert) if weights.is_in_slot((block, expert)));
        in_slot || weights.is_resident(unit)
    }

    /// Marks all held units as missing but keeps their memory, so that a load can be measured.
    pub fn invalidate_weights(&self) {
        self.inner.core.borrow_mut().invalidate_weights();
    }

    /// Waits for a free staging buffer. Nothing else on this thread waits meanwhile.
    ///
    /// # Errors
    /// The device is lost.
    pub async fn staging(&self) -> Result<Staging, EngineError> {
        std::future::poll_fn(|context| {
            // Register before looking, so that a buffer returned in between is not missed.
            self.inner.notify.wake_on_event(context.waker());
            self.free_staging().transpose().map_or(std::task::Poll::Pending, std::task::Poll::Ready)
        })
        .await
    }

    /// A staging buffer if one is free now.
    ///
    /// # Errors
    /// The device is lost.
    pub fn free_staging(&self) -> Result<Option<Staging>, EngineError> {
        self.deliver_staging();
        let mut core = self.inner.core.borrow_mut();
        core.check_alive()?;
        Ok(core.take_staging(&self.inner.notify))
    }

    /// Waits until the bytes of at most `most` staging buffers are on their way to tensors: what is submitted later waits for
    /// them.
    ///
    /// # Errors
    /// The device is lost.
    pub async fn uploads_at_most(&self, most: usize) -> Result<(), EngineError> {
        self.until(|core| core.staging().uploads() <= most).await
    }

    /// Ends a load and frees the staging buffers; buffers in flight are freed when their copies finish. The next
    /// [`Engine::staging`] creates new ones.
    pub fn close_staging(&self) {
        self.inner.core.borrow_mut().staging_mut().close();
    }

    /// Bytes of a staging buffer.
    pub fn staging_bytes(&self) -> u64 {
        self.inner.core.borrow().staging().size()
    }

    /// Staging buffers that currently exist.
    pub fn staging_count(&self) -> usize {
        self.inner.core.borrow().staging().count()
    }

    /// Waits until all uploads are done, that is, until every staging buffer is mapped again.
    ///
    /// # Errors
    /// The device is lost.
    pub async fn uploaded(&self) -> Result<(), EngineError> {
        self.until(|core| core.staging().is_whole()).await
    }

    /// Waits until something is true of the staging buffers.
    async fn until(&self, is_true: impl Fn(&Core) -> bool) -> Result<(), EngineError> {
        std::future::poll_fn(|context| {
            self.inner.notify.wake_on_event(context.waker());
            self.deliver_staging();
            let core = self.inner.core.borrow();
            match core.check_alive() {
                Ok(()) if !is_true(&core) => std::task::Poll::Pending,
                alive => std::task::Poll::Ready(alive),
            }
        })
        .await
    }

    /// Handles returned staging buffers but leaves results for [`Engine::poll`].
    fn deliver_staging(&self) {
        let mut core = self.inner.core.borrow_mut();
        for event in core.inbox().take_staging() {
            core.handle(event);
        }
    }

    /// Copies pieces of a staging buffer to their tensors.
    ///
    /// # Errors
    /// The device is lost, a unit is not reserved, or a piece lies outside its tensor or the staging buffer.
    pub fn upload(&self, staging: Staging, pieces: &[Piece]) -> Result<(), EngineError> {
        self.inner.core.borrow_mut().upload(&staging, pieces)
    }

    /// Marks a unit as completely uploaded; work submitted from now on can use it.
    ///
    /// # Errors
    /// The unit is not reserved.
    pub fn finish(&self, unit: WeightUnit) -> Result<(), EngineError> {
        self.inner.core.borrow_mut().finish(unit)
    }

    /// Starts a piece of work, or queues it behind others. Its result arrives through `on_result`.
    ///
    /// # Errors
    /// The work is malformed, needs weights or a KV cache that are not resident, or the device is lost.
    pub fn submit(&self, work: Work) -> Result<(), EngineError> {
        let submitted = self.inner.core.borrow_mut().submit(work, &self.inner.notify);
        self.inner.notify.wake();
        submitted
    }

    /// Waits until work is pending. The native task that polls the device sleeps here.
    pub async fn busy(&self) {
        std::future::poll_fn(|context| {
            self.inner.notify.wake_on_event(context.waker());
            if self.pending() > 0 { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        })
        .await;
    }

    /// True if any conversation has a KV cache here, which means that a room is, or was, answering.
    pub fn has_kv_cache(&self) -> bool {
        !self.inner.core.borrow().conversations().is_empty()
    }

    /// Dispatches of the most recently submitted work.
    pub fn dispatches(&self) -> u32 {
        self.inner.core.borrow().dispatches()
    }

    /// Decode steps so far whose commands were already encoded when their input arrived.
    pub fn encoded_in_advance(&self) -> u64 {
        self.inner.core.borrow().encoded_in_advance()
    }

    /// Cancels work that has not started; it is answered with `Cancelled`. Returns whether there was any.
    pub fn cancel(&self, ticket: Ticket) -> bool {
        let dropped = self.inner.core.borrow_mut().cancel(ticket);
        if dropped {
            self.inner.deliver();
        }
        dropped
    }

    /// Frees the KV cache of a conversation, once the work that waits for it has begun or is cancelled.
    pub fn forget(&self, conversation: ConversationId) {
        self.inner.core.borrow_mut().forget(conversation);
    }

    /// Positions of a conversation that every held block has in its KV cache.
    pub fn kv_cache_len(&self, conversation: ConversationId) -> u32 {
        self.inner.core.borrow().conversations().known(conversation)
    }

    /// True once the device is lost; the engine is unusable from then on.
    pub fn lost(&self) -> bool {
        self.inner.core.borrow().model.gpu.lost()
    }

    /// Pieces of work that are not answered yet.
    pub fn pending(&self) -> usize {
        self.inner.core.borrow().queue().len()
    }

    /// Natively: polls the device and delivers results. Not needed on the web.
    pub fn poll(&self) {
        #[cfg(not(target_arch = "wasm32"))]
        {
            let core = self.inner.core.borrow();
            if polling::poll(&core.model.gpu.device, wgpu::PollType::Poll).is_err() {
                core.model.gpu.mark_lost();
            }
        }
        self.inner.deliver();
    }

    /// Natively: waits up to `patience` for the oldest work in flight and delivers results.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn poll_for(&self, patience: std::time::Duration) {
        {
            let core = self.inner.core.borrow();
            let wait = match core.queue().oldest() {
                Some(oldest) => {
                    wgpu::PollType::Wait { submission_index: Some(oldest.submission.clone()), timeout: Some(patience) }
                }
                None => wgpu::PollType::Poll,
            };
            match polling::poll(&core.model.gpu.device, wait) {
                Ok(()) | Err(Unpolled::Timeout) => {}
                Err(Unpolled::Lost) => core.model.gpu.mark_lost(),
            }
        }
        self.inner.deliver();
    }

    /// Natively: waits until all submitted work is answered.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn wait(&self) {
        while self.pending() > 0 {
            {
                let core = self.inner.core.borrow();
                if polling::poll(&core.model.gpu.device, wgpu::PollType::wait_indefinitely()).is_err() {
                    core.model.gpu.mark_lost();
                }
            }
            self.inner.deliver();
        }
    }

    /// From now on others run in between while this engine compiles, tests or tunes kernels. Without it they wait until it is done.
    pub fn set_give_way(&self, give_way: GiveWay) {
        self.inner.turns.set(give_way);
    }

    /// Lets others run if this engine has worked for a while.
    pub(crate) async fn give_way(&self) {
        self.inner.turns.give_way().await;
    }

    /// Frees all memory on the device immediately. Waiting work is cancelled; results in flight are dropped.
    pub fn destroy(&self) {
        let waiting: Vec<Ticket> = self.inner.core.borrow().queue().waiting().map(|work| work.ticket).collect();
        waiting.into_iter().for_each(|ticket| {
            self.cancel(ticket);
        });
        self.inner.core.borrow_mut().destroy();
    }
}
