//! A predictor at work: which experts are loaded ahead, how many bytes that may take, and what came of it. Loads and
//! slots are the caller's.

use std::collections::BTreeMap;

use potluck_plan::{BlockIndex, Bytes, ExpertId, Position};
use serde::{Deserialize, Serialize};

use crate::{Next, Predictor, PredictorKind, Switch, SwitchState, TraceShape};

/// Ends of the ranges of [`ForesightReport::recall_by_index`]; the last one has no end.
const RANGES: [u32; 3] = [16, 64, 256];

/// Whether guesses are loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Guessing {
    /// It is being tried.
    #[default]
    Trying,
    /// It pays.
    On,
    /// It did not pay.
    Off,
    /// Whether it pays or not.
    Always,
}

/// What came of guesses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ForesightReport {
    /// Who guesses.
    pub predictor: PredictorKind,
    /// Whether guesses are loaded.
    pub guessing: Guessing,
    /// Experts that decoded tokens with guesses used.
    pub used: u64,
    /// Those of them that were guessed, in a slot already or not.
    pub right: u64,
    /// `right` as a share of `used`; none before the first such token.
    pub recall: Option<f64>,
    /// The same of an answer's tokens up to the 16th, the 64th, the 256th, and later ones.
    pub recall_by_index: [Option<f64>; 4],
    /// Of a shadow: what it chose as its base did, in time or too late, by the same index.
    pub shadow_by_index: [Option<f64>; 4],
    /// The same of all tokens that it followed.
    pub shadow: Option<f64>,
    /// How many tokens these are.
    pub shadow_tokens: u64,
    /// Experts loaded on a guess.
    pub loaded: u64,
    /// Those of them that the token used for which they were loaded.
    pub useful: u64,
}

impl ForesightReport {
    /// The same of the tokens since an earlier report; by index it stays that of all tokens.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let (used, right) = (self.used.saturating_sub(before.used), self.right.saturating_sub(before.right));
        Self {
            used,
            right,
            recall: Share { used, right }.get(),
            loaded: self.loaded.saturating_sub(before.loaded),
            useful: self.useful.saturating_sub(before.useful),
            ..*self
        }
    }
}

/// What was used and how much of it was guessed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Share {
    used: u64,
    right: u64,
}

impl Share {
    fn add(&mut self, used: usize, right: usize) {
        self.used += used as u64;
        self.right += right as u64;
    }

    pub(crate) fn get(self) -> Option<f64> {
        (self.used > 0).then(|| self.right as f64 / self.used as f64)
    }
}

/// Shares by the index of the answer's token.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shares([Share; 4]);

impl Shares {
    /// Counts a block of the token at a position, of an answer that began at `first`.
    pub(crate) fn judge(&mut self, first: Position, at: Position, guessed: &[ExpertId], chosen: &[ExpertId]) {
        let index = at.0.saturating_sub(first.0);
        let range = RANGES.iter().position(|end| index < *end).unwrap_or(RANGES.len());
        self.0[range].add(chosen.len(), among(guessed, chosen));
    }

    pub(crate) fn by_index(&self) -> [Option<f64>; 4] {
        self.0.map(Share::get)
    }

    pub(crate) fn all(&self) -> Share {
        let sum = |all: Share, one: &Share| Share { used: all.used + one.used, right: all.right + one.right };
        self.0.iter().fold(Share::default(), sum)
    }
}

fn among(experts: &[ExpertId], chosen: &[ExpertId]) -> usize {
    chosen.iter().filter(|expert| experts.contains(expert)).count()
}

/// A guess that waits for its token.
#[derive(Clone, Debug, Default)]
struct Asked {
    guessed: Vec<ExpertId>,
    loaded: Vec<ExpertId>,
}

/// Says what to load ahead, and turns itself off where that does not pay.
pub struct Foresight {
    kind: PredictorKind,
    predictor: Box<dyn Predictor>,
    shape: TraceShape,
    /// `None`: guesses are loaded whether they pay or not.
    switch: Option<Switch>,
    /// Most bytes of guesses a token if there is no switch.
    most: Bytes,
    /// Bytes that guesses may still take during this token.
    left: f64,
    /// Bytes and milliseconds of loads so far.
    loads: (f64, f64),
    asked: BTreeMap<(Position, BlockIndex), Asked>,
    /// Where this answer began.
    first: Position,
    shares: Shares,
    /// Bytes loaded on guesses so far.
    bytes: Bytes,
    report: ForesightReport,
}

impl Foresight {
    /// `token`: bytes of the experts that a token uses. Without a switch, guesses may take as many.
    pub fn new(
        kind: PredictorKind,
        predictor: Box<dyn Predictor>,
        shape: TraceShape,
        token: Bytes,
        switch: Option<Switch>,
    ) -> Self {
        Self {
            kind,
            predictor,
            shape,
            switch,
            most: token,
            left: 0.0,
            loads: (0.0, 0.0),
            asked: BTreeMap::new(),
            first: Position(0),
            shares: Shares::default(),
            bytes: Bytes::ZERO,
            report: ForesightReport::default(),
        }
    }

