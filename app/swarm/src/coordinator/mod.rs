//! The coordinator: the room's model, its plan, its token logs and its answers.

mod answering;
mod answers;
mod away;
mod chunk_size;
mod conversations;
mod draft;
mod faults;
mod handover;
mod logits;
mod multi_step;
mod planning;
mod queue;
mod token_log;
mod transcript;
mod view;

use std::collections::BTreeSet;
use std::sync::Arc;

use potluck_plan::{Millis, ModelId, PeerId, Plan, PlanEpoch};
use potluck_protocol::{
    CalibrationRuns, Frame, LoadFault, LogitsResult, PromptRequest, RequestId, RoomView, Session, Sharing,
};

use crate::event::{HostCommand, OpenedModel};
use crate::members::{Member, Members};
use crate::outbox::Outbox;
use crate::{Action, Severity};

use answering::DecodePass;
use answers::Answers;
use away::AwayAskers;
use handover::Handover;
use planning::{PlanRequest, Planning, Usage};

pub(crate) struct Coordinator {
    pub command: HostCommand,
    model: Option<Arc<OpenedModel>>,
    planning: Planning,
    answers: Answers,
    /// Answers on their way to the inactive plan.
    handover: Option<Handover>,
    away: AwayAskers,
    /// When somebody last waited for an answer.
    waited: Millis,
    view: RoomView,
    /// The view that was sent last, and when.
    sent: Option<(RoomView, Millis)>,
    /// When the tokens were counted for the view.
    counted: Millis,
    /// Tokens that passed a plan, and when: nothing is learnt from them on the way to the next token.
    passed: Vec<(PlanEpoch, DecodePass, Millis)>,
    /// When devices were told to expect rows.
    announced: Millis,
}

/// The room's picture is sent at most this often.
const VIEW_MILLIS: f64 = 250.0;
/// The number of tokens in it changes this often, and where only measures changed it is sent this often: they change with every
/// token and every heartbeat, and a host with a slow line would be a minute behind with telling them to everyone.
const COUNT_MILLIS: f64 = 1_000.0;
/// While somebody writes devices are told this often.
const EXPECT_MILLIS: f64 = 500.0;

impl Coordinator {
    pub fn new(command: HostCommand, me: PeerId, out: &mut Outbox) -> Self {
        out.act(Action::OpenModel(command.source.clone()));
        let view = view::empty(me, &command);
        Self {
            planning: Planning::new(command.last_epoch),
            command,
            model: None,
            answers: Answers::default(),
            handover: None,
            away: AwayAskers::default(),
            waited: Millis(f64::MIN),
            view,
            sent: None,
            counted: Millis(f64::MIN),
            passed: Vec::new(),
            announced: Millis(f64::MIN),
        }
    }

    pub fn epoch(&self) -> PlanEpoch {
        self.planning.epoch
    }

    pub fn view(&self) -> &RoomView {
        &self.view
    }

    pub fn opened(&mut self, model: Arc<OpenedModel>, members: &mut Members, now: Millis, out: &mut Outbox) {
        self.command.context = self.command.context.clamp(64, model.card.context.max(64));
        self.model = Some(model);
        self.replan(members, now, out);
    }

    pub fn open_failed(&mut self, sentence: String, out: &mut Outbox) {
        self.planning.reason.clone_from(&sentence);
        self.answers.fail_all(&sentence, out);
        out.notice(Severity::Error, sentence);
    }

    pub fn set_share(&mut self, share: Sharing, members: &mut Members, now: Millis, out: &mut Outbox) {
        self.command.sharing = share;
        self.replan(members, now, out);
    }

    /// Members, contributions or wishes changed.
    pub fn replan(&mut self, members: &mut Members, now: Millis, out: &mut Outbox) {
        let usage = self.usage();
        if let Some(model) = &self.model {
            let request =
                PlanRequest { model, command: &self.command, answering: self.answers.is_answering(), usage, now };
            if let Some(model) = self.planning.replan(request, members, out) {
                self.model = Some(model);
            }
        }
    }

    /// A peer's connection ended and is not back in time: what it held counts as lost, what it asked is kept for a while.
    pub fn gone(&mut self, peer: PeerId, member: &Member, members: &mut Members, now: Millis, out: &mut Outbox) {
        self.away.leave(peer, member.hello.session, now);
        if member.hello.contribution.is_some() {
            self.planning.leaves(peer, now);
        }
        self.lost(peer, &format!("{} left.", member.hello.name), members, now, out);
    }

