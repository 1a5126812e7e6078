//! The coordinator: the room's model, its plan, its token logs and its answers.

mod answering;
mod answers;
mod away;
mod checkers;
mod chunk_size;
mod conversations;
mod credits;
mod deputy;
mod draft;
mod expected_tokens;
mod experts_view;
mod faults;
mod handover;
mod layer_checks;
mod logits;
mod multi_step;
mod plan_events;
mod planning;
mod published_view;
mod queue;
mod sending;
mod shown_answers;
mod token_log;
mod transcript;
mod view;

use std::collections::BTreeSet;
use std::sync::Arc;

use potluck_panel::{DraftDecision, DraftReport, WhyPlan};
use potluck_plan::{ConversationId, Millis, PeerId, Plan, PlanEpoch};
use potluck_planner::PlannerView;
use potluck_predict::ShadowWord;
use potluck_protocol::{
    DeputyChoice, Doors, Frame, Holding, Lineage, LogitsResult, ModelSource, PieceRequest, PromptRequest, Received,
    RequestId, RoomView, Sharing, StartId,
};

use crate::event::{HostCommand, OpenedModel};
use crate::event_context::EventContext;
use crate::inherited::Inherited;
use crate::limits;
use crate::members::{Member, Members};
use crate::refusal::Refusal;
use crate::{Action, Severity};

use answering::DecodePass;
use answers::Answers;
use away::AwayAskers;
use checkers::ToldCheckers;
use credits::Credits;
use deputy::Deputy;
use faults::Wrong;
use handover::Handover;
use layer_checks::LayerChecks;
use planning::{PlanRequest, Planning, Usage};
use published_view::PublishedView;

pub use deputy::Ownership;
#[cfg(feature = "testing")]
pub use planning::Searches;

pub(crate) struct Coordinator {
    pub command: HostCommand,
    model: Option<Arc<OpenedModel>>,
    planning: Planning,
    answers: Answers,
    credits: Credits,
    /// Answers that are being moved to the inactive plan.
    handover: Option<Handover>,
    away: AwayAskers,
    checkers: ToldCheckers,
    layer_checks: LayerChecks,
    /// When an answer was last awaited.
    waited: Millis,
    published: PublishedView,
    /// Measured tokens with their plan and time. They are evaluated at the next tick, not while the next token waits.
    passed: Vec<(PlanEpoch, DecodePass, Millis)>,
    /// When devices were last told that work is about to come.
    announced: Millis,
    deputy: Deputy,
    /// What another host knew of questions and answers, until the model is open.
    inherited: Option<Inherited>,
    /// How far askers have received its answers, if they said so before.
    received: Vec<(PeerId, RequestId, Received)>,
    /// Results came that it could not use, because its lease was over.
    missed: bool,
}

/// Askers that are remembered until the model is open.
const MAX_RECEIVED: usize = 256;

/// While somebody writes, devices are told this often that work is about to come.
const EXPECT_MILLIS: f64 = 500.0;

impl Coordinator {
    pub fn new(mut command: HostCommand, view: PlannerView, cx: &mut EventContext) -> Self {
        // Everybody can fetch what a relay or a link has.
        command.protect &= matches!(command.source, ModelSource::File { .. });
        cx.out.act(Action::OpenModel(command.source.clone()));
        let published = PublishedView::new(view::empty(cx.members.me, &command));
        Self {
            planning: Planning::new(command.last_epoch, view),
            command,
            model: None,
            answers: Answers::default(),
            credits: Credits::default(),
            handover: None,
            away: AwayAskers::default(),
            checkers: ToldCheckers::default(),
            layer_checks: LayerChecks::default(),
            waited: Millis(f64::MIN),
            published,
            passed: Vec::new(),
            announced: Millis(f64::MIN),
            deputy: Deputy::default(),
            inherited: None,
            received: Vec::new(),
            missed: false,
        }
    }

    /// Goes on with what another host knew. Who asked may be gone, and has some time to come back.
    pub fn inherit(&mut self, inherited: Inherited, cx: &mut EventContext) {
        for question in &inherited.questions {
            if let Some(start) = question.start.filter(|_| question.asker != cx.members.me) {
                self.away.leave(question.asker, start, cx.now);
            }
        }
        self.inherited = Some(inherited);
    }

    pub fn set_deputy(&mut self, choice: DeputyChoice) {
        self.command.deputy = choice;
    }

