//! Workers in groups that load and compute in turn (od-moe.txt 3.1): while one group computes a block, the others load for
//! the following ones.

/// What a block takes, and how workers share it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Schedule {
    /// Workers.
    pub workers: usize,
    /// Workers of a group: they load and compute one block's experts together.
    pub group: usize,
    /// Experts that a token uses in a block.
    pub used: usize,
    /// Milliseconds of the main node for a block, messages included (t^M).
    pub main_millis: f64,
    /// Milliseconds of a worker for an expert, messages included (t^W).
    pub worker_millis: f64,
    /// Milliseconds to load an expert.
    pub load_millis: f64,
}

impl Schedule {
    /// Groups that take turns.
    pub fn groups(&self) -> usize {
        (self.workers / self.group.max(1)).max(1)
    }

    /// Experts of a block that one worker loads and computes, one after the other.
    pub fn experts_a_worker(&self) -> usize {
        self.used.div_ceil(self.group.max(1))
    }

    /// Milliseconds of a group's computing for a block.
    fn computing_millis(&self) -> f64 {
        self.worker_millis * self.experts_a_worker() as f64
    }

    /// Equation 1: how long a group may load without anybody waiting. With g groups it is g·t^M + (g − 1)·t^W: the paper
    /// writes G, its group size, but its example (4·t^M + 3·t^W with eight workers in pairs) counts groups.
    pub fn max_load_millis(&self) -> f64 {
        let groups = self.groups() as f64;
        groups * self.main_millis + (groups - 1.0) * self.computing_millis()
    }

    /// Milliseconds that a group needs to load a block's experts.
    pub fn loading_millis(&self) -> f64 {
        self.load_millis * self.experts_a_worker() as f64
    }

    /// Milliseconds of a block if each of a token's experts was predicted with this probability: what was predicted is
    /// waited for where loading is slower than equation 1 allows, and what was not is loaded then, one after the other on
    /// each worker. While one group is waited for, the others load, so lateness is shared by all groups: they take turns
    /// every (loading + computing) milliseconds.
    pub fn block_millis(&self, recall: f64) -> f64 {
        let late = (self.loading_millis() - self.max_load_millis()).max(0.0) / self.groups() as f64;
        let stall = |loads: usize| (self.load_millis * loads as f64).max(late);
        let missed = 1.0 - recall.clamp(0.0, 1.0);
        // By how probable it is that no worker loads more than so many experts.
        let (expected, _) = (0..=self.experts_a_worker()).fold((0.0, 0.0), |(sum, below), loads| {
            let at_most = self.no_worker_misses_more(missed, loads);
            (sum + (at_most - below) * stall(loads), at_most)
        });
        self.main_millis + self.computing_millis() + expected
    }

    /// The probability that none of a group's workers has more misses than `most`.
    fn no_worker_misses_more(&self, missed: f64, most: usize) -> f64 {
        let workers = self.group.max(1);
        // Experts are shared out evenly: some workers have one more than others.
        let (least, more) = (self.used / workers, self.used % workers);
        let few = |experts: usize| binomial_cdf(experts, missed, most);
        few(least + 1).powi(more as i32) * few(least).powi((workers - more) as i32)
    }
}

/// The probability of at most `most` successes in `trials`, each with probability `chance`.
fn binomial_cdf(trials: usize, chance: f64, most: usize) -> f64 {
    let mut ways = 1.0;
    (0..=most.min(trials)).fold(0.0, |sum, successes| {
        let term = ways * chance.powi(successes as i32) * (1.0 - chance).powi((trials - successes) as i32);
        ways *= (trials - successes) as f64 / (successes + 1) as f64;
        sum + term
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAPER: Schedule =
        Schedule { workers: 8, group: 2, used: 2, main_millis: 3.0, worker_millis: 2.0, load_millis: 14.0 };

    #[test]
    fn four_groups_have_four_main_steps_and_three_of_workers_to_load() {
        assert_eq!(PAPER.max_load_millis(), 4.0 * 3.0 + 3.0 * 2.0);
        assert_eq!(PAPER.block_millis(1.0), 5.0, "14 ms of loading fit into 18");
        assert_eq!(PAPER.block_millis(0.0), 19.0, "each block waits for its experts");
    }

    #[test]
    fn what_one_worker_misses_it_loads_one_after_the_other() {
        let alone = Schedule { group: 1, ..PAPER };
        assert_eq!(alone.block_millis(0.0), 3.0 + 2.0 * 2.0 + 2.0 * 14.0, "both experts of a token");
        // None missed in a quarter of all blocks, one in half of them, both in a quarter.
        assert!((alone.block_millis(0.5) - (7.0 + 0.5 * 14.0 + 0.25 * 28.0)).abs() < 1e-9);
        let pair = Schedule { used: 3, ..PAPER };
        assert_eq!(pair.block_millis(0.0), 3.0 + 4.0 + 28.0, "one of two workers has two of three experts");
    }

    #[test]
    fn groups_that_load_too_slowly_share_the_lateness() {
        let slow = Schedule { load_millis: 38.0, ..PAPER };
        assert_eq!(slow.block_millis(1.0), (38.0 + 2.0) / 4.0, "each of four groups loads and computes in turn");
    }

    #[test]
    fn a_large_group_has_little_time_and_a_small_one_much_to_load() {
        let with = |group| Schedule { group, ..PAPER };
        assert_eq!((with(8).max_load_millis(), with(8).block_millis(1.0)), (3.0, 16.0), "one group never overlaps");
        assert_eq!((with(1).loading_millis(), with(1).max_load_millis()), (28.0, 8.0 * 3.0 + 7.0 * 4.0));
    }
}
