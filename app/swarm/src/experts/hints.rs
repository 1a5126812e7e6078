//! Guesses for holders that load experts on demand: which experts will probably be called (od-moe.txt 3.1, 3.2). While a
//! block is computed, those of later blocks load. Hints go out only while they make tokens faster, and change no result.

use std::collections::BTreeMap;

use potluck_plan::{
    BlockIndex, ConversationId, ExpertHolder, ExpertId, KernelClass, Millis, PeerId, Plan, Position, RemoteExperts,
    Route,
};
use potluck_predict::{
    ForesightReport, GivenLast, Guessing, KnownRecall, Next, Predictor, PredictorKind, Published, ShadowWord, Switch,
    TraceShape, Verdict,
};

use crate::HintOptions;
use crate::limits::MAX_HINTS;

/// The seed of guesses that are wrong on purpose.
const SEED: u64 = 15;

/// Experts that holders will probably be asked for.
pub(crate) type Hinted = Vec<(PeerId, Vec<(BlockIndex, ExpertId)>)>;

/// Watches what routers choose on this device, and says what comes next.
#[derive(Default)]
pub(crate) struct Hints {
    watched: Option<Watched>,
    shadow: Shadow,
    /// What the driver was told last of whether a shadow is wanted.
    told: Option<bool>,
}

/// What a shadow has said of the conversation that it follows.
#[derive(Default)]
struct Shadow {
    conversation: Option<ConversationId>,
    said: Published,
}

struct Watched {
    kind: PredictorKind,
    predictor: Box<dyn Predictor>,
    /// `None`: hints go out whether they pay or not.
    switch: Option<Switch>,
    used: usize,
    /// The conversation whose tokens follow each other.
    conversation: Option<ConversationId>,
    /// The block that was routed last, counted over all tokens of the text from its beginning.
    here: u64,
    /// Blocks of the text that were hinted, counted likewise.
    hinted: u64,
    /// The experts that were named in blocks to come, by block of the text.
    named: BTreeMap<u64, Vec<ExpertId>>,
    /// Experts that tokens used in blocks that were hinted, and those of them that were named.
    judged: (u64, u64),
    /// When the token's first choice came.
    began: Option<Millis>,
}

impl Hints {
    /// A router has chosen for a batch. What will be needed some blocks later, if it is time to say so. Only single
    /// tokens are watched, for measurements also those of a draft: tokens of several conversations do not follow each other.
    pub fn routed(
        &mut self,
        (plan, options): (&Plan, &HintOptions),
        (block, class): (BlockIndex, KernelClass),
        rows: &[(ConversationId, Position)],
        routes: &[Route],
        now: Millis,
    ) -> Hinted {
        let is_one = rows.iter().all(|(conversation, _)| rows.first().is_some_and(|(first, _)| first == conversation));
        let most = if options.always && is_one { usize::MAX } else { 1 };
        let (Some((_, position)), Some(route), KernelClass::Decode, true) =
            (rows.last(), routes.last(), class, rows.len() <= most)
        else {
            self.restart();
            return Vec::new();
        };
        if plan.pools.is_empty() || route.experts.is_empty() || options.predictor == PredictorKind::None {
            return Vec::new();
        }
        let stage = plan.stages.iter().find(|stage| stage.remote_experts(block).is_some());
        let Some(remote) = stage.map(|stage| stage.remote.as_slice()) else { return Vec::new() };
        let Some(at) = remote.iter().position(|remote| remote.block == block) else { return Vec::new() };
        let watched = self.watched.get_or_insert_with(|| Watched::new(plan, options, route.experts.len()));
        for (row, route) in rows.iter().zip(routes) {
            let chosen: Vec<ExpertId> = route.experts.iter().map(|(expert, _)| *expert).collect();
            watched.observe(*row, (remote, at), &chosen, now);
            self.shadow.observe(*row, block, &chosen);
        }
        let until = watched.until(*position, at, remote.len(), options.lead);
        watched.hint(plan, remote, until, &self.shadow)
    }

