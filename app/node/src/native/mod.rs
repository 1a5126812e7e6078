//! The native adapters. `app/terminal` is the program that uses them.

mod files;
mod fingerprint;
mod model_file;
mod net;
mod public;
mod readers;
mod relay_tls;
mod relay_token;
mod shadow_file;
mod store;
mod time;
mod tls;

use std::path::PathBuf;
use std::rc::Rc;

pub use files::{DiskFile, open_model_files};
pub use fingerprint::{BadFingerprint, Fingerprint};
pub use model_file::{ModelFile, ModelFileError, read_language};
pub use net::{NativeTransport, Network};
pub use relay_token::{BadRelayToken, RelayToken};
pub use shadow_file::{check_shadow, check_shadow_of, load_unit};
pub use store::FolderStore;
pub use time::{LocalSpawn, MonotonicClock};

use crate::platform::{Access, Direct, NoConnections, Platform};

/// The native adapters. Must be called inside a `LocalSet` of a current-thread runtime.
///
/// `cache` is the folder of downloaded weights.
pub fn platform(cache: PathBuf, network: &Network) -> Platform {
    Platform {
        transport: Rc::new(NativeTransport::new(network)),
        access: Access::new(network.access_tokens.clone()),
        same_browser: Rc::new(net::NoSameBrowser),
        connections: Rc::new(NoConnections),
        store: Rc::new(FolderStore::new(cache)),
        compute: Rc::new(Direct),
        clock: Rc::new(MonotonicClock::default()),
        spawn: Rc::new(LocalSpawn),
        random,
    }
}

/// Fills `bytes` with random numbers of the operating system.
pub fn random(bytes: &mut [u8]) {
    // A system without randomness cannot run TLS or anything else either.
    getrandom::fill(bytes).expect("the operating system gives random bytes");
}
