//! Connections between devices past the relay.

use serde::{Deserialize, Serialize};

/// Whether this device connects to other devices. Each learns the other's network addresses by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DirectConnections {
    /// If the relay is in a private network.
    #[default]
    InPrivateNetworks,
    /// Wherever it works.
    Always,
    /// With none.
    Never,
}
