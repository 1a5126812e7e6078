//! The web adapters. A tab has three contexts:
//!
//! - the **page half** ([`page`]): what a worker lacks (wake lock, visibility, persistence, the file picker's files). It
//!   starts the node worker, watches it, and starts another one if it dies.
//! - the **node worker** ([`node`]): GPU, WebSocket, the driver. It reads stored weights itself, straight into mapped
//!   staging buffers.
//! - the **storage worker** ([`storage`]): writes to OPFS, whose calls block. It is nested in the node worker: it lives
//!   and dies with it, so a dead node never leaves an open file behind, and no third party has to introduce them.
//!
//! Node workers of several tabs reach each other directly ([`same_browser`]), and those of several devices if they may ([`connections`]).

mod connections;
mod files;
pub(crate) mod forms;
mod http;
mod js;
mod locks;
mod logging;
mod messages;
mod net;
pub mod node;
mod open_file;
mod opfs;
mod packs;
pub mod page;
mod same_browser;
pub mod storage;
mod store;
mod streams;
mod time;

use std::rc::Rc;

pub use page::PageHalf;

use self::connections::ConnectionsPort;
use self::same_browser::DiscoveryPort;
use crate::platform::{Access, Direct, Platform};

/// The adapters of the node worker.
fn platform(discovery: &DiscoveryPort, connections: &ConnectionsPort) -> Platform {
    Platform {
        transport: Rc::new(net::WebTransport::default()),
        access: Access::default(),
        same_browser: Rc::new(discovery.clone()),
        connections: Rc::new(connections.clone()),
        store: Rc::new(store::OpfsStore::new()),
        compute: Rc::new(Direct),
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
