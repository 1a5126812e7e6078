//! A page of your own on the relay: `cargo run -p potluck-relay --example own_page`, or with `-- FOLDER` the page in that folder.
//!
//! It is served as Potluck's page is: with a content security policy that has the hashes of its scripts, and on the origin of the
//! relay's endpoints (`potluck_relay_api`), which it may fetch.

use std::error::Error;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use potluck_relay::limits::Limits;
use potluck_relay::net::names::Machine;
use potluck_relay::net::proxy::Proxies;
use potluck_relay::{Config, Relay};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = std::env::args().nth(1).map_or_else(|| repository.join("relay/examples/own_page"), PathBuf::from);
    let relay = Relay::start(Config {
        ip: Ipv4Addr::LOCALHOST.into(),
        port: 0,
        page: Some(page),
        models: vec![repository.join("public/models")],
        origin: Default::default(),
        cache: std::env::temp_dir().join("potluck-own-page"),
        identity: None,
        machine: Machine::default(),
        hosts: Vec::new(),
        proxies: Proxies::default(),
        peers: Vec::new(),
        access: Default::default(),
        public_metrics: false,
        limits: Limits::default(),
    })
    .await?;
    println!("Open http://{}, and press Enter to stop.", relay.address());
    // Where nobody can press it, it stops at once.
    let enter = tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new()));
    relay.run(async { drop(enter.await) }).await;
    println!("Stopped.");
    Ok(())
}
