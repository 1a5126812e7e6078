//! `trunk build`, for people who have Trunk. Its hook in `Trunk.toml` runs `cargo xtask page`, so there is one way to make the
//! page, and both give the same files.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::shell::{command, find, output, run};
use crate::test::Closing;
use crate::{build, root};

/// The version that Trunk.toml is written for. Another program is called trunk, too.
const VERSION: &str = "trunk 0.21.";

/// The folder that a hook of Trunk is to fill; none outside of hooks.
pub fn staging_folder() -> Option<PathBuf> {
    std::env::var_os("TRUNK_STAGING_DIR").map(PathBuf::from)
}

/// Builds the page with and without Trunk and compares the files, where Trunk is installed.
pub fn check() -> (Closing, Result<()>) {
    let version = find("trunk").and_then(|trunk| output(command(trunk).arg("--version")));
    match version {
        None => (vec!["skipped: Trunk is not installed".to_owned()], Ok(())),
        Some(other) if !other.starts_with(VERSION) => {
            (vec![format!("skipped: {} is installed, not {VERSION}*", other.trim())], Ok(()))
        }
        Some(_) => (Vec::new(), compare()),
    }
}

fn compare() -> Result<()> {
    build::page()?;
    let own = files(&root().join("dist"))?;
    let folder = root().join(".run").join(format!("trunk-{}", std::process::id()));
    let by_trunk =
        run(command("trunk").args(["build", "--release", "--dist"]).arg(&folder)).and_then(|()| files(&folder));
    if folder.exists() {
        fs::remove_dir_all(&folder).context("cannot remove what Trunk built")?;
    }
    let by_trunk = by_trunk?;
    let different = differences(&own, &by_trunk);
    ensure!(different.is_empty(), "trunk build makes other files than cargo xtask page: {different:?}");
    println!("trunk build makes the same {} files as cargo xtask page.", own.len());
    Ok(())
}

/// The files of a page by their names.
pub type Files = BTreeMap<OsString, Vec<u8>>;

/// The files of a page, which has no folders.
pub fn files(page: &Path) -> Result<Files> {
    let entries = fs::read_dir(page).with_context(|| format!("cannot read {}", page.display()))?;
    entries
        .map(|entry| {
            let entry = entry?;
            let bytes = fs::read(entry.path()).with_context(|| format!("cannot read {}", entry.path().display()))?;
            Ok((entry.file_name(), bytes))
        })
        .collect()
}

/// The names of files that are not the same in both, or only in one.
pub fn differences<'a>(one: &'a Files, other: &'a Files) -> BTreeSet<&'a OsString> {
    one.keys().chain(other.keys()).filter(|name| one.get(*name) != other.get(*name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_differ_or_are_missing_are_named() {
        let page = |files: [(&str, &str); 2]| -> Files {
            files.into_iter().map(|(name, text)| (name.into(), text.into())).collect()
        };
        let one = page([("a.js", "1"), ("b.js", "2")]);
        assert_eq!(differences(&one, &one.clone()).len(), 0);
        let other = page([("b.js", "3"), ("c.js", "4")]);
        assert_eq!(differences(&one, &other).into_iter().collect::<Vec<_>>(), ["a.js", "b.js", "c.js"]);
    }
}
