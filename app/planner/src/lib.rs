//! Cost model, placement and search: pure functions from devices and a model's sizes to a [`Plan`](potluck_plan::Plan).
//!
//! One objective covers the whole space: milliseconds for one decoded token, seen from the coordinator. Layer ranges are
//! found by dynamic programming over every useful set of devices; experts go to other peers only where whole blocks do
//! not fit, because that costs a round trip a block (dynamic-partitioning.txt 5.2–5.3, moex.txt 3).
#![forbid(unsafe_code)]

mod cost;
mod device;
mod experts;
mod layers;
mod search;

pub use cost::{CostModel, token_millis};
pub use device::{Device, Request, Sharing};
pub use search::{Planned, Shortfall, plan};
