//! From round trips between pairs to each peer's own way to the relay: every message takes one leg of its sender and one
//! of its receiver.

use std::collections::BTreeMap;

use potluck_plan::PeerId;

/// Rounds of the iteration; it comes closer by a half at least in each.
const ROUNDS: usize = 64;

/// Milliseconds of each peer's way to the relay (half of a round trip between two peers is the sum of their legs), as
/// near to all pairs' times as can be (least squares, found by the method of Gauss and Seidel). Of a pair that nobody else
/// was measured with each has one half.
pub fn legs(one_way: &BTreeMap<(PeerId, PeerId), f64>) -> BTreeMap<PeerId, f64> {
    let pairs = || one_way.iter().filter(|((a, b), millis)| a != b && millis.is_finite() && **millis >= 0.0);
    let mut ways: BTreeMap<PeerId, Vec<(PeerId, f64)>> = BTreeMap::new();
    for (&(a, b), &millis) in pairs() {
        ways.entry(a).or_default().push((b, millis));
        ways.entry(b).or_default().push((a, millis));
    }
    let mean = |ways: &Vec<(PeerId, f64)>| ways.iter().map(|(_, millis)| millis).sum::<f64>() / ways.len() as f64;
    let mut legs: BTreeMap<PeerId, f64> = ways.iter().map(|(peer, ways)| (*peer, mean(ways) / 2.0)).collect();
    for _ in 0..ROUNDS {
        for (peer, ways) in &ways {
            let rest = ways.iter().map(|(other, millis)| millis - legs.get(other).copied().unwrap_or(0.0));
            let leg = rest.sum::<f64>() / ways.len() as f64;
            legs.insert(*peer, leg.max(0.0));
        }
    }
    legs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(index: u8) -> PeerId {
        PeerId([index; 16])
    }

    #[test]
    fn three_pairs_give_three_legs() {
        let true_legs = [1.0, 10.0, 25.0];
        let mut ways = BTreeMap::new();
        for (a, b) in [(0u8, 1u8), (0, 2), (1, 2)] {
            ways.insert((peer(a), peer(b)), true_legs[usize::from(a)] + true_legs[usize::from(b)]);
        }
        let found = legs(&ways);
        for (index, leg) in true_legs.iter().enumerate() {
            assert!((found[&peer(index as u8)] - leg).abs() < 1e-6, "{found:?}");
        }
    }

    #[test]
    fn a_pair_alone_is_halved_and_what_is_no_time_is_left_out() {
        let ways = [((peer(0), peer(1)), 8.0), ((peer(0), peer(2)), f64::NAN), ((peer(1), peer(1)), 3.0)];
        assert_eq!(legs(&ways.into()), [(peer(0), 4.0), (peer(1), 4.0)].into());
    }

    #[test]
    fn noise_never_makes_a_leg_negative() {
        // The third peer is nearer to both others than they are to each other.
        let ways = [((peer(0), peer(1)), 30.0), ((peer(0), peer(2)), 5.0), ((peer(1), peer(2)), 5.0)];
        assert!(legs(&ways.into()).values().all(|leg| *leg >= 0.0));
    }
}
