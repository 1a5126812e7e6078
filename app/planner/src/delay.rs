//! How long the slowest of several calls takes, if each takes a random time: the integrals of moex.txt 4.1 and B, for
//! calls that differ and are made with some probability only.

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
            Self::LogNormal { .. } if millis <= 0.0 => 0.0,
            Self::LogNormal { median, sigma } => normal_cdf((millis / median).ln() / sigma),
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
            Self::LogNormal { median, sigma } => median * (sigma * normal_quantile(probability)).exp(),
            Self::Quantiles(quantiles) => {
                let at = probability * quantiles.len().saturating_sub(1) as f64;
                let value = |index: usize| quantiles.get(index).or(quantiles.last()).copied().unwrap_or(0.0);
                let (low, high) = (value(at as usize), value(at as usize + 1));
                low + (at - at.floor()) * (high - low)
            }
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

impl Attempt {
    /// One device is asked for everything.
    pub fn of_one(delay: Delay, start_millis: f64) -> Self {
        Self { delay, devices: 1.0, start_millis }
    }

    /// The probability that some part is missing after this time.
    fn late(&self, millis: f64) -> f64 {
        let there = self.delay.cdf(millis - self.start_millis);
        // Most attempts are one device's, and a power takes as long as the rest.
        1.0 - if self.devices == 1.0 { there } else { there.powf(self.devices) }
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

    /// The probability that the call is made and no attempt is complete after this time (equations 6 and 15).
    fn open(&self, millis: f64) -> f64 {
        self.chance.clamp(0.0, 1.0) * self.attempts.iter().map(|attempt| attempt.late(millis)).product::<f64>()
    }
}

/// Milliseconds until the last of these calls has its first answer, on average: ∫ 1 − Π (1 − open(t)) dt, equations 16
/// to 18 for unequal calls. Calls are independent of each other.
pub fn expected_max(calls: &[Call]) -> f64 {
    let calls: Vec<&Call> = calls.iter().filter(|call| call.chance > 0.0 && !call.attempts.is_empty()).collect();
    let mut edges = vec![0.0];
    let (mut low, mut high) = (f64::INFINITY, 0.0f64);
    let attempts = || calls.iter().flat_map(|call| &call.attempts);
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
    let open = |millis: f64| 1.0 - calls.iter().map(|call| 1.0 - call.open(millis)).product::<f64>();
    edges
        .windows(2)
        .filter(|edge| edge[1] > edge[0])
        .map(|edge| (edge[1] - edge[0]) * open((edge[0] + edge[1]) / 2.0))
        .sum()
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

/// Φ, to seven digits (Numerical Recipes, section 6.2).
fn normal_cdf(z: f64) -> f64 {
    const COEFFICIENTS: [f64; 10] = [
        -1.265_512_23,
        1.000_023_68,
        0.374_091_96,
        0.096_784_18,
        -0.186_288_06,
        0.278_868_07,
        -1.135_203_98,
        1.488_515_87,
        -0.822_152_23,
        0.170_872_77,
    ];
    let x = z.abs() / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.5 * x);
    let sum = COEFFICIENTS.iter().rev().fold(0.0, |sum, coefficient| sum * t + coefficient);
    let tail = t * (sum - x * x).exp() / 2.0;
    if z >= 0.0 { 1.0 - tail } else { tail }
}

/// The inverse of Φ within ±8, by bisection.
fn normal_quantile(probability: f64) -> f64 {
    let (mut low, mut high) = (-8.0, 8.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if normal_cdf(middle) < probability { low = middle } else { high = middle }
    }
    (low + high) / 2.0
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
                if (1.0 - call.open(middle)).powi(5) < 0.99 { low = middle } else { high = middle }
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

    #[test]
    fn what_is_no_number_is_late() {
        assert_eq!(Delay::spread(f64::NAN, 0.0), Delay::Fixed(1e9));
        assert_eq!(Delay::spread(5.0, f64::NAN), Delay::Fixed(5.0));
        assert!(expected_max(&[Call::sure(Delay::spread(f64::INFINITY, 0.0))]).is_finite());
        assert_eq!(Delay::Quantiles(Vec::new()).cdf(0.0), 1.0, "nothing was measured: it takes no time");
    }
}
