//! A worker's side of a committed plan: rows in, engine work out, results on to the next stage. One executor runs every
//! plan.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use potluck_plan::{
    BlockRange, ConversationId, Holder, Input, Millis, Outcome, PeerId, Plan, PlanEpoch, Position, Row, Stage, StageId,
    Task, Then, Ticket, Work,
};
use potluck_protocol::{ExpertCall, ExpertSum, Forward, Frame, Picked, PickedRows, StageFault, StageFaultKind};

use crate::Action;
use crate::gather::{Gather, PATIENCE_MILLIS};
use crate::members::Members;
use crate::outbox::Outbox;

/// Rows on their way through one stage.
struct Job {
    /// The frame that brought them, without the hidden vectors.
    rows: Forward,
    /// Next block to compute.
    cursor: u16,
}

/// What a ticket is for.
enum Purpose {
    Rows(Job),
    OwnExperts { gather: u64 },
    Call { caller: PeerId, call: u64, wire: potluck_plan::WireType },
}

/// A job that waits for experts.
struct Waiting {
    job: Job,
    gather: Gather,
}

pub(crate) struct Executor {
    me: PeerId,
    coordinator: PeerId,
    plan: Plan,
    next_ticket: u64,
    tickets: BTreeMap<Ticket, Purpose>,
    /// Jobs behind one that waits for experts: the state of a block must be written in order.
    queues: BTreeMap<StageId, VecDeque<(Job, Input)>>,
    waiting: BTreeMap<u64, Waiting>,
    /// Positions of state per stage and conversation.
    lengths: BTreeMap<(StageId, ConversationId), u32>,
    /// Running mean of the engine's milliseconds for one decoded row.
    pub decode_millis: f64,
}

impl Executor {
    /// `first_ticket` must be above every ticket used before, so that late results of an older plan are recognised.
    pub fn new(me: PeerId, coordinator: PeerId, plan: Plan, first_ticket: u64) -> Self {
        Self {
            me,
            coordinator,
            plan,
            next_ticket: first_ticket,
            tickets: BTreeMap::new(),
            queues: BTreeMap::new(),
            waiting: BTreeMap::new(),
            lengths: BTreeMap::new(),
            decode_millis: 0.0,
        }
    }

    pub fn epoch(&self) -> PlanEpoch {
        self.plan.epoch
    }

    pub fn next_ticket(&self) -> u64 {
        self.next_ticket
    }

    /// Conversations with state here.
    pub fn conversations(&self) -> BTreeSet<ConversationId> {
        self.lengths.keys().map(|(_, conversation)| *conversation).collect()
    }

    pub fn forget(&mut self, conversation: ConversationId) {
        self.lengths.retain(|(_, known), _| *known != conversation);
    }

    /// Rows for one of our stages.
    pub fn forward(&mut self, mut forward: Forward, out: &mut Outbox) {
        let Some((_, stage)) = self.plan.stage(forward.stage).filter(|(_, stage)| stage.peer == self.me) else {
            return;
        };
        let key = (forward.stage, forward.conversation);
        let length = self.lengths.get(&key).copied().unwrap_or(0);
        if forward.tokens.is_empty() || forward.base.0 > length {
            self.report(forward.stage, forward.conversation, StageFaultKind::Gap(Position(length)), out);
            return;
        }
        self.lengths.insert(key, forward.base.0 + forward.tokens.len() as u32);
        let input = match self.plan.embeds(forward.stage) {
            true => Input::Tokens(forward.tokens.clone()),
            false => Input::Hidden(std::mem::take(&mut forward.hidden)),
        };
        let job = Job { cursor: stage.blocks.start, rows: forward };
        match self.queues.get_mut(&job.rows.stage) {
            Some(queue) => queue.push_back((job, input)),
            None => self.advance(job, input, out),
        }
    }

