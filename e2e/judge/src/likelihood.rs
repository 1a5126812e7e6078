//! How likely a text is by a room's model: the negative log-likelihood of each token, from the logits after the one before.

use anyhow::{Result, bail};
use potluck_plan::{BatchToken, KernelClass, LmHeadRequest, LmHeadTokens, LogitsRequest, Outcome, Position, Work};

use crate::Room;

const HEAD: LmHeadRequest = LmHeadRequest { tokens: LmHeadTokens::All, logits: LogitsRequest::Logits };
/// Tokens whose logits come back at a time: the most that an engine returns.
pub const LOGITS_READ: usize = 16;

/// What a model predicts for the position of a token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Likelihood {
    /// Negative logarithm of its probability.
    pub surprise: f64,
    /// The token that was likeliest.
    pub best: u32,
}

/// The likelihood of each token after the first, in a conversation of its own, by the kernels of prompts or those of answers.
///
/// The blocks take as many tokens at a time as an engine does, and only hidden vectors come back; they pass the LM head a few at a
/// time. A token's bits depend on neither.
///
/// # Errors
/// An error of an engine.
pub async fn likelihoods(room: &Room, tokens: &[u32], class: KernelClass) -> Result<Vec<Likelihood>> {
    let conversation = room.conversation();
    let at_once = match class {
        KernelClass::Decode => Work::DECODE_TOKENS,
        KernelClass::Prefill => Work::PREFILL_TOKENS,
    };
    let mut all = Vec::with_capacity(tokens.len());
    // Nothing follows the last token.
    let asked = tokens.len().saturating_sub(1);
    for (base, chunk) in tokens[..asked].chunks(at_once).enumerate().map(|(number, chunk)| (number * at_once, chunk)) {
        let hidden = room.hidden(conversation, base, chunk, class).await?;
        let width = hidden.len() / chunk.len();
        for (number, vectors) in hidden.chunks(LOGITS_READ * width).enumerate() {
            let first = base + number * LOGITS_READ;
            let row = |i| BatchToken { conversation, position: Position((first + i) as u32) };
            let rows = (0..vectors.len() / width).map(row).collect();
            let logits = match room.head(rows, class, vectors.to_vec(), HEAD).await? {
                Outcome::Logits(logits) => logits,
                other => bail!("no logits came back: {other:?}"),
            };
            all.extend(judge(&logits, &tokens[first + 1..first + 1 + vectors.len() / width]));
        }
    }
    room.forget(conversation);
    Ok(all)
}

/// The likelihoods of tokens, from the logits before each, on all cores.
fn judge(logits: &[f32], tokens: &[u32]) -> Vec<Likelihood> {
    let width = logits.len() / tokens.len();
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(tokens.len());
    let each = tokens.len().div_ceil(threads);
    std::thread::scope(|scope| {
        let part = |(logits, tokens): (&'_ [f32], &'_ [u32])| -> Vec<Likelihood> {
            logits.chunks(width).zip(tokens).map(|(row, token)| likelihood(row, *token)).collect()
        };
        let parts = logits.chunks(each * width).zip(tokens.chunks(each));
        let running: Vec<_> = parts.map(|its| scope.spawn(move || part(its))).collect();
        running.into_iter().flat_map(|part| part.join().unwrap_or_default()).collect()
    })
}

fn likelihood(logits: &[f32], token: u32) -> Likelihood {
    let (best, top) =
        logits.iter().enumerate().fold((0, f32::MIN), |best, (id, &v)| if v > best.1 { (id, v) } else { best });
    // Four sums: in one, each addition would wait for the one before.
    let mut sums = [0.0f64; 4];
    for four in logits.chunks(4) {
        sums.iter_mut().zip(four).for_each(|(sum, v)| *sum += f64::from((v - top).exp()));
    }
    let sum: f64 = sums.iter().sum();
    Likelihood { surprise: sum.ln() + f64::from(top) - f64::from(logits[token as usize]), best: best as u32 }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn a_surprise_is_that_of_the_softmax() {
        let logits = [0.0, 2.0, -1.0, 0.5, 0.25];
        let sum: f64 = logits.iter().map(|v| f64::from(*v).exp()).sum();
        let twice = [logits, logits].concat();
        let all = judge(&twice, &[1, 3]);
        assert_eq!(all.iter().map(|one| one.best).collect::<Vec<_>>(), [1, 1]);
        for (one, token) in all.iter().zip([1, 3]) {
            assert!((one.surprise + (f64::from(logits[token]).exp() / sum).ln()).abs() < 1e-6, "{one:?}");
        }
    }
}
