//! `cargo xtask run`, and a tool that is a crate of its own: `cargo xtask simulate`.

use std::ffi::OsString;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::options::Run;
use crate::shell::command;
use crate::tools::cargo;
use crate::{build, root};

/// Builds everything, then becomes the relay.
pub fn run(options: &Run) -> Result<()> {
    for folder in &options.models {
        if !folder.is_dir() {
            bail!("{} is not a folder: --models takes a folder with GGUF files", folder.display());
        }
    }
    let relay = build::page_and_relay(options.page.build())?;
    let root = root();
    let mut relay = command(relay);
    relay.arg("--page").arg(root.join("dist")).arg("--data").arg(root.join(".run"));
    // The built-in model first: it is ready at once.
    relay.arg("--models").arg(root.join("public").join("models"));
    for folder in &options.models {
        relay.arg("--models").arg(std::path::absolute(folder)?);
    }
    if let Some(port) = options.port {
        relay.arg("--port").arg(port.to_string());
    }
    if options.local {
        relay.arg("--local");
    }
    if !options.no_open {
        relay.arg("--open");
    }
    replace_process(relay)
}

/// Runs a tool that is a crate of its own to keep this one small.
pub fn tool(package: &str, arguments: &[OsString]) -> Result<()> {
    let mut tool = cargo();
    tool.args(["run", "--quiet", "--package", package, "--"]).args(arguments);
    // Files named on the command line are meant from where it was typed.
    tool.current_dir(std::env::current_dir()?);
    replace_process(tool)
}

/// Turns this process into the command, so that Ctrl-C reaches that alone and a relay can close its rooms.
#[cfg(unix)]
fn replace_process(mut command: Command) -> Result<()> {
    use std::os::unix::process::CommandExt;
    Err(command.exec()).context("cannot start it")
}

#[cfg(not(unix))]
fn replace_process(mut command: Command) -> Result<()> {
    crate::shell::run(&mut command)
}
