//! A simulated shadow of the host's. What it says changes no token.

use potluck_plan::random::mix;
use potluck_plan::{BlockIndex, ExpertId, KernelClass, Position};
use potluck_predict::ShadowWord;

use super::engine::SimModel;
use super::random::Random;

/// Tokens that a shadow which knows the text is ahead.
const AHEAD: u32 = 7;

/// What a shadow says.
pub(super) enum SimShadow {
    /// Anything at any time. Some of it is of a text that it knows.
    Any { random: Random, text: Vec<u32> },
    /// The tokens of a text, with what share of them right, and every how many milliseconds one.
    Tokens { text: Vec<u32>, right: f64, millis: f64 },
}

impl SimShadow {
    /// What it says once work begins that ends at a position, each with the milliseconds until then.
    pub fn words(&mut self, model: &SimModel, class: KernelClass, last: Position) -> Vec<(ShadowWord, f64)> {
        match self {
            Self::Any { random, text } => anything(random, text, model, (class, last)),
            Self::Tokens { text, right, millis } => tokens(text, *right, *millis, last),
        }
    }
}

fn anything(
    random: &mut Random,
    text: &[u32],
    model: &SimModel,
    (class, last): (KernelClass, Position),
) -> Vec<(ShadowWord, f64)> {
    let (blocks, experts) = (u64::from(model.blocks) + 1, u64::from(model.experts) + 2);
    let mut words = Vec::new();
    if class == KernelClass::Prefill {
        words.push(ShadowWord::Begins(Position(last.0 + 1)));
    }
    for _ in 0..random.below(8) {
        let position = Position(last.0 + random.below(3) as u32);
        let experts = (0..2).map(|_| ExpertId(random.below(experts) as u16)).collect();
        words.push(ShadowWord::Chose(position, BlockIndex(random.below(blocks) as u16), experts));
    }
    for position in last.0 + 1..=last.0 + random.below(u64::from(AHEAD)) as u32 {
        let known = text.get(position as usize).filter(|_| random.below(4) > 0);
        words.push(ShadowWord::Expects(Position(position), known.copied().unwrap_or(random.below(256) as u32)));
    }
    if random.below(8) == 0 {
        words.push(ShadowWord::TakenBack(last));
    }
    words.into_iter().map(|word| (word, 5.0 * random.unit())).collect()
}

/// From a wrong token on the shadow is in another text, until it hears of the right one.
fn tokens(text: &[u32], right: f64, millis: f64, last: Position) -> Vec<(ShadowWord, f64)> {
    let mut words = vec![(ShadowWord::TakenBack(Position(last.0 + 1)), 0.0)];
    for position in last.0 + 1..=last.0 + AHEAD {
        let Some(token) = text.get(position as usize) else { break };
        let is_right = 1e3 * right > (mix(u64::from(position)) % 1_000) as f64;
        let expected = if is_right { *token } else { token ^ 1 };
        words.push((ShadowWord::Expects(Position(position), expected), millis * f64::from(position - last.0)));
        if !is_right {
            break;
        }
    }
    words
}
