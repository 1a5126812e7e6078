//! The text whose routers are watched, and what of it was hinted.

use std::collections::BTreeMap;

use potluck_plan::{BlockIndex, ConversationId, ExpertId, Millis, Plan, Position, RemoteExperts};
use potluck_predict::{GivenLast, KnownRecall, Next, Predictor, PredictorKind, Switch, TraceShape};

use super::{Hinted, Shadow, to_holders};
use crate::HintOptions;

/// The seed of guesses that are wrong on purpose.
const SEED: u64 = 15;

pub(super) struct Watched {
    pub kind: PredictorKind,
    predictor: Box<dyn Predictor>,
    /// `None`: hints go out whether they pay or not.
    pub switch: Option<Switch>,
    used: usize,
    /// A shadow on this device proposes drafts while it is wanted.
    has_shadow: bool,
    /// The conversation whose tokens follow each other.
    text: Option<ConversationId>,
    /// The pass that is under way, or was the last.
    pass: Option<Pass>,
    /// The first place of the text that was not hinted. Places are blocks, counted over all passes.
    hinted: u64,
    /// The experts that were named for tokens in blocks to come. A block is meant by its index among those with experts elsewhere.
    named: BTreeMap<(Position, usize), Vec<ExpertId>>,
    /// Experts that tokens used in blocks that were hinted, and those of them that were named.
    pub judged: (u64, u64),
}

/// Tokens of a text that pass the blocks together: one, and drafts after it.
struct Pass {
    /// Passes of this text before it.
    number: u64,
    first: Position,
    last: Position,
    /// The block that was routed last.
    at: usize,
    began: Millis,
}

impl Pass {
    fn rows(&self) -> u32 {
        self.last.0.saturating_sub(self.first.0).saturating_add(1)
    }

    /// A token is still to come to a block.
    fn is_before(&self, position: Position, at: usize) -> bool {
        position > self.last || (position >= self.first && at > self.at)
    }
}

impl Watched {
    pub fn new(plan: &Plan, options: &HintOptions, used: usize) -> Self {
        let remote = || plan.stages.iter().flat_map(|stage| &stage.remote);
        let shape = TraceShape {
            blocks: remote().map(|remote| remote.block.0.saturating_add(1)).max().unwrap_or(0),
            experts: remote().map(|remote| remote.holders.len() as u16).max().unwrap_or(0),
            used: used.min(usize::from(u8::MAX)) as u8,
        };
        let predictor: Box<dyn Predictor> = match options.predictor {
            PredictorKind::Recorded => Box::new(KnownRecall::new(shape, options.recalls.clone(), SEED)),
            _ => Box::new(GivenLast::new(shape)),
        };
        Self {
            kind: options.predictor,
            predictor,
            switch: (!options.always).then(Switch::new),
            used,
            has_shadow: options.shadow,
            text: None,
            pass: None,
            hinted: 0,
            named: BTreeMap::new(),
            judged: (0, 0),
        }
    }

    pub fn conversation(&self) -> Option<ConversationId> {
        self.text
    }

    pub fn restart(&mut self) {
        self.predictor.restart();
        self.switch.iter_mut().for_each(Switch::restart);
        (self.text, self.pass, self.hinted) = (None, None, 0);
        self.named.clear();
    }

    /// The router of a block has chosen for a token and its drafts. True if they have just begun.
    pub fn routed(
        &mut self,
        conversation: ConversationId,
        remote: &[RemoteExperts],
        at: usize,
        rows: &[(Position, Vec<ExpertId>)],
        now: Millis,
    ) -> bool {
        let (Some((first, _)), Some((last, _))) = (rows.first(), rows.last()) else { return false };
        if self.text.is_some_and(|known| known != conversation) {
            self.restart();
        }
        self.text = Some(conversation);
        let same = self.pass.as_ref().is_some_and(|pass| pass.at < at && (pass.first, pass.last) == (*first, *last));
        if !same {
            self.begin(*first, *last, at, now);
        }
        for (position, chosen) in rows {
            self.predictor.observe(*position, remote[at].block, chosen);
            if let Some(named) = self.named.get(&(*position, at)) {
                self.judged.0 += chosen.len() as u64;
                self.judged.1 += chosen.iter().filter(|expert| named.contains(expert)).count() as u64;
            }
        }
        let Some(pass) = &mut self.pass else { return !same };
        pass.at = at;
        self.named.retain(|(position, at), _| pass.is_before(*position, *at));
        if at + 1 == remote.len() && at > 0 {
            let (rows, millis) = (pass.rows(), now.0 - pass.began.0);
            match &mut self.switch {
                Some(switch) if rows == 1 => switch.token(millis),
                // Drafts without a shadow come with the text, not with hints.
                Some(switch) if self.has_shadow => switch.drafted(*first, rows, millis),
                _ => {}
            }
        }
        !same
    }

