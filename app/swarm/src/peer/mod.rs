//! One peer: it routes events to its coordinator, worker and guest parts.

mod admission;
mod frames;
mod liveness;
mod presence;
mod putting_out;
mod renewing;
mod running_choices;
mod succeeding;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use potluck_panel::{Decision, DraftReport, WhyPlan};
use potluck_plan::{Millis, PeerId, PlanEpoch};
use potluck_planner::{PlannerView, see_all};
use potluck_predict::ForesightReport;
use potluck_protocol::{Contribution, Doors, Frame, LoadReport, PieceFault, PromptRequest, RequestId, RoomView};

use crate::coordinator::Coordinator;
use crate::doorkeeper::Doorkeeper;
use crate::engine_kv_cache::EngineKvCache;
use crate::event::{HintOptions, Identity, OpenedModel};
use crate::event_context::EventContext;
use crate::experts::Holders;
use crate::guest::Guest;
use crate::inherited::Inherited;
use crate::limits;
use crate::lineages::lineages;
use crate::members::Members;
use crate::outbox::Outbox;
use crate::own_biases::OwnBiases;
use crate::sessions::Session;
use crate::trace::{Trace, TraceLine, placement};
use crate::worker::Worker;
use crate::{Action, Event, Proof};

use liveness::Liveness;
use running_choices::RunningChoices;
use succeeding::Appointment;

/// A driver's timers may be this much too soon.
const TOO_SOON_MILLIS: f64 = 2.0;

/// Whether this peer is in a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Membership {
    /// In no room.
    Outside,
    /// Connecting, or waiting for the host to let it in.
    Waiting,
    /// In.
    Inside,
}

/// What the page shows of a peer.
#[derive(Clone, Debug)]
pub struct SwarmView<'a> {
    /// Whether it is in a room.
    pub membership: Membership,
    /// It opened the room.
    pub coordinator: bool,
    /// What it contributes.
    pub contribution: Option<Contribution>,
    /// The room view.
    pub room: Option<&'a RoomView>,
    /// What it is loading.
    pub loading: Option<LoadReport>,
    /// What came of the hints that its stage sends to holders with slots.
    pub hints: Option<ForesightReport>,
    /// Draft tokens of its answers, on the host.
    pub drafts: Option<DraftReport>,
    /// Who may come in, on the host.
    pub doors: Option<&'a Doors>,
    /// Newest plan epoch it has heard of; a host keeps it over reloads.
    pub epoch: PlanEpoch,
    /// Unfinished questions of this tab.
    pub pending: Vec<RequestId>,
}

/// A peer's state machine.
pub struct Peer {
    identity: Identity,
    membership: Membership,
    hidden: bool,
    connected: bool,
    /// Since when.
    connected_at: Millis,
    /// A host has not been told yet how far its answers were received.
    meets_host: bool,
    /// The host made this peer its deputy.
    deputy: Option<Appointment>,
    /// What it knew as the deputy, while it takes over.
    inheritance: Option<Inherited>,
    /// It takes over, and the relay has not confirmed that yet.
    claim: Option<Appointment>,
    worker: Worker,
    guest: Guest,
    coordinator: Option<Coordinator>,
    /// Used while this peer hosts.
    doorkeeper: Doorkeeper,
    cx: EventContext,
    /// What the planner sees where this peer hosts.
    planner_view: PlannerView,
    trace: Trace,
    liveness: Liveness,
    running_choices: RunningChoices,
    /// The next wake-up that the driver was asked for.
    wake: Option<Millis>,
}

