//! What building the page needs, and how to get it where it is missing.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::root;
use crate::shell::{command, find, output, run, tools_folder};

/// The last Trunk that builds with the Rust version this workspace asks for.
const TRUNK: &str = "0.21.14";
const TARGET: &str = "wasm32-unknown-unknown";

/// Cargo, the same one that runs this program.
pub fn cargo() -> Command {
    command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Brings the WebAssembly target, Trunk and wasm-bindgen.
pub fn ensure_page_tools() -> Result<()> {
    ensure_target()?;
    ensure_trunk()?;
    ensure_wasm_bindgen()
}

/// Brings the standard library for WebAssembly.
pub fn ensure_target() -> Result<()> {
    let sysroot = output(command("rustc").args(["--print", "sysroot"])).context("rustc does not run")?;
    if std::path::Path::new(sysroot.trim()).join("lib/rustlib").join(TARGET).is_dir() {
        return Ok(());
    }
    println!("The WebAssembly target of Rust is missing: fetching it with rustup, under a minute.");
    run(command("rustup").args(["target", "add", TARGET]))
        .with_context(|| format!("bring the Rust target {TARGET} by the way your Rust was installed"))
}

/// Brings a component of the Rust distribution that `cargo NAME` comes from.
pub fn ensure_component(subcommand: &str, component: &str) -> Result<()> {
    if output(cargo().args([subcommand, "--version"])).is_some() {
        return Ok(());
    }
    println!("`cargo {subcommand}` is missing: fetching it with rustup, under a minute.");
    run(command("rustup").args(["component", "add", component]))
}

fn ensure_trunk() -> Result<()> {
    let found = output(command("trunk").arg("--version"));
    if found.is_some_and(|text| text.split_whitespace().any(|word| word == TRUNK)) {
        return Ok(());
    }
    println!("Trunk {TRUNK}, which builds the page, is missing: compiling it, 4 to 10 minutes, once.");
    // Its own release profile optimizes across all crates, which takes twice as long and gains nothing here.
    install(&["trunk", "--version", TRUNK, "--locked", "--no-default-features"])
}

fn ensure_wasm_bindgen() -> Result<()> {
    let lock = fs::read_to_string(root().join("Cargo.lock")).context("cannot read Cargo.lock")?;
    let wanted = locked_version(&lock, "wasm-bindgen").context("Cargo.lock names no wasm-bindgen")?;
    let found = output(command("wasm-bindgen").arg("--version"));
    if found.is_some_and(|text| text.split_whitespace().any(|word| word == wanted)) {
        return Ok(());
    }
    println!("wasm-bindgen {wanted}, the version in Cargo.lock, is missing: compiling it, 1 to 3 minutes, once.");
    // Without --locked: the lock file it comes with is older than what this Rust version wants.
    install(&["wasm-bindgen-cli", "--version", wanted, "--no-default-features"])
}

fn install(arguments: &[&str]) -> Result<()> {
    let mut install = cargo();
    install.args(["install", "--quiet", "--root"]).arg(tools_folder()).args(arguments);
    let fast = [("LTO", "off"), ("CODEGEN_UNITS", "16"), ("OPT_LEVEL", "2"), ("DEBUG", "false")];
    for (key, value) in fast {
        install.env(format!("CARGO_PROFILE_RELEASE_{key}"), value);
    }
    run(&mut install)
}

/// The version of a package in a lock file.
fn locked_version<'a>(lock: &'a str, package: &str) -> Option<&'a str> {
    let name = format!("name = \"{package}\"");
    let mut lines = lock.lines().skip_while(|line| *line != name);
    lines.nth(1)?.strip_prefix("version = \"")?.strip_suffix('"')
}

/// Node's package manager, needed by the end-to-end tests only.
pub fn npm() -> Result<Command> {
    match find("npm").or_else(|| find("npm.cmd")) {
        Some(npm) => Ok(command(npm)),
        None => bail!("the end-to-end tests need Node 20 or newer, which is not installed: get it from nodejs.org"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_locked_version_is_that_of_the_package_itself() {
        let lock = "[[package]]\nname = \"wasm-bindgen-macro\"\nversion = \"0.1.0\"\n\n\
                    [[package]]\nname = \"wasm-bindgen\"\nversion = \"0.2.130\"\nsource = \"x\"\n";
        assert_eq!(locked_version(lock, "wasm-bindgen"), Some("0.2.130"));
        assert_eq!(locked_version(lock, "trunk"), None);
    }
}
