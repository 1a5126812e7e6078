//! How long the slowest of several calls takes, if each takes a random time: the integrals of moex.txt 4.1 and B, for
//! calls that differ and are made with some probability only.

use std::ops::Range;
use std::sync::OnceLock;

use crate::normal::{self, CERTAIN, Cdf};

/// The distribution of the time until an answer is back, milliseconds.
#[derive(Clone, Debug, PartialEq)]
pub enum Delay {
    /// Always the same.
    Fixed(f64),
    /// Log-normal.
    LogNormal {
        /// Its median.
        median: f64,
        /// The standard deviation of its logarithm.
        sigma: f64,
    },
    /// Measured: ascending quantiles at equal distances, the least and the largest included. Linear in between.
    Quantiles(Vec<f64>),
}

/// One way to get a call's answer. There may be several: the first that is complete counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    /// How long each of those takes that are asked.
    pub delay: Delay,
    /// How many devices are asked, each for a part, on average: the last answer counts.
    pub devices: f64,
    /// Milliseconds after the call's begin at which they are asked.
    pub start_millis: f64,
}

/// A call that may be made.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The probability that it is made.
    pub chance: f64,
    /// How its answer is got.
    pub attempts: Vec<Attempt>,
}

/// Steps of the integral.
const STEPS: usize = 256;
/// The integral ends where a log-normal delay is exceeded with a probability of 1e-9.
const TAIL: f64 = 6.0;
/// Smallest and largest times that count, milliseconds.
const MILLIS: (f64, f64) = (1e-6, 1e9);

impl Delay {
    /// Log-normal, or fixed where there is no spread. What is no number counts as the longest time.
    pub fn spread(median: f64, sigma: f64) -> Self {
        let median = if median.is_nan() { MILLIS.1 } else { median.clamp(0.0, MILLIS.1) };
        if sigma > 0.0 && sigma.is_finite() && median > 0.0 {
            Self::LogNormal { median, sigma }
        } else {
            Self::Fixed(median)
        }
    }

    /// The probability that the answer is back after this time (equation 14).
    pub fn cdf(&self, millis: f64) -> f64 {
        match self {
            Self::Fixed(at) => f64::from(u8::from(millis >= *at)),
            Self::LogNormal { median, sigma } => LogNormal::new(*median, *sigma).cdf(millis.ln()),
            Self::Quantiles(quantiles) if quantiles.is_empty() => 1.0,
            Self::Quantiles(quantiles) => {
                let below = quantiles.partition_point(|quantile| *quantile <= millis);
                match (below.checked_sub(1), quantiles.get(below)) {
                    (None, _) => 0.0,
                    (_, None) => 1.0,
                    (Some(index), Some(next)) => {
                        let share = (millis - quantiles[index]) / (next - quantiles[index]);
                        (index as f64 + share) / (quantiles.len() - 1) as f64
                    }
                }
            }
        }
    }

    /// The time within which the answer is back with this probability.
    pub fn quantile(&self, probability: f64) -> f64 {
        let probability = probability.clamp(0.0, 1.0);
        match self {
            Self::Fixed(at) => *at,
            Self::LogNormal { median, sigma } => median * (sigma * usual_quantile(probability)).exp(),
            Self::Quantiles(quantiles) => {
                let at = probability * quantiles.len().saturating_sub(1) as f64;
                let value = |index: usize| quantiles.get(index).or(quantiles.last()).copied().unwrap_or(0.0);
                let (low, high) = (value(at as usize), value(at as usize + 1));
                low + (at - at.floor()) * (high - low)
            }
        }
    }

    /// Prepared for many times.
    fn curve(&self) -> Curve<'_> {
        match self {
            Self::LogNormal { median, sigma } => Curve::LogNormal(LogNormal::new(*median, *sigma)),
            other => Curve::Other(other),
        }
    }

    /// Times between which nearly all of the probability lies.
    fn range(&self) -> (f64, f64) {
        match self {
            Self::Fixed(at) => (*at, *at),
            Self::LogNormal { median, sigma } => (median * (-TAIL * sigma).exp(), median * (TAIL * sigma).exp()),
            Self::Quantiles(quantiles) => {
                (quantiles.first().copied().unwrap_or(0.0), quantiles.last().copied().unwrap_or(0.0))
            }
        }
    }
}

