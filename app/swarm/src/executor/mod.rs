//! A worker's side of a committed plan: tokens in, engine work out, results on to the next stage. One executor runs
//! every plan.

mod experts;
mod freeing;
mod kept_rows;
mod kv_caches;
mod own_chunks;
mod piece;
mod queue;
mod rewinds;
mod words;

use std::borrow::Cow;
use std::collections::BTreeMap;

use potluck_plan::{
    BlockIndex, BlockRange, ConversationId, ExpertId, Input, KernelClass, Outcome, PeerId, Plan, PlanEpoch, Position,
    Stage, StageId, StateHistory, Task, Then, Ticket, WireType, Work,
};
use potluck_protocol::{
    Forward, Frame, LmHeadOutput, LogitsResult, PassId, ResidencyChange, RowHashes, RowRange, Rows, RowsRequest,
    StageFault, StageFaultKind,
};

use crate::Action;
use crate::event_context::EventContext;
use crate::experts::{Dispatch, DispatchSettings, Hints};
use crate::kv_pages;
use crate::limits;
use crate::mutation::{Mutation, has_mutation};
use crate::residency;

pub(crate) use experts::no_plan;
use kept_rows::KeptRows;
use kv_caches::KvCaches;
use own_chunks::OwnChunks;
use queue::{Job, StageQueue};
use rewinds::Rewinds;
use words::Words;

/// What a ticket is for.
enum Purpose {
    /// Tokens of a stage, from one or several conversations.
    Batch(Vec<Job>),
    /// The own share of a block's experts, by the dispatch's call.
    OwnExperts(u64),
    /// A call of a stage elsewhere.
    Call(ReceivedCall),
}

/// A call of a stage elsewhere, to which the answer belongs.
#[derive(Clone, Copy)]
struct ReceivedCall {
    caller: PeerId,
    call: u64,
    wire: WireType,
}

/// Why a chunk comes too late.
enum Late {
    /// Its conversation is over, or it has arrived before, as far as the host says.
    Over,
    /// Its sender has sent a newer one of the conversation, or said with one that is not older that the conversation is over.
    Contradicts,
}

/// What an executor has to know besides its plan.
pub(crate) struct ExecutorSetup {
    pub me: PeerId,
    pub coordinator: PeerId,
    /// Hidden width of the model.
    pub width: usize,
    /// The model has recurrent state.
    pub recurrent: bool,
    pub settings: DispatchSettings,
    /// Above every ticket used before, so that late results of an older plan are recognised.
    pub first_ticket: u64,
}

pub(crate) struct Executor {
    me: PeerId,
    coordinator: PeerId,
    plan: Plan,
    /// Hidden width of the model.
    width: usize,
    next_ticket: u64,
    tickets: BTreeMap<Ticket, Purpose>,
    queues: BTreeMap<StageId, StageQueue>,
    /// Jobs that wait for experts, by what the dispatch gathers for them.
    waiting: BTreeMap<u64, Vec<Job>>,
    dispatch: Dispatch,
    hints: Hints,
    /// Newest version of where experts lie that was heard of.
    residency: u32,
    /// The model has recurrent state, with these histories by stage and conversation.
    recurrent: bool,
    states: BTreeMap<(StageId, ConversationId), StateHistory>,
    /// Positions of KV cache by stage and conversation.
    lengths: BTreeMap<(StageId, ConversationId), u32>,
    /// The newest chunk of each conversation that arrived at each stage. They come in order.
    arrived: BTreeMap<(StageId, ConversationId), PassId>,
    /// What the host has sent through this device, if that has the first stage and a later one.
    own_chunks: OwnChunks,
    /// Where stages of this device have gone back.
    rewinds: Rewinds,
    /// What the host (`None`) and the stages before ours have said of passes and live conversations.
    words: BTreeMap<Option<PeerId>, Words>,
    /// The newest pass of each conversation that is not over, also where its KV cache had to make room.
    newest: BTreeMap<ConversationId, PassId>,
    /// The KV cache that they have here.
    kv_caches: KvCaches,
    /// What the host may want to check; none where it checks nothing.
    kept: Option<KeptRows>,
    /// Moving average of engine milliseconds for one decoded token.
    pub decode_millis: f64,
}

