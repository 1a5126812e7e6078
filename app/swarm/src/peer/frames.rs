//! Dispatch of received frames, of those that their sender may send.

use potluck_plan::{PeerId, Plan, PlanEpoch};
use potluck_protocol::{Frame, PieceFault, PieceRequest};

use super::{Membership, Peer};
use crate::coordinator::Coordinator;
use crate::doorkeeper::Access;
use crate::executor;
use crate::limits;
use crate::may::{Plans, Refusal, SenderRole, may};
use crate::mutation::{Mutation, has_mutation};
use crate::worker::Worker;
use crate::{Action, Proof, RelayRoute};

/// The plans that this peer computes for, and those it made as the host.
struct Known<'a> {
    me: PeerId,
    worker: &'a Worker,
    coordinator: Option<&'a Coordinator>,
}

impl Plans for Known<'_> {
    fn me(&self) -> PeerId {
        self.me
    }

    fn hosts(&self) -> bool {
        self.coordinator.is_some()
    }

    fn on_device(&self, epoch: PlanEpoch) -> Option<&Plan> {
        self.worker.plan(epoch)
    }

    fn in_room(&self, epoch: PlanEpoch) -> Option<&Plan> {
        self.coordinator?.plan(epoch)
    }

    fn awaits_result(&self, epoch: PlanEpoch, call: u64, holder: PeerId) -> bool {
        self.worker.awaits_result(epoch, call, holder)
    }
}

impl Peer {
    pub(super) fn received(&mut self, route: RelayRoute, from: PeerId, frame: Frame) {
        let session = self.cx.out.sessions.get_mut(route, from).filter(|session| !session.refused);
        let Some(proof) = session.map(|session| session.proof).filter(|_| self.membership != Membership::Outside)
        else {
            return;
        };
        if let Err(refusal) = may(from, self.role(from, proof), &self.plans(), &frame)
            && !has_mutation(Mutation::HearAnyone)
        {
            self.trace.refused(&frame, refusal, self.cx.now);
            if let (Frame::ExpertCall(call), Refusal::NoSuchPlan) = (&frame, refusal) {
                // It comes too late, or too early. Whoever waits for it can ask somebody else at once.
                self.cx.out.send(from, executor::no_plan(call));
            }
            return;
        }
        if self.cx.members.heard(from)
            && let Some(coordinator) = &mut self.coordinator
        {
            coordinator.thawed(from, &mut self.cx);
        }
        if self.cx.members.host == Some(from) {
            self.heard_host();
        }
        match frame {
            Frame::Hello(hello) => {
                self.cx.out.set_route(from, Some(route));
                self.welcome(from, hello);
            }
            Frame::Unknown => self.unknown(from),
            // Also of a host that was given up.
            Frame::Closed(leaving) => self.host_leaves(from, leaving),
            frame if self.cx.out.route_of(from) == Some(route) => self.frame(from, frame),
            // It was given up, or has not said hello yet.
            Frame::Heartbeat { .. } => self.cx.out.act(Action::Send { to: route, frame: Frame::Unknown }),
            _ => {}
        }
    }

