//! What experts on demand cost.

use potluck_panel::CallTimes;
use potluck_plan::{Bytes, KernelClass};

/// What experts on demand cost so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct OnDemandCounts {
    /// Decoded tokens.
    pub tokens: u64,
    /// Experts that decoded tokens used and that were in a slot.
    pub hits: u64,
    /// Experts that decoded tokens used and that had to be loaded.
    pub misses: u64,
    /// Blocks at which decoded tokens waited for a load.
    pub stalls: u64,
    /// Bytes loaded for decoded tokens.
    pub bytes: Bytes,
    /// Those of them that came over the network.
    pub network: Bytes,
    /// Milliseconds for which decoded tokens waited for loads.
    pub wait_millis: f64,
    /// Bytes loaded for prompts.
    pub prefill_bytes: Bytes,
    /// Bytes loaded on hints of others, or on guesses of this device's that have ended.
    pub hinted_bytes: Bytes,
    /// Those of them that came over the network.
    pub hinted_network: Bytes,
    /// Experts that decoded tokens used and that a hint had named.
    pub hinted: u64,
    /// Calls of a block's experts by decoded tokens.
    pub calls: u64,
    /// Milliseconds that they took, in all.
    pub call_millis: CallTimes,
}

/// The bus while experts load: how many were loaded, and for how long any load was under way.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Bus {
    under_way: u32,
    since: f64,
    /// Milliseconds.
    pub millis: f64,
    /// Experts.
    pub loads: u64,
}

impl Bus {
    /// A load begins.
    pub fn begin(&mut self, now: f64) {
        if self.under_way == 0 {
            self.since = now;
        }
        self.under_way += 1;
    }

    /// A load of so many experts has ended.
    pub fn end(&mut self, now: f64, experts: u64) {
        self.under_way = self.under_way.saturating_sub(1);
        self.loads += experts;
        if self.under_way == 0 {
            self.millis += now - self.since;
        }
    }
}

/// What one wave of experts took.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fetched {
    pub hits: u64,
    pub misses: u64,
    pub bytes: Bytes,
    /// Those of them that came over the network.
    pub network: Bytes,
    /// Milliseconds until they were there, if any was not.
    pub millis: f64,
    /// Milliseconds of waiting for slots before.
    pub slots_millis: f64,
}

impl OnDemandCounts {
    /// The share of used experts that were in a slot; `None` before the first token.
    pub fn recall(&self) -> Option<f64> {
        let used = self.hits + self.misses;
        (used > 0).then(|| self.hits as f64 / used as f64)
    }

    /// Adds a call.
    pub fn add_call(&mut self, times: &CallTimes) {
        self.calls += 1;
        self.call_millis = self.call_millis.with(times, |all, call| all + call);
    }

    /// Means of all calls.
    pub fn a_call(&self) -> CallTimes {
        let calls = self.calls.max(1) as f64;
        self.call_millis.with(&self.call_millis, |all, _| all / calls)
    }

    /// Adds what was loaded on a hint, or on guesses that have ended.
    pub fn add_hinted(&mut self, fetched: &Fetched) {
        self.hinted_bytes = self.hinted_bytes.saturating_add(fetched.bytes);
        self.hinted_network = self.hinted_network.saturating_add(fetched.network);
    }

    /// Adds a wave.
    pub fn add(&mut self, class: KernelClass, fetched: &Fetched) {
        match class {
            KernelClass::Prefill => self.prefill_bytes = self.prefill_bytes.saturating_add(fetched.bytes),
            KernelClass::Decode => {
                self.hits += fetched.hits;
                self.misses += fetched.misses;
                self.stalls += u64::from(fetched.misses > 0);
                self.bytes = self.bytes.saturating_add(fetched.bytes);
                self.network = self.network.saturating_add(fetched.network);
                self.wait_millis += fetched.millis;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_at_the_same_time_take_the_bus_once() {
        let mut bus = Bus::default();
        bus.begin(10.0);
        bus.begin(12.0);
        bus.end(15.0, 1);
        bus.end(18.0, 3);
        bus.begin(30.0);
        bus.end(31.0, 0);
        assert_eq!((bus.millis, bus.loads), (9.0, 4));
    }

    #[test]
    fn a_call_takes_the_sum_of_its_parts() {
        let mut counts = OnDemandCounts::default();
        assert_eq!(counts.a_call(), CallTimes::default(), "no call yet");
        counts.add_call(&CallTimes { queued: 1.0, slots_wait: 0.0, reads_wait: 4.0, engine: 2.0, rest: 1.0 });
        counts.add_call(&CallTimes { engine: 2.0, ..CallTimes::default() });
        let a_call = counts.a_call();
        assert_eq!(a_call, CallTimes { queued: 0.5, slots_wait: 0.0, reads_wait: 2.0, engine: 2.0, rest: 0.5 });
        assert_eq!(a_call.total(), 5.0);
    }

    #[test]
    fn recall_is_the_share_of_experts_that_were_there() {
        let mut counts = OnDemandCounts::default();
        assert_eq!(counts.recall(), None);
        let fetched =
            Fetched { hits: 3, misses: 1, bytes: Bytes(100), network: Bytes(40), millis: 2.0, slots_millis: 0.0 };
        counts.add(KernelClass::Decode, &fetched);
        counts.add(KernelClass::Decode, &Fetched { misses: 0, bytes: Bytes::ZERO, ..fetched });
        counts.add(KernelClass::Prefill, &fetched);
        assert_eq!((counts.recall(), counts.stalls), (Some(6.0 / 7.0), 1));
        assert_eq!((counts.bytes, counts.prefill_bytes), (Bytes(100), Bytes(100)));
        assert_eq!(counts.network, Bytes(80), "each decoded wave counts");
    }
}
