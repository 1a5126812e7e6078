//! Guesses for holders that load experts on demand: which experts will probably be called (od-moe.txt 3.1, 3.2). While a
//! block is computed, those of later blocks load. Hints go out only while they make tokens faster, and change no result.

mod watched;

use std::collections::BTreeMap;

use potluck_plan::{
    BlockIndex, ConversationId, ExpertHolder, ExpertId, ExpertRoute, KernelClass, Millis, PeerId, Plan, Position,
    RemoteExperts,
};
use potluck_predict::{
    ForesightReport, Guessing, Next, Predictor, PredictorKind, Published, ShadowWord, Switch, SwitchState,
};

use crate::HintOptions;
use crate::limits::MAX_HINTS;

use watched::Watched;

/// Experts that holders will probably be asked for.
pub(crate) type Hinted = Vec<(PeerId, Vec<(BlockIndex, ExpertId)>)>;

/// What a block's router has chosen for a batch.
#[derive(Clone, Copy)]
pub(crate) struct RoutedBatch<'a> {
    pub block: BlockIndex,
    pub class: KernelClass,
    /// The batch's tokens. Empty: it does not say what comes next.
    pub rows: &'a [(ConversationId, Position)],
    /// The experts of each.
    pub routes: &'a [ExpertRoute],
}

/// Watches what routers choose on this device, and says what comes next.
#[derive(Default)]
pub(crate) struct Hints {
    watched: Option<Watched>,
    shadow: Shadow,
    /// What the driver was told last of whether a shadow is wanted.
    announced: Option<bool>,
}

/// What a shadow has said of the conversation that it follows.
#[derive(Default)]
struct Shadow {
    conversation: Option<ConversationId>,
    said: Published,
}

impl Hints {
    /// A router has chosen for a batch. What will be needed some blocks later, if it is time to say so. Tokens that do not
    /// follow each other are not watched.
    pub fn routed(&mut self, plan: &Plan, options: &HintOptions, batch: RoutedBatch<'_>, now: Millis) -> Hinted {
        let RoutedBatch { block, class, rows, routes } = batch;
        let follow = |pair: &[(ConversationId, Position)]| {
            pair[0].0 == pair[1].0 && pair[0].1.0.checked_add(1) == Some(pair[1].1.0)
        };
        let text = rows.first().filter(|_| rows.windows(2).all(follow)).map(|(conversation, _)| *conversation);
        let (Some(conversation), Some(route), KernelClass::Decode) = (text, routes.last(), class) else {
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
        let chosen = rows.iter().zip(routes).map(|((_, position), route)| (*position, experts_of(route)));
        let rows: Vec<(Position, Vec<ExpertId>)> = chosen.collect();
        let begins = watched.routed(conversation, remote, at, &rows, now);
        if let Some((first, _)) = rows.first().filter(|_| begins) {
            self.shadow.said.rewind(*first);
        }
        for (position, chosen) in &rows {
            self.shadow.observe(conversation, *position, block, chosen);
        }
        watched.hint(plan, remote, options.lead, &self.shadow)
    }

    /// A shadow has said something. Its word counts from when a block is hinted, and later too as long as that is still to come.
    pub fn foreseen(
        &mut self,
        plan: &Plan,
        options: &HintOptions,
        conversation: ConversationId,
        word: &ShadowWord,
    ) -> Hinted {
        self.shadow.hear(conversation, word);
        let (ShadowWord::Chose(position, block, experts), PredictorKind::Shadow) = (word, options.predictor) else {
            return Vec::new();
        };
        let stage = plan.stages.iter().find(|stage| stage.remote_experts(*block).is_some());
        let (Some(stage), Some(watched)) = (stage, &mut self.watched) else { return Vec::new() };
        if watched.conversation() != Some(conversation) {
            return Vec::new();
        }
        watched.late(plan, &stage.remote, *position, *block, experts)
    }

    /// Whether a shadow is wanted from now on, if that has changed.
    pub fn take_wanted(&mut self, options: &HintOptions) -> Option<bool> {
        let watched = self.watched.as_ref().filter(|_| options.shadow)?;
        let wanted = watched.switch.as_ref().is_none_or(|switch| switch.next() != Next::Without);
        (self.announced.replace(wanted) != Some(wanted)).then_some(wanted)
    }

    /// What came of the hints so far; none before the first token.
    pub fn report(&self) -> Option<ForesightReport> {
        let watched = self.watched.as_ref()?;
        let (used, right) = watched.judged;
        let guessing = match watched.switch.as_ref().map(Switch::state) {
            None => Guessing::Always,
            Some(SwitchState::Trying) => Guessing::Trying,
            Some(SwitchState::On) => Guessing::On,
            Some(SwitchState::Off) => Guessing::Off,
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

    fn observe(&mut self, conversation: ConversationId, position: Position, block: BlockIndex, chosen: &[ExpertId]) {
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

fn experts_of(route: &ExpertRoute) -> Vec<ExpertId> {
    route.experts.iter().map(|(expert, _)| *expert).collect()
}

/// What each holder with slots is told: the experts for which it is asked first.
fn to_holders(plan: &Plan, guesses: Vec<(&RemoteExperts, ExpertId)>) -> Hinted {
    let mut by_holder: BTreeMap<PeerId, Vec<(BlockIndex, ExpertId)>> = BTreeMap::new();
    for (of, expert) in guesses {
        if let Some(ExpertHolder::Peer(peer)) =
            of.holders.get(usize::from(expert.0)).and_then(|holders| holders.first())
            && plan.holder_pool(*peer).is_some()
        {
            let known = by_holder.entry(*peer).or_default();
            // Tokens that pass together often use the same experts.
            if !known.contains(&(of.block, expert)) {
                known.push((of.block, expert));
            }
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
