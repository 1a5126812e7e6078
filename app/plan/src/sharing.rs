//! How a room's work is shared among its devices.

use serde::{Deserialize, Serialize};

/// How work is shared among the devices that contribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Sharing {
    /// The plan with the fewest milliseconds per token. Devices that would only slow it down stay spares.
    Fastest,
    /// Every device gets at least one block while there are blocks. The slowest stage is made as fast as possible.
    Everyone,
    /// As many experts as possible on other devices, each on several, so that nobody's leaving is felt. A block costs a
    /// round trip. Models without experts are shared as with [`Sharing::Fastest`].
    Experts,
}

/// Where the ends of a model may be computed: embedding and first block, last block and LM head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Ends {
    /// On any device.
    #[default]
    Anywhere,
    /// On the host, with the experts of both blocks: no other device gets token ids or logits.
    OnHost,
}
