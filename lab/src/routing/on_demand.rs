//! A simulation of experts on demand (od-moe.txt 3.1, figures 2, 4 and 5): groups of workers take turns, one computes a
//! block while the others load for the next ones, and nothing is kept. Times are invented or measured, routes come from a
//! trace.

use potluck_plan::{BlockIndex, ExpertId, Position};

use potluck_plan::random::Random;
use potluck_predict::Alignment;

use super::{Schedule, Sequence, Trace};

/// The times of a shadow model and of its alignment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShadowTimes {
    /// Milliseconds of the shadow for a block.
    pub block_millis: f64,
    /// Milliseconds to send it a token.
    pub token_millis: f64,
    /// Milliseconds to send it the keys and values of one token, all blocks.
    pub kv_millis: f64,
    /// How many tokens it may be ahead where it takes nothing over. The paper's begins each token with the main model: 0.
    pub tokens_ahead: usize,
}

/// Who says which experts to load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Guesses {
    /// A channel of the trace: a shadow, which is late when it is aligned.
    Shadow {
        /// The channel.
        channel: usize,
        /// When it is aligned.
        alignment: Alignment,
        /// Its times.
        times: ShadowTimes,
    },
    /// Nobody: experts are loaded at random, from this seed.
    Random(u64),
    /// Nobody: experts are loaded when the router has chosen.
    None,
}

/// What a simulated run took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OnDemandReport {
    /// Tokens of the answers.
    pub tokens: u64,
    /// Milliseconds of all of them.
    pub millis: f64,
    /// Milliseconds in which a group waited for its experts after the router had chosen.
    pub stalled: f64,
    /// Experts loaded.
    pub loads: u64,
    /// Experts loaded that were not used.
    pub wasted: u64,
}

impl OnDemandReport {
    /// Milliseconds a token.
    pub fn millis_a_token(&self) -> f64 {
        self.millis / self.tokens.max(1) as f64
    }
}

/// One worker of a group, for one block.
#[derive(Clone, Copy, Debug)]
struct Worker {
    /// When its bus and its slots are free.
    free: f64,
    /// When its last expert is computed.
    done: f64,
}

struct Simulation<'a> {
    trace: &'a Trace,
    schedule: Schedule,
    guesses: Guesses,
    random: Random,
    /// When each group may load again.
    free: Vec<f64>,
    /// Blocks so far: they take turns.
    turn: usize,
    now: f64,
    /// When each token of this answer began.
    begun: Vec<f64>,
    /// When the shadow is done with what it has begun.
    shadow: f64,
    report: OnDemandReport,
}

/// Runs the answers of a trace through a schedule. Prompts take no time: on demand they pass layer by layer (3.3).
pub fn on_demand(trace: &Trace, schedule: Schedule, guesses: Guesses) -> OnDemandReport {
    let seed = if let Guesses::Random(seed) = guesses { seed } else { 0 };
    let mut simulation = Simulation {
        trace,
        schedule,
        guesses,
        random: Random::new(seed),
        free: vec![0.0; schedule.groups()],
        turn: 0,
        now: 0.0,
        begun: Vec::new(),
        shadow: 0.0,
        report: OnDemandReport::default(),
    };
    for sequence in &trace.sequences {
        simulation.begun.clear();
        (sequence.prompt..sequence.tokens(trace.shape)).for_each(|at| simulation.token(sequence, at));
    }
    simulation.report.millis = simulation.now;
    simulation.report
}