    /// A shadow has said something. Its word counts from when a block is hinted, and later too as long as that is still to come.
    pub fn foreseen(
        &mut self,
        (plan, options): (&Plan, &HintOptions),
        conversation: ConversationId,
        word: &ShadowWord,
    ) -> Hinted {
        self.shadow.hear(conversation, word);
        let (ShadowWord::Chose(position, block, experts), PredictorKind::Shadow) = (word, options.predictor) else {
            return Vec::new();
        };
        let stage = plan.stages.iter().find(|stage| stage.remote_experts(*block).is_some());
        let (Some(stage), Some(watched)) = (stage, &mut self.watched) else { return Vec::new() };
        if watched.conversation != Some(conversation) {
            return Vec::new();
        }
        watched.late(plan, &stage.remote, (*position, *block), experts)
    }

    /// Whether a shadow is wanted from now on, if that has changed.
    pub fn take_wanted(&mut self, options: &HintOptions) -> Option<bool> {
        let watched = self.watched.as_ref().filter(|_| options.shadow)?;
        let wanted = watched.switch.as_ref().is_none_or(|switch| switch.next() != Next::Without);
        (self.told.replace(wanted) != Some(wanted)).then_some(wanted)
    }

    /// What came of the hints so far; none before the first token.
    pub fn report(&self) -> Option<ForesightReport> {
        let watched = self.watched.as_ref()?;
        let (used, right) = watched.judged;
        let guessing = match watched.switch.as_ref().map(Switch::verdict) {
            None => Guessing::Always,
            Some(Verdict::Trying) => Guessing::Trying,
            Some(Verdict::On) => Guessing::On,
            Some(Verdict::Off) => Guessing::Off,
        };
        let recall = (used > 0).then(|| right as f64 / used as f64);
        let report = ForesightReport { predictor: watched.kind, guessing, used, right, recall, ..Default::default() };
        Some(self.shadow.said.recall().in_report(report))
    }

    /// Another text, or several at once.
    fn restart(&mut self) {
        if let Some(watched) = &mut self.watched {
            watched.restart();
        }
    }
}

impl Shadow {
    fn hear(&mut self, conversation: ConversationId, word: &ShadowWord) {
        if self.conversation != Some(conversation) {
            if !matches!(word, ShadowWord::Begins(_)) {
                return;
            }
            self.conversation = Some(conversation);
            self.said.restart();
        }
        self.said.hear(word.clone());
    }

    fn observe(
        &mut self,
        (conversation, position): (ConversationId, Position),
        block: BlockIndex,
        chosen: &[ExpertId],
    ) {
        if self.conversation == Some(conversation) {
            self.said.observe(position, block, chosen);
        }
    }

    /// What it has said of a token of this conversation; nothing if it is late or gone.
    fn predict(&self, conversation: Option<ConversationId>, position: Position, block: BlockIndex) -> Vec<ExpertId> {
        if conversation.is_none() || self.conversation != conversation {
            return Vec::new();
        }
        self.said.predict(position, block).into_iter().map(|guess| guess.expert).collect()
    }
}

