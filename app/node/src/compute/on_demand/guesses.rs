//! Experts that this device guesses. What is needed goes before what is guessed: a guess takes a free slot or that of
//! the expert that makes room first, never one that work needs, and waiting guesses are dropped when their block is
//! there.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

use potluck_engine::Keep;
#[cfg(not(target_arch = "wasm32"))]
use potluck_engine::reference::Routers;
use potluck_plan::{
    BatchToken, BlockIndex, Bytes, ExpertId, ExpertOutputs, ExpertRoute, KernelClass, LmHeadTokens, Position, Task,
    Then, WeightUnit,
};
use potluck_predict::{Foresight, ForesightReport, Published};

use super::ahead::{Key, LoadEnd, LoadsAhead};
use super::counts::Fetched;
#[cfg(not(target_arch = "wasm32"))]
use super::routers::block_outputs;
use crate::compute::shadow::Shadow;

/// Who calls the experts of a pool.
pub enum Calls {
    /// Stages of this device; perhaps its own predictor loads ahead.
    Own(Option<OnDemandGuesses>),
    /// Stages elsewhere, which may hint what they will call: only that is computed here.
    FromElsewhere,
}

/// Guesses for one pool ([`Compute::guesses`](crate::compute::Compute::guesses)).
pub struct OnDemandGuesses(pub(super) Rc<Guesses>);

/// Guesses and what became of them.
pub(super) struct Guesses {
    pub foresight: RefCell<Foresight>,
    /// For predictors that ask the next router.
    #[cfg(not(target_arch = "wasm32"))]
    pub routers: Option<Rc<Routers>>,
    /// Says what it chooses, and where that is heard.
    pub shadow: Option<(Rc<Shadow>, Published)>,
    /// Blocks to look ahead.
    pub lead: u16,
    /// Experts that a token uses in a block: so many slots stay for what is needed.
    used: usize,
    /// Wanted experts whose block is not there yet, with the tokens for which they were guessed.
    expected: RefCell<BTreeSet<(Key, Position)>>,
    /// Those of them that are in a slot: they stay until their block is there.
    kept: RefCell<BTreeSet<Key>>,
    network: Cell<Bytes>,
}

impl Guesses {
    /// No guesses yet. A token uses `used` experts in a block.
    pub fn new(foresight: Foresight, used: usize) -> Self {
        Self {
            foresight: RefCell::new(foresight),
            #[cfg(not(target_arch = "wasm32"))]
            routers: None,
            shadow: None,
            lead: 1,
            used,
            expected: RefCell::default(),
            kept: RefCell::default(),
            network: Cell::default(),
        }
    }

    /// Both hear the same shadow, or none.
    pub fn hears(&self, other: &Self) -> bool {
        match (&self.shadow, &other.shadow) {
            (Some((shadow, _)), Some((others, _))) => Rc::ptr_eq(shadow, others),
            (shadow, others) => shadow.is_none() && others.is_none(),
        }
    }

    /// What came of the guesses so far.
    pub fn report(&self) -> ForesightReport {
        let report = self.foresight.borrow().report();
        match &self.shadow {
            Some((_, published)) => published.recall().in_report(report),
            None => report,
        }
    }

    /// Bytes loaded on guesses so far.
    pub fn bytes(&self) -> Bytes {
        self.foresight.borrow().bytes()
    }

    /// Bytes of guesses that came over the network.
    pub fn network(&self) -> Bytes {
        self.network.get()
    }

    /// Looks ahead to blocks of these tokens, and begins to load what may be needed there.
    pub fn look_ahead(&self, ahead: &LoadsAhead, tokens: &[(Position, BlockIndex)]) {
        let mut foresight = self.foresight.borrow_mut();
        for &(position, block) in tokens {
            let all = ahead.slots.engine().slots_for(block).map_or(0, |slots| slots as usize);
            for expert in foresight.guesses(position, block) {
                let key = (block, expert);
                let is_known = self.kept.borrow().contains(&key) || ahead.is_known(key);
                let taken = self.kept.borrow().len() + ahead.len();
                if taken + self.used >= all && !is_known {
                    break;
                }
                if ahead.slots.has(block, expert) {
                    // Fails only for experts in no slot.
                    let _ = ahead.slots.engine().keep_expert(block, expert, Keep::Kept);
                    self.kept.borrow_mut().insert(key);
                } else if !is_known {
                    let bytes = ahead.slots.loader.bytes(WeightUnit::Expert(block, expert));
                    if !foresight.afford(bytes) {
                        break;
                    }
                    foresight.loaded(position, block, expert, bytes);
                    self.expected.borrow_mut().insert((key, position));
                    ahead.want(key);
                }
            }
        }
    }

