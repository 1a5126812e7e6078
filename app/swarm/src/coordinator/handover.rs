//! Moves running answers to another plan. Their KV cache is rebuilt there in the background from their token logs,
//! while the active plan goes on answering. Once the new plan is only a few tokens behind, the answers switch to it
//! between two tokens.

use std::collections::{BTreeMap, VecDeque};

use potluck_plan::{ConversationId, LogitBias, Millis, Plan, PlanEpoch, Position, Work};
use potluck_protocol::{Forward, Frame, PassId};

use super::answering::{Answering, Pass};
use super::answers::Answers;
use super::conversations::Bases;
use super::draft::MAX_DRAFTS;
use super::token_log::Chunk;
use crate::event_context::EventContext;

/// Tokens of one chunk of a replay: few, because tokens of answers wait behind it.
const REPLAY_TOKENS: usize = 16;
/// Tokens that may be missing at the switch; they are sent together with the next one. At least what one round trip
/// can add by drafts or multi-step decode, or a replay would never catch up.
const MAX_LAG: usize = MAX_DRAFTS + 1;
const _: () = assert!(MAX_LAG >= Work::MAX_STEPS as usize);
/// Chunks are sent again after this silence.
const STALL_MILLIS: f64 = 10_000.0;

pub(super) struct Handover {
    /// Epoch of the plan that the answers move to.
    pub epoch: PlanEpoch,
    replays: BTreeMap<ConversationId, Replay>,
}

/// The KV cache of one conversation on the new plan, under an id of its own.
pub(super) struct Replay {
    pub id: ConversationId,
    /// Where the stages of the new plan can begin work on it.
    pub bases: Bases,
    /// Tokens sent, to notice when the log changes.
    tokens: Vec<u32>,
    /// Positions that every stage has computed.
    pub computed: usize,
    pub in_flight: VecDeque<Pass>,
    /// The newest chunk.
    pub newest: PassId,
    sent: Millis,
}

impl Handover {
    pub fn new(epoch: PlanEpoch) -> Self {
        Self { epoch, replays: BTreeMap::new() }
    }

    /// Sends the next chunk of a replay, if none is in flight.
    pub fn advance(&mut self, plan: &Plan, answers: &mut Answers, total: usize, cx: &mut EventContext) {
        self.follow(answers, total.saturating_sub(cx.kv_cache.for_checks));
        self.replays.values_mut().for_each(|replay| replay.resend(cx.now));
        if self.replays.values().any(|replay| !replay.in_flight.is_empty()) {
            return;
        }
        let behind = answers.active.iter().find_map(|active| {
            let replay = self.replays.get(&active.conversation.id)?;
            Some((active.conversation.id, replay.next_chunk(active)?))
        });
        let Some((conversation, chunk)) = behind else { return };
        let (pass, live) = (answers.next_pass(), answers.live(None));
        if let Some(replay) = self.replays.get_mut(&conversation) {
            replay.send(chunk, pass, live, plan, cx);
        }
    }

    /// Starts replays of new answers where their KV cache fits twice, and drops those of ended ones.
    fn follow(&mut self, answers: &mut Answers, total: usize) {
        self.replays.retain(|conversation, _| answers.index_of(*conversation).is_some());
        let mut taken: usize = answers.active.iter().map(Answering::max_pages).sum();
        let mut reserved: usize = answers
            .active
            .iter()
            .filter(|active| self.replays.contains_key(&active.conversation.id))
            .map(Answering::max_pages)
            .sum();
        for index in 0..answers.active.len() {
            let active = &answers.active[index];
            let (conversation, max) = (active.conversation.id, active.max_pages());
            if let Some(replay) = self.replays.get_mut(&conversation) {
                replay.keep_to(active.conversation.log.tokens());
            } else if !active.paused && taken + reserved + max <= total {
                reserved += max;
                let id = answers.conversations.fresh_id();
                let bases = answers.active[index].conversation.bases.cleared();
                self.replays.insert(conversation, Replay::new(id, bases));
            }
        }
        taken += reserved;
        let names = self.replays.values().map(|replay| replay.id).collect();
        answers.reserve(names, reserved, total.saturating_sub(taken));
    }

