//! Turns prediction off where it does not pay, and bounds what trying costs.
//!
//! Nobody can see what a token would have taken without guesses, so a few passes in a row load guesses, and their times are
//! compared with those of the tokens around them. The first trial ends within 192 tokens, a later one 192 tokens after its
//! pause; a token with guesses is only tried while prediction has cost less than 1.5% of the time so far. Prediction stays on
//! only if its tokens were faster beyond doubt, and only as long as it costs no more than the same share. Otherwise it is
//! tried again after a pause, because text and pool change.

use potluck_plan::Position;

/// Share of the time so far that prediction may have cost: less than the 3% that is promised, because a token's cost is only
/// known when it is there, and because a pool that guesses have changed may be slower for longer than is seen.
const SHARE: f64 = 0.015;
/// Tokens of a trial, those without guesses included, after [`WARM_UP`] and [`FIRST`]. So prediction that does not pay is off
/// within 200 tokens.
const TRIAL: u32 = 144;
/// Tokens whose times do not count: the pool fills.
const WARM_UP: u32 = 16;
/// Tokens without guesses, from then on, before the first trial.
const FIRST: u32 = 32;
/// Passes with guesses in a row during a trial, and passes without them whose times count, in between. A pass is a token, or
/// several with the drafts of a shadow.
const RUN: u32 = 4;
/// Passes after the last guess that pay for what it evicted, or still have drafts: they count as its cost.
const AFTERMATH: u32 = 4;
/// Passes with guesses, and as many without, that a decision needs. At the end of a trial half as many are enough: where tokens
/// pass together, few come within its tokens.
const EVIDENCE: u32 = 16;
/// Standard errors by which tokens with guesses must be faster, beside [`GAIN`]: it is looked at many times.
const DOUBT: f64 = 2.5;
/// The share of a token's time that guesses must save to be worth their while.
const GAIN: f64 = 0.01;
/// The guesses of a token may take the bus for this share of a token's time. A wrong one costs at most twice
/// its load: it takes the bus, and what it evicted is loaded again. So a token takes at most twice as long.
const BUS_SHARE: f64 = 0.5;
/// While prediction is on, [`RUN`] passes are measured without it after so many with it.
const CHECK_AFTER: u32 = 56;
/// Tokens of the first pause; each is twice as long as the last, up to [`LONGEST_PAUSE`].
const PAUSE: u32 = 256;
const LONGEST_PAUSE: u32 = 1 << 16;
/// Half-life of a token's time, in passes.
const HALF_LIFE: f64 = 16.0;

/// What is known of prediction here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchState {
    /// It is being tried.
    Trying,
    /// It pays.
    On,
    /// It did not pay.
    Off,
}

/// How a pass is computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Next {
    /// Experts are loaded when they are needed.
    Without,
    /// Guesses are loaded, for at most this many milliseconds of the bus.
    With(f64),
}

/// Decides pass by pass whether guesses are loaded.
#[derive(Clone, Debug)]
pub struct Switch {
    state: SwitchState,
    next: Next,
    /// Tokens in this state.
    since: u32,
    /// Tokens whose times do not count any more.
    warm_up: u32,
    pause: u32,
    /// Milliseconds of all tokens.
    elapsed: f64,
    /// Milliseconds that prediction has cost; gains are not saved up.
    cost: f64,
    /// Times of tokens that no guess touched.
    without: Recent,
    trial: Trial,
    /// Passes of the present kind in a row.
    run: u32,
    /// Passes that still pay for guesses.
    aftermath: u32,
    drafted: Option<Drafted>,
}

/// A token and its drafts, until it is known how many of them were accepted.
#[derive(Clone, Copy, Debug)]
struct Drafted {
    first: Position,
    tokens: u32,
    millis: f64,
}

/// The mean of recent tokens' times.
#[derive(Clone, Copy, Debug, Default)]
struct Recent {
    count: u32,
    weight: f64,
    mean: f64,
}

impl Recent {
    fn add(&mut self, millis: f64) {
        self.count = self.count.saturating_add(1);
        self.weight = self.weight * 0.5f64.powf(1.0 / HALF_LIFE) + 1.0;
        self.mean += (millis - self.mean) / self.weight;
    }
}

/// Times of passes of one kind.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    passes: u32,
    tokens: u32,
    /// Milliseconds, and for each token the square of its own.
    sum: f64,
    squares: f64,
}

impl Sample {
    fn add(&mut self, tokens: u32, millis: f64) {
        self.passes += 1;
        self.tokens = self.tokens.saturating_add(tokens);
        self.sum += millis;
        self.squares += millis * millis / f64::from(tokens.max(1));
    }

    /// Milliseconds of a token.
    fn mean(&self) -> f64 {
        self.sum / f64::from(self.tokens.max(1))
    }

    /// The variance of the mean. Tokens of a pass are one measurement.
    fn error(&self) -> f64 {
        (self.squares / f64::from(self.tokens.max(1)) - self.mean() * self.mean()).max(0.0)
            / f64::from(self.passes.max(1))
    }
}

/// What a trial has shown. Its tokens with and without guesses come in turn, so that both meet the same text.
#[derive(Clone, Copy, Debug, Default)]
struct Trial {
    with: Sample,
    without: Sample,
    /// Milliseconds by which tokens with guesses were slower.
    excess: f64,
}

