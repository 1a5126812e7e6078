//! Cost model, placement and search: pure functions from devices, links and a model's sizes to a
//! [`Plan`](potluck_plan::Plan).
//!
//! One objective covers the whole space: milliseconds per decoded token, seen from the coordinator ([`predict`]).
//! Dynamic programming over sets or orders of devices finds the layer ranges; experts go to other peers where that is
//! faster (dynamic-partitioning.txt 5, moex.txt 3). [`standby`] plans for the loss of a device, [`what_would_help`]
//! finds the least additional memory that helps, [`preload`] what to load while the model does not fit yet. `measures`
//! turns measurements into speeds and links.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod cost;
mod delay;
mod ends;
pub mod experts;
mod forecast;
mod help;
mod initialization;
mod layers;
mod links;
pub mod measures;
mod normal;
mod on_demand;
mod placement;
mod planned;
mod prediction;
mod prefill;
mod preload;
mod reason;
mod room;
mod search;
mod spares;
mod standby;
mod step;
mod trips;

pub use cost::{hops, predict};
pub use delay::{Attempt, Call, Delay, expected_max, hedge_millis};
pub use ends::free_millis;
pub use forecast::{Observed, ObservedStage, forecast, split_network_millis};
pub use help::{Gain, Help, HelpSearch, what_would_help};
pub use initialization::{SESSION_START_MILLIS, TAU, load_millis};
pub use layers::{Layer, LayerRange, Layers};
pub use links::{AccessLink, Link, Links};
pub use on_demand::{holder_storage_rate, keeps_up, on_demand, storage_rate, why_not_on_demand};
pub use planned::{Planned, ShortOf, Shortfall, plan};
pub use potluck_plan::{Ends, Hedging, Sharing};
pub use prediction::{Bottleneck, ExpertTrip, HopCost, Prediction, StageCost};
pub use prefill::{Prefill, first_token_millis, predict_prefill};
pub use preload::{plan_keeping, preload};
pub use room::{Device, Effort, PlannerView, Presence, Room, Speed, see_all};
pub use spares::{Spare, SpareReason};
pub use standby::{Exposed, HostLoss, Standby, StandbyKind, StandbySearch, Standbys, standby, standby_keeping};
pub use step::Step;
