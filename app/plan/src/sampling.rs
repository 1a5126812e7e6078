//! Samples the next token with pure functions: seed and position give the random number, the token log gives the
//! penalties. There is no sampler state that a closed tab could lose.
//!
//! All arithmetic after the parameters is on integers, so that the kernel `sample.wgsl` computes the same on every GPU.

mod numbers;

use serde::{Deserialize, Serialize};

use crate::{Candidates, LogitsRequest};

pub use numbers::SamplingWords;

/// How the next token is sampled: parameters in the order in which they apply. What is not given has its default.
///
/// ```
/// use potluck_plan::Sampling;
///
/// let logits = [1.0, 3.0, 2.9, -4.0];
/// assert_eq!(Sampling::greedy().sample_from_logits(&logits, &[]), Some(1));
///
/// // Equal seeds, logs and logits sample the same token: on another device, and after a reload.
/// let sampling = Sampling { temperature: 1.0, seed: 7, ..Sampling::default() };
/// let sample = |log: &[u32]| sampling.sample_from_logits(&logits, log);
/// assert_eq!(sample(&[5, 6]), sample(&[5, 6]));
///
/// // The penalty makes a token less likely that was there before.
/// let penalized = Sampling { repetition_penalty: 1.5, ..Sampling::greedy() };
/// assert_eq!(penalized.sample_from_logits(&logits, &[1]), Some(2));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
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
            temperature: 0.7,
            seed: 0,
        }
    }
}

/// How an engine samples the tokens of a continuation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SampledSteps {
    /// The parameters. Their window is at most [`SampledSteps::MAX_WINDOW`].
    pub sampling: Sampling,
    /// The newest tokens of the log, oldest first; the last one is the first step's token. As many as penalties look back
    /// at, or all.
    pub recent: Vec<u32>,
}

impl SampledSteps {
    /// Most tokens that penalties may look back at: an engine keeps as many beside the token.
    pub const MAX_WINDOW: u32 = 128;

    /// The steps after a log; `None` if penalties look back too far.
    #[must_use]
    pub fn after(sampling: Sampling, log: &[u32]) -> Option<Self> {
        let window = sampling.penalty_window;
        (window <= Self::MAX_WINDOW)
            .then(|| Self { sampling, recent: log[log.len().saturating_sub(window as usize)..].to_vec() })
    }
}

impl Sampling {
    /// Always the best token.
    #[must_use]
    pub fn greedy() -> Self {
        Self { temperature: 0.0, ..Self::default() }
    }

    /// The same, or the nearest values within the limits of the page's settings.
    #[must_use]
    pub fn within_limits(self) -> Self {
        Self {
            repetition_penalty: self.repetition_penalty.clamp(0.5, 2.0),
            top_p: self.top_p.clamp(0.01, 1.0),
            min_p: self.min_p.clamp(0.0, 1.0),
            temperature: self.temperature.clamp(0.0, 5.0),
            ..self
        }
    }

    /// What the LM head must return for these parameters.
    ///
    /// [`LogitsRequest::MAX_TOP`] candidates give the same result as the whole vocabulary while `top_k` plus the
    /// penalty window does not exceed them: penalties only lower logits, so no other token can enter the best `top_k`.
    /// Beyond that, sampling is restricted to the candidates, which hold nearly all the probability.
    #[must_use]
    pub fn request(&self) -> LogitsRequest {
        if self.is_greedy() && !self.penalizes() {
            LogitsRequest::Top(1)
        } else {
            LogitsRequest::Top(LogitsRequest::MAX_TOP)
        }
    }

    /// Samples the token that follows `log`, the conversation's complete token log: its length is the new token's
    /// position. `None` without candidates.
    #[must_use]
    pub fn sample(&self, candidates: &Candidates, log: &[u32]) -> Option<u32> {
        self.draw(candidates.ids.iter().copied().zip(candidates.logits.iter().copied()), log)
    }

