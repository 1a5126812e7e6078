//! A simulated device with slots, a bus and time: what tokens take with guesses and without.

use potluck_plan::{BlockIndex, ExpertId, Position};

use potluck_predict::{Next, Predictor};

use super::Trace;

type Key = (BlockIndex, ExpertId);

/// A device with room for some experts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Device {
    /// Experts that it has room for: at least twice those that a token uses in a block.
    pub slots: usize,
    /// Milliseconds to compute a block.
    pub compute_millis: f64,
    /// Milliseconds to load an expert. Computing goes on meanwhile.
    pub load_millis: f64,
}

/// Experts on the device, the most recently used first. Guesses are last, so that they make room first.
struct Slots {
    device: Device,
    held: Vec<Key>,
    /// Guesses that are being loaded, in order, with the milliseconds that are left.
    loading: Vec<(Key, f64)>,
    /// Guesses for the next block: they stay until it is there.
    awaited: Vec<Key>,
}

/// Milliseconds of every token of a trace. `next` gets those of the last token, and says how to compute the next one.
/// Guesses for a block are loaded while the one before is computed.
pub fn token_times(
    trace: &Trace,
    device: Device,
    predictor: &mut dyn Predictor,
    mut next: impl FnMut(Option<f64>) -> Next,
) -> Vec<f64> {
    let shape = trace.shape;
    let mut slots = Slots { device, held: Vec::new(), loading: Vec::new(), awaited: Vec::new() };
    let mut times: Vec<f64> = Vec::new();
    for sequence in &trace.sequences {
        predictor.restart();
        for position in (0..sequence.tokens(shape)).map(Position) {
            let mut bus = if let Next::With(millis) = next(times.last().copied()) { millis } else { 0.0 };
            let mut millis = 0.0;
            for block in (0..shape.blocks).map(BlockIndex) {
                let chosen = sequence.chosen(shape, 0, position, block).unwrap_or_default();
                millis += slots.need(block, chosen);
                predictor.observe(position, block, chosen);
                if bus > 0.0 {
                    let (at, later) = match block.0 + 1 {
                        end if end == shape.blocks => (Position(position.0 + 1), BlockIndex(0)),
                        later => (position, BlockIndex(later)),
                    };
                    let guesses = predictor.predict(at, later);
                    let guesses = guesses.iter().take(usize::from(shape.used)).map(|guess| (later, guess.expert));
                    slots.guess(guesses, &mut bus);
                }
                slots.load_for(device.compute_millis);
                millis += device.compute_millis;
            }
            times.push(millis);
        }
    }
    times
}

impl Slots {
    /// Puts experts in place that a block needs; returns the milliseconds that it waits.
    fn need(&mut self, block: BlockIndex, chosen: &[ExpertId]) -> f64 {
        let mut millis = 0.0;
        if chosen.iter().any(|expert| !self.held.contains(&(block, *expert))) {
            // What is being loaded ends first; guesses behind it are dropped.
            self.loading.truncate(1);
            let left = self.loading.first().map_or(0.0, |(_, left)| *left);
            self.load_for(left);
            millis += left;
        }
        for key in chosen.iter().map(|expert| (block, *expert)) {
            millis += if self.held.contains(&key) { 0.0 } else { self.device.load_millis };
            self.put(key, true);
        }
        self.loading.clear();
        self.awaited.clear();
        millis
    }

    /// Queues guesses as long as they may take the bus.
    fn guess(&mut self, guesses: impl Iterator<Item = Key>, bus: &mut f64) {
        let load = self.device.load_millis;
        for key in guesses {
            self.awaited.push(key);
            if *bus >= load && !self.held.contains(&key) {
                *bus -= load;
                self.loading.push((key, load));
            }
        }
    }

    /// Loads guesses for some milliseconds.
    fn load_for(&mut self, mut millis: f64) {
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

    fn put(&mut self, key: Key, needed: bool) {
        self.held.retain(|held| *held != key);
        if self.held.len() >= self.device.slots {
            match self.held.iter().rposition(|held| !self.awaited.contains(held)) {
                Some(victim) => drop(self.held.remove(victim)),
                None if needed => drop(self.held.pop()),
                None => return,
            }
        }
        let at = if needed { 0 } else { self.held.len() };
        self.held.insert(at, key);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use potluck_predict::TraceShape;

    use crate::routing::recall::tests::text;
    use crate::routing::{Nothing, Recorded};

    const SHAPE: TraceShape = TraceShape { blocks: 4, experts: 16, used: 2 };

    fn times(device: Device, channel: Option<&str>, bus: f64) -> Vec<f64> {
        let trace = text(SHAPE, 105, 3);
        match channel {
            None => token_times(&trace, device, &mut Nothing, |_| Next::Without),
            Some(name) => token_times(&trace, device, &mut Recorded::new(&trace, name).unwrap(), |_| Next::With(bus)),
        }
    }

    #[test]
    fn without_misses_a_token_takes_its_computing() {
        let roomy = Device { slots: 64, compute_millis: 1.0, load_millis: 5.0 };
        let times = times(roomy, None, 0.0);
        assert_eq!(times[0], 4.0 * (1.0 + 2.0 * 5.0), "at first every expert is loaded");
        assert_eq!(times[40], 4.0, "then they are there");
    }

    #[test]
    fn right_guesses_load_while_blocks_are_computed() {
        let small = Device { slots: 8, compute_millis: 10.0, load_millis: 5.0 };
        let sum = |times: Vec<f64>| times.iter().skip(1).sum::<f64>();
        let (alone, guided) = (sum(times(small, None, 0.0)), sum(times(small, Some("base"), f64::INFINITY)));
        assert!(guided <= 209.0 * 40.0 + 20.0 && alone > 1.2 * guided, "{alone} alone, {guided} with guesses");
        let kept = sum(times(small, Some("base"), 4.9));
        assert!(guided < kept && kept <= alone, "{kept}: no guess fits into the time of the bus, but held ones stay");
    }
}
