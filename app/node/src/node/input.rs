//! What reaches the driver's loop. Events of the node's parts become inputs here, so no part knows the loop.

use std::rc::Rc;

use potluck_gguf::Metadata;
use potluck_panel as panel;
use potluck_plan::Bytes;
use potluck_protocol::{FrameError, PieceRequest};
use potluck_swarm::{Event, HostCommand};

use super::hosting::HostingId;
use crate::compute;
use crate::events;
use crate::open::Model;
use crate::platform::{LocalFile, Measured};
use crate::room::{self, LineState, Ticket};

/// Sends to the driver's loop.
pub type Inputs = events::Sender<Input>;

/// The driver's loop reads from here.
pub type InputQueue = events::Receiver<Input>;

/// An input of the driver's loop.
pub enum Input {
    /// An event for the state machine.
    Event(Event),
    /// A frame of another member, and its place among those that wait.
    Frame(Event, Ticket),
    /// A message of the page, with the files it chose.
    Page(panel::ToNode, Vec<Rc<dyn LocalFile>>),
    /// Host a model on this device without a room, with a budget in bytes: for measurements, and for one prompt at a terminal.
    Alone(HostCommand, u64, Vec<Rc<dyn LocalFile>>),
    /// The connection to the relay changed.
    Line(LineState),
    /// A sentence for the page.
    Notice(String),
    /// A room's link was renewed: the room's id, and the key of the new link.
    LinkRenewed(String, String),
    /// The hosted file is still being checked: who does, and how far.
    FileChecked(String),
    /// So many bytes of the hosted file are checked, and so many there are.
    Checked(Bytes, Bytes),
    /// There will be no shadow: why.
    ShadowFailed(String),
    /// A frame could not be decoded.
    BadFrame(FrameError, Option<Ticket>),
    /// Opening the GPU ended, with or without success.
    GpuOpened,
    /// The GPU is lost.
    DeviceLost,
    /// Reopening the GPU ended, with or without success.
    GpuReopened,
    /// The measurement for the contribution of this generation ended.
    Measured(u64, Result<Measured, String>),
    /// Opening the model to host ended, or failed for the reason in this sentence.
    Opened(HostingId, Result<(Rc<Model>, Box<Metadata>), String>),
    /// The page's snapshot changed.
    Changed,
    /// End the loop.
    Quit,
}

impl Input {
    /// For the recording.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Event(Event::Tick) => "a tick",
            Self::Event(Event::Wake) => "a wake-up",
            Self::Event(_) | Self::Frame(..) => "an event",
            Self::Page(..) => "a message of the page",
            _ => "an input",
        }
    }
}

impl Inputs {
    /// Queues an event for the state machine.
    pub fn event(&self, event: Event) {
        self.send(Input::Event(event));
    }
}

impl From<compute::Event> for Input {
    fn from(event: compute::Event) -> Self {
        match event {
            compute::Event::Computed(computed) => Self::Event(Event::Computed(computed)),
            compute::Event::Foreseen(conversation, word) => Self::Event(Event::Foreseen(conversation, word)),
            compute::Event::DeviceLost => Self::DeviceLost,
            compute::Event::ShadowFailed(sentence) => Self::ShadowFailed(sentence),
        }
    }
}

impl From<room::Event> for Input {
    fn from(event: room::Event) -> Self {
        match event {
            room::Event::Member(event) => Self::Event(event),
            room::Event::Frame(event, ticket) => Self::Frame(event, ticket),
            room::Event::Line(state) => Self::Line(state),
            room::Event::BadFrame(error, ticket) => Self::BadFrame(error, ticket),
            room::Event::Notice(sentence) => Self::Notice(sentence),
            room::Event::WordsChanged => Self::Changed,
            room::Event::LinkRenewed { room, key } => Self::LinkRenewed(room, key),
        }
    }
}

impl From<PieceRequest> for Input {
    fn from(request: PieceRequest) -> Self {
        Self::Event(Event::PieceWanted(request))
    }
}
