//! `cargo xtask run`.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::options::Run;
use crate::shell::command;
use crate::{build, root};

/// Builds everything, then runs the relay until it is stopped.
pub fn run(options: &Run) -> Result<()> {
    for folder in &options.models {
        if !folder.is_dir() {
            bail!("{} is not a folder: --models wants one with GGUF files", folder.display());
        }
    }
    build::page()?;
    let relay = build::relay()?;
    let root = root();
    let mut relay = command(relay);
    relay.arg("--page").arg(root.join("dist")).arg("--data").arg(root.join(".run"));
    // The model that comes along first: it is ready at once.
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
    become_it(relay)
}

/// Becomes the relay, so that Ctrl-C reaches it alone and it can say goodbye to the rooms.
#[cfg(unix)]
fn become_it(mut relay: Command) -> Result<()> {
    use std::os::unix::process::CommandExt;
    Err(relay.exec()).context("the relay does not start")
}

#[cfg(not(unix))]
fn become_it(mut relay: Command) -> Result<()> {
    crate::shell::run(&mut relay).context("the relay")
}
