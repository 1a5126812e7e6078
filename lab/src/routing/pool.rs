//! A simulated pool of expert slots: what is loaded, missed and waited for along a trace.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use potluck_plan::{BlockIndex, Bytes, ExpertId, Position};
use potluck_predict::Predictor;
use thiserror::Error;

use super::Trace;

/// Devices with slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Devices. Block `b` belongs to group `b` modulo the number of groups, and the group's devices share its experts.
    pub devices: usize,
    /// Devices of a group.
    pub group: usize,
    /// Experts that each has room for.
    pub slots: usize,
    /// Bytes of an expert.
    pub expert: Bytes,
    /// Blocks ahead for which guesses are loaded.
    pub ahead: usize,
    /// Guesses that are loaded for a block at most.
    pub guesses: usize,
}

/// Which expert makes room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eviction {
    /// The one used least recently.
    Lru,
    /// The one used least often.
    Lfu,
    /// Belady's optimum: the one whose next use is farthest. A judge, for it knows the whole trace.
    Optimal,
}

/// The slots do not hold what one token needs in one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("each device needs room for {needed} experts, and has {slots}")]
pub struct TooSmall {
    /// Slots that would do.
    pub needed: usize,
    /// Slots there are.
    pub slots: usize,
}

/// What happened along a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolReport {
    /// Tokens.
    pub tokens: u64,
    /// Experts that tokens used.
    pub uses: u64,
    /// Experts that were not there when they were needed.
    pub misses: u64,
    /// Blocks at which a token had to wait for at least one expert.
    pub stalls: u64,
    /// Experts that were loaded on a guess.
    pub guessed: u64,
    /// Guesses that were used by the token and block that they were for.
    pub useful: u64,
    /// Bytes loaded in all.
    pub bytes: u64,
}

impl PoolReport {
    /// The share of uses that found their expert.
    pub fn hit_rate(&self) -> f64 {
        1.0 - self.misses as f64 / self.uses.max(1) as f64
    }

    /// Bytes loaded a token.
    pub fn bytes_a_token(&self) -> f64 {
        self.bytes as f64 / self.tokens.max(1) as f64
    }
}

type Key = (BlockIndex, ExpertId);

/// One step of a trace: a token at a block.
type Step = u64;

/// What is known of an expert in a slot.
#[derive(Clone, Copy, Debug)]
struct Resident {
    last: Step,
    uses: u64,
    /// The step for which it was loaded on a guess, until it was used.
    guessed_for: Option<Step>,
}

struct Simulation<'a> {
    pool: Pool,
    eviction: Eviction,
    devices: Vec<BTreeMap<Key, Resident>>,
    /// For each expert the steps at which it is used.
    uses: BTreeMap<Key, Vec<Step>>,
    /// Guesses that are waited for: they and what is used now are not evicted.
    awaited: VecDeque<(Step, Key)>,
    trace: &'a Trace,
    report: PoolReport,
}

/// Runs a trace through a pool that starts empty.
///
/// # Errors
/// [`TooSmall`] if a device has fewer slots than one token may need there in one block.
pub fn simulate(
    trace: &Trace,
    pool: Pool,
    eviction: Eviction,
    predictor: &mut dyn Predictor,
) -> Result<PoolReport, TooSmall> {
    let pool = Pool { devices: pool.devices.max(1), group: pool.group.clamp(1, pool.devices.max(1)), ..pool };
    // A group's devices share the experts of a block by id, so all of a token's may be on one of them.
    let needed = usize::from(trace.shape.used).min(usize::from(trace.shape.experts).div_ceil(pool.group));
    if pool.slots < needed {
        return Err(TooSmall { needed, slots: pool.slots });
    }
    let devices = vec![BTreeMap::new(); pool.devices];
    let report = PoolReport::default();
    let uses = if eviction == Eviction::Optimal { uses(trace) } else { BTreeMap::new() };
    let mut simulation = Simulation { pool, eviction, devices, uses, awaited: VecDeque::new(), trace, report };
    simulation.run(predictor);
    Ok(simulation.report)
}

fn steps(trace: &Trace) -> impl Iterator<Item = (usize, Position, BlockIndex)> {
    let blocks = trace.shape.blocks;
    trace.sequences.iter().enumerate().flat_map(move |(index, sequence)| {
        let tokens = (0..sequence.tokens(trace.shape)).map(Position);
        tokens.flat_map(move |position| (0..blocks).map(move |block| (index, position, BlockIndex(block))))
    })
}

fn uses(trace: &Trace) -> BTreeMap<Key, Vec<Step>> {
    let mut uses: BTreeMap<Key, Vec<Step>> = BTreeMap::new();
    for (step, (sequence, position, block)) in (0..).zip(steps(trace)) {
        let chosen = trace.sequences[sequence].chosen(trace.shape, 0, position, block).unwrap_or_default();
        chosen.iter().for_each(|expert| uses.entry((block, *expert)).or_default().push(step));
    }
    uses
}

