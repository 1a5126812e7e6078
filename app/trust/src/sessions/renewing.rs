//! Renewed keys: the host gives out another link and another group secret, and sessions between members go on under it.
//!
//! A session between two members is not ended for it. Both shake hands again under the new secret, and each side's first message under
//! the new key says how many it had sealed under the old one, so that a message that was dropped at that moment is noticed, too.

use potluck_plan::Millis;

use super::{Action, Closed, Link, RoomRole, Route, Session, Sessions};
use crate::channel::{OpenError, SealedChannel};
use crate::handshake::Established;
use crate::room_keys::{GroupSecret, RoomSecret};
use crate::wire::Kind;

/// A session between members ends so long after the group's secret was renewed, unless it goes on under the new one: the other side
/// may be one that the host did not give it to.
pub(super) const GRACE_MILLIS: f64 = 5_000.0;

impl Session {
    pub fn new(established: Established, link: Option<u32>) -> Self {
        Self { channel: established.channel, other: established.other, link, ends: None, before: None }
    }

    /// What a message holds, of either key while the other side may still use the older one.
    pub fn open(&mut self, kind: Kind, rest: &[u8]) -> Result<Vec<u8>, OpenError> {
        let opened = self.channel.open(kind, rest);
        let Some(before) = &mut self.before else { return opened };
        let Ok(plain) = opened else { return before.open(kind, rest) };
        let sealed = <[u8; 8]>::try_from(plain.as_slice()).map(u64::from_le_bytes).ok();
        if kind != Kind::Switched || sealed != Some(before.opened()) {
            return Err(OpenError::Counter);
        }
        self.before = None;
        Ok(plain)
    }
}

impl Sessions {
    /// The host's side: from now on the room has the link with this number, and the group secret of this generation. Those who stay
    /// get them by [`Sessions::give_renewed`].
    pub fn renew(&mut self, number: u32, generation: u32) {
        if let RoomRole::Owner { link, .. } = &mut self.role {
            *link = number;
            self.tags = self.role.tags();
            self.regroup(generation);
        }
    }

    /// The host's side: gives a member that stays the renewed keys. Its sessions with others go on.
    pub fn give_renewed(&mut self, route: Route) {
        self.give_keys(route, Kind::Renewed);
    }

    /// Gives a peer the group secret, and before that the newest link if it came by an earlier one.
    pub(super) fn give_keys(&mut self, route: Route, kind: Kind) {
        let (RoomRole::Owner { key, secret, link: newest, .. }, Some(group)) = (&self.role, &self.group) else {
            return;
        };
        let Some(session) = self.links.get_mut(&route).and_then(|link| link.session.as_mut()) else { return };
        if session.link.is_some_and(|link| link != *newest) {
            session.link = Some(*newest);
            let message = session.channel.seal(Kind::Link, key.link(secret, *newest).bytes());
            self.actions.extend(message.map(|message| Action::Send(route, message)));
        }
        let message = session.channel.seal(kind, group.psk().as_ref());
        self.actions.extend(message.map(|message| Action::Send(route, message)));
    }

    /// The host, over its session, gives this peer the room's newest link.
    pub(super) fn link_renewed(&mut self, link: &[u8]) {
        let (RoomRole::Guest(secret), Ok(link)) = (&mut self.role, link.try_into()) else { return };
        let link = RoomSecret::from_bytes(link);
        if *secret != link {
            *secret = link.clone();
            self.actions.push(Action::LinkRenewed(link));
        }
    }

    /// The host, over its session, gives this peer a renewed group secret.
    pub(super) fn renewed(&mut self, group: Option<GroupSecret>, now: Millis) {
        let Some(group) = group else { return };
        if self.group.as_ref() == Some(&group) {
            return self.meet(now);
        }
        self.group = Some(group);
        let owner = self.owner;
        let others: Vec<Route> = self.links.keys().copied().filter(|route| Some(*route) != owner).collect();
        for route in others {
            if let Some(link) = self.links.get_mut(&route) {
                // A handshake under the older secret would be with somebody who may not have this one.
                link.pending = None;
                if let Some(session) = &mut link.session {
                    session.ends.get_or_insert(Millis(now.0 + GRACE_MILLIS));
                }
            }
            if self.begins(route) {
                self.begin_as_asked(route, now);
            } else {
                self.ask_again(route, now);
            }
        }
    }

    /// Ends sessions with members that did not follow to the renewed secret in time.
    pub(super) fn end_overdue(&mut self, now: Millis) {
        let is_over =
            |link: &Link| link.session.as_ref().and_then(|session| session.ends).is_some_and(|at| at.0 <= now.0);
        let over: Vec<Route> = self.links.iter().filter(|(_, link)| is_over(link)).map(|(route, _)| *route).collect();
        over.into_iter().for_each(|route| self.end(route, Closed::Regrouped, now));
    }

    /// The key of the session that goes on under the new handshake's: it waits for that, and is with the same peer.
    pub(super) fn goes_on(link: &mut Link, established: &Established) -> Option<SealedChannel> {
        let goes_on = |session: &Session| {
            session.ends.is_some() && session.before.is_none() && session.other == established.other
        };
        link.session.take_if(|session| goes_on(session)).map(|session| session.channel)
    }

    /// The session has its new key.
    pub(super) fn switch(&mut self, route: Route, established: Established, before: SealedChannel) {
        let Some(link) = self.links.get_mut(&route) else { return };
        let words = established.words.clone();
        let mut session = Session::new(established, None);
        let sealed = session.channel.seal(Kind::Switched, &before.sealed().to_le_bytes());
        session.before = Some(before);
        link.session = Some(session);
        link.attempts = 0;
        self.actions.extend(sealed.map(|message| Action::Send(route, message)));
        self.actions.push(Action::Rekeyed(route, words));
    }
}
