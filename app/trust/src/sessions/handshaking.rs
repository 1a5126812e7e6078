//! Who begins a handshake, when, by which lane, and what it proves.

use potluck_plan::Millis;

use super::budgets::Caller;
use super::{Action, Closed, Link, Pending, Proof, RoomRole, Route, Session, Sessions};
use crate::handshake::{Asked, Begun, Established, HandshakeError, Me, Place};
use crate::identity::{NodeIdentity, Random};
use crate::room_keys::{Psk, visitor_psk};
use crate::wire::{Kind, Lane, Shown};

/// A handshake without an answer is begun again after this time, doubled with each attempt.
pub(super) const RETRY_MILLIS: f64 = 2_000.0;
/// The longest wait between attempts: a suspended tab may be silent for long.
pub(super) const MAX_RETRY_MILLIS: f64 = 60_000.0;
/// This side begins at most one handshake a route in this time, whatever the other side sends.
pub(super) const MIN_PAUSE_MILLIS: f64 = 500.0;
/// This side answers at most one handshake per route in this time: each costs a millisecond of arithmetic ([`super::budgets`]
/// bounds all routes together). It is less than the time between two honest beginnings, which the network may move together.
const MIN_ANSWER_PAUSE_MILLIS: f64 = 250.0;
impl Sessions {
    /// Whether this side begins the handshake with a route.
    pub(super) fn begins(&self, route: Route) -> bool {
        match self.role {
            RoomRole::Owner { .. } => false,
            _ if self.owner == Some(route) => true,
            _ => self.own.is_some_and(|own| own > route),
        }
    }

    /// The lane of a handshake that this side begins. A visitor who was let in calls the host as a visitor every other time: the
    /// host may give out another group secret by now, and then does not answer to the old one.
    fn lane(&self, route: Route) -> Option<Lane> {
        let is_odd = self.links.get(&route).is_some_and(|link| link.attempts % 2 == 1);
        match (&self.role, &self.group) {
            (RoomRole::Visitor, Some(_)) if self.owner == Some(route) && is_odd => Some(Lane::Visitor),
            (RoomRole::Guest(_), _) if self.owner == Some(route) => Some(Lane::Link),
            (RoomRole::Invited(_), _) if self.owner == Some(route) => Some(Lane::Invite),
            (_, Some(_)) => Some(Lane::Group),
            (RoomRole::Visitor, None) if self.owner == Some(route) => Some(Lane::Visitor),
            _ => None,
        }
    }

    /// What this peer says of its key in a lane.
    fn shows(&self, lane: Lane) -> Shown {
        match (lane, &self.role) {
            (Lane::Link, RoomRole::Guest(secret)) => Shown::Link(secret.tag()),
            (Lane::Invite, RoomRole::Invited(key)) => Shown::Invite(key.terms),
            _ => Shown::Nothing,
        }
    }

    /// The key of a lane, if this peer takes part in it; to the host, of the link or invite that the other side names.
    fn psk(&self, lane: Lane, shown: &Shown) -> Option<Psk> {
        match (lane, &self.role, shown) {
            (Lane::Link, RoomRole::Owner { key, secret, .. }, Shown::Link(tag)) => {
                Some(key.link(secret, self.number_tagged(tag)?).psk())
            }
            (Lane::Link, RoomRole::Guest(secret), _) => Some(secret.psk()),
            (Lane::Invite, RoomRole::Owner { key, .. }, Shown::Invite(terms)) => Some(key.door(terms).psk()),
            (Lane::Invite, RoomRole::Invited(key), _) => Some(key.door.psk()),
            (Lane::Visitor, RoomRole::Owner { visible: true, .. } | RoomRole::Visitor, _) => {
                Some(visitor_psk(&self.room))
            }
            (Lane::Group, ..) => self.group.as_ref().map(|group| group.psk().clone()),
            _ => None,
        }
    }

