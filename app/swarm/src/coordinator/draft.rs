//! Draft tokens: what followed when the last tokens occurred earlier in the log, or what a shadow model expects
//! (`expected_tokens.rs`). Drafts pass the stages beside the certain token, so one round trip can yield several tokens. The
//! model's choice decides, so the answer is the one without drafts. After Saxena, "Prompt Lookup Decoding" (2023), and
//! Leviathan et al., arXiv 2211.17192; the number of drafts after section 3.3 of that.

use potluck_panel::Drafter;

/// Lengths of the n-grams that are looked up, longest first.
const RUNS: [usize; 2] = [3, 2];
/// Limit on draft tokens in one pass: half of a decode batch, so that two conversations can share one.
pub(super) const MAX_DRAFTS: usize = 7;
/// Weight of one new observation in the moving average.
const NEWEST: f64 = 0.125;

/// Draft tokens after a certain one.
#[derive(Clone, Debug, Default)]
pub(super) struct Drafts {
    pub by: Drafter,
    pub tokens: Vec<u32>,
}

/// The `count` tokens that followed the last earlier occurrence of the log's last tokens. Empty if there is none.
pub(super) fn look_up(log: &[u32], count: usize) -> Vec<u32> {
    for run in RUNS {
        let Some(rest) = log.len().checked_sub(run) else { continue };
        let found = (0..rest).rev().find(|start| log[*start..start + run] == log[rest..]);
        if let Some(start) = found {
            // Past the log's end the repetition goes on.
            return log[start + run..].iter().copied().cycle().take(count).collect();
        }
    }
    Vec::new()
}

/// Share of a drafter's judged tokens that the model chose, in one answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acceptance(f64);

impl Default for Acceptance {
    /// High enough to try drafts.
    fn default() -> Self {
        Self(0.5)
    }
}

impl Acceptance {
    pub fn share(self) -> f64 {
        self.0
    }

    pub fn judge(&mut self, right: bool) {
        self.0 += NEWEST * (f64::from(u8::from(right)) - self.0);
    }
}

/// Passes with drafts before their cost is known: one of them may have been late for another reason.
const TRIES: u32 = 2;
/// Passes without drafts after which they are tried again: rooms change.
const TRIED_AGAIN_AFTER: u32 = 128;

/// Cost of drafts in this room: the extra time of a pass for each further token, as a share of a single-token pass.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DraftCost {
    single: f64,
    further: f64,
    /// Passes with drafts that were measured.
    tries: u32,
    /// Passes without drafts since the last one with.
    without: u32,
}

impl DraftCost {
    /// A pass of one token and `drafts` drafts took `millis`.
    pub fn measure(&mut self, drafts: usize, millis: f64) {
        if drafts == 0 {
            self.single = if self.single == 0.0 { millis } else { self.single + NEWEST * (millis - self.single) };
            self.without = self.without.saturating_add(1);
            if self.without >= TRIED_AGAIN_AFTER {
                self.tries = 0;
            }
        } else if self.single > 0.0 {
            let share = ((millis / self.single - 1.0) / drafts as f64).clamp(0.0, 1.0);
            self.further = match self.tries {
                0 => share,
                1..TRIES => share.min(self.further),
                _ => self.further + NEWEST * (share - self.further),
            };
            (self.tries, self.without) = (self.tries.saturating_add(1), 0);
        }
    }

    /// The extra time of a pass for each further token, once it is known.
    pub fn further(&self) -> Option<f64> {
        (self.tries >= TRIES).then_some(self.further)
    }

    /// The number of drafts, at most `max`, that yields the most tokens a second, and how many that are for one without
    /// drafts. Before anything is measured, a further token is assumed to cost little beside `network_hops` and much without
    /// any. One is tried then, once a pass without drafts was timed: somebody waits for the pass.
    pub fn best_length(&self, acceptance: Acceptance, network_hops: u32, max: usize) -> (usize, f64) {
        let further = self.further().unwrap_or(if network_hops > 1 { 0.05 } else { 0.5 });
        let mut best = (0, 1.0);
        let (mut tokens, mut chance) = (1.0, 1.0);
        let max = match self.further() {
            Some(_) => max.min(MAX_DRAFTS),
            None => max.min(usize::from(self.single > 0.0)),
        };
        for length in 1..=max {
            chance *= acceptance.0;
            tokens += chance;
            let rate = tokens / (1.0 + further * length as f64);
            if rate > best.1 {
                best = (length, rate);
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_longest_match_is_continued() {
        assert_eq!(look_up(&[1, 2, 3, 4, 5, 1, 2, 3], 2), [4, 5]);
        assert_eq!(look_up(&[1, 2, 3, 4, 5, 1, 2, 3], 7), [4, 5, 1, 2, 3, 4, 5], "and so on");
        assert_eq!(look_up(&[9, 2, 3, 4, 8, 2, 3, 6, 7, 2, 3], 2), [6, 7], "the latest of two equal runs");
        assert_eq!(look_up(&[5, 5, 5, 5], 3), [5, 5, 5], "a run may overlap itself");
        assert_eq!(look_up(&[1, 2, 3, 4], 7), [0u32; 0], "nothing stood there before");
        assert_eq!(look_up(&[1], 7), [0u32; 0]);
        assert_eq!(look_up(&[], 7), [0u32; 0]);
    }

    #[test]
    fn drafts_grow_with_acceptance_and_shrink_with_cost() {
        let accepted = |times: i32| {
            let mut acceptance = Acceptance::default();
            (0..times.abs()).for_each(|_| acceptance.judge(times > 0));
            acceptance
        };
        let mut cost = DraftCost::default();
        assert_eq!(cost.best_length(accepted(0), 0, 7).0, 0, "on one device nothing is tried on suspicion");
        assert_eq!(cost.best_length(accepted(50), 3, 7).0, 0, "there is nothing to compare its cost with");
        cost.measure(0, 10.0);
        assert_eq!(cost.best_length(accepted(50), 3, 7).0, 1, "what it costs is not known");
        cost.measure(1, 25.0);
        assert_eq!(cost.best_length(accepted(50), 3, 7).0, 1, "one pass may be late for another reason");
        cost.measure(1, 10.5);
        assert!((1..7).contains(&cost.best_length(accepted(0), 3, 7).0));
        assert_eq!(cost.best_length(accepted(50), 3, 7).0, 7, "all were right");
        assert_eq!(cost.best_length(accepted(50), 3, 4).0, 4, "no more than were found");
        assert_eq!(cost.best_length(accepted(-50), 3, 7).0, 0, "none was right");
        let mut dear = DraftCost::default();
        dear.measure(0, 10.0);
        (0..50).for_each(|_| dear.measure(1, 20.0));
        assert_eq!(dear.best_length(accepted(0), 3, 7).0, 0, "a row more takes as long as a pass");
        let again = (1..1_000).find(|_| {
            dear.measure(0, 10.0);
            dear.best_length(accepted(0), 3, 7).0 > 0
        });
        assert_eq!(again, Some(TRIED_AGAIN_AFTER as usize), "rooms change");
    }
}
