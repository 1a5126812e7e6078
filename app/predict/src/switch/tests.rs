use std::sync::OnceLock;

use super::*;
use crate::random::Random;

/// A device with slots, a bus and a predictor of some accuracy, drawn from a seed.
struct World {
    blocks: usize,
    experts: usize,
    used: usize,
    slots: usize,
    compute: f64,
    load: f64,
    /// How often a guess is one of the experts that come.
    accuracy: f64,
    /// How often a token uses what the last one used.
    sticky: f64,
    /// How much times vary by themselves.
    noise: f64,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let (blocks, experts) = (2 + random.below(5) as usize, 4 + random.below(13) as usize);
        let used = 1 + random.below(3) as usize;
        let least = used * 2;
        Self {
            blocks,
            experts,
            used,
            slots: least + random.below((blocks * experts - least) as u64) as usize,
            compute: 1.0,
            load: 0.05 * 2f64.powf(6.0 * random.unit()),
            accuracy: [0.0, random.unit(), random.unit().sqrt(), 1.0][random.below(4) as usize],
            sticky: random.unit(),
            noise: 0.1 * random.unit(),
        }
    }

    /// The experts of each token and block.
    fn text(&self, tokens: usize, seed: u64) -> Vec<Vec<Vec<usize>>> {
        let mut random = Random(seed ^ 0x7e87);
        let mut last = vec![Vec::new(); self.blocks];
        let mut draw = |last: &Vec<usize>| {
            let mut chosen: Vec<usize> = Vec::new();
            while chosen.len() < self.used {
                let again = (random.unit() < self.sticky).then(|| last.get(chosen.len()).copied()).flatten();
                // Lower experts are used more often.
                let fresh = (random.unit() * random.unit() * self.experts as f64) as usize;
                let expert = again.filter(|expert| !chosen.contains(expert)).unwrap_or(fresh);
                if !chosen.contains(&expert) {
                    chosen.push(expert);
                }
            }
            chosen
        };
        let token = |_| {
            last = last.iter().map(&mut draw).collect();
            last.clone()
        };
        (0..tokens).map(token).collect()
    }
}

/// A pool on one device: the most recently used first, guesses last, so that they make room first.
struct Device<'a> {
    world: &'a World,
    held: Vec<(usize, usize)>,
    /// Guesses that are being loaded, in order, with the milliseconds that are left.
    loading: Vec<((usize, usize), f64)>,
    /// Guesses for the next block: they stay until it is there.
    awaited: Vec<(usize, usize)>,
    random: Random,
}

impl<'a> Device<'a> {
    fn new(world: &'a World, seed: u64) -> Self {
        Self { world, held: Vec::new(), loading: Vec::new(), awaited: Vec::new(), random: Random(seed) }
    }

    fn put(&mut self, key: (usize, usize), needed: bool) {
        self.held.retain(|held| *held != key);
        if self.held.len() >= self.world.slots {
            let may_go = |held: &(usize, usize)| !self.awaited.contains(held);
            match self.held.iter().rposition(may_go) {
                Some(victim) => drop(self.held.remove(victim)),
                None if needed => drop(self.held.pop()),
                None => return,
            }
        }
        let at = if needed { 0 } else { self.held.len() };
        self.held.insert(at, key);
    }

    /// Loads guesses for some milliseconds.
    fn spend(&mut self, mut millis: f64) {
        while let Some((key, left)) = self.loading.first_mut() {
            if *left > millis {
                *left -= millis;
                return;
            }
            millis -= *left;
            let key = *key;
            self.loading.remove(0);
            self.put(key, false);
        }
    }

    fn token(&mut self, token: &[Vec<usize>], next: Next) -> f64 {
        let mut bus = if let Next::With(millis) = next { millis } else { 0.0 };
        let mut millis = 0.0;
        for (block, chosen) in token.iter().enumerate() {
            let keys: Vec<_> = chosen.iter().map(|expert| (block, *expert)).collect();
            if keys.iter().any(|key| !self.held.contains(key)) {
                // What is being loaded ends first; guesses behind it wait, and wrong ones are dropped.
                self.loading.truncate(1);
                let left = self.loading.first().map_or(0.0, |(_, left)| *left);
                self.spend(left);
                millis += left;
            }
            for &key in &keys {
                millis += if self.held.contains(&key) { 0.0 } else { self.world.load };
                self.put(key, true);
            }
            self.loading.clear();
            self.awaited.clear();
            if let Some(later) = token.get(block + 1) {
                for &right in later {
                    let good = self.random.unit() < self.world.accuracy;
                    let wrong = self.random.below(self.world.experts as u64) as usize;
                    let key = (block + 1, if good { right } else { wrong });
                    self.awaited.push(key);
                    if bus >= self.world.load && !self.held.contains(&key) {
                        bus -= self.world.load;
                        self.loading.push((key, self.world.load));
                    }
                }
            }
            self.spend(self.world.compute);
            millis += self.world.compute;
        }
        millis * (1.0 + self.world.noise * (2.0 * self.random.unit() - 1.0))
    }
}

const TOKENS: usize = 1000;
const SEEDS: u64 = 2000;

