//! Searches in slices against the same searches at once, in rooms where anything happens meanwhile.

use std::cell::RefCell;

use potluck_plan::Millis;
use potluck_plan::random::Random;
use potluck_planner::Standbys;
use potluck_planner::experts::Comparison;
use potluck_protocol::Sharing;
use potluck_sim::{Fault, Link, SimDevice, SimModel, World};
use potluck_swarm::testing::Searches;

const ROOMS: u64 = 60;
const UNTIL_MILLIS: f64 = 60_000.0;

/// What is seen of a host's searches, one event after the other.
#[derive(Default)]
struct Watch {
    seed: u64,
    help: Option<HelpWatch>,
    /// When what would help was found last, and what is said of it.
    found: Option<Millis>,
    said: Vec<String>,
    standbys: Option<(Millis, Standbys)>,
    answering: bool,
    counts: Counts,
}

/// A search for what would help, and what it would have found at once.
struct HelpWatch {
    began: Millis,
    at: Millis,
    expected: (Vec<String>, Option<Comparison>),
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    help: usize,
    standbys: usize,
    /// Searches for what would help that the room's changes ended.
    dropped: usize,
    /// Events during which one waited for answers.
    waited: usize,
}

impl Watch {
    fn observe(&mut self, world: &World) {
        let Some(searches) = Searches::of(world.machine(0)) else { return };
        let seed = self.seed;
        let (said, comparison, found) = searches.help();
        if found.is_some() && found != self.found {
            // Where one slice is all, no search was seen.
            if let Some(HelpWatch { expected, .. }) = self.help.take() {
                assert_eq!((said, comparison), (&expected.0[..], expected.1), "room {seed} at {found:?}");
                self.counts.help += 1;
            }
        } else {
            let is_old = said == self.said || said.is_empty();
            assert!(is_old, "room {seed}: {said:?} is said before the search has ended");
        }
        (self.said, self.found) = (said.to_vec(), found);
        let answering = searches.is_answering();
        let paused = answering && self.answering;
        self.answering = answering;
        match (searches.help_progress(), &mut self.help) {
            (None, help) => self.counts.dropped += usize::from(help.take().is_some()),
            (Some((began, at)), Some(known)) if known.began == began => {
                self.counts.waited += usize::from(paused && at == known.at);
                assert!(!paused || at == known.at, "room {seed}: an answer waits for {at:?}");
                known.at = at;
            }
            (Some((began, at)), help) => {
                self.counts.dropped += usize::from(help.is_some());
                *help = searches.help_at_once().map(|expected| HelpWatch { began, at, expected });
            }
        }
        match (searches.standbys_began(), &mut self.standbys) {
            (None, known) => {
                if let (Some((_, expected)), Some(found)) = (known.take(), searches.standbys()) {
                    assert_eq!(found, expected, "room {seed} at {} ms", world.now());
                    self.counts.standbys += 1;
                }
            }
            (Some(began), Some((known, _))) if *known == began => {}
            (Some(began), known) => *known = searches.standbys_at_once().map(|at_once| (began, at_once)),
        }
    }
}

/// Devices of all sizes, of which some get another budget, slow down, freeze or go; and somebody asks.
fn drawn(seed: u64) -> World {
    let mut random = Random::new(seed);
    let mut below = move |end: u64| random.below(end as usize) as u64;
    let experts = if below(2) == 0 { 0 } else { 8 };
    let model = SimModel { blocks: 2 + below(4) as u16, experts, kv_bytes: 0, state_bytes: 0 };
    let whole = u64::from(model.blocks) * if experts == 0 { 160 } else { 265 };
    let devices = 2 + below(4);
    let budget = |below: &mut dyn FnMut(u64) -> u64| 120 + whole * (2 + below(12)) / (2 * devices);
    let device = |below: &mut dyn FnMut(u64) -> u64| {
        let link = Link { jitter: 1.0, ..Link::after(1.0 + below(6) as f64) };
        SimDevice { noise: 0.05, ..SimDevice::with_budget(budget(below)) }
            .at_speed(0.3 + 0.2 * below(6) as f64)
            .behind(link)
    };
    let sharing = [Sharing::Fastest, Sharing::Everyone, Sharing::Experts][below(3) as usize];
    let mut world = World::new(seed, model, sharing, device(&mut below));
    for index in 1..devices {
        let device = device(&mut below);
        world.add(device, 10.0 * index as f64);
    }
    for _ in 0..6 {
        // Many come while the first searches go on.
        let within = [6_000, 40_000][below(2) as usize];
        let (index, at) = (below(devices) as usize, 2_000.0 + below(within) as f64);
        let fault = match below(4) {
            0 => Fault::Slow(index, 2.0),
            1 if index > 0 => Fault::Freeze(index, 1_000.0 + below(8_000) as f64),
            2 if index > 0 => Fault::Kill(index),
            _ => Fault::SetBudget(index, budget(&mut below)),
        };
        world.fault(fault, at);
    }
    for request in 1..4 {
        let at = 3_000.0 + below(40_000) as f64;
        world.prompt(0, request, "how do bees find home?", 20 + below(60) as u32, at);
    }
    world
}

#[test]
fn slices_find_what_was_found_at_once() {
    let mut counts = Counts::default();
    for seed in 0..ROOMS {
        let mut world = drawn(seed);
        let watch = RefCell::new(Watch { seed, counts, ..Watch::default() });
        world.run(UNTIL_MILLIS, |world| {
            watch.borrow_mut().observe(world);
            false
        });
        counts = watch.into_inner().counts;
    }
    let Counts { help, standbys, dropped, waited } = counts;
    assert!(help > 60 && standbys > 15 && dropped > 8 && waited > 100, "{counts:?}: too few to tell");
}
