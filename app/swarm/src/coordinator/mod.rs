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
use crate::event_context::EventContext;
use crate::members::{Member, Members};
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
    pub fn new(command: HostCommand, me: PeerId, cx: &mut EventContext) -> Self {
        cx.out.act(Action::OpenModel(command.source.clone()));
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
        self.planning.plans.epoch
    }

    pub fn view(&self) -> &RoomView {
        &self.view
    }

    pub fn opened(&mut self, model: Arc<OpenedModel>, cx: &mut EventContext) {
        self.command.context = self.command.context.clamp(64, model.card.context.max(64));
        self.model = Some(model);
        self.replan(cx);
    }

    pub fn open_failed(&mut self, sentence: String, cx: &mut EventContext) {
        self.planning.reason.clone_from(&sentence);
        self.answers.fail_all(&sentence, cx);
        cx.out.notice(Severity::Error, sentence);
    }

    pub fn set_share(&mut self, share: Sharing, cx: &mut EventContext) {
        self.command.sharing = share;
        self.replan(cx);
    }

    /// Members, contributions or wishes changed.
    pub fn replan(&mut self, cx: &mut EventContext) {
        let usage = self.usage();
        if let Some(model) = &self.model {
            let request = PlanRequest { model, command: &self.command, answering: self.answers.is_answering(), usage };
            if let Some(model) = self.planning.replan(request, cx) {
                self.model = Some(model);
            }
        }
    }

    /// A peer's connection ended and is not back in time: what it held counts as lost, what it asked is kept for a while.
    pub fn gone(&mut self, peer: PeerId, member: &Member, cx: &mut EventContext) {
        self.away.leave(peer, member.hello.session, cx.now);
        if member.hello.contribution.is_some() {
            self.planning.leaves(peer, cx);
        }
        self.lost(peer, &format!("{} left.", member.hello.name), cx);
    }

    /// A peer's session is over: with it everything it held and asked.
    pub fn left(&mut self, peer: PeerId, name: &str, cx: &mut EventContext) {
        self.answers.drop_asker(peer, cx);
        self.planning.leaves(peer, cx);
        self.lost(peer, &format!("{name} left."), cx);
    }

    /// A peer entered, or entered again.
    pub fn entered(&mut self, peer: PeerId, session: Session, cx: &mut EventContext) {
        if self.away.is_another(peer, session) {
            self.answers.drop_asker(peer, cx);
        }
    }

    /// A peer stays but lends no more.
    pub fn withdrawn(&mut self, peer: PeerId, name: &str, cx: &mut EventContext) {
        self.lost(peer, &format!("{name} stopped lending."), cx);
    }

    fn lost(&mut self, peer: PeerId, why: &str, cx: &mut EventContext) {
        if self.planning.plans.lose(peer, cx) {
            let reason = format!("{why} The others take over its part and the answer goes on.");
            self.recover(Some(peer), &reason, cx);
        } else {
            self.planning.standbys.forget(peer);
            self.replan(cx);
        }
    }

    /// A device has timed two ranges of the model, or could not.
    pub fn calibrated(
        &mut self,
        peer: PeerId,
        model: ModelId,
        answer: Result<CalibrationRuns, String>,
        cx: &mut EventContext,
    ) {
        let is_hosted = self.model.as_ref().is_some_and(|hosted| hosted.card.id == model);
        if is_hosted && self.planning.calibrated(peer, answer) {
            self.replan(cx);
        }
    }

    /// No answer is being given: what is measured now is not disturbed by one.
    pub fn is_idle(&self) -> bool {
        !self.answers.is_answering()
    }

    /// Peers without which somebody who waits is not answered.
    pub fn awaited(&self) -> BTreeSet<PeerId> {
        let plan = self.planning.plans.needed().filter(|_| self.answers.are_awaited());
        plan.map(Plan::peers).unwrap_or_default()
    }

    pub fn prepared(&mut self, peer: PeerId, epoch: PlanEpoch, cx: &mut EventContext) {
        self.planning.prepared(peer, epoch);
        self.try_commit(cx);
    }

    pub fn prepare_failed(&mut self, peer: PeerId, epoch: PlanEpoch, fault: LoadFault, cx: &mut EventContext) {
        let sentence = format!("{} cannot take its part: {}", cx.members.name(peer), fault.sentence());
        if self.planning.plans.commit_failed(peer, epoch) {
            let reason = format!("{sentence}. The answer goes on when it is loaded again.");
            self.recover(Some(peer), &reason, cx);
        }
        if self.planning.standbys.failed(peer, epoch, &fault, cx.now) {
            return;
        }
        if self.planning.plans.prepare_failed(peer, epoch, fault, cx) {
            if peer != cx.out.me {
                cx.out.notice(Severity::Warning, sentence);
            }
            self.replan(cx);
        }
    }

    pub fn committed(&mut self, peer: PeerId, epoch: PlanEpoch, cx: &mut EventContext) {
        self.planning.plans.committed(peer, epoch);
        self.continue_answers(cx);
    }

    /// The active plan is gone. A plan that is ready beside it takes over with whatever state was rebuilt there, else the one
    /// that stands by for the loss of this peer, else a new one is made.
    fn recover(&mut self, lost: Option<PeerId>, reason: &str, cx: &mut EventContext) {
        self.answers.send_recovering(reason, cx);
        let has_other = self.planning.plans.prepared_plan().is_some();
        if has_other {
            self.try_commit(cx);
        } else {
            self.answers.kv_cache_lost();
            self.keep_handover(None);
        }
        let usage = self.usage();
        let Some(model) = &self.model else { return };
        let request = PlanRequest { model, command: &self.command, answering: self.answers.is_answering(), usage };
        let taken_over = !has_other && lost.is_some_and(|peer| self.planning.take_over(peer, request, cx));
        if let Some(peer) = lost {
            self.planning.standbys.forget(peer);
        }
        if !taken_over {
            self.replan(cx);
        }
    }

    /// The prepared plan counts from now on, once the answers that are being given can go on there.
    fn try_commit(&mut self, cx: &mut EventContext) {
        let epoch = self.planning.plans.prepared_plan().map(|plan| plan.epoch);
        self.keep_handover(epoch.filter(|_| self.answers.is_answering()));
        let Some(plan) = self.planning.plans.prepared_plan() else { return };
        if self.planning.plans.active().is_some() && self.answers.is_answering() {
            let handover = self.handover.get_or_insert_with(|| Handover::new(plan.epoch));
            if !handover.is_caught_up(&self.answers) {
                let total = conversations::pages(self.command.context as usize);
                handover.advance(plan, &mut self.answers, total, cx);
                return;
            }
        }
        let handover = self.handover.take();
        self.planning.commit(handover.is_some(), self.answers.tokens, cx);
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

    fn continue_answers(&mut self, cx: &mut EventContext) {
        if let (Some(model), Some(plan)) = (&self.model, self.planning.plans.up()) {
            self.answers.advance(model, plan, self.command.context, cx);
        }
    }

    /// Somebody writes a question, and is about to wait. Not told to devices for every letter of several people.
    pub fn writing(&mut self, cx: &mut EventContext) {
        self.waited = cx.now;
        if cx.now.0 - self.announced.0 >= EXPECT_MILLIS {
            self.announce_work(cx);
        }
    }

    /// The devices of the running plan are about to get rows.
    fn announce_work(&mut self, cx: &mut EventContext) {
        self.announced = cx.now;
        let peers = self.planning.plans.active().map(Plan::peers).unwrap_or_default();
        peers.into_iter().for_each(|peer| cx.out.send(peer, Frame::Expect));
    }

    pub fn prompt(&mut self, asker: PeerId, prompt: PromptRequest, cx: &mut EventContext) {
        self.announce_work(cx);
        self.waited = cx.now;
        self.answers.ask(asker, prompt, cx);
        self.continue_answers(cx);
    }

    /// Some of an answer's pieces were lost on the way.
    pub fn resume(&self, asker: PeerId, request: RequestId, piece: u32, cx: &mut EventContext) {
        self.answers.resume(asker, request, piece, cx);
    }

    pub fn stop(&mut self, asker: PeerId, request: RequestId, cx: &mut EventContext) {
        self.answers.stop(asker, request, cx);
        self.after_answer(cx);
    }

    pub fn logits_result(&mut self, from: PeerId, reply: LogitsResult, cx: &mut EventContext) {
        if let Some(handover) = self.handover.as_mut().filter(|handover| handover.epoch == reply.epoch) {
            handover.completed(reply.conversation, reply.pass);
            self.try_commit(cx);
            self.continue_answers(cx);
            return;
        }
        let (Some(model), Some(plan)) = (&self.model, self.planning.plans.active()) else { return };
        if reply.epoch != plan.epoch || plan.stages.last().is_none_or(|last| last.peer != from) {
            return;
        }
        let conversation = reply.conversation;
        if let Some(reading) = self.answers.unexpected(conversation, plan) {
            let millis = self.planning.first_token_millis(model, &self.command, &cx.members, plan, reading);
            self.answers.expect(conversation, millis);
        }
        let good = self.answers.logits_result(reply, model, cx);
        let epoch = plan.epoch;
        self.passed.extend(self.answers.passed.take().map(|pass| (epoch, pass, cx.now)));
        if let Some(read) = self.answers.read.take() {
            self.planning.learn_prefill(model, &self.command, &cx.members, &read);
        }
        match good {
            true => self.after_answer(cx),
            false => self.blame(from, conversation, cx),
        }
    }

    /// Looks at what tokens took since the last look.
    fn learn(&mut self, members: &Members) {
        let passed = std::mem::take(&mut self.passed);
        let Some(model) = &self.model else { return };
        for (epoch, pass, at) in passed {
            if self.planning.plans.active().is_some_and(|plan| plan.epoch == epoch) {
                self.planning.learn(model, &self.command, members, &pass, at);
            }
        }
    }

    /// How the room is used, for plans that nobody is answered under while they are loaded.
    fn usage(&self) -> Usage {
        Usage { waits: self.answers.are_awaited(), waited: self.waited, tokens: self.answers.tokens }
    }

    fn after_answer(&mut self, cx: &mut EventContext) {
        if !self.answers.is_answering() && self.planning.take_put_off() {
            self.replan(cx);
        }
        self.try_commit(cx);
        self.continue_answers(cx);
    }

    /// A peer is back on the same session: frames on the way to it may be lost, so what is under way is sent again.
    pub fn back(&mut self, peer: PeerId, cx: &mut EventContext) {
        self.planning.plans.ask(peer, cx);
        self.resend(cx);
    }

    fn resend(&mut self, cx: &mut EventContext) {
        self.answers.resend();
        self.continue_answers(cx);
    }

    pub fn tick(&mut self, cx: &mut EventContext) {
        self.learn(&cx.members);
        if self.answers.are_awaited() {
            self.waited = cx.now;
        }
        if self.answers.is_stalled(cx.now) {
            let peers = self.planning.plans.active().map(|plan| plan.peers()).unwrap_or_default();
            peers.into_iter().for_each(|peer| self.planning.plans.ask(peer, cx));
            self.resend(cx);
        }
        for peer in self.away.give_up(cx.now) {
            self.answers.drop_asker(peer, cx);
        }
        self.planning.tick(cx);
        if let Some(stuck) = self.planning.plans.give_up_stuck(cx) {
            let name = cx.members.name(stuck);
            let sentence =
                format!("{name} gets no further with loading its part. The room plans anew and asks it again.");
            cx.out.notice(Severity::Warning, sentence);
            self.replan(cx);
        }
        if let Some(model) = self.model.clone() {
            if self.is_idle() {
                self.planning.time_alone(&model, cx);
            }
            let asked_again = cx.members.take_retries(cx.now);
            if self.planning.is_due(&model, &self.command, cx) || asked_again {
                self.replan(cx);
            }
        }
        self.after_answer(cx);
        let usage = self.usage();
        if let Some(model) = &self.model {
            let request = PlanRequest { model, command: &self.command, answering: self.answers.is_answering(), usage };
            self.planning.stand_by(request, cx);
            self.planning.look_for_help(request, cx);
        }
        self.refresh(false, cx);
    }

    /// Makes the room's picture anew and sends it where it changed.
    pub fn refresh(&mut self, at_once: bool, cx: &mut EventContext) {
        let counted = (self.view.tokens, self.counted);
        self.view = view::room(self.model.as_deref(), &self.command, &self.planning, &self.answers, &cx.members);
        // The count alone is no reason to send the picture more than once a second.
        if cx.now.0 - counted.1.0 < COUNT_MILLIS {
            self.view.tokens = counted.0;
        } else {
            self.counted = cx.now;
        }
        let due = match &self.sent {
            None => true,
            Some((view, at)) => {
                let waited = cx.now.0 - at.0;
                let urgent = || at_once || waited >= VIEW_MILLIS;
                let by_measures = || view::without_measures(view) == view::without_measures(&self.view);
                *view != self.view && (waited >= COUNT_MILLIS || urgent() && !by_measures())
            }
        };
        if due {
            self.sent = Some((self.view.clone(), cx.now));
            for (peer, member) in &cx.members.known {
                if member.admitted && *peer != cx.members.me {
                    cx.out.send(*peer, Frame::Room(Box::new(self.view.clone())));
                }
            }
            cx.out.act(Action::ViewChanged);
        }
    }

    /// A newcomer needs the picture now.
    pub fn greet(&self, peer: PeerId, cx: &mut EventContext) {
        cx.out.send(peer, Frame::Room(Box::new(self.view.clone())));
    }
}
