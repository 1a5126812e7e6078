//! The relay: it serves the page and the weights, keeps rooms, and forwards frames without looking into them.
//!
//! - [`server`]: the routes, starting and stopping.
//! - [`protocol`]: what members of a room and the relay say to each other. Read this first.
//! - [`rooms`]: opening, joining, forwarding, putting out.
//! - [`models`]: weights by HTTP ranges, and hashes that let any piece be checked ([`models::groups`]).
//! - [`page`]: the built page.
//! - [`readable`]: errors for people who open an address in a browser.
//! - [`net`]: one port that speaks plain HTTP to this machine and HTTPS to the others.
//! - [`limits`] and [`metrics`]: every limit, every count.
#![forbid(unsafe_code)]

pub mod error;
pub mod limits;
pub mod metrics;
pub mod models;
pub mod net;
pub mod page;
pub mod protocol;
mod rate;
pub mod readable;
pub mod rooms;
pub mod server;

pub use server::{Config, Relay};