    /// Whose budget a handshake in a lane is counted by.
    fn caller(&self, lane: Lane, shown: &Shown) -> Caller {
        match (&self.role, shown) {
            (RoomRole::Owner { link: newest, .. }, Shown::Link(tag)) if self.number_tagged(tag) != Some(*newest) => {
                Caller::ByEarlierLink
            }
            _ => Caller::InLane(lane),
        }
    }

    pub(super) fn begin_where_due(&mut self, now: Millis) {
        let is_due = |link: &Link| {
            let wait =
                (RETRY_MILLIS * f64::from(2u32.saturating_pow(link.attempts.saturating_sub(1)))).min(MAX_RETRY_MILLIS);
            let wait = if link.wanted { MIN_PAUSE_MILLIS } else { wait };
            let needs_one = link.session.as_ref().is_none_or(|session| session.ends.is_some());
            (needs_one || link.wanted) && link.began.is_none_or(|began| now.0 - began.0 >= wait)
        };
        let due: Vec<Route> = self.links.iter().filter(|(_, link)| is_due(link)).map(|(route, _)| *route).collect();
        due.into_iter().for_each(|route| self.begin(route, now));
    }

    /// The other side asks for a handshake. Too soon after the last one, it begins with a later tick.
    pub(super) fn begin_as_asked(&mut self, route: Route, now: Millis) {
        if !self.begins(route) {
            return;
        }
        if let Some(link) = self.links.get_mut(&route) {
            link.wanted = true;
        }
        self.begin(route, now);
    }

    pub(super) fn begin(&mut self, route: Route, now: Millis) {
        let (Some(own), Some(lane), true) = (self.own, self.lane(route), self.begins(route)) else { return };
        let shown = self.shows(lane);
        let Some(psk) = self.psk(lane, &shown) else { return };
        let me = me(&self.identity, &self.role, self.random);
        let place = Place { room: &self.room, lane, shown, initiator: own.0, responder: route.0 };
        let Some(link) = self.links.get_mut(&route) else { return };
        if link.began.is_some_and(|began| now.0 - began.0 < MIN_PAUSE_MILLIS) {
            return;
        }
        link.began = Some(now);
        link.wanted = false;
        link.attempts = link.attempts.saturating_add(1);
        match Begun::new(me, place, &psk) {
            Ok((handshake, first)) => {
                link.pending = Some(Pending::Begun(handshake));
                let message = [&Kind::Hello.header()[..], &[lane as u8], shown.bytes(), &first].concat();
                self.actions.push(Action::Send(route, message));
            }
            Err(error) => self.actions.push(Action::Failed(route, error.into())),
        }
    }

    /// Asks the other side, who begins, to begin again. Too soon after the last time, it asks with a later tick.
    pub(super) fn ask_again(&mut self, route: Route, now: Millis) {
        let Some(link) = self.links.get_mut(&route) else { return };
        link.asks = link.asked.is_some_and(|asked| now.0 - asked.0 < MIN_PAUSE_MILLIS);
        if !link.asks {
            link.asked = Some(now);
            self.actions.push(Action::Send(route, Kind::Again.header().to_vec()));
        }
    }

    pub(super) fn ask_where_due(&mut self, now: Millis) {
        let due: Vec<Route> = self.links.iter().filter(|(_, link)| link.asks).map(|(route, _)| *route).collect();
        due.into_iter().for_each(|route| self.ask_again(route, now));
    }

    pub(super) fn hello(&mut self, route: Route, rest: &[u8], now: Millis) {
        let Some((lane, rest)) = rest.split_first() else { return };
        let (Some(lane), Some(own), false) = (Lane::of(*lane), self.own, self.begins(route)) else { return };
        let Some((shown, first)) = Shown::split(lane, rest) else { return };
        // The other lanes lead to the host, and nobody else answers in them.
        let is_mine = lane == Lane::Group || matches!(self.role, RoomRole::Owner { .. });
        let looked = self.links.get(&route).and_then(|link| link.looked);
        if !is_mine || looked.is_some_and(|looked| now.0 - looked.0 < MIN_ANSWER_PAUSE_MILLIS) {
            return;
        }
        let Some(psk) = self.psk(lane, &shown) else { return };
        let caller = self.caller(lane, &shown);
        let place = Place { room: &self.room, lane, shown, initiator: route.0, responder: own.0 };
        let me = me(&self.identity, &self.role, self.random);
        let Some(link) = self.links.get_mut(&route) else { return };
        link.looked = Some(now);
        // A peer that does not know the key learns nothing, not even that it was wrong, and uses none of the budget.
        let Ok(asked) = Asked::read(me, place, &psk, first) else { return };
        if !self.budgets.take(caller, !link.was_answered, now) {
            return;
        }
        link.was_answered = true;
        if let Ok((handshake, second)) = asked.answer(me) {
            link.pending = Some(Pending::Answered(handshake));
            self.actions.push(Action::Send(route, [&Kind::Reply.header()[..], &second].concat()));
        }
    }

