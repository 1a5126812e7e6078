//! Samples the next token with pure functions: seed and position give the random number, the token log gives the
//! penalties. There is no sampler state that a closed tab could lose.

use potluck_plan::random::mix;
use potluck_plan::{Candidates, LogitsRequest};
use serde::{Deserialize, Serialize};

/// Sampling parameters, in the order in which they apply.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sampling {
    /// Divides (if negative, multiplies) the logits of tokens among the last [`Self::penalty_window`]; 1 is off.
    pub repetition_penalty: f32,
    /// Number of recent tokens that the penalty covers.
    pub penalty_window: u32,
    /// Keeps this many of the best tokens; 0 keeps all candidates.
    pub top_k: u32,
    /// Keeps the fewest best tokens whose probabilities, before temperature, reach this sum; 1 is off.
    pub top_p: f32,
    /// Keeps tokens with at least this probability relative to the best; 0 is off.
    pub min_p: f32,
    /// Divides the logits; 0 or less picks the best token, ties to the lowest id.
    pub temperature: f32,
    /// Equal seeds, logs and candidates sample the same token.
    pub seed: u64,
}

impl Default for Sampling {
    fn default() -> Self {
        Self {
            repetition_penalty: 1.0,
            penalty_window: 64,
            top_k: 40,
            top_p: 0.95,
            min_p: 0.05,
            temperature: 0.8,
            seed: 0,
        }
    }
}

impl Sampling {
    /// Always the best token.
    pub fn greedy() -> Self {
        Self { temperature: 0.0, ..Self::default() }
    }

    /// What the LM head must return for these parameters.
    ///
    /// [`LogitsRequest::MAX_TOP`] candidates give the same result as the whole vocabulary while `top_k` plus the
    /// penalty window does not exceed them: penalties only lower logits, so no other token can enter the best `top_k`.
    /// Beyond that, sampling is restricted to the candidates, which hold nearly all the probability.
    pub fn request(&self) -> LogitsRequest {
        if self.is_greedy() && !self.penalizes() {
            LogitsRequest::Top(1)
        } else {
            LogitsRequest::Top(LogitsRequest::MAX_TOP)
        }
    }

    /// Samples the token that follows `log`, the conversation's complete token log: its length is the new token's
    /// position. `None` without candidates.
    pub fn sample(&self, candidates: &Candidates, log: &[u32]) -> Option<u32> {
        self.draw(candidates.ids.iter().copied().zip(candidates.logits.iter().copied()), log)
    }

    /// Like [`Self::sample`], from the logits of the whole vocabulary.
    pub fn sample_from_logits(&self, logits: &[f32], log: &[u32]) -> Option<u32> {
        self.draw((0..).zip(logits.iter().copied()), log)
    }

    fn is_greedy(&self) -> bool {
        self.temperature <= 0.0 || !self.temperature.is_finite()
    }

    fn penalizes(&self) -> bool {
        self.repetition_penalty != 1.0 && self.repetition_penalty > 0.0 && self.penalty_window > 0
    }

    fn draw(&self, candidates: impl Iterator<Item = (u32, f32)>, log: &[u32]) -> Option<u32> {
        let recent = match self.penalizes() {
            true => &log[log.len().saturating_sub(self.penalty_window as usize)..],
            false => &[],
        };
        let mut entries: Vec<Entry> = candidates
            .filter(|(_, logit)| !logit.is_nan())
            .map(|(id, logit)| {
                // Infinities would make the sum of probabilities meaningless.
                let logit = f64::from(logit.clamp(f32::MIN, f32::MAX));
                Entry { id, logit: if recent.contains(&id) { self.penalized(logit) } else { logit } }
            })
            .collect();
        if self.is_greedy() {
            return entries.iter().min_by(|a, b| a.order(b)).map(|entry| entry.id);
        }
        let keep = match self.top_k as usize {
            0 => entries.len(),
            k => k.min(entries.len()),
        };
        if keep < entries.len() {
            entries.select_nth_unstable_by(keep, Entry::order);
            entries.truncate(keep);
        }
        entries.sort_unstable_by(Entry::order);
        self.keep_top_p(&mut entries);
        let best = entries.first()?.logit;
        if self.min_p > 0.0 {
            // The best token stays whatever `min_p` is.
            let least = f64::from(self.min_p.min(1.0)).ln();
            entries.retain(|entry| entry.logit - best >= least);
        }
        let weights = weights(&entries, f64::from(self.temperature));
        let mut left = uniform(self.seed, log.len() as u64) * weights.iter().sum::<f64>();
        for (entry, weight) in entries.iter().zip(&weights) {
            left -= weight;
            if left < 0.0 {
                return Some(entry.id);
            }
        }
        // Rounding can make the random number exceed the sum of the weights slightly.
        entries.last().map(|entry| entry.id)
    }

    fn penalized(&self, logit: f64) -> f64 {
        let penalty = f64::from(self.repetition_penalty);
        if logit > 0.0 { logit / penalty } else { logit * penalty }
    }

