//! Whom this program talks to.

use potluck_node::native::{Fingerprint, Network};

/// The network, as a room needs it.
#[derive(Clone, Debug, PartialEq, clap::Args)]
#[command(next_help_heading = "Network")]
pub struct NetworkOptions {
    /// The name that others see
    #[arg(long, default_value = "Native peer")]
    pub name: String,
    /// SHA-256 fingerprint of the relay's own certificate, as the relay shows it
    #[arg(long, value_name = "HEX")]
    pub relay_fingerprint: Option<Fingerprint>,
    /// Let links to models lead to this device and its network, and over http
    #[arg(long)]
    pub allow_private_links: bool,
}

impl NetworkOptions {
    /// The network with a relay.
    pub fn network(&self, relay: &str) -> Network {
        Network {
            relay: relay.to_owned(),
            relay_fingerprint: self.relay_fingerprint,
            allow_private_links: self.allow_private_links,
        }
    }
}
