//! What may be asked of a running relay.

use std::sync::Arc;

use tracing::info;

use crate::error::StartError;
use crate::server::Shared;

/// A hold on a running relay.
#[derive(Clone)]
pub struct Operator(Arc<Shared>);

impl Operator {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self(shared)
    }

    /// Takes no new rooms from now on, and tells so at [`READY`](potluck_relay_api::path::READY).
    pub fn drain(&self) {
        info!(rooms = self.0.rooms.count(), "draining");
        self.0.rooms.drain();
    }

    /// Reads the owner's certificate and key again; false if there are none. Connections that are open keep the certificate they began
    /// with. Reads files: not for an async thread.
    ///
    /// # Errors
    /// They cannot be used: those before stay.
    pub fn reload(&self) -> Result<bool, StartError> {
        self.0.reach.reload()
    }
}
