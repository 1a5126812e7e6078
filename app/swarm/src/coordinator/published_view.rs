//! The room view as everyone last received it, and when the next one is due.

use potluck_plan::{Millis, Plan};
use potluck_protocol::{Frame, RoomView};

use super::view::only_measures_differ;
use crate::Action;
use crate::event_context::EventContext;

/// Changes are sent at most this often, unless they are urgent.
const VIEW_MILLIS: f64 = 250.0;
/// The token count changes this often, and a view in which only measures changed is sent this often. They change with every
/// token and every heartbeat: a host with a slow line would be busy sending nothing else.
const COUNT_MILLIS: f64 = 1_000.0;

pub(super) struct PublishedView {
    view: RoomView,
    /// What was sent last, and when.
    sent: Option<(RoomView, Millis)>,
    /// When the tokens were last counted.
    counted: Millis,
}

impl PublishedView {
    pub fn new(view: RoomView) -> Self {
        Self { view, sent: None, counted: Millis(f64::MIN) }
    }

    pub fn view(&self) -> &RoomView {
        &self.view
    }

    /// The plan of the view that the next [`Self::update`] replaces: it is large, and mostly the same again.
    pub fn take_plan(&mut self) -> Option<Plan> {
        self.view.plan.plan.take()
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
        self.sent = Some((self.view.clone(), cx.now));
        for (peer, member) in &cx.members.known {
            if member.admitted && *peer != cx.members.me {
                cx.out.send(*peer, Frame::Room(Box::new(self.view.clone())));
            }
        }
        cx.out.act(Action::ViewChanged);
    }
}