impl Simulation<'_> {
    fn token(&mut self, sequence: &Sequence, at: u32) {
        self.begun.push(self.now);
        let departure = self.departure(at - sequence.prompt);
        for block in (0..self.trace.shape.blocks).map(BlockIndex) {
            let chosen = |channel| sequence.chosen(self.trace.shape, channel, Position(at), block).unwrap_or_default();
            let (guessed, known) = match self.guesses {
                Guesses::Shadow { channel, times, .. } => {
                    (chosen(channel).to_vec(), departure + f64::from(block.0 + 1) * times.block_millis)
                }
                Guesses::Random(_) => (self.random_experts(), 0.0),
                Guesses::None => (Vec::new(), 0.0),
            };
            let chosen = chosen(0).to_vec();
            self.block(&chosen, &guessed, known);
        }
        if let Guesses::Shadow { times, .. } = self.guesses {
            self.shadow = departure + f64::from(self.trace.shape.blocks) * times.block_millis;
        }
        self.report.tokens += 1;
    }

    /// When the shadow begins a token. It begins with the main model (figure 4), or earlier, or after what it takes over
    /// has come (figure 5).
    fn departure(&self, index: u32) -> f64 {
        let Guesses::Shadow { alignment, times, .. } = self.guesses else { return self.now };
        if !alignment.takes_token(index) && !alignment.takes_kv(index) {
            let earliest = self.begun.get((index as usize).saturating_sub(times.tokens_ahead));
            return earliest.map_or(self.now, |earliest| self.shadow.max(*earliest));
        }
        let token = if alignment.takes_token(index) { times.token_millis } else { 0.0 };
        let kv = match alignment.kv {
            // The prompt's keys and values have come before.
            Some(period) if alignment.takes_kv(index) && index > 0 => f64::from(period.get()) * times.kv_millis,
            _ => 0.0,
        };
        self.shadow.max(self.now) + token + kv
    }

    fn random_experts(&mut self) -> Vec<ExpertId> {
        let shape = self.trace.shape;
        let mut all: Vec<ExpertId> = (0..shape.experts).map(ExpertId).collect();
        for index in 0..usize::from(shape.used) {
            let other = index + self.random.below(all.len() - index);
            all.swap(index, other);
        }
        all.truncate(usize::from(shape.used));
        all
    }

    /// One block of one token: what was guessed loads from `known` on, the rest when the router has chosen.
    fn block(&mut self, chosen: &[ExpertId], guessed: &[ExpertId], known: f64) {
        let schedule = self.schedule;
        let group = self.turn % self.free.len();
        self.turn += 1;
        let routed = self.now + schedule.main_millis;
        let begin = self.free[group].max(known);
        let mut workers = vec![Worker { free: begin, done: routed }; schedule.group.max(1)];
        // Guesses that are not known before the router's choice are not loaded.
        let guessed = if begin < routed { guessed } else { &[] };
        let mut ready = Vec::with_capacity(chosen.len());
        for (index, expert) in guessed.iter().enumerate() {
            let count = workers.len();
            let worker = &mut workers[index % count];
            let right = chosen.contains(expert);
            // A wrong guess whose turn comes after the choice is dropped.
            if right || worker.free < routed {
                worker.free += schedule.load_millis;
                self.report.loads += 1;
                self.report.wasted += u64::from(!right);
            }
            if right {
                ready.push((index % count, worker.free));
            }
        }
        for _ in chosen.iter().filter(|expert| !guessed.contains(expert)) {
            let soonest = (0..workers.len()).min_by(|a, b| workers[*a].free.total_cmp(&workers[*b].free)).unwrap_or(0);
            let worker = &mut workers[soonest];
            worker.free = worker.free.max(routed) + schedule.load_millis;
            self.report.loads += 1;
            ready.push((soonest, worker.free));
        }
        let loaded = ready.iter().fold(routed, |latest, (_, at)| latest.max(*at));
        ready.sort_by(|(_, a), (_, b)| a.total_cmp(b));
        for (worker, at) in ready {
            workers[worker].done = workers[worker].done.max(at) + schedule.worker_millis;
        }
        self.report.stalled += loaded - routed;
        self.now = workers.iter().fold(routed, |latest, worker| latest.max(worker.done));
        self.free[group] = self.now;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use crate::routing::recall::tests::text;
    use potluck_predict::TraceShape;

    const SHAPE: TraceShape = TraceShape { blocks: 8, experts: 16, used: 2 };
    const FAST: ShadowTimes = ShadowTimes { block_millis: 0.0, token_millis: 0.0, kv_millis: 0.0, tokens_ahead: 1 };

    fn schedule(load_millis: f64) -> Schedule {
        Schedule { workers: 8, group: 2, used: 2, main_millis: 3.0, worker_millis: 2.0, load_millis }
    }

    fn shadow(channel: usize, alignment: &str, times: ShadowTimes) -> Guesses {
        Guesses::Shadow { channel, alignment: alignment.parse().unwrap(), times }
    }

    /// What the formulas say is what the simulation does: nothing waits up to equation 1's bound, and beyond it groups
    /// share the lateness.
    #[test]
    fn a_perfect_shadow_is_as_fast_as_equation_1_says() {
        let trace = text(SHAPE, 205, 3);
        for load in [1.0, 10.0, 17.9, 18.1, 25.0, 40.0] {
            let schedule = schedule(load);
            let report = on_demand(&trace, schedule, shadow(0, "unaligned", FAST));
            let block = report.millis_a_token() / f64::from(SHAPE.blocks);
            let expected = schedule.block_millis(1.0);
            assert!((block / expected - 1.0).abs() < 0.01, "{load} ms to load: {block} ms a block, not {expected}");
            assert_eq!(report.wasted, 0);
        }
    }

    #[test]
    fn without_predictions_every_block_waits_for_its_experts() {
        let trace = text(SHAPE, 105, 3);
        let report = on_demand(&trace, schedule(10.0), Guesses::None);
        assert_eq!(report.millis_a_token(), 8.0 * schedule(10.0).block_millis(0.0));
        assert_eq!((report.tokens, report.loads, report.wasted), (200, 200 * 16, 0));
    }

    #[test]
    fn each_part_of_the_shadow_helps() {
        let trace = text(SHAPE, 205, 3);
        let rate = |guesses| on_demand(&trace, schedule(10.0), guesses).millis_a_token();
        let (perfect, good) = (rate(shadow(0, "T1", FAST)), rate(shadow(1, "T1", FAST)));
        let (random, none) = (rate(Guesses::Random(7)), rate(Guesses::None));
        assert!(perfect < good && good < random && random <= none, "{perfect}, {good}, {random}, {none}");
    }

    /// Figures 4 and 5.
    #[test]
    fn a_late_departure_makes_the_first_blocks_wait() {
        let trace = text(SHAPE, 205, 3);
        let times = ShadowTimes { block_millis: 1.0, token_millis: 0.5, kv_millis: 6.0, tokens_ahead: 0 };
        let stalled = |alignment| on_demand(&trace, schedule(10.0), shadow(0, alignment, times)).stalled;
        assert!(stalled("unaligned") < stalled("T1"), "a token takes time");
        assert!(stalled("T1") < stalled("T1KV1"), "keys and values take more");
        let rare = stalled("T1KV8");
        assert!(rare < stalled("T1KV1"), "sent rarely they delay fewer tokens: {rare}");
    }

    #[test]
    fn the_same_seed_gives_the_same_run() {
        let trace = text(SHAPE, 55, 3);
        let run = |seed| on_demand(&trace, schedule(10.0), Guesses::Random(seed));
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
    }
}
