//! Admits members and gives them up.

use potluck_panel::Condition;
use potluck_plan::PeerId;
use potluck_protocol::{Frame, Hello, LogEvent};

use super::{Membership, Peer};
use crate::Action;
use crate::door_log::way;
use crate::doorkeeper::{Access, EntryDecision};
use crate::experts::Holders;
use crate::limits;
use crate::members::Member;

impl Peer {
    /// A hello from somebody, or from this peer itself.
    pub(super) fn welcome(&mut self, peer: PeerId, mut hello: Hello) {
        let me = self.identity.peer;
        if peer != me && !self.is_acceptable(peer, &hello) {
            return;
        }
        let (access, asks) = match self.entry(peer) {
            EntryDecision::Welcome(access) => (access, false),
            EntryDecision::Ask(access) => (access, true),
            EntryDecision::TurnedAway(sentence) => {
                self.give_up(peer);
                return self.turn_away(peer, &hello.name, sentence.into());
            }
        };
        if access == Access::Chat {
            hello.contribution = None;
        }
        let known = self.cx.members.known.get(&peer);
        let restarted = known.is_some_and(|known| known.hello.start != hello.start);
        let returned = known.is_some_and(|known| known.away_until.is_some());
        // Whom the host let in to chat is asked about again before it may do more.
        let wants_more = asks && known.is_some_and(|known| known.admitted && known.access != access);
        if restarted || wants_more {
            self.give_up(peer);
        }
        let known = self.cx.members.known.get(&peer);
        let is_new = known.is_none();
        let contribution_before = known.and_then(|known| known.hello.contribution);
        let is_host = self.cx.members.host == Some(peer);
        let (contribution, start) = (hello.contribution, hello.start);
        let refusal = (peer != me).then(|| self.refusal(&hello)).flatten();
        // What is known of devices that were only met is forgotten when there are many; members stay known.
        if let Some(device) = self.cx.out.sessions.of(peer).map(|(_, session)| session.device) {
            self.cx.members.met(peer, device);
        }
        let member = self.cx.members.enter(peer, &hello);
        member.hello = hello;
        member.silent = 0.0;
        (member.away_until, member.ended) = (None, None);
        if contribution != contribution_before {
            member.contribution_changed();
        }
        // It may have been given up and not have heard of us since.
        self.greet(peer);
        if is_host && self.coordinator.is_none() {
            self.cx.out.act(Action::ViewChanged);
        }
        let Some(coordinator) = &mut self.coordinator else { return };
        if let Some(sentence) = refusal {
            let name = self.cx.members.name(peer);
            self.turn_away(peer, &name, sentence);
            return;
        }
        let Some(member) = self.cx.members.known.get_mut(&peer) else { return };
        let session = self.cx.out.sessions.of(peer).map(|(_, session)| session);
        let was_admitted = member.admitted;
        member.admitted |= peer == me || (session.is_some() && !asks);
        member.access = access;
        if !member.admitted {
            if self.cx.members.known.values().filter(|member| !member.admitted).count() > limits::MAX_ASKING {
                let name = self.cx.members.name(peer);
                self.turn_away(peer, &name, "Many devices are asking to be let in. Try again in a minute.".into());
            } else {
                coordinator.refresh(is_new, &mut self.cx);
            }
            return;
        }
        if let Some(session) = session {
            let (device, way) = (session.device, way(session.proof));
            self.doorkeeper.came_in(device, session.proof);
            if let Some(way) = way.filter(|_| peer != me && (is_new || returned)) {
                let name =
                    self.cx.members.known.get(&peer).map(|member| member.hello.name.as_str()).unwrap_or_default();
                self.doorkeeper.note(self.cx.now, Some(device), name, LogEvent::CameIn(way));
            }
            let is_news = !std::mem::replace(&mut session.let_in, true);
            let meets_others = access == Access::Full && !std::mem::replace(&mut session.admitted, true);
            if is_news {
                self.cx.out.act(Action::LetIn(peer));
            }
            if meets_others {
                self.cx.out.act(Action::Admitted(peer));
            }
        }
        if peer != me {
            coordinator.entered(peer, start, &mut self.cx);
            coordinator.greet(peer, &mut self.cx);
        }
        let changes_the_room = is_new || returned || !was_admitted || contribution != contribution_before;
        if returned && !restarted {
            coordinator.back(peer, &mut self.cx);
        }
        if contribution != contribution_before || is_new || returned {
            if contribution_before.is_some() && contribution.is_none() {
                self.stopped_contributing(peer);
            } else {
                coordinator.replan(&mut self.cx);
            }
        }
        // Another name, or a tab that is hidden, is told with the next tick, together with whatever else has changed.
        if let Some(coordinator) = &mut self.coordinator {
            coordinator.refresh(changes_the_room, &mut self.cx);
        }
    }

