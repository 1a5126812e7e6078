//! The node worker: GPU and relay.
#![forbid(unsafe_code)]

#[cfg(target_arch = "wasm32")]
fn main() {
    potluck_node::web::node::run();
}

#[cfg(not(target_arch = "wasm32"))]
fn main() {
    eprintln!("This program runs in a browser. Start everything with: cargo xtask run");
}
