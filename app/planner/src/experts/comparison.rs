//! The two ways to place experts, side by side: with their blocks, and spread over all devices.

use super::spread::Pool;
use super::{best_of, drafts, has_experts, millis};
use crate::planned::{best_layers, may_fit};
use crate::search::Chain;
use crate::{Room, Sharing};

/// What a token takes if experts are spread over the devices, and if they stay with their blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// Blocks that need a round trip if they are spread.
    pub trips: usize,
    /// Milliseconds a token then takes.
    pub spread_millis: f64,
    /// Milliseconds a token takes with whole blocks; none if they do not fit on the devices.
    pub whole_millis: Option<f64>,
}

/// Compares the best plan that spreads the experts with the fastest one of whole blocks. `None` if there is nothing to
/// spread, nobody to spread it over, or no memory for it.
pub fn compare(room: &Room<'_>) -> Option<Comparison> {
    if !has_experts(room) || room.devices.len() < 2 || !may_fit(room) {
        return None;
    }
    let of = |sharing| Room { sharing, ..room.clone() };
    let (fastest, spread) = (of(Sharing::Fastest), of(Sharing::Experts));
    let whole = best_layers(&fastest, Chain::new(&fastest));
    let pool = Pool::new(&spread);
    let best = best_of(&pool, &drafts(&pool, whole.is_none()), f64::INFINITY)?;
    Some(Comparison {
        trips: best.stages.iter().map(|stage| stage.remote.len()).sum(),
        spread_millis: best.millis,
        whole_millis: whole.map(|stages| millis(&fastest, &stages)),
    })
}
