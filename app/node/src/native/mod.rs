//! The native adapters and the headless peer `potluck-node`.

pub mod cli;
mod delay;
mod files;
mod fingerprint;
mod net;
mod public;
mod readers;
mod relay_tls;
mod store;
pub mod study;
mod time;
mod tls;

use std::path::PathBuf;
use std::rc::Rc;

pub use delay::{BadDelay, Delay};
pub use files::{DiskFile, open_model_files};
pub use fingerprint::{BadFingerprint, Fingerprint};
pub use net::{NativeTransport, Network};
pub use store::FolderStore;
pub use time::{LocalSpawn, MonotonicClock};

use crate::platform::Platform;

/// The native adapters. Must be called inside a `LocalSet` of a current-thread runtime.
///
/// `cache` is the folder of downloaded weights.
pub fn platform(cache: PathBuf, network: &Network) -> Platform {
    Platform {
        transport: Rc::new(NativeTransport::new(network)),
        same_browser: Rc::new(net::NoSameBrowser),
        store: Rc::new(FolderStore::new(cache)),
        clock: Rc::new(MonotonicClock::default()),
        spawn: Rc::new(LocalSpawn),
        random,
    }
}

pub(crate) fn random(bytes: &mut [u8]) {
    // A system without randomness cannot run TLS or anything else either.
    getrandom::fill(bytes).expect("the operating system gives random bytes");
}
