//! From round trips between pairs of peers to the latency of each peer's access link: every message crosses the access
//! link of its sender and that of its receiver.

use std::collections::{BTreeMap, BTreeSet};

use potluck_plan::PeerId;

/// Iterations of Gauss–Seidel; each at least halves the error.
const ITERATIONS: usize = 64;

/// The one-way latency of each peer's access link in milliseconds, from the one-way latencies of pairs: a pair's
/// latency is the sum of its two access links. Least squares over all pairs, solved by Gauss–Seidel, clamped at zero.
/// Two peers that were only measured with each other get half each. Pairs of a peer with itself and values that are no
/// latency are ignored.
pub fn access_latencies(one_way: &BTreeMap<(PeerId, PeerId), f64>) -> BTreeMap<PeerId, f64> {
    let pairs = || one_way.iter().filter(|((a, b), millis)| a != b && millis.is_finite() && **millis >= 0.0);
    let peers: BTreeSet<PeerId> = pairs().flat_map(|(&(a, b), _)| [a, b]).collect();
    let peers: Vec<PeerId> = peers.into_iter().collect();
    let index = |peer| peers.binary_search(&peer).ok();
    let mut measured: Vec<Vec<(usize, f64)>> = vec![Vec::new(); peers.len()];
    for (&(a, b), &millis) in pairs() {
        let (Some(a), Some(b)) = (index(a), index(b)) else { continue };
        measured[a].push((b, millis));
        measured[b].push((a, millis));
    }
    let mean = |pairs: &Vec<(usize, f64)>| pairs.iter().map(|(_, millis)| millis).sum::<f64>() / pairs.len() as f64;
    let mut latencies: Vec<f64> = measured.iter().map(|pairs| mean(pairs) / 2.0).collect();
    for _ in 0..ITERATIONS {
        let mut is_settled = true;
        for (peer, pairs) in measured.iter().enumerate() {
            let rest = pairs.iter().map(|&(other, millis)| millis - latencies[other]);
            let latency = (rest.sum::<f64>() / pairs.len() as f64).max(0.0);
            is_settled &= latency == latencies[peer];
            latencies[peer] = latency;
        }
        if is_settled {
            break;
        }
    }
    peers.into_iter().zip(latencies).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(index: u8) -> PeerId {
        PeerId([index; 16])
    }

    #[test]
    fn three_pairs_determine_three_access_links() {
        let expected = [1.0, 10.0, 25.0];
        let mut pairs = BTreeMap::new();
        for (a, b) in [(0u8, 1u8), (0, 2), (1, 2)] {
            pairs.insert((peer(a), peer(b)), expected[usize::from(a)] + expected[usize::from(b)]);
        }
        let found = access_latencies(&pairs);
        for (index, latency) in expected.iter().enumerate() {
            assert!((found[&peer(index as u8)] - latency).abs() < 1e-6, "{found:?}");
        }
    }

    #[test]
    fn a_single_pair_is_halved_and_invalid_values_are_ignored() {
        let pairs = [((peer(0), peer(1)), 8.0), ((peer(0), peer(2)), f64::NAN), ((peer(1), peer(1)), 3.0)];
        assert_eq!(access_latencies(&pairs.into()), [(peer(0), 4.0), (peer(1), 4.0)].into());
    }

    #[test]
    fn noise_never_makes_a_latency_negative() {
        // The third peer is nearer to both others than they are to each other.
        let pairs = [((peer(0), peer(1)), 30.0), ((peer(0), peer(2)), 5.0), ((peer(1), peer(2)), 5.0)];
        let found = access_latencies(&pairs.into());
        assert!(found.values().all(|millis| *millis >= 0.0), "{found:?}");
    }
}