impl Peer {
    /// A peer outside of any room.
    pub fn new(identity: Identity) -> Self {
        let me = identity.peer;
        let mut members = Members::new(me);
        members.met(me, identity.device);
        Self {
            identity,
            membership: Membership::Outside,
            hidden: false,
            connected: false,
            connected_at: Millis(f64::MAX),
            meets_host: false,
            deputy: None,
            inheritance: None,
            claim: None,
            worker: Worker::default(),
            guest: Guest::default(),
            coordinator: None,
            doorkeeper: Doorkeeper::default(),
            cx: EventContext {
                now: Millis(f64::MIN),
                members,
                holders: Holders::default(),
                hints: HintOptions::default(),
                kv_cache: EngineKvCache::default(),
                biases: OwnBiases::default(),
                out: Outbox::new(me),
            },
            planner_view: see_all,
            trace: Trace::default(),
            liveness: Liveness::default(),
            running_choices: RunningChoices::default(),
            wake: None,
        }
    }

    /// How this device's stages tell holders with slots what they will probably call, from the next plan on.
    #[must_use]
    pub fn with_hints(mut self, hints: HintOptions) -> Self {
        self.set_hints(hints);
        self
    }

    /// The same of a peer that runs.
    pub fn set_hints(&mut self, hints: HintOptions) {
        self.cx.hints = hints;
    }

    /// What the planner sees of what was measured, where this peer hosts.
    #[must_use]
    pub fn with_planner_view(mut self, view: PlannerView) -> Self {
        self.planner_view = view;
        self
    }

    /// Takes one event and returns the actions it causes, to be performed in order.
    pub fn on(&mut self, event: Event, now: Millis) -> Vec<Action> {
        self.cx.now = now;
        self.trace.event(&event, now);
        self.handle(event);
        if let Some(coordinator) = &mut self.coordinator {
            coordinator.check_layers(&mut self.worker, &mut self.cx);
        }
        while let Some(frame) = self.cx.out.next_own() {
            self.trace.own(&frame, now);
            self.frame(self.identity.peer, frame);
        }
        self.worker.start(&mut self.cx);
        if let Some(coordinator) = &mut self.coordinator {
            coordinator.inform_deputy(&mut self.cx);
        }
        self.log_wrong_numbers();
        if let Some(doors) = self.doorkeeper.take_change(now) {
            self.cx.out.act(Action::DoorsChanged(Box::new(doors)));
            self.cx.out.act(Action::ViewChanged);
        }
        self.ask_to_be_woken();
        let notes = std::mem::take(&mut self.cx.out.notes);
        notes.into_iter().for_each(|wait| self.trace.experts(wait, now));
        let decisions = std::mem::take(&mut self.cx.out.decisions);
        decisions.into_iter().for_each(|decision| self.trace.decision(decision, now));
        let actions = std::mem::take(&mut self.cx.out.actions);
        actions.iter().for_each(|action| self.trace.action(action, now));
        actions
    }

    /// Asks for the next wake-up, unless one comes before it is needed.
    fn ask_to_be_woken(&mut self) {
        let now = self.cx.now;
        self.wake.take_if(|wake| wake.0 <= now.0);
        let searches = self.coordinator.as_ref().and_then(Coordinator::next_deadline);
        let deadlines = self.worker.next_deadline().into_iter().chain(searches);
        let Some(at) = deadlines.min_by(|a, b| a.0.total_cmp(&b.0)) else { return };
        if self.wake.is_none_or(|wake| at.0 < wake.0) {
            self.wake = Some(at);
            self.cx.out.act(Action::WakeAt(at));
        }
    }