/// Milliseconds of each token.
fn times(world: &World, seed: u64, mut next: impl FnMut(Option<f64>) -> Next) -> Vec<f64> {
    let mut device = Device::new(world, seed);
    let mut last = None;
    let text = world.text(TOKENS, seed);
    let token = |token: &Vec<Vec<usize>>| {
        let millis = device.token(token, next(last));
        last = Some(millis);
        millis
    };
    text.iter().map(token).collect()
}

struct Outcome {
    alone: f64,
    always: f64,
    switched: f64,
    /// The verdict after 200 tokens.
    after_200: Verdict,
    /// The most that the switch was slower than LRU alone at any token from the 200th on, as a share.
    worst: f64,
}

fn outcome(seed: u64) -> Outcome {
    let world = World::new(seed);
    let alone = times(&world, seed, |_| Next::Without);
    let cap = BUS_SHARE * alone.iter().sum::<f64>() / alone.len() as f64;
    let always = times(&world, seed, |_| Next::With(cap));
    let mut switch = Switch::new();
    let mut after_200 = Verdict::Trying;
    let mut tokens = 0;
    let switched = times(&world, seed, |last| {
        if let Some(millis) = last {
            switch.token(millis);
            tokens += 1;
            if tokens == 200 {
                after_200 = switch.verdict();
            }
        }
        switch.next()
    });
    let (mut with, mut without, mut worst) = (0.0, 0.0, f64::MIN);
    for (token, (switched, alone)) in switched.iter().zip(&alone).enumerate() {
        with += switched;
        without += alone;
        if token >= 200 {
            worst = worst.max(with / without - 1.0);
        }
    }
    Outcome { alone: without, always: always.iter().sum(), switched: with, after_200, worst }
}

/// All worlds, computed once for all tests.
fn outcomes() -> &'static [Outcome] {
    static ALL: OnceLock<Vec<Outcome>> = OnceLock::new();
    ALL.get_or_init(|| (0..SEEDS).map(outcome).collect())
}

#[test]
fn it_is_never_more_than_3_percent_slower_than_lru_alone() {
    let slow = (0..).zip(outcomes()).filter(|(_, outcome)| outcome.worst >= 0.03);
    let slow: Vec<String> = slow.map(|(seed, outcome): (u64, _)| format!("{seed}: {:.4}", outcome.worst)).collect();
    assert!(slow.is_empty(), "seeds: {slow:?}");
}

#[test]
fn prediction_that_does_not_pay_is_off_within_200_tokens() {
    let useless: Vec<(u64, &Outcome)> =
        (0..).zip(outcomes()).filter(|(_, outcome)| outcome.always > 1.02 * outcome.alone).collect();
    let on = useless.iter().filter(|(_, outcome)| outcome.after_200 != Verdict::Off);
    let on: Vec<String> = on.map(|(seed, outcome)| format!("{seed}: {:.3}", outcome.always / outcome.alone)).collect();
    assert!(on.is_empty(), "seeds: {on:?}");
    assert!(useless.len() > 100, "only {} worlds have a predictor that does not pay", useless.len());
}

#[test]
fn prediction_that_pays_is_used() {
    let pays = outcomes().iter().filter(|outcome| outcome.always < 0.9 * outcome.alone);
    let paying: Vec<&Outcome> = pays.collect();
    let on = paying.iter().filter(|outcome| outcome.after_200 == Verdict::On).count();
    assert!(paying.len() > 150 && on * 100 > paying.len() * 85, "on in {on} of {} worlds", paying.len());
    let gain = |of: fn(&Outcome) -> f64| paying.iter().map(|outcome| 1.0 - of(outcome) / outcome.alone).sum::<f64>();
    let (gained, possible) = (gain(|outcome| outcome.switched), gain(|outcome| outcome.always));
    assert!(gained > 0.7 * possible, "{gained} of {possible}");
}

#[test]
fn it_is_tried_again_after_ever_longer_pauses() {
    let mut switch = Switch::new();
    let mut changes = Vec::new();
    for token in 0..20_000 {
        let before = switch.verdict();
        switch.token(if switch.next() == Next::Without { 10.0 } else { 14.0 });
        if switch.verdict() != before {
            changes.push((token, switch.verdict()));
        }
    }
    let trials: Vec<i32> = changes.iter().filter(|(_, to)| *to == Verdict::Trying).map(|(token, _)| *token).collect();
    assert!(trials.len() >= 3, "{changes:?}");
    assert!(trials.windows(3).all(|three| three[2] - three[1] > three[1] - three[0]), "{changes:?}");
}

#[test]
fn prediction_that_stops_paying_is_turned_off() {
    let mut switch = Switch::new();
    let (mut on, mut off) = (None, None);
    for token in 0..1000 {
        let pays = token < 400;
        let with = if pays { 6.0 } else { 11.0 };
        switch.token(if switch.next() == Next::Without { 10.0 } else { with });
        if switch.verdict() == Verdict::On {
            on = on.or(Some(token));
        } else if on.is_some() {
            off = off.or(Some(token));
        }
    }
    assert!(on.is_some_and(|token| token < 200), "on at {on:?}");
    assert!(off.is_some_and(|token| token < 600), "off at {off:?}");
}

#[test]
fn times_that_are_no_numbers_change_nothing() {
    let mut switch = Switch::new();
    for _ in 0..1000 {
        [f64::NAN, f64::INFINITY, -1.0].into_iter().for_each(|millis| switch.token(millis));
    }
    assert_eq!((switch.verdict(), switch.next()), (Verdict::Trying, Next::Without));
}
