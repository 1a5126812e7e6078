//! What holds answers to a form. The node worker loads it when it is first needed.
#![forbid(unsafe_code)]

#[cfg(target_arch = "wasm32")]
fn main() {
    // Its functions are called from the node worker.
    use potluck_grammar as _;
}

#[cfg(not(target_arch = "wasm32"))]
fn main() {
    eprintln!("This program runs in a browser. Start everything with: cargo xtask run");
}
