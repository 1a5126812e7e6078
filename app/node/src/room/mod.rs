//! The connection to a room: connects, proves that it may enter, reconnects with back-off, and turns what arrives into
//! events of authenticated peers.
//!
//! - [`RoomLine`]: the connection as the node sees it.
//! - [`connector`]: connects and listens.
//! - [`sealed`]: sends and receives, all of it sealed.

mod connector;
mod sealed;

use std::rc::Rc;

use futures::future::{AbortHandle, Abortable};
use potluck_panel::Sealing;
use potluck_plan::PeerId;
use potluck_protocol::{Frame, FrameError};
use potluck_swarm::RelayRoute;
use potluck_trust::{IdentityKeys, RoomRole};

use self::connector::Connector;
use self::sealed::SealedRoom;
use crate::events::Inputs;
use crate::platform::Platform;
use crate::relay::Relay;

/// The state of the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineState {
    /// Connecting for the first time.
    Connecting,
    /// In the room.
    Connected,
    /// Lost; connecting again.
    Reconnecting {
        /// Which attempt, from 1.
        attempt: u32,
    },
    /// Closed for good, with a sentence that says why.
    Closed(String),
}

/// How the relay lists the host's room.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Its title.
    pub title: String,
    /// Shown on everyone's start page, so that visitors can ask to come in.
    pub visible: bool,
}

/// The parameters of a connection.
pub struct LineOptions {
    /// The relay.
    pub relay: Relay,
    /// The room's id.
    pub room: String,
    /// How this peer takes part.
    pub role: RoomRole,
    /// The listing of a room that this peer hosts.
    pub listing: Listing,
    /// Who this peer is.
    pub keys: IdentityKeys,
}

/// The connection to a room; closed on drop.
pub struct RoomLine {
    room: Rc<SealedRoom>,
    /// Nothing once the connection ends by itself.
    abort: Option<AbortHandle>,
}

impl RoomLine {
    /// Starts connecting. State changes arrive as [`Input::Line`](crate::node::Input::Line), everything else as events.
    pub fn open(platform: &Platform, options: LineOptions, inputs: Inputs) -> Self {
        let room = Rc::new(SealedRoom::new(platform, &options, inputs.clone()));
        let (abort, registration) = AbortHandle::new_pair();
        let connector = Connector::new(platform.clone(), options, inputs, room.clone());
        let task = Abortable::new(connector.run(), registration);
        platform.spawn.spawn(Box::pin(async move {
            // Aborted means that the line was dropped on purpose.
            let _ = task.await;
        }));
        Self { room, abort: Some(abort) }
    }

    /// Leaves the room. Members that take slowly still get what was sent to them, a farewell for example, and then the
    /// connection ends. Nothing more is heard of it.
    pub fn leave(mut self) {
        if self.room.leave() {
            self.abort = None;
        }
    }

    /// Sends a frame, sealed. Without a session it is lost, like frames in flight when a connection breaks.
    ///
    /// # Errors
    /// The frame exceeds the maximum length.
    pub fn send(&self, to: RelayRoute, frame: &Frame) -> Result<(), FrameError> {
        self.room.send(to, frame)
    }

    /// What is sent until [`RoomLine::release`] goes to the relay together.
    pub fn hold(&self) {
        self.room.hold();
    }

    /// Sends what waits since [`RoomLine::hold`].
    pub fn release(&self) {
        self.room.release();
    }

    /// The host's side: a peer is let in and may meet the other members.
    pub fn admit(&self, peer: PeerId) {
        self.room.admit(peer);
    }

    /// The host's side: the group has another secret.
    pub fn regroup(&self, generation: u32) {
        self.room.regroup(generation);
    }

    /// Repeats handshakes that were not answered. Called a few times a second.
    pub fn tick(&self) {
        self.room.tick();
    }

    /// How many frames came directly from other tabs of this browser.
    pub fn direct_frames(&self) -> u64 {
        self.room.direct_frames()
    }

    /// What it took to seal messages and to open them.
    pub fn sealing(&self) -> Sealing {
        self.room.sealing()
    }
}

impl Drop for RoomLine {
    fn drop(&mut self) {
        if let Some(abort) = &self.abort {
            self.room.disconnect();
            abort.abort();
        }
    }
}
