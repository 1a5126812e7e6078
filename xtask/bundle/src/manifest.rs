//! What `index.html` asks for: `<link data-bundle rel="…" href="…" />`.

use std::collections::BTreeMap;
use std::ops::Range;

use anyhow::{Context, Result, bail};

use crate::html::tags;

/// One request of the manifest, and the tag that makes it.
#[derive(Debug, PartialEq)]
pub struct Entry<'a> {
    pub span: Range<usize>,
    pub request: Request<'a>,
}

#[derive(Debug, PartialEq)]
pub enum Request<'a> {
    /// A file that keeps its name.
    Copy(&'a str),
    /// A style sheet; its name gets a hash.
    Css(&'a str),
    /// The program of the page itself; its name gets a hash.
    Page(&'a str),
    /// The program of a worker. It keeps its name, because loaders name it.
    Worker(&'a str),
    /// A program that a worker loads beside its own, as a global named after it. It keeps its name, too.
    Library(&'a str),
}

impl<'a> Request<'a> {
    /// The name of a file that the page may start as a worker.
    pub fn script(&self) -> Option<&'a str> {
        match self {
            Self::Copy(path) => {
                Some(path.rsplit_once('/').map_or(*path, |(_, name)| name)).filter(|name| name.ends_with(".js"))
            }
            _ => None,
        }
    }
}

/// Reads the manifest.
///
/// # Errors
/// A request that nothing here fulfils: it must not get lost.
pub fn read(html: &str) -> Result<Vec<Entry<'_>>> {
    let mut entries = Vec::new();
    for tag in tags(html).into_iter().filter(|tag| tag.name == "link") {
        // Another bundler's requests look like these.
        if tag.attributes.keys().any(|name| name.starts_with("data-")) {
            let request = request(&tag.attributes).with_context(|| format!("in {}", &html[tag.span.clone()]))?;
            entries.push(Entry { span: tag.span, request });
        }
    }
    Ok(entries)
}

fn request<'a>(attributes: &BTreeMap<&'a str, &'a str>) -> Result<Request<'a>> {
    let attribute = |name: &str| attributes.get(name).copied().with_context(|| format!("no attribute {name}"));
    attribute("data-bundle")?;
    let href = attribute("href")?;
    Ok(match attribute("rel")? {
        "copy-file" => Request::Copy(href),
        "css" => Request::Css(href),
        "page" => Request::Page(href),
        "worker" => Request::Worker(href),
        "library" => Request::Library(href),
        other => bail!("cannot build {other:?}"),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn requests_are_read_in_order_and_plain_tags_left_alone() {
        let html = r#"<base href="/" /><link rel="icon" href="/a.svg" />
            <link data-bundle rel="copy-file" href="a.svg" /><link data-bundle rel="css" href="b.css" />
            <link data-bundle rel="page" href="page" /><link data-bundle rel="worker" href="node" />"#;
        let requests: Vec<Request> = read(html).unwrap().into_iter().map(|entry| entry.request).collect();
        let expected = [Request::Copy("a.svg"), Request::Css("b.css"), Request::Page("page"), Request::Worker("node")];
        assert_eq!(requests, expected);
    }

    #[test]
    fn unknown_requests_are_refused() {
        for tag in
            [r#"data-bundle rel="sass" href="a""#, r#"data-bundle rel="css""#, r#"data-trunk rel="css" href="a""#]
        {
            let html = format!("<link {tag}>");
            assert!(read(&html).is_err(), "{html}");
        }
    }
}
