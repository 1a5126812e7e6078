//! The storage worker: the browser's files and hashing.
#![forbid(unsafe_code)]

#[cfg(target_arch = "wasm32")]
fn main() {
    potluck_node::web::storage::run();
}

#[cfg(not(target_arch = "wasm32"))]
fn main() {
    eprintln!("This program runs in a browser. Start everything with: cargo xtask run");
}
