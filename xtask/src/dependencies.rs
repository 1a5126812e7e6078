//! Licences and origin of every crate that is built in, from `cargo metadata` and `deny.toml`.
//!
//! `cargo deny` reads the same file and also looks for known faults, but takes minutes to compile and needs the network.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::root;
use crate::shell::output;
use crate::tools::cargo;

/// The parts of `deny.toml` that are checked here. Whatever else they may say has to be understood first.
#[derive(Debug, Deserialize)]
struct Rules {
    licenses: Licenses,
    bans: Bans,
    sources: Sources,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Licenses {
    allow: BTreeSet<String>,
    /// How sure `cargo deny` has to be of a text's licence. Texts are not read here.
    #[serde(rename = "confidence-threshold")]
    _confidence_threshold: f64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Bans {
    wildcards: Deny,
    allow_wildcard_paths: Yes,
    #[serde(rename = "multiple-versions")]
    _multiple_versions: Allow,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Sources {
    unknown_registry: Deny,
    unknown_git: Deny,
}

#[derive(Debug, Deserialize)]
enum Deny {
    #[serde(rename = "deny")]
    Deny,
}

#[derive(Debug, Deserialize)]
enum Allow {
    #[serde(rename = "allow")]
    Allow,
}

#[derive(Debug, Deserialize)]
#[serde(try_from = "bool")]
struct Yes;

impl TryFrom<bool> for Yes {
    type Error = &'static str;

    fn try_from(value: bool) -> Result<Self, Self::Error> {
        if value { Ok(Self) } else { Err("only `true` is understood here") }
    }
}

/// What `cargo metadata` says.
#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Debug, Deserialize)]
struct Package {
    name: String,
    version: String,
    /// An expression of SPDX names.
    license: Option<String>,
    /// None for a folder of this machine.
    source: Option<String>,
    manifest_path: PathBuf,
    dependencies: Vec<Dependency>,
}

#[derive(Debug, Deserialize)]
struct Dependency {
    name: String,
    req: String,
    source: Option<String>,
    /// Set if it is another registry than Cargo's own.
    registry: Option<String>,
}

/// Checks the crates of `Cargo.lock`, for all platforms.
pub fn check() -> Result<()> {
    let path = root().join("deny.toml");
    let rules = fs::read_to_string(&path).context("cannot read deny.toml")?;
    let rules: Rules = toml::from_str(&rules).context("deny.toml says something that is not checked here")?;
    let arguments = ["metadata", "--format-version", "1", "--all-features", "--locked"];
    let metadata =
        output(cargo().args(arguments)).context("`cargo metadata --locked` failed: is Cargo.lock up to date?")?;
    let metadata: Metadata = serde_json::from_str(&metadata).context("cargo metadata cannot be read")?;
    let faults = faults(&rules, &metadata.packages, &root());
    ensure!(faults.is_empty(), "deny.toml does not allow:\n{}", faults.join("\n"));
    println!("{} crates: licences and sources are as deny.toml wants them.", metadata.packages.len());
    Ok(())
}

/// One line for each thing that the rules forbid.
fn faults(rules: &Rules, packages: &[Package], root: &Path) -> Vec<String> {
    // Each rule has one value only so far.
    let Bans { wildcards: Deny::Deny, allow_wildcard_paths: Yes, _multiple_versions: Allow::Allow } = &rules.bans;
    let Sources { unknown_registry: Deny::Deny, unknown_git: Deny::Deny } = &rules.sources;
    let own = |package: &&Package| package.source.is_none();
    let needed = || packages.iter().filter(own).flat_map(|package| &package.dependencies);
    // Cargo's own registry is where our crates get those from for which they name none.
    let known: BTreeSet<&str> =
        needed().filter(|dependency| dependency.registry.is_none()).filter_map(registry_of).collect();
    let mut faults = Vec::new();
    for package in packages {
        let mut fault = |what: String| faults.push(format!("    {} {}: {what}", package.name, package.version));
        match package.license.as_deref().map(|license| (license, is_allowed(license, &rules.licenses.allow))) {
            None => fault("it names no licence".to_owned()),
            Some((_, Ok(true))) => {}
            Some((license, Ok(false))) => fault(format!("its licence is {license}")),
            Some((license, Err(error))) => fault(format!("its licence {license:?} cannot be read: {error}")),
        }
        match &package.source {
            None if package.manifest_path.starts_with(root) => {}
            None => fault(format!("it comes from {}, outside of this repository", package.manifest_path.display())),
            Some(source) if known.contains(source.as_str()) => {}
            Some(source) => fault(format!("it comes from {source}")),
        }
    }
    let any = needed().filter(|dependency| dependency.req == "*" && dependency.source.is_some());
    faults.extend(any.map(|dependency| format!("    {}: any version of it would do", dependency.name)));
    faults
}

fn registry_of(dependency: &Dependency) -> Option<&str> {
    dependency.source.as_deref().filter(|source| source.starts_with("registry+"))
}

/// Whether the allowed licences are enough for an expression: `MIT OR Apache-2.0`, `(A OR B) AND C WITH D`, and `A/B`, the old
/// way to write "or".
fn is_allowed(expression: &str, allowed: &BTreeSet<String>) -> Result<bool> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    let is_allowed = any_of(&mut rest, allowed)?;
    ensure!(rest.is_empty(), "{:?} is too much", rest.join(" "));
    Ok(is_allowed)
}

fn any_of(words: &mut &[&str], allowed: &BTreeSet<String>) -> Result<bool> {
    let mut one = all_of(words, allowed)?;
    while let ["OR", rest @ ..] = words {
        *words = rest;
        one |= all_of(words, allowed)?;
    }
    Ok(one)
}

fn all_of(words: &mut &[&str], allowed: &BTreeSet<String>) -> Result<bool> {
    let mut all = one(words, allowed)?;
    while let ["AND", rest @ ..] = words {
        *words = rest;
        all &= one(words, allowed)?;
    }
    Ok(all)
}

fn one(words: &mut &[&str], allowed: &BTreeSet<String>) -> Result<bool> {
    match *words {
        ["(", rest @ ..] => {
            *words = rest;
            let inner = any_of(words, allowed)?;
            let [")", rest @ ..] = words else { bail!("a bracket stays open") };
            *words = rest;
            Ok(inner)
        }
        [] | ["AND" | "OR" | "WITH" | ")", ..] => bail!("a licence is missing"),
        [license, "WITH", exception, rest @ ..] => {
            *words = rest;
            Ok(allowed.contains(&format!("{license} WITH {exception}")))
        }
        [license, rest @ ..] => {
            *words = rest;
            Ok(allowed.contains(*license))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    const RULES: &str = r#"
        [advisories]
        ignore = []
        [licenses]
        allow = ["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"]
        confidence-threshold = 0.9
        [bans]
        multiple-versions = "allow"
        wildcards = "deny"
        allow-wildcard-paths = true
        [sources]
        unknown-registry = "deny"
        unknown-git = "deny"
    "#;

    fn allowed(expression: &str) -> Result<bool> {
        let rules: Rules = toml::from_str(RULES).unwrap();
        is_allowed(expression, &rules.licenses.allow)
    }

    #[test]
    fn a_licence_may_be_chosen_but_all_that_apply_must_be_allowed() {
        for (expression, expected) in [
            ("MIT", true),
            ("GPL-3.0", false),
            ("GPL-3.0 OR MIT", true),
            ("GPL-3.0/MIT", true),
            ("GPL-3.0 AND MIT", false),
            ("MIT AND ISC OR GPL-3.0", true),
            ("(MIT OR GPL-3.0) AND ISC", true),
            ("MIT OR (GPL-3.0 AND ISC)", true),
            ("(MIT OR ISC) AND GPL-3.0", false),
            ("Apache-2.0", false),
            ("Apache-2.0 WITH LLVM-exception", true),
            ("MIT WITH LLVM-exception", false),
        ] {
            assert_eq!(allowed(expression).unwrap(), expected, "{expression}");
        }
        for nonsense in ["", "MIT OR", "(MIT", "MIT)", "MIT ISC", "AND MIT", "MIT WITH"] {
            assert!(allowed(nonsense).is_err(), "{nonsense:?}");
        }
    }

    #[test]
    fn a_rule_that_is_not_understood_is_an_error() {
        for (known, unknown) in [
            ("unknown-git = \"deny\"", "unknown-git = \"warn\""),
            ("allow-wildcard-paths = true", "allow-wildcard-paths = false"),
            ("confidence-threshold = 0.9", "confidence-threshold = 0.9\nexceptions = []"),
        ] {
            let rules = RULES.replace(known, unknown);
            assert!(rules != RULES && toml::from_str::<Rules>(&rules).is_err(), "{unknown}");
        }
    }

    #[test]
    fn crates_come_from_this_repository_and_cargos_registry() {
        let package = |name: &str, source: Option<&str>, path: &str, dependencies: Vec<Dependency>| Package {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            license: Some("MIT".to_owned()),
            source: source.map(str::to_owned),
            manifest_path: path.into(),
            dependencies,
        };
        let needs = |name: &str, req: &str, source: Option<&str>, registry: Option<&str>| Dependency {
            name: name.to_owned(),
            req: req.to_owned(),
            source: source.map(str::to_owned),
            registry: registry.map(str::to_owned),
        };
        let (common, other, git) = (Some("registry+common"), Some("registry+other"), Some("git+somewhere"));
        let own = vec![
            needs("good", "^1", common, None),
            needs("odd", "^1", other, Some("other")),
            needs("any", "*", common, None),
            needs("beside", "*", None, None),
        ];
        let packages = [
            package("own", None, "/repository/own/Cargo.toml", own),
            package("good", common, "/cache/good/Cargo.toml", vec![needs("deep", "*", common, None)]),
            package("odd", other, "/cache/odd/Cargo.toml", Vec::new()),
            package("forked", git, "/cache/forked/Cargo.toml", Vec::new()),
            package("outside", None, "/elsewhere/Cargo.toml", Vec::new()),
            Package { license: None, ..package("silent", common, "/cache/silent/Cargo.toml", Vec::new()) },
            Package {
                license: Some("GPL-3.0".into()),
                ..package("strict", common, "/cache/strict/Cargo.toml", vec![])
            },
        ];
        let faults = faults(&toml::from_str(RULES).unwrap(), &packages, Path::new("/repository"));
        let of: Vec<&str> = faults.iter().map(|fault| fault.split_whitespace().next().unwrap()).collect();
        assert_eq!(of, ["odd", "forked", "outside", "silent", "strict", "any:"], "{faults:#?}");
    }
}