impl Executor {
    /// Nothing has arrived yet.
    pub fn new(setup: ExecutorSetup, plan: Plan) -> Self {
        let ExecutorSetup { me, coordinator, width, recurrent, settings, first_ticket } = setup;
        let is_checked = settings.spot_checks > 0.0 && is_checked(&plan, coordinator);
        let kept = is_checked.then(|| KeptRows::new(width));
        let kv_caches = KvCaches::new(kv_pages::least_pages(recurrent, plan.context as usize));
        Self {
            me,
            coordinator,
            plan,
            width,
            next_ticket: first_ticket,
            tickets: BTreeMap::new(),
            queues: BTreeMap::new(),
            waiting: BTreeMap::new(),
            dispatch: Dispatch::new(settings, first_ticket),
            hints: Hints::default(),
            residency: 0,
            recurrent,
            states: BTreeMap::new(),
            lengths: BTreeMap::new(),
            arrived: BTreeMap::new(),
            own_chunks: OwnChunks::default(),
            rewinds: Rewinds::default(),
            words: BTreeMap::new(),
            newest: BTreeMap::new(),
            kv_caches,
            kept,
            decode_millis: 0.0,
        }
    }

    pub fn epoch(&self) -> PlanEpoch {
        self.plan.epoch
    }

    /// Experts of the plan lie elsewhere from now on. `changes` are all since the plan was made; older versions and what
    /// was done before change nothing.
    /// True if they did.
    pub fn move_experts(&mut self, version: u32, changes: &[ResidencyChange], cx: &mut EventContext) -> bool {
        let is_new = version > self.residency;
        if is_new {
            self.residency = version;
            changes.iter().for_each(|change| residency::apply(&mut self.plan, *change));
            self.check_timers(cx);
        }
        is_new
    }

    /// An expert is on this device's GPU from now on.
    pub fn add_own(&mut self, block: BlockIndex, expert: ExpertId) {
        self.plan.add_holder(block, expert, self.me);
    }

    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Conversations that are not over.
    #[cfg(test)]
    pub fn conversations(&self) -> std::collections::BTreeSet<ConversationId> {
        self.newest.keys().copied().collect()
    }

    /// Tokens for one of our stages, if they can be computed. Nothing else may follow from a chunk that cannot: any stage sends any
    /// numbers. The sender of one that no stage would send is named.
    pub fn admit(&mut self, from: PeerId, forward: Forward, cx: &mut EventContext) -> Option<Forward> {
        if self.plan.stage(forward.stage).is_none_or(|(_, stage)| stage.peer != self.me) {
            return None;
        }
        if !self.is_input(&forward) {
            // Whether or not anybody waits for this chunk.
            self.report(forward.stage, forward.conversation, None, StageFaultKind::BadResult(from), cx);
            return None;
        }
        let forward = self.as_the_host_sent_it(forward)?;
        self.fits(from, &forward, cx).then_some(forward)
    }

    /// True if a chunk comes in time, and goes on where its stage is.
    fn fits(&mut self, from: PeerId, forward: &Forward, cx: &mut EventContext) -> bool {
        let (stage, conversation, pass) = (forward.stage, forward.conversation, Some(forward.pass));
        match self.lateness(from, forward) {
            Some(Late::Over) => return false,
            Some(Late::Contradicts) => {
                self.report(stage, conversation, pass, StageFaultKind::BadResult(from), cx);
                return false;
            }
            None => {}
        }
        if self.queues.get(&stage).is_some_and(|queue| queue.len() >= limits::MAX_CHUNKS)
            || self.rewinds.is_stale(forward)
        {
            // More than anybody waits for, or nobody does: a chunk that is missed is asked for as a gap.
            return false;
        }
        let key = (stage, conversation);
        let length = self.lengths.get(&key).copied().unwrap_or(0);
        if forward.count == 0 || forward.base.0 > length {
            self.report(stage, conversation, pass, StageFaultKind::Gap(Position(length)), cx);
            return false;
        }
        if self.recurrent && !has_mutation(Mutation::AnyBase) {
            let states = self.states.entry(key).or_default();
            if states.advance(forward.base.0, end(forward), forward.class).is_none() {
                let gap = StageFaultKind::Gap(Position(states.base(forward.base.0)));
                self.report(stage, conversation, pass, gap, cx);
                return false;
            }
        }
        true
    }

