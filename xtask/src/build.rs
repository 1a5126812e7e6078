//! Building the page and the relay.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Context, Result, anyhow};

use crate::remap::without_paths;
use crate::root;
use crate::shell::{command, find, run, run_quietly};
use crate::sums;
use crate::tools::{TARGET, cargo, ensure_target};

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

/// How the page is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageBuild {
    /// As it ships.
    Shipped,
    /// Larger and slower, but compiled in half a minute after a change.
    Quick,
}

impl PageBuild {
    /// Its profile in `Cargo.toml`.
    fn profile(self) -> &'static str {
        match self {
            Self::Shipped => "web",
            Self::Quick => "web-quick",
        }
    }

    /// Says how long it takes.
    fn announce(self, what: &str) {
        let again = match self {
            Self::Shipped => "about five",
            Self::Quick => "half a minute",
        };
        println!(
            "Building {what}. On two cores this takes eight minutes or more the first time, {again} after a change to the page."
        );
    }
}

/// Builds both at once, because neither build alone keeps all cores busy to its end. Returns the relay's path.
pub fn page_and_relay(build: PageBuild) -> Result<PathBuf> {
    build.announce("the page and the relay");
    ensure_target()?;
    let (page, relay) = thread::scope(|scope| {
        // Its output would get mixed up with that of the page's build.
        let relay = scope.spawn(|| {
            run_quietly(&mut bundler())?;
            run_quietly(cargo().args(["build", "--release", "--package", "potluck-relay"]))
        });
        let page = compile_page(build);
        (page, relay.join().unwrap_or_else(|_| Err(anyhow!("building the relay panicked"))))
    });
    page?;
    relay?;
    bundle(build, &root().join("dist"))?;
    Ok(relay_path("release"))
}

/// Builds the page to `dist/`.
pub fn page() -> Result<()> {
    page_to(&root().join("dist"))
}

/// Builds the page to a folder, which is replaced.
pub fn page_to(folder: &Path) -> Result<()> {
    let build = PageBuild::Shipped;
    build.announce("the page");
    ensure_target()?;
    compile_page(build)?;
    run(&mut bundler())?;
    bundle(build, folder)
}

/// Compiles the programs of the page and its workers, without paths of this machine.
fn compile_page(build: PageBuild) -> Result<()> {
    let mut cargo = cargo();
    cargo.args(["build", "--profile", build.profile(), "--target", TARGET, "--package", "potluck-web", "--bins"]);
    run(without_paths(&mut cargo)?)
}

/// The command that compiles the bundler.
pub fn bundler() -> std::process::Command {
    let mut cargo = cargo();
    cargo.args(["build", "--package", "potluck-bundle"]);
    cargo
}

/// Makes the page's folder of the compiled programs and the manifest in `index.html`.
fn bundle(build: PageBuild, folder: &Path) -> Result<()> {
    // A folder of its own: another build may be doing the same.
    let fresh = root().join(".run").join(format!("page-{}", std::process::id()));
    let bundled = bundle_by_way_of(build, &fresh, folder);
    if bundled.is_err() && fresh.exists() {
        fs::remove_dir_all(&fresh).context("cannot remove what is left of the page")?;
    }
    bundled
}

fn bundle_by_way_of(build: PageBuild, fresh: &Path, folder: &Path) -> Result<()> {
    let mut bundle = command(program_path("debug", "potluck-bundle"));
    run(bundle.arg("index.html").arg(target_folder().join(TARGET).join(build.profile())).arg(fresh))?;
    if build == PageBuild::Shipped
        && let Some(wasm_opt) = find("wasm-opt")
    {
        optimize(fresh, &wasm_opt)?;
    }
    let hash = sums::write(fresh)?;
    if build == PageBuild::Shipped {
        println!("The page's release hash is {hash}.");
    }
    // Replaced in one go: a relay that is running serves the old page or the new one, never half of each.
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("cannot remove the old {}", folder.display()))?;
    }
    fs::rename(fresh, folder).with_context(|| format!("cannot put the page into {}", folder.display()))
}

/// Makes the WebAssembly smaller where the optimizer is installed. The page works without it and only loads slower.
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
            Err(error) => println!("{error:#}; using the file as it is."),
        }
    }
    Ok(())
}

/// Builds what other steps run, with the features that all crates together have in tests: those of one crate's dependencies may
/// be fewer, and then most of them would be compiled again. After `cargo test --workspace` little is left to do.
pub fn as_in_tests() -> Result<()> {
    let programs = ["--bin", "potluck-relay", "--bin", "potluck-node", "--bin", "potluck-fuzz-smoke", "--examples"];
    run(cargo().args(["build", "--workspace"]).args(programs))
}

/// Where the relay is after a build with this profile.
pub fn relay_path(profile: &str) -> PathBuf {
    program_path(profile, "potluck-relay")
}

/// Where a program is after a build with this profile.
pub fn program_path(profile: &str, name: &str) -> PathBuf {
    target_folder().join(profile).join(executable(name))
}

/// Where integration tests have their folders.
pub fn test_folders() -> PathBuf {
    target_folder().join("tmp")
}

/// Where compiled programs are.
pub fn target_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |folder| root().join(folder))
}

fn executable(name: &str) -> String {
    format!("{name}{}", std::env::consts::EXE_SUFFIX)
}