    fn begin(&mut self, first: Position, last: Position, at: usize, now: Millis) {
        let before = self.pass.take();
        let number = before.as_ref().map_or(0, |before| before.number + 1);
        if before.as_ref().is_some_and(|before| first.0 != before.last.0.saturating_add(1)) {
            // Not all drafts were accepted: what was hinted was of other tokens.
            self.hinted = 0;
            self.named.clear();
        }
        // Holders forget what was hinted for more tokens than have come.
        self.named.retain(|(position, _), _| *position <= last);
        self.pass = Some(Pass { number, first, last, at, began: now });
        self.switch.iter_mut().for_each(|switch| switch.begins(first));
    }

    /// Up to which place hints go out now: those of one group of blocks while the next one comes, each message with a group's.
    fn until(&mut self, here: u64, at: usize, blocks: usize, lead: u16) -> u64 {
        let (at, blocks) = (at as u64, blocks as u64);
        // A group is less than half of the blocks, so that a block never stands in two of them.
        let lead = u64::from(lead).clamp(1, (blocks / 4).max(1));
        if !(here + 1..=here + 2 * lead).contains(&self.hinted) {
            self.hinted = here + 1;
        }
        if self.hinted > here + lead {
            return self.hinted;
        }
        match &self.switch {
            Some(switch) if switch.next() == Next::Without => self.hinted,
            // Whether the next pass has hints is not known before this one has ended.
            Some(_) if at + 1 < blocks => (here + 2 * lead).min(here - at + blocks),
            _ => here + 2 * lead,
        }
    }

    /// Tells holders with slots what is theirs of the next blocks, if it is time: what a shadow has said, if it is believed and
    /// has.
    pub fn hint(&mut self, plan: &Plan, remote: &[RemoteExperts], lead: u16, shadow: &Shadow) -> Hinted {
        let (blocks, Some(pass)) = (remote.len() as u64, &self.pass) else { return Vec::new() };
        let (number, first, last, rows) = (pass.number, pass.first, pass.last, pass.rows());
        let here = number * blocks + pass.at as u64;
        let until = self.until(here, pass.at, remote.len(), lead);
        let mut guesses = Vec::new();
        for place in here + 1..until {
            let at = (place % blocks) as usize;
            // The next pass has about as many drafts, as far as the shadow knows them already.
            let tokens = if place / blocks == number {
                first.0..=last.0
            } else {
                last.0.saturating_add(1)..=last.0.saturating_add(rows)
            };
            for position in tokens.clone().map(Position) {
                // The further tokens of a wider pass were not hinted yet.
                if place < self.hinted && (place / blocks != number || self.named.contains_key(&(position, at))) {
                    continue;
                }
                let is_certain = place / blocks == number || position.0 == *tokens.start();
                let named = self.guess(shadow, position, remote[at].block, is_certain);
                guesses.extend(named.iter().map(|expert| (&remote[at], *expert)));
                if is_certain || !named.is_empty() {
                    self.named.insert((position, at), named);
                }
            }
        }
        self.hinted = self.hinted.max(until);
        to_holders(plan, guesses)
    }

    /// What a token will probably use: what a shadow says, or else what the next predictor in line does, if the token will
    /// come.
    fn guess(&self, shadow: &Shadow, position: Position, block: BlockIndex, is_certain: bool) -> Vec<ExpertId> {
        let mut named = match self.kind {
            PredictorKind::Shadow => shadow.predict(self.text, position, block),
            _ => Vec::new(),
        };
        if named.is_empty() && is_certain {
            named = self.predictor.predict(position, block).into_iter().map(|guess| guess.expert).collect();
        }
        named.truncate(self.used);
        named
    }

    /// What a shadow says of a block that was hinted without it and is still to come.
    pub fn late(
        &mut self,
        plan: &Plan,
        remote: &[RemoteExperts],
        position: Position,
        block: BlockIndex,
        experts: &[ExpertId],
    ) -> Hinted {
        let Some(at) = remote.iter().position(|remote| remote.block == block) else { return Vec::new() };
        // Those that have passed are not there any more.
        let Some(named) = self.named.get_mut(&(position, at)) else { return Vec::new() };
        let new: Vec<ExpertId> =
            experts.iter().take(self.used).filter(|expert| !named.contains(expert)).copied().collect();
        named.extend(&new);
        to_holders(plan, new.into_iter().map(|expert| (&remote[at], expert)).collect())
    }
}
