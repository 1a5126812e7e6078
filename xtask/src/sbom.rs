//! `cargo xtask sbom`: lists the components built into each program that ships, as CycloneDX 1.5.
//!
//! The page, the relay and `potluck-node` ship. Development and build dependencies, macros and the npm packages do not: they only
//! compile or test. The list has no timestamp and no serial number, so equal commits give equal lists.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::root;
use crate::shell::output;
use crate::tools::{TARGET, cargo};

/// What ships: its name, its crate, and the only platform that it is for.
const PARTS: [(&str, &str, Option<&str>); 3] =
    [("page", "potluck-web", Some(TARGET)), ("relay", "potluck-relay", None), ("node", "potluck-terminal", None)];

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Clone, Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    /// None for a crate of this repository.
    source: Option<String>,
    targets: Vec<Target>,
}

#[derive(Clone, Deserialize)]
struct Target {
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<Kind>,
}

#[derive(Deserialize)]
struct Kind {
    /// None for what is built in.
    kind: Option<String>,
}

#[derive(Deserialize)]
struct Lock {
    package: Vec<Locked>,
}

#[derive(Deserialize)]
struct Locked {
    name: String,
    version: String,
    checksum: Option<String>,
}

/// Prints it.
///
/// # Errors
/// Cargo does not say what is built in.
pub fn print() -> Result<()> {
    println!("{:#}", bill()?);
    Ok(())
}

fn bill() -> Result<Value> {
    let mut shipped = Shipped::default();
    for (part, name, platform) in PARTS {
        shipped.add(part, name, &metadata(platform)?)?;
    }
    let lock = fs::read_to_string(root().join("Cargo.lock")).context("cannot read Cargo.lock")?;
    let lock: Lock = toml::from_str(&lock).context("Cargo.lock changed its form")?;
    Ok(shipped.bill(&checksums(lock)))
}

fn metadata(platform: Option<&str>) -> Result<Metadata> {
    let mut cargo = cargo();
    cargo.args(["metadata", "--format-version", "1", "--locked"]);
    cargo.args(platform.iter().flat_map(|platform| ["--filter-platform", platform]));
    let text = output(&mut cargo).context("`cargo metadata --locked` failed: is Cargo.lock up to date?")?;
    serde_json::from_str(&text).context("cargo metadata changed its form")
}

fn checksums(lock: Lock) -> BTreeMap<String, String> {
    let with =
        lock.package.into_iter().filter_map(|locked| Some((purl(&locked.name, &locked.version), locked.checksum?)));
    with.collect()
}

/// A package's name everywhere: see the specification of package URLs.
fn purl(name: &str, version: &str) -> String {
    format!("pkg:cargo/{name}@{version}")
}

impl Package {
    fn purl(&self) -> String {
        purl(&self.name, &self.version)
    }

    fn is_macro(&self) -> bool {
        self.targets.iter().any(|target| target.kind.iter().any(|kind| kind == "proc-macro"))
    }
}

/// Packages by their names, what each needs, and in which parts it is.
#[derive(Default)]
struct Shipped {
    packages: BTreeMap<String, Package>,
    needs: BTreeMap<String, BTreeSet<String>>,
    parts: BTreeMap<String, BTreeSet<&'static str>>,
}

impl Shipped {
    /// Adds everything that is built into a crate.
    fn add(&mut self, part: &'static str, name: &str, metadata: &Metadata) -> Result<()> {
        let packages: BTreeMap<&str, &Package> =
            metadata.packages.iter().map(|package| (package.id.as_str(), package)).collect();
        let nodes: BTreeMap<&str, &Node> = metadata.resolve.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
        let first = metadata.packages.iter().find(|package| package.name == name && package.source.is_none());
        let mut open = vec![first.with_context(|| format!("there is no crate {name}"))?];
        let mut seen = BTreeSet::new();
        while let Some(package) = open.pop() {
            if !seen.insert(package.id.as_str()) {
                continue;
            }
            let node = nodes.get(package.id.as_str()).with_context(|| format!("{} is not resolved", package.name))?;
            let built_in =
                node.deps.iter().filter(|dependency| dependency.dep_kinds.iter().any(|kind| kind.kind.is_none()));
            let built_in = built_in.filter_map(|dependency| packages.get(dependency.pkg.as_str()));
            let built_in: Vec<&Package> = built_in.copied().filter(|package| !package.is_macro()).collect();
            self.needs.entry(package.purl()).or_default().extend(built_in.iter().map(|package| package.purl()));
            self.parts.entry(package.purl()).or_default().insert(part);
            self.packages.entry(package.purl()).or_insert_with(|| package.clone());
            open.extend(built_in);
        }
        Ok(())
    }

    fn bill(&self, checksums: &BTreeMap<String, String>) -> Value {
        let components: Vec<Value> =
            self.packages.iter().map(|(purl, package)| self.component(purl, package, checksums)).collect();
        let version =
            self.packages.get(&purl("potluck-web", env!("CARGO_PKG_VERSION"))).map_or("", |package| &package.version);
        let all: Vec<String> = PARTS
            .iter()
            .filter_map(|(_, name, _)| self.packages.values().find(|package| package.name == *name))
            .map(Package::purl)
            .collect();
        let needs = self.needs.iter().map(|(purl, needs)| json!({ "ref": purl, "dependsOn": needs }));
        let dependencies: Vec<Value> =
            std::iter::once(json!({ "ref": "potluck", "dependsOn": all })).chain(needs).collect();
        json!({
            "bomFormat": "CycloneDX",
            "specVersion": "1.5",
            "version": 1,
            "metadata": { "component": { "type": "application", "bom-ref": "potluck", "name": "potluck", "version": version } },
            "components": components,
            "dependencies": dependencies,
        })
    }