/// A delay, prepared for many times.
enum Curve<'a> {
    LogNormal(LogNormal),
    Other(&'a Delay),
}

/// A log-normal delay, prepared for many times.
struct LogNormal {
    ln_median: f64,
    sigma: f64,
    normal: Cdf,
}

impl LogNormal {
    fn new(median: f64, sigma: f64) -> Self {
        Self { ln_median: median.ln(), sigma, normal: Cdf::new() }
    }

    /// The probability that the answer is back, by the logarithm of the time.
    fn cdf(&self, ln: f64) -> f64 {
        self.normal.at((ln - self.ln_median) / self.sigma)
    }
}

/// Ascending times, with their logarithms.
struct Times {
    millis: Vec<f64>,
    lns: Vec<f64>,
}

impl Times {
    fn new(millis: Vec<f64>) -> Self {
        Self { lns: millis.iter().map(|millis| millis.ln()).collect(), millis }
    }
}

impl Attempt {
    /// One device is asked for everything.
    pub fn of_one(delay: Delay, start_millis: f64) -> Self {
        Self { delay, devices: 1.0, start_millis }
    }

    /// The probability that some part is missing after this time, whose logarithm is known. `curve`: that of the delay.
    fn late(&self, curve: &Curve<'_>, millis: f64, ln: f64) -> f64 {
        let there = match (curve, self.start_millis) {
            (Curve::LogNormal(delay), 0.0) => delay.cdf(ln),
            (Curve::LogNormal(delay), start) => delay.cdf((millis - start).ln()),
            (Curve::Other(delay), start) => delay.cdf(millis - start),
        };
        // Most attempts are one device's, and a power takes as long as the rest.
        1.0 - if self.devices == 1.0 { there } else { there.powf(self.devices) }
    }

    /// Of ascending times those after which something may be there or missing: [`Self::late`] is 1 before, and 0 after them.
    fn uncertain(&self, times: &[f64]) -> Range<usize> {
        let all = 0..times.len();
        let (from, to) = match &self.delay {
            Delay::Fixed(at) => (*at, *at),
            // Beyond this nothing is uncertain.
            Delay::LogNormal { median, sigma } if self.devices >= 1.0 => {
                (median * (-CERTAIN * sigma).exp(), median * (CERTAIN * sigma).exp())
            }
            _ => return all,
        };
        let before = |limit: f64| times.partition_point(|millis| millis - self.start_millis < limit);
        before(from)..before(to)
    }
}

impl Call {
    /// A call that is always made, to one that is asked once.
    pub fn sure(delay: Delay) -> Self {
        Self { chance: 1.0, attempts: vec![Attempt::of_one(delay, 0.0)] }
    }

    /// The same call, made to `copies` at once (equation 5).
    pub fn hedged(delay: &Delay, copies: usize) -> Self {
        Self { chance: 1.0, attempts: vec![Attempt::of_one(delay.clone(), 0.0); copies] }
    }

    /// The probability that the call is made and no attempt is complete after each of these ascending times (equations 6 and
    /// 15).
    fn open(&self, times: &Times) -> Vec<f64> {
        let mut late = vec![1.0; times.millis.len()];
        for attempt in &self.attempts {
            let uncertain = attempt.uncertain(&times.millis);
            late[uncertain.end..].fill(0.0);
            let curve = attempt.delay.curve();
            for index in uncertain {
                if late[index] > 0.0 {
                    late[index] *= attempt.late(&curve, times.millis[index], times.lns[index]);
                }
            }
        }
        let chance = self.chance.clamp(0.0, 1.0);
        late.iter_mut().for_each(|late| *late *= chance);
        late
    }
}

/// Milliseconds until the last of these calls has its first answer, on average: ∫ 1 − Π (1 − open(t)) dt, equations 16
/// to 18 for unequal calls. Calls are independent of each other.
pub fn expected_max(calls: &[Call]) -> f64 {
    let Cells { widths, middles } = Cells::of(calls);
    widths.iter().zip(any_open(calls, &Times::new(middles))).map(|(width, open)| width * open).sum()
}

