//! Keeps paths of this machine out of the page, so that a commit can give the same bytes in every folder and for every person.
//!
//! Programs contain the paths of their sources, for panic messages. These are replaced by names that are the same everywhere.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::build::target_folder;
use crate::root;
use crate::shell::{command, output};
use crate::tools::cargo;

/// What stands for the folder of the repository, for that of compiled programs, and for those of crates.
const REPOSITORY: &str = "/potluck";
const COMPILED: &str = "/compiled";
const CRATES: &str = "/crates";

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    manifest_path: PathBuf,
    /// None for a crate of this repository.
    source: Option<String>,
}

/// Makes a Cargo command compile without paths of this machine. It ignores the compiler flags that a person has set for all
/// programs: the page must not depend on them.
///
/// # Errors
/// Cargo or rustc do not say where their files are.
pub fn without_paths(cargo: &mut Command) -> Result<&mut Command> {
    let flags: Vec<String> = renamed()?.into_iter().map(|(path, name)| flag(&path, &name)).collect();
    Ok(cargo.env_remove("RUSTFLAGS").env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}")))
}

fn flag(path: &Path, name: &str) -> String {
    format!("--remap-path-prefix={}={name}", path.display())
}

/// Folders and their names. Of two that contain a file the later one counts.
fn renamed() -> Result<Vec<(PathBuf, String)>> {
    let mut renamed = vec![(root(), REPOSITORY.to_owned()), (target_folder(), COMPILED.to_owned())];
    let metadata = output(cargo().args(["metadata", "--format-version", "1"]));
    let metadata = metadata.context("cargo metadata failed")?;
    let metadata: Metadata = serde_json::from_str(&metadata).context("cargo metadata changed its form")?;
    renamed.extend(folders_of_crates(metadata.packages).into_iter().map(|folder| (folder, CRATES.to_owned())));
    renamed.push(sources_of_rust()?);
    Ok(renamed)
}

/// The folders that contain the sources of crates from elsewhere.
fn folders_of_crates(packages: Vec<Package>) -> BTreeSet<PathBuf> {
    let outside = packages.into_iter().filter(|package| package.source.is_some());
    outside.filter_map(|package| Some(package.manifest_path.parent()?.parent()?.to_owned())).collect()
}

/// Where the sources of Rust's standard library are if they are installed, and the path that its compiled form contains otherwise.
fn sources_of_rust() -> Result<(PathBuf, String)> {
    let ask = |question: &[&str]| output(command("rustc").args(question)).context("rustc does not run");
    let sysroot = PathBuf::from(ask(&["--print", "sysroot"])?.trim());
    let version = ask(&["--version", "--verbose"])?;
    let commit = version.lines().find_map(|line| line.strip_prefix("commit-hash: ")).unwrap_or("unknown");
    Ok((sysroot.join("lib/rustlib/src/rust"), format!("/rustc/{commit}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_from_elsewhere_are_named_alike_wherever_they_lie() {
        let package = |path: &str, source: Option<&str>| Package {
            manifest_path: path.into(),
            source: source.map(str::to_owned),
        };
        let folders = folders_of_crates(vec![
            package("/home/one/.cargo/registry/src/index-1/a-1.0.0/Cargo.toml", Some("registry")),
            package("/home/one/.cargo/registry/src/index-1/b-2.0.0/Cargo.toml", Some("registry")),
            package("/home/one/potluck/app/ui/Cargo.toml", None),
        ]);
        assert_eq!(folders, BTreeSet::from([PathBuf::from("/home/one/.cargo/registry/src/index-1")]));
        assert_eq!(flag(Path::new("/home/one"), "/crates"), "--remap-path-prefix=/home/one=/crates");
    }
}
