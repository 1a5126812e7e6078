//! Tells whether another program uses the GPU, from how long keep-alive work takes.
//!
//! GPUs give programs turns. Another program's keep-alive, which may be that of a second browser, then delays our tokens and ours
//! delays its tokens, although one of them is enough for the clock. Programs cannot ask each other, so whoever comes later
//! gives up first and tries again after a growing pause.

/// Durations that are judged together.
const WINDOW: usize = 16;
/// The GPU is shared if the quicker ones of a window take this many times as long as in the best window.
const SLOWER: f64 = 1.6;
/// Milliseconds of keep-alive work on a shared GPU before giving up. A clock that was low takes up to a second to rise.
const PATIENCE: f64 = 1_500.0;
/// The same for a program that was alone before: the other one should give up first.
const PATIENCE_OF_FIRST: f64 = 4_000.0;
/// Milliseconds of the first pause and of the longest one.
const PAUSES: (f64, f64) = (2_000.0, 30_000.0);

/// Whether keep-alive work helps, or another program uses the GPU anyway.
#[derive(Debug)]
pub struct Contention {
    window: Vec<f64>,
    /// The lowest [`quartile`] of a window so far.
    best: f64,
    /// Milliseconds of keep-alive work since the GPU was found to be shared.
    shared: f64,
    was_alone: bool,
    pause: f64,
    /// No work before this time.
    resumes: f64,
}

impl Default for Contention {
    fn default() -> Self {
        Self {
            window: Vec::with_capacity(WINDOW),
            best: f64::MAX,
            shared: 0.0,
            was_alone: false,
            pause: PAUSES.0,
            resumes: f64::MIN,
        }
    }
}

impl Contention {
    /// True unless another program was found to use the GPU a short time ago.
    pub fn allows(&self, now: f64) -> bool {
        now >= self.resumes
    }

    /// Takes in the `millis` that a piece of keep-alive work took, from its submission until its end was noticed.
    pub fn record(&mut self, millis: f64, now: f64) {
        self.window.push(millis);
        if self.window.len() < WINDOW {
            return;
        }
        let (typical, total) = (quartile(&self.window), self.window.iter().sum::<f64>());
        self.window.clear();
        self.best = self.best.min(typical);
        if typical <= SLOWER * self.best {
            (self.shared, self.was_alone, self.pause) = (0.0, true, PAUSES.0);
            return;
        }
        self.shared += total;
        if self.shared > if self.was_alone { PATIENCE_OF_FIRST } else { PATIENCE } {
            self.give_up(now);
        }
    }

    /// The part of the pause that differs between programs comes from the clock, whose zero is when each of them started.
    fn give_up(&mut self, now: f64) {
        self.resumes = now + self.pause * (1.0 + now.rem_euclid(1.0));
        self.pause = (2.0 * self.pause).min(PAUSES.1);
        (self.shared, self.was_alone) = (0.0, false);
    }
}

/// The value that a quarter of these are below.
fn quartile(millis: &[f64]) -> f64 {
    let mut sorted = millis.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 4]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program that keeps a GPU busy whenever it may.
    struct Program {
        contention: Contention,
        /// Its clock less that of the test.
        offset: f64,
    }

    impl Program {
        fn new(offset: f64) -> Self {
            Self { contention: Contention::default(), offset }
        }

        fn allows(&self, now: f64) -> bool {
            self.contention.allows(now + self.offset)
        }
    }

    /// Runs programs on one GPU from `from` to `to` and returns for how many milliseconds each of them ran. Work of one
    /// millisecond waits for that of all others.
    fn run(programs: &mut [Program], from: f64, to: f64) -> Vec<f64> {
        let mut ran = vec![0.0; programs.len()];
        let mut now = from;
        while now < to {
            let running: Vec<usize> = (0..programs.len()).filter(|&index| programs[index].allows(now)).collect();
            let millis = running.len().max(1) as f64;
            now += millis;
            for index in running {
                ran[index] += millis;
                let noise = 0.3 * (now * 0.37 + index as f64).sin().abs();
                let offset = programs[index].offset;
                programs[index].contention.record(millis + noise, now + offset);
            }
        }
        ran
    }

    #[test]
    fn a_program_that_is_alone_never_stops() {
        let mut programs = [Program::new(0.2)];
        assert!(run(&mut programs, 0.0, 60_000.0)[0] > 59_990.0, "nobody else uses the GPU");
    }

    #[test]
    fn a_clock_that_rises_is_not_taken_for_another_program() {
        let mut contention = Contention::default();
        let mut now = 0.0;
        for round in 0..3 {
            // A fifth of the clock for 0.9 seconds, then all of it.
            for millis in [vec![5.0; 180], vec![1.0; 2_000]].concat() {
                now += millis;
                contention.record(millis, now);
                assert!(contention.allows(now), "it stopped at {now} ms, in round {round}");
            }
        }
    }

    #[test]
    fn of_several_programs_one_goes_on() {
        for seed in 0..200 {
            let offset = |index: f64| (f64::from(seed) * 0.618 + index * 0.377).fract();
            let mut programs: Vec<_> = (0..4).map(|index| Program::new(offset(f64::from(index)))).collect();
            // Each was alone when it measured what the keep-alive brings.
            for index in 0..programs.len() {
                run(&mut programs[index..=index], -1_000.0, 0.0);
            }
            run(&mut programs, 0.0, 60_000.0);
            let ran = run(&mut programs, 60_000.0, 120_000.0);
            let all: f64 = ran.iter().sum();
            let most = ran.iter().fold(0.0f64, |most, &one| most.max(one));
            assert!(all > 45_000.0, "seed {seed}: the clock fell, {ran:?} ms of 60,000");
            assert!(all - most < 0.35 * all, "seed {seed}: several went on, {ran:?} ms");
        }
    }
}