    /// The longest piece of the stage that needs nobody else.
    fn advance(&mut self, job: Job, input: Input, out: &mut Outbox) {
        let Some((_, stage)) = self.plan.stage(job.rows.stage) else { return };
        let remote = stage.remote.iter().find(|remote| remote.block.0 >= job.cursor);
        let (end, then) = match (remote, self.plan.has_head(stage.id), job.rows.head) {
            (Some(remote), ..) => (remote.block.0, Then::Route(remote.block)),
            (None, false, _) => (stage.blocks.end, Then::Hidden),
            (None, true, Some(head)) => (stage.blocks.end, Then::Head(head)),
            (None, true, None) => (stage.blocks.end, Then::Nothing),
        };
        if remote.is_some() {
            self.queues.entry(stage.id).or_default();
        }
        let conversation = job.rows.conversation;
        let position = |i: usize| Position(job.rows.base.0 + i as u32);
        let rows = (0..job.rows.tokens.len()).map(|i| Row { conversation, position: position(i) }).collect();
        let blocks = BlockRange::new(job.cursor, end);
        let task = Task::Forward { rows, class: job.rows.class, input, blocks, then };
        self.compute(task, Purpose::Rows(job), out);
    }

    fn compute(&mut self, task: Task, purpose: Purpose, out: &mut Outbox) {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        self.tickets.insert(ticket, purpose);
        out.act(Action::Compute(Work { ticket, task }));
    }

    /// A result of the engine. Results of tickets we do not know belong to an older plan.
    pub fn computed(&mut self, computed: potluck_plan::Computed, members: &Members, now: Millis, out: &mut Outbox) {
        match self.tickets.remove(&computed.ticket) {
            Some(Purpose::Rows(job)) => {
                self.measure(&job, computed.millis);
                self.rows_computed(job, computed.outcome, computed.millis, members, now, out);
            }
            Some(Purpose::OwnExperts { gather }) => match computed.outcome {
                Outcome::Sum(sum) => self.part_done(gather, Holder::Own, sum, out),
                other => self.fail_gather(gather, &other, out),
            },
            Some(Purpose::Call { caller, call, wire }) => {
                let (sum, failed) = match computed.outcome {
                    Outcome::Sum(sum) => (sum, None),
                    Outcome::Failed(sentence) => (Vec::new(), Some(sentence)),
                    _ => (Vec::new(), Some("the device's GPU stopped".to_owned())),
                };
                let epoch = self.epoch();
                out.send(caller, Frame::ExpertSum(ExpertSum { epoch, call, failed, wire, sum }));
            }
            None => {}
        }
    }

    fn measure(&mut self, job: &Job, millis: f64) {
        if job.rows.tokens.len() == 1 {
            let mean = if self.decode_millis == 0.0 { millis } else { self.decode_millis };
            self.decode_millis = mean + 0.1 * (millis - mean);
        }
    }

    fn rows_computed(
        &mut self,
        job: Job,
        outcome: Outcome,
        millis: f64,
        members: &Members,
        now: Millis,
        out: &mut Outbox,
    ) {
        match outcome {
            Outcome::Hidden(hidden) => self.hand_on(job, hidden, out),
            Outcome::Done => self.picked(&job, PickedRows::Through, millis, out),
            Outcome::Candidates(rows) => self.picked(&job, PickedRows::Candidates(rows), millis, out),
            Outcome::Logits(logits) => self.picked(&job, PickedRows::Logits(logits), millis, out),
            Outcome::Routed { residual, normed, routes } => {
                let block = potluck_plan::BlockIndex(self.routed_block(&job));
                let gather = Gather::new(block, job.rows.class, residual, normed, routes);
                self.gather(Waiting { job, gather }, members, now, out);
            }
            Outcome::DeviceLost => self.fail_job(&job, StageFaultKind::DeviceLost, out),
            Outcome::Failed(sentence) => self.fail_job(&job, StageFaultKind::Failed(sentence), out),
            Outcome::Cancelled | Outcome::Sum(_) => {
                self.fail_job(&job, StageFaultKind::Failed("the work was cancelled".to_owned()), out);
            }
        }
    }

    fn routed_block(&self, job: &Job) -> u16 {
        let stage = self.plan.stage(job.rows.stage);
        let remote = stage.and_then(|(_, stage)| stage.remote.iter().find(|remote| remote.block.0 >= job.cursor));
        remote.map_or(job.cursor, |remote| remote.block.0)
    }

