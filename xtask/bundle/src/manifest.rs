//! What `index.html` asks for: the tags that Trunk knows, as far as our page uses them.

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
    /// `<base data-trunk-public-url>`: the address of the page's folder.
    Base,
    /// A file that keeps its name.
    Copy(&'a str),
    /// A style sheet; its name gets a hash.
    Css(&'a str),
    /// The program of the page itself; its name gets a hash.
    Main(&'a str),
    /// The program of a worker. It keeps its name, because loaders name it.
    Worker(&'a str),
}

/// Reads the manifest.
///
/// # Errors
/// A request that nothing here fulfils: it must not get lost.
pub fn read(html: &str) -> Result<Vec<Entry<'_>>> {
    let mut entries = Vec::new();
    for tag in tags(html) {
        let request = if tag.attributes.contains_key("data-trunk-public-url") {
            Request::Base
        } else if tag.attributes.contains_key("data-trunk") {
            request(&tag.attributes).with_context(|| format!("in {}", &html[tag.span.clone()]))?
        } else {
            continue;
        };
        entries.push(Entry { span: tag.span, request });
    }
    Ok(entries)
}

fn request<'a>(attributes: &BTreeMap<&'a str, &'a str>) -> Result<Request<'a>> {
    let attribute = |name: &str| attributes.get(name).copied().with_context(|| format!("no attribute {name}"));
    Ok(match attribute("rel")? {
        "copy-file" => Request::Copy(attribute("href")?),
        "css" => Request::Css(attribute("href")?),
        "rust" => match attribute("data-type")? {
            "main" => Request::Main(attribute("data-bin")?),
            "worker" => Request::Worker(attribute("data-bin")?),
            other => bail!("cannot build a program of type {other:?}"),
        },
        other => bail!("cannot build {other:?}"),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn requests_are_read_in_order_and_plain_tags_left_alone() {
        let html = r#"<base data-trunk-public-url /><link rel="icon" href="/a.svg" />
            <link data-trunk rel="copy-file" href="a.svg" /><link data-trunk rel="css" href="b.css" />
            <link data-trunk rel="rust" href="Cargo.toml" data-bin="page" data-type="main" />
            <link data-trunk rel="rust" href="Cargo.toml" data-bin="node" data-type="worker" />"#;
        let requests: Vec<Request> = read(html).unwrap().into_iter().map(|entry| entry.request).collect();
        let expected = [
            Request::Base,
            Request::Copy("a.svg"),
            Request::Css("b.css"),
            Request::Main("page"),
            Request::Worker("node"),
        ];
        assert_eq!(requests, expected);
    }

    #[test]
    fn unknown_requests_are_refused() {
        for html in ["<link data-trunk rel=\"sass\" href=\"a\">", "<link data-trunk rel=\"css\">"] {
            assert!(read(html).is_err(), "{html}");
        }
    }
}
