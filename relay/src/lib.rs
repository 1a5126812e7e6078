//! The relay: it serves the page and the weights, keeps rooms, and forwards frames without looking into them.
//!
//! - `potluck_relay_api`: the messages and HTTP bodies. Read this first.
//! - [`server`]: starting, accepting connections, stopping; `routes`: the endpoints.
//! - [`rooms`]: entering, forwarding, evicting.
//! - [`models`]: weights by HTTP range, and the hashes that let any piece be checked ([`models::groups`]).
//! - [`page`]: the built page; `headers`: what browsers refuse for it.
//! - [`Operator`]: what may be asked of a running relay.
//! - [`error_page`]: errors for people who open an address in a browser.
//! - [`net`]: one port that speaks plain HTTP to this machine and HTTPS to others; which hosts and proxies count.
//! - [`limits`], [`quotas`] and [`metrics`]: every limit, what an address uses of it, every counter.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod access;
pub mod error;
pub mod error_page;
mod etag;
mod headers;
pub mod limits;
pub mod metrics;
mod missing;
pub mod models;
pub mod net;
mod operate;
mod operator;
pub mod page;
mod peers;
pub mod quotas;
mod rate;
pub mod rooms;
mod routes;
pub mod server;

pub use error::StartError;
pub use missing::Missing;
pub use operator::Operator;
pub use server::{Config, Relay};