    /// Takes tokens that were admitted. They wait until [`Executor::start`].
    pub fn accept(&mut self, mut forward: Forward, cx: &mut EventContext) {
        let Some((_, stage)) = self.plan.stage(forward.stage) else { return };
        let cursor = stage.blocks.start;
        let key = (forward.stage, forward.conversation);
        self.note_own_chunk(&forward);
        if self.goes_back(&forward) {
            self.go_back(&forward, cx);
        }
        self.lengths.insert(key, end(&forward));
        self.arrived.insert(key, forward.pass);
        self.rewinds.arrived(key, forward.pass);
        if let Some(kept) = &mut self.kept {
            kept.arrived(key, forward.base.0 as usize, &forward.hidden);
        }
        let newest = self.newest.entry(forward.conversation).or_default();
        *newest = forward.pass.max(*newest);
        let input = if self.plan.embeds(forward.stage) {
            Input::Tokens(forward.tokens.clone())
        } else {
            Input::Hidden(std::mem::take(&mut forward.hidden))
        };
        let on_engine = self.kv_caches.write(forward.stage, forward.conversation, end(&forward), &mut cx.kv_cache);
        self.queue(forward.stage).arrive(Job::new(forward, on_engine, cursor), input);
    }

    /// Tokens for one of our stages, where there is no other plan.
    #[cfg(test)]
    pub fn forward(&mut self, from: PeerId, forward: Forward, cx: &mut EventContext) {
        if let Some(forward) = self.admit(from, forward, cx) {
            self.hear_live(self.author(from, &forward), &forward, cx);
            self.accept(forward, cx);
        }
    }

    /// Whether a chunk comes too late, by what the host said, or by what its sender did.
    fn lateness(&self, from: PeerId, forward: &Forward) -> Option<Late> {
        let is_over_for = |author: Option<PeerId>| {
            self.words.get(&author).is_some_and(|words| words.exclude(forward.conversation, forward.pass))
        };
        let has_arrived =
            || self.arrived.get(&(forward.stage, forward.conversation)).is_some_and(|pass| forward.pass <= *pass);
        match () {
            () if has_mutation(Mutation::StaleEpoch) => None,
            () if is_over_for(None) => Some(Late::Over),
            () if !has_arrived() && !is_over_for(Some(from)) => None,
            () if from == self.coordinator || self.author(from, forward).is_none() => Some(Late::Over),
            () => Some(Late::Contradicts),
        }
    }

    /// Whose word the pass and the live conversations of a chunk are: the host's (`None`), which makes them, or a stage's. The host's
    /// device hands on what it got like any other, unless it has the first stage, too.
    pub fn author(&self, from: PeerId, forward: &Forward) -> Option<PeerId> {
        let begins_there = || self.plan.stages.first().is_some_and(|first| first.peer == self.coordinator);
        let is_hosts = from == self.coordinator && (self.plan.embeds(forward.stage) || begins_there());
        (!is_hosts && !has_mutation(Mutation::StagesLikeHosts)).then_some(from)
    }

    /// True if the chunk carries what the stage computes with: the first stage a token id for each token, every other
    /// one as many finite hidden vectors and no id.
    fn is_input(&self, forward: &Forward) -> bool {
        let count = forward.count as usize;
        if !limits::is_chunk(forward, &self.plan) {
            return false;
        }
        if self.plan.embeds(forward.stage) {
            forward.tokens.len() == count
        } else {
            let is_whole = |len: usize| are_numbers(&forward.hidden, len);
            forward.tokens.is_empty() && count.checked_mul(self.width).is_some_and(is_whole)
        }
    }

    fn queue(&mut self, stage: StageId) -> &mut StageQueue {
        self.queues.entry(stage).or_default()
    }

    /// Submits what may start. Called when everything that arrived together is queued, so that tokens that meet share
    /// a batch.
    pub fn start(&mut self, cx: &mut EventContext) {
        let stages: Vec<StageId> = self.plan.stages.iter().map(|stage| stage.id).collect();
        for stage in stages {
            while let Some(queue) = self.queues.get_mut(&stage) {
                let Some((_, of_plan)) = self.plan.stage(stage) else { break };
                let stop = |cursor| stop(of_plan, cursor);
                let stop = (!of_plan.remote.is_empty()).then_some(&stop as &dyn Fn(u16) -> u16);
                let (jobs, inputs): (Vec<Job>, Vec<Input>) = queue.next(stop).into_iter().unzip();
                if jobs.is_empty() {
                    break;
                }
                self.submit(jobs, inputs, cx);
            }
        }
    }