impl Watched {
    fn new(plan: &Plan, options: &HintOptions, used: usize) -> Self {
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
            conversation: None,
            here: 0,
            hinted: 0,
            named: BTreeMap::new(),
            judged: (0, 0),
            began: None,
        }
    }

    fn restart(&mut self) {
        self.predictor.restart();
        (self.conversation, self.here, self.hinted, self.began) = (None, 0, 0, None);
        self.named.clear();
    }

    fn observe(
        &mut self,
        (conversation, position): (ConversationId, Position),
        (remote, at): (&[RemoteExperts], usize),
        chosen: &[ExpertId],
        now: Millis,
    ) {
        if self.conversation.is_some_and(|known| known != conversation) {
            self.restart();
        }
        self.conversation = Some(conversation);
        if at == 0 {
            self.began = Some(now);
        }
        self.predictor.observe(position, remote[at].block, chosen);
        self.here = u64::from(position.0) * remote.len() as u64 + at as u64;
        if let Some(named) = self.named.get(&self.here) {
            self.judged.0 += chosen.len() as u64;
            self.judged.1 += chosen.iter().filter(|expert| named.contains(expert)).count() as u64;
        }
        self.named.retain(|place, _| *place > self.here);
        if at + 1 == remote.len()
            && at > 0
            && let (Some(since), Some(switch)) = (self.began.take(), &mut self.switch)
        {
            switch.token(now.0 - since.0);
        }
    }

    /// Up to which block hints go out now: those of one group while the next one comes, each message with a group's.
    fn until(&mut self, position: Position, at: usize, blocks: usize, lead: u16) -> u64 {
        let (blocks, at) = (blocks as u64, at as u64);
        // Of a hint it is known from its block whether that has passed: it is less than half of them ahead.
        let lead = u64::from(lead).clamp(1, (blocks / 4).max(1));
        let token = u64::from(position.0) * blocks;
        let here = token + at;
        if !(here + 1..=here + 2 * lead).contains(&self.hinted) {
            self.hinted = here + 1;
        }
        if self.hinted > here + lead {
            return self.hinted;
        }
        match &self.switch {
            Some(switch) if switch.next() == Next::Without => self.hinted,
            // Whether the next token has hints is not known before this one has ended.
            Some(_) if at + 1 < blocks => (here + 2 * lead).min(token + blocks),
            _ => here + 2 * lead,
        }
    }

    /// Tells holders with slots what is theirs of the blocks up to one: what a shadow has said, if it is believed and has.
    fn hint(&mut self, plan: &Plan, remote: &[RemoteExperts], until: u64, shadow: &Shadow) -> Hinted {
        let mut guesses = Vec::new();
        for ahead in self.hinted..until {
            let (position, at) = (ahead / remote.len() as u64, ahead % remote.len() as u64);
            let (position, of) = (Position(position as u32), &remote[at as usize]);
            let mut named = match self.kind {
                PredictorKind::Shadow => shadow.predict(self.conversation, position, of.block),
                _ => Vec::new(),
            };
            if named.is_empty() {
                named = self.predictor.predict(position, of.block).into_iter().map(|guess| guess.expert).collect();
            }
            named.truncate(self.used);
            guesses.extend(named.iter().map(|expert| (of, *expert)));
            self.named.insert(ahead, named);
        }
        self.hinted = self.hinted.max(until);
        to_holders(plan, guesses)
    }

    /// What a shadow says of a block that was hinted without it and is still to come.
    fn late(
        &mut self,
        plan: &Plan,
        remote: &[RemoteExperts],
        (position, block): (Position, BlockIndex),
        experts: &[ExpertId],
    ) -> Hinted {
        let Some(at) = remote.iter().position(|remote| remote.block == block) else { return Vec::new() };
        let place = u64::from(position.0) * remote.len() as u64 + at as u64;
        let is_to_come = place > self.here && place < self.hinted;
        let Some(named) = self.named.get_mut(&place).filter(|_| is_to_come) else { return Vec::new() };
        let new: Vec<ExpertId> =
            experts.iter().take(self.used).filter(|expert| !named.contains(expert)).copied().collect();
        named.extend(&new);
        to_holders(plan, new.into_iter().map(|expert| (&remote[at], expert)).collect())
    }
}

/// What each holder with slots is told: the experts for which it is asked first.
fn to_holders(plan: &Plan, guesses: Vec<(&RemoteExperts, ExpertId)>) -> Hinted {
    let mut by_holder: BTreeMap<PeerId, Vec<(BlockIndex, ExpertId)>> = BTreeMap::new();
    for (of, expert) in guesses {
        if let Some(ExpertHolder::Peer(peer)) =
            of.holders.get(usize::from(expert.0)).and_then(|holders| holders.first())
            && plan.holder_pool(*peer).is_some()
        {
            by_holder.entry(*peer).or_default().push((of.block, expert));
        }
    }
    let mut hinted: Hinted = by_holder.into_iter().collect();
    hinted.iter_mut().for_each(|(_, experts)| experts.truncate(MAX_HINTS));
    hinted
}

#[cfg(test)]
mod shadow_tests;
#[cfg(test)]
mod tests;
