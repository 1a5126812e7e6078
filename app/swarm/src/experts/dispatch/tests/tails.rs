//! What hedging makes of the slowest answers, and its price in bytes.

use std::f64::consts::TAU;

use potluck_plan::random::Random;

use super::*;

/// The median of all delays in milliseconds.
const MEDIAN: f64 = 20.0;

/// What a phase of five holders took, and the bytes of its calls compared with one call each.
struct Phases {
    millis: Vec<f64>,
    bytes: f64,
}

impl Phases {
    fn p99(&mut self) -> f64 {
        self.millis.sort_by(f64::total_cmp);
        self.millis[self.millis.len() * 99 / 100]
    }
}

/// Expert phases with five holders, whose delays are log-normal as in the paper's table 1 (with this standard deviation of the
/// logarithm), two of each expert.
fn phases(hedging: Hedging, sigma: f64, count: usize) -> Phases {
    let peers: Vec<PeerId> = (10..15).map(|peer| PeerId([peer; 16])).collect();
    let pair = |index: usize| vec![ExpertHolder::Peer(peers[index]), ExpertHolder::Peer(peers[(index + 1) % 5])];
    let mut room = room(hedging, (0..5).map(pair).collect());
    let mut random = Random::new(7);
    let (mut millis, mut calls) = (Vec::new(), 0);
    for phase in 0..count + 200 {
        let begun = room.now;
        let mut due: Vec<(f64, PeerId, u64, usize)> = Vec::new();
        let mut steps = room.begin(&[0, 1, 2, 3, 4]);
        loop {
            for (to, experts, call) in called(&steps) {
                due.push((room.now + delay(sigma, &mut random), to, call, experts.len()));
                calls += usize::from(phase >= 200) * experts.len();
            }
            if outputs(&steps).is_some() {
                break;
            }
            due.sort_by(|a, b| b.0.total_cmp(&a.0));
            let next = due.last().map_or(f64::INFINITY, |(at, ..)| *at);
            let deadline = room.dispatch.next_deadline().map_or(f64::INFINITY, |at| at.0);
            room.now = next.min(deadline);
            steps = if deadline < next {
                room.act(Dispatch::check_timers)
            } else {
                let (_, from, call, experts) = due.pop().unwrap();
                room.answer(call, from, &vec![0.0; 2 * experts])
            };
        }
        // The first ones teach how long holders take.
        if phase >= 200 {
            millis.push(room.now - begun);
        }
    }
    Phases { millis, bytes: calls as f64 / (5 * count) as f64 }
}

/// Box and Muller's method.
fn delay(sigma: f64, random: &mut Random) -> f64 {
    let (radius, angle) = ((-2.0 * (1.0 - random.unit()).ln()).sqrt(), TAU * random.unit());
    MEDIAN * (sigma * radius * angle.cos()).exp()
}

/// Adaptive hedging reaches 60% of two copies' gain at the 99th percentile, for at most 1.3 times the bytes.
#[test]
fn adaptive_hedging_cuts_the_tail_for_few_bytes() {
    let [mut one, mut two, mut adaptive] =
        [Hedging::Off, Hedging::Copies(2), Hedging::Adaptive].map(|hedging| phases(hedging, 0.5, 20_000));
    let tails = [one.p99(), two.p99(), adaptive.p99()];
    let gain = (tails[0] - tails[2]) / (tails[0] - tails[1]);
    println!(
        "p99 of one copy, two, adaptive: {tails:.1?} ms; gain {gain:.2}; bytes {:.2} and {:.2}",
        two.bytes, adaptive.bytes
    );
    assert!(gain >= 0.6, "{gain:.2} of the gain of two copies; p99 of one, two, adaptive: {tails:.1?} ms");
    assert!(adaptive.bytes <= 1.3, "{:.2} times the bytes", adaptive.bytes);
}

#[test]
fn adaptive_hedging_sends_hardly_a_copy_where_nobody_is_late() {
    let steady = phases(Hedging::Adaptive, 0.05, 2_000);
    assert!(steady.bytes < 1.01, "{:.3} times the bytes", steady.bytes);
}
