//! Programs that the commands need, and how to get those that are missing.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::shell::{command, find, output, run};

/// What the page is compiled for.
pub const TARGET: &str = "wasm32-unknown-unknown";

/// Cargo, the same one that runs this program.
pub fn cargo() -> Command {
    command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Makes sure that Rust can compile for WebAssembly.
pub fn ensure_target() -> Result<()> {
    let sysroot = output(command("rustc").args(["--print", "sysroot"])).context("rustc does not run")?;
    if std::path::Path::new(sysroot.trim()).join("lib/rustlib").join(TARGET).is_dir() {
        return Ok(());
    }
    println!("The WebAssembly target of Rust is missing: fetching it with rustup, under a minute.");
    run(command("rustup").args(["target", "add", TARGET]))
        .with_context(|| format!("install the Rust target {TARGET} the way Rust was installed"))
}

/// Makes sure that `cargo SUBCOMMAND` works, which comes with this component of Rust.
pub fn ensure_component(subcommand: &str, component: &str) -> Result<()> {
    if output(cargo().args([subcommand, "--version"])).is_some() {
        return Ok(());
    }
    println!("`cargo {subcommand}` is missing: fetching it with rustup, under a minute.");
    run(command("rustup").args(["component", "add", component]))
}

/// Node's package manager, needed by the end-to-end tests only.
pub fn npm() -> Result<Command> {
    match find("npm").or_else(|| find("npm.cmd")) {
        Some(npm) => Ok(command(npm)),
        None => bail!("this needs Node 20 or newer, which is not installed: get it from nodejs.org"),
    }
}
