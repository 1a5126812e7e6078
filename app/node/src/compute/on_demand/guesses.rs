//! Loads guessed experts beside the work. What is needed goes before what is guessed: a guess takes a free slot or that of
//! the expert that was used longest ago, never one that work needs, and waiting guesses are dropped when their block is
//! there.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
#[cfg(not(target_arch = "wasm32"))]
use std::rc::Rc;

use futures::StreamExt;
use futures::channel::{mpsc, oneshot};
#[cfg(not(target_arch = "wasm32"))]
use potluck_engine::reference::Routers;
use potluck_engine::{Keep, SlotLoad};
use potluck_plan::{
    BatchToken, BlockIndex, Bytes, ExpertId, ExpertOutputs, KernelClass, Position, Route, Task, WeightUnit,
};
use potluck_predict::{Foresight, ForesightReport};

#[cfg(not(target_arch = "wasm32"))]
use super::routers::block_outputs;
#[cfg(not(target_arch = "wasm32"))]
use super::shadow::Shadow;
use super::slots::Slots;

type Key = (BlockIndex, ExpertId);

/// A guess that waits for its load.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    position: Position,
    key: Key,
}

/// Guesses and their loads.
pub(super) struct Guesses {
    pub foresight: RefCell<Foresight>,
    /// For predictors that ask the next router.
    #[cfg(not(target_arch = "wasm32"))]
    pub routers: Option<Rc<Routers>>,
    /// Publishes what it chooses.
    #[cfg(not(target_arch = "wasm32"))]
    pub shadow: Option<Rc<Shadow>>,
    /// Experts that a token uses in a block: so many slots stay for what is needed.
    used: usize,
    wanted: RefCell<Vec<Wanted>>,
    wake: mpsc::UnboundedSender<()>,
    woken: RefCell<Option<mpsc::UnboundedReceiver<()>>>,
    loading: RefCell<BTreeSet<Key>>,
    /// Those of them that work waits for.
    claimed: RefCell<BTreeSet<Key>>,
    /// Who waits for the end of a load.
    waiting: RefCell<Vec<oneshot::Sender<()>>>,
    /// Guessed experts that stay until their block is there.
    kept: RefCell<BTreeSet<Key>>,
    /// Counts the blocks that were reached: a guess that comes later is late.
    reached: Cell<u64>,
    network: Cell<Bytes>,
}

impl Guesses {
    /// No guesses yet. A token uses `used` experts in a block.
    pub fn new(foresight: Foresight, used: usize) -> Self {
        let (wake, woken) = mpsc::unbounded();
        Self {
            foresight: RefCell::new(foresight),
            #[cfg(not(target_arch = "wasm32"))]
            routers: None,
            #[cfg(not(target_arch = "wasm32"))]
            shadow: None,
            used,
            wanted: RefCell::default(),
            wake,
            woken: RefCell::new(Some(woken)),
            loading: RefCell::default(),
            claimed: RefCell::default(),
            waiting: RefCell::default(),
            kept: RefCell::default(),
            reached: Cell::default(),
            network: Cell::default(),
        }
    }

    /// What came of the guesses so far.
    pub fn report(&self) -> ForesightReport {
        let report = self.foresight.borrow().report();
        #[cfg(not(target_arch = "wasm32"))]
        if let Some(shadow) = &self.shadow {
            let (shadow_by_index, shadow) = shadow.published().recall();
            return ForesightReport { shadow_by_index, shadow, ..report };
        }
        report
    }

    /// Bytes loaded on guesses so far.
    pub fn bytes(&self) -> Bytes {
        self.foresight.borrow().bytes()
    }

    /// Bytes of guesses that came over the network.
    pub fn network(&self) -> Bytes {
        self.network.get()
    }