    /// What the page shows.
    pub fn view(&self) -> SwarmView<'_> {
        SwarmView {
            membership: self.membership,
            coordinator: self.coordinator.is_some(),
            contribution: self.worker.contribution,
            room: match &self.coordinator {
                Some(coordinator) => Some(coordinator.view()),
                None => self.guest.room.as_ref(),
            },
            loading: self.worker.loading,
            hints: self.worker.hints(),
            drafts: self.coordinator.as_ref().map(Coordinator::drafts),
            doors: self.coordinator.as_ref().map(|_| self.doorkeeper.doors()),
            epoch: self.epoch(),
            pending: self.guest.pending(),
        }
    }

    /// Keeps so many lines of the recording.
    #[must_use]
    pub fn with_trace(mut self, lines: usize) -> Self {
        self.trace.keep(lines);
        self
    }

    /// Has the recording say what the state machine cannot know.
    pub fn note(&mut self, what: String, now: Millis) {
        self.trace.note(what, now);
    }

    /// The last events and actions, and where experts lie now.
    pub fn trace(&self) -> Vec<TraceLine> {
        let plan = self.worker.running();
        self.trace
            .lines()
            .into_iter()
            .cloned()
            .chain(plan.into_iter().flat_map(|plan| placement(&plan.stages, self.cx.now)))
            .collect()
    }

    /// How many decisions were recorded.
    pub fn decided(&self) -> u64 {
        self.trace.decided()
    }

    /// The decisions after the first `known` ones, as far as the recording keeps them, oldest first.
    pub fn decisions_after(&self, known: u64) -> Vec<&Decision> {
        self.trace.decisions_after(known)
    }

    /// Why the room runs as it does, on its host.
    pub fn why(&self) -> Option<WhyPlan> {
        self.coordinator.as_ref()?.why()
    }

    /// What a member is called.
    pub fn name_of(&self, peer: PeerId) -> String {
        self.cx.members.name(peer)
    }

    /// Milliseconds of a token of the running plan as the planner predicts them: from devices, links and holders, without
    /// this plan's tokens, which correct what is shown.
    pub fn predicted_millis(&self) -> Option<f64> {
        self.coordinator.as_ref()?.predicted_millis()
    }

    /// What this peer hosts.
    #[cfg(feature = "testing")]
    pub(crate) fn hosted(&self) -> Option<(&Coordinator, &Members)> {
        self.coordinator.as_ref().map(|coordinator| (coordinator, &self.cx.members))
    }

    /// The host found this peer's results wrong, once or more often.
    pub fn has_blamed(&self, peer: PeerId) -> bool {
        self.cx.members.has_blamed(peer)
    }

    /// A plan that computes here, or is ready to, gives the peer a part as well.
    pub fn is_in_plan_with(&self, peer: PeerId) -> bool {
        self.worker.plans().any(|plan| plan.peers().contains(&peer))
    }

    fn epoch(&self) -> PlanEpoch {
        let coordinator = self.coordinator.as_ref().map(Coordinator::epoch).unwrap_or_default();
        self.worker.newest_epoch.max(coordinator)
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Host(command) => self.host(command),
            Event::Join => self.join(),
            Event::Contribute(contribution) => self.contribute(contribution),
            Event::StopContributing => self.stop_contributing(),
            Event::Leave(leaving) => self.leave(leaving),
            Event::Rename(name) => {
                self.identity.name = name;
                self.announce();
            }
            Event::Visibility { hidden } => {
                self.hidden = hidden;
                self.announce();
            }
            Event::Admit { peer, allow } => self.admit(peer, allow),
            Event::Remove(peer) => self.remove(peer),
            Event::Ban(peer) => self.ban(peer),
            Event::Unban(device) => self.unban(device),
            Event::Invite(invite) => self.invite(invite),
            Event::Revoke(id) => self.revoke(id),
            Event::Renew => self.renew(),
            Event::DoorsKept(link) => self.doors_kept(link),
            Event::DoorsLost(link) => self.doors_lost(link),
            Event::SetSharing(share) => {
                if let Some(coordinator) = &mut self.coordinator {
                    coordinator.set_share(share, &mut self.cx);
                }
            }
            Event::SetDeputy(choice) => {
                if let Some(coordinator) = &mut self.coordinator {
                    coordinator.set_deputy(choice);
                    coordinator.choose_deputy(self.doorkeeper.doors(), &mut self.cx);
                }
            }
            Event::Writing => self.send_host(Frame::Writing),
            Event::Prompt(prompt) => self.prompt(prompt),
            Event::Stop(request) => self.send_host(Frame::Stop(request)),
            Event::Connected => self.connected(),
            Event::PeerConnected { route, peer, device, proof, at } => {
                self.cx.members.met(peer, device);
                self.doorkeeper.hear_time(at, self.cx.now);
                self.peer_connected(route, Session::new(peer, device, proof, at));
            }
            Event::RouteLeft(route) => self.route_left(route),
            Event::Replaced => self.replaced(),
            Event::Superseded => self.step_down(),
            Event::HostPresent => self.host_present(),
            Event::LeaseRenewed { asked } => {
                if let Some(coordinator) = &mut self.coordinator {
                    coordinator.lease_renewed(asked, &mut self.cx);
                }
            }
            Event::Disconnected => self.disconnected(),
            Event::Frame { route, from, frame } => self.received(route, from, frame),
            Event::ModelOpened(model) => self.model_opened(model),
            Event::ModelFailed(sentence) => {
                if let Some(coordinator) = &mut self.coordinator {
                    coordinator.open_failed(sentence, &mut self.cx);
                    coordinator.refresh(true, &mut self.cx);
                }
            }
            Event::LoadProgress { epoch, report, used } => {
                self.liveness.worked = self.cx.now;
                self.worker.progress(epoch, report, used, &mut self.cx);
            }
            Event::Loaded(epoch) => self.worker.loaded(epoch, &mut self.cx),
            Event::LoadFailed(epoch, fault) => self.worker.load_failed(epoch, fault, &mut self.cx),
            Event::Computed(computed) => {
                self.liveness.worked = self.cx.now;
                let replayed = self.worker.computed(computed, &mut self.cx);
                if let (Some((ticket, outcome)), Some(coordinator)) = (replayed, &mut self.coordinator) {
                    coordinator.replayed(ticket, outcome, &mut self.worker, &mut self.cx);
                }
            }
            Event::Foreseen(on_engine, word) => {
                let conversation = self.worker.foreseen(on_engine, &word, &mut self.cx);
                if let (Some(conversation), Some(coordinator)) = (conversation, &mut self.coordinator) {
                    coordinator.foreseen(conversation, &word);
                }
            }
            Event::Calibrated(model, runs) => {
                self.liveness.worked = self.cx.now;
                self.worker.calibrated(model, runs, &mut self.cx);
            }
            Event::DeviceLost(sentence) => self.worker.device_lost(&sentence, &mut self.cx),
            Event::PieceWanted(request) => self.send_host(Frame::PieceRequest(request)),
            Event::PieceRead { peer, id, bytes } => self.piece_read(peer, id, bytes),
            Event::Tick => self.tick(),
            Event::Wake => {
                // It may be one that was asked for before a sooner one, while another is still to come.
                let now = self.cx.now;
                self.wake.take_if(|wake| wake.0 <= now.0 + TOO_SOON_MILLIS);
                self.worker.check_timers(&mut self.cx);
                if let Some(coordinator) = &mut self.coordinator {
                    coordinator.check_timers(&mut self.cx);
                }
            }
        }
    }

    fn contribute(&mut self, contribution: Contribution) {
        self.worker.contribute(contribution, &mut self.cx);
        self.announce();
    }

    fn stop_contributing(&mut self) {
        self.worker.stop(&mut self.cx);
        self.announce();
        let me = self.identity.peer;
        self.stopped_contributing(me);
    }

    fn prompt(&mut self, prompt: PromptRequest) {
        let request = prompt.request;
        let host = match &self.coordinator {
            Some(_) => Some(self.identity.peer),
            None => self.cx.members.host().filter(|_| self.membership == Membership::Inside),
        };
        let Some(host) = host else {
            self.guest.fail(
                request,
                "There is no host in the room to answer. Wait for it, or host a model.",
                &mut self.cx,
            );
            return;
        };
        if let Err(sentence) = limits::prompt(&prompt) {
            self.guest.refuse(request, &sentence, &mut self.cx);
            return;
        }
        self.guest.ask(prompt.clone(), self.cx.now);
        self.cx.out.send(host, Frame::Prompt(prompt));
        self.cx.out.act(Action::ViewChanged);
    }

    fn send_host(&mut self, frame: Frame) {
        let host = if self.coordinator.is_some() { Some(self.identity.peer) } else { self.cx.members.host() };
        if let Some(host) = host {
            self.cx.out.send(host, frame);
        }
    }

    fn model_opened(&mut self, model: Arc<OpenedModel>) {
        if let Some(coordinator) = &mut self.coordinator {
            coordinator.opened(model, &mut self.cx);
            coordinator.refresh(true, &mut self.cx);
        }
    }

    fn piece_read(&mut self, peer: PeerId, id: u64, bytes: Result<Vec<u8>, String>) {
        let pieces = &mut self.cx.members.standing(peer, self.cx.now).pieces;
        *pieces = pieces.saturating_sub(1);
        let failed = |sentence| (Vec::new(), Some(PieceFault::Failed(sentence)));
        let (bytes, failed) = bytes.map_or_else(failed, |bytes| (bytes, None));
        self.cx.out.send(peer, Frame::Piece { id, failed, bytes });
    }

    fn tick(&mut self) {
        if self.membership == Membership::Outside {
            return;
        }
        let me = self.identity.peer;
        let listened = self.liveness.tick(self.cx.now);
        self.cx.members.listened(listened);
        self.cx.members.heard(me);
        if let (Some(status), Some(member)) = (self.status(), self.cx.members.known.get_mut(&me)) {
            member.status = status;
        }
        if self.connected {
            let awaited = self.coordinator.as_ref().map(Coordinator::awaited).unwrap_or_default();
            self.cx.members.cut_grace_short(awaited, self.cx.now);
            for (peer, member) in self.cx.members.give_up(self.cx.now) {
                self.stop_sending(peer);
                self.gone(peer, &member);
            }
            self.beat();
            if let Some(coordinator) = &mut self.coordinator {
                coordinator.give_up_frozen(&mut self.cx);
            }
        }
        if self.membership == Membership::Inside && self.coordinator.is_none() {
            self.guest.overdue(self.cx.now).into_iter().for_each(|frame| self.send_host(frame));
        }
        if self.membership == Membership::Waiting {
            self.guest.fail_abandoned(&mut self.cx);
        }
        self.look_after_host();
        self.worker.check_timers(&mut self.cx);
        if let Some(coordinator) = &mut self.coordinator {
            coordinator.look_who_is_checked(&self.worker, &mut self.cx);
            coordinator.tick(&mut self.cx);
            coordinator.choose_deputy(self.doorkeeper.doors(), &mut self.cx);
        }
        self.tell_checkers();
        self.record_running_choices();
    }

    /// On the host: says who may check whose answers, where that has changed.
    fn tell_checkers(&mut self) {
        let Some(coordinator) = &mut self.coordinator else { return };
        let (me, own) = (self.identity.peer, self.identity.device);
        let mut members = vec![(me, own, Proof::Host)];
        for peer in self.cx.members.known.iter().filter(|(_, member)| member.admitted).map(|(peer, _)| *peer) {
            let session = self.cx.out.sessions.of(peer);
            members.extend(session.map(|(_, session)| (peer, session.device, session.proof)));
        }
        coordinator.tell_checkers(|| lineages(own, &members, self.doorkeeper.doors()), &mut self.cx);
    }

    fn record_running_choices(&mut self) {
        let Self { cx, running_choices, identity, .. } = self;
        let decisions = &mut cx.out.decisions;
        if let Some(member) = cx.members.known.get(&identity.peer) {
            let is_late = |peer| cx.holders.is_overtaken(peer, cx.now);
            running_choices.holders(&member.status.holders, is_late, decisions);
        }
        running_choices.prediction(self.worker.hints(), decisions);
        running_choices.drafts(self.coordinator.as_ref().and_then(Coordinator::draft_decision), cx.now, decisions);
    }
}
