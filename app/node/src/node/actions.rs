//! Feeds events to the state machine, and performs its actions.

use potluck_panel as panel;
use potluck_protocol::Frame;
use potluck_swarm::{Action, Event, RelayRoute};

use super::Node;
use super::doors::EARLIER_LINKS;
use crate::room::Members;
use crate::status::notice_level;

impl Node {
    /// The state machine handles an event.
    pub(super) fn event(&mut self, event: Event) {
        if matches!(event, Event::Tick) {
            self.with_members(Members::tick);
            if self.compute.device.lost() {
                self.device_lost();
            }
        }
        if let Event::PeerConnected { peer, device, .. } = event {
            self.devices.met(peer, device);
            self.page.mark_changed();
        }
        let Some(peer) = &mut self.peer else { return };
        let actions = peer.on(event, self.platform.clock.now());
        if self.decision_log.follow(peer) {
            self.page.mark_changed();
        }
        // Frames that follow one another go together, and none waits for anything else.
        let mut frames = Vec::new();
        for action in actions {
            match action {
                Action::Send { to, frame } => frames.push((to, frame)),
                action => {
                    self.send(std::mem::take(&mut frames));
                    self.perform(action);
                }
            }
        }
        self.send(frames);
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::Send { to, frame } => self.send(vec![(to, frame)]),
            Action::OpenModel(source) => self.open_model(source),
            Action::Load(request) => self.start_load(request),
            Action::Calibrate { model, budget } => self.calibrate(model, budget),
            Action::LetIn(peer) => self.with_members(|members| members.let_in(peer)),
            Action::PutOut(route) => self.with_members(|members| members.put_out(route)),
            Action::Admitted(peer) => self.with_members(|members| members.admit(peer)),
            Action::Regroup(generation) => self.with_members(|members| members.regroup(generation)),
            Action::Renewed { link, generation } => {
                self.with_members(|members| members.renew(link, generation));
                if let Some((room, key)) = self.hosting.owner().map(|owner| (owner.key.room(), owner.link_key(link))) {
                    self.link_renewed(&room, key);
                }
            }
            Action::GiveRenewed(peer) => self.with_members(|members| members.give_renewed(peer)),
            Action::DoorsChanged(doors) => {
                let (revoked, earlier) = (doors.revoked(), doors.earlier_links(EARLIER_LINKS));
                self.with_members(|members| members.set_doors(doors.link, revoked, earlier));
                self.page.send(panel::ToPage::Doors(doors));
            }
            Action::Unload => {
                self.tasks.abort_load();
                self.compute.unload();
            }
            Action::Expect => self.compute.keep_alive.expect_tokens(),
            Action::Compute(work) => self.compute.submit(work),
            Action::Cancel(ticket) => self.compute.cancel(ticket),
            Action::LoadAhead(experts) => self.compute.on_demand.load_ahead(experts),
            Action::Foresee(wanted) => self.compute.shadows.foresee(wanted),
            Action::WakeAt(at) => self.wake_at(at),
            Action::Forget(conversation) => self.compute.forget(conversation),
            Action::Answer(request, part) => {
                self.page.send(panel::ToPage::Answer { request, event: part });
            }
            Action::Notice { severity, sentence, condition } => {
                self.notice_of(notice_level(severity), sentence, condition);
            }
            Action::ViewChanged => self.page.mark_changed(),
            Action::TakeOver(succession) => self.take_over(*succession),
            Action::StepDown => self.step_down(),
            Action::Close { reason } => {
                self.membership.close(reason);
                self.tasks.abort_opening();
                self.hosting.end();
                self.forget_guesser();
                self.page.mark_changed();
            }
            Action::ReadPiece { peer, request } => self.read_piece(peer, request),
            Action::DeliverPiece { id, bytes } => self.models.requests.deliver(id, bytes),
        }
    }

    /// Sends frames together; without a connection they are lost.
    fn send(&self, frames: Vec<(RelayRoute, Frame)>) {
        if let Some(members) = self.membership.members().filter(|_| !frames.is_empty()) {
            for error in members.send(frames) {
                self.notice(panel::NoticeLevel::Error, format!("A message could not be sent: {error}."));
            }
        }
    }

    /// Nothing happens without a connection.
    fn with_members(&self, act: impl FnOnce(&Members)) {
        if let Some(members) = self.membership.members() {
            act(members);
        }
    }
}
