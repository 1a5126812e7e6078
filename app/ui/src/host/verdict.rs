//! Does a model fit the room? With its arithmetic, so that nobody has to believe it.

use crate::text::bytes;

/// What counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Case {
    /// Bytes of the weights.
    pub weights: u64,
    /// Positions of context.
    pub context: u32,
    /// Bytes of state a position; nothing until the file's header is read.
    pub state_per_position: Option<u64>,
    /// Bytes lent: this device's slider and, in an open room, the others'.
    pub lent: u64,
    /// Devices that lend.
    pub devices: u32,
    /// Bytes of weights a token reads.
    pub active: u64,
    /// Bytes a second this device streams, measured; 0 before.
    pub bandwidth: f64,
}

/// Bytes a device needs besides weights and state, about: scratch, staging, parameters.
pub const SCRATCH: u64 = 64_000_000;

/// Below this, a token's time is not the time to read its weights, and no estimate is made of it.
const READ_BOUND: u64 = 200_000_000;

/// The sum and what it means.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Weights + cache + scratch.
    pub needed: u64,
    /// Bytes of cache, if they can be said.
    pub cache: Option<u64>,
    /// Bytes of scratch.
    pub scratch: u64,
    /// Bytes short; 0 if it fits.
    pub short: u64,
    /// The smaller power of two of context that would fit, if less context alone helps.
    pub fits_with_context: Option<u32>,
    /// Tokens a second on this device alone, an estimate from what was measured.
    pub tokens_per_second: Option<f64>,
}

impl Verdict {
    /// It fits what is lent.
    #[must_use]
    pub const fn fits(&self) -> bool {
        self.short == 0
    }

    /// One sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        if self.fits() {
            return "Fits what is lent.".into();
        }
        let short = bytes(self.short);
        match self.fits_with_context {
            Some(context) => {
                format!("{short} short. Lending more, one more device or a context of {context} tokens helps.")
            }
            None => format!("{short} short. Lending more or one more device helps."),
        }
    }
}

/// Does the arithmetic.
#[must_use]
pub fn judge(case: Case) -> Verdict {
    let cache_at = |context: u32| case.state_per_position.map(|bytes| bytes.saturating_mul(u64::from(context)));
    let scratch = SCRATCH.saturating_mul(u64::from(case.devices.max(1)));
    let needed_at = |context: u32| case.weights.saturating_add(cache_at(context).unwrap_or(0)).saturating_add(scratch);
    let needed = needed_at(case.context);
    let short = needed.saturating_sub(case.lent);
    let smaller = std::iter::successors(Some(case.context / 2), |context| Some(context / 2))
        .take_while(|context| *context >= 512)
        .find(|context| needed_at(*context) <= case.lent);
    Verdict {
        needed,
        cache: cache_at(case.context),
        scratch,
        short,
        fits_with_context: smaller.filter(|_| short > 0),
        tokens_per_second: (case.bandwidth > 0.0 && case.active >= READ_BOUND && short == 0)
            .then(|| case.bandwidth / case.active as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case() -> Case {
        Case {
            weights: 4_000_000_000,
            context: 8192,
            state_per_position: Some(131_072),
            lent: 6_000_000_000,
            devices: 1,
            active: 4_000_000_000,
            bandwidth: 40e9,
        }
    }

    #[test]
    fn the_sum_is_weights_cache_and_scratch() {
        let verdict = judge(case());
        assert_eq!(verdict.cache, Some(8192 * 131_072));
        assert_eq!(verdict.needed, 4_000_000_000 + 8192 * 131_072 + SCRATCH);
        assert!(verdict.fits());
        assert_eq!(verdict.tokens_per_second, Some(10.0));
    }

    #[test]
    fn what_is_missing_is_said_and_what_helps() {
        let verdict = judge(Case { lent: 5_000_000_000, ..case() });
        assert_eq!(verdict.short, verdict.needed - 5_000_000_000);
        assert_eq!(verdict.fits_with_context, Some(4096));
        assert!(verdict.sentence().contains("4096 tokens"), "{}", verdict.sentence());
        assert_eq!(verdict.tokens_per_second, None);
    }

    #[test]
    fn less_context_is_not_offered_when_it_cannot_help() {
        let verdict = judge(Case { lent: 1_000_000_000, ..case() });
        assert_eq!(verdict.fits_with_context, None);
        assert!(!verdict.sentence().contains("context"));
    }

    #[test]
    fn every_device_needs_its_scratch() {
        assert_eq!(judge(Case { devices: 3, ..case() }).scratch, 3 * SCRATCH);
    }

    #[test]
    fn an_unknown_cache_is_not_invented() {
        assert_eq!(judge(Case { state_per_position: None, ..case() }).cache, None);
    }
}