    /// What the host's doors say to a peer; others and this peer itself are not at a door.
    pub(super) fn entry(&mut self, peer: PeerId) -> EntryDecision {
        let hosts = self.coordinator.is_some();
        match self.cx.out.sessions.of(peer).filter(|_| hosts) {
            Some((_, session)) if session.let_in => {
                self.doorkeeper.entry_again(session.device, session.proof, session.at)
            }
            Some((_, session)) => self.doorkeeper.entry(session.device, session.proof, session.at),
            None => EntryDecision::Welcome(Access::Full),
        }
    }

    /// A hello within the limits. The host turns away whoever exceeds them; others only do not listen.
    fn is_acceptable(&mut self, peer: PeerId, hello: &Hello) -> bool {
        let may_say_it = self.cx.members.standing(peer, self.cx.now).hellos.take(limits::HELLOS, self.cx.now);
        let sentence = match limits::hello(hello) {
            Err(sentence) => sentence,
            Ok(()) if !may_say_it => "This device says hello over and over. Open Potluck on it again.",
            Ok(()) => return true,
        };
        if self.coordinator.is_some() {
            self.give_up(peer);
            self.turn_away(peer, &hello.name, sentence.into());
        }
        false
    }

    pub(super) fn refusal(&self, hello: &Hello) -> Option<String> {
        self.coordinator.as_ref()?;
        if hello.build != self.identity.build || hello.kernel_class != self.identity.kernel_class {
            return Some(
                "This device and the host run different versions of Potluck. Open the newer one on both.".into(),
            );
        }
        None
    }

    pub(super) fn admit(&mut self, peer: PeerId, allow: bool) {
        // Its invite may have been used up while it waited.
        let no_longer = match self.entry(peer) {
            EntryDecision::TurnedAway(sentence) => Some(sentence),
            EntryDecision::Welcome(_) | EntryDecision::Ask(_) => None,
        };
        let Some(coordinator) = &mut self.coordinator else { return };
        if !allow {
            if self.cx.members.get(peer).is_some_and(|member| !member.admitted) {
                let name = self.cx.members.name(peer);
                self.turn_away(peer, &name, "The host did not let this device in.".into());
            }
        } else if let Some(sentence) = no_longer {
            let name = self.cx.members.name(peer);
            self.turn_away(peer, &name, sentence.into());
        } else if let Some(member) = self.cx.members.known.get_mut(&peer).filter(|member| !member.admitted) {
            member.admitted = true;
            if let Some((_, session)) = self.cx.out.sessions.of(peer) {
                self.doorkeeper.came_in(session.device, session.proof);
                self.doorkeeper.let_in(session.device);
                session.let_in = true;
                if let Some(way) = way(session.proof) {
                    let event = LogEvent::CameIn(way);
                    self.doorkeeper.note(self.cx.now, Some(session.device), &member.hello.name, event);
                }
                session.admitted = member.access == Access::Full;
                let admitted = session.admitted;
                self.cx.out.act(Action::LetIn(peer));
                if admitted {
                    self.cx.out.act(Action::Admitted(peer));
                }
            }
            coordinator.greet(peer, &mut self.cx);
            coordinator.replan(&mut self.cx);
        }
        if let Some(coordinator) = &mut self.coordinator {
            coordinator.refresh(true, &mut self.cx);
        }
    }

