//! Loads experts beside the work: what will probably be needed loads while other blocks are computed (od-moe.txt 3.1). Who
//! says what that is, guesses of this device or hints of others, is told how each load ended.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::pin::pin;
use std::rc::Rc;

use futures::channel::{mpsc, oneshot};
use futures::future::{Either, select, select_all};
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use potluck_engine::{Keep, SlotLoad};
use potluck_plan::{BlockIndex, ExpertId, WeightUnit};

use super::counts::Fetched;
use super::slots::Slots;

/// An expert of a block.
pub(super) type Key = (BlockIndex, ExpertId);

/// Experts of one block that load together, at most.
const TOGETHER: usize = 3;

/// How much of the loads beside the work is under way at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Loads. Some staging buffers are left for what work waits for.
    loads: usize,
    /// Staging buffers that a load of several experts fills, at most.
    buffers: u64,
    /// Staging buffers that are being copied when another load begins: work that comes then waits for the GPU behind them.
    uploads: usize,
}

impl Pace {
    /// For a device that guesses what it needs itself, and has nothing else to do.
    pub const OWN: Self =
        Self { loads: 2, buffers: if cfg!(target_arch = "wasm32") { 1 } else { 2 }, uploads: usize::MAX };
    /// For calls from elsewhere, which come at any moment.
    pub const CALLED: Self = Self { loads: 2, buffers: 1, uploads: 1 };
}

/// How a load that was wanted has ended.
#[derive(Clone, Copy, Debug)]
pub(super) enum LoadEnd {
    /// It has not begun: the expert is there or being loaded, or no slot may be taken for it.
    NotBegun,
    /// It could not be read. Whoever needs the expert says so.
    Failed,
    /// It is in its slot, where it stays until that is changed. `claimed`: work waits for it, and lets it go.
    Loaded { claimed: bool },
}

/// Who waits for an expert that is being loaded.
#[derive(Default)]
struct PendingLoad {
    claimed: bool,
    /// Told once work waits for it.
    hurry: Option<oneshot::Sender<()>>,
    waiting: Vec<oneshot::Sender<()>>,
}

/// An expert that has its slot now.
struct BegunLoad {
    key: Key,
    /// Comes when work waits for it.
    hurried: oneshot::Receiver<()>,
}

/// Experts that load beside the work, in the order in which they were wanted, at first at [`Pace::OWN`].
pub(super) struct LoadsAhead {
    pub slots: Rc<Slots>,
    wanted: RefCell<VecDeque<Key>>,
    loading: RefCell<BTreeMap<Key, PendingLoad>>,
    pace: Cell<Pace>,
    wake: mpsc::UnboundedSender<()>,
    woken: RefCell<Option<mpsc::UnboundedReceiver<()>>>,
}

impl LoadsAhead {
    /// Nothing is wanted yet.
    pub fn new(slots: Rc<Slots>) -> Self {
        let (wake, woken) = mpsc::unbounded();
        let (wanted, loading) = Default::default();
        Self { slots, wanted, loading, pace: Cell::new(Pace::OWN), wake, woken: RefCell::new(Some(woken)) }
    }

    /// Loads that begin from now on come at this pace.
    pub fn set_pace(&self, pace: Pace) {
        self.pace.set(pace);
    }

    /// An expert is to be loaded after those that were wanted before.
    pub fn want(&self, key: Key) {
        self.wanted.borrow_mut().push_back(key);
        // The loads end with the driver.
        let _ = self.wake.unbounded_send(());
    }

    /// Whether an expert is wanted or being loaded.
    pub fn is_known(&self, key: Key) -> bool {
        self.loading.borrow().contains_key(&key) || self.wanted.borrow().contains(&key)
    }

    /// How many are.
    pub fn len(&self) -> usize {
        self.loading.borrow().len() + self.wanted.borrow().len()
    }

    /// Gives up loads that have not begun.
    pub fn withdraw(&self, is_meant: impl Fn(Key) -> bool) -> Vec<Key> {
        let mut wanted = self.wanted.borrow_mut();
        let (meant, others): (Vec<Key>, Vec<Key>) = wanted.drain(..).partition(|key| is_meant(*key));
        *wanted = others.into();
        meant
    }

    /// Work waits for an expert, and keeps it; false if it is not being loaded here.
    pub fn claim(&self, key: Key) -> bool {
        let mut loading = self.loading.borrow_mut();
        let Some(coming) = loading.get_mut(&key) else { return false };
        coming.claimed = true;
        if let Some(hurry) = coming.hurry.take() {
            // It may be under way already.
            let _ = hurry.send(());
        }
        true
    }

