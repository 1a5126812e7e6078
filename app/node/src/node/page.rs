//! Messages to the page.

use std::rc::Rc;

use potluck_panel::ToPage;
use potluck_plan::Millis;
use potluck_protocol::FrameError;

/// Minimum milliseconds between two snapshots.
const SNAPSHOT_MILLIS: f64 = 150.0;

/// The page, and what it was sent: snapshots are throttled, and undecodable frames are reported once.
pub(super) struct PageLink {
    send: Rc<dyn Fn(ToPage)>,
    /// Something changed since the last snapshot.
    changed: bool,
    last_snapshot_millis: f64,
    bad_frame_reported: bool,
}

impl PageLink {
    pub fn new(send: Rc<dyn Fn(ToPage)>) -> Self {
        Self { send, changed: false, last_snapshot_millis: f64::MIN, bad_frame_reported: false }
    }

    pub fn send(&self, message: ToPage) {
        (self.send)(message);
    }

    /// A function that sends, for tasks.
    pub fn sender(&self) -> Rc<dyn Fn(ToPage)> {
        self.send.clone()
    }

    /// The next snapshot will differ.
    pub fn mark_changed(&mut self) {
        self.changed = true;
    }

    /// True if a snapshot is due.
    pub fn take_changed(&mut self, now: Millis) -> bool {
        let due = self.changed && now.0 - self.last_snapshot_millis >= SNAPSHOT_MILLIS;
        if due {
            self.changed = false;
            self.last_snapshot_millis = now.0;
        }
        due
    }

    /// The sentence for the first frame that cannot be decoded; `None` afterwards.
    pub fn first_bad_frame(&mut self, error: &FrameError) -> Option<String> {
        let first = !std::mem::replace(&mut self.bad_frame_reported, true);
        first.then(|| format!("A message of another device cannot be read: {error}. Open Potluck again on all devices, in the same version."))
    }
}
