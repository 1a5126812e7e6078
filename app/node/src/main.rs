//! `potluck-node`: a peer without a browser.
#![forbid(unsafe_code)]

#[cfg(not(target_arch = "wasm32"))]
fn main() -> std::process::ExitCode {
    potluck_node::native::cli::main()
}

/// The headless peer is a native program; in a browser the crate's `web` module is used.
#[cfg(target_arch = "wasm32")]
fn main() {}
