//! The two plans of a room: the active one, and the inactive one that is being prepared.

use std::collections::{BTreeMap, BTreeSet};

use potluck_plan::{Bytes, Millis, PeerId, PlanEpoch};
use potluck_planner::Planned;
use potluck_protocol::{Frame, LoadPhase, Prepare, Sharing};

use crate::event_context::EventContext;

/// An order that is not answered for so long is given again; who has it already only answers again.
const RESEND_MILLIS: f64 = 5_000.0;
/// A peer that gets no further for so long will not get ready: it may be there and still wait for something for ever. Long,
/// because compiling kernels on a loaded machine shows no progress for a while.
const STUCK_MILLIS: f64 = 120_000.0;

/// The plan that counts.
pub(crate) struct Active {
    pub planned: Planned,
    /// How work was to be shared out when it was made.
    pub share: Sharing,
    /// Peers that have not said yet that they switched.
    awaited: BTreeSet<PeerId>,
    sent_at: Millis,
}

/// Why a plan is prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// It is the best one for the devices there are.
    Best,
    /// It stood by for one that is lost: everyone holds its part already, and nothing has to be loaded for it.
    TakesOver,
}

/// The plan that is prepared beside it.
pub(crate) struct Inactive {
    pub planned: Planned,
    pub share: Sharing,
    pub purpose: Purpose,
    order: Prepare,
    /// Peers that load.
    awaited: BTreeSet<PeerId>,
    /// How far each of them was when it was seen to get further last.
    progress: BTreeMap<PeerId, (Option<(LoadPhase, Bytes)>, Millis)>,
    sent_at: Millis,
}

impl Inactive {
    pub fn new(planned: Planned, share: Sharing, order: Prepare, purpose: Purpose) -> Self {
        let awaited = planned.plan.peers();
        Self { planned, share, purpose, order, awaited, progress: BTreeMap::new(), sent_at: Millis(0.0) }
    }

    pub fn epoch(&self) -> PlanEpoch {
        self.planned.plan.epoch
    }

    /// The active plan's units stay meanwhile.
    pub fn keeps_active(&self) -> bool {
        self.order.keep.is_some()
    }

    pub fn awaits(&self, peer: PeerId) -> bool {
        self.awaited.contains(&peer)
    }

    pub fn is_prepared(&mut self, peer: PeerId) {
        self.awaited.remove(&peer);
    }

    pub fn is_ready(&self) -> bool {
        self.awaited.is_empty()
    }

    /// A peer that has not got further for too long.
    pub fn stuck(&mut self, cx: &EventContext) -> Option<PeerId> {
        self.awaited.iter().copied().find(|peer| {
            let report = cx.members.get(*peer).and_then(|member| member.status.loading);
            let far = report.map(|report| (report.phase, report.done));
            let (known, since) = self.progress.entry(*peer).or_insert((far, cx.now));
            if *known != far {
                (*known, *since) = (far, cx.now);
            }
            cx.now.0 - since.0 >= STUCK_MILLIS
        })
    }

    pub fn send_orders(&mut self, cx: &mut EventContext) {
        self.sent_at = cx.now;
        for peer in &self.awaited {
            cx.out.send(*peer, Frame::Prepare(Box::new(self.order.clone())));
        }
    }

    pub fn resend_orders(&mut self, cx: &mut EventContext) {
        if !self.awaited.is_empty() && cx.now.0 - self.sent_at.0 >= RESEND_MILLIS {
            self.send_orders(cx);
        }
    }

    /// `running`: rows pass it already, so nobody is waited for.
    pub fn into_active(self, running: bool, now: Millis) -> Active {
        let awaited = if running { BTreeSet::new() } else { self.planned.plan.peers() };
        Active { planned: self.planned, share: self.share, awaited, sent_at: now }
    }
}

impl Active {
    pub fn epoch(&self) -> PlanEpoch {
        self.planned.plan.epoch
    }

    pub fn is_committed(&mut self, peer: PeerId) {
        self.awaited.remove(&peer);
    }

    /// Everyone has switched.
    pub fn is_up(&self) -> bool {
        self.awaited.is_empty()
    }

    pub fn resend_orders(&mut self, cx: &mut EventContext) {
        if !self.awaited.is_empty() && cx.now.0 - self.sent_at.0 >= RESEND_MILLIS {
            self.sent_at = cx.now;
            self.awaited.iter().for_each(|peer| cx.out.send(*peer, Frame::Commit(self.epoch())));
        }
    }
}
