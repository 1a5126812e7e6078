//! The web adapters. A tab has three contexts:
//!
//! - the **page half** ([`page`]): what a worker lacks (wake lock, visibility, persistence, the file picker's files). It
//!   starts the node worker, watches it, and starts another one if it dies.
//! - the **node worker** ([`node`]): GPU, WebSocket, the driver. It reads stored weights itself, straight into mapped
//!   staging buffers.
//! - the **storage worker** ([`storage`]): writes to OPFS, whose calls block. It is nested in the node worker: it lives
//!   and dies with it, so a dead node never leaves an open file behind, and no third party has to introduce them.
//!
//! Node workers of several tabs reach each other past the relay ([`neighbours`]).

mod files;
mod js;
mod locks;
mod logging;
mod neighbours;
mod net;
pub mod node;
mod opfs;
mod packs;
pub mod page;
pub mod storage;
mod store;
mod streams;
mod time;

use std::rc::Rc;

pub use page::PageHalf;

use self::neighbours::Introducer;
use crate::platform::Platform;

/// The adapters of the node worker.
fn platform(introducer: &Introducer) -> Platform {
    Platform {
        transport: Rc::new(net::WebTransport),
        neighbours: Rc::new(introducer.clone()),
        store: Rc::new(store::OpfsStore::new()),
        clock: Rc::new(time::WorkerClock),
        spawn: Rc::new(time::WorkerSpawn),
        random,
    }
}

fn random(bytes: &mut [u8]) {
    let crypto = js::worker().crypto();
    if crypto.and_then(|crypto| crypto.get_random_values_with_u8_array(bytes)).is_err() {
        log::error!("this browser gives no random bytes");
    }
}