    /// Every answer can go on with the new plan without a wait.
    pub fn is_caught_up(&self, answers: &Answers) -> bool {
        answers.active.iter().filter(|active| !active.paused).all(|active| {
            let replay = self.replays.get(&active.conversation.id);
            replay.is_some_and(|replay| {
                replay.tokens.len() - replay.computed <= MAX_LAG
                    && replay.tokens.len() + MAX_LAG >= active.conversation.log.computed()
            })
        })
    }

    /// A chunk passed all stages of the new plan.
    pub fn completed(&mut self, conversation: ConversationId, pass: PassId) {
        let replay = self.replays.values_mut().find(|replay| replay.id == conversation);
        if let Some(replay) = replay
            && let Some(pass) = replay.in_flight.pop_front_if(|oldest| oldest.id == pass)
        {
            replay.computed = pass.end;
        }
    }

    /// This chunk of a replay is in flight.
    pub fn awaits(&self, conversation: ConversationId, pass: PassId) -> bool {
        let replay = self.replays.values().find(|replay| replay.id == conversation);
        replay.is_some_and(|replay| replay.in_flight.iter().any(|chunk| chunk.id == pass))
    }

    /// A stage lacks the positions from `position` on.
    pub fn rewind(&mut self, conversation: ConversationId, position: usize) {
        if let Some(replay) = self.replays.values_mut().find(|replay| replay.id == conversation) {
            replay.rewind(position);
        }
    }

    /// Switches the answers to their replays.
    pub fn finish(mut self, answers: &mut Answers) {
        answers.moved(|conversation| self.replays.remove(&conversation));
    }
}

impl Replay {
    fn new(id: ConversationId, bases: Bases) -> Self {
        let (tokens, in_flight, newest) = (Vec::new(), VecDeque::new(), PassId::default());
        Self { id, bases, tokens, computed: 0, in_flight, newest, sent: Millis(0.0) }
    }

    /// Positions sent.
    pub fn sent(&self) -> usize {
        self.tokens.len()
    }

    /// Goes back to this position, or to the last one before it where work can begin; never forward, as with answers.
    fn rewind(&mut self, position: usize) {
        let position = self.bases.last(position.min(self.computed));
        self.computed = position;
        self.tokens.truncate(position);
        self.in_flight.clear();
    }

    fn keep_to(&mut self, log: &[u32]) {
        let common = self.tokens.iter().zip(log).take_while(|(a, b)| a == b).count().min(log.len().saturating_sub(1));
        if common < self.tokens.len() {
            self.rewind(common);
        }
    }

    fn resend(&mut self, now: Millis) {
        if !self.in_flight.is_empty() && now.0 - self.sent.0 > STALL_MILLIS {
            self.rewind(self.computed);
        }
    }

    /// The log's last token is left for the switch: its logits are needed then.
    fn next_chunk(&self, active: &Answering) -> Option<Chunk> {
        let log = &active.conversation.log;
        let mut chunk = log.chunk(self.sent(), REPLAY_TOKENS)?;
        chunk.tokens.truncate((log.len() - 1).saturating_sub(chunk.base));
        (!chunk.tokens.is_empty()).then_some(chunk)
    }

    fn send(&mut self, chunk: Chunk, pass: PassId, live: Vec<ConversationId>, plan: &Plan, cx: &mut EventContext) {
        let Some(first) = plan.stages.first() else { return };
        self.tokens.extend(&chunk.tokens);
        self.bases.sent(chunk.base, self.tokens.len(), chunk.class);
        self.in_flight.push_back(Pass::replayed(pass, self.tokens.len(), chunk.tokens.len(), cx.now));
        (self.sent, self.newest) = (cx.now, pass);
        let forward = Forward {
            epoch: plan.epoch,
            stage: first.id,
            pass,
            live,
            conversation: self.id,
            base: Position(chunk.base as u32),
            class: chunk.class,
            count: chunk.tokens.len() as u32,
            tokens: chunk.tokens,
            further_steps: 0,
            sampling: None,
            lm_head: None,
            bias: LogitBias::default(),
            allowed: Vec::new(),
            stage_millis: Vec::new(),
            wire: plan.wire,
            hidden: Vec::new(),
        };
        cx.out.send(first.peer, Frame::Forward(forward));
    }
}