    fn component(&self, purl: &str, package: &Package, checksums: &BTreeMap<String, String>) -> Value {
        let parts = self.parts.get(purl).into_iter().flatten();
        let parts: Vec<Value> = parts.map(|part| json!({ "name": "potluck:part", "value": part })).collect();
        let mut component = json!({
            "type": "library",
            "bom-ref": purl,
            "name": package.name,
            "version": package.version,
            "purl": purl,
            "properties": parts,
        });
        if let Some(licence) = &package.license {
            // The old way to write "or".
            component["licenses"] = json!([{ "expression": licence.replace('/', " OR ") }]);
        }
        if let Some(checksum) = checksums.get(purl) {
            component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
        }
        component
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// An object has these fields, and no others than those and these.
    fn has(value: &Value, required: &[&str], optional: &[&str]) {
        let fields = value.as_object().unwrap_or_else(|| panic!("an object: {value}"));
        required.iter().for_each(|name| assert!(fields.contains_key(*name), "{name} is missing in {value}"));
        fields
            .keys()
            .for_each(|name| assert!([required, optional].concat().contains(&name.as_str()), "{name} in {value}"));
    }

    /// The schema of CycloneDX 1.5 (`bom-1.5.schema.json`), as far as it is about what is written here.
    #[test]
    fn it_has_what_the_schema_requires() {
        let bill = bill().unwrap();
        has(&bill, &["bomFormat", "specVersion", "version"], &["metadata", "components", "dependencies"]);
        assert_eq!((bill["bomFormat"].as_str(), bill["specVersion"].as_str()), (Some("CycloneDX"), Some("1.5")));
        assert!(bill["version"].as_u64().unwrap() >= 1);
        has(&bill["metadata"], &[], &["component"]);
        let mut names = BTreeSet::new();
        let own = &bill["metadata"]["component"];
        for component in bill["components"].as_array().unwrap().iter().chain([own]) {
            has(component, &["type", "name"], &["bom-ref", "version", "purl", "licenses", "hashes", "properties"]);
            assert!(["application", "library"].contains(&component["type"].as_str().unwrap()));
            let name = component["bom-ref"].as_str().unwrap();
            assert!(names.insert(name), "{name} is there twice");
            assert!(!component["version"].as_str().unwrap().is_empty(), "{name} has a version");
            for hash in component["hashes"].as_array().into_iter().flatten() {
                has(hash, &["alg", "content"], &[]);
                let content = hash["content"].as_str().unwrap();
                assert!(
                    hash["alg"] == "SHA-256"
                        && content.len() == 64
                        && content.bytes().all(|digit| digit.is_ascii_hexdigit())
                );
            }
            // One expression, or several licences; never both.
            let licenses = component["licenses"].as_array();
            licenses.into_iter().for_each(|licenses| assert_eq!(licenses.len(), 1, "{name}"));
            licenses.into_iter().flatten().for_each(|licence| has(licence, &["expression"], &[]));
            component["properties"]
                .as_array()
                .into_iter()
                .flatten()
                .for_each(|property| has(property, &["name", "value"], &[]));
        }
        let mut refs = BTreeSet::new();
        for dependency in bill["dependencies"].as_array().unwrap() {
            has(dependency, &["ref"], &["dependsOn"]);
            assert!(refs.insert(dependency["ref"].as_str().unwrap()), "{dependency} is there twice");
            let needs: Vec<&str> =
                dependency["dependsOn"].as_array().unwrap().iter().map(|need| need.as_str().unwrap()).collect();
            assert!(needs.iter().all(|need| names.contains(need)), "{dependency} needs what is not listed");
            assert_eq!(needs.iter().collect::<BTreeSet<_>>().len(), needs.len(), "{dependency} needs something twice");
        }
        assert_eq!(refs, names, "what each component needs is told");
    }

    #[test]
    fn only_what_ships_is_in_it() {
        let bill = bill().unwrap();
        let named = |name: &str| {
            bill["components"].as_array().unwrap().iter().find(|component| component["name"] == name).cloned()
        };
        for shipped in ["leptos", "wgpu", "axum", "potluck-node", "ring"] {
            assert!(named(shipped).is_some(), "{shipped} ships");
        }
        // Macros, tests, tools of the build, and the packages of the end-to-end tests.
        for other in [
            "serde_derive",
            "leptos_macro",
            "proptest",
            "xtask",
            "wasm-bindgen-cli-support",
            "cc",
            "playwright-core",
            "potluck-testkit",
        ] {
            assert!(named(other).is_none(), "{other} does not ship");
        }
        let parts = |name: &str| {
            named(name).unwrap()["properties"]
                .as_array()
                .unwrap()
                .iter()
                .map(|part| part["value"].clone())
                .collect::<Vec<_>>()
        };
        assert_eq!((parts("leptos"), parts("rcgen")), (vec![json!("page")], vec![json!("relay")]));
        let leptos = named("leptos").unwrap();
        assert_eq!(
            (leptos["licenses"][0]["expression"].as_str(), leptos["hashes"][0]["alg"].as_str()),
            (Some("MIT"), Some("SHA-256"))
        );
        assert!(leptos["purl"].as_str().unwrap().starts_with("pkg:cargo/leptos@0.8"));
    }
}