    /// A block's router has chosen for tokens of an answer: its waiting guesses are dropped, those in slots make room again, the
    /// wrong ones first. What was guessed of later blocks stays.
    pub fn reached(&self, ahead: &LoadsAhead, block: BlockIndex, chosen: &BTreeSet<ExpertId>) {
        self.forget(ahead, |(of, _)| of == block);
        let kept = std::mem::take(&mut *self.kept.borrow_mut());
        let (here, later): (BTreeSet<Key>, BTreeSet<Key>) = kept.into_iter().partition(|(of, _)| *of == block);
        *self.kept.borrow_mut() = later;
        for (of, expert) in here {
            self.let_go(ahead, (of, expert), !chosen.contains(&expert));
        }
        for expert in chosen {
            ahead.claim((block, *expert));
        }
    }

    /// No guess holds a slot any more; false if none did.
    pub fn release_all(&self, ahead: &LoadsAhead) -> bool {
        self.forget(ahead, |_| true);
        let kept = std::mem::take(&mut *self.kept.borrow_mut());
        kept.iter().for_each(|key| self.let_go(ahead, *key, true));
        !kept.is_empty()
    }

    /// Forgets guesses whose loads have not begun. Those under way are late.
    fn forget(&self, ahead: &LoadsAhead, is_meant: impl Fn(Key) -> bool) {
        let withdrawn: BTreeSet<Key> = ahead.withdraw(&is_meant).into_iter().collect();
        let mut foresight = self.foresight.borrow_mut();
        self.expected.borrow_mut().retain(|(key, position)| {
            if withdrawn.contains(key) {
                self.give_up(&mut foresight, ahead, (*key, *position));
            }
            !is_meant(*key)
        });
    }

    fn give_up(&self, foresight: &mut Foresight, ahead: &LoadsAhead, ((block, expert), position): (Key, Position)) {
        let bytes = ahead.slots.loader.bytes(WeightUnit::Expert(block, expert));
        foresight.dropped(position, block, expert, bytes);
    }

    /// A guess may make room; before all others if it was wrong.
    fn let_go(&self, ahead: &LoadsAhead, (block, expert): Key, was_wrong: bool) {
        // Fails only for experts in no slot.
        let _ = ahead.slots.engine().keep_expert(block, expert, Keep::Evictable);
        if was_wrong {
            ahead.slots.engine().age_expert(block, expert);
        }
    }

    /// A load of a guess has ended.
    pub fn ended(&self, ahead: &LoadsAhead, key: Key, how: LoadEnd, fetched: Fetched) {
        self.network.set(self.network.get().saturating_add(fetched.network));
        let mut expected = self.expected.borrow_mut();
        let guess = expected.iter().find(|(of, _)| *of == key).copied();
        if let Some(guess) = &guess {
            expected.remove(guess);
        }
        match (how, guess) {
            (LoadEnd::NotBegun, Some(guess)) => self.give_up(&mut self.foresight.borrow_mut(), ahead, guess),
            // Work waits for it, and keeps it.
            (LoadEnd::NotBegun | LoadEnd::Failed, _) | (LoadEnd::Loaded { claimed: true }, _) => {}
            (LoadEnd::Loaded { .. }, Some(_)) => {
                self.kept.borrow_mut().insert(key);
            }
            // It came too late.
            (LoadEnd::Loaded { .. }, None) => self.let_go(ahead, key, true),
        }
    }

    /// Work begins. A token of an answer has a share of the bus for guesses.
    pub fn begin(&self, task: &Task) {
        let Task::Forward { batch, class, .. } = task else { return };
        let mut foresight = self.foresight.borrow_mut();
        if let (KernelClass::Decode, Some(first)) = (class, batch.first()) {
            foresight.begin(first.position);
            if let Some((_, published)) = &self.shadow {
                published.rewind(first.position);
            }
        }
        if let Some((shadow, _)) = &self.shadow {
            shadow.tell(task, foresight.is_active());
        }
    }

    /// Tokens of answers have passed all blocks.
    pub fn decoded(&self, batch: &[BatchToken], then: Then, millis: f64) {
        let [first, drafts @ ..] = batch else { return };
        let is_all = matches!(then, Then::LmHead(request) if request.tokens == LmHeadTokens::All);
        let has_drafts =
            is_all && !drafts.is_empty() && drafts.iter().all(|row| row.conversation == first.conversation);
        let mut foresight = self.foresight.borrow_mut();
        // Drafts without a shadow come with the text, not with guesses.
        if has_drafts && self.shadow.is_some() {
            foresight.drafted(first.position, batch.len() as u32, millis);
        } else {
            foresight.token(millis / batch.len() as f64);
        }
    }

    /// What a block's router chose for the tokens of an answer.
    pub fn observe(&self, rows: &[BatchToken], block: BlockIndex, routes: &[ExpertRoute]) {
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
    pub fn observe_prompt(&self, rows: &[BatchToken], block: BlockIndex, routes: &[ExpertRoute]) {
        let mut foresight = self.foresight.borrow_mut();
        for (row, route) in rows.iter().zip(routes) {
            foresight.observe_prompt(row.position, block, &experts(route));
        }
    }
}

fn experts(route: &ExpertRoute) -> Vec<ExpertId> {
    route.experts.iter().map(|(expert, _)| *expert).collect()
}