    /// Like [`Self::sample`], from the logits of the whole vocabulary.
    #[must_use]
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
        let words = SamplingWords::of(self);
        let recent = &log[log.len().saturating_sub(words.window() as usize)..];
        let mut entries: Vec<Entry> = candidates
            .filter(|(_, logit)| !logit.is_nan())
            // Both zeros are the same number.
            .map(|(id, logit)| Entry { id, logit: logit + 0.0, value: 0 })
            .collect();
        let best = entries.iter().map(|entry| entry.logit).max_by(f32::total_cmp)?;
        let fraction = numbers::fraction(best);
        for entry in &mut entries {
            let value = numbers::fixed(entry.logit, fraction);
            entry.value = if recent.contains(&entry.id) { words.penalized(value) } else { value };
        }
        let keep = entries.len().min(words.keep() as usize);
        if keep < entries.len() {
            entries.select_nth_unstable_by(keep, Entry::order);
            entries.truncate(keep);
        }
        entries.sort_unstable_by(Entry::order);
        let best = entries.first()?.value;
        let distances: Vec<u32> = entries.iter().map(|entry| best.wrapping_sub(entry.value) as u32).collect();
        let kept = words.keep_likely(&distances, fraction);
        let weights = kept.into_iter().map(|at| (at, words.weight(distances[at], fraction)));
        let weights: Vec<(usize, u64)> = weights.collect();
        let total: u64 = weights.iter().map(|(_, weight)| weight).sum();
        let drawn = words.draw(log.len() as u32, total);
        let mut sum = 0;
        weights.iter().find_map(|(at, weight)| {
            sum += weight;
            (drawn < sum).then_some(entries[*at].id)
        })
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    id: u32,
    logit: f32,
    /// The logit after penalties, in fixed point.
    value: i32,
}

impl Entry {
    /// Best first; what is equal in fixed point by the logits, then by lowest id.
    fn order(&self, other: &Self) -> std::cmp::Ordering {
        other.value.cmp(&self.value).then(other.logit.total_cmp(&self.logit)).then(self.id.cmp(&other.id))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use crate::random::Random;

    fn plain() -> Sampling {
        Sampling { top_k: 0, top_p: 1.0, min_p: 0.0, temperature: 1.0, ..Sampling::default() }
    }

    /// Counts how often each token is sampled over many positions.
    fn counts(sampling: Sampling, logits: &[f32], draws: usize) -> Vec<usize> {
        let mut counts = vec![0; logits.len()];
        // The log contains only id 0.
        let log = vec![0; draws];
        for position in 0..draws {
            counts[sampling.sample_from_logits(logits, &log[..position]).unwrap() as usize] += 1;
        }
        counts
    }

    #[test]
    fn greedy_takes_the_best_and_the_lowest_of_equals() {
        let greedy = Sampling::greedy();
        assert_eq!(greedy.sample_from_logits(&[1.0, 3.0, 3.0, f32::NAN], &[]), Some(1));
        assert_eq!(greedy.sample_from_logits(&[], &[]), None);
        assert_eq!(greedy.request(), LogitsRequest::Top(1));
        let candidates = Candidates { ids: vec![9, 4], logits: vec![2.0, 2.0], sampled: None, log_sum_exp: None };
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
        assert_eq!(drawn(Sampling { top_p: 0.499, ..plain() }), [true, false, false, false, false]);
        assert_eq!(drawn(Sampling { top_p: 0.501, ..plain() }), [true, true, false, false, false]);
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

    #[test]
    fn the_best_candidates_are_as_good_as_all_logits() {
        let mut random = Random::new(3);
        for seed in 0..200 {
            let logits: Vec<f32> = (0..200 + random.below(200)).map(|_| random.unit() as f32 * 16.0 - 8.0).collect();
            let log: Vec<u32> = (0..random.below(80)).map(|_| random.below(400) as u32).collect();
            let sampling = Sampling { repetition_penalty: 1.3, seed, ..Sampling::default() };
            let LogitsRequest::Top(n) = sampling.request() else { unreachable!() };
            let mut order: Vec<u32> = (0..logits.len() as u32).collect();
            order.sort_by(|&a, &b| logits[b as usize].total_cmp(&logits[a as usize]).then(a.cmp(&b)));
            order.truncate(n.into());
            let best = order.iter().map(|&id| logits[id as usize]).collect();
            let candidates = Candidates { ids: order, logits: best, sampled: None, log_sum_exp: None };
            assert_eq!(sampling.sample(&candidates, &log), sampling.sample_from_logits(&logits, &log), "seed {seed}");
        }
    }

    /// The statistic is below its 99.9th percentile for 19 degrees of freedom; the seed is fixed, so this never fails by
    /// chance.
    #[test]
    fn many_draws_pass_a_chi_squared_test() {
        let logits: Vec<f32> = (0..20).map(|id| -0.21 * id as f32 + (id % 3) as f32 * 0.4).collect();
        let sampling = Sampling { temperature: 1.3, seed: 4, ..plain() };
        let draws = 20_000;
        let weights: Vec<f64> = logits.iter().map(|logit| (f64::from(*logit) / 1.3).exp()).collect();
        let expected = weights.iter().map(|weight| weight / weights.iter().sum::<f64>() * draws as f64);
        let drawn = counts(sampling, &logits, draws);
        let statistic: f64 =
            drawn.iter().zip(expected).map(|(drawn, expected)| (*drawn as f64 - expected).powi(2) / expected).sum();
        assert!(statistic < 43.8, "chi squared is {statistic}: {drawn:?}");
    }
}
