//! Keeps the repository small enough to clone anywhere.

use std::fs;

use anyhow::{Context, Result, bail};

use crate::root;
use crate::shell::{command, output};

/// Limit of all tracked files together, in bytes.
const MAX_BYTES: u64 = 36 * 1024 * 1024;
/// How many of the largest files an error names.
const NAMED: usize = 5;

/// Checks the size of all files that git tracks, as they are in the working tree.
pub fn check() -> Result<()> {
    let list = output(command("git").args(["ls-files", "-z"])).context("git cannot list the tracked files")?;
    let files = list.split('\0').filter(|name| !name.is_empty()).filter_map(|name| {
        // A tracked file may be deleted in the working tree.
        Some((name.to_owned(), fs::symlink_metadata(root().join(name)).ok()?.len()))
    });
    let total = check_sum(files.collect(), MAX_BYTES)?;
    println!("Tracked files: {:.1} of {} MiB.", mib(total), MAX_BYTES >> 20);
    Ok(())
}

/// The sum of `files`, or an error that names the largest if it is more than `max`.
fn check_sum(mut files: Vec<(String, u64)>, max: u64) -> Result<u64> {
    let total: u64 = files.iter().map(|(_, bytes)| bytes).sum();
    if total <= max {
        return Ok(total);
    }
    files.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    let largest: Vec<String> =
        files.iter().take(NAMED).map(|(name, bytes)| format!("    {:8.2} MiB  {name}", mib(*bytes))).collect();
    bail!("tracked files take {:.2} MiB, more than {:.2}; the largest:\n{}", mib(total), mib(max), largest.join("\n"))
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn over_the_limit_the_largest_file_is_named_first() {
        let files = || vec![("small".to_owned(), 1 << 20), ("large".to_owned(), 3 << 20)];
        assert_eq!(check_sum(files(), 4 << 20).unwrap(), 4 << 20);
        let error = check_sum(files(), (4 << 20) - 1).unwrap_err().to_string();
        assert!(error.find("large").unwrap() < error.find("small").unwrap(), "{error}");
    }
}