impl Trial {
    /// By how much the next one may be slower, as if one before had taken twice a token's time.
    fn expected(&self, token: f64) -> f64 {
        (token + self.excess) / f64::from(self.with.passes + 1)
    }

    /// Whether tokens with guesses are faster beyond doubt.
    fn pays(&self, evidence: u32) -> bool {
        let (with, without) = (&self.with, &self.without);
        let error = (with.error() + without.error()).sqrt();
        with.passes.min(without.passes) >= evidence && with.mean() + DOUBT * error < (1.0 - GAIN) * without.mean()
    }
}

impl Default for Switch {
    fn default() -> Self {
        Self::new()
    }
}

impl Switch {
    /// Nothing is known.
    pub fn new() -> Self {
        Self {
            state: SwitchState::Trying,
            next: Next::Without,
            since: 0,
            warm_up: WARM_UP,
            pause: PAUSE,
            elapsed: 0.0,
            cost: 0.0,
            without: Recent::default(),
            trial: Trial::default(),
            run: 0,
            aftermath: 0,
            drafted: None,
        }
    }

    /// How to compute the next token.
    pub fn next(&self) -> Next {
        self.next
    }

    /// What is known.
    pub fn state(&self) -> SwitchState {
        self.state
    }

    /// A token took this long, computed as [`Switch::next`] said. Times that are no numbers are ignored.
    pub fn token(&mut self, millis: f64) {
        self.pass(1, millis);
    }

    /// Tokens from a position on took this long together: one and its drafts. How many were accepted says the position at which the
    /// text goes on, [`Switch::begins`].
    pub fn drafted(&mut self, first: Position, tokens: u32, millis: f64) {
        self.drafted = Some(Drafted { first, tokens, millis });
    }

    /// The text goes on at a position.
    pub fn begins(&mut self, position: Position) {
        let Some(Drafted { first, tokens, millis }) = self.drafted.take() else { return };
        // At other positions another text goes on.
        let accepted = position.0.checked_sub(first.0).filter(|accepted| (1..=tokens).contains(accepted));
        accepted.into_iter().for_each(|accepted| self.pass(accepted, millis));
    }

    /// Another text begins.
    pub fn restart(&mut self) {
        self.drafted = None;
    }

    /// So many tokens of a text took this long together, computed as [`Switch::next`] said: one and its accepted drafts.
    pub fn pass(&mut self, tokens: u32, millis: f64) {
        if !millis.is_finite() || millis < 0.0 {
            return;
        }
        self.count(tokens.max(1), millis);
        self.run += 1;
        self.aftermath = if self.next == Next::Without { self.aftermath.saturating_sub(1) } else { AFTERMATH };
        self.judge();
        let next = self.decide();
        if (next == Next::Without) != (self.next == Next::Without) {
            self.run = 0;
        }
        self.next = next;
    }

    fn count(&mut self, tokens: u32, millis: f64) {
        self.elapsed += millis;
        self.since = self.since.saturating_add(tokens);
        let with = self.next != Next::Without;
        let excess = millis - f64::from(tokens) * self.without.mean;
        if with || self.aftermath > 0 {
            self.cost = (self.cost + excess).max(0.0);
        } else if self.warm_up > 0 {
            self.warm_up = self.warm_up.saturating_sub(tokens);
        } else {
            self.without.add(millis / f64::from(tokens));
            if self.trial.with.passes > 0 {
                self.trial.without.add(tokens, millis);
            }
        }
        if with {
            self.trial.with.add(tokens, millis);
            self.trial.excess += excess;
        }
    }

    fn judge(&mut self) {
        let too_much = self.cost > SHARE * self.elapsed;
        let trial_ends = self.since >= WARM_UP + FIRST + TRIAL;
        let evidence = if trial_ends { EVIDENCE / 2 } else { EVIDENCE };
        match self.state {
            SwitchState::Trying if self.trial.pays(evidence) && !too_much => self.enter(SwitchState::On),
            SwitchState::Trying if trial_ends || (too_much && self.trial.with.passes > 0) => {
                self.enter(SwitchState::Off);
            }
            SwitchState::On if too_much => self.enter(SwitchState::Off),
            SwitchState::Off if self.since >= self.pause => {
                self.pause = (2 * self.pause).min(LONGEST_PAUSE);
                self.trial = Trial::default();
                self.enter(SwitchState::Trying);
            }
            _ => {}
        }
    }

    fn enter(&mut self, state: SwitchState) {
        self.state = state;
        self.since = 0;
    }

    fn decide(&self) -> Next {
        let (token, with, passes) = (self.without.mean, self.next != Next::Without, self.run);
        match self.state {
            SwitchState::Off => Next::Without,
            SwitchState::On => {
                let goes_on = if with { passes < CHECK_AFTER } else { passes >= AFTERMATH + RUN };
                if goes_on { Next::With(BUS_SHARE * token) } else { Next::Without }
            }
            SwitchState::Trying => {
                let in_turn = if with { passes < RUN } else { passes >= AFTERMATH + RUN };
                let affordable = self.cost + self.trial.expected(token) <= SHARE * self.elapsed;
                let go = in_turn && affordable && self.without.count >= FIRST;
                if go { Next::With(BUS_SHARE * token) } else { Next::Without }
            }
        }
    }
}

#[cfg(test)]
mod tests;
