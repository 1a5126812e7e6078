//! `potluck-node`: a peer without a browser.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    potluck_terminal::main()
}