    fn plans(&self) -> Known<'_> {
        Known { me: self.identity.peer, worker: &self.worker, coordinator: self.coordinator.as_ref() }
    }

    /// A frame of this member would be heard now.
    pub fn hears(&self, from: PeerId, frame: &Frame) -> bool {
        may(from, SenderRole::Member, &self.plans(), frame).is_ok()
    }

    /// On the host whoever it let in is a member; elsewhere whoever has the secret that it gives them.
    fn role(&self, peer: PeerId, proof: Proof) -> SenderRole {
        match (&self.coordinator, proof) {
            // One that was replaced may still be there.
            (None, Proof::Host) if self.cx.members.host.is_none_or(|host| host == peer) => SenderRole::Host,
            (None, Proof::Group) => SenderRole::Member,
            (Some(_), _) => {
                match self.cx.members.get(peer).filter(|member| member.admitted).map(|member| member.access) {
                    Some(Access::Full) => SenderRole::Member,
                    Some(Access::Chat) => SenderRole::Chatter,
                    None => SenderRole::Stranger,
                }
            }
            _ => SenderRole::Stranger,
        }
    }

    /// A peer had given us up, so what we sent it since is lost. We are still here.
    fn unknown(&mut self, from: PeerId) {
        if let Some((_, session)) = self.cx.out.sessions.of(from) {
            session.greeted = false;
        }
        self.greet(from);
        if let Some(coordinator) = &mut self.coordinator {
            coordinator.back(from, &mut self.cx);
        }
    }

    pub(super) fn frame(&mut self, from: PeerId, frame: Frame) {
        match frame {
            Frame::Hello(hello) => self.welcome(from, hello),
            Frame::Bye => {
                self.give_up(from);
                self.stop_sending(from);
            }
            Frame::Heartbeat { sent, status } => {
                let idle = self.is_idle();
                self.cx.holders.heartbeat(from);
                self.cx.out.send(from, Frame::HeartbeatBack { sent, probed: 0, idle });
                if let (Some(member), Some(status)) = (self.cx.members.known.get_mut(&from), status.map(limits::status))
                {
                    member.hello.hidden = status.hidden;
                    member.status = status;
                }
            }
            Frame::Probe { sent, bytes } => {
                let (probed, idle) = (bytes.len() as u32, self.is_idle());
                self.cx.out.send(from, Frame::HeartbeatBack { sent, probed, idle });
            }
            Frame::HeartbeatBack { sent, probed, idle } => {
                let idle = idle && self.is_idle();
                self.heard_back(from, sent, probed, idle);
            }
            Frame::Calibrate(model) => {
                self.liveness.worked = self.cx.now;
                self.worker.calibrate(from, *model, &mut self.cx);
            }
            Frame::Refused(sentence) => self.turned_away(sentence),
            // An implausible room is not shown.
            Frame::Room(view) | Frame::RoomUpdate(_, view) if !limits::is_room(&view) => {}
            Frame::Room(view) => {
                self.keep_appointment(view.deputy);
                self.membership = Membership::Inside;
                self.guest.room = Some(*view);
                self.cx.out.act(Action::ViewChanged);
                if std::mem::take(&mut self.meets_host) {
                    self.guest.resume_all().into_iter().for_each(|frame| self.cx.out.send(from, frame));
                }
            }
            Frame::RoomUpdate(epoch, view) => {
                self.keep_appointment(view.deputy);
                if self.guest.update(epoch, *view) {
                    self.membership = Membership::Inside;
                    self.cx.out.act(Action::ViewChanged);
                }
            }
            Frame::Prepare(prepare) => self.worker.prepare(from, *prepare, &mut self.cx),
            Frame::Commit(epoch) => self.worker.commit(from, epoch, &mut self.cx),
            Frame::StandBy(order) => self.worker.stand_by(from, *order, &mut self.cx),
            Frame::Abandon(epoch) => self.worker.abandon(epoch, &mut self.cx),
            Frame::Expect => self.cx.out.act(Action::Expect),
            Frame::Answer(request, part) => {
                if let Some(frame) = self.guest.answer(request, part, &mut self.cx) {
                    self.cx.out.send(from, frame);
                }
            }
            Frame::Forward(forward) => self.worker.forward(from, forward, &mut self.cx),
            Frame::ExpertCall(call) => self.worker.expert_call(from, call, &mut self.cx),
            Frame::ExpertResult(result) => self.worker.expert_result(from, result, &mut self.cx),
            Frame::ExpertHint(hint) => self.worker.expert_hint(from, &hint, &mut self.cx),
            Frame::ExpertCancel(cancel) => self.worker.expert_cancel(from, cancel, &mut self.cx),
            Frame::Checkers(checkers) if checkers.lineages.len() <= limits::MAX_DEVICES => {
                self.cx.members.checkers = checkers.into();
            }
            Frame::Checkers(_) => {}
            Frame::CommitRows(range) => self.worker.commit_rows(range, &mut self.cx),
            Frame::RowsRequest(request) => self.worker.show_rows(request, &mut self.cx),
            Frame::Residency(residency) if !limits::is_residency(&residency) => {}
            Frame::Residency(residency) => self.worker.move_experts(&residency, &mut self.cx),
            Frame::Hold(order) => self.worker.hold(from, order, &mut self.cx),
            Frame::Deputy(succession) => self.appointed(succession),
            Frame::Follow(followed) => self.follow(*followed),
            Frame::Piece { id, failed, bytes } => {
                let bytes = failed.map_or(Ok(bytes), Err);
                self.cx.out.act(Action::DeliverPiece { id, bytes });
            }
            other => self.coordinator_frame(from, other),
        }
    }

    /// Frames that only a coordinator understands.
    fn coordinator_frame(&mut self, from: PeerId, frame: Frame) {
        let Some(coordinator) = &mut self.coordinator else { return };
        let cx = &mut self.cx;
        match frame {
            Frame::Prepared(epoch) => coordinator.prepared(from, epoch, cx),
            Frame::PrepareFailed(epoch, fault) => coordinator.prepare_failed(from, epoch, fault, cx),
            Frame::Calibrated(model, answer) => coordinator.calibrated(from, model, *answer, cx),
            Frame::Committed(epoch) => coordinator.committed(from, epoch, cx),
            Frame::LogitsResult(reply) => coordinator.logits_result(from, reply, cx),
            Frame::StageFault(fault) => coordinator.fault(from, fault, cx),
            Frame::Holding(holding) => coordinator.holding(from, holding, cx),
            Frame::RowHashes(hashes) => coordinator.row_hashes(from, hashes, cx),
            Frame::Rows(rows) => coordinator.rows(from, rows, cx),
            Frame::Writing => coordinator.writing(cx),
            Frame::Prompt(prompt) => coordinator.prompt(from, prompt, cx),
            Frame::Resume(request, received) => coordinator.resume(from, request, &received, cx),
            Frame::Stop(request) => coordinator.stop(from, request, cx),
            Frame::PieceRequest(request) => self.read_piece(from, request),
            _ => {}
        }
    }

    fn read_piece(&mut self, peer: PeerId, request: PieceRequest) {
        let may_read = self.coordinator.as_ref().is_some_and(|coordinator| coordinator.may_read(peer, &request));
        let pieces = &mut self.cx.members.standing(peer, self.cx.now).pieces;
        let fault = match () {
            () if *pieces >= limits::MAX_PIECES || request.len > PieceRequest::MAX_LEN => PieceFault::TooMuch,
            () if !may_read => PieceFault::Kept,
            () => {
                *pieces += 1;
                return self.cx.out.act(Action::ReadPiece { peer, request });
            }
        };
        self.cx.out.send(peer, Frame::Piece { id: request.id, failed: Some(fault), bytes: Vec::new() });
    }
}