    /// Chooses the deputy and tells it what has changed about the room.
    pub fn choose_deputy(&mut self, doors: &Doors, cx: &mut EventContext) {
        let before = self.deputy.peer();
        self.deputy.choose(&self.command, doors, cx);
        if self.deputy.peer() != before {
            self.refresh(true, cx);
        }
    }

    /// Tells the deputy what became of questions and answers.
    pub fn inform_deputy(&mut self, cx: &mut EventContext) {
        // Until the model is open, only what was inherited is known.
        if self.inherited.is_none() {
            self.deputy.inform(&self.answers, cx);
        }
    }

    /// The relay has confirmed that this device hosts, as it was asked at this time.
    pub fn lease_renewed(&mut self, asked: Millis, cx: &mut EventContext) {
        self.deputy.renewed(asked);
        if self.deputy.may_write(cx.now) && std::mem::take(&mut self.missed) {
            self.resend(cx);
        }
    }

    pub fn epoch(&self) -> PlanEpoch {
        self.planning.plans.epoch
    }

    /// Milliseconds of a token of the running plan, as the planner predicts them.
    pub fn predicted_millis(&self) -> Option<f64> {
        Some(self.planning.plans.running()?.prediction.token_millis)
    }

    /// Why the room runs as it does; none before anything was decided.
    pub fn why(&self) -> Option<WhyPlan> {
        self.planning.why()
    }

    /// The epoch of the next plan.
    #[cfg(test)]
    pub fn next_epoch(&self, members: &Members) -> PlanEpoch {
        self.planning.plans.next_epoch(members)
    }

    /// The plan of this epoch, if results of it are awaited: it is the active one, or answers move to it.
    pub fn plan(&self, epoch: PlanEpoch) -> Option<&Plan> {
        let moves_to = self.handover.as_ref().is_some_and(|handover| handover.epoch == epoch);
        let inactive = self.planning.plans.prepared_plan().filter(|_| moves_to);
        self.planning.plans.active().into_iter().chain(inactive).find(|plan| plan.epoch == epoch)
    }

    pub fn opened(&mut self, model: Arc<OpenedModel>, cx: &mut EventContext) {
        if let Some(sentence) = Planning::kv_cache_refusal(&model, self.command.kv_cache) {
            // No device that comes later changes that.
            return self.open_failed(sentence, cx);
        }
        self.command.context = self.command.context.clamp(64, model.card.context.max(64));
        self.planning.plans.has_no_model = false;
        if let Some(inherited) = self.inherited.take() {
            self.answers.inherit(inherited, &model, self.command.context as usize, cx);
        }
        self.model = Some(model);
        self.replan(cx);
        for (asker, request, received) in std::mem::take(&mut self.received) {
            self.resume(asker, request, &received, cx);
        }
    }

    /// The model cannot be opened, or its bytes proved unusable when they were loaded. An active plan goes on.
    pub fn open_failed(&mut self, sentence: String, cx: &mut EventContext) {
        if self.planning.plans.active().is_some() {
            cx.out.notice(Severity::Warning, sentence);
            return;
        }
        // Nobody is asked to load it again.
        (self.model, self.inherited) = (None, None);
        self.planning.reason.clone_from(&sentence);
        self.planning.plans.has_no_model = true;
        self.answers.fail_all(&sentence, cx);
        cx.out.notice(Severity::Error, sentence);
    }

    pub fn set_share(&mut self, share: Sharing, cx: &mut EventContext) {
        self.command.sharing = share;
        self.replan(cx);
    }

    /// Members, contributions or the host's settings changed.
    pub fn replan(&mut self, cx: &mut EventContext) {
        let usage = self.usage();
        if let Some(model) = &self.model {
            let request = PlanRequest { model, command: &self.command, answering: self.answers.is_answering(), usage };
            if let Some(model) = self.planning.replan(request, cx) {
                self.model = Some(model);
            }
        }
    }

    /// A peer may read these bytes of the host's file. If the host protects its model, only the header, the list of hashes
    /// and the experts that the peer is to hold are sent, and nothing to whom holds none.
    pub fn may_read(&self, peer: PeerId, request: &PieceRequest) -> bool {
        let parts = self.model.as_ref().and_then(|model| model.parts.as_deref());
        !self.command.protect || parts.is_some_and(|parts| self.planning.may_read(peer, request, parts))
    }

