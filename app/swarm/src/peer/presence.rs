//! Entering and leaving a room, and its connections.

use potluck_protocol::{Frame, Hello};

use super::{Membership, Peer};
use crate::coordinator::Coordinator;
use crate::event::HostCommand;
use crate::{Action, Destination, RelayRoute};

impl Peer {
    pub(super) fn hello(&self) -> Hello {
        Hello {
            session: self.identity.session,
            build: self.identity.build.clone(),
            kernel_class: self.identity.kernel_class,
            name: self.identity.name.clone(),
            kind: self.identity.kind,
            adapter: self.identity.adapter.clone(),
            key: self.key.clone(),
            coordinator: self.coordinator.is_some(),
            contribution: self.worker.contribution,
            epoch: self.epoch(),
            hidden: self.hidden,
        }
    }

    pub(super) fn host(&mut self, command: HostCommand) {
        self.membership = Membership::Inside;
        self.key = Some(command.key.clone());
        self.coordinator = Some(Coordinator::new(command, &mut self.cx));
        self.announce();
    }

    pub(super) fn join(&mut self, key: Option<String>) {
        self.membership = Membership::Waiting;
        self.key = key;
        self.announce();
    }

    pub(super) fn leave(&mut self) {
        self.depart("This tab left the room before the answer was complete.", None);
    }

    /// This tab cannot stay in the room, for the reason in one sentence.
    pub(super) fn turned_away(&mut self, sentence: String) {
        self.depart(&sentence.clone(), Some(sentence));
    }

    pub(super) fn depart(&mut self, to_askers: &str, reason: Option<String>) {
        self.cx.out.broadcast(Frame::Bye);
        self.guest.fail_all(to_askers, &mut self.cx);
        self.worker.stop(&mut self.cx);
        self.coordinator = None;
        self.guest.room = None;
        self.membership = Membership::Outside;
        self.cx.members.known.clear();
        self.cx.out.clear_routes();
        self.cx.out.act(Action::Close { reason });
        self.cx.out.act(Action::ViewChanged);
    }

    /// Sends a hello to everyone, this peer included.
    pub(super) fn announce(&mut self) {
        if self.membership == Membership::Outside {
            return;
        }
        let hello = self.hello();
        if self.connected {
            self.cx.out.broadcast(Frame::Hello(hello.clone()));
        }
        self.welcome(self.identity.peer, hello);
        self.cx.out.act(Action::ViewChanged);
    }

    pub(super) fn connected(&mut self, earlier: Vec<RelayRoute>) {
        self.connected = true;
        self.earlier = earlier;
        self.announce();
    }

    pub(super) fn disconnected(&mut self) {
        self.connected = false;
        self.cx.out.clear_routes();
        self.cx.members.all_away(self.cx.now);
        self.cx.out.act(Action::ViewChanged);
    }

    /// Somebody entered: sends it our hello, which it answers with its own.
    pub(super) fn greet(&mut self, route: RelayRoute) {
        if self.membership != Membership::Outside {
            let frame = Frame::Hello(self.hello());
            self.cx.out.act(Action::Send { to: Destination::Route(route), frame });
        }
    }

    pub(super) fn route_left(&mut self, route: RelayRoute) {
        if let Some(peer) = self.cx.out.peer_at(route) {
            self.cx.out.set_route(peer, None);
            self.cx.members.ended(peer, self.cx.now);
            self.cx.out.act(Action::ViewChanged);
        }
    }
}
