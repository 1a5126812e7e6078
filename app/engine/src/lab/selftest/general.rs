//! Test cases of operations that only some architectures have.

use potluck_shaders::{Addition, Kernel, NO_SLOT, Strategy, params, reference};

use super::case::{SLOTS, by_row, case, floats};
use super::data::{Random, raw, zeros};
use super::{Case, Expected};

pub fn norm_part(kernel: Kernel, strategy: Strategy) -> Case {
    let mut random = Random(21);
    let (n, stride, offset, width, groups) = (3usize, 120usize, 8usize, 44usize, 2usize);
    let x = random.floats(n * stride);
    let gain = random.floats(groups * width);
    let mut expected = x.clone();
    for row in expected.chunks_exact_mut(stride) {
        let parts = row[offset..offset + groups * width].chunks_exact_mut(width);
        for (part, gain) in parts.zip(gain.chunks_exact(width)) {
            part.copy_from_slice(&reference::norm(part, gain, 1e-5));
        }
    }
    let quads = |values: usize| values as u32 / 4;
    let params = params::NormPart {
        n: n as u32,
        width: quads(width),
        stride: quads(stride),
        offset: quads(offset),
        groups: groups as u32,
        epsilon: 1e-5,
    };
    let rows = (n * groups) as u32;
    case(kernel, vec![raw(&x), raw(&gain)], params, by_row(kernel, strategy, rows), 0, floats(expected))
}

pub fn residual(kernel: Kernel, strategy: Strategy, addition: Addition) -> Case {
    let mut random = Random(22);
    let (n, width, scale) = (3usize, 300usize, 0.25f32);
    let (x, before) = (random.floats(n * width), random.floats(n * width));
    let (gain, scores) = (random.floats(width), random.floats(n));
    let mut expected = before.clone();
    for (row, (y, x)) in expected.chunks_exact_mut(width).zip(x.chunks_exact(width)).enumerate() {
        let gate = 1.0 / (1.0 + (-scores[row]).exp());
        let added = match addition {
            Addition::Scaled => x.to_vec(),
            Addition::Normed => reference::norm(x, &gain, 1e-5),
            Addition::Gated => x.iter().map(|v| v * gate).collect(),
        };
        y.iter_mut().zip(added).for_each(|(y, v)| *y += scale * v);
    }
    let params = params::Residual { n: n as u32, width: width as u32 / 4, scale, epsilon: 1e-5 };
    let mut bindings = vec![raw(&x), raw(&before)];
    match addition {
        Addition::Scaled => {}
        Addition::Normed => bindings.push(raw(&gain)),
        Addition::Gated => bindings.push(raw(&scores)),
    }
    case(kernel, bindings, params, by_row(kernel, strategy, n as u32), 1, floats(expected))
}

/// Rows of more quads than threads keep.
pub fn beside(kernel: Kernel, scaled: bool) -> Case {
    let mut random = Random(29);
    let (n, width, scale, factor) = (3usize, 4 * (4 * 256 + 37), 0.5f32, 0.75f32);
    let [network, experts, hidden] = [0; 3].map(|_| random.floats(n * width));
    let gains = [0; 3].map(|_| random.floats(width));
    let rows = network.chunks_exact(width).zip(experts.chunks_exact(width)).zip(hidden.chunks_exact(width));
    let expected = rows.flat_map(|((a, b), y)| {
        let [a, b] = [(a, &gains[0]), (b, &gains[1])].map(|(x, gain)| reference::norm(x, gain, 1e-5));
        let both: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
        let added = reference::norm(&both, &gains[2], 1e-5);
        let of_block = if scaled { factor } else { 1.0 };
        let sum = |(y, v): (&f32, &f32)| (y + scale * v) * of_block;
        y.iter().zip(&added).map(sum).collect::<Vec<f32>>()
    });
    let expected = expected.collect();
    let params = params::Beside { width: width as u32 / 4, scale, epsilon: 1e-5, scaled: u32::from(scaled) };
    let [first, second, third] = gains.map(|gain| raw(&gain));
    let bindings = vec![raw(&network), raw(&experts), raw(&hidden), first, second, third, raw(&[factor])];
    case(kernel, bindings, params, (n as u32, 1), 2, floats(expected))
}

/// How experts are chosen.
pub struct ChoiceRule {
    pub sigmoid: bool,
    pub biased: bool,
    pub normalize: bool,
    /// Fewer biases are numbers than a token uses experts.
    pub few: bool,
    /// Groups of experts, and how many of them are used.
    pub groups: (usize, usize),
}

