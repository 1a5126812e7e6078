//! Links in Markdown: each file and each heading that one names is there. Addresses of other sites are not asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, bail};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::root;
use crate::shell::{command, output};

/// Checks all Markdown files that git tracks or would track.
pub fn check() -> Result<()> {
    let list = output(command("git").args(["ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.md"]))
        .context("git cannot list the files")?;
    let mut documents = BTreeMap::new();
    for name in list.split('\0').filter(|name| !name.is_empty() && root().join(name).is_file()) {
        documents.insert(PathBuf::from(name), Document::read(&fs::read_to_string(root().join(name))?));
    }
    let dead = dead(&documents, |path| root().join(path).exists());
    if !dead.is_empty() {
        bail!("links that lead nowhere:\n{}", dead.join("\n"));
    }
    let count: usize = documents.values().map(|document| document.links.len()).sum();
    println!("Links: {count} in {} Markdown files, each leads somewhere.", documents.len());
    Ok(())
}

/// One line for each link that leads nowhere.
fn dead(documents: &BTreeMap<PathBuf, Document>, exists: impl Fn(&Path) -> bool) -> Vec<String> {
    let mut dead = Vec::new();
    for (name, document) in documents {
        for (line, link) in document.links.iter().filter(|(_, link)| !is_elsewhere(link)) {
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if path.is_empty() { Some(name.clone()) } else { resolve(name, path) };
            let why = match &target {
                None => Some("is outside the repository"),
                Some(target) if !exists(target) => Some("is not there"),
                Some(target) => {
                    let has = |document: &Document| anchor.is_empty() || document.anchors.contains(anchor);
                    (!documents.get(target).is_none_or(has)).then_some("has no such heading")
                }
            };
            dead.extend(why.map(|why| format!("    {}:{line}: {link} {why}", name.display())));
        }
    }
    dead
}

/// An address with a scheme.
fn is_elsewhere(link: &str) -> bool {
    link.split_once(':').is_some_and(|(scheme, _)| scheme.chars().all(|c| c.is_ascii_alphanumeric()))
}

/// The file that a link of `from` names, from the root; `None` above it.
fn resolve(from: &Path, link: &str) -> Option<PathBuf> {
    let mut path = from.parent()?.to_owned();
    for part in Path::new(link).components() {
        match part {
            Component::Normal(name) => path.push(name),
            Component::ParentDir => {
                if !path.pop() {
                    return None;
                }
            }
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(path)
}

/// What a Markdown file links to, with the lines, and which of its headings others can link to.
#[derive(Debug, Default)]
struct Document {
    links: Vec<(usize, String)>,
    anchors: BTreeSet<String>,
}

impl Document {
    fn read(text: &str) -> Self {
        let (mut links, mut anchors) = (Vec::new(), BTreeSet::new());
        let mut heading: Option<String> = None;
        for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
            let line = || text[..range.start].matches('\n').count() + 1;
            match event {
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    let slug = slug(&heading.take().unwrap_or_default());
                    let mut names = std::iter::once(slug.clone()).chain((1..).map(|n| format!("{slug}-{n}")));
                    anchors.extend(names.find(|name| !anchors.contains(name)));
                }
                Event::Text(words) | Event::Code(words) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&words);
                    }
                }
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    links.push((line(), dest_url.into_string()));
                }
                Event::Html(html) | Event::InlineHtml(html) => {
                    for attribute in ["src=\"", "href=\""] {
                        let values = html.split(attribute).skip(1).filter_map(|rest| rest.split_once('"'));
                        links.extend(values.map(|(value, _)| (line(), value.to_owned())));
                    }
                }
                _ => {}
            }
        }
        Self { links, anchors }
    }
}

/// The anchor of a heading, as the forges make it.
fn slug(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The dead links of a repository with these documents and a folder `src`.
    fn dead_in(documents: &[(&str, &str)]) -> Vec<String> {
        let documents: BTreeMap<PathBuf, Document> =
            documents.iter().map(|(name, text)| (PathBuf::from(name), Document::read(text))).collect();
        dead(&documents, |path| documents.contains_key(path) || path == Path::new("src"))
    }

    #[test]
    fn links_that_lead_somewhere_are_left_alone() {
        let readme = "# Top\n[a](docs/a.md#two-words) [b](#top) [c](https://c.example/#d) [d](mailto:d@e.f) [e](src)\n\
                      <img src=\"docs/a.md\">\n```\n[f](nowhere)\n```\n`[g](nowhere)`\n[h]\n\n[h]: docs/a.md#two-words-1";
        let other = "## Two `words`\n## Two words\n[up](../README.md#top) [this folder's](./a.md)";
        assert_eq!(dead_in(&[("README.md", readme), ("docs/a.md", other)]), [""; 0]);
    }

    #[test]
    fn links_that_lead_nowhere_are_named_with_their_lines() {
        let readme = "# Top\n\n[a](docs/b.md)\n[b](docs/a.md#three)\n| x |\n|---|\n| [c](#tip) |\n\n[d](../out) [e](/src)\n\n<a href=\"gone.png\">";
        assert_eq!(
            dead_in(&[("README.md", readme), ("docs/a.md", "# Two")]),
            [
                "    README.md:3: docs/b.md is not there",
                "    README.md:4: docs/a.md#three has no such heading",
                "    README.md:7: #tip has no such heading",
                "    README.md:9: ../out is outside the repository",
                "    README.md:9: /src is outside the repository",
                "    README.md:11: gone.png is not there",
            ]
        );
    }

    #[test]
    fn anchors_are_those_of_the_forges() {
        assert_eq!(slug("`await potluck.chat(text, options)`".trim_matches('`')), "await-potluckchattext-options");
        assert_eq!(slug("What it runs – and C++_x"), "what-it-runs--and-c_x");
    }
}
