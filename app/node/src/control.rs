//! The relay's messages in the terms of a node, which keeps routes as plain numbers ([`RelayRoute`](potluck_swarm::RelayRoute)).

use potluck_relay_api::Route;
pub use potluck_relay_api::{Control, Request};

/// Splits a binary message into the sender's route and the frame.
pub fn split_route(message: &[u8]) -> Option<(u32, &[u8])> {
    Route::split(message).map(|(route, frame)| (route.0, frame))
}

/// Puts the receiver's route before a frame.
pub fn with_route(route: u32, frame: &[u8]) -> Vec<u8> {
    Route(route).prepend(frame)
}
