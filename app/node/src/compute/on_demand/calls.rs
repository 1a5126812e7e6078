//! What stages elsewhere call and hint: a call that lacks nothing goes to the engine at once.

use std::collections::{BTreeMap, BTreeSet};

use potluck_panel::CallTimes;
use potluck_plan::{BlockIndex, ExpertId, KernelClass, Outcome, Task, Ticket, Work};

use super::ahead::{Key, Pace};
use super::counts::Fetched;
use super::driver::Driver;
use super::guesses::{Calls, OnDemandGuesses};
use super::slots::failed;

/// Experts that hints may name at a time, loaded or not.
const MOST_NAMED: usize = 4096;

/// Hinted experts that wait or load at a time, at most: a quarter of the slots, and one where there are fewer.
fn most_hinted(slots: u32) -> usize {
    1.max(slots as usize / 4)
}

impl Driver {
    /// Changes who calls the experts in these slots, and whether this device guesses. Guesses of the same kind keep what they
    /// have learned.
    pub fn set_calls(&self, calls: Calls) {
        let (serves, guesses) = match calls {
            Calls::Own(guesses) => (false, guesses.map(|OnDemandGuesses(guesses)| guesses)),
            Calls::FromElsewhere => (true, None),
        };
        let is_same = match (&guesses, &self.guesses()) {
            (Some(new), Some(old)) => new.hears(old),
            (new, old) => new.is_some() == old.is_some(),
        };
        if serves == self.serves.get() && is_same {
            return;
        }
        if let Some(ended) = self.guesses.replace(guesses) {
            ended.release_all(&self.ahead);
            let loaded = Fetched { bytes: ended.bytes(), network: ended.network(), ..Fetched::default() };
            self.count(|counts| counts.add_hinted(&loaded));
        }
        // Whoever wanted these is gone, too.
        self.ahead.withdraw(|_| true);
        self.hinted.borrow_mut().clear();
        self.ahead.set_pace(if serves { Pace::CALLED } else { Pace::OWN });
        self.serves.set(serves);
    }

    /// Hands a call of decoded tokens to the engine if every expert is in its slot: that is all that a device does which holds all
    /// of its experts. Otherwise the work comes back.
    ///
    /// # Errors
    /// What became of the work.
    pub fn at_once(&self, work: Work) -> Result<Option<Work>, Outcome> {
        let Task::Experts { block, class: KernelClass::Decode, experts, .. } = &work.task else {
            return Ok(Some(work));
        };
        let named: BTreeSet<ExpertId> = experts.iter().flatten().copied().collect();
        let is_pooled = self.serves.get() && self.pool.blocks.contains(block);
        if !is_pooled || named.iter().any(|expert| !self.slots.has(*block, *expert)) {
            return Ok(Some(work));
        }
        self.called(*block, experts);
        let fetched = Fetched { hits: named.len() as u64, ..Fetched::default() };
        self.count(|counts| counts.add(KernelClass::Decode, &fetched));
        let ticket = work.ticket;
        self.at_once.borrow_mut().insert(ticket, self.now());
        self.slots.submit(work).map(|()| None).map_err(|error| {
            self.at_once.borrow_mut().remove(&ticket);
            failed(error)
        })
    }

    /// The result of a call that went to the engine at once is there.
    pub fn ended_at_once(&self, ticket: Ticket) {
        if let Some(began) = self.at_once.borrow_mut().remove(&ticket) {
            let times = CallTimes { engine: self.now() - began, ..CallTimes::default() };
            self.count(|counts| counts.add_call(&times));
        }
    }

    /// These experts will probably be called.
    pub fn hint(&self, experts: Vec<Key>) {
        let most = most_hinted(self.pool.slots);
        let mut hinted = self.hinted.borrow_mut();
        for key in experts.into_iter().filter(|(block, _)| self.pool.blocks.contains(block)) {
            if hinted.len() < MOST_NAMED {
                hinted.insert(key, false);
            }
            if self.slots.has(key.0, key.1) {
                self.slots.engine().touch_expert(key.0, key.1);
            } else if self.ahead.len() < most && !self.ahead.is_known(key) {
                self.ahead.want(key);
            }
        }
    }

    /// Decoded tokens of a stage elsewhere call experts of a block: what was hinted of it, and of blocks that have passed, waits
    /// no longer. What was loaded in vain makes room first.
    pub fn called(&self, block: BlockIndex, experts: &[Vec<ExpertId>]) {
        let mut called = self.called.borrow_mut();
        let rows = called.entry(block).or_insert(0);
        *rows += experts.len() as u64;
        // A token passes each block once, and calls this device in most.
        let tokens = *rows;
        self.count(|counts| counts.tokens = counts.tokens.max(tokens));
        if self.hinted.borrow().is_empty() {
            return;
        }
        let places: BTreeMap<BlockIndex, usize> = self.pool.blocks.iter().copied().zip(0..).collect();
        let place = |block: BlockIndex| places.get(&block).copied().unwrap_or_default();
        let (blocks, here) = (places.len(), place(block));
        // Hints look ahead over less than half of the blocks.
        let has_passed = |of: BlockIndex| (here + blocks - place(of)) % blocks < (blocks / 2).max(1);
        let is_called = |expert: ExpertId| experts.iter().flatten().any(|called| *called == expert);
        let (mut named, mut vain) = (0, Vec::new());
        self.hinted.borrow_mut().retain(|(of, expert), loaded| {
            if *of == block && is_called(*expert) {
                named += 1;
            } else if *loaded && has_passed(*of) {
                vain.push((*of, *expert));
            }
            !has_passed(*of)
        });
        vain.into_iter().for_each(|(of, expert)| self.slots.engine().age_expert(of, expert));
        self.count(|counts| counts.hinted += named);
        self.ahead.withdraw(|(of, _)| has_passed(of));
    }
}
