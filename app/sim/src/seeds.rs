//! Many seeds on all cores.

use std::num::NonZero;
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// What comes of each seed, in their order. The seeds are divided among the machine's cores.
///
/// # Panics
/// If `run` panics, with its message.
pub fn of_seeds<T: Send>(seeds: Range<u64>, run: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let next = AtomicU64::new(seeds.start);
    let some = || {
        let mut done = Vec::new();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return done;
            }
            done.push((seed, run(seed)));
        }
    };
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let mut done: Vec<(u64, T)> = thread::scope(|scope| {
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(some)).collect();
        let joined = threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        joined.flatten().collect()
    });
    done.sort_by_key(|(seed, _)| *seed);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_their_seeds() {
        assert_eq!(of_seeds(3..40, |seed| seed * seed), (3..40).map(|seed| seed * seed).collect::<Vec<_>>());
    }

    #[test]
    #[should_panic(expected = "seed 7 fails")]
    fn a_seed_that_fails_says_which_one_it_was() {
        of_seeds(0..20, |seed| assert_ne!(seed, 7, "seed {seed} fails"));
    }
}
