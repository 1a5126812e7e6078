//! Test cases of the sampler's kernel: every parameter, and penalties whose window goes around the ring. What it must sample is
//! what the sampler does.

use potluck_plan::{Candidates, LogitsRequest, Position, SampledSteps, Sampling};
use potluck_shaders::{Kernel, params};

use super::case::case;
use super::data::{Random, raw, zeros};
use super::{Case, Expected};
use crate::runtime::sampled_tokens::sampler_state;

/// All cases, each at several positions.
pub fn of(kernel: Kernel) -> Vec<Case> {
    let plain = Sampling { top_k: 0, top_p: 1.0, min_p: 0.0, temperature: 1.0, seed: 1, ..Sampling::default() };
    let settings = [
        plain,
        Sampling { top_k: 7, temperature: 1.6, ..plain },
        Sampling { top_p: 0.8, ..plain },
        Sampling { min_p: 0.1, seed: u64::MAX, ..plain },
        Sampling { repetition_penalty: 1.4, penalty_window: 128, ..Sampling::default() },
        Sampling { repetition_penalty: 0.8, top_p: 0.6, ..Sampling::default() },
        Sampling { repetition_penalty: 1.9, ..Sampling::greedy() },
    ];
    let scales = [1.0f32, 1e-5, 2e4];
    let all = settings.iter().enumerate().flat_map(|(index, sampling)| {
        [0, 77, 250 + index as u32]
            .into_iter()
            .zip(scales)
            .map(|(position, scale)| sample(kernel, *sampling, position, scale))
    });
    all.collect()
}

/// Tests binding 0: the candidates with the sampled token behind them.
fn sample(kernel: Kernel, sampling: Sampling, position: u32, scale: f32) -> Case {
    let mut random = Random(23 + u64::from(position));
    let count = usize::from(LogitsRequest::MAX_TOP) - position as usize % 3;
    let mut logits: Vec<f32> = (0..count).map(|_| ((random.next() % 800) as f32 / 50.0 - 9.0) * scale).collect();
    logits.sort_by(|a, b| b.total_cmp(a));
    let ids: Vec<u32> = (0..count as u32).map(|place| (place * 37) % 500).collect();
    let log: Vec<u32> = (0..=position).map(|_| (random.next() % 500) as u32).collect();
    let recent = log[log.len().saturating_sub(sampling.penalty_window as usize)..].to_vec();
    let mut entries: Vec<u32> = ids.iter().zip(&logits).flat_map(|(id, logit)| [*id, logit.to_bits()]).collect();
    let bindings = vec![
        raw(&[entries.clone(), vec![0, 0]].concat()),
        raw(&[position, 0, 0, 0]),
        raw(&sampler_state(&SampledSteps { sampling, recent }, Position(position))),
        zeros(1),
    ];
    let sampled = sampling.sample(&Candidates { ids, logits, sampled: None, log_sum_exp: None }, &log);
    entries.extend([sampled.unwrap_or(u32::MAX), 0]);
    case(kernel, bindings, params::Sample { count: count as u32 }, (1, 1), 0, Expected::Words(entries))
}