    /// The host refuses a peer, and logs that.
    pub(super) fn turn_away(&mut self, peer: PeerId, name: &str, sentence: String) {
        self.log_as(peer, name, LogEvent::Refused(sentence.clone()));
        self.dismiss(peer, sentence);
    }

    /// Tells a peer that it is not let in, ignores it on this session from now on, and has it leave its seat.
    pub(super) fn dismiss(&mut self, peer: PeerId, sentence: String) {
        self.cx.out.send(peer, Frame::Refused(sentence));
        self.cx.members.known.remove(&peer);
        self.cx.out.set_route(peer, None);
        if let Some((route, session)) = self.cx.out.sessions.of(peer) {
            session.refused = true;
            self.cx.out.act(Action::PutOut(route));
        }
    }

    /// A member is given up: frames to it stop, and it says hello again when it is heard. The group may have another secret by
    /// then.
    pub(super) fn stop_sending(&mut self, peer: PeerId) {
        self.cx.out.set_route(peer, None);
        if let Some((_, session)) = self.cx.out.sessions.of(peer) {
            (session.greeted, session.admitted) = (false, false);
        }
    }

    /// A peer contributes no more, but stays.
    pub(super) fn stopped_contributing(&mut self, peer: PeerId) {
        let name = self.cx.members.name(peer);
        if let Some(coordinator) = &mut self.coordinator {
            coordinator.withdrawn(peer, &name, &mut self.cx);
            coordinator.refresh(true, &mut self.cx);
        }
    }

    /// A peer's session is over: it said so, or it came back with another one.
    pub(super) fn give_up(&mut self, peer: PeerId) {
        if peer == self.identity.peer {
            return;
        }
        let Some(member) = self.cx.members.known.remove(&peer) else { return };
        if let Some(coordinator) = self.coordinator.as_mut().filter(|_| member.admitted) {
            coordinator.left(peer, &member.hello.name, &mut self.cx);
        }
        self.without(peer);
    }

    /// A peer's connection ended and is not back in time. It may still come back.
    pub(super) fn gone(&mut self, peer: PeerId, member: &Member) {
        if let Some(coordinator) = self.coordinator.as_mut().filter(|_| member.admitted) {
            coordinator.gone(peer, member, &mut self.cx);
        }
        self.without(peer);
    }

    /// Updates the room after a member is gone.
    fn without(&mut self, peer: PeerId) {
        let is_host = self.cx.members.host == Some(peer);
        if let Some(coordinator) = &mut self.coordinator {
            coordinator.refresh(true, &mut self.cx);
        } else if is_host {
            self.wait_for_host("The host left. This device waits for it to come back.");
            return self.take_over_if_due();
        }
        self.cx.holders.forget(peer);
        self.worker.check_timers(&mut self.cx);
        self.cx.out.act(Action::ViewChanged);
    }

    /// The host is away, as one sentence says. Its answers may go on: when it is back it is asked for what is missing, and says
    /// so if it has forgotten.
    pub(super) fn wait_for_host(&mut self, sentence: &str) {
        self.cx.out.warn_while(Condition::HostAway, sentence);
        self.membership = Membership::Waiting;
        self.forget_holders();
        self.worker.check_timers(&mut self.cx);
        self.cx.out.act(Action::ViewChanged);
    }

    /// Another session of a host counts what holders have computed from nothing on: what they did before must not be new to
    /// it.
    pub(super) fn forget_holders(&mut self) {
        self.cx.holders = Holders::default();
    }
}
