//! Whom this program talks to.

use potluck_node::native::{Fingerprint, Network};

/// The network, as a room needs it.
#[derive(Clone, Debug, PartialEq, clap::Args)]
#[command(next_help_heading = "Network")]
pub struct NetworkOptions {
    /// The name under which others see this device
    #[arg(long, default_value = NetworkOptions::DEFAULT_NAME)]
    pub name: String,
    /// SHA-256 fingerprint of the relay's certificate authority, or of its certificate, as the relay shows it. Needed if no public
    /// authority vouches for the relay, unless the room's link contains the fingerprint
    #[arg(long, value_name = "HEX")]
    pub relay_fingerprint: Option<Fingerprint>,
    /// Also follow links to models that use http, or that lead to this device or its private network. Without this option, only links
    /// to the relay and https links to public addresses are followed, because a room's host chooses the link for all its devices
    #[arg(long)]
    pub allow_private_links: bool,
}

impl NetworkOptions {
    /// The name of a device that was given none.
    pub const DEFAULT_NAME: &str = "Native peer";

    /// The network with a relay.
    pub fn network(&self, relay: &str) -> Network {
        Network {
            relay: relay.to_owned(),
            relay_fingerprint: self.relay_fingerprint,
            allow_private_links: self.allow_private_links,
        }
    }
}