    /// Waits until an expert is not being loaded any more.
    pub async fn ended(&self, key: Key) {
        let ended = self.loading.borrow_mut().get_mut(&key).map(|coming| {
            let (sender, ended) = oneshot::channel();
            coming.waiting.push(sender);
            ended
        });
        if let Some(ended) = ended {
            // Its sender lives as long as the load.
            let _ = ended.await;
        }
    }

    /// Waits for the end of a load that is under way; false if none is.
    pub async fn one_ended(&self) -> bool {
        let first = self.loading.borrow().keys().next().copied();
        match first {
            Some(key) => self.ended(key).map(|()| true).await,
            None => false,
        }
    }

    /// Loads what is wanted, until the driver ends.
    pub async fn run(&self, ended: impl Fn(Key, LoadEnd, Fetched)) {
        let Some(mut woken) = self.woken.borrow_mut().take() else { return };
        let mut under_way = FuturesUnordered::new();
        loop {
            while under_way.len() < self.pace.get().loads {
                let begun = self.begin(&ended);
                if begun.is_empty() {
                    break;
                }
                under_way.push(self.load(begun));
            }
            let done = if under_way.is_empty() {
                match woken.next().await {
                    Some(()) => None,
                    None => return,
                }
            } else {
                match select(pin!(woken.next()), pin!(under_way.next())).await {
                    Either::Left((Some(()), _)) => None,
                    Either::Left((None, _)) => return,
                    Either::Right((done, _)) => done,
                }
            };
            if let Some((keys, fetched)) = done {
                self.end(keys, fetched, &ended);
            }
        }
    }

    /// Gives the next wanted experts of a block their slots.
    fn begin(&self, ended: &impl Fn(Key, LoadEnd, Fetched)) -> Vec<BegunLoad> {
        let mut begun: Vec<BegunLoad> = Vec::new();
        let mut room = self.slots.engine().staging_bytes().saturating_mul(self.pace.get().buffers);
        while begun.len() < TOGETHER {
            let next = self.wanted.borrow().front().copied();
            let Some(key) = next.filter(|(block, _)| begun.first().is_none_or(|first| first.key.0 == *block)) else {
                break;
            };
            let (block, expert) = key;
            let bytes = self.slots.loader.bytes(WeightUnit::Expert(block, expert)).0;
            if bytes > room && !begun.is_empty() {
                break;
            }
            self.wanted.borrow_mut().pop_front();
            let given = || self.slots.engine().load_expert(block, expert, Keep::Kept);
            if !self.slots.has(block, expert) && matches!(given(), Ok(SlotLoad::Begun)) {
                let (hurry, hurried) = oneshot::channel();
                self.loading.borrow_mut().insert(key, PendingLoad { hurry: Some(hurry), ..PendingLoad::default() });
                begun.push(BegunLoad { key, hurried });
                room = room.saturating_sub(bytes);
            } else {
                ended(key, LoadEnd::NotBegun, Fetched::default());
            }
        }
        begun
    }

    fn end(&self, keys: Vec<Key>, mut fetched: Fetched, ended: &impl Fn(Key, LoadEnd, Fetched)) {
        for key in keys {
            let (block, expert) = key;
            let PendingLoad { claimed, waiting, .. } = self.loading.borrow_mut().remove(&key).unwrap_or_default();
            let how = if self.slots.has(block, expert) {
                LoadEnd::Loaded { claimed }
            } else {
                // Fails only for experts in no slot.
                let _ = self.slots.engine().drop_expert(block, expert);
                LoadEnd::Failed
            };
            // What was fetched together counts once.
            ended(key, how, std::mem::take(&mut fetched));
            for waiting in waiting {
                // Fails if the work was given up.
                let _ = waiting.send(());
            }
        }
    }

    async fn load(&self, begun: Vec<BegunLoad>) -> (Vec<Key>, Fetched) {
        let (keys, hurried): (Vec<Key>, Vec<_>) = begun.into_iter().map(|begun| (begun.key, begun.hurried)).unzip();
        let calm = pin!(self.slots.engine().uploads_at_most(self.pace.get().uploads));
        // A lost device is noticed by the load.
        drop(select(calm, select_all(hurried)).await);
        let units = keys.iter().map(|(block, expert)| WeightUnit::Expert(*block, *expert)).collect();
        match self.slots.read(units).await {
            Ok(loaded) => (keys, Fetched { bytes: loaded.bytes, network: loaded.network, ..Fetched::default() }),
            Err(error) => {
                log::info!("experts were not loaded ahead: {error}");
                (keys, Fetched::default())
            }
        }
    }
}