/// Tests the chosen experts, or their weights.
pub fn choose(kernel: Kernel, strategy: Strategy, how: &ChoiceRule, what: usize) -> Case {
    let &ChoiceRule { sigmoid, biased, normalize, few, groups } = how;
    let mut random = Random(23);
    // Eleven groups of twelve.
    let (n, experts, used) = (3usize, if groups.0 > 1 { 132usize } else { 131 }, 5usize);
    // Scores of a row differ by 1/32 at least, in no order, so that rounding never decides.
    let scores: Vec<f32> = (0..n * experts).map(|i| ((i * 37) % experts) as f32 / 32.0 - 2.0).collect();
    // Biases that change the choice but make no ties: multiples of 1/8 plus a small share of the place.
    let bias: Vec<f32> = (0..experts).map(|e| (random.next() % 3) as f32 / 8.0 + e as f32 / 4096.0).collect();
    let numbers = if few { 3 } else { experts };
    // The reference knows no NaN: what it would have chosen last stands for those that cannot be chosen.
    let known: Vec<f32> = bias.iter().enumerate().map(|(e, &b)| if e < numbers { b } else { -1e30 }).collect();
    let bias: Vec<f32> = bias.iter().enumerate().map(|(e, &b)| if e < numbers { b } else { f32::NAN }).collect();
    let found = used.min(numbers);
    let of = if biased { &known[..] } else { &[] };
    let rule = reference::Choice { used: found, sigmoid, bias: of, normalize, scale: 2.5, groups };
    let routes = scores.chunks_exact(experts).flat_map(|row| {
        let absent = std::iter::repeat_n((NO_SLOT, 0.0), used - found);
        reference::choose(row, rule).into_iter().chain(absent)
    });
    let routes: Vec<(u32, f32)> = routes.collect();
    let params = params::Choose {
        n: n as u32,
        experts: experts as u32,
        used: used as u32,
        normalize: u32::from(normalize),
        scale: rule.scale,
        groups: groups.0 as u32,
        used_groups: groups.1 as u32,
    };
    let expected = if what == 0 {
        Expected::Words(routes.iter().map(|(id, _)| *id).collect())
    } else {
        floats(routes.iter().map(|(_, gate)| *gate).collect())
    };
    let mut bindings = vec![raw(&scores), zeros(n * used), zeros(n * used)];
    bindings.extend(biased.then(|| raw(&bias)));
    case(kernel, bindings, params, by_row(kernel, strategy, n as u32), 1 + what, expected)
}

pub fn expert_bias(kernel: Kernel) -> Case {
    let mut random = Random(24);
    let (width, inside, stride) = (37usize, 64usize, 128usize);
    // Slots 1 to 3 are in this binding.
    let biases = random.floats(3 * stride);
    let chosen = [0u32, 3, 1, 4, 2, 0, NO_SLOT, 3];
    let before = random.floats(chosen.len() * width);
    let mut expected = before.clone();
    for (pair, y) in expected.chunks_exact_mut(width).enumerate() {
        let slot = SLOTS.get(chosen[pair] as usize).copied().unwrap_or(NO_SLOT);
        if slot != NO_SLOT && slot >= 1 {
            let bias = &biases[(slot as usize - 1) * stride + inside..][..width];
            y.iter_mut().zip(bias).for_each(|(y, b)| *y += b);
        }
    }
    let params = params::ExpertBias {
        pairs: chosen.len() as u32,
        width: width as u32,
        experts: 6,
        slot_first: 1,
        slot_count: 3,
        stride: stride as u32,
        inside: inside as u32,
    };
    let x = (before.len() as u32).div_ceil(kernel.threads());
    let bindings = vec![raw(&biases), raw(&before), raw(&SLOTS), raw(&chosen)];
    case(kernel, bindings, params, (x, 1), 1, floats(expected))
}

pub fn scale_logits(kernel: Kernel, cap: f32) -> Case {
    let mut random = Random(25);
    let logits: Vec<f32> = random.floats(1001).into_iter().map(|v| v * 40.0).collect();
    let scaled = |v: f32| reference::soft_cap(f64::from(v) * 0.5, f64::from(cap)) as f32;
    let expected = logits.iter().map(|&v| scaled(v)).collect();
    let params = params::ScaleLogits { count: 1001, scale: 0.5, cap };
    case(kernel, vec![raw(&logits)], params, (1001u32.div_ceil(kernel.threads()), 1), 0, floats(expected))
}

pub fn scale_by(kernel: Kernel, expert: bool) -> Case {
    let mut random = Random(26);
    let (values, factors) = (random.floats(101), random.floats(7));
    let chosen: Vec<u32> = (0..values.len() as u32).map(|i| i * 3 % 7).collect();
    // The last factor is for all further rows.
    let factor = |i: usize| if expert { factors[chosen[i] as usize] } else { factors[(i / 13).min(6)] };
    let expected = values.iter().enumerate().map(|(i, v)| v * factor(i)).collect();
    let params = params::ScaleBy { count: values.len() as u32, factors: factors.len() as u32, row: 13 };
    let x = params.count.div_ceil(kernel.threads());
    let mut bindings = vec![raw(&factors), raw(&values)];
    bindings.extend(expert.then(|| raw(&chosen)));
    case(kernel, bindings, params, (x, 1), 1, floats(expected))
}

/// The input of the second of three blocks.
pub fn gate_input(kernel: Kernel) -> Case {
    let mut random = Random(34);
    let (n, width, blocks) = (3usize, 20usize, 3usize);
    let (inputs, gates) = (random.floats(n * blocks * width), random.floats(n * width));
    let of_block = inputs.chunks_exact(blocks * width).flat_map(|row| row[width..2 * width].to_vec());
    let expected = reference::geglu(&gates, &of_block.collect::<Vec<f32>>());
    let quads = |values: usize| values as u32 / 4;
    let params = params::GateInput {
        quads: quads(n * width),
        width: quads(width),
        stride: quads(blocks * width),
        offset: quads(width),
    };
    let groups = params.quads.div_ceil(kernel.threads());
    case(kernel, vec![raw(&inputs), raw(&gates)], params, (groups, 1), 1, floats(expected))
}
