//! How a node enters a room.

use potluck_protocol::{EarlierLinks, RevokedInvites, Term};
use potluck_trust::{IdentityKeys, RoomRole};

use crate::relay::Relay;

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
    /// The term in which it hosts.
    pub term: Term,
    /// The revoked invites of this room.
    pub revoked: RevokedInvites,
    /// The links that it had before it was renewed.
    pub earlier_links: EarlierLinks,
    /// Who this peer is.
    pub keys: IdentityKeys,
    /// This device may connect to other devices, and on the host: so may the members of its room.
    pub connects: bool,
}
