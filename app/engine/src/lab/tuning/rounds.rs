//! Picks the fastest of several candidates. Each round runs every remaining candidate once; medians decide. The first
//! candidate is the default, so another must beat it by a margin. A pure state machine: timings in, the next candidate
//! out.

/// Minimum rounds before a decision, and maximum rounds.
const MIN_ROUNDS: usize = 3;
const MAX_ROUNDS: usize = 6;
/// A candidate this much slower than the fastest after two rounds drops out.
const FAR: f64 = 1.15;
/// The winner takes at most this share of the first candidate's time.
const MARGIN: f64 = 0.95;

/// Candidates under measurement; the first is the default when nothing is measured.
#[derive(Clone, Debug)]
pub struct TuningRounds {
    times: Vec<Vec<f64>>,
    out: Vec<bool>,
    /// The first candidate could not be measured, so there is no result.
    void: bool,
}

/// The outcome of the rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// Index of the winning candidate.
    pub winner: usize,
    /// Median milliseconds of the first candidate.
    pub first: f64,
    /// Median milliseconds of the winner.
    pub best: f64,
}

impl TuningRounds {
    /// Starts the rounds for a number of candidates.
    pub fn new(candidates: usize) -> TuningRounds {
        TuningRounds { times: vec![Vec::new(); candidates], out: vec![false; candidates], void: candidates == 0 }
    }

    /// The candidate to time next; `None` once decided. Every other round runs backwards, so that a rising or falling
    /// clock favours no candidate.
    pub fn next(&self) -> Option<usize> {
        if self.void || self.decided() {
            return None;
        }
        let round = self.completed();
        let due = |&candidate: &usize| !self.out[candidate] && self.times[candidate].len() == round;
        let mut candidates = 0..self.times.len();
        if round.is_multiple_of(2) { candidates.find(due) } else { candidates.rev().find(due) }
    }

    /// Records a candidate's time. An invalid time (zero, negative, NaN) removes the candidate; if it was the first,
    /// the rounds are void.
    pub fn record(&mut self, candidate: usize, millis: f64) {
        if millis.is_finite() && millis > 0.0 {
            self.times[candidate].push(millis);
        } else if candidate == 0 {
            self.void = true;
        } else {
            self.out[candidate] = true;
        }
        if self.completed() == 2 {
            let best = self.running().map(|other| self.median(other)).fold(f64::INFINITY, f64::min);
            for other in 1..self.times.len() {
                self.out[other] |= self.median(other) > FAR * best;
            }
        }
    }

    /// The result; `None` if there are too few measurements.
    pub fn result(&self) -> Option<Decision> {
        if self.void || self.completed() < MIN_ROUNDS {
            return None;
        }
        let first = self.median(0);
        let winner = self.leader();
        let wins = self.wins(winner);
        let proven = winner != 0 && self.median(winner) <= MARGIN * first && wins + 1 >= self.times[winner].len();
        let winner = if proven { winner } else { 0 };
        Some(Decision { winner, first, best: self.median(winner) })
    }

    /// Rounds that every remaining candidate has finished.
    fn completed(&self) -> usize {
        self.running().map(|candidate| self.times[candidate].len()).min().unwrap_or(0)
    }

