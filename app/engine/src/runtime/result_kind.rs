//! The meaning of a result's bytes.

use potluck_plan::{Candidates, ExpertId, ExpertRoute, Outcome};
use potluck_shaders::NO_SLOT;

/// Meaning of a result's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// No data, only completion.
    Done,
    /// Hidden vectors.
    Hidden,
    /// Outputs of experts: so many bytes, a vector for each (token, expert) pair.
    ExpertOutputs { bytes: u64 },
    /// Residual, normed vector, chosen ids and weights of `rows` tokens, with the hidden width and the experts per
    /// token.
    Routed { rows: u32, hidden: u32, used: u32 },
    /// `count` candidates per batch row.
    Candidates { rows: u32, count: u32 },
    /// The same with the log-sum-exp of each row behind them all.
    Summed { rows: u32, count: u32 },
    /// The same with the sampled token behind them.
    Sampled { rows: u32, count: u32 },
    /// Logits.
    Logits,
}

const NOT_FINITE: &str = "The GPU computed a value that is not a finite number: the weights may be damaged.";

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|value| f32::from_le_bytes(*value)).collect()
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks().0.iter().map(|value| u32::from_le_bytes(*value)).collect()
}

fn finite(values: Vec<f32>, make: impl FnOnce(Vec<f32>) -> Outcome) -> Outcome {
    if values.iter().all(|v| v.is_finite()) { make(values) } else { Outcome::Failed(NOT_FINITE.into()) }
}

impl Kind {
    /// Decodes a result.
    pub fn read(self, bytes: &[u8]) -> Outcome {
        match self {
            Self::Done => Outcome::Done,
            Self::Hidden => finite(floats(bytes), Outcome::Hidden),
            Self::ExpertOutputs { bytes: len } => finite(floats(&bytes[..len as usize]), Outcome::ExpertOutputs),
            Self::Logits => finite(floats(bytes), Outcome::Logits),
            Self::Candidates { rows, count } => candidates(&words(bytes), rows as usize, count as usize, 0),
            Self::Summed { rows, count } => summed(&words(bytes), rows as usize, count as usize),
            Self::Sampled { rows, count } => candidates(&words(bytes), rows as usize, count as usize, 1),
            Self::Routed { rows, hidden, used } => {
                let vector = (rows * hidden * 4) as usize;
                let pairs = (rows * used * 4) as usize;
                let (residual, rest) = bytes.split_at(vector);
                let (normed, rest) = rest.split_at(vector);
                let (chosen, gates) = rest.split_at(pairs);
                let (chosen, gates) = (words(chosen), floats(gates));
                let residual = floats(residual);
                let normed = floats(normed);
                if !residual.iter().chain(&normed).chain(&gates).all(|v| v.is_finite()) || chosen.contains(&NO_SLOT) {
                    return Outcome::Failed(NOT_FINITE.into());
                }
                let routes = chosen
                    .chunks(used as usize)
                    .zip(gates.chunks(used as usize))
                    .map(|(ids, gates)| ExpertRoute {
                        experts: ids.iter().zip(gates).map(|(&id, &gate)| (ExpertId(id as u16), gate)).collect(),
                    })
                    .collect();
                Outcome::Routed { residual, normed, routes }
            }
        }
    }
}

/// Rows of candidates, then the log-sum-exp of each row.
fn summed(words: &[u32], rows: usize, count: usize) -> Outcome {
    let (of_rows, sums) = words.split_at(words.len().min(2 * rows * count));
    let mut outcome = candidates(of_rows, rows, count, 0);
    if let Outcome::Candidates(all) = &mut outcome {
        let sums = sums.iter().map(|word| f32::from_bits(*word));
        all.iter_mut().zip(sums).for_each(|(best, sum)| best.log_sum_exp = Some(sum));
        if !all.iter().all(|best| best.log_sum_exp.is_some_and(f32::is_finite)) {
            return Outcome::Failed(NOT_FINITE.into());
        }
    }
    outcome
}

/// Rows of candidates, each followed by `sampled` tokens: one or none.
fn candidates(words: &[u32], rows: usize, count: usize, sampled: usize) -> Outcome {
    let mut all = Vec::with_capacity(rows);
    for row in words.chunks_exact(2 * (count + sampled)).take(rows) {
        let sampled = row.get(2 * count).copied();
        let mut best = Candidates {
            ids: Vec::with_capacity(count),
            logits: Vec::with_capacity(count),
            sampled,
            log_sum_exp: None,
        };
        for pair in row[..2 * count].chunks_exact(2) {
            let logit = f32::from_bits(pair[1]);
            if pair[0] == u32::MAX || !logit.is_finite() {
                return Outcome::Failed(NOT_FINITE.into());
            }
            best.ids.push(pair[0]);
            best.logits.push(logit);
        }
        all.push(best);
    }
    Outcome::Candidates(all)
}
