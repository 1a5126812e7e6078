//! CPU references for every kernel, with sums in `f64`. They stay plain loops because the kernels are tested against
//! them.

mod dequantize;
mod halved;
mod kv_cache;
mod packed;
mod recurrent;

pub use dequantize::dequantize;
pub use halved::{halve, halved};
pub use kv_cache::{load, store};
pub use packed::{quantize, quantized};
pub use recurrent::{convolve, delta, sigmoid, silu, softplus, space};

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

/// The RoPE table that the kernel reads, of frequencies in radians per position: each pair's rotation per position as a
/// fraction of a full turn times 2³².
pub fn rope_table_of(frequencies: &[f64]) -> Vec<u32> {
    frequencies.iter().map(|frequency| (frequency / std::f64::consts::TAU * 4_294_967_296.0).round() as u32).collect()
}

/// Rotates a head's pairs by given frequencies, in radians per position, and multiplies them by a magnitude.
pub fn rotate_by(head: &mut [f32], position: u32, frequencies: &[f64], magnitude: f32, pairs: Pairs, factors: &[f32]) {
    let dims = 2 * frequencies.len();
    for (pair, frequency) in frequencies.iter().enumerate() {
        let factor = factors.get(pair).map_or(1.0, |&f| f64::from(f));
        let (sin, cos) = (f64::from(position) * frequency / factor).sin_cos();
        let (sin, cos) = (sin * f64::from(magnitude), cos * f64::from(magnitude));
        let (i, j) = match pairs {
            Pairs::Adjacent => (2 * pair, 2 * pair + 1),
            Pairs::Halves => (pair, pair + dims / 2),
        };
        let (a, b) = (f64::from(head[i]), f64::from(head[j]));
        head[i] = (a * cos - b * sin) as f32;
        head[j] = (a * sin + b * cos) as f32;
    }
}

/// What happens to attention scores before their softmax.
#[derive(Clone, Copy, Debug)]
pub struct Scores {
    /// Their factor.
    pub scale: f64,
    /// Their soft cap, 0 for none.
    pub cap: f64,
    /// A score without a value.
    pub sink: Option<f32>,
}

impl Scores {
    /// Scores divided by the root of the head's width.
    pub fn of(head_dim: usize) -> Self {
        Self { scale: 1.0 / (head_dim as f64).sqrt(), cap: 0.0, sink: None }
    }
}

/// `cap · tanh(value / cap)`, or the value if there is no cap.
pub fn soft_cap(value: f64, cap: f64) -> f64 {
    if cap > 0.0 { cap * (value / cap).tanh() } else { value }
}

/// The logarithm of the sum of exponentials.
pub fn log_sum_exp(values: &[f32]) -> f64 {
    let most = values.iter().copied().fold(f32::MIN, f32::max);
    let sum: f64 = values.iter().map(|value| (f64::from(*value) - f64::from(most)).exp()).sum();
    f64::from(most) + sum.ln()
}

/// Attention of one query head over keys and values (one slice per position).
pub fn attention(query: &[f32], keys: &[&[f32]], values: &[&[f32]]) -> Vec<f32> {
    attention_with(query, keys, values, Scores::of(query.len()))
}

/// The same with other scores.
pub fn attention_with(query: &[f32], keys: &[&[f32]], values: &[&[f32]], how: Scores) -> Vec<f32> {
    let scores: Vec<f64> = keys.iter().map(|key| soft_cap(dot(query, key) * how.scale, how.cap)).collect();
    let sink = how.sink.map(f64::from);
    let max = scores.iter().copied().chain(sink).fold(f64::MIN, f64::max);
    let weights: Vec<f64> = scores.iter().map(|score| (score - max).exp()).collect();
    let total: f64 = weights.iter().sum::<f64>() + sink.map_or(0.0, |sink| (sink - max).exp());
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

/// `gelu(gate) · up`, with the tanh approximation.
pub fn geglu(gate: &[f32], up: &[f32]) -> Vec<f32> {
    let gelu = |g: f64| 0.5 * g * (1.0 + (0.797_884_560_802_865_4 * (g + 0.044_715 * g * g * g)).tanh());
    gate.iter().zip(up).map(|(&g, &u)| (gelu(f64::from(g)) * f64::from(u)) as f32).collect()
}

/// SwiGLU of gpt-oss.
pub fn clamped_swiglu(gate: &[f32], up: &[f32]) -> Vec<f32> {
    gate.iter()
        .zip(up)
        .map(|(&g, &u)| {
            let (g, u) = (f64::from(g).min(7.0), f64::from(u).clamp(-7.0, 7.0));
            (g / (1.0 + (-1.702 * g).exp()) * (u + 1.0)) as f32
        })
        .collect()
}

/// A rule by which experts are chosen and weighted.
#[derive(Clone, Copy, Debug)]
pub struct Choice<'a> {
    /// Experts per token.
    pub used: usize,
    /// Probabilities are sigmoids instead of a softmax.
    pub sigmoid: bool,
    /// Added to the probabilities for the choice only; empty for none.
    pub bias: &'a [f32],
    /// Divide the chosen probabilities by their sum.
    pub normalize: bool,
    /// Factor of the weights.
    pub scale: f32,
    /// Groups of the experts, and how many take part: those with the largest sums of their two best; 1 group for all.
    pub groups: (usize, usize),
}

/// The best experts and their weights by any rule, largest first; ties go to the lowest id.
pub fn choose(scores: &[f32], rule: Choice<'_>) -> Vec<(u32, f32)> {
    let max = scores.iter().copied().fold(f32::MIN, f32::max);
    let exp = |score: f32| f64::from(score - max).exp();
    let sum: f64 = scores.iter().map(|&score| exp(score)).sum();
    let probability = |score: f32| {
        if rule.sigmoid { 1.0 / (1.0 + f64::from(-score).exp()) } else { exp(score) / sum }
    };
    let probabilities: Vec<f64> = scores.iter().map(|&score| probability(score)).collect();
    let merit = |(e, p): (usize, &f64)| (p + rule.bias.get(e).map_or(0.0, |&b| f64::from(b))) as f32;
    let mut merits: Vec<f32> = probabilities.iter().enumerate().map(merit).collect();
    if rule.groups.0 > 1 {
        let size = merits.len() / rule.groups.0;
        let sums: Vec<f32> =
            merits.chunks_exact(size).map(|group| top(group, 2).iter().map(|best| best.1).sum()).collect();
        let kept = top(&sums, rule.groups.1);
        for (e, merit) in merits.iter_mut().enumerate() {
            if !kept.iter().any(|(group, _)| *group as usize == e / size) {
                *merit = f32::NEG_INFINITY;
            }
        }
    }
    let best = top(&merits, rule.used);
    let total: f64 = best.iter().map(|(e, _)| probabilities[*e as usize]).sum();
    let divisor = if rule.normalize { total.max(6.103_515_625e-5) } else { 1.0 };
    best.into_iter().map(|(e, _)| (e, (probabilities[e as usize] / divisor * f64::from(rule.scale)) as f32)).collect()
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
        rotate_by(&mut head, 0, &[1.0, 0.01], 1.0, Pairs::Halves, &[]);
        assert_eq!(head, [1.0, 2.0, 3.0, 4.0]);
        rotate_by(&mut head, 7, &[1.0, 0.01], 1.0, Pairs::Adjacent, &[]);
        assert!((dot(&head, &head) - 30.0).abs() < 1e-5);
        assert!((head[0] - 1.0).abs() > 0.1);
    }
}
