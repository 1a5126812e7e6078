//! When a copy of a call goes to another holder, and how many bytes copies may take.

use potluck_plan::KernelClass;

use super::latency::Latencies;

/// Bytes of copies, hedges and late calls together, as a share of the bytes of first calls.
const MAX_EXTRA: f64 = 0.3;
/// Calls after which a holder's quantiles mean something.
pub(super) const ENOUGH: usize = 12;

/// How long to wait for a holder before another one is asked; `None` before enough is known of it.
pub(super) fn delay(latencies: &Latencies) -> Option<f64> {
    if latencies.len() < ENOUGH { None } else { potluck_planner::hedge_millis(|share| latencies.quantile(share)) }
}

/// Why a call goes to another holder, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// The holder takes longer than most of its calls do.
    Hedge,
    /// Something has happened to it.
    Late,
}

/// What copies may take. Decoded tokens and prompts have a budget each: one call of a chunk has as many bytes as all calls of
/// a token.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budgets {
    decode: Budget,
    prefill: Budget,
}

impl Budgets {
    pub fn of(&mut self, class: KernelClass) -> &mut Budget {
        match class {
            KernelClass::Decode => &mut self.decode,
            KernelClass::Prefill => &mut self.prefill,
        }
    }
}

impl Default for Budgets {
    fn default() -> Self {
        // One call in four is hedged, which leaves some for holders whose tail grows, and for late calls.
        let decode = Budget { memory: 16e6, max_hedges: 0.28, first: 0.0, copies: 0.0 };
        // A chunk's calls have up to 38 MB a block. If one of three holders vanishes, what hedges leave does for its share.
        let prefill = Budget { memory: 256e6, max_hedges: 0.2, first: 0.0, copies: 0.0 };
        Self { decode, prefill }
    }
}

/// Bytes of first calls and of copies lately, answers included.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    /// Bytes after which what was sent counts half, so that a burst long ago is not an allowance for ever.
    memory: f64,
    /// Bytes of hedges, as a share of those of first calls.
    max_hedges: f64,
    first: f64,
    copies: f64,
}

impl Budget {
    pub fn first(&mut self, bytes: u64) {
        self.first += bytes as f64;
        if self.first > self.memory {
            (self.first, self.copies) = (self.first / 2.0, self.copies / 2.0);
        }
    }

    /// Takes the bytes of a copy, if there are any left.
    #[must_use]
    pub fn take(&mut self, bytes: u64, cause: Cause) -> bool {
        let most = match cause {
            Cause::Hedge => self.max_hedges,
            Cause::Late => MAX_EXTRA,
        };
        let has_room = self.copies + bytes as f64 <= most * self.first;
        if has_room {
            self.copies += bytes as f64;
        }
        has_room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latencies(values: impl IntoIterator<Item = f64>) -> Latencies {
        let mut latencies = Latencies::default();
        values.into_iter().for_each(|value| latencies.answered(value));
        latencies
    }

    #[test]
    fn a_steady_holder_is_given_time_and_one_with_a_tail_is_not() {
        assert_eq!(delay(&latencies([10.0; 5])), None, "too little is known");
        assert_eq!(delay(&latencies([10.0; 40])), Some(20.0), "twice what it always takes");
        let with_tail = (0..40).map(|call| if call % 5 == 0 { 100.0 } else { 10.0 + f64::from(call) / 10.0 });
        let delay = delay(&latencies(with_tail)).unwrap_or_default();
        assert!(delay < 15.0, "not the tail, but what most calls take: {delay}");
    }

    /// A chunk of 512 tokens with eight experts of 2,048 values, which three holders share: ten calls a block.
    #[test]
    fn hedges_of_prompts_leave_enough_for_a_holder_that_vanishes() {
        const CALL: u64 = 3_800_000;
        let mut budgets = Budgets::default();
        let budget = budgets.of(KernelClass::Prefill);
        for call in 0..1_000 {
            budget.first(CALL);
            let _ = budget.take(CALL, Cause::Hedge);
            if call > 40 && call % 10 == 9 {
                let mut later = *budget;
                assert!((0..3).all(|_| later.take(CALL, Cause::Late)), "all of its calls go to others, after {call}");
            }
        }
        assert!(!budgets.of(KernelClass::Decode).take(1, Cause::Late), "they say nothing of decoded tokens");
    }

    #[test]
    fn copies_take_at_most_their_share_of_bytes() {
        let mut budgets = Budgets::default();
        let budget = budgets.of(KernelClass::Decode);
        assert!(!budget.take(1, Cause::Late), "nothing was sent yet");
        let mut copied = 0;
        for _ in 0..100_000 {
            budget.first(1_000);
            copied += u64::from(budget.take(1_000, Cause::Hedge)) * 1_000;
        }
        let share = copied as f64 / 100_000_000.0;
        assert!((0.26..=0.28).contains(&share), "{share}");
        assert!(!budget.take(1_000, Cause::Hedge) && budget.take(1_000, Cause::Late), "some is left for late calls");
        for _ in 0..100_000 {
            budget.first(1_000);
            for cause in [Cause::Late, Cause::Hedge, Cause::Late] {
                copied += u64::from(budget.take(1_000, cause)) * 1_000;
            }
        }
        let share = copied as f64 / 200_000_000.0;
        assert!((0.28..=0.3).contains(&share), "both together: {share}");
    }
}
