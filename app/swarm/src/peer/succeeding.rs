//! The deputy's side: it follows what the host does, and takes its place when it is lost. The other side of it: a host steps down when
//! another device has taken its place.

use potluck_panel::Condition;
use potluck_plan::{Millis, PeerId};
use potluck_protocol::{Followed, Frame, Succession};

use super::{Membership, Peer};
use crate::Action;
use crate::inherited::Inherited;

/// A host that was silent for so long, while others were heard or the relay was there, has stopped.
const STOPPED_MILLIS: f64 = 4_500.0;
/// A deputy that has only just connected waits so long for the host, whose connection may have broken as well.
const SETTLED_MILLIS: f64 = 3_000.0;

/// A deputy that has not heard the host for longer may have been replaced by another one, which goes first.
const FRESH_MILLIS: f64 = 10_000.0;
/// It waits so long after it has connected.
const STALE_SETTLED_MILLIS: f64 = 20_000.0;

/// What a deputy has been told.
#[derive(Clone)]
pub(super) struct Appointment {
    succession: Box<Succession>,
    known: Inherited,
    /// When the host was heard last.
    heard: Millis,
}

impl Peer {
    /// The host made this peer its deputy, or makes another one, or tells what has changed.
    pub(super) fn appointed(&mut self, succession: Option<Box<Succession>>) {
        let before = self.deputy.take();
        self.deputy = succession.map(|succession| {
            let known = before.map(|before| before.known).unwrap_or_default();
            Appointment { succession, known, heard: self.cx.now }
        });
        self.cx.out.act(Action::ViewChanged);
    }

    /// The host shows who its deputy is. A device that was it before may not have heard that it is not any more.
    pub(super) fn keep_appointment(&mut self, deputy: Option<PeerId>) {
        if deputy != Some(self.identity.peer) {
            self.deputy = None;
        }
    }

    /// The host was heard.
    pub(super) fn heard_host(&mut self) {
        let now = self.cx.now;
        self.deputy.iter_mut().for_each(|deputy| deputy.heard = now);
    }

    /// The host tells its deputy more.
    pub(super) fn follow(&mut self, followed: Followed) {
        if let Some(deputy) = &mut self.deputy {
            deputy.known.follow(followed);
        }
    }

    /// This peer hosts the room if its host is lost.
    pub fn is_deputy(&self) -> bool {
        self.deputy.is_some()
    }

    /// A deputy notices that the host has stopped, before others give it up.
    pub(super) fn look_after_host(&mut self) {
        if self.deputy.is_none() || self.coordinator.is_some() {
            return;
        }
        let host = self.cx.members.host.and_then(|host| self.cx.members.known.get(&host));
        let is_lost = host.is_none_or(|host| host.silent >= STOPPED_MILLIS);
        if is_lost {
            self.take_over_if_due();
        }
    }

    /// The host is lost: its deputy takes its place, unless the fault may be in the deputy's own connection.
    pub(super) fn take_over_if_due(&mut self) {
        let Some(deputy) = &self.deputy else { return };
        let is_fresh = self.cx.now.0 - deputy.heard.0 <= FRESH_MILLIS;
        let settled = if is_fresh { SETTLED_MILLIS } else { STALE_SETTLED_MILLIS };
        let is_settled = self.connected && self.cx.now.0 - self.connected_at.0 >= settled;
        if !is_settled || self.coordinator.is_some() {
            return;
        }
        let Some(appointment) = self.deputy.take() else { return };
        self.claim = Some(appointment.clone());
        let Appointment { succession, known, .. } = appointment;
        self.inheritance = Some(known);
        self.begin_anew();
        self.cx.out.act(Action::TakeOver(succession));
    }

    /// Another device hosts the room, and this one takes part in it from now on.
    pub(super) fn step_down(&mut self) {
        self.withdraw("Another device hosts this room now. This device takes part in it.");
    }

    /// The host that this deputy wanted to replace is there: it goes on as the deputy, and tries again if the host does not turn up.
    pub(super) fn host_present(&mut self) {
        let claim = self.claim.take();
        self.withdraw("The host is there after all. This device waits for it.");
        self.deputy = claim;
    }

    fn withdraw(&mut self, sentence: &str) {
        self.coordinator = None;
        (self.deputy, self.inheritance, self.claim) = (None, None, None);
        self.cx.kv_cache.for_checks = 0;
        self.begin_anew();
        self.cx.out.warn_while(Condition::HostAway, sentence);
        self.cx.out.act(Action::StepDown);
        self.cx.out.act(Action::ViewChanged);
    }

    /// The connection is about to be opened anew, in another role: everyone is met again. Questions of this tab stay.
    fn begin_anew(&mut self) {
        let me = self.cx.members.me;
        self.membership = Membership::Waiting;
        self.connected = false;
        self.cx.out.clear();
        self.cx.members.known.retain(|peer, _| *peer == me);
        self.cx.members.host = None;
        self.guest.room = None;
        self.forget_holders();
    }

    /// A new host's own questions: it knows how far their answers were received.
    pub(super) fn resume_own(&mut self) {
        let me = self.cx.members.me;
        for frame in self.guest.resume_all() {
            if let Frame::Resume(request, received) = frame
                && let Some(coordinator) = &mut self.coordinator
            {
                coordinator.resume(me, request, &received, &mut self.cx);
            }
        }
    }
}
