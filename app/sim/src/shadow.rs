//! A simulated shadow of the host's. What it says changes no token.

use potluck_plan::random::mix;
use potluck_plan::{BatchToken, BlockIndex, ExpertId, KernelClass, Position};
use potluck_predict::ShadowWord;

use super::engine::SimModel;
use super::random::Random;

/// Tokens that a shadow which knows the text is ahead.
const AHEAD: u32 = 7;

/// What a shadow says.
pub(super) enum SimShadow {
    /// Anything at any time. Some of it is of a text that it knows.
    Any { random: Random, text: Vec<u32> },
    /// The tokens of a text.
    Tokens(Tokens),
}

/// A shadow that computes one token after the other while it is wanted.
pub(super) struct Tokens {
    text: Vec<u32>,
    /// The share of tokens that it expects rightly.
    right: f64,
    /// For one token.
    millis: f64,
    wanted: bool,
    /// The next token that it will name.
    next: u32,
    /// Where it was wrong. What it said after that is of another text.
    wrong: Option<u32>,
    /// Until when it computes.
    busy: f64,
}

impl SimShadow {
    /// The tokens of a text, with what share of them right, and every how many milliseconds one.
    pub fn tokens(text: Vec<u32>, right: f64, millis: f64) -> Self {
        Self::Tokens(Tokens { text, right, millis, wanted: false, next: 0, wrong: None, busy: 0.0 })
    }

    /// Somebody wants to know what comes next, or nobody does.
    pub fn is_wanted(&mut self, wanted: bool) {
        if let Self::Tokens(tokens) = self {
            tokens.wanted = wanted;
        }
    }

    /// What it says once work on these tokens begins, each with its time.
    pub fn words(
        &mut self,
        model: &SimModel,
        class: KernelClass,
        batch: &[BatchToken],
        now: f64,
    ) -> Vec<(ShadowWord, f64)> {
        let [first, last] = [batch.first(), batch.last()].map(|row| row.map_or(0, |row| row.position.0));
        match self {
            Self::Any { random, text } => anything(random, text, model, class, last, now),
            Self::Tokens(tokens) if class == KernelClass::Prefill => {
                (tokens.next, tokens.wrong) = (0, None);
                vec![(ShadowWord::Begins(Position(last + 1)), tokens.busy.max(now))]
            }
            Self::Tokens(tokens) if tokens.wanted => tokens.follow(first, last, now),
            Self::Tokens(_) => Vec::new(),
        }
    }
}

impl Tokens {
    /// Goes on if it has expected the first of these tokens, or begins anew with it. Words come in order.
    fn follow(&mut self, first: u32, last: u32, now: f64) -> Vec<(ShadowWord, f64)> {
        let (mut words, mut at) = (Vec::new(), self.busy.max(now));
        if self.next <= first || self.wrong.is_some_and(|wrong| wrong <= first) {
            words.push((ShadowWord::TakenBack(Position(first)), at));
            (self.next, self.wrong) = (first + 1, None);
        }
        for position in self.next..=last + AHEAD {
            let Some(token) = self.text.get(position as usize) else { break };
            if 1e3 * self.right <= (mix(u64::from(position)) % 1_000) as f64 {
                self.wrong = self.wrong.or(Some(position));
            }
            at += self.millis;
            self.next = position + 1;
            words.push((ShadowWord::Expects(Position(position), token ^ u32::from(self.wrong.is_some())), at));
        }
        self.busy = at;
        words
    }
}

fn anything(
    random: &mut Random,
    text: &[u32],
    model: &SimModel,
    class: KernelClass,
    last: u32,
    now: f64,
) -> Vec<(ShadowWord, f64)> {
    let (blocks, experts) = (u64::from(model.blocks) + 1, u64::from(model.experts) + 2);
    let mut words = Vec::new();
    if class == KernelClass::Prefill {
        words.push(ShadowWord::Begins(Position(last + 1)));
    }
    for _ in 0..random.below(8) {
        let position = Position(last + random.below(3) as u32);
        let experts = (0..2).map(|_| ExpertId(random.below(experts) as u16)).collect();
        words.push(ShadowWord::Chose(position, BlockIndex(random.below(blocks) as u16), experts));
    }
    for position in last + 1..=last + random.below(u64::from(AHEAD)) as u32 {
        let known = text.get(position as usize).filter(|_| random.below(4) > 0);
        words.push(ShadowWord::Expects(Position(position), known.copied().unwrap_or(random.below(256) as u32)));
    }
    if random.below(8) == 0 {
        words.push(ShadowWord::TakenBack(Position(last)));
    }
    words.into_iter().map(|word| (word, now + 5.0 * random.unit())).collect()
}
