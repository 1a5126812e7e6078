//! Paths to members past the relay: tabs of this browser, and connections to other devices.

use std::rc::Rc;

use potluck_panel::PathReport;
use potluck_plan::{Millis, PeerId};
use potluck_protocol::{Frame, Signal};
use potluck_swarm::RelayRoute;
use potluck_trust::Route;

use super::{Connection, Members};
use crate::direct::{ConnectionId, DirectLinks, Origin};
use crate::platform::{SocketMessage, SocketSender};

impl Members {
    /// How many frames came directly from other tabs of this browser, or from other devices.
    pub fn direct_frames(&self) -> u64 {
        self.direct_frames.get()
    }

    /// How frames reach each member.
    pub fn paths(&self) -> Vec<(PeerId, PathReport)> {
        let newest = self.newest.borrow();
        let path = |connection: &mut Connection| {
            newest.iter().map(|(peer, newest)| (*peer, connection.links.path(newest.route.0))).collect()
        };
        self.with_connection(path).unwrap_or_default()
    }

    /// Whether this device may connect to other devices, and on the host: whether members of its room may.
    pub fn set_connects(&self, connects: bool) {
        if self.connects.replace(connects) == connects {
            return;
        }
        self.allow_connections();
        if self.is_owner {
            let routes: Vec<Route> = self.newest.borrow().values().map(|newest| newest.route).collect();
            routes.into_iter().for_each(|route| self.say(route, Signal::Allowed(connects)));
        }
    }

    pub(super) fn allow_connections(&self) {
        let allowed = self.connects.get() && (self.is_owner || self.host_allows.get());
        self.on_links(|links, _| links.allow_connections(allowed));
    }

    pub(super) fn say(&self, route: Route, signal: Signal) {
        if let Err(error) = self.send_frame(RelayRoute(route.0), &Frame::Signal(signal)) {
            log::warn!("a connection is not set up: {error}");
        }
    }

    /// Works on the direct links, and says to members what follows.
    pub(super) fn on_links<T>(&self, work: impl FnOnce(&mut DirectLinks, Millis) -> T) -> Option<T> {
        let (result, signals) = self.with_connection(|connection| {
            let result = work(&mut connection.links, self.clock.now());
            (result, connection.links.take_signals())
        })?;
        signals.into_iter().for_each(|(route, signal)| self.say(Route(route), signal));
        Some(result)
    }

    /// A member's word about a connection. Whoever is not let in gets none.
    pub(super) fn signal(&self, from: Route, signal: Signal) {
        match signal {
            Signal::Allowed(allowed) => {
                if self.host.get() == Some(from) {
                    self.host_allows.set(allowed);
                    self.allow_connections();
                }
            }
            _ if self.is_owner && self.intake.borrow().is_stranger(from) => {}
            signal => drop(self.on_links(|links, now| links.signal(from.0, signal, now))),
        }
    }

    /// The browser has described this side of a connection.
    pub(in crate::room) fn described(&self, connection: ConnectionId, description: String) {
        self.on_links(|links, _| links.described(connection, description));
    }

    /// A connection ended.
    pub(in crate::room) fn connection_ended(&self, connection: ConnectionId) {
        self.on_links(|links, now| links.ended(connection, now));
    }

    /// A channel to a tab of this browser, or to another device.
    pub(in crate::room) fn channel_opened(&self, origin: Origin, channel: Rc<dyn SocketSender>) {
        self.on_links(|links, now| links.opened(origin, channel, now));
    }

    /// A message on such a channel.
    pub(in crate::room) fn on_channel(&self, origin: Origin, message: SocketMessage) {
        let is_frame = matches!(message, SocketMessage::Binary(_));
        self.direct_frames.update(|frames| frames + u64::from(is_frame));
        if let Some((route, messages)) = self.on_links(|links, now| links.on_channel(origin, message, now)).flatten() {
            messages.iter().for_each(|message| self.received(route, message));
        }
    }
}
