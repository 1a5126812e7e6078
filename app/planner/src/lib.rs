//! Cost model, placement and search: pure functions from devices, links and a model's sizes to a
//! [`Plan`](potluck_plan::Plan).
//!
//! One objective covers the whole space: milliseconds for one decoded token, seen from the coordinator
//! ([`predict`]). Layer ranges are found by dynamic programming over sets or orders of devices, experts go to other peers
//! where that is quicker (dynamic-partitioning.txt 5, moex.txt 3). [`standby`] says who takes over when a device goes,
//! [`what_would_help`] what is worth bringing. `measures` turns what was measured into speeds and links.
#![forbid(unsafe_code)]

mod cost;
mod experts;
mod forecast;
mod help;
mod initialization;
mod layers;
mod links;
pub mod measures;
mod placement;
mod planned;
mod prediction;
mod prefill;
mod preload;
mod random;
mod reason;
mod room;
mod search;
mod spares;
mod standby;

pub use cost::predict;
pub use forecast::{Observed, ObservedStage, forecast, split_network_millis};
pub use help::{Gain, Help, what_would_help};
pub use initialization::{SESSION_START_MILLIS, TAU, load_millis};
pub use layers::{Layer, LayerRange, Layers};
pub use links::{AccessLink, Link, Links};
pub use planned::{Planned, Shortfall, plan};
pub use potluck_plan::Sharing;
pub use prediction::{Bottleneck, ExpertTrip, HopCost, Prediction, StageCost};
pub use prefill::{Prefill, first_token_millis, predict_prefill};
pub use preload::{plan_keeping, preload};
pub use room::{Device, Effort, Presence, Room, Speed};
pub use spares::{Spare, SpareReason};
pub use standby::{Exposed, Standby, StandbyKind, Standbys, standby, standby_keeping};