    /// Looks ahead to a block of these tokens, and begins to load what may be needed there.
    pub fn look_ahead(&self, slots: &Slots, tokens: &[(Position, BlockIndex)]) {
        let mut foresight = self.foresight.borrow_mut();
        for &(position, block) in tokens {
            let all = slots.engine().slots_for(block).map_or(0, |slots| slots as usize);
            for expert in foresight.guesses(position, block) {
                let key = (block, expert);
                let taken = self.kept.borrow().len() + self.loading.borrow().len() + self.wanted.borrow().len();
                if taken + self.used >= all && !self.is_known(key) {
                    break;
                }
                if slots.has(block, expert) {
                    // Fails only for experts in no slot.
                    let _ = slots.engine().keep_expert(block, expert, Keep::Kept);
                    self.kept.borrow_mut().insert(key);
                } else if !self.is_known(key) {
                    let bytes = slots.loader.bytes(WeightUnit::Expert(block, expert));
                    if !foresight.afford(bytes) {
                        break;
                    }
                    foresight.loaded(position, block, expert, bytes);
                    self.wanted.borrow_mut().push(Wanted { position, key });
                }
            }
        }
        if !self.wanted.borrow().is_empty() {
            // The loads end with the driver.
            let _ = self.wake.unbounded_send(());
        }
    }

    fn is_known(&self, key: Key) -> bool {
        self.kept.borrow().contains(&key)
            || self.loading.borrow().contains(&key)
            || self.wanted.borrow().iter().any(|wanted| wanted.key == key)
    }

    /// A block's router has chosen: waiting guesses are dropped, those in slots make room again, the wrong ones first.
    pub fn reached(&self, slots: &Slots, block: BlockIndex, chosen: &BTreeSet<ExpertId>) {
        self.reached.set(self.reached.get() + 1);
        let dropped = std::mem::take(&mut *self.wanted.borrow_mut());
        self.give_up(slots, dropped);
        for (of, expert) in std::mem::take(&mut *self.kept.borrow_mut()) {
            self.let_go(slots, (of, expert), of != block || !chosen.contains(&expert));
        }
        let mut claimed = self.loading.borrow().clone();
        claimed.retain(|(of, expert)| *of == block && chosen.contains(expert));
        *self.claimed.borrow_mut() = claimed;
    }

    /// Forgets guesses whose loads have not begun.
    fn give_up(&self, slots: &Slots, guesses: Vec<Wanted>) {
        for Wanted { position, key: (block, expert) } in guesses {
            let bytes = slots.loader.bytes(WeightUnit::Expert(block, expert));
            self.foresight.borrow_mut().dropped(position, block, expert, bytes);
        }
    }

    /// A guess may make room; before all others if it was wrong.
    fn let_go(&self, slots: &Slots, (block, expert): Key, was_wrong: bool) {
        // Fails only for experts in no slot.
        let _ = slots.engine().keep_expert(block, expert, Keep::Evictable);
        if was_wrong {
            slots.engine().age_expert(block, expert);
        }
    }

    /// Whether an expert is being loaded on a guess.
    pub fn is_loading(&self, block: BlockIndex, expert: ExpertId) -> bool {
        self.loading.borrow().contains(&(block, expert))
    }

    /// Waits until no guess is being loaded; false if none was.
    pub async fn settled(&self) -> bool {
        if self.loading.borrow().is_empty() {
            return false;
        }
        while !self.loading.borrow().is_empty() {
            let (sender, ended) = oneshot::channel();
            self.waiting.borrow_mut().push(sender);
            // Its sender lives as long as the loads.
            let _ = ended.await;
        }
        true
    }

    /// Work begins. A token of an answer has a share of the bus for guesses.
    pub fn begin(&self, task: &Task) {
        let Task::Forward { batch, class, .. } = task else { return };
        let mut foresight = self.foresight.borrow_mut();
        if let (KernelClass::Decode, Some(first)) = (class, batch.first()) {
            foresight.begin(first.position);
        }
        #[cfg(not(target_arch = "wasm32"))]
        if let Some(shadow) = &self.shadow {
            shadow.tell(task, foresight.is_active());
        }
    }