    /// Submits the longest part of the stage that needs no other peer.
    fn submit(&mut self, jobs: Vec<Job>, inputs: Vec<Input>, cx: &mut EventContext) {
        let Some(first) = jobs.first() else { return };
        let Some((_, stage)) = self.plan.stage(first.forward.stage) else { return };
        let remote = stage.remote.iter().find(|remote| remote.block.0 >= first.cursor);
        let (end, then) = match (remote, self.plan.has_lm_head(stage.id)) {
            (Some(remote), _) => (remote.block.0, Then::Route(remote.block)),
            (None, false) => (stage.blocks.end, Then::Hidden),
            (None, true) => (stage.blocks.end, piece::lm_head(&jobs)),
        };
        let (class, blocks) = (first.forward.class, BlockRange::new(first.cursor, end));
        let continuation =
            piece::continuation(first).filter(|_| class == KernelClass::Decode && stage.remote.is_empty());
        let task = continuation.unwrap_or_else(|| {
            let (batch, input) = (piece::batch(&jobs), piece::input(inputs));
            let biases = piece::biases(&jobs, (self.me == self.coordinator).then_some(&cx.biases));
            Task::Forward { batch, class, input, blocks, then, biases }
        });
        self.compute(task, Purpose::Batch(jobs), cx);
    }

    fn compute(&mut self, task: Task, purpose: Purpose, cx: &mut EventContext) {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        self.tickets.insert(ticket, purpose);
        cx.out.act(Action::Compute(Work { ticket, task }));
    }

    /// The engine computes this for it.
    pub fn computes(&self, ticket: Ticket) -> bool {
        self.tickets.contains_key(&ticket)
    }

    /// A result of the engine. Unknown tickets belong to what was dropped.
    pub fn computed(&mut self, computed: potluck_plan::Computed, cx: &mut EventContext) {
        let (outcome, millis) = (computed.outcome, computed.millis);
        match self.tickets.remove(&computed.ticket) {
            Some(Purpose::Batch(jobs)) => self.jobs_computed(jobs, outcome, millis, cx),
            Some(Purpose::OwnExperts(call)) => self.own_experts(call, outcome, cx),
            Some(Purpose::Call(call)) => self.call_computed(call, outcome, millis, cx),
            None => {}
        }
    }

    fn jobs_computed(&mut self, mut jobs: Vec<Job>, outcome: Outcome, millis: f64, cx: &mut EventContext) {
        if !matches!(outcome, Outcome::Cancelled) {
            self.measure(&jobs, millis);
        }
        if let Some(first) = jobs.first() {
            self.queue(first.forward.stage).answered();
        }
        self.forget_again(&jobs, cx);
        jobs.iter_mut().for_each(|job| job.millis += millis);
        if matches!(outcome, Outcome::Routed { .. }) {
            return self.routed(jobs, outcome, cx);
        }
        let outcomes = piece::split(&jobs, outcome).map(|outcomes| outcomes.into_iter().map(Some));
        let outcomes: Vec<Option<Outcome>> =
            outcomes.map_or_else(|| jobs.iter().map(|_| None).collect(), Iterator::collect);
        for (job, outcome) in jobs.into_iter().zip(outcomes).filter(|(job, _)| !job.dropped) {
            match outcome {
                Some(outcome) => self.batch_computed(job, outcome, cx),
                None => self.fail_job(&job, StageFaultKind::BadResult(self.me), cx),
            }
        }
    }

    fn measure(&mut self, jobs: &[Job], millis: f64) {
        if let [job] = jobs
            && job.forward.count == 1
        {
            let millis = millis / f64::from(job.forward.further_steps + 1);
            let mean = if self.decode_millis == 0.0 { millis } else { self.decode_millis };
            self.decode_millis = mean + 0.1 * (millis - mean);
        }
    }

