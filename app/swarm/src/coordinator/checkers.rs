//! Tells devices who may check whose answers, and remembers what each was told.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use potluck_plan::{PeerId, Plan};
use potluck_protocol::{Checkers, Frame, Lineage};

use crate::SpotChecks;
use crate::event_context::EventContext;

/// What each device with a stage was told last.
#[derive(Default)]
pub(super) struct ToldCheckers(BTreeMap<PeerId, Vec<(PeerId, Lineage)>>);

impl ToldCheckers {
    /// Tells devices whose experts lie elsewhere what they do not know yet.
    pub fn tell<'a>(
        &mut self,
        plans: impl Iterator<Item = &'a Plan>,
        checks: SpotChecks,
        lineages: impl FnOnce() -> Vec<(PeerId, Lineage)>,
        cx: &mut EventContext,
    ) {
        let asks = plans.flat_map(|plan| &plan.stages).filter(|stage| !stage.remote.is_empty());
        let asks: BTreeSet<PeerId> = asks.map(|stage| stage.peer).collect();
        self.0.retain(|peer, _| asks.contains(peer));
        if asks.is_empty() || checks.share <= 0.0 {
            return;
        }
        let lineages = lineages();
        for peer in asks {
            if self.0.get(&peer) != Some(&lineages) {
                let secret = secret_of(peer, checks.secret);
                cx.out.send(peer, Frame::Checkers(Checkers { secret, lineages: lineages.clone() }));
                self.0.insert(peer, lineages.clone());
            }
        }
    }

    /// What a device was told may have been lost.
    pub fn forget(&mut self, peer: PeerId) {
        self.0.remove(&peer);
    }
}

/// A device with a stage may hold experts for another one, so each has a secret of its own.
fn secret_of(peer: PeerId, secret: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    (secret, peer).hash(&mut hasher);
    hasher.finish()
}
