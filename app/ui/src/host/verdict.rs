//! Decides whether a model fits the room, and shows the arithmetic so that users can check it.

use potluck_panel::KvCacheType;
use potluck_text::texts;

/// What counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Case {
    /// Bytes of the weights.
    pub weights: u64,
    /// Bytes of recurrent state, zero without any.
    pub state: u64,
    /// Positions of context.
    pub context: u32,
    /// Type of the KV cache; `None` for the most precise type that fits.
    pub cache: Option<KvCacheType>,
    /// Bytes of full-precision (f32) KV cache per position; `None` until the file's header is read.
    pub kv_cache_per_position: Option<u64>,
    /// Bytes lent: this device's slider, plus the other devices in an open room.
    pub lent: u64,
    /// Number of lending devices.
    pub devices: u32,
    /// Bytes of weights read per token.
    pub active: u64,
    /// Measured memory bandwidth of this device in bytes per second; 0 before the measurement.
    pub bandwidth: f64,
}

/// Approximate bytes per device besides weights and KV cache: scratch, staging, parameters.
pub const SCRATCH: u64 = 64_000_000;

/// With fewer bytes, reading the weights does not dominate a token's time, so no estimate is made.
const READ_BOUND: u64 = 200_000_000;

/// The sum and its consequences.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Weights + recurrent state + KV cache + scratch.
    pub needed: u64,
    /// Bytes of KV cache, if known.
    pub cache: Option<u64>,
    /// The type that the KV cache would have.
    pub cache_type: KvCacheType,
    /// Bytes of scratch.
    pub scratch: u64,
    /// Bytes lent.
    pub lent: u64,
    /// Missing bytes; 0 if the model fits.
    pub short: u64,
    /// A smaller KV cache type than the chosen one that makes the model fit.
    pub fits_with_cache: Option<KvCacheType>,
    /// The smaller power of two of context that makes the model fit, if less context alone suffices.
    pub fits_with_context: Option<u32>,
    /// Tokens per second on this device alone, estimated from its measured bandwidth.
    pub tokens_per_second: Option<f64>,
}

impl Verdict {
    /// True if the model fits into the lent memory.
    #[must_use]
    pub const fn fits(&self) -> bool {
        self.short == 0
    }

    /// The verdict in one sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        if self.fits() {
            return match self.cache_type {
                KvCacheType::F32 => texts().verdict.fits().into(),
                smaller => texts().verdict.fits_with(smaller.name()),
            };
        }
        if self.lent == 0 {
            return texts().verdict.needs(self.needed);
        }
        match (self.fits_with_cache, self.fits_with_context) {
            // A shorter context costs less than answers do with this type.
            (Some(KvCacheType::Q4_0) | None, Some(context)) => texts().verdict.short_context(self.short, context),
            (Some(smaller), _) => texts().verdict.short_cache(self.short, smaller.name()),
            (None, None) => texts().verdict.short(self.short),
        }
    }
}

/// Bytes of 64 values of a head.
const fn bytes_of_64(kind: KvCacheType) -> u64 {
    kind.head_words(64) as u64 * 4
}

