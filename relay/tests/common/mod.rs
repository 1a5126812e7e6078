//! A relay on a free port, and clients for it.
#![allow(dead_code, unused_imports, reason = "no test uses all of it")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod http;
mod keys;
mod member;
mod program;
mod running;
mod tls;

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use potluck_relay::Config;
use potluck_relay::limits::Limits;
use potluck_relay::net::proxy::Proxies;

pub use http::{Reply, request};
pub use keys::{Invite, Keys};
pub use member::{Member, fragment, ping};
pub use program::{Program, command};
pub use running::{Running, start};
pub use tls::connector;

/// How long anything may take before a test fails instead of hanging.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// A folder of its own for each test, emptied first.
pub fn folder(test: &str) -> PathBuf {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}-{}-{number}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// A relay for this machine only, without page and models.
pub fn config(test: &str) -> Config {
    Config {
        ip: Ipv4Addr::LOCALHOST.into(),
        port: 0,
        page: None,
        models: Vec::new(),
        origin: Default::default(),
        cache: folder(test).join("cache"),
        identity: None,
        machine: Default::default(),
        hosts: Vec::new(),
        proxies: Proxies::default(),
        peers: Vec::new(),
        access: Default::default(),
        public_metrics: false,
        limits: Limits::default(),
    }
}