    /// A peer's connection ended and is not back in time: what it held is lost, what it asked is kept for a while.
    pub fn gone(&mut self, peer: PeerId, member: &Member, cx: &mut EventContext) {
        self.away.leave(peer, member.hello.start, cx.now);
        if member.hello.contribution.is_some() {
            self.planning.leaves(peer, cx);
        }
        self.lost(peer, &format!("{} left.", member.hello.name), cx);
    }

    /// A peer's session is over, and with it everything it held and asked.
    pub fn left(&mut self, peer: PeerId, name: &str, cx: &mut EventContext) {
        self.answers.drop_asker(peer, cx);
        self.planning.leaves(peer, cx);
        self.lost(peer, &format!("{name} left."), cx);
    }

    /// A peer entered, or entered again.
    pub fn entered(&mut self, peer: PeerId, start: StartId, cx: &mut EventContext) {
        if self.away.is_another(peer, start) {
            self.answers.drop_asker(peer, cx);
        }
        self.answers.shown.remind(peer, cx);
    }

    /// A peer stays but contributes no more.
    pub fn withdrawn(&mut self, peer: PeerId, name: &str, cx: &mut EventContext) {
        self.lost(peer, &format!("{name} stopped lending."), cx);
    }

    fn lost(&mut self, peer: PeerId, why: &str, cx: &mut EventContext) {
        let had_part = self.planning.plans.active().is_some_and(|plan| plan.peers().contains(&peer));
        if self.planning.lose(peer, cx) {
            let reason = format!("{why} The others take over its part and the answer goes on.");
            self.recover(Some(peer), &reason, cx);
        } else {
            if had_part {
                cx.out.notice(Severity::Info, format!("{why} Others hold its experts too, so answers go on."));
            }
            self.planning.standbys.forget(peer);
            self.replan(cx);
        }
    }

    /// No answer is being given, so measurements are not disturbed by one.
    pub fn is_idle(&self) -> bool {
        !self.answers.is_answering()
    }

    /// Peers that the awaited answers need.
    pub fn awaited(&self) -> BTreeSet<PeerId> {
        let plan = self.planning.plans.needed().filter(|_| self.answers.are_awaited());
        plan.map(Plan::peers).unwrap_or_default()
    }

    fn continue_answers(&mut self, cx: &mut EventContext) {
        if !self.deputy.may_write(cx.now) {
            self.missed = true;
            return;
        }
        if let (Some(model), Some(plan)) = (&self.model, self.planning.plans.up()) {
            self.answers.advance(model, plan, self.command.context, cx);
        }
    }

    /// Somebody is writing a question. Limited, so that several people typing do not flood the devices.
    pub fn writing(&mut self, cx: &mut EventContext) {
        self.waited = cx.now;
        if cx.now.0 - self.announced.0 >= EXPECT_MILLIS {
            self.announce_work(cx);
        }
    }

    /// Tells the devices of the active plan that work is about to come.
    fn announce_work(&mut self, cx: &mut EventContext) {
        self.announced = cx.now;
        let peers = self.planning.plans.active().map(Plan::peers).unwrap_or_default();
        peers.into_iter().for_each(|peer| cx.out.send(peer, Frame::Expect));
    }

    pub fn prompt(&mut self, asker: PeerId, prompt: PromptRequest, cx: &mut EventContext) {
        if let Err(sentence) = limits::prompt(&prompt) {
            return Answers::reject(asker, prompt.request, &sentence, cx);
        }
        if self.planning.plans.has_no_model {
            return Answers::reject(asker, prompt.request, &Refusal::NoModel.to_string(), cx);
        }
        // A question that cannot fit is refused with a sentence, and costs nobody time.
        let fits = self.model.as_ref().map_or(Ok(()), |model| model.language.fits(&prompt, self.command.context));
        if let Err(sentence) = fits {
            return Answers::reject(asker, prompt.request, &sentence, cx);
        }
        if cx.members.standing(asker, cx.now).in_vain.is_spent(limits::IN_VAIN, cx.now) {
            return Answers::reject(asker, prompt.request, &Refusal::TooOftenTooLong.to_string(), cx);
        }
        self.writing(cx);
        self.answers.ask(asker, prompt, cx);
        self.continue_answers(cx);
    }