    /// A decoded token begins. What was guessed of it before stays valid.
    pub fn begin(&mut self, position: Position) {
        if let Some(switch) = &mut self.switch {
            switch.begins(position);
        }
        self.asked.retain(|(at, _), _| *at >= position);
        self.left = match (&self.switch, self.loads) {
            (None, _) => self.most.0 as f64,
            (Some(switch), (bytes, millis)) => match switch.next() {
                Next::Without => 0.0,
                // Nothing was loaded yet: how fast that is, a first load says.
                Next::With(_) if millis <= 0.0 => self.most.0 as f64,
                Next::With(bus) => bus * bytes / millis,
            },
        };
    }

    /// Whether guesses are loaded for this token.
    pub fn is_active(&self) -> bool {
        self.left > 0.0
    }

    /// Experts that a token may use in a block, at most as many as it uses, the likeliest first. Empty while guesses are
    /// off. Ask once for each block.
    pub fn guesses(&mut self, position: Position, block: BlockIndex) -> Vec<ExpertId> {
        if !self.is_active() {
            return Vec::new();
        }
        let guesses = self.predictor.predict(position, block);
        let guessed: Vec<ExpertId> =
            guesses.iter().take(usize::from(self.shape.used)).map(|guess| guess.expert).collect();
        self.asked.insert((position, block), Asked { guessed: guessed.clone(), loaded: Vec::new() });
        guessed
    }

    /// Whether it was asked for the guesses of a block.
    pub fn is_asked(&self, position: Position, block: BlockIndex) -> bool {
        self.asked.contains_key(&(position, block))
    }

    /// Takes an expert's bytes from what guesses may still load for this token; false if it is too much.
    pub fn afford(&mut self, expert: Bytes) -> bool {
        let bytes = expert.0 as f64;
        let fits = bytes <= self.left;
        if fits {
            // Never zero: the token stays one with guesses.
            self.left = (self.left - bytes).max(f64::MIN_POSITIVE);
        }
        fits
    }

    /// An expert is to be loaded on a guess.
    pub fn loaded(&mut self, position: Position, block: BlockIndex, expert: ExpertId, bytes: Bytes) {
        self.report.loaded += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        if let Some(asked) = self.asked.get_mut(&(position, block)) {
            asked.loaded.push(expert);
        }
    }

    /// A load was given up before it began.
    pub fn dropped(&mut self, position: Position, block: BlockIndex, expert: ExpertId, bytes: Bytes) {
        self.report.loaded = self.report.loaded.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
        if let Some(asked) = self.asked.get_mut(&(position, block)) {
            asked.loaded.retain(|loaded| *loaded != expert);
        }
    }

    /// A load that was waited for took this long.
    pub fn measured(&mut self, bytes: Bytes, millis: f64) {
        if millis.is_finite() && millis > 0.0 {
            self.loads.0 += bytes.0 as f64;
            self.loads.1 += millis;
        }
    }

    /// What the router chose for a token of an answer.
    pub fn observe(&mut self, position: Position, block: BlockIndex, chosen: &[ExpertId]) {
        if let Some(asked) = self.asked.remove(&(position, block)) {
            self.report.useful += among(&asked.loaded, chosen) as u64;
            self.shares.judge(self.first, position, &asked.guessed, chosen);
        }
        self.predictor.observe(position, block, chosen);
    }

    /// What the router chose for a token of a prompt. The answer begins behind it.
    pub fn observe_prompt(&mut self, position: Position, block: BlockIndex, chosen: &[ExpertId]) {
        if position.0 == 0 && block.0 == 0 {
            self.predictor.restart();
        }
        self.first = Position(position.0.saturating_add(1));
        self.asked.clear();
        self.switch.iter_mut().for_each(Switch::restart);
        self.predictor.observe(position, block, chosen);
    }

    /// Whether [`Foresight::output`] is of use for this token.
    pub fn wants_outputs(&self) -> bool {
        self.is_active() && self.predictor.wants_outputs()
    }

    /// A block's output for a token.
    pub fn output(&mut self, position: Position, block: BlockIndex, hidden: &[f32]) {
        self.predictor.output(position, block, hidden);
    }

    /// A decoded token took this long.
    pub fn token(&mut self, millis: f64) {
        if let Some(switch) = &mut self.switch {
            switch.token(millis);
        }
    }

    /// A decoded token at a position and its drafts took this long together. How many were accepted says the next
    /// [`Foresight::begin`].
    pub fn drafted(&mut self, first: Position, tokens: u32, millis: f64) {
        if let Some(switch) = &mut self.switch {
            switch.drafted(first, tokens, millis);
        }
    }

    /// Whether guesses are loaded.
    pub fn guessing(&self) -> Guessing {
        match self.switch.as_ref().map(Switch::state) {
            None => Guessing::Always,
            Some(SwitchState::Trying) => Guessing::Trying,
            Some(SwitchState::On) => Guessing::On,
            Some(SwitchState::Off) => Guessing::Off,
        }
    }

    /// Bytes loaded on guesses so far.
    pub fn bytes(&self) -> Bytes {
        self.bytes
    }

    /// What came of the guesses so far.
    pub fn report(&self) -> ForesightReport {
        let all = self.shares.all();
        ForesightReport {
            predictor: self.kind,
            guessing: self.guessing(),
            used: all.used,
            right: all.right,
            recall: all.get(),
            recall_by_index: self.shares.by_index(),
            ..self.report
        }
    }
}

#[cfg(test)]
mod tests;
