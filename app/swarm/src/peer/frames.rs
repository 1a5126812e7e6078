//! Dispatch of received frames, and which of them their sender may send.

use potluck_plan::PeerId;
use potluck_protocol::Frame;

use super::{Membership, Peer};
use crate::{Action, RelayRoute};

impl Peer {
    pub(super) fn received(&mut self, route: RelayRoute, from: PeerId, frame: Frame) {
        let session = self.cx.out.sessions.get_mut(route, from).filter(|session| !session.refused);
        if session.is_none() || self.membership == Membership::Outside {
            return;
        }
        if self.cx.members.heard(from)
            && let Some(coordinator) = &mut self.coordinator
        {
            coordinator.thawed(from, &mut self.cx);
        }
        match frame {
            Frame::Hello(hello) => {
                self.cx.out.set_route(from, Some(route));
                self.welcome(from, hello);
            }
            Frame::Unknown => self.unknown(from),
            frame if self.cx.out.route_of(from) == Some(route) => self.frame(from, frame),
            // It was given up, or has not said hello yet.
            Frame::Heartbeat { .. } => self.cx.out.act(Action::Send { to: route, frame: Frame::Unknown }),
            _ => {}
        }
    }

    /// A peer had given us up, so what we sent it since is lost. We are still here.
    fn unknown(&mut self, from: PeerId) {
        if let Some((_, session)) = self.cx.out.sessions.of(from) {
            session.greeted = false;
        }
        self.greet(from);
        if let Some(coordinator) = self.coordinator.as_mut().filter(|_| self.cx.out.route_of(from).is_some()) {
            coordinator.back(from, &mut self.cx);
        }
    }

    pub(super) fn frame(&mut self, from: PeerId, frame: Frame) {
        let from_host = from == self.identity.peer || self.cx.members.host() == Some(from);
        match frame {
            Frame::Hello(hello) => self.welcome(from, hello),
            Frame::Bye => {
                self.give_up(from);
                self.stop_sending(from);
            }
            Frame::Heartbeat { sent, status } => {
                let idle = self.is_idle();
                self.cx.out.send(from, Frame::HeartbeatBack { sent, probed: 0, idle });
                if let (Some(member), Some(status)) = (self.cx.members.known.get_mut(&from), status) {
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
            Frame::Calibrate(model) if from_host => {
                self.liveness.worked = self.cx.now;
                self.worker.calibrate(from, *model, &mut self.cx);
            }
            Frame::Refused(sentence) if from_host => {
                self.membership = Membership::Outside;
                self.cx.out.act(Action::Close { reason: Some(sentence) });
                self.cx.out.act(Action::ViewChanged);
            }
            Frame::Room(view) if from_host => {
                self.membership = Membership::Inside;
                self.guest.room = Some(*view);
                self.cx.out.act(Action::ViewChanged);
            }
            Frame::Prepare(prepare) if from_host => self.worker.prepare(from, *prepare, &mut self.cx),
            Frame::Commit(epoch) if from_host => self.worker.commit(from, epoch, &mut self.cx),
            Frame::StandBy(order) if from_host => self.worker.stand_by(from, *order, &mut self.cx),
            Frame::Abandon(epoch) if from_host => self.worker.abandon(epoch, &mut self.cx),
            Frame::Expect if from_host => self.cx.out.act(Action::Expect),
            Frame::Answer(request, part) if from_host => {
                if let Some(frame) = self.guest.answer(request, part, &mut self.cx) {
                    self.cx.out.send(from, frame);
                }
            }
            Frame::Forward(forward) => self.worker.forward(from, forward, &mut self.cx),
            Frame::ExpertCall(call) => self.worker.expert_call(from, call, &mut self.cx),
            Frame::ExpertSum(sum) => self.worker.expert_sum(from, sum, &mut self.cx),
            Frame::Piece { id, failed, bytes } if from_host => {
                let bytes = failed.map_or(Ok(bytes), Err);
                self.cx.out.act(Action::DeliverPiece { id, bytes });
            }
            other => self.coordinator_frame(from, other),
        }
    }

    /// Frames that only a coordinator understands, from those it let in.
    fn coordinator_frame(&mut self, from: PeerId, frame: Frame) {
        let admitted = self.cx.members.get(from).is_some_and(|member| member.admitted);
        let (Some(coordinator), true) = (&mut self.coordinator, admitted) else { return };
        let cx = &mut self.cx;
        match frame {
            Frame::Prepared(epoch) => coordinator.prepared(from, epoch, cx),
            Frame::PrepareFailed(epoch, fault) => coordinator.prepare_failed(from, epoch, fault, cx),
            Frame::Calibrated(model, answer) => coordinator.calibrated(from, model, *answer, cx),
            Frame::Committed(epoch) => coordinator.committed(from, epoch, cx),
            Frame::LogitsResult(reply) => coordinator.logits_result(from, reply, cx),
            Frame::StageFault(fault) => coordinator.fault(from, fault, cx),
            Frame::Writing => coordinator.writing(cx),
            Frame::Prompt(prompt) => coordinator.prompt(from, prompt, cx),
            Frame::Resume(request, piece) => coordinator.resume(from, request, piece, cx),
            Frame::Stop(request) => coordinator.stop(from, request, cx),
            Frame::PieceRequest(request) => cx.out.act(Action::ReadPiece { peer: from, request }),
            _ => {}
        }
    }
}
