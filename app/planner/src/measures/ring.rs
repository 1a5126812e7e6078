//! The last `N` measurements of something.

/// A ring of the last `N` measurements. Values that are no measurement (not finite, or negative) are ignored.
#[derive(Clone, Debug, PartialEq)]
pub struct Ring<const N: usize> {
    values: Vec<f64>,
    next: usize,
}

impl<const N: usize> Default for Ring<N> {
    fn default() -> Self {
        Self { values: Vec::with_capacity(N), next: 0 }
    }
}

impl<const N: usize> Ring<N> {
    /// Adds a value; the oldest one is dropped when the ring is full.
    pub fn push(&mut self, value: f64) {
        if value >= 0.0 {
            self.push_difference(value);
        }
    }

    /// Adds a difference of two values, which may be negative.
    pub fn push_difference(&mut self, value: f64) {
        if !value.is_finite() || N == 0 {
            return;
        }
        if self.values.len() < N {
            self.values.push(value);
        } else {
            self.values[self.next] = value;
        }
        self.next = (self.next + 1) % N;
    }

    /// How many values it has.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// True before the first value.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The median absolute deviation.
    pub fn deviation(&self) -> Option<f64> {
        let median = self.median()?;
        let mut distances = Self::default();
        self.values.iter().for_each(|value| distances.push((value - median).abs()));
        distances.median()
    }

    /// The median (of an even number the mean of the two middle values), if there is any value.
    pub fn median(&self) -> Option<f64> {
        let mut sorted = self.values.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        match sorted.len() {
            0 => None,
            odd if odd % 2 == 1 => Some(sorted[middle]),
            _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_forgets_what_is_old_and_does_not_mind_outliers() {
        let mut ring = Ring::<3>::default();
        assert_eq!(ring.median(), None);
        ring.push(4.0);
        ring.push(2.0);
        assert_eq!(ring.median(), Some(3.0), "the mean of two");
        ring.push(1_000.0);
        assert_eq!(ring.median(), Some(4.0));
        ring.push(2.0);
        assert_eq!(ring.median(), Some(2.0), "4 is forgotten");
        assert_eq!(ring.len(), 3);
    }

    #[test]
    fn the_deviation_does_not_mind_an_outlier() {
        let mut ring = Ring::<5>::default();
        assert_eq!(ring.deviation(), None);
        [10.0, 11.0, 9.0, 12.0, 900.0].into_iter().for_each(|value| ring.push(value));
        assert_eq!(ring.deviation(), Some(1.0));
    }

    #[test]
    fn what_cannot_be_a_measurement_is_not_taken() {
        let mut ring = Ring::<3>::default();
        [f64::NAN, f64::INFINITY, -1.0].into_iter().for_each(|value| ring.push(value));
        assert!(ring.is_empty());
    }
}
