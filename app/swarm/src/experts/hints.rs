//! Guesses for holders that load experts on demand: which experts will probably be called (od-moe.txt 3.1, 3.2). While a
//! block is computed, those of later blocks load. Hints go out only while they make tokens faster, and change no result.

use std::collections::BTreeMap;

use potluck_plan::{
    BlockIndex, ConversationId, ExpertHolder, ExpertId, KernelClass, Millis, PeerId, Plan, Position, RemoteExperts,
    Route,
};
use potluck_predict::{GivenLast, KnownRecall, Next, Predictor, PredictorKind, Switch, TraceShape};

use crate::HintOptions;
use crate::limits::MAX_HINTS;

/// The seed of guesses that are wrong on purpose.
const SEED: u64 = 15;

/// Experts that holders will probably be asked for.
pub(crate) type Hinted = Vec<(PeerId, Vec<(BlockIndex, ExpertId)>)>;

/// Watches what routers choose on this device, and says what comes next.
#[derive(Default)]
pub(crate) struct Hints(Option<Watched>);

struct Watched {
    predictor: Box<dyn Predictor>,
    /// `None`: hints go out whether they pay or not.
    switch: Option<Switch>,
    used: usize,
    /// The conversation whose tokens follow each other.
    conversation: Option<ConversationId>,
    /// Blocks of a text that were hinted, counted over all its tokens from its beginning.
    hinted: u64,
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
        let watched = self.0.get_or_insert_with(|| Watched::new(plan, options, route.experts.len()));
        for (row, route) in rows.iter().zip(routes) {
            let chosen: Vec<ExpertId> = route.experts.iter().map(|(expert, _)| *expert).collect();
            watched.observe(*row, (remote, at), &chosen, now);
        }
        let until = watched.until(*position, at, remote.len(), options.lead);
        watched.hint(plan, remote, until)
    }

    /// Another text, or several at once.
    fn restart(&mut self) {
        if let Some(watched) = &mut self.0 {
            watched.restart();
        }
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
        let switch = (!options.always).then(Switch::new);
        Self { predictor, switch, used, conversation: None, hinted: 0, began: None }
    }

    fn restart(&mut self) {
        self.predictor.restart();
        (self.conversation, self.hinted, self.began) = (None, 0, None);
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

    /// Tells holders with slots what is theirs of the blocks up to one.
    fn hint(&mut self, plan: &Plan, remote: &[RemoteExperts], until: u64) -> Hinted {
        let mut guesses: BTreeMap<PeerId, Vec<(BlockIndex, ExpertId)>> = BTreeMap::new();
        for ahead in self.hinted..until {
            let (position, at) = (ahead / remote.len() as u64, ahead % remote.len() as u64);
            let RemoteExperts { block, holders } = &remote[at as usize];
            let predicted = self.predictor.predict(Position(position as u32), *block);
            for guess in predicted.into_iter().take(self.used) {
                if let Some(ExpertHolder::Peer(peer)) =
                    holders.get(usize::from(guess.expert.0)).and_then(|holders| holders.first())
                    && plan.holder_pool(*peer).is_some()
                {
                    guesses.entry(*peer).or_default().push((*block, guess.expert));
                }
            }
        }
        self.hinted = self.hinted.max(until);
        let mut hinted: Hinted = guesses.into_iter().collect();
        hinted.iter_mut().for_each(|(_, experts)| experts.truncate(MAX_HINTS));
        hinted
    }
}

#[cfg(test)]
mod tests;