    pub(super) fn reply(&mut self, route: Route, second: &[u8]) {
        let Some(link) = self.links.get_mut(&route) else { return };
        let Some(Pending::Begun(handshake)) = link.pending.take_if(|pending| matches!(pending, Pending::Begun(_)))
        else {
            return;
        };
        match handshake.finish(me(&self.identity, &self.role, self.random), second) {
            Ok((established, third)) => {
                if self.check(route, &established).is_ok() {
                    self.actions.push(Action::Send(route, [&Kind::Finish.header()[..], &third].concat()));
                }
                self.established(route, established);
            }
            Err(error) => self.actions.push(Action::Failed(route, error.into())),
        }
    }

    pub(super) fn finish(&mut self, route: Route, third: &[u8]) {
        let Some(link) = self.links.get_mut(&route) else { return };
        let Some(Pending::Answered(handshake)) =
            link.pending.take_if(|pending| matches!(pending, Pending::Answered(_)))
        else {
            return;
        };
        match handshake.accept(third) {
            Ok(established) => self.established(route, established),
            Err(error) => self.actions.push(Action::Failed(route, error.into())),
        }
    }

    fn check(&self, route: Route, established: &Established) -> Result<Proof, Closed> {
        let other = established.other;
        if other.peer == self.identity.peer() {
            return Err(Closed::OwnIdentity);
        }
        if other.is_owner != (self.owner == Some(route)) {
            return Err(Closed::NotTheOwner);
        }
        Ok(match (established.lane, established.shown) {
            _ if other.is_owner => Proof::Host,
            (Lane::Link, Shown::Link(tag)) => Proof::Link(self.number_tagged(&tag).ok_or(HandshakeError::Certificate)?),
            (Lane::Invite, Shown::Invite(terms)) => Proof::Invite(terms),
            (Lane::Group, _) => Proof::Group,
            (Lane::Visitor, _) => Proof::Visitor,
            (Lane::Link | Lane::Invite, _) => return Err(HandshakeError::Certificate.into()),
        })
    }

    fn established(&mut self, route: Route, established: Established) {
        let proof = match self.check(route, &established) {
            Ok(proof) => proof,
            Err(closed) => return self.actions.push(Action::Failed(route, closed)),
        };
        let Some(link) = self.links.get_mut(&route) else { return };
        // What either side asked for before is done; another handshake would only end this session.
        (link.wanted, link.asks) = (false, false);
        if proof == Proof::Group
            && let Some(before) = Self::goes_on(link, &established)
        {
            return self.switch(route, established, before);
        }
        let (other, words) = (established.other, established.words.clone());
        let number = if let Proof::Link(number) = proof { Some(number) } else { None };
        if link.session.replace(Session::new(established, number)).is_some() {
            self.actions.push(Action::Down(route, Closed::Renewed));
        }
        link.attempts = 0;
        self.actions.push(Action::Up(route, other, proof, words));
    }
}

fn me<'a>(identity: &'a NodeIdentity, role: &'a RoomRole, random: Random) -> Me<'a> {
    let owner = match role {
        RoomRole::Owner { key, .. } => Some(key),
        RoomRole::Guest(_) | RoomRole::Invited(_) | RoomRole::Visitor => None,
    };
    Me { identity, owner, random }
}