    fn keep_top_p(&self, entries: &mut Vec<Entry>) {
        if self.top_p >= 1.0 || self.top_p.is_nan() {
            return;
        }
        let weights = weights(entries, 1.0);
        let enough = f64::from(self.top_p) * weights.iter().sum::<f64>();
        let mut sum = 0.0;
        let full = weights.iter().position(|weight| {
            sum += weight;
            sum >= enough
        });
        entries.truncate(full.map_or(entries.len(), |at| at + 1));
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    id: u32,
    logit: f64,
}

impl Entry {
    /// Best first, ties by lowest id.
    fn order(&self, other: &Self) -> std::cmp::Ordering {
        other.logit.total_cmp(&self.logit).then(self.id.cmp(&other.id))
    }
}

/// Weights proportional to the probabilities; the first entry is the best token.
fn weights(entries: &[Entry], temperature: f64) -> Vec<f64> {
    let best = entries.first().map_or(0.0, |entry| entry.logit);
    entries.iter().map(|entry| ((entry.logit - best) / temperature).exp()).collect()
}

/// A number in [0, 1) for a seed and position: SplitMix64's hash of both.
fn uniform(seed: u64, position: u64) -> f64 {
    // An f64 holds 53 bits exactly.
    (mix(mix(seed) ^ position) >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use proptest::prelude::*;

    fn plain() -> Sampling {
        Sampling { top_k: 0, top_p: 1.0, min_p: 0.0, temperature: 1.0, ..Sampling::default() }
    }

    /// Counts how often each token is sampled over many positions.
    fn counts(sampling: Sampling, logits: &[f32], draws: usize) -> Vec<usize> {
        let mut counts = vec![0; logits.len()];
        for position in 0..draws {
            // The log contains only id 0.
            counts[sampling.sample_from_logits(logits, &vec![0; position]).unwrap() as usize] += 1;
        }
        counts
    }

    #[test]
    fn greedy_takes_the_best_and_the_lowest_of_equals() {
        let greedy = Sampling::greedy();
        assert_eq!(greedy.sample_from_logits(&[1.0, 3.0, 3.0, f32::NAN], &[]), Some(1));
        assert_eq!(greedy.sample_from_logits(&[], &[]), None);
        assert_eq!(greedy.request(), LogitsRequest::Top(1));
        let candidates = Candidates { ids: vec![9, 4], logits: vec![2.0, 2.0] };
        assert_eq!(greedy.sample(&candidates, &[]), Some(4));
    }

    #[test]
    fn draws_follow_the_probabilities() {
        // Probabilities 1/2, 1/3, 1/6. Over 6000 draws the standard deviation is under 39.
        let logits = [3f32.ln(), 2f32.ln(), 0.0];
        let drawn = counts(plain(), &logits, 6000);
        for (drawn, expected) in drawn.into_iter().zip([3000i64, 2000, 1000]) {
            assert!((drawn as i64 - expected).abs() < 160, "{drawn} draws, {expected} expected");
        }
    }

    #[test]
    fn each_rule_cuts_what_it_should() {
        let logits = [8f32.ln(), 4f32.ln(), 2f32.ln(), 1f32.ln(), 1f32.ln()];
        let drawn = |sampling| counts(sampling, &logits, 400).iter().map(|&n| n > 0).collect::<Vec<bool>>();
        assert_eq!(drawn(plain()), [true; 5]);
        assert_eq!(drawn(Sampling { top_k: 2, ..plain() }), [true, true, false, false, false]);
        // The first token has probability 1/2, the first two 3/4.
        assert_eq!(drawn(Sampling { top_p: 0.5, ..plain() }), [true, false, false, false, false]);
        assert_eq!(drawn(Sampling { top_p: 0.51, ..plain() }), [true, true, false, false, false]);
        assert_eq!(drawn(Sampling { min_p: 0.2, ..plain() }), [true, true, true, false, false]);
        assert_eq!(drawn(Sampling { min_p: 2.0, ..plain() }), [true, false, false, false, false]);
        assert_eq!(drawn(Sampling { temperature: 0.01, ..plain() }), [true, false, false, false, false]);
    }

    #[test]
    fn a_penalty_looks_back_as_far_as_its_window() {
        let greedy = Sampling { repetition_penalty: 2.0, penalty_window: 2, ..Sampling::greedy() };
        assert_eq!(greedy.request(), LogitsRequest::Top(LogitsRequest::MAX_TOP), "the best may be penalized");
        assert_eq!(greedy.sample_from_logits(&[3.0, 2.0], &[0, 1, 1]), Some(0), "0 is outside the window");
        assert_eq!(greedy.sample_from_logits(&[3.0, 2.0], &[1, 0, 0]), Some(1));
        assert_eq!(greedy.sample_from_logits(&[-1.0, -1.5], &[0]), Some(1), "negative logits get lower too");
    }

    proptest! {
        #[test]
        fn the_best_candidates_are_as_good_as_all_logits(
            logits in prop::collection::vec(-8f32..8.0, 200..400),
            log in prop::collection::vec(0u32..400, 0..80),
            seed: u64,
        ) {
            let sampling = Sampling { repetition_penalty: 1.3, seed, ..Sampling::default() };
            let LogitsRequest::Top(n) = sampling.request() else { unreachable!() };
            let mut order: Vec<u32> = (0..logits.len() as u32).collect();
            order.sort_by(|&a, &b| logits[b as usize].total_cmp(&logits[a as usize]).then(a.cmp(&b)));
            order.truncate(n.into());
            let best = order.iter().map(|&id| logits[id as usize]).collect();
            let candidates = Candidates { ids: order, logits: best };
            prop_assert_eq!(sampling.sample(&candidates, &log), sampling.sample_from_logits(&logits, &log));
        }

        #[test]
        fn random_numbers_stay_below_one(seed: u64, position: u64) {
            let number = uniform(seed, position);
            prop_assert!((0.0..1.0).contains(&number));
        }
    }
}