/// No more than [`expected_max`], in a fraction of the time: what is open does not become more with time, so neighbouring
/// cells of the integral have at least the height of the last.
pub(crate) fn expected_max_at_least(calls: &[Call]) -> f64 {
    let Cells { widths, middles } = Cells::of(calls);
    let size = middles.len().div_ceil(HEIGHTS).max(1);
    // The first cell is wide, because no answer comes before its end.
    let starts = (0..middles.len().min(1)).chain((1..middles.len()).step_by(size));
    let ends = (1..middles.len()).step_by(size).chain([middles.len()]);
    let groups: Vec<Range<usize>> = starts.zip(ends).map(|(start, end)| start..end).collect();
    let lasts: Vec<f64> = groups.iter().map(|group| middles[group.end - 1]).collect();
    let sums = groups.into_iter().map(|group| widths[group].iter().sum::<f64>());
    sums.zip(any_open(calls, &Times::new(lasts))).map(|(width, open)| width * open).sum::<f64>() * (1.0 - ROUNDING)
}

/// Heights of which [`expected_max_at_least`] is made.
const HEIGHTS: usize = 28;
/// What a bound may be off by, as a share, because Φ is known to six digits.
const ROUNDING: f64 = 1e-6;

/// Cells of the integral: narrow where something may happen soon.
struct Cells {
    widths: Vec<f64>,
    /// Ascending.
    middles: Vec<f64>,
}

impl Cells {
    fn of(calls: &[Call]) -> Self {
        let mut edges = vec![0.0];
        let (mut low, mut high) = (f64::INFINITY, 0.0f64);
        let attempts = || made(calls).flat_map(|call| &call.attempts);
        for Attempt { delay, start_millis, .. } in attempts() {
            let (from, to) = delay.range();
            let end = (to + start_millis).min(MILLIS.1);
            edges.push((from + start_millis).min(MILLIS.1));
            edges.push(end);
            (low, high) = (low.min(from.max(MILLIS.0)), high.max(end));
        }
        if attempts().any(|attempt| !matches!(attempt.delay, Delay::Fixed(_))) {
            let ratio = (high / low).max(1.0).ln() / STEPS as f64;
            edges.extend((0..STEPS).map(|step| low * (ratio * step as f64).exp()));
        }
        edges.sort_by(f64::total_cmp);
        let cells = edges.windows(2).filter(|edge| edge[1] > edge[0]);
        let (widths, middles) = cells.map(|edge| (edge[1] - edge[0], (edge[0] + edge[1]) / 2.0)).unzip();
        Self { widths, middles }
    }
}

fn made(calls: &[Call]) -> impl Iterator<Item = &Call> {
    calls.iter().filter(|call| call.chance > 0.0 && !call.attempts.is_empty())
}

/// The probability that any call is open after each of these ascending times.
fn any_open(calls: &[Call], times: &Times) -> Vec<f64> {
    let mut closed = vec![1.0; times.millis.len()];
    for call in made(calls) {
        closed.iter_mut().zip(call.open(times)).for_each(|(closed, open)| *closed *= 1.0 - open);
    }
    closed.iter().map(|closed| 1.0 - closed).collect()
}

/// Where answers vary, the next holder is asked once the first one has taken longer than this share of its answers. So one
/// call in four is made twice, and of what two at once gain, about 60% is left at the 99th percentile.
pub(crate) const HEDGE_QUANTILE: f64 = 0.75;
/// A holder is steady if its 95th percentile is within this factor of its median.
const STEADY: f64 = 1.3;
/// Another holder than a steady one is asked after so many times its 95th percentile: something has happened to it.
const STEADY_FACTOR: f64 = 2.0;

/// How long to wait for a holder before another one is asked, from the quantiles of its answers; `None` if nothing is known
/// of it.
pub fn hedge_millis(quantile: impl Fn(f64) -> Option<f64>) -> Option<f64> {
    let (median, slow) = (quantile(0.5)?, quantile(0.95)?);
    if slow <= STEADY * median { Some(STEADY_FACTOR * slow) } else { quantile(HEDGE_QUANTILE) }
}