    /// An asker lost pieces of an answer, or meets another host.
    pub fn resume(&mut self, asker: PeerId, request: RequestId, received: &Received, cx: &mut EventContext) {
        if self.inherited.is_some() {
            self.received.retain(|(other, known, _)| (*other, *known) != (asker, request));
            if self.received.len() < MAX_RECEIVED && received.last.len() <= Received::MAX_LAST {
                self.received.push((asker, request, received.clone()));
            }
            return;
        }
        // One more is asked for in a moment.
        let may_ask =
            self.deputy.may_write(cx.now) && cx.members.standing(asker, cx.now).resumes.take(limits::RESUMES, cx.now);
        if may_ask && received.last.len() <= Received::MAX_LAST {
            self.answers.resume(asker, request, received, self.model.as_deref(), cx);
            self.after_answer(cx);
        }
    }

    pub fn stop(&mut self, asker: PeerId, request: RequestId, cx: &mut EventContext) {
        self.answers.stop(asker, request, cx);
        self.after_answer(cx);
    }

    pub fn logits_result(&mut self, from: PeerId, mut reply: LogitsResult, cx: &mut EventContext) {
        if !self.deputy.may_write(cx.now) {
            self.missed = true;
            return;
        }
        if let Some(handover) = self.handover.as_mut().filter(|handover| handover.epoch == reply.epoch) {
            handover.completed(reply.conversation, reply.pass);
            self.try_commit(cx);
            self.continue_answers(cx);
            return;
        }
        let (Some(model), Some(plan)) = (&self.model, self.planning.plans.active()) else { return };
        if !limits::are_stage_times(&reply.stage_millis, plan.stages.len()) {
            // Whichever stage made them up: nothing is learnt from them.
            reply.stage_millis.clear();
        }
        if reply.epoch != plan.epoch || plan.stages.last().is_none_or(|last| last.peer != from) {
            return;
        }
        let conversation = reply.conversation;
        if let Some(reading) = self.answers.unexpected(conversation, model, plan) {
            let millis = self.planning.first_token_millis(model, &self.command, &cx.members, plan, reading);
            self.answers.expect(conversation, millis);
        }
        if let Some(tokens) = self.answers.tokens_of(conversation, reply.pass) {
            self.credits.passed(plan, model.shape.hidden, tokens, &reply, &cx.members, cx.now);
        }
        let good = self.answers.logits_result(reply, model, cx);
        let epoch = plan.epoch;
        self.passed.extend(self.answers.passed.take().map(|pass| (epoch, pass, cx.now)));
        if let Some(read) = self.answers.read.take() {
            self.planning.learn_prefill(model, &self.command, &cx.members, &read);
        }
        if good { self.after_answer(cx) } else { self.blame(from, Wrong::Numbers, conversation, cx) }
    }

    /// A shadow on this device has said something of a conversation.
    pub fn foreseen(&mut self, conversation: ConversationId, word: &ShadowWord) {
        self.answers.foreseen(conversation, word);
    }

    /// Draft tokens so far.
    pub fn drafts(&self) -> DraftReport {
        self.answers.drafted
    }

    /// How many draft tokens were chosen last, and why.
    pub fn draft_decision(&self) -> Option<DraftDecision> {
        self.answers.draft_decision
    }

    /// Learns from the tokens measured since the last call.
    fn learn(&mut self, members: &Members) {
        let passed = std::mem::take(&mut self.passed);
        let Some(model) = &self.model else { return };
        for (epoch, pass, at) in passed {
            if self.planning.plans.active().is_some_and(|plan| plan.epoch == epoch) {
                self.planning.learn(model, &self.command, members, &pass, at);
            }
        }
    }

    /// How the room is used: decides whether a plan may interrupt it while it loads.
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

    /// A peer is back on the same session: frames to it may be lost. If tokens pass it, those in flight are sent again.
    pub fn back(&mut self, peer: PeerId, cx: &mut EventContext) {
        self.checkers.forget(peer);
        if self.planning.plans.active().is_some_and(|plan| plan.peers().contains(&peer)) {
            self.planning.plans.ask(peer, cx);
            self.planning.tell_residency(peer, cx);
            self.resend(cx);
        }
    }

    /// A device holds experts that it was told to load, or cannot.
    pub fn holding(&mut self, peer: PeerId, holding: Holding, cx: &mut EventContext) {
        self.planning.holding(peer, &holding, cx);
        self.refresh(false, cx);
    }

    fn resend(&mut self, cx: &mut EventContext) {
        self.answers.resend();
        self.continue_answers(cx);
    }