impl Simulation<'_> {
    fn run(&mut self, predictor: &mut dyn Predictor) {
        let trace = self.trace;
        let mut current = None;
        for (step, (sequence, position, block)) in (0..).zip(steps(trace)) {
            if current != Some(sequence) {
                predictor.restart();
                self.awaited.clear();
                current = Some(sequence);
            }
            let Some(chosen) = trace.sequences[sequence].chosen(trace.shape, 0, position, block) else { continue };
            self.use_experts(step, block, chosen);
            self.report.tokens += u64::from(block.0 + 1 == trace.shape.blocks);
            predictor.observe(position, block, chosen);
            let ahead = u32::from(block.0) + self.pool.ahead as u32;
            let target = Position(position.0 + ahead / u32::from(trace.shape.blocks));
            let target_block = BlockIndex((ahead % u32::from(trace.shape.blocks)) as u16);
            if self.pool.ahead > 0 && target.0 < trace.sequences[sequence].tokens(trace.shape) {
                let guesses = predictor.predict(target, target_block);
                let guesses = guesses.iter().take(self.pool.guesses).map(|guess| guess.expert);
                self.load_guesses(step, block, chosen, target_block, guesses.collect());
            }
        }
    }

    fn device(&self, block: BlockIndex, expert: ExpertId) -> usize {
        let groups = (self.pool.devices / self.pool.group).max(1);
        usize::from(block.0) % groups * self.pool.group + usize::from(expert.0) % self.pool.group
    }

    fn use_experts(&mut self, step: Step, block: BlockIndex, chosen: &[ExpertId]) {
        self.awaited.retain(|(awaited, _)| *awaited > step);
        let needed: BTreeSet<Key> = chosen.iter().map(|expert| (block, *expert)).collect();
        let before = self.report.misses;
        for key in chosen.iter().map(|expert| (block, *expert)) {
            self.report.uses += 1;
            let device = self.device(key.0, key.1);
            if !self.devices[device].contains_key(&key) {
                self.report.misses += 1;
                // Guesses make room for what is needed.
                if !self.load(device, key, step, &needed, None) {
                    self.awaited.clear();
                    self.load(device, key, step, &needed, None);
                }
            }
            if let Some(resident) = self.devices[device].get_mut(&key) {
                self.report.useful += u64::from(resident.guessed_for == Some(step));
                *resident = Resident { last: step, uses: resident.uses + 1, guessed_for: None };
            }
        }
        self.report.stalls += u64::from(self.report.misses > before);
    }

    fn load_guesses(
        &mut self,
        step: Step,
        block: BlockIndex,
        chosen: &[ExpertId],
        target: BlockIndex,
        guesses: Vec<ExpertId>,
    ) {
        let live: BTreeSet<Key> = chosen.iter().map(|expert| (block, *expert)).collect();
        let at = step + self.pool.ahead as Step;
        for key in guesses.into_iter().map(|expert| (target, expert)) {
            let device = self.device(key.0, key.1);
            self.awaited.push_back((at, key));
            if !self.devices[device].contains_key(&key) {
                self.report.guessed += u64::from(self.load(device, key, step, &live, Some(at)));
            }
        }
    }

    /// Loads an expert unless all slots of its device are taken by what is needed now or awaited.
    fn load(&mut self, device: usize, key: Key, step: Step, live: &BTreeSet<Key>, guessed_for: Option<Step>) -> bool {
        if self.devices[device].len() >= self.pool.slots {
            let may_go = |held: &Key| !live.contains(held) && !self.awaited.iter().any(|(_, awaited)| awaited == held);
            let candidates = self.devices[device].iter().filter(|(held, _)| may_go(held));
            let victim = candidates.min_by_key(|(held, resident)| match self.eviction {
                Eviction::Lru => (resident.last, 0),
                Eviction::Lfu => (resident.uses, resident.last),
                Eviction::Optimal => (Step::MAX - self.next_use(held, step), 0),
            });
            let Some(victim) = victim.map(|(held, _)| *held) else { return false };
            self.devices[device].remove(&victim);
        }
        self.devices[device].insert(key, Resident { last: step, uses: 0, guessed_for });
        self.report.bytes += self.pool.expert.0;
        true
    }

    fn next_use(&self, key: &Key, step: Step) -> Step {
        let uses = self.uses.get(key).map(Vec::as_slice).unwrap_or_default();
        uses.get(uses.partition_point(|used| *used <= step)).copied().unwrap_or(Step::MAX)
    }
}

#[cfg(test)]
mod tests;
