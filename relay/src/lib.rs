//! The relay: it serves the page and the weights, keeps rooms, and forwards frames without looking into them.
//!
//! - `potluck_relay_api`: the messages and HTTP bodies. Read this first.
//! - [`server`]: the endpoints, starting and stopping.
//! - [`rooms`]: opening, joining, forwarding, evicting.
//! - [`models`]: weights by HTTP range, and the hashes that let any piece be checked ([`models::groups`]).
//! - [`page`]: the built page.
//! - [`error_page`]: errors for people who open an address in a browser.
//! - [`net`]: one port that speaks plain HTTP to this machine and HTTPS to others.
//! - [`limits`] and [`metrics`]: every limit, every counter.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod error;
pub mod error_page;
pub mod limits;
pub mod metrics;
pub mod models;
pub mod net;
pub mod page;
mod rate;
pub mod rooms;
pub mod server;

pub use server::{Config, Relay};