    fn running(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.times.len()).filter(|&candidate| !self.out[candidate])
    }

    fn leader(&self) -> usize {
        self.running().min_by(|&left, &right| self.median(left).total_cmp(&self.median(right))).unwrap_or(0)
    }

    /// Rounds in which a candidate was faster than the first.
    fn wins(&self, candidate: usize) -> usize {
        self.times[candidate].iter().zip(&self.times[0]).filter(|(own, first)| own < first).count()
    }

    fn decided(&self) -> bool {
        let rounds = self.completed();
        if rounds >= MAX_ROUNDS || self.running().count() < 2 && rounds >= MIN_ROUNDS {
            return true;
        }
        if rounds < MIN_ROUNDS || self.times.iter().enumerate().any(|(i, times)| !self.out[i] && times.len() > rounds) {
            return false;
        }
        // Decided early: the first leads, or the leader beat the first by the margin in every round.
        let leader = self.leader();
        leader == 0 || self.times[leader].iter().zip(&self.times[0]).all(|(own, first)| *own <= MARGIN * first)
    }

    /// The median time; the lower of the middle two for an even count. Infinite if nothing was measured.
    fn median(&self, candidate: usize) -> f64 {
        let mut times = self.times[candidate].clone();
        times.sort_by(f64::total_cmp);
        times.get(times.len().saturating_sub(1) / 2).copied().unwrap_or(f64::INFINITY)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use proptest::prelude::*;

    /// Runs all rounds and returns the order in which the candidates ran.
    fn run(rounds: &mut TuningRounds, mut time: impl FnMut(usize, usize) -> f64) -> Vec<usize> {
        let mut order = Vec::new();
        while let Some(candidate) = rounds.next() {
            assert!(order.len() < 1000, "it does not end");
            rounds.record(candidate, time(candidate, order.len()));
            order.push(candidate);
        }
        order
    }

    #[test]
    fn rounds_alternate_and_the_slow_are_not_run_on() {
        let mut rounds = TuningRounds::new(3);
        let order = run(&mut rounds, |candidate, _| [10.0, 9.7, 30.0][candidate]);
        assert_eq!(order[..6], [0, 1, 2, 2, 1, 0]);
        assert!(order[6..].iter().all(|&candidate| candidate != 2), "{order:?}");
        // Three percent is less than the margin.
        assert_eq!(rounds.result().unwrap().winner, 0);
    }

    #[test]
    fn one_that_is_clearly_quicker_wins_early() {
        let mut rounds = TuningRounds::new(2);
        let order = run(&mut rounds, |candidate, _| [10.0, 8.0][candidate]);
        assert_eq!(order.len(), 2 * MIN_ROUNDS);
        assert_eq!(rounds.result(), Some(Decision { winner: 1, first: 10.0, best: 8.0 }));
    }

    #[test]
    fn what_is_no_time_is_never_believed() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let mut rounds = TuningRounds::new(3);
            run(&mut rounds, |candidate, _| if candidate == 1 { bad } else { 10.0 });
            assert_eq!(rounds.result().unwrap().winner, 0, "{bad}");
            let mut rounds = TuningRounds::new(2);
            run(&mut rounds, |candidate, at| if candidate == 0 && at > 2 { bad } else { 10.0 });
            assert_eq!(rounds.result(), None, "{bad}: the first is not known");
        }
        assert_eq!(TuningRounds::new(0).next(), None);
    }

    #[test]
    fn a_race_that_was_cut_short_says_nothing() {
        let mut rounds = TuningRounds::new(2);
        for _ in 0..4 {
            let candidate = rounds.next().unwrap();
            rounds.record(candidate, [10.0, 1.0][candidate]);
        }
        assert_eq!(rounds.result(), None);
    }

    proptest! {
        #[test]
        fn noise_alone_changes_nothing(noise in prop::collection::vec(0.0f64..0.04, 64), count in 1usize..8) {
            let mut rounds = TuningRounds::new(count);
            run(&mut rounds, |_, at| 10.0 * (1.0 + noise[at % noise.len()]));
            prop_assert_eq!(rounds.result().unwrap().winner, 0);
        }

        #[test]
        fn a_drifting_clock_changes_nothing(step in -0.004f64..0.004, count in 2usize..6) {
            let mut rounds = TuningRounds::new(count);
            run(&mut rounds, |_, at| 10.0 * (1.0 + step * at as f64));
            prop_assert_eq!(rounds.result().unwrap().winner, 0);
        }

        #[test]
        fn the_winner_is_nearly_the_quickest(
            speeds in prop::collection::vec(0.5f64..2.0, 2..8),
            noise in prop::collection::vec(0.0f64..0.03, 64),
        ) {
            let mut rounds = TuningRounds::new(speeds.len());
            let order = run(&mut rounds, |candidate, at| speeds[candidate] * (1.0 + noise[at % noise.len()]));
            prop_assert!(order.len() <= MAX_ROUNDS * speeds.len());
            let result = rounds.result().unwrap();
            let best = speeds.iter().copied().fold(f64::INFINITY, f64::min);
            // The winner is within noise of the fastest, or it is the first because no candidate beats it by the margin
            // plus noise.
            let won = speeds[result.winner];
            prop_assert!(won <= best * 1.04 || (result.winner == 0 && best * 1.04 >= MARGIN * speeds[0]), "{speeds:?}: {result:?}");
            prop_assert!(result.winner == 0 || won < speeds[0]);
        }
    }
}
