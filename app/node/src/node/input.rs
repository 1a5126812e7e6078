//! What reaches the driver's loop.

use std::rc::Rc;

use potluck_gguf::Metadata;
use potluck_panel as panel;
use potluck_protocol::FrameError;
use potluck_swarm::{Event, HostCommand};

use super::hosting::HostingId;
use crate::compute::Measured;
use crate::open::Model;
use crate::platform::LocalFile;
use crate::room::LineState;

/// An input of the driver's loop.
pub enum Input {
    /// An event for the state machine.
    Event(Event),
    /// A message of the page, with the files it chose.
    Page(panel::ToNode, Vec<Rc<dyn LocalFile>>),
    /// Host a model on this device without a room, with a budget in bytes: for measurements, and for one prompt at a terminal.
    Alone(HostCommand, u64, Vec<Rc<dyn LocalFile>>),
    /// The connection to the relay changed.
    Line(LineState),
    /// A sentence for the page.
    Notice(String),
    /// The hosted file is still being checked: who does, and how far.
    FileChecked(String),
    /// There will be no shadow: why.
    ShadowFailed(String),
    /// A frame could not be decoded.
    BadFrame(FrameError),
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
            Self::Event(_) => "an event",
            Self::Page(..) => "a message of the page",
            _ => "an input",
        }
    }
}
