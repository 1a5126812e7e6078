//! Frames that arrive: whom they concern, and whether their sender may send them.

use potluck_plan::{Millis, PeerId};
use potluck_protocol::Frame;

use super::{Membership, Peer, SECOND_HOST};
use crate::{Action, Destination, RelayRoute};

impl Peer {
    pub(super) fn received(&mut self, route: RelayRoute, from: PeerId, frame: Frame, now: Millis) {
        if from == self.identity.peer || self.membership == Membership::Outside {
            return;
        }
        if self.members.heard(from)
            && let Some(coordinator) = &mut self.coordinator
        {
            coordinator.thawed(from, &mut self.members, now, &mut self.out);
        }
        match frame {
            Frame::Hello(hello) if hello.coordinator && self.coordinator.is_some() && self.earlier.contains(&route) => {
                self.turned_away(SECOND_HOST.to_owned());
            }
            Frame::Hello(hello) => {
                self.out.set_route(from, Some(route));
                self.welcome(from, hello, now);
            }
            Frame::Unknown => self.unknown(route, from, now),
            frame if self.out.peer_at(route) == Some(from) => self.frame(from, frame, now),
            // Whoever has not said hello on this connection is nobody yet, or was given up.
            Frame::Heartbeat { .. } => {
                self.out.act(Action::Send { to: Destination::Route(route), frame: Frame::Unknown });
            }
            _ => {}
        }
    }

    /// A peer had given us up, and what we sent it since is lost. We are still here.
    fn unknown(&mut self, route: RelayRoute, from: PeerId, now: Millis) {
        self.greet(route);
        if let Some(coordinator) = self.coordinator.as_mut().filter(|_| self.out.peer_at(route) == Some(from)) {
            coordinator.back(from, now, &mut self.out);
        }
    }

    pub(super) fn frame(&mut self, from: PeerId, frame: Frame, now: Millis) {
        let from_host = from == self.identity.peer || self.members.host() == Some(from);
        match frame {
            Frame::Hello(hello) => self.welcome(from, hello, now),
            Frame::Bye => self.give_up(from, now),
            Frame::Heartbeat { sent, status } => {
                let idle = self.is_idle(now);
                self.out.send(from, Frame::HeartbeatBack { sent, probed: 0, idle });
                if let (Some(member), Some(status)) = (self.members.known.get_mut(&from), status) {
                    member.hello.hidden = status.hidden;
                    member.status = status;
                }
            }
            Frame::Probe { sent, bytes } => {
                let (probed, idle) = (bytes.len() as u32, self.is_idle(now));
                self.out.send(from, Frame::HeartbeatBack { sent, probed, idle });
            }
            Frame::HeartbeatBack { sent, probed, idle } => {
                let idle = idle && self.is_idle(now);
                self.heard_back(from, sent, probed, idle, now);
            }
            Frame::Calibrate(model) if from_host => {
                self.worked = now;
                self.worker.calibrate(from, *model, &mut self.out);
            }
            Frame::Refused(sentence) if from_host => {
                self.membership = Membership::Outside;
                self.out.act(Action::Close { reason: Some(sentence) });
                self.out.act(Action::ViewChanged);
            }
            Frame::Room(view) if from_host => {
                self.membership = Membership::Inside;
                self.guest.room = Some(*view);
                self.out.act(Action::ViewChanged);
            }
            Frame::Prepare(prepare) if from_host => self.worker.prepare(from, *prepare, &mut self.out),
            Frame::Commit(epoch) if from_host => self.worker.commit(from, epoch, &mut self.out),
            Frame::StandBy(order) if from_host => self.worker.stand_by(from, *order, &mut self.out),
            Frame::Abandon(epoch) if from_host => self.worker.abandon(epoch, &mut self.out),
            Frame::Expect if from_host => self.out.act(Action::Expect),
            Frame::Answer(request, part) if from_host => {
                if let Some(frame) = self.guest.answer(request, part, now, &mut self.out) {
                    self.out.send(from, frame);
                }
            }
            Frame::Forward(forward) => self.worker.forward(forward, &mut self.out),
            Frame::ExpertCall(call) => self.worker.expert_call(from, call, &mut self.out),
            Frame::ExpertSum(sum) => self.worker.expert_sum(from, sum, &self.members, now, &mut self.out),
            Frame::Piece { id, failed, bytes } if from_host => {
                let bytes = failed.map_or(Ok(bytes), Err);
                self.out.act(Action::DeliverPiece { id, bytes });
            }
            other => self.coordinator_frame(from, other, now),
        }
    }

    /// Frames that only a coordinator understands, from those it let in.
    fn coordinator_frame(&mut self, from: PeerId, frame: Frame, now: Millis) {
        let admitted = self.members.get(from).is_some_and(|member| member.admitted);
        let (Some(coordinator), true) = (&mut self.coordinator, admitted) else { return };
        let (members, out) = (&mut self.members, &mut self.out);
        match frame {
            Frame::Prepared(epoch) => coordinator.prepared(from, epoch, members, now, out),
            Frame::PrepareFailed(epoch, fault) => coordinator.prepare_failed(from, epoch, fault, members, now, out),
            Frame::Calibrated(model, answer) => coordinator.calibrated(from, model, *answer, members, now, out),
            Frame::Committed(epoch) => coordinator.committed(from, epoch, now, out),
            Frame::LogitsResult(reply) => coordinator.logits_result(from, reply, members, now, out),
            Frame::StageFault(fault) => coordinator.fault(from, fault, members, now, out),
            Frame::Writing => coordinator.writing(now, out),
            Frame::Prompt(prompt) => coordinator.prompt(from, prompt, now, out),
            Frame::Resume(request, piece) => coordinator.resume(from, request, piece, out),
            Frame::Stop(request) => coordinator.stop(from, request, members, now, out),
            Frame::PieceRequest(request) => out.act(Action::ReadPiece { peer: from, request }),
            _ => {}
        }
    }
}