    pub fn tick(&mut self, cx: &mut EventContext) {
        self.learn(&cx.members);
        if let (Some(model), Some(plan)) = (&self.model, self.planning.plans.up()) {
            self.credits.reported(plan, &model.shape, &cx.members, cx.now);
        }
        if self.answers.are_awaited() {
            self.waited = cx.now;
        }
        // With experts on demand a chunk takes as long as its experts load.
        let waits_for_storage = self.planning.plans.active().is_some_and(Plan::is_on_demand);
        if !waits_for_storage && self.answers.is_stalled(cx.now) {
            let peers = self.planning.plans.active().map(|plan| plan.peers()).unwrap_or_default();
            peers.into_iter().for_each(|peer| self.planning.plans.ask(peer, cx));
            self.resend(cx);
        }
        for peer in self.away.give_up(cx.now) {
            self.answers.drop_asker(peer, cx);
        }
        self.planning.tick(cx);
        let mut has_replanned = false;
        if let Some(stuck) = self.planning.plans.give_up_stuck(cx) {
            let name = cx.members.name(stuck);
            let sentence =
                format!("{name} is stuck loading its part. The room makes a new plan and asks it again later.");
            cx.out.notice(Severity::Warning, sentence);
            self.replan(cx);
            has_replanned = true;
        }
        if let Some(model) = self.model.clone() {
            if self.is_idle() {
                self.planning.time_alone(&model, &self.command, cx);
            }
            let asked_again = cx.members.take_retries(cx.now);
            // Where there is no plan, all answers wait for one.
            let answering = self.answers.is_answering() && self.planning.plans.up().is_some();
            if self.planning.is_due((&model, &self.command), answering, cx) || asked_again {
                self.replan(cx);
                has_replanned = true;
            }
        }
        self.after_answer(cx);
        let usage = self.usage();
        if let Some(model) = &self.model {
            let request = PlanRequest { model, command: &self.command, answering: self.answers.is_answering(), usage };
            self.planning.replicate(request, cx);
            // One search is long enough for a tick.
            if !has_replanned {
                self.planning.take_slice(request, cx);
            }
        }
        self.refresh(false, cx);
    }

    /// When this wants to be woken, before the next tick.
    pub fn next_deadline(&self) -> Option<Millis> {
        let turn = self.answers.next_turn;
        self.planning.next_slice().into_iter().chain(turn).min_by(|a, b| a.0.total_cmp(&b.0))
    }

    /// A wake-up: searches go on, and the next question is rendered. The next tick shows what was found.
    pub fn check_timers(&mut self, cx: &mut EventContext) {
        if self.answers.next_turn.is_some_and(|turn| turn.0 <= cx.now.0) {
            self.answers.next_turn = None;
            self.continue_answers(cx);
        }
        let usage = self.usage();
        if let (Some(model), Some(_)) = (&self.model, self.planning.next_slice().filter(|next| next.0 <= cx.now.0)) {
            let request = PlanRequest { model, command: &self.command, answering: self.answers.is_answering(), usage };
            self.planning.take_slice(request, cx);
        }
    }

    pub fn view(&self) -> &RoomView {
        self.published.view()
    }

    /// Brings the room view up to date and sends it if it changed; `at_once`: without waiting for other changes.
    pub fn refresh(&mut self, at_once: bool, cx: &mut EventContext) {
        let known_plan = self.published.take_plan();
        let (planning, answers, credits) = (&self.planning, &self.answers, &self.credits);
        let mut view =
            view::room(self.model.as_deref(), &self.command, planning, answers, credits, &cx.members, known_plan);
        view.plan.checks = self.layer_checks.view().clone();
        view.deputy = self.deputy.peer();
        self.published.update(view, at_once, cx);
    }

    /// Tells each device that asks for experts elsewhere who may check whom.
    pub fn tell_checkers(&mut self, lineages: impl FnOnce() -> Vec<(PeerId, Lineage)>, cx: &mut EventContext) {
        let plans = self.planning.plans.active().into_iter().chain(self.planning.plans.prepared_plan());
        self.checkers.tell(plans, self.command.spot_checks, lineages, cx);
    }

    /// Sends a newcomer the room view. A peer that keeps saying hello gets it with the next change.
    pub fn greet(&mut self, peer: PeerId, cx: &mut EventContext) {
        self.checkers.forget(peer);
        self.published.forget(peer);
        if cx.members.standing(peer, cx.now).greetings.take(limits::GREETINGS, cx.now) {
            cx.out.send(peer, Frame::Room(Box::new(self.view().clone())));
        }
    }
}
