//! CPU references for every kernel, with sums in `f64`. They stay plain loops because the kernels are tested against
//! them.

mod dequantize;
mod kv_cache;

pub use dequantize::dequantize;
pub use kv_cache::{load, store};

use crate::Pairs;

/// RMSNorm of one row.
pub fn norm(x: &[f32], gain: &[f32], epsilon: f32) -> Vec<f32> {
    let mean = x.iter().map(|&v| f64::from(v) * f64::from(v)).sum::<f64>() / x.len() as f64;
    let scale = 1.0 / (mean + f64::from(epsilon)).sqrt();
    x.iter().zip(gain).map(|(&v, &g)| (f64::from(v) * scale * f64::from(g)) as f32).collect()
}

/// `matrix` (rows of `x.len()` values) times `x`.
pub fn matvec(matrix: &[f32], x: &[f32]) -> Vec<f32> {
    matrix.chunks_exact(x.len()).map(|row| dot(row, x) as f32).collect()
}

/// Dot product in `f64`.
pub fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum()
}

/// The RoPE table the kernel reads: each pair's rotation per position, as a fraction of a full turn times 2³².
pub fn rope_table(dims: u32, base: f32, linear_scale: f32) -> Vec<u32> {
    (0..dims / 2)
        .map(|pair| {
            let frequency = f64::from(base).powf(-2.0 * f64::from(pair) / f64::from(dims)) / f64::from(linear_scale);
            (frequency / std::f64::consts::TAU * 4_294_967_296.0).round() as u32
        })
        .collect()
}

/// Rotates the first `dims` values of a head in place.
pub fn rotate(head: &mut [f32], position: u32, base: f32, scale: f32, dims: usize, pairs: Pairs, factors: &[f32]) {
    for pair in 0..dims / 2 {
        let factor = factors.get(pair).map_or(1.0, |&f| f64::from(f));
        let frequency = f64::from(base).powf(-2.0 * pair as f64 / dims as f64) / f64::from(scale) / factor;
        let (sin, cos) = (f64::from(position) * frequency).sin_cos();
        let (i, j) = match pairs {
            Pairs::Adjacent => (2 * pair, 2 * pair + 1),
            Pairs::Halves => (pair, pair + dims / 2),
        };
        let (a, b) = (f64::from(head[i]), f64::from(head[j]));
        head[i] = (a * cos - b * sin) as f32;
        head[j] = (a * sin + b * cos) as f32;
    }
}

/// Attention of one query head over keys and values (one slice per position).
pub fn attention(query: &[f32], keys: &[&[f32]], values: &[&[f32]]) -> Vec<f32> {
    let scale = 1.0 / (query.len() as f64).sqrt();
    let scores: Vec<f64> = keys.iter().map(|key| dot(query, key) * scale).collect();
    let max = scores.iter().copied().fold(f64::MIN, f64::max);
    let weights: Vec<f64> = scores.iter().map(|score| (score - max).exp()).collect();
    let total: f64 = weights.iter().sum();
    let mut sum = vec![0.0; query.len()];
    for (value, weight) in values.iter().zip(&weights) {
        for (sum, &v) in sum.iter_mut().zip(*value) {
            *sum += weight / total * f64::from(v);
        }
    }
    sum.into_iter().map(|v| v as f32).collect()
}

/// `silu(gate) · up`.
pub fn swiglu(gate: &[f32], up: &[f32]) -> Vec<f32> {
    gate.iter()
        .zip(up)
        .map(|(&g, &u)| {
            let g = f64::from(g);
            (g / (1.0 + (-g).exp()) * f64::from(u)) as f32
        })
        .collect()
}

/// The `used` best experts and their weights, largest first; ties go to the lowest id.
pub fn router(scores: &[f32], used: usize, normalize: bool) -> Vec<(u32, f32)> {
    let best = top(scores, used);
    let max = f64::from(best[0].1);
    let of = |score: f32| (f64::from(score) - max).exp();
    let sum: f64 =
        if normalize { best.iter().map(|b| of(b.1)).sum() } else { scores.iter().map(|&score| of(score)).sum() };
    best.into_iter().map(|(id, score)| (id, (of(score) / sum) as f32)).collect()
}

/// The `n` largest values and their ids, largest first; ties go to the lowest id.
pub fn top(values: &[f32], n: usize) -> Vec<(u32, f32)> {
    let mut order: Vec<(u32, f32)> = (0..).zip(values.iter().copied()).collect();
    order.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    order.truncate(n);
    order
}

/// Sum of `parts` weighted by `weights`, added in order.
pub fn combine(parts: &[&[f32]], weights: &[f32]) -> Vec<f32> {
    let width = parts.first().map_or(0, |part| part.len());
    (0..width)
        .map(|i| parts.iter().zip(weights).map(|(part, &w)| f64::from(part[i]) * f64::from(w)).sum::<f64>() as f32)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_go_to_the_lowest_id() {
        assert_eq!(top(&[1.0, 3.0, 3.0, 2.0], 3), [(1, 3.0), (2, 3.0), (3, 2.0)]);
    }

    #[test]
    fn a_router_without_normalization_keeps_the_softmax() {
        let chosen = router(&[0.0, 0.0, 0.0, 0.0], 2, false);
        assert_eq!(chosen, [(0, 0.25), (1, 0.25)]);
        let chosen = router(&[0.0, 0.0, 0.0, 0.0], 2, true);
        assert_eq!(chosen, [(0, 0.5), (1, 0.5)]);
    }

    #[test]
    fn a_rotation_keeps_length_and_position_zero() {
        let mut head = [1.0, 2.0, 3.0, 4.0];
        rotate(&mut head, 0, 10000.0, 1.0, 4, Pairs::Halves, &[]);
        assert_eq!(head, [1.0, 2.0, 3.0, 4.0]);
        rotate(&mut head, 7, 10000.0, 1.0, 4, Pairs::Adjacent, &[]);
        assert!((dot(&head, &head) - 30.0).abs() < 1e-5);
        assert!((head[0] - 1.0).abs() > 0.1);
    }
}
