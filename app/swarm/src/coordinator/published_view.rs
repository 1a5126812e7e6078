//! The room view as everyone last received it, and when the next one is due.

use std::collections::BTreeMap;

use potluck_plan::{Millis, PeerId, Plan};
use potluck_protocol::{Frame, RoomView};

use super::view::only_measures_differ;
use crate::Action;
use crate::event_context::EventContext;

/// Changes are sent at most this often, unless they are urgent.
const VIEW_MILLIS: f64 = 250.0;
/// The token count changes this often, and a view in which only measures changed is sent this often. They change with every
/// token and every heartbeat: a host with a slow line would be busy sending nothing else.
const COUNT_MILLIS: f64 = 1_000.0;
/// A plan that has not changed is sent again with the first change after this time: it takes 200 kB with 48 blocks of 128 experts
/// elsewhere.
const PLAN_MILLIS: f64 = 30_000.0;

pub(super) struct PublishedView {
    view: RoomView,
    /// What was sent last, and when.
    sent: Option<(RoomView, Millis)>,
    /// Members that have the plan of the view sent last, and since when.
    informed: BTreeMap<PeerId, Millis>,
    /// When the tokens were last counted.
    counted: Millis,
}

impl PublishedView {
    pub fn new(view: RoomView) -> Self {
        Self { view, sent: None, informed: BTreeMap::new(), counted: Millis(f64::MIN) }
    }

    pub fn view(&self) -> &RoomView {
        &self.view
    }

    /// The plan of the view that the next [`Self::update`] replaces: it is large, and mostly the same again.
    pub fn take_plan(&mut self) -> Option<Plan> {
        self.view.plan.plan.take()
    }

    /// A member begins anew: it may not have the plan that was sent to it.
    pub fn forget(&mut self, peer: PeerId) {
        self.informed.remove(&peer);
    }

    pub fn update(&mut self, view: RoomView, at_once: bool, cx: &mut EventContext) {
        let tokens = self.view.tokens;
        self.view = view;
        if cx.now.0 - self.counted.0 < COUNT_MILLIS {
            self.view.tokens = tokens;
        } else {
            self.counted = cx.now;
        }
        if self.is_due(at_once, cx.now) {
            self.send(cx);
        }
    }

    fn is_due(&mut self, at_once: bool, now: Millis) -> bool {
        let Some((sent, at)) = &mut self.sent else { return true };
        let waited = now.0 - at.0;
        let urgent = at_once || waited >= VIEW_MILLIS;
        let is_waited_for = waited >= COUNT_MILLIS || urgent && !only_measures_differ(sent, &mut self.view);
        is_waited_for && *sent != self.view
    }

    fn send(&mut self, cx: &mut EventContext) {
        let plan = self.view.plan.plan.take();
        let sent = self.sent.take().and_then(|(sent, _)| sent.plan.plan);
        let known = sent.filter(|sent| plan.as_ref() == Some(sent));
        if known.is_none() {
            self.informed.clear();
        }
        for (peer, member) in &cx.members.known {
            if member.admitted && *peer != cx.members.me {
                let has_plan = self.informed.get(peer).is_some_and(|since| cx.now.0 - since.0 < PLAN_MILLIS);
                let frame = match known.as_ref().filter(|_| has_plan) {
                    Some(known) => Frame::RoomUpdate(known.epoch, Box::new(self.view.clone())),
                    None => {
                        self.informed.insert(*peer, cx.now);
                        Frame::Room(Box::new(with_plan(&self.view, plan.clone())))
                    }
                };
                cx.out.send(*peer, frame);
            }
        }
        let sent = known.or_else(|| plan.clone());
        self.sent = Some((with_plan(&self.view, sent), cx.now));
        self.view.plan.plan = plan;
        cx.out.act(Action::ViewChanged);
    }
}

fn with_plan(view: &RoomView, plan: Option<Plan>) -> RoomView {
    let mut view = view.clone();
    view.plan.plan = plan;
    view
}
