//! The connection to a room: connects, proves that it may enter, reconnects with back-off, and turns what arrives into
//! events of authenticated peers.
//!
//! - [`RoomLine`]: the connection as the node sees it.
//! - [`connector`]: connects and listens.
//! - [`Members`]: sends and receives, all of it sealed.
//! - [`intake`]: how much the node accepts from one member.
//!
//! The way of a frame out: the node's loop gathers the frames that the state machine sends one after another
//! ([`Node`](crate::node::Node)). [`Members::send`] encodes and seals each. [`DirectLinks`](crate::direct::DirectLinks) chooses its path
//! and keeps its order where the path changes: the channel to a tab of this browser, or the relay. To the relay it passes
//! [`RelaySender`](crate::relay::RelaySender), which lets no receiver have too much on the way, and sends together what was gathered.

mod connector;
mod event;
mod intake;
mod members;
mod options;

use std::rc::Rc;

use futures::future::{AbortHandle, Abortable};

use self::connector::Connector;
pub use self::event::{Event, LineState};
pub use self::intake::Ticket;
pub use self::members::{Members, Words};
pub use self::options::{LineOptions, Listing};
use crate::events::EventSink;
use crate::platform::Platform;

/// The connection to a room; closed on drop.
pub struct RoomLine {
    /// The other members: frames to them go out here.
    pub members: Rc<Members>,
    /// Nothing once the connection ends by itself.
    abort: Option<AbortHandle>,
}

impl RoomLine {
    /// Starts connecting.
    pub fn open(platform: &Platform, options: LineOptions, events: EventSink<Event>) -> Self {
        let members = Rc::new(Members::new(platform, &options, events.clone()));
        let (abort, registration) = AbortHandle::new_pair();
        let connector = Connector::new(platform.clone(), options, events, members.clone());
        let task = Abortable::new(connector.run(), registration);
        platform.spawn.spawn(Box::pin(async move {
            // Aborted means that the line was dropped on purpose.
            let _ = task.await;
        }));
        Self { members, abort: Some(abort) }
    }

    /// Leaves the room. Members that take slowly still get what was sent to them, a farewell for example, and then the
    /// connection ends. Nothing more is heard of it.
    pub fn leave(mut self) {
        if self.members.leave() {
            self.abort = None;
        }
    }
}

impl Drop for RoomLine {
    fn drop(&mut self) {
        if let Some(abort) = &self.abort {
            self.members.disconnect();
            abort.abort();
        }
    }
}