    /// Loads guesses, and runs a shadow, until the driver ends.
    pub async fn work(&self, slots: &Slots) {
        #[cfg(not(target_arch = "wasm32"))]
        if let Some(shadow) = &self.shadow {
            futures::join!(self.load_all(slots), shadow.follow());
            return;
        }
        self.load_all(slots).await;
    }

    async fn load_all(&self, slots: &Slots) {
        let Some(mut woken) = self.woken.borrow_mut().take() else { return };
        while woken.next().await.is_some() {
            let wanted = std::mem::take(&mut *self.wanted.borrow_mut());
            if !wanted.is_empty() {
                self.load(slots, wanted).await;
            }
        }
    }

    async fn load(&self, slots: &Slots, wanted: Vec<Wanted>) {
        let begins = |wanted: &Wanted| {
            let (block, expert) = wanted.key;
            // Without a slot that may be taken there is no guess.
            matches!(slots.engine().load_expert(block, expert, Keep::Kept), Ok(SlotLoad::Begun))
        };
        let (begun, left): (Vec<Wanted>, Vec<Wanted>) = wanted.into_iter().partition(begins);
        self.give_up(slots, left);
        let begun: Vec<Key> = begun.into_iter().map(|wanted| wanted.key).collect();
        if begun.is_empty() {
            return;
        }
        let reached = self.reached.get();
        self.loading.borrow_mut().extend(&begun);
        let units = begun.iter().map(|(block, expert)| WeightUnit::Expert(*block, *expert)).collect();
        match slots.loader.load(units).await {
            Ok(loaded) => self.network.set(self.network.get().saturating_add(loaded.network)),
            // Whoever needs the expert says so.
            Err(error) => log::info!("a guess was not loaded: {error}"),
        }
        let claimed = std::mem::take(&mut *self.claimed.borrow_mut());
        for key in begun {
            let (block, expert) = key;
            self.loading.borrow_mut().remove(&key);
            if !slots.has(block, expert) {
                // Fails only for experts in no slot.
                let _ = slots.engine().drop_expert(block, expert);
            } else if claimed.contains(&key) {
                // Work waits for it, and keeps it.
            } else if self.reached.get() == reached {
                self.kept.borrow_mut().insert(key);
            } else {
                self.let_go(slots, key, true);
            }
        }
        for waiting in self.waiting.borrow_mut().drain(..) {
            // Fails if the work was given up.
            let _ = waiting.send(());
        }
    }

    /// What a block's router chose for the tokens of an answer.
    pub fn observe(&self, rows: &[BatchToken], block: BlockIndex, routes: &[Route]) {
        let mut foresight = self.foresight.borrow_mut();
        for (row, route) in rows.iter().zip(routes) {
            foresight.observe(row.position, block, &experts(route));
        }
    }

    /// What a block's experts made of the tokens of an answer, for predictors that learn from it.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn output(&self, rows: &[BatchToken], of: &ExpertOutputs) {
        let mut foresight = self.foresight.borrow_mut();
        if let Some(routers) = self.routers.as_ref().filter(|_| foresight.wants_outputs()) {
            for (row, output) in rows.iter().zip(block_outputs(routers, of)) {
                foresight.output(row.position, of.block, &output);
            }
        }
    }

    /// Predictors that learn from outputs run natively only.
    #[cfg(target_arch = "wasm32")]
    pub fn output(&self, _: &[BatchToken], _: &ExpertOutputs) {}

    /// What a block's router chose for the tokens of a prompt.
    pub fn observe_prompt(&self, rows: &[BatchToken], block: BlockIndex, routes: &[Route]) {
        let mut foresight = self.foresight.borrow_mut();
        for (row, route) in rows.iter().zip(routes) {
            foresight.observe_prompt(row.position, block, &experts(route));
        }
    }
}

fn experts(route: &Route) -> Vec<ExpertId> {
    route.experts.iter().map(|(expert, _)| *expert).collect()
}
