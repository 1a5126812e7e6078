//! When holders of experts went and came while somebody waited for an answer.

use std::time::{SystemTime, UNIX_EPOCH};

use potluck_panel::Status;
use serde_json::{Value, json};

use super::report::holders;

/// Who holds experts, as a room shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Held {
    /// Devices that are asked.
    holders: usize,
    /// Holders of the expert that has the fewest.
    fewest: u32,
    /// Experts with fewer than there should be.
    short: u32,
}

/// Every change of it, with its time on this machine's clock.
#[derive(Default)]
pub struct HolderChanges {
    seen: Vec<(u128, Held)>,
}

impl HolderChanges {
    /// Notes what a room shows now, if that is new.
    pub fn note(&mut self, status: &Status) {
        let experts = status.plan.as_ref().and_then(|plan| plan.experts.as_ref());
        let held = experts.map(|experts| Held {
            holders: holders(status),
            fewest: experts.fewest_holders,
            short: experts.short,
        });
        let is_new = |held: &Held| self.seen.last().is_none_or(|(_, before)| before != held);
        if let Some(held) = held.filter(is_new) {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
            self.seen.push((now, held));
        }
    }

    /// For a line of JSON.
    pub fn lines(&self) -> Value {
        let line = |(at, held): &(u128, Held)| json!({ "unix_ms": *at as u64, "holders": held.holders, "fewest": held.fewest, "short": held.short });
        self.seen.iter().map(line).collect()
    }
}
