#![allow(clippy::unwrap_used, reason = "a test may panic")]
use std::sync::OnceLock;

use potluck_plan::ExpertId;

use super::*;
use crate::{Device, Recorded, Sequence, Trace, TraceShape, token_times};
use potluck_plan::random::Random;

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
    /// The verdict after 200 tokens.
    after_200: Verdict,
    /// The most that the switch was slower than LRU alone at any token from the 200th on, as a share.
    worst: f64,
}

fn outcome(seed: u64) -> Outcome {
    let world = World::new(seed);
    let alone = times(&world, |_| Next::Without);
    let cap = BUS_SHARE * alone.iter().sum::<f64>() / alone.len() as f64;
    let always = times(&world, |_| Next::With(cap));
    let mut switch = Switch::new();
    let mut after_200 = Verdict::Trying;
    let mut random = Random::new(seed);
    let mut tokens = 0;
    let switched = times(&world, |last| {
        if let Some(millis) = last {
            switch.token(millis * (1.0 + world.noise * (2.0 * random.unit() - 1.0)));
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

/// With a shadow some tokens pass together. Its drafts come some passes after it is wanted, and end some passes after it is not.
#[test]
fn drafts_that_come_and_go_late_are_seen_to_pay() {
    for drafts in [1, 3, 7] {
        let (mut switch, mut tokens, mut on, mut elapsed, mut wanted) = (Switch::new(), 0, 0, 0.0, Vec::new());
        while tokens < 2_000 {
            let is_drafted = wanted.len() >= 2 && wanted[wanted.len() - 2..].iter().all(|wanted| *wanted);
            let trails = wanted.len() >= 4 && wanted[wanted.len() - 2..] == [true, false];
            wanted.push(switch.next() != Next::Without);
            let (of_pass, millis) = if is_drafted || trails { (1 + drafts, 12.0) } else { (1, 10.0) };
            switch.pass(of_pass, millis);
            tokens += of_pass;
            // What drafts take at best, and what the switch makes of them once it is on.
            elapsed += if on > 0 { millis - f64::from(of_pass) * 12.0 / f64::from(1 + drafts) } else { 0.0 };
            on += if switch.verdict() == Verdict::On { of_pass } else { 0 };
        }
        assert!(on > 1_500, "{drafts} drafts: on for {on} of {tokens} tokens");
        let share = elapsed / (f64::from(on) * 12.0 / f64::from(1 + drafts));
        assert!(share < 0.2, "{drafts} drafts: checks cost {share:.2} of the time");
    }
}

#[test]
fn times_that_are_no_numbers_change_nothing() {
    let mut switch = Switch::new();
    for _ in 0..1000 {
        [f64::NAN, f64::INFINITY, -1.0].into_iter().for_each(|millis| switch.token(millis));
    }
    assert_eq!((switch.verdict(), switch.next()), (Verdict::Trying, Next::Without));
}