    /// A peer's session is over: with it everything it held and asked.
    pub fn left(&mut self, peer: PeerId, name: &str, members: &mut Members, now: Millis, out: &mut Outbox) {
        self.answers.drop_asker(peer, now, out);
        self.planning.leaves(peer, now);
        self.lost(peer, &format!("{name} left."), members, now, out);
    }

    /// A peer entered, or entered again.
    pub fn entered(&mut self, peer: PeerId, session: Session, now: Millis, out: &mut Outbox) {
        if self.away.is_another(peer, session) {
            self.answers.drop_asker(peer, now, out);
        }
    }

    /// A peer stays but lends no more.
    pub fn withdrawn(&mut self, peer: PeerId, name: &str, members: &mut Members, now: Millis, out: &mut Outbox) {
        self.lost(peer, &format!("{name} stopped lending."), members, now, out);
    }

    fn lost(&mut self, peer: PeerId, why: &str, members: &mut Members, now: Millis, out: &mut Outbox) {
        if self.planning.lose(peer, out) {
            let reason = format!("{why} The others take over its part and the answer goes on.");
            self.recover(Some(peer), &reason, members, now, out);
        } else {
            self.planning.standbys.forget(peer);
            self.replan(members, now, out);
        }
    }

    /// A device has timed two ranges of the model, or could not.
    pub fn calibrated(
        &mut self,
        peer: PeerId,
        model: ModelId,
        answer: Result<CalibrationRuns, String>,
        members: &mut Members,
        now: Millis,
        out: &mut Outbox,
    ) {
        let is_hosted = self.model.as_ref().is_some_and(|hosted| hosted.card.id == model);
        if is_hosted && self.planning.calibrated(peer, answer) {
            self.replan(members, now, out);
        }
    }

    /// No answer is being given: what is measured now is not disturbed by one.
    pub fn is_idle(&self) -> bool {
        !self.answers.is_answering()
    }

    /// Peers without which somebody who waits is not answered.
    pub fn awaited(&self) -> BTreeSet<PeerId> {
        let plan = self.planning.needed().filter(|_| self.answers.are_awaited());
        plan.map(Plan::peers).unwrap_or_default()
    }

    pub fn prepared(&mut self, peer: PeerId, epoch: PlanEpoch, members: &Members, now: Millis, out: &mut Outbox) {
        self.planning.prepared(peer, epoch);
        self.try_commit(members, now, out);
    }

    pub fn prepare_failed(
        &mut self,
        peer: PeerId,
        epoch: PlanEpoch,
        fault: LoadFault,
        members: &mut Members,
        now: Millis,
        out: &mut Outbox,
    ) {
        let sentence = format!("{} cannot take its part: {}", members.name(peer), fault.sentence());
        if self.planning.commit_failed(peer, epoch) {
            let reason = format!("{sentence}. The answer goes on when it is loaded again.");
            self.recover(Some(peer), &reason, members, now, out);
        }
        if self.planning.standbys.failed(peer, epoch, &fault, now) {
            return;
        }
        if self.planning.prepare_failed(peer, epoch, fault, members, now, out) {
            if peer != out.me {
                out.notice(Severity::Warning, sentence);
            }
            self.replan(members, now, out);
        }
    }

    pub fn committed(&mut self, peer: PeerId, epoch: PlanEpoch, now: Millis, out: &mut Outbox) {
        self.planning.committed(peer, epoch);
        self.continue_answers(now, out);
    }

    /// The active plan is gone. A plan that is ready beside it takes over with whatever state was rebuilt there, else the one
    /// that stands by for the loss of this peer, else a new one is made.
    fn recover(&mut self, lost: Option<PeerId>, reason: &str, members: &mut Members, now: Millis, out: &mut Outbox) {
        self.answers.send_recovering(reason, out);
        let has_other = self.planning.prepared_plan().is_some();
        if has_other {
            self.try_commit(members, now, out);
        } else {
            self.answers.kv_cache_lost();
            self.keep_handover(None);
        }
        let usage = self.usage();
        let Some(model) = &self.model else { return };
        let request = PlanRequest { model, command: &self.command, answering: self.answers.is_answering(), usage, now };
        let taken_over = !has_other && lost.is_some_and(|peer| self.planning.take_over(peer, request, members, out));
        if let Some(peer) = lost {
            self.planning.standbys.forget(peer);
        }
        if !taken_over {
            self.replan(members, now, out);
        }
    }

