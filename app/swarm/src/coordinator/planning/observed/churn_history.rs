//! How often devices left lately. Of two that are nearly as good the planner prefers the one that stays.

use std::collections::BTreeMap;

use potluck_plan::{Millis, PeerId};

/// Half-life of a departure: ten minutes.
const HALF_MILLIS: f64 = 600_000.0;

/// Departures of each device, decaying with time.
#[derive(Default)]
pub(in crate::coordinator::planning) struct ChurnHistory {
    left: BTreeMap<PeerId, (f64, Millis)>,
    now: Millis,
}

impl ChurnHistory {
    /// Sets the time that departures decay by.
    pub fn tick(&mut self, now: Millis) {
        self.now = now;
    }

    /// A contributing device left.
    pub fn leaves(&mut self, peer: PeerId, now: Millis) {
        self.now = now;
        let before = self.weight(peer);
        self.left.insert(peer, (before + 1.0, now));
    }

    /// Number of recent departures.
    pub fn departures(&self, peer: PeerId) -> u32 {
        self.weight(peer).round() as u32
    }

    fn weight(&self, peer: PeerId) -> f64 {
        let since = |at: Millis| (self.now.0 - at.0).max(0.0) / HALF_MILLIS;
        self.left.get(&peer).map_or(0.0, |(weight, at)| weight * 0.5f64.powf(since(*at)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn departures_are_counted_and_forgotten() {
        let (mut churn_history, peer) = (ChurnHistory::default(), PeerId([1; 16]));
        assert_eq!(churn_history.departures(peer), 0);
        churn_history.leaves(peer, Millis(0.0));
        churn_history.leaves(peer, Millis(60_000.0));
        assert_eq!(churn_history.departures(peer), 2);
        churn_history.tick(Millis(60_000.0 + HALF_MILLIS));
        assert_eq!(churn_history.departures(peer), 1);
        churn_history.tick(Millis(60_000.0 + 3.0 * HALF_MILLIS));
        assert_eq!(churn_history.departures(peer), 0);
        assert_eq!(churn_history.departures(PeerId([2; 16])), 0);
    }
}
