//! The switch of predictions along invented texts, on devices with slots.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
use std::sync::OnceLock;

use potluck_plan::ExpertId;
use potluck_plan::random::Random;
use potluck_predict::{Next, Switch, SwitchState, TraceShape};

use super::{Device, Recorded, Sequence, Trace, token_times};

/// The share of a token's time for which guesses take the bus, as the switch has it.
const SHARE: f64 = 0.5;

/// A device, and a predictor of some accuracy, drawn from a seed.
struct World {
    device: Device,
    trace: Trace,
    /// How much times vary by themselves.
    noise: f64,
}

const TOKENS: usize = 1000;
const SEEDS: u64 = 2000;

impl World {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let (blocks, experts) = (2 + random.below(5) as u16, 4 + random.below(13) as u16);
        let shape = TraceShape { blocks, experts, used: 1 + random.below(3) as u8 };
        let (all, least) = (usize::from(blocks * experts), 2 * usize::from(shape.used));
        let device = Device {
            slots: least + random.below(all - least),
            compute_millis: 1.0,
            load_millis: 0.05 * 2f64.powf(6.0 * random.unit()),
        };
        let accuracy = [0.0, random.unit(), random.unit().sqrt(), 1.0][random.below(4)];
        let noise = 0.1 * random.unit();
        Self { device, trace: text(shape, accuracy, &mut random), noise }
    }
}

/// A conversation in which tokens often use what the last one used, and lower experts are used more often. The second
/// channel is right about each expert with some probability.
fn text(shape: TraceShape, accuracy: f64, random: &mut Random) -> Trace {
    let used = usize::from(shape.used);
    let sticky = random.unit();
    let (mut base, mut guesses) = (Vec::new(), Vec::new());
    let mut last = vec![Vec::new(); usize::from(shape.blocks)];
    for _ in 0..TOKENS {
        for last in &mut last {
            let mut chosen: Vec<ExpertId> = Vec::new();
            while chosen.len() < used {
                let again = (random.unit() < sticky).then(|| last.get(chosen.len()).copied()).flatten();
                let fresh = ExpertId((random.unit() * random.unit() * f64::from(shape.experts)) as u16);
                let expert = again.filter(|expert| !chosen.contains(expert)).unwrap_or(fresh);
                if !chosen.contains(&expert) {
                    chosen.push(expert);
                }
            }
            let mut guessed: Vec<ExpertId> = Vec::new();
            while guessed.len() < used {
                let right = random.unit() < accuracy;
                let wrong = ExpertId(random.below(shape.experts.into()) as u16);
                let guess = if right { chosen[guessed.len()] } else { wrong };
                if !guessed.contains(&guess) {
                    guessed.push(guess);
                } else if right {
                    // Guessed by chance before: any other one takes its place.
                    let free = |expert: &ExpertId| !guessed.contains(expert);
                    guessed.extend((0..shape.experts).map(ExpertId).find(free));
                }
            }
            base.extend(&chosen);
            guesses.extend(guessed);
            *last = chosen;
        }
    }
    let sequence = Sequence { prompt: 0, experts: vec![base, guesses] };
    Trace { shape, channels: vec!["base".to_owned(), "guesses".to_owned()], sequences: vec![sequence] }
}

fn times(world: &World, next: impl FnMut(Option<f64>) -> Next) -> Vec<f64> {
    token_times(&world.trace, world.device, &mut Recorded::new(&world.trace, "guesses").unwrap(), next)
}

struct Outcome {
    alone: f64,
    always: f64,
    switched: f64,
    /// What is known after 200 tokens.
    after_200: SwitchState,
    /// The most that the switch was slower than LRU alone at any token from the 200th on, as a share.
    worst: f64,
}

fn outcome(seed: u64) -> Outcome {
    let world = World::new(seed);
    let alone = times(&world, |_| Next::Without);
    let cap = SHARE * alone.iter().sum::<f64>() / alone.len() as f64;
    let always = times(&world, |_| Next::With(cap));
    let mut switch = Switch::new();
    let mut after_200 = SwitchState::Trying;
    let mut random = Random::new(seed);
    let mut tokens = 0;
    let switched = times(&world, |last| {
        if let Some(millis) = last {
            switch.token(millis * (1.0 + world.noise * (2.0 * random.unit() - 1.0)));
            tokens += 1;
            if tokens == 200 {
                after_200 = switch.state();
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
    let on = useless.iter().filter(|(_, outcome)| outcome.after_200 != SwitchState::Off);
    let on: Vec<String> = on.map(|(seed, outcome)| format!("{seed}: {:.3}", outcome.always / outcome.alone)).collect();
    assert!(on.is_empty(), "seeds: {on:?}");
    assert!(useless.len() > 100, "only {} worlds have a predictor that does not pay", useless.len());
}

#[test]
fn prediction_that_pays_is_used() {
    let pays = outcomes().iter().filter(|outcome| outcome.always < 0.9 * outcome.alone);
    let paying: Vec<&Outcome> = pays.collect();
    let on = paying.iter().filter(|outcome| outcome.after_200 == SwitchState::On).count();
    assert!(paying.len() > 150 && on * 100 > paying.len() * 85, "on in {on} of {} worlds", paying.len());
    let gain = |of: fn(&Outcome) -> f64| paying.iter().map(|outcome| 1.0 - of(outcome) / outcome.alone).sum::<f64>();
    let (gained, possible) = (gain(|outcome| outcome.switched), gain(|outcome| outcome.always));
    assert!(gained > 0.7 * possible, "{gained} of {possible}");
}
