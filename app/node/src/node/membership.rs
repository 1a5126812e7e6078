//! The room this node is in, and its connection.

use potluck_panel::Sealing;
use potluck_plan::PeerId;
use potluck_protocol::{Frame, FrameError};
use potluck_swarm::RelayRoute;

use crate::room::{LineState, RoomLine};
use crate::status::RoomName;

/// The room and the connection to it. While there is a connection there is also its state. A closed connection keeps its state
/// until the next one, so that the page can say why it closed.
#[derive(Default)]
pub(super) struct RoomMembership {
    line: Option<RoomLine>,
    line_state: Option<LineState>,
    room: Option<RoomName>,
}

impl RoomMembership {
    pub fn line_state(&self) -> Option<&LineState> {
        self.line_state.as_ref()
    }

    pub fn room(&self) -> Option<&RoomName> {
        self.room.as_ref()
    }

    pub fn enter(&mut self, room: RoomName) {
        self.room = Some(room);
    }

    pub fn connect(&mut self, open: impl FnOnce() -> RoomLine) {
        // The old connection must close before the new one opens: the relay would count this node as two members.
        self.line = None;
        self.line_state = Some(LineState::Connecting);
        self.line = Some(open());
    }

    /// The connection reports a state. `None` if it was closed meanwhile; otherwise the reason, if the relay closed it.
    pub fn line_changed(&mut self, state: LineState) -> Option<Option<String>> {
        self.line.as_ref()?;
        let reason = match &state {
            LineState::Closed(reason) => Some(reason.clone()),
            _ => None,
        };
        if reason.is_some() {
            self.line = None;
        }
        self.line_state = Some(state);
        Some(reason)
    }

    /// Closes the connection. Without a reason this node has left the room on purpose.
    pub fn close(&mut self, reason: Option<String>) {
        if let Some(line) = self.line.take() {
            line.leave();
        }
        self.line_state = reason.map(LineState::Closed);
        if self.line_state.is_none() {
            self.room = None;
        }
    }

    /// Sends a frame; without a connection it is dropped.
    ///
    /// # Errors
    /// The frame exceeds the maximum length.
    pub fn send(&self, to: RelayRoute, frame: &Frame) -> Result<(), FrameError> {
        self.line.as_ref().map_or(Ok(()), |line| line.send(to, frame))
    }

    /// What is sent until [`RoomMembership::release`] goes together.
    pub fn hold(&self) {
        if let Some(line) = &self.line {
            line.hold();
        }
    }

    /// Sends what waits since [`RoomMembership::hold`].
    pub fn release(&self) {
        if let Some(line) = &self.line {
            line.release();
        }
    }

    /// The host's side: a peer is let in.
    pub fn admit(&self, peer: PeerId) {
        if let Some(line) = &self.line {
            line.admit(peer);
        }
    }

    /// The host's side: whoever is let in from now on gets the group secret of another generation.
    pub fn regroup(&self, generation: u32) {
        if let Some(line) = &self.line {
            line.regroup(generation);
        }
    }

    /// Time passes; called a few times a second.
    pub fn tick(&self) {
        if let Some(line) = &self.line {
            line.tick();
        }
    }

    /// Frames that came directly from other tabs of this browser.
    pub fn direct_frames(&self) -> u64 {
        self.line.as_ref().map_or(0, RoomLine::direct_frames)
    }

    /// What it took to seal messages and to open them.
    pub fn sealing(&self) -> Sealing {
        self.line.as_ref().map(RoomLine::sealing).unwrap_or_default()
    }
}
