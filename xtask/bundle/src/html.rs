//! Just enough HTML to find and replace tags in a file of our own.

use std::collections::BTreeMap;
use std::ops::Range;

/// A start tag: where it is and what it says.
#[derive(Debug, PartialEq)]
pub struct Tag<'a> {
    /// From `<` to `>`.
    pub span: Range<usize>,
    pub name: &'a str,
    /// An attribute without a value has an empty one.
    pub attributes: BTreeMap<&'a str, &'a str>,
}

/// All start tags, in order. Comments are skipped; a script that contains `<` would be misread.
pub fn tags(html: &str) -> Vec<Tag<'_>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(open) = html[at..].find('<').map(|offset| at + offset) {
        let rest = &html[open + 1..];
        let length = if rest.starts_with("!--") { rest.find("-->").map(|end| end + 2) } else { end_of_tag(rest) };
        let Some(length) = length else { break };
        at = open + 1 + length + 1;
        if rest.starts_with(|first: char| first.is_ascii_alphabetic()) {
            found.push(read(&rest[..length], open..at));
        }
    }
    found
}

/// Where the closing `>` is, past all quoted values.
fn end_of_tag(text: &str) -> Option<usize> {
    let mut quoted = false;
    text.find(|character| {
        quoted ^= character == '"';
        character == '>' && !quoted
    })
}

fn read(text: &str, span: Range<usize>) -> Tag<'_> {
    let text = text.trim_end_matches('/');
    let (name, mut rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let mut attributes = BTreeMap::new();
    loop {
        rest = rest.trim_start();
        if rest.is_empty() {
            return Tag { span, name, attributes };
        }
        let key_ends = rest.find(|c: char| c == '=' || c.is_whitespace()).unwrap_or(rest.len());
        let (key, after) = rest.split_at(key_ends);
        match after.strip_prefix("=\"").and_then(|value| value.split_once('"')) {
            Some((value, after)) => {
                attributes.insert(key, value);
                rest = after;
            }
            None => {
                attributes.insert(key, "");
                rest = after.trim_start_matches('=');
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_have_names_attributes_and_places() {
        let html = "<p>a</p><!-- <link x> -->\n<link data-bundle rel=\"css\" href=\"a>b.css\" />";
        let tags = tags(html);
        assert_eq!(tags.iter().map(|tag| tag.name).collect::<Vec<_>>(), ["p", "link"]);
        assert_eq!(tags[1].attributes, BTreeMap::from([("data-bundle", ""), ("rel", "css"), ("href", "a>b.css")]));
        assert!(html[tags[1].span.clone()].starts_with("<link") && html[tags[1].span.clone()].ends_with("/>"));
    }
}