    fn hand_on(&mut self, mut job: Job, hidden: Vec<f32>, out: &mut Outbox) {
        let id = job.rows.stage;
        let next = self.plan.stage(id).and_then(|(index, _)| self.plan.stages.get(index + 1));
        if let Some(Stage { id: next, peer, .. }) = next {
            let (next, peer) = (*next, *peer);
            job.rows.stage = next;
            job.rows.hidden = hidden;
            out.send(peer, Frame::Forward(job.rows));
        }
        self.next_in_queue(id, out);
    }

    fn picked(&mut self, job: &Job, result: PickedRows, millis: f64, out: &mut Outbox) {
        let rows = job.rows.tokens.len() as u32;
        let (conversation, base) = (job.rows.conversation, job.rows.base);
        let picked = Picked { epoch: self.epoch(), conversation, base, rows, result, millis };
        out.send(self.coordinator, Frame::Picked(picked));
        self.next_in_queue(job.rows.stage, out);
    }

    /// The stage is free again: the next job that waited behind experts starts.
    fn next_in_queue(&mut self, stage: StageId, out: &mut Outbox) {
        let Some(queue) = self.queues.get_mut(&stage) else { return };
        match queue.pop_front() {
            Some((job, input)) => self.advance(job, input, out),
            None => {
                self.queues.remove(&stage);
            }
        }
    }

    fn gather(&mut self, mut waiting: Waiting, members: &Members, now: Millis, out: &mut Outbox) {
        let Some(remote) = self.remote(&waiting) else { return };
        if waiting.gather.split(&remote, now, is_here(members)).is_err() {
            let block = waiting.gather.block;
            self.fail_job(&waiting.job, StageFaultKind::ExpertsUnreachable(block), out);
            return;
        }
        let id = self.next_ticket;
        self.next_ticket += 1;
        let parts = (0..waiting.gather.parts.len()).collect();
        self.waiting.insert(id, waiting);
        self.ask(id, parts, out);
    }

    fn remote(&self, waiting: &Waiting) -> Option<potluck_plan::RemoteExperts> {
        let (_, stage) = self.plan.stage(waiting.job.rows.stage)?;
        stage.remote_experts(waiting.gather.block).cloned()
    }

    /// Sends the calls; the stage's own share runs while the others are away.
    fn ask(&mut self, id: u64, parts: Vec<usize>, out: &mut Outbox) {
        let Some(waiting) = self.waiting.get(&id) else { return };
        let (block, class) = (waiting.gather.block, waiting.gather.class);
        let (epoch, wire) = (self.plan.epoch, self.plan.wire);
        let mut own = Vec::new();
        for part in parts {
            let (routes, normed) = (waiting.gather.parts[part].routes.clone(), waiting.gather.normed.clone());
            match waiting.gather.parts[part].holder {
                Holder::Own => own.push(Task::Experts { block, class, normed, routes }),
                Holder::Peer(peer) => {
                    out.send(
                        peer,
                        Frame::ExpertCall(ExpertCall { epoch, call: id, block, class, routes, wire, normed }),
                    );
                }
            }
        }
        for task in own {
            self.compute(task, Purpose::OwnExperts { gather: id }, out);
        }
    }

    /// A stage elsewhere needs experts of ours.
    pub fn expert_call(&mut self, caller: PeerId, call: ExpertCall, out: &mut Outbox) {
        let ExpertCall { call, block, class, routes, wire, normed, .. } = call;
        self.compute(Task::Experts { block, class, normed, routes }, Purpose::Call { caller, call, wire }, out);
    }

    /// A holder answers. Answers that come late or twice find nothing waiting.
    pub fn expert_sum(&mut self, from: PeerId, sum: ExpertSum, members: &Members, now: Millis, out: &mut Outbox) {
        match sum.failed {
            None => self.part_done(sum.call, Holder::Peer(from), sum.sum, out),
            Some(_) => self.reassign(sum.call, |part| part.holder == Holder::Peer(from), members, now, out),
        }
    }