    fn batch_computed(&mut self, job: Job, outcome: Outcome, cx: &mut EventContext) {
        match outcome {
            Outcome::Hidden(hidden) => self.hand_on(job, hidden, cx),
            Outcome::Done => self.send_logits_result(job, LmHeadOutput::NotRequested, cx),
            Outcome::Candidates(candidates) => self.send_logits_result(job, LmHeadOutput::Candidates(candidates), cx),
            Outcome::DeviceLost => self.fail_job(&job, StageFaultKind::DeviceLost, cx),
            Outcome::Failed(sentence) => self.fail_job(&job, StageFaultKind::Failed(sentence), cx),
            // The coordinator asks for candidates only, and routed batches wait for their experts together.
            Outcome::Logits(_) | Outcome::Routed { .. } | Outcome::ExpertOutputs(_) | Outcome::Missing { .. } => {
                self.fail_job(&job, StageFaultKind::BadResult(self.me), cx);
            }
            Outcome::Cancelled => {
                self.fail_job(&job, StageFaultKind::Failed("the work was cancelled".to_owned()), cx);
            }
        }
    }

    fn routed_block(&self, job: &Job) -> u16 {
        let stage = self.plan.stage(job.forward.stage);
        let remote = stage.and_then(|(_, stage)| stage.remote.iter().find(|remote| remote.block.0 >= job.cursor));
        remote.map_or(job.cursor, |remote| remote.block.0)
    }

    fn hand_on(&mut self, mut job: Job, hidden: Vec<f32>, cx: &mut EventContext) {
        let id = job.forward.stage;
        if !are_numbers(&hidden, job.forward.count as usize * self.width) {
            // Nothing is sent that the next stage would have to refuse.
            return self.fail_job(&job, StageFaultKind::BadResult(self.me), cx);
        }
        self.queue(id).left(&job.forward);
        self.left(&job, cx);
        let next = self.plan.stage(id).and_then(|(index, _)| self.plan.stages.get(index + 1));
        if let Some(Stage { id: next, peer, .. }) = next {
            let (next, peer) = (*next, *peer);
            if let Some(kept) = &mut self.kept {
                // What stays on this device is not rounded.
                let wire = if peer == self.me { WireType::F32 } else { job.forward.wire };
                let key = (id, job.forward.conversation);
                kept.sent(key, job.forward.base.0 as usize, &as_sent(&hidden, wire));
            }
            job.forward.stage = next;
            // Only the first stage embeds: whoever computes later blocks need not know the text.
            if !has_mutation(Mutation::TokensHandedOn) {
                job.forward.tokens = Vec::new();
            }
            job.forward.hidden = hidden;
            job.forward.stage_millis.push(job.millis);
            cx.out.send(peer, Frame::Forward(job.forward));
        }
    }

    fn send_logits_result(&mut self, job: Job, result: LmHeadOutput, cx: &mut EventContext) {
        self.left(&job, cx);
        self.queue(job.forward.stage).left(&job.forward);
        let Forward { epoch, pass, conversation, base, count, mut stage_millis, .. } = job.forward;
        stage_millis.push(job.millis);
        let send_logits_result = LogitsResult { epoch, pass, conversation, base, tokens: count, result, stage_millis };
        cx.out.send(self.coordinator, Frame::LogitsResult(send_logits_result));
    }

    /// What was kept, unless the conversation has newer rows.
    fn kept_of(&self, range: &RowRange) -> Option<&KeptRows> {
        let is_newest = self.arrived.get(&(range.stage, range.conversation)) == Some(&range.through);
        self.kept.as_ref().filter(|_| is_newest)
    }

    /// The host asks for hashes of what a stage of this device got and sent.
    pub fn commit_rows(&self, range: RowRange, cx: &mut EventContext) {
        let (embeds, has_lm_head) = (self.plan.embeds(range.stage), self.plan.has_lm_head(range.stage));
        let hashes = self.kept_of(&range).and_then(|kept| kept.hashes(&range, embeds, has_lm_head));
        cx.out.send(self.coordinator, Frame::RowHashes(RowHashes { range, hashes }));
    }

    /// The host wants to see what a stage of this device got.
    pub fn show_rows(&self, request: RowsRequest, cx: &mut EventContext) {
        let RowsRequest { range, page } = request;
        let values = self.kept_of(&range).and_then(|kept| kept.page(&range, page)).unwrap_or_default().to_vec();
        cx.out.send(self.coordinator, Frame::Rows(Rows { request, values }));
    }

