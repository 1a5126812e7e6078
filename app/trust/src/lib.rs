//! Who a peer is, and what nobody between two peers can read or change.
//!
//! - [`identity`]: a device's key, a tab's key, and the [`Certificate`] that a peer shows in every handshake.
//! - [`room_keys`]: the owner's key, which names the room, and the secrets that are derived for it.
//! - [`invite`]: what the host signs, and the keys that a link holds.
//! - [`handshake`]: one Noise handshake (`XXpsk0`) between two connections.
//! - [`words`]: the words that two people compare to rule out a man in the middle.
//! - [`channel`]: sealed messages after it.
//! - [`Sessions`]: all handshakes and channels of one connection to a room, as a state machine.
//!
//! The cryptography is `snow`, `ed25519-dalek`, `chacha20poly1305`, `ring` and `blake3`; nothing here invents any. No I/O and no
//! clock, and randomness comes from the caller, so that tests can repeat every run.
//!
//! What this protects against, and what not, is in `docs/threat-model.md`.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod channel;
mod cipher;
pub mod handshake;
pub mod identity;
pub mod invite;
pub mod room_keys;
mod sessions;
mod wire;
pub mod words;

pub use identity::{Certificate, IdentityKeys, NodeIdentity, Random};
pub use invite::{DoorKey, InviteKey, Terms};
pub use potluck_plan::DeviceId;
pub use room_keys::{GroupSecret, OwnerKey, RoomSecret};
pub use sessions::{Action, Closed, Proof, RoomRole, Route, Sessions};
pub use wire::{OVERHEAD, VERSION};
pub use words::SessionWords;
