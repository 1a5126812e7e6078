//! What every part of a peer needs while it handles one event.

use potluck_plan::Millis;

use crate::HintOptions;
use crate::engine_kv_cache::EngineKvCache;
use crate::experts::Holders;
use crate::members::Members;
use crate::outbox::Outbox;
use crate::own_biases::OwnBiases;

/// The clock, the room's members and the actions collected so far. [`crate::Peer::on`] sets the clock; everything below
/// it takes the context as its last parameter.
pub(crate) struct EventContext {
    pub now: Millis,
    pub members: Members,
    /// How devices answer that were asked for experts.
    pub holders: Holders,
    /// How holders with slots are told what comes.
    pub hints: HintOptions,
    /// The KV cache of this device's engine, which plans and checks share.
    pub kv_cache: EngineKvCache,
    /// What this device, as the host's, adds to logits that it computes itself.
    pub biases: OwnBiases,
    pub out: Outbox,
}
