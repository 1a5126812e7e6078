//! References of recurrences: a position at a time, with the state as `f64`.

use super::dot;

/// `log(1 + exp(v))`.
pub fn softplus(v: f64) -> f64 {
    v.max(0.0) + (-v.abs()).exp().ln_1p()
}

/// `1 / (1 + exp(-v))`.
pub fn sigmoid(v: f64) -> f64 {
    1.0 / (1.0 + (-v).exp())
}

/// `v · sigmoid(v)`.
pub fn silu(v: f64) -> f64 {
    v * sigmoid(v)
}

/// A position of a causal convolution. `taps` are the filters of the channels, oldest input first; `past` the channels'
/// earlier inputs, position by position, and then moves on.
pub fn convolve(past: &mut Vec<f64>, taps: &[f32], input: &[f32]) -> Vec<f32> {
    let (channels, count) = (input.len(), taps.len() / input.len());
    past.extend(input.iter().map(|&v| f64::from(v)));
    let sum = |channel: usize| -> f64 {
        (0..count).map(|i| f64::from(taps[channel * count + i]) * past[i * channels + channel]).sum()
    };
    let out = (0..channels).map(|channel| sum(channel) as f32).collect();
    past.drain(..channels);
    out
}

/// A position of one head of a gated delta net (arXiv 2412.06464, equation 10). The state has a row for each value of the
/// key. Keys and queries are normalized here.
pub fn delta(
    state: &mut [f64],
    (key, query, value): (&[f32], &[f32], &[f32]),
    (fade, beta): (f64, f64),
    epsilon: f32,
) -> Vec<f32> {
    let width = value.len();
    let unit = |v: &[f32]| -> Vec<f64> {
        let scale = 1.0 / (dot(v, v) + f64::from(epsilon)).sqrt();
        v.iter().map(|&v| f64::from(v) * scale).collect()
    };
    let (key, query) = (unit(key), unit(query));
    state.iter_mut().for_each(|s| *s *= fade);
    let read = |state: &[f64], by: &[f64], column: usize| -> f64 {
        by.iter().enumerate().map(|(i, v)| v * state[i * width + column]).sum()
    };
    let change: Vec<f64> = (0..width).map(|j| beta * (f64::from(value[j]) - read(state, &key, j))).collect();
    for (row, key) in state.chunks_exact_mut(width).zip(&key) {
        row.iter_mut().zip(&change).for_each(|(s, change)| *s += key * change);
    }
    (0..width).map(|j| (read(state, &query, j) / (query.len() as f64).sqrt()) as f32).collect()
}

/// A position of one head of a state space (arXiv 2405.21060): the state has a row for each of its values.
pub fn space(
    state: &mut [f64],
    (written, read, value): (&[f32], &[f32], &[f32]),
    (fade, time, skip): (f64, f64, f64),
) -> Vec<f32> {
    let width = value.len();
    for (row, &written) in state.chunks_exact_mut(width).zip(written) {
        for (s, &v) in row.iter_mut().zip(value) {
            *s = *s * fade + time * f64::from(written) * f64::from(v);
        }
    }
    let sum = |j: usize| -> f64 { read.iter().enumerate().map(|(i, &r)| f64::from(r) * state[i * width + j]).sum() };
    (0..width).map(|j| (sum(j) + skip * f64::from(value[j])) as f32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delta_net_finds_what_it_wrote_under_a_key() {
        let (mut state, nothing) = (vec![0.0; 4], [0.0, 0.0]);
        let (key, other) = ([1.0, 0.0], [0.0, 1.0]);
        delta(&mut state, (&key, &key, &[3.0, 5.0]), (1.0, 1.0), 0.0);
        let found = delta(&mut state, (&other, &key, &nothing), (1.0, 1.0), 0.0);
        assert!((found[0] - 3.0 / 2.0f32.sqrt()).abs() < 1e-6, "{found:?}");
        let replaced = delta(&mut state, (&key, &key, &[1.0, 1.0]), (1.0, 1.0), 0.0);
        assert!((replaced[1] - 1.0 / 2.0f32.sqrt()).abs() < 1e-6, "{replaced:?}");
    }

    #[test]
    fn a_convolution_sees_the_last_inputs_only() {
        let (mut past, taps) = (vec![0.0; 2], [1.0, 10.0, 100.0]);
        let outputs = [1.0, 2.0, 3.0, 4.0].map(|input| convolve(&mut past, &taps, &[input])[0]);
        assert_eq!(outputs, [100.0, 210.0, 321.0, 432.0]);
    }
}