    /// The prepared plan counts from now on, once the answers that are being given can go on there.
    fn try_commit(&mut self, members: &Members, now: Millis, out: &mut Outbox) {
        let epoch = self.planning.prepared_plan().map(|plan| plan.epoch);
        self.keep_handover(epoch.filter(|_| self.answers.is_answering()));
        let Some(plan) = self.planning.prepared_plan() else { return };
        if self.planning.active().is_some() && self.answers.is_answering() {
            let handover = self.handover.get_or_insert_with(|| Handover::new(plan.epoch));
            if !handover.is_caught_up(&self.answers) {
                let total = conversations::pages(self.command.context as usize);
                handover.advance(plan, &mut self.answers, total, now, out);
                return;
            }
        }
        let handover = self.handover.take();
        self.planning.commit(handover.is_some(), self.answers.tokens, members, now, out);
        match handover {
            Some(handover) => handover.finish(&mut self.answers),
            None => self.answers.kv_cache_lost(),
        }
    }

    /// Forgets what was rebuilt for another plan.
    fn keep_handover(&mut self, epoch: Option<PlanEpoch>) {
        if self.handover.take_if(|handover| Some(handover.epoch) != epoch).is_some() {
            self.answers.reserve_nothing();
        }
    }

    fn continue_answers(&mut self, now: Millis, out: &mut Outbox) {
        if let (Some(model), Some(plan)) = (&self.model, self.planning.up()) {
            self.answers.advance(model, plan, self.command.context, now, out);
        }
    }

    /// Somebody writes a question, and is about to wait. Not told to devices for every letter of several people.
    pub fn writing(&mut self, now: Millis, out: &mut Outbox) {
        self.waited = now;
        if now.0 - self.announced.0 >= EXPECT_MILLIS {
            self.announce_work(now, out);
        }
    }

    /// The devices of the running plan are about to get rows.
    fn announce_work(&mut self, now: Millis, out: &mut Outbox) {
        self.announced = now;
        let peers = self.planning.active().map(Plan::peers).unwrap_or_default();
        peers.into_iter().for_each(|peer| out.send(peer, Frame::Expect));
    }

    pub fn prompt(&mut self, asker: PeerId, prompt: PromptRequest, now: Millis, out: &mut Outbox) {
        self.announce_work(now, out);
        self.waited = now;
        self.answers.ask(asker, prompt, now, out);
        self.continue_answers(now, out);
    }

    /// Some of an answer's pieces were lost on the way.
    pub fn resume(&self, asker: PeerId, request: RequestId, piece: u32, out: &mut Outbox) {
        self.answers.resume(asker, request, piece, out);
    }

    pub fn stop(&mut self, asker: PeerId, request: RequestId, members: &mut Members, now: Millis, out: &mut Outbox) {
        self.answers.stop(asker, request, now, out);
        self.after_answer(members, now, out);
    }

    pub fn logits_result(
        &mut self,
        from: PeerId,
        reply: LogitsResult,
        members: &mut Members,
        now: Millis,
        out: &mut Outbox,
    ) {
        if let Some(handover) = self.handover.as_mut().filter(|handover| handover.epoch == reply.epoch) {
            handover.completed(reply.conversation, reply.pass);
            self.try_commit(members, now, out);
            self.continue_answers(now, out);
            return;
        }
        let (Some(model), Some(plan)) = (&self.model, self.planning.active()) else { return };
        if reply.epoch != plan.epoch || plan.stages.last().is_none_or(|last| last.peer != from) {
            return;
        }
        let conversation = reply.conversation;
        if let Some(reading) = self.answers.unexpected(conversation, plan) {
            let millis = self.planning.first_token_millis(model, &self.command, members, plan, reading);
            self.answers.expect(conversation, millis);
        }
        let good = self.answers.logits_result(reply, model, now, out);
        let epoch = plan.epoch;
        self.passed.extend(self.answers.passed.take().map(|pass| (epoch, pass, now)));
        if let Some(read) = self.answers.read.take() {
            self.planning.learn_prefill(model, &self.command, members, &read);
        }
        match good {
            true => self.after_answer(members, now, out),
            false => self.blame(from, conversation, members, now, out),
        }
    }

