//! The room view as everyone last received it, and when the next one is due.

use potluck_plan::Millis;
use potluck_protocol::{Frame, RoomView};

use super::view::without_measures;
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

    fn is_due(&self, at_once: bool, now: Millis) -> bool {
        let Some((sent, at)) = &self.sent else { return true };
        let waited = now.0 - at.0;
        let urgent = || at_once || waited >= VIEW_MILLIS;
        let only_measures = || without_measures(sent) == without_measures(&self.view);
        *sent != self.view && (waited >= COUNT_MILLIS || urgent() && !only_measures())
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