    fn part_done(&mut self, id: u64, holder: Holder, sum: Vec<f32>, out: &mut Outbox) {
        let Some(waiting) = self.waiting.get_mut(&id) else { return };
        let expected = waiting.gather.normed.len();
        let part = waiting.gather.parts.iter_mut().find(|part| part.holder == holder && part.sum.is_none());
        let (Some(part), true) = (part, sum.len() == expected && sum.iter().all(|value| value.is_finite())) else {
            return;
        };
        part.sum = Some(sum);
        if !waiting.gather.is_complete() {
            return;
        }
        let Some(Waiting { mut job, gather }) = self.waiting.remove(&id) else { return };
        job.cursor = gather.block.0 + 1;
        match gather.combine() {
            Some(hidden) => self.advance(job, Input::Hidden(hidden), out),
            None => self.fail_job(&job, StageFaultKind::Failed("the experts' sums do not fit".to_owned()), out),
        }
    }

    fn fail_gather(&mut self, id: u64, outcome: &Outcome, out: &mut Outbox) {
        let Some(waiting) = self.waiting.remove(&id) else { return };
        let kind = match outcome {
            Outcome::DeviceLost => StageFaultKind::DeviceLost,
            Outcome::Failed(sentence) => StageFaultKind::Failed(sentence.clone()),
            _ => StageFaultKind::Failed("the work was cancelled".to_owned()),
        };
        self.fail_job(&waiting.job, kind, out);
    }

    /// Asks other holders where one has failed, is gone or takes too long.
    pub fn tick(&mut self, members: &Members, now: Millis, out: &mut Outbox) {
        let here = is_here(members);
        let overdue = |part: &crate::gather::Part| {
            part.sum.is_none() && (!here(part.holder) || now.0 - part.asked.0 > PATIENCE_MILLIS)
        };
        let late: Vec<u64> = self
            .waiting
            .iter()
            .filter(|(_, waiting)| waiting.gather.parts.iter().any(overdue))
            .map(|(id, _)| *id)
            .collect();
        for id in late {
            self.reassign(id, overdue, members, now, out);
        }
    }

    fn reassign(
        &mut self,
        id: u64,
        lost: impl Fn(&crate::gather::Part) -> bool,
        members: &Members,
        now: Millis,
        out: &mut Outbox,
    ) {
        let Some(remote) = self.waiting.get(&id).and_then(|waiting| self.remote(waiting)) else { return };
        while let Some(waiting) = self.waiting.get_mut(&id) {
            let lost = |part: &crate::gather::Part| part.sum.is_none() && lost(part);
            let Some(part) = waiting.gather.parts.iter().position(lost) else { return };
            match waiting.gather.reassign(part, &remote, now, is_here(members)) {
                Ok(parts) => self.ask(id, parts, out),
                Err(_) => {
                    let block = waiting.gather.block;
                    if let Some(waiting) = self.waiting.remove(&id) {
                        self.fail_job(&waiting.job, StageFaultKind::ExpertsUnreachable(block), out);
                    }
                }
            }
        }
    }

    fn fail_job(&mut self, job: &Job, kind: StageFaultKind, out: &mut Outbox) {
        let (stage, conversation) = (job.rows.stage, job.rows.conversation);
        let length = self.lengths.entry((stage, conversation)).or_default();
        *length = (*length).min(job.rows.base.0);
        // What waits behind the failed rows would leave a gap.
        self.queues.remove(&stage);
        self.report(stage, conversation, kind, out);
    }

    /// Tells the coordinator that a stage cannot go on.
    pub fn report(&self, stage: StageId, conversation: ConversationId, kind: StageFaultKind, out: &mut Outbox) {
        out.send(self.coordinator, Frame::StageFault(StageFault { epoch: self.plan.epoch, stage, conversation, kind }));
    }
}

fn is_here(members: &Members) -> impl Fn(Holder) -> bool {
    |holder| match holder {
        Holder::Own => true,
        Holder::Peer(peer) => members.is_here(peer),
    }
}
