//! Building the page and the relay.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::root;
use crate::shell::{command, find, run};
use crate::tools::{cargo, ensure_page_tools};

/// Extensions of WebAssembly that every browser with WebGPU has; older optimizers want them named.
const WASM_FEATURES: [&str; 7] = [
    "--enable-bulk-memory",
    "--enable-multivalue",
    "--enable-mutable-globals",
    "--enable-nontrapping-float-to-int",
    "--enable-reference-types",
    "--enable-sign-ext",
    "--enable-simd",
];

/// Builds the page to `dist/`.
pub fn page() -> Result<()> {
    ensure_page_tools()?;
    println!("Building the page: about 5 minutes the first time, seconds later.");
    let fresh = root().join(".run").join("page");
    let mut trunk = command("trunk");
    trunk.args(["build", "--release", "--cargo-profile", "web", "--dist"]).arg(&fresh);
    trunk.env("TRUNK_OFFLINE", "true").env("TRUNK_SKIP_VERSION_CHECK", "true");
    // Trunk reads NO_COLOR as a truth value and refuses the usual "1".
    trunk.env_remove("NO_COLOR");
    run(&mut trunk)?;
    if let Some(wasm_opt) = find("wasm-opt") {
        optimize(&fresh, &wasm_opt)?;
    }
    // Replaced in one go: a relay that is running serves the old page or the new one, never half of each.
    let dist = root().join("dist");
    if dist.exists() {
        fs::remove_dir_all(&dist).context("cannot remove the old dist")?;
    }
    fs::rename(&fresh, &dist).context("cannot put the page into dist")
}

/// Makes the WebAssembly smaller, where the optimizer is installed. It is not needed: the page only loads faster.
fn optimize(page: &Path, wasm_opt: &Path) -> Result<()> {
    for entry in fs::read_dir(page).context("cannot read the built page")? {
        let path = entry?.path();
        if path.extension() != Some(OsStr::new("wasm")) {
            continue;
        }
        let smaller = path.with_extension("wasm.opt");
        let mut shrink = command(wasm_opt);
        shrink.arg("-Oz").args(WASM_FEATURES).arg(&path).arg("-o").arg(&smaller);
        match run(&mut shrink) {
            Ok(()) => fs::rename(&smaller, &path)?,
            Err(error) => println!("{error:#}; the file is used as it is."),
        }
    }
    Ok(())
}

/// Builds the relay: where it is.
pub fn relay() -> Result<PathBuf> {
    println!("Building the relay: 1 to 2 minutes the first time.");
    run(cargo().args(["build", "--release", "--package", "potluck-relay"]))?;
    Ok(relay_of("release"))
}

/// Where the relay lies after a build with this profile.
pub fn relay_of(profile: &str) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |dir| root().join(dir));
    target.join(profile).join(format!("potluck-relay{}", std::env::consts::EXE_SUFFIX))
}