/// [`normal::quantile`]. Those that hedging asks for are kept, because it takes sixty steps.
fn usual_quantile(probability: f64) -> f64 {
    const USUAL: [f64; 3] = [0.5, HEDGE_QUANTILE, 0.95];
    static KNOWN: OnceLock<[f64; 3]> = OnceLock::new();
    match USUAL.iter().position(|usual| *usual == probability) {
        Some(at) => KNOWN.get_or_init(|| USUAL.map(normal::quantile))[at],
        None => normal::quantile(probability),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use potluck_plan::random::Random;

    /// moex.txt table 1: eight experts, median 20 ms, σ 0.5.
    fn worker() -> Delay {
        Delay::LogNormal { median: 20.0, sigma: 0.5 }
    }

    #[test]
    fn the_slowest_of_two_calls_is_weighed_by_its_chance() {
        let call = |millis, chance| Call { chance, ..Call::sure(Delay::Fixed(millis)) };
        // Half of the time the slow one is called (8 ms), else the quick one always answers (2 ms).
        assert!((expected_max(&[call(2.0, 1.0), call(8.0, 0.5)]) - 5.0).abs() < 1e-12);
        assert_eq!(expected_max(&[]), 0.0);
        assert_eq!(expected_max(&[call(3.0, 0.0)]), 0.0);
    }

    #[test]
    fn the_mean_of_one_log_normal_delay_is_known() {
        let expected = 20.0 * (0.125f64).exp();
        let found = expected_max(&[Call::sure(worker())]);
        assert!((found / expected - 1.0).abs() < 1e-4, "{found} instead of {expected}");
    }

    #[test]
    fn the_integral_is_what_drawn_delays_give() {
        let mut random = Random::new(1);
        let mut drawn = || worker().quantile(random.unit());
        for copies in 1..=4 {
            let slowest = |draw: &mut dyn FnMut() -> f64| {
                let first = |draw: &mut dyn FnMut() -> f64| (0..copies).map(|_| draw()).fold(f64::INFINITY, f64::min);
                (0..8).map(|_| first(draw)).fold(0.0, f64::max)
            };
            let runs = 20_000;
            let mean = (0..runs).map(|_| slowest(&mut drawn)).sum::<f64>() / f64::from(runs);
            let found = expected_max(&vec![Call::hedged(&worker(), copies); 8]);
            assert!((mean / found - 1.0).abs() < 0.01, "h = {copies}: {found} by the integral, {mean} drawn");
        }
    }

    #[test]
    fn a_hedge_after_a_delay_lies_between_one_copy_and_two() {
        let later = |start_millis| {
            let attempts = vec![Attempt::of_one(worker(), 0.0), Attempt::of_one(worker(), start_millis)];
            expected_max(&vec![Call { chance: 1.0, attempts }; 8])
        };
        let (one, two) = (expected_max(&vec![Call::sure(worker()); 8]), later(0.0));
        let after_p75 = later(worker().quantile(0.75));
        assert!(two < after_p75 && after_p75 < one, "{two} < {after_p75} < {one}");
        assert!((later(1e6) - one).abs() < 0.01 * one, "a hedge that comes too late changes nothing");
    }

    /// The 99th percentile of the slowest of five answers.
    #[test]
    fn a_hedge_after_three_quarters_has_most_of_the_gain_for_a_quarter_more_calls() {
        let p99 = |attempts: Vec<Attempt>| {
            let call = Call { chance: 1.0, attempts };
            let (mut low, mut high) = (0.0, 1e3);
            for _ in 0..60 {
                let middle = (low + high) / 2.0;
                if (1.0 - call.open(&Times::new(vec![middle]))[0]).powi(5) < 0.99 {
                    low = middle
                } else {
                    high = middle
                }
            }
            low
        };
        let from = |start_millis| Attempt::of_one(worker(), start_millis);
        let (one, two) = (p99(vec![from(0.0)]), p99(vec![from(0.0), from(0.0)]));
        let delay = hedge_millis(|share| Some(worker().quantile(share)));
        let hedged = p99(vec![from(0.0), from(delay.unwrap_or_default())]);
        let gain = (one - hedged) / (one - two);
        assert!((0.6..0.7).contains(&gain), "{gain}: {one} ms, hedged {hedged}, two at once {two}");
    }

    #[test]
    fn an_attempt_that_is_shared_out_waits_for_the_last_of_its_devices() {
        let shared = Attempt { delay: worker(), devices: 3.0, start_millis: 5.0 };
        let found = expected_max(&[Call { chance: 1.0, attempts: vec![shared] }]);
        let three = expected_max(&vec![Call::sure(worker()); 3]) + 5.0;
        assert!((found - three).abs() < 1e-3 * three, "{found}, and three devices that are asked 5 ms later: {three}");
    }

    #[test]
    fn measured_quantiles_are_a_distribution_too() {
        let quantiles = Delay::Quantiles(
            (0..=100).map(|step| worker().quantile(f64::from(step).clamp(0.5, 99.5) / 100.0)).collect(),
        );
        for probability in [0.1, 0.5, 0.9] {
            let millis = quantiles.quantile(probability);
            assert!((quantiles.cdf(millis) - probability).abs() < 1e-9, "{probability} at {millis}");
            assert!((worker().cdf(millis) - probability).abs() < 1e-6, "{probability} at {millis}");
        }
        let (measured, known) = (Call::hedged(&quantiles, 2), Call::hedged(&worker(), 2));
        let ratio = expected_max(&vec![measured; 8]) / expected_max(&vec![known; 8]);
        assert!((ratio - 1.0).abs() < 0.02, "{ratio}");
    }

    /// Calls to several holders with a copy each, of all kinds of delays.
    fn drawn_calls(random: &mut Random) -> Vec<Call> {
        let count = 1 + random.below(9);
        let delay = |random: &mut Random| match random.below(4) {
            0 => Delay::Fixed(40.0 * random.unit()),
            1 => Delay::Quantiles((0..5).map(|step| 4.0 * f64::from(step) + 3.0 * random.unit()).collect()),
            _ => Delay::LogNormal { median: 1.0 + 60.0 * random.unit(), sigma: 0.02 + 1.5 * random.unit() },
        };
        let call = |_| {
            let first = Attempt::of_one(delay(random), 0.0);
            let (start_millis, devices) = (30.0 * random.unit(), 1.0 + random.below(2) as f64 * random.unit());
            let copy = Attempt { delay: delay(random), devices, start_millis };
            Call { chance: random.unit(), attempts: if random.below(3) > 0 { vec![first, copy] } else { vec![first] } }
        };
        (0..count).map(call).collect()
    }

    #[test]
    fn the_integral_looks_at_each_time_only_where_something_is_uncertain() {
        for seed in 0..300 {
            let calls = drawn_calls(&mut Random::new(seed));
            let Cells { widths, middles } = Cells::of(&calls);
            let open = |call: &Call, millis: f64| {
                let late = |attempt: &Attempt| attempt.late(&attempt.delay.curve(), millis, millis.ln());
                call.chance * call.attempts.iter().map(late).product::<f64>()
            };
            let all = |millis: f64| 1.0 - calls.iter().map(|call| 1.0 - open(call, millis)).product::<f64>();
            let every: f64 = widths.iter().zip(middles).map(|(width, millis)| width * all(millis)).sum();
            assert_eq!(expected_max(&calls), every, "seed {seed}: to the bit");
        }
    }

    #[test]
    fn the_bound_is_below_the_integral_and_near_it() {
        for seed in 0..300 {
            let calls = drawn_calls(&mut Random::new(seed));
            let (bound, all) = (expected_max_at_least(&calls), expected_max(&calls));
            assert!(bound <= all, "seed {seed}: {bound} is above {all}");
            assert!(bound >= 0.5 * all, "seed {seed}: {bound} is far below {all}");
        }
    }

    #[test]
    fn what_is_no_number_is_late() {
        assert_eq!(Delay::spread(f64::NAN, 0.0), Delay::Fixed(1e9));
        assert_eq!(Delay::spread(5.0, f64::NAN), Delay::Fixed(5.0));
        assert!(expected_max(&[Call::sure(Delay::spread(f64::INFINITY, 0.0))]).is_finite());
        assert_eq!(Delay::Quantiles(Vec::new()).cdf(0.0), 1.0, "nothing was measured: it takes no time");
    }
}