    /// Looks at what tokens took since the last look.
    fn learn(&mut self, members: &Members) {
        let passed = std::mem::take(&mut self.passed);
        let Some(model) = &self.model else { return };
        for (epoch, pass, at) in passed {
            if self.planning.active().is_some_and(|plan| plan.epoch == epoch) {
                self.planning.learn(model, &self.command, members, &pass, at);
            }
        }
    }

    /// How the room is used, for plans that nobody is answered under while they are loaded.
    fn usage(&self) -> Usage {
        Usage { waits: self.answers.are_awaited(), waited: self.waited, tokens: self.answers.tokens }
    }

    fn after_answer(&mut self, members: &mut Members, now: Millis, out: &mut Outbox) {
        if !self.answers.is_answering() && self.planning.take_put_off() {
            self.replan(members, now, out);
        }
        self.try_commit(members, now, out);
        self.continue_answers(now, out);
    }

    /// A peer is back on the same session: frames on the way to it may be lost, so what is under way is sent again.
    pub fn back(&mut self, peer: PeerId, now: Millis, out: &mut Outbox) {
        self.planning.ask(peer, out);
        self.resend(now, out);
    }

    fn resend(&mut self, now: Millis, out: &mut Outbox) {
        self.answers.resend();
        self.continue_answers(now, out);
    }

    pub fn tick(&mut self, members: &mut Members, now: Millis, out: &mut Outbox) {
        self.learn(members);
        if self.answers.are_awaited() {
            self.waited = now;
        }
        if self.answers.is_stalled(now) {
            let peers = self.planning.active().map(|plan| plan.peers()).unwrap_or_default();
            peers.into_iter().for_each(|peer| self.planning.ask(peer, out));
            self.resend(now, out);
        }
        for peer in self.away.give_up(now) {
            self.answers.drop_asker(peer, now, out);
        }
        self.planning.tick(members, now, out);
        if let Some(stuck) = self.planning.give_up_stuck(members, now, out) {
            let name = members.name(stuck);
            let sentence =
                format!("{name} gets no further with loading its part. The room plans anew and asks it again.");
            out.notice(Severity::Warning, sentence);
            self.replan(members, now, out);
        }
        if let Some(model) = self.model.clone() {
            if self.is_idle() {
                self.planning.time_alone(&model, members, now, out);
            }
            let asked_again = members.take_retries(now);
            if self.planning.is_due(&model, &self.command, members, now) || asked_again {
                self.replan(members, now, out);
            }
        }
        self.after_answer(members, now, out);
        let usage = self.usage();
        if let Some(model) = &self.model {
            let request =
                PlanRequest { model, command: &self.command, answering: self.answers.is_answering(), usage, now };
            self.planning.stand_by(request, members, out);
            self.planning.look_for_help(request, members);
        }
        self.refresh(members, now, false, out);
    }

    /// Makes the room's picture anew and sends it where it changed.
    pub fn refresh(&mut self, members: &Members, now: Millis, at_once: bool, out: &mut Outbox) {
        let counted = (self.view.tokens, self.counted);
        self.view = view::room(self.model.as_deref(), &self.command, &self.planning, &self.answers, members);
        // The count alone is no reason to send the picture more than once a second.
        if now.0 - counted.1.0 < COUNT_MILLIS {
            self.view.tokens = counted.0;
        } else {
            self.counted = now;
        }
        let due = match &self.sent {
            None => true,
            Some((view, at)) => {
                let waited = now.0 - at.0;
                let urgent = || at_once || waited >= VIEW_MILLIS;
                let by_measures = || view::without_measures(view) == view::without_measures(&self.view);
                *view != self.view && (waited >= COUNT_MILLIS || urgent() && !by_measures())
            }
        };
        if due {
            self.sent = Some((self.view.clone(), now));
            for (peer, member) in &members.known {
                if member.admitted && *peer != members.me {
                    out.send(*peer, Frame::Room(Box::new(self.view.clone())));
                }
            }
            out.act(Action::ViewChanged);
        }
    }

    /// A newcomer needs the picture now.
    pub fn greet(&self, peer: PeerId, out: &mut Outbox) {
        out.send(peer, Frame::Room(Box::new(self.view.clone())));
    }
}
