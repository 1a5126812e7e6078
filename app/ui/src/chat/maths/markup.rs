//! Reads the MathML that a formula became. Only elements, attributes and styles that are known here go on: elements of other kinds
//! leave their content, all else is dropped.

use super::{Element, Node};

/// The elements that are drawn.
pub const NAMES: [&str; 24] = [
    "math",
    "mfrac",
    "mi",
    "mmultiscripts",
    "mn",
    "mo",
    "mover",
    "mpadded",
    "mphantom",
    "mprescripts",
    "mroot",
    "mrow",
    "mspace",
    "msqrt",
    "mstyle",
    "msub",
    "msubsup",
    "msup",
    "mtable",
    "mtd",
    "mtext",
    "mtr",
    "munder",
    "munderover",
];
/// Elements whose meaning would be lost with them: browsers do not strike out.
const MEANT: [&str; 2] = ["menclose", "merror"];
const ATTRIBUTES: [&str; 21] = [
    "accent",
    "accentunder",
    "columnspan",
    "depth",
    "display",
    "displaystyle",
    "form",
    "height",
    "largeop",
    "linethickness",
    "lspace",
    "mathvariant",
    "maxsize",
    "minsize",
    "movablelimits",
    "rowspan",
    "rspace",
    "scriptlevel",
    "stretchy",
    "symmetric",
    "width",
];
const STYLES: [&str; 12] = [
    "border-bottom",
    "border-left",
    "border-right",
    "border-top",
    "font-size",
    "justify-items",
    "padding-bottom",
    "padding-left",
    "padding-right",
    "padding-top",
    "text-align",
    "width",
];
/// Levels of elements: drawing calls itself for each.
const DEEPEST: usize = 160;
/// Elements of a formula.
const MOST: usize = 4_000;

/// The element that a text of MathML describes; `None` if it is no such text.
pub fn read(markup: &str) -> Option<Element> {
    // The root, then all open elements.
    let mut open = vec![(String::new(), Element::default())];
    let mut rest = markup;
    let mut count = 0;
    while let Some(at) = rest.find('<') {
        text(&mut open, &rest[..at])?;
        let end = at + tag_end(&rest[at..])?;
        let tag = &rest[at + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            close(&mut open, name)?;
            continue;
        }
        count += 1;
        let (tag, is_empty) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        if count > MOST || open.len() > DEEPEST || MEANT.contains(&name) {
            return None;
        }
        open.push((name.to_owned(), element(name, attributes)?));
        if is_empty {
            close(&mut open, name)?;
        }
    }
    text(&mut open, rest)?;
    let [(_, root)] = <[_; 1]>::try_from(open).ok()?;
    let [Node::Element(math)] = <[_; 1]>::try_from(root.children).ok()? else { return None };
    (math.name == "math").then_some(math)
}

/// Where the tag ends that a text begins with: `>` may stand in an attribute.
fn tag_end(text: &str) -> Option<usize> {
    let mut is_quoted = false;
    text.bytes().position(|letter| {
        is_quoted ^= letter == b'"';
        letter == b'>' && !is_quoted
    })
}

fn known<const COUNT: usize>(all: &[&'static str; COUNT], name: &str) -> Option<&'static str> {
    all.iter().find(|known| **known == name).copied()
}

fn element(name: &str, attributes: &str) -> Option<Element> {
    let mut element = Element { name: known(&NAMES, name).unwrap_or_default(), ..Element::default() };
    let mut rest = attributes.trim_start();
    while !rest.is_empty() {
        let (name, after) = rest.split_once("=\"")?;
        let (value, after) = after.split_once('"')?;
        if let Some(name) = known(&ATTRIBUTES, name).filter(|_| is_plain(value)) {
            element.attributes.push((name, value.to_owned()));
        }
        if name == "style" {
            let pairs = value.split(';').filter_map(|pair| pair.split_once(':'));
            let of_pair = |(name, value): (&str, &str)| Some((known(&STYLES, name.trim())?, value.trim().to_owned()));
            element.styles.extend(pairs.filter_map(of_pair).filter(|(_, value)| is_plain(value)));
        }
        rest = after.trim_start();
    }
    Some(element)
}

/// A word or a length, or several.
fn is_plain(value: &str) -> bool {
    value.len() <= 48 && value.bytes().all(|letter| letter.is_ascii_alphanumeric() || b" .%-".contains(&letter))
}

fn close(open: &mut Vec<(String, Element)>, name: &str) -> Option<()> {
    let (opened, element) = open.pop().filter(|(opened, _)| opened == name)?;
    let (_, parent) = open.last_mut()?;
    if element.name.is_empty() {
        parent.children.extend(element.children);
    } else {
        parent.children.push(Node::Element(element));
    }
    (!opened.is_empty()).then_some(())
}

fn text(open: &mut [(String, Element)], text: &str) -> Option<()> {
    if !text.is_empty() {
        let (_, parent) = open.last_mut()?;
        parent.children.push(Node::Text(unescaped(text)?));
    }
    Some(())
}

fn unescaped(text: &str) -> Option<String> {
    let mut parts = text.split('&');
    let mut whole = parts.next()?.to_owned();
    for part in parts {
        let (name, after) = part.split_once(';')?;
        whole.push(match name {
            "lt" => '<',
            "gt" => '>',
            "amp" => '&',
            "quot" => '"',
            _ => return None,
        });
        whole.push_str(after);
    }
    Some(whole)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn only_what_is_known_goes_on() {
        let math = read(
            r#"<math display="block" onclick="x" class="a"><mi href="x">a &lt; b</mi><script>c</script><mspace width="1em"/></math>"#,
        );
        let math = math.unwrap();
        assert_eq!(math.attributes, [("display", "block".to_owned())]);
        let [Node::Element(letter), Node::Text(script), Node::Element(space)] = math.children.as_slice() else {
            panic!("{math:?}")
        };
        assert_eq!((letter.name, letter.children.as_slice()), ("mi", &[Node::Text("a < b".into())][..]));
        assert!(letter.attributes.is_empty());
        assert_eq!(script, "c", "an element of another kind leaves its content");
        assert_eq!(space.attributes, [("width", "1em".to_owned())]);
    }

    #[test]
    fn of_styles_only_lengths_and_words_go_on() {
        let cell = read(
            r#"<math><mtd style="text-align: left;position:fixed;width:url(x);padding-left: 0;color:red"></mtd></math>"#,
        );
        let Node::Element(cell) = &cell.unwrap().children[0] else { panic!("a cell") };
        assert_eq!(cell.styles, [("text-align", "left".to_owned()), ("padding-left", "0".to_owned())]);
    }

    #[test]
    fn what_is_no_mathml_is_not_read() {
        for wrong in [
            "",
            "x",
            "<mi>x</mi>",
            "<math>",
            "<math></mi>",
            "<math></math></math>",
            "<math><mi></math></mi>",
            "<math",
            "</math>",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
        assert_eq!(read("<math>&nbsp;</math>"), None, "an unknown name");
        assert_eq!(read("<math><menclose><mi>x</mi></menclose></math>"), None, "it would not be struck out");
        assert_eq!(read("<math></math><math></math>"), None, "two of them");
        let deep = format!("<math>{}{}</math>", "<mrow>".repeat(DEEPEST), "</mrow>".repeat(DEEPEST));
        assert_eq!(read(&deep), None);
        assert_eq!(read(&format!("<math>{}</math>", "<mi></mi>".repeat(MOST))), None);
    }
}