    /// Tokens leave the stage: whoever has computed experts for them is noted, and what a token took here.
    fn left(&mut self, job: &Job, cx: &mut EventContext) {
        let Forward { stage, conversation, .. } = job.forward;
        let behind = self.inside(stage).filter(|other| other.conversation == conversation).map(end).max();
        self.kv_caches.left(stage, conversation, end(&job.forward).max(behind.unwrap_or(0)));
        job.helpers.iter().for_each(|helper| cx.holders.computed_for(*helper, u64::from(job.forward.count)));
        if job.forward.class == KernelClass::Decode && job.forward.count == 1 {
            self.dispatch.left(job.millis);
        }
    }

    /// A chunk cannot be computed. What comes behind it would leave a gap, up to the pass with which the coordinator has
    /// begun again in the meantime, at the chunk's tokens or before them.
    fn fail_job(&mut self, job: &Job, kind: StageFaultKind, cx: &mut EventContext) {
        let Forward { stage, conversation, pass, base, .. } = job.forward;
        match self.restart(&job.forward) {
            Some(restart) => self.drop_passes(stage, conversation, pass..restart),
            None => {
                let length = self.lengths.entry((stage, conversation)).or_default();
                *length = (*length).min(base.0);
                self.drop_passes(stage, conversation, pass..);
            }
        }
        self.drop_idle_gathers(cx);
        self.report(stage, conversation, Some(pass), kind, cx);
    }

    /// The first later pass of a chunk's conversation that does not come behind the chunk, if it is in this stage.
    fn restart(&self, failed: &Forward) -> Option<PassId> {
        let restarts = self.inside(failed.stage).filter(|other| {
            other.conversation == failed.conversation && other.pass > failed.pass && other.base <= failed.base
        });
        restarts.map(|restart| restart.pass).min()
    }

    /// Chunks that wait for a stage or are in it.
    fn inside(&self, stage: StageId) -> impl Iterator<Item = &Forward> {
        let in_engine = self.tickets.values().flat_map(|purpose| match purpose {
            Purpose::Batch(jobs) => &jobs[..],
            _ => &[],
        });
        let under_way = in_engine.chain(self.waiting.values().flatten()).filter(|job| !job.dropped);
        let under_way = under_way.map(|job| &job.forward).filter(move |forward| forward.stage == stage);
        under_way.chain(self.queues.get(&stage).into_iter().flat_map(StageQueue::waiting))
    }

    /// Tells the coordinator that a stage cannot go on.
    pub fn report(
        &self,
        stage: StageId,
        conversation: ConversationId,
        pass: Option<PassId>,
        kind: StageFaultKind,
        cx: &mut EventContext,
    ) {
        let fault = StageFault { epoch: self.plan.epoch, stage, conversation, pass, kind };
        cx.out.send(self.coordinator, Frame::StageFault(fault));
    }
}

/// The position after the last one that a chunk computes.
fn end(forward: &Forward) -> u32 {
    forward.base.0 + forward.count + u32::from(forward.further_steps)
}

/// Where a piece of work ends that begins at a block: at the next one whose experts are elsewhere, or at the stage's end.
fn stop(stage: &Stage, cursor: u16) -> u16 {
    let remote = stage.remote.iter().find(|remote| remote.block.0 >= cursor);
    remote.map_or(stage.blocks.end, |remote| remote.block.0)
}

/// The host may check stages of this plan: some are on other devices, and none calls experts elsewhere or loads them on demand.
pub(crate) fn is_checked(plan: &Plan, host: PeerId) -> bool {
    let is_whole = |stage: &Stage| stage.remote.is_empty() && stage.pool.is_none();
    plan.stages.iter().any(|stage| stage.peer != host) && plan.stages.iter().all(is_whole)
}

/// What a receiver of these values gets.
fn as_sent(values: &[f32], wire: WireType) -> Cow<'_, [f32]> {
    if wire == WireType::F32 {
        return Cow::Borrowed(values);
    }
    let mut sent = values.to_vec();
    potluck_protocol::round(&mut sent, wire);
    Cow::Owned(sent)
}

/// The right number of values, all of them finite.
fn are_numbers(values: &[f32], count: usize) -> bool {
    values.len() == count && values.iter().all(|value| value.is_finite())
}

#[cfg(test)]
mod tests;
