//! `docs/claims.md` names a test or a record for each claim: they are there.

use std::fs;

use anyhow::{Context, Result, bail};

use crate::root;

/// Checks that each file, test and record that the page names exists.
pub fn check() -> Result<()> {
    let page = fs::read_to_string(root().join("docs/claims.md")).context("cannot read docs/claims.md")?;
    let read = |path: &str| fs::read_to_string(root().join(path)).ok();
    let is_there = |name: &str| exists(name, read);
    let gone: Vec<&str> = names(&page).filter(|name| !is_there(name)).collect();
    if !gone.is_empty() {
        bail!("docs/claims.md names what is not there:\n    {}", gone.join("\n    "));
    }
    println!("Claims: {} tests and records, all there.", names(&page).count());
    Ok(())
}

/// What stands between backticks in the last column of the page's tables.
fn names(page: &str) -> impl Iterator<Item = &str> {
    let rows = page.lines().filter_map(|line| line.strip_prefix('|')?.strip_suffix('|')?.rsplit_once('|'));
    rows.flat_map(|(_, held_by)| held_by.split('`').skip(1).step_by(2))
}

/// A file, a test of a file (`path::name`), or a record (`name`).
fn exists(name: &str, read: impl Fn(&str) -> Option<String>) -> bool {
    match name.split_once("::") {
        Some((path, test)) => read(path).is_some_and(|text| text.contains(&format!("fn {test}("))),
        None if name.contains('/') => read(name).is_some(),
        None => read(&format!("bench/results/{name}.json")).is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_column_names_tests_and_records() {
        let page = "| claim | held by |\n|---|---|\n| `chat` works | `a/b.rs::it_works`, `c/d.rs`; record `e` |\n\n`f/g.rs` says so.";
        assert_eq!(names(page).collect::<Vec<_>>(), ["a/b.rs::it_works", "c/d.rs", "e"]);
    }

    #[test]
    fn what_is_not_there_is_noticed() {
        let read = |path: &str| match path {
            "a/b.rs" => Some("fn it_works() {}".to_owned()),
            "bench/results/e.json" => Some(String::new()),
            _ => None,
        };
        for (name, expected) in [
            ("a/b.rs", true),
            ("a/b.rs::it_works", true),
            ("a/b.rs::it_work", false),
            ("a/c.rs::it_works", false),
            ("a/c.rs", false),
            ("e", true),
            ("f", false),
        ] {
            assert_eq!(exists(name, read), expected, "{name}");
        }
    }
}
