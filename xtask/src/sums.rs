//! The list of the page's files with their hashes, and the release's hash.

use std::ffi::OsStr;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use sha2::{Digest, Sha256};

use crate::trunk::{Files, files};

/// The list's name in the page's folder.
const NAME: &str = "SHA256SUMS";

/// Writes the list to a page's folder, as `sha256sum` writes it: a line for each file, sorted by name. Returns the release's hash:
/// the list's own. No file of the page contains either, so the list covers all of them.
///
/// # Errors
/// A file cannot be read or written, or has a name that cannot stand in the list.
pub fn write(page: &Path) -> Result<String> {
    let mut files = files(page)?;
    files.remove(OsStr::new(NAME));
    let list = list(&files)?;
    let path = page.join(NAME);
    fs::write(&path, &list).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(hash(list.as_bytes()))
}

/// The release's hash of a built page.
///
/// # Errors
/// The list cannot be read.
pub fn release_hash(page: &Path) -> Result<String> {
    let path = page.join(NAME);
    let list = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(hash(&list))
}

fn list(files: &Files) -> Result<String> {
    let mut list = String::new();
    for (name, bytes) in files {
        let name = name.to_str().context("a file of the page has a name that is no text")?;
        let plain = |letter: char| letter.is_ascii_alphanumeric() || ['.', '-', '_'].contains(&letter);
        ensure!(name.chars().all(plain), "{name:?} can only have letters, digits, dots, hyphens and underscores");
        writeln!(list, "{}  {name}", hash(bytes))?;
    }
    Ok(list)
}

fn hash(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().fold(String::with_capacity(64), |mut text, byte| {
        // Writing to a string cannot fail.
        _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn the_list_is_what_sha256sum_writes() {
        let files = Files::from([("b.js".into(), b"abc".to_vec()), ("a.css".into(), Vec::new())]);
        // SHA-256 of nothing and of "abc", from FIPS 180-2.
        let expected = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  a.css\n\
                        ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  b.js\n";
        assert_eq!(list(&files).unwrap(), expected);
        assert!(list(&Files::from([("a b".into(), Vec::new())])).is_err());
    }

    #[test]
    fn the_list_is_not_in_itself() {
        let folder = std::env::temp_dir().join(format!("potluck-sums-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("index.html"), "a").unwrap();
        let hashes = [write(&folder).unwrap(), write(&folder).unwrap(), release_hash(&folder).unwrap()];
        fs::remove_dir_all(&folder).unwrap();
        assert!(hashes.iter().all(|hash| *hash == hashes[0]), "{hashes:?}");
    }
}
