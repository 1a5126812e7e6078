//! What stands between a node and its engines.

use std::rc::Rc;

use potluck_engine::{Engine, EngineError};
use potluck_plan::{Computed, Work};
use serde::{Deserialize, Serialize};

/// The way of a room's work, and the way back of its results.
#[derive(Clone)]
pub struct WorkPath {
    /// Takes work.
    pub submit: Rc<dyn Fn(Work)>,
    /// Takes what came of it.
    pub results: Rc<dyn Fn(Computed)>,
}

/// Receives an engine's results.
pub type Receiver = Box<dyn Fn(Computed)>;

/// What a device can do, measured without a model.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Bytes a second that a kernel streams from GPU memory.
    pub bandwidth: f64,
    /// Milliseconds of a submission with its readback.
    pub sync_millis: f64,
}

/// Stands between a node and its engines, and passes on what it does not change. A node has [`Direct`]; another program may make
/// its device act as another one.
pub trait ComputeInterceptor {
    /// The way of the room's work through the queues in front of the engine.
    fn room(&self, next: WorkPath) -> WorkPath {
        next
    }

    /// A piece of work reaches an engine.
    ///
    /// # Errors
    /// The engine refuses it.
    fn submit(&self, engine: &Engine, work: Work) -> Result<(), EngineError> {
        engine.submit(work)
    }

    /// The way of an engine's results.
    fn results(&self, next: Receiver) -> Receiver {
        next
    }

    /// What the device can do.
    fn measured(&self, measured: Measured) -> Measured {
        measured
    }

    /// The name under which the device's times are stored.
    fn device(&self, adapter: String) -> String {
        adapter
    }
}

/// Changes nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Direct;

impl ComputeInterceptor for Direct {}
