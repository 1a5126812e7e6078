//! The room this node is in, and its connection.

use crate::room::{LineState, Members, RoomLine};
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

    /// The link of this room was renewed. This node may be in another one by now.
    pub fn has_key(&mut self, room: &str, key: String) {
        if let Some(room) = self.room.as_mut().filter(|inside| inside.id == room) {
            room.key = Some(key);
        }
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

    /// The other members, while there is a connection. Without one, what would be sent to them is dropped.
    pub fn members(&self) -> Option<&Members> {
        self.line.as_ref().map(|line| line.members.as_ref())
    }
}