/// Computes the verdict.
#[must_use]
pub fn judge(case: Case) -> Verdict {
    let exact = bytes_of_64(KvCacheType::F32);
    let cache_with = |kind: KvCacheType, context: u32| {
        let of =
            |bytes: u64| bytes.saturating_mul(bytes_of_64(kind)).div_ceil(exact).saturating_mul(u64::from(context));
        case.kv_cache_per_position.map(of)
    };
    let scratch = SCRATCH.saturating_mul(u64::from(case.devices.max(1)));
    let needed_with = |kind: KvCacheType, context: u32| {
        let cache = cache_with(kind, context).unwrap_or(0);
        [case.state, cache, scratch].into_iter().fold(case.weights, u64::saturating_add)
    };
    let fits_with = |kind: &KvCacheType| needed_with(*kind, case.context) <= case.lent;
    let fitting = KvCacheType::ALL.into_iter().find(fits_with);
    let automatic = KvCacheType::AUTOMATIC.into_iter().find(fits_with);
    // While the cache size is unknown, no type of KV cache helps.
    let smallest = if case.kv_cache_per_position.is_some() { KvCacheType::Q8_0 } else { KvCacheType::F32 };
    let cache_type = case.cache.or(automatic).unwrap_or(smallest);
    let cache_at = |context: u32| cache_with(cache_type, context);
    let needed_at = |context: u32| needed_with(cache_type, context);
    let needed = needed_at(case.context);
    let short = needed.saturating_sub(case.lent);
    let smaller = std::iter::successors(Some(case.context / 2), |context| Some(context / 2))
        .take_while(|context| *context >= 512)
        .find(|context| needed_at(*context) <= case.lent);
    Verdict {
        needed,
        lent: case.lent,
        cache: cache_at(case.context),
        cache_type,
        fits_with_cache: fitting.filter(|_| short > 0),
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
            state: 0,
            context: 8192,
            cache: Some(KvCacheType::F32),
            kv_cache_per_position: Some(131_072),
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
    fn recurrent_state_takes_memory_too() {
        let with = |state| judge(Case { state, ..case() }).needed;
        assert_eq!(with(1_000_000_000), with(0) + 1_000_000_000);
    }

    #[test]
    fn what_is_missing_is_said_and_what_helps() {
        let verdict = judge(Case { lent: 5_000_000_000, ..case() });
        assert_eq!(verdict.short, verdict.needed - 5_000_000_000);
        assert_eq!(verdict.fits_with_context, Some(4096));
        assert_eq!(verdict.fits_with_cache, Some(KvCacheType::F16));
        assert!(verdict.sentence().contains("to f16."), "{}", verdict.sentence());
        assert_eq!(verdict.tokens_per_second, None);
        let smallest = judge(Case { lent: 4_200_000_000, cache: Some(KvCacheType::Q4_0), ..case() });
        assert_eq!((smallest.fits_with_cache, smallest.fits_with_context), (None, Some(4096)));
        assert!(smallest.sentence().contains("4096 tokens"), "{}", smallest.sentence());
    }

    #[test]
    fn without_a_wish_the_most_exact_type_that_fits_is_meant() {
        let with = |lent| judge(Case { lent, cache: None, ..case() });
        let exact = 8192 * 131_072;
        let rest = 4_000_000_000 + SCRATCH;
        assert_eq!(with(rest + exact).cache_type, KvCacheType::F32);
        assert_eq!(with(rest + exact - 1).cache_type, KvCacheType::F16);
        let verdict = with(rest + exact / 3);
        assert_eq!((verdict.cache_type, verdict.cache), (KvCacheType::Q8_0, Some(exact * 68 / 256)));
        assert!(verdict.fits() && verdict.sentence().contains("q8_0"), "{}", verdict.sentence());
        let short = with(rest);
        assert_eq!((short.cache_type, short.short), (KvCacheType::Q8_0, exact * 68 / 256));
    }

    #[test]
    fn the_smallest_type_is_offered_last_and_never_taken_without_a_wish() {
        let exact = 8192 * 131_072;
        let lent = 4_000_000_000 + SCRATCH + exact * 36 / 256;
        let shorter = judge(Case { lent, cache: None, ..case() });
        assert!(!shorter.fits() && shorter.sentence().contains("4096 tokens"), "{}", shorter.sentence());
        let exact = 600 * 131_072;
        let lent = 4_000_000_000 + SCRATCH + exact * 36 / 256;
        let case = || Case { context: 600, ..case() };
        let verdict = judge(Case { lent, cache: None, ..case() });
        assert!(!verdict.fits(), "{}", verdict.sentence());
        assert!(verdict.sentence().contains("to q4_0."), "{}", verdict.sentence());
        let wished = judge(Case { lent, cache: Some(KvCacheType::Q4_0), ..case() });
        assert!(wished.fits(), "{}", wished.sentence());
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
        assert_eq!(judge(Case { kv_cache_per_position: None, ..case() }).cache, None);
    }
}
