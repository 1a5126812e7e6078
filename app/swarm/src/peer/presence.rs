//! Entering and leaving a room, and its connections.

use potluck_plan::PeerId;
use potluck_protocol::{Frame, Hello, Leaving};

use super::{Membership, Peer};
use crate::coordinator::Coordinator;
use crate::doorkeeper::Doorkeeper;
use crate::event::HostCommand;
use crate::limits;
use crate::lineages::KnownCheckers;
use crate::sessions::Session;
use crate::{Action, Proof, RelayRoute};

impl Peer {
    pub(super) fn hello(&self) -> Hello {
        Hello {
            start: self.identity.start,
            build: self.identity.build.clone(),
            kernel_class: self.identity.kernel_class,
            name: limits::own_name(&self.identity.name),
            kind: self.identity.kind,
            adapter: limits::own_adapter(&self.identity.adapter),
            contribution: self.worker.contribution,
            epoch: self.epoch(),
            hidden: self.hidden,
        }
    }

    pub(super) fn host(&mut self, command: HostCommand) {
        self.membership = Membership::Inside;
        self.doorkeeper = Doorkeeper::new(command.doors.clone());
        self.doorkeeper.hear_time(command.at, self.cx.now);
        let mut coordinator = Coordinator::new(command, self.planner_view, &mut self.cx);
        if let Some(inherited) = self.inheritance.take() {
            coordinator.inherit(inherited, &mut self.cx);
        }
        self.coordinator = Some(coordinator);
        self.announce();
        self.resume_own();
    }

    pub(super) fn join(&mut self) {
        self.membership = Membership::Waiting;
        self.announce();
    }

    /// The page leaves. Only a host decides what becomes of the room.
    pub(super) fn leave(&mut self, leaving: Leaving) {
        let farewell = if self.coordinator.is_some() { Frame::Closed(leaving) } else { Frame::Bye };
        self.depart(&farewell, "This device left the room before the answer was complete.", None);
    }

    /// The host leaves on purpose.
    pub(super) fn host_leaves(&mut self, host: PeerId, leaving: Leaving) {
        if self.cx.members.host.is_some_and(|now| now != host) {
            // Another tab hosts the room by now.
            return;
        }
        match leaving {
            Leaving::ForGood => self.turned_away("The host has ended this room.".to_owned()),
            Leaving::ForNow => {
                self.cx.members.known.remove(&host);
                self.stop_sending(host);
                let sentence =
                    "The host has closed this room for now. This device joins again as soon as the host opens it.";
                self.wait_for_host(sentence);
                self.take_over_if_due();
            }
        }
    }

    /// This tab cannot stay in the room, for the reason in one sentence.
    pub(super) fn turned_away(&mut self, sentence: String) {
        self.depart(&Frame::Bye, &sentence.clone(), Some(sentence));
    }

    fn depart(&mut self, farewell: &Frame, to_askers: &str, reason: Option<String>) {
        self.cx.out.broadcast(farewell);
        self.guest.fail_all(to_askers, &mut self.cx);
        self.worker.stop(&mut self.cx);
        self.coordinator = None;
        (self.deputy, self.inheritance, self.claim) = (None, None, None);
        self.cx.kv_cache.for_checks = 0;
        self.guest.room = None;
        self.membership = Membership::Outside;
        self.cx.members.known.clear();
        self.cx.members.host = None;
        self.cx.members.checkers = KnownCheckers::default();
        self.forget_holders();
        self.cx.out.clear();
        self.cx.out.act(Action::Close { reason });
        self.cx.out.act(Action::ViewChanged);
    }

    /// Sends a hello over every session, and to this peer itself.
    pub(super) fn announce(&mut self) {
        if self.membership == Membership::Outside {
            return;
        }
        let hello = self.hello();
        if self.connected {
            self.cx.out.broadcast(&Frame::Hello(hello.clone()));
        }
        self.welcome(self.identity.peer, hello);
        self.cx.out.act(Action::ViewChanged);
    }

    pub(super) fn connected(&mut self) {
        self.connected = true;
        self.claim = None;
        self.connected_at = self.cx.now;
        self.announce();
    }

    pub(super) fn disconnected(&mut self) {
        self.connected = false;
        self.cx.out.clear();
        self.cx.members.all_away(self.cx.now);
        self.cx.out.act(Action::ViewChanged);
    }

    /// A sealed session with a peer is up: both sides say hello over it.
    pub(super) fn peer_connected(&mut self, route: RelayRoute, session: Session) {
        let Session { peer, proof, .. } = session;
        if self.membership == Membership::Outside || peer == self.identity.peer {
            return;
        }
        if proof == Proof::Host
            && let Some(coordinator) = &self.coordinator
        {
            // Which of them hosts the room, the relay says where it knows terms. Else it is whoever came later with the room's key.
            let relay_decides = coordinator.command.ownership.is_some();
            if !relay_decides {
                self.replaced();
            }
            return;
        }
        self.route_left(route);
        if let Some((older, _)) = self.cx.out.sessions.of(peer) {
            self.route_left(older);
        }
        self.meets_host |= proof == Proof::Host;
        if proof == Proof::Host
            && let Some(before) = self.cx.members.host.replace(peer).filter(|before| *before != peer)
        {
            self.give_up(before);
            self.stop_sending(before);
            self.forget_holders();
        }
        self.cx.out.sessions.open(route, session);
        self.greet(peer);
    }

    /// Says hello over the session with a peer, unless it was said already.
    pub(super) fn greet(&mut self, peer: PeerId) {
        let hello = self.hello();
        if let Some((to, session)) = self.cx.out.sessions.of(peer)
            && !std::mem::replace(&mut session.greeted, true)
        {
            self.cx.out.act(Action::Send { to, frame: Frame::Hello(hello) });
        }
    }

    pub(super) fn route_left(&mut self, route: RelayRoute) {
        let Some(session) = self.cx.out.sessions.close(route) else { return };
        self.cx.members.standing(session.peer, self.cx.now).pieces = 0;
        if self.cx.out.route_of(session.peer) == Some(route) {
            self.cx.out.set_route(session.peer, None);
            self.cx.members.ended(session.peer, self.cx.now);
            self.worker.check_timers(&mut self.cx);
            self.cx.out.act(Action::ViewChanged);
        }
    }

    /// Another device holds the room's owner key and hosts the room from now on.
    pub(super) fn replaced(&mut self) {
        let took_over =
            |coordinator: &Coordinator| coordinator.command.ownership.is_some_and(|own| !own.term.is_first());
        if self.coordinator.as_ref().is_some_and(took_over) {
            return self.step_down();
        }
        self.turned_away("This room is hosted elsewhere now. Open its link to take part.".to_owned());
    }
}
