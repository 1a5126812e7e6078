//! Draws Markdown as elements. A model's text is never interpreted as HTML.
//!
//! Elements stay while their text grows, so that a selection, the focus and a screen reader stay where they are: what was
//! drawn is compared with what is to be drawn, and only the difference is changed. Each part has exactly one node.

use leptos::{mount::mount_to, prelude::*};
use potluck_text::texts;
use wasm_bindgen::JsCast;
use web_sys::{Document, Element, HtmlElement, Node, Text};

use super::{
    code_buttons::CodeButtons,
    markdown::{Block, Cell, Item, Row, Span},
    maths,
};
use crate::browser;

/// Changes what is in `parent` from the blocks that were drawn there `before`.
pub fn draw(parent: &Element, before: &[Block], now: &[Block]) {
    patch(parent, before, now);
    let children = parent.children();
    for index in 0..children.length() {
        // Each block runs in the direction of its first letter.
        if let Some(child) = children.item(index).filter(|child| !child.has_attribute("dir")) {
            set(&child, "dir", "auto");
        }
    }
}

/// What has a node of its own.
trait Drawable: PartialEq {
    /// The node of `other` can become that of this one.
    fn is_like(&self, other: &Self) -> bool;
    /// A node, which shows nothing yet.
    fn create(&self) -> Node;
    /// Makes a node show this, which showed `before`.
    fn update(&self, node: &Node, before: Option<&Self>);
}

fn patch<T: Drawable>(parent: &Node, before: &[T], now: &[T]) {
    let mut next = parent.first_child();
    for (index, part) in now.iter().enumerate() {
        let there = next.take();
        match (before.get(index), &there) {
            (Some(old), Some(node)) if part.is_like(old) => {
                if part != old {
                    part.update(node, Some(old));
                }
                next = node.next_sibling();
            }
            _ => {
                let node = part.create();
                part.update(&node, None);
                next = there.as_ref().and_then(Node::next_sibling);
                // A node without a parent can be inserted anywhere.
                let _inserted = match &there {
                    Some(old) => parent.replace_child(&node, old),
                    None => parent.append_child(&node),
                };
            }
        }
    }
    while let Some(node) = next {
        next = node.next_sibling();
        // It is a child of this parent.
        let _removed = parent.remove_child(&node);
    }
}

impl Drawable for Block {
    fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Heading(level, _), Self::Heading(other, _)) => level == other,
            (Self::List { start, .. }, Self::List { start: other, .. }) => start.is_some() == other.is_some(),
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }

    fn create(&self) -> Node {
        match self {
            Self::Paragraph(_) => element("p", ""),
            // The page itself uses headings 1 to 3, so an answer's headings start below them.
            Self::Heading(1, _) => element("h4", "prose-h1"),
            Self::Heading(2, _) => element("h5", "prose-h2"),
            Self::Heading(..) => element("h6", "prose-h3"),
            Self::Code { .. } => code_block(),
            Self::List { start: None, .. } => element("ul", ""),
            Self::List { .. } => element("ol", ""),
            Self::Quote(_) => element("blockquote", ""),
            Self::Table { .. } => table(),
            Self::Rule => element("hr", ""),
        }
        .into()
    }

    fn update(&self, node: &Node, before: Option<&Self>) {
        match self {
            Self::Paragraph(now) | Self::Heading(_, now) => {
                let before = match before {
                    Some(Self::Paragraph(before) | Self::Heading(_, before)) => before.as_slice(),
                    _ => &[],
                };
                patch(node, before, now);
            }
            Self::Code { language, text } => {
                let before = match before {
                    Some(Self::Code { language, text }) => Some((language, text)),
                    _ => None,
                };
                if before.is_none_or(|(old, _)| old != language) {
                    let name = if language.is_empty() { "code" } else { language };
                    within(node, ".code-name", |element| element.set_text_content(Some(name)));
                }
                within(node, "code", |element| grow(element, before.map_or("", |(_, text)| text), text));
            }
            Self::List { start, items } => {
                if let (Some(start), Some(list)) = (start, node.dyn_ref::<Element>()) {
                    set(list, "start", &start.to_string());
                }
                let before = match before {
                    Some(Self::List { items, .. }) => items.as_slice(),
                    _ => &[],
                };
                patch(node, before, items);
            }
            Self::Quote(now) => {
                let before = match before {
                    Some(Self::Quote(before)) => before.as_slice(),
                    _ => &[],
                };
                patch(node, before, now);
            }
            Self::Table { head, rows } => {
                let before = match before {
                    Some(Self::Table { head, rows }) => (head.as_slice(), rows.as_slice()),
                    _ => (&[][..], &[][..]),
                };
                within(node, "thead > tr", |row| patch(row, before.0, head));
                within(node, "tbody", |body| patch(body, before.1, rows));
            }
            Self::Rule => {}
        }
    }
}

impl Drawable for Item {
    fn is_like(&self, other: &Self) -> bool {
        self.done.is_some() == other.done.is_some()
    }

    fn create(&self) -> Node {
        if self.done.is_none() {
            return element("li", "").into();
        }
        let item = element("li", "task");
        let tick = element("input", "");
        for (name, value) in [("type", "checkbox"), ("disabled", "")] {
            set(&tick, name, value);
        }
        append(&item, &[&tick, &element("div", "")]);
        item.into()
    }

    fn update(&self, node: &Node, before: Option<&Self>) {
        let old = before.map_or(&[][..], |before| &before.blocks);
        let Some(done) = self.done else { return patch(node, old, &self.blocks) };
        within(node, "input", |tick| {
            set(tick, "aria-label", if done { texts().answer.task_done() } else { texts().answer.task_open() });
            // Whether it is on is decided by being there.
            let _there = tick.toggle_attribute_with_force("checked", done);
        });
        within(node, "div", |inside| patch(inside, old, &self.blocks));
    }
}

impl Drawable for Row {
    fn is_like(&self, _: &Self) -> bool {
        true
    }

    fn create(&self) -> Node {
        element("tr", "").into()
    }

    fn update(&self, node: &Node, before: Option<&Self>) {
        patch(node, before.map_or(&[][..], Vec::as_slice), self);
    }
}

impl Drawable for Cell {
    fn is_like(&self, other: &Self) -> bool {
        (self.is_head, self.at_end) == (other.is_head, other.at_end)
    }

    fn create(&self) -> Node {
        let cell = element(if self.is_head { "th" } else { "td" }, if self.at_end { "cell-end" } else { "" });
        if self.is_head {
            set(&cell, "scope", "col");
        }
        cell.into()
    }

    fn update(&self, node: &Node, before: Option<&Self>) {
        patch(node, before.map_or(&[][..], |before| &before.spans), &self.spans);
    }
}

impl Drawable for Span {
    fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }

    fn create(&self) -> Node {
        match self {
            Self::Text(_) => return document().create_text_node("").into(),
            Self::AsWritten(_) => element("span", "as-written"),
            Self::Formula(_) => element("span", ""),
            Self::Code(_) => element("code", ""),
            Self::Strong(_) => element("strong", ""),
            Self::Emphasis(_) => element("em", ""),
            Self::Struck(_) => element("s", ""),
            Self::Link(..) => {
                let link = element("a", "");
                set(&link, "target", "_blank");
                set(&link, "rel", "noopener noreferrer nofollow");
                link
            }
            Self::Break => element("br", ""),
        }
        .into()
    }

    fn update(&self, node: &Node, before: Option<&Self>) {
        match self {
            Self::Text(now) | Self::AsWritten(now) | Self::Code(now) => {
                let before = match before {
                    Some(Self::Text(before) | Self::AsWritten(before) | Self::Code(before)) => before,
                    _ => "",
                };
                grow(node, before, now);
            }
            Self::Strong(now) | Self::Emphasis(now) | Self::Struck(now) | Self::Link(_, now) => {
                if let (Self::Link(address, _), Some(link)) = (self, node.dyn_ref::<Element>()) {
                    set(link, "href", address);
                }
                let before = match before {
                    Some(
                        Self::Strong(before) | Self::Emphasis(before) | Self::Struck(before) | Self::Link(_, before),
                    ) => before.as_slice(),
                    _ => &[],
                };
                patch(node, before, now);
            }
            Self::Formula(now) => {
                if let Some(place) = node.dyn_ref::<Element>() {
                    draw_formula(place, now);
                }
            }
            Self::Break => {}
        }
    }
}

/// Shows a formula, or its text if it cannot be read.
fn draw_formula(place: &Element, formula: &str) {
    let Some((class, drawn)) = maths::read(formula).and_then(|read| {
        let class = match (read.is_block(), read.may_be_long()) {
            (true, _) => "formula formula-block",
            (false, true) => "formula formula-long",
            (false, false) => "formula",
        };
        Some((class, maths::draw(&document(), read)?))
    }) else {
        place.set_class_name("as-written");
        return place.set_text_content(Some(formula));
    };
    place.set_class_name(class);
    place.set_text_content(None);
    append(place, &[&drawn]);
}

/// Changes a text node, or the only one in an element. What both texts begin with is not touched: a selection in it stays.
fn grow(node: &Node, before: &str, now: &str) {
    let Some(text) = node.dyn_ref::<Text>().cloned().or_else(|| only_text(node)) else { return };
    // Offsets are within the text, so neither can fail.
    if let Some(more) = now.strip_prefix(before) {
        let _appended = text.append_data(more);
    } else {
        let same = common_prefix(before, now);
        let (kept, old) = (length(&before[..same]), length(before));
        let _replaced = text.replace_data(kept, old - kept, &now[same..]);
    }
}

fn only_text(element: &Node) -> Option<Text> {
    let inside = element.first_child().or_else(|| element.append_child(&document().create_text_node("")).ok());
    inside.and_then(|node| node.dyn_into().ok())
}

/// Bytes that both texts begin with.
fn common_prefix(one: &str, other: &str) -> usize {
    let same = one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count();
    one.floor_char_boundary(same)
}

/// In the units of the browser's texts.
fn length(text: &str) -> u32 {
    u32::try_from(text.encode_utf16().count()).unwrap_or(u32::MAX)
}

/// Code with its language and a copy button.
fn code_block() -> Element {
    let figure = element("figure", "code");
    let top = element("figcaption", "code-top");
    let (scroll, code) = (element("pre", ""), element("code", ""));
    // Whatever a comment in it is written in.
    set(&figure, "dir", "ltr");
    set(&scroll, "tabindex", "0");
    let name = element("span", "code-name");
    append(&top, &[&name]);
    append(&scroll, &[&code]);
    append(&figure, &[&top, &scroll]);
    let code = StoredValue::new_local(code);
    let text = move || code.try_with_value(|code| code.text_content()).flatten().unwrap_or_default();
    let (name, scroll_kept) = (StoredValue::new_local(name), StoredValue::new_local(scroll));
    let language = move || name.try_with_value(|name| name.text_content()).flatten().unwrap_or_default();
    let wrap = move |wraps: bool| {
        scroll_kept.try_with_value(|scroll| set(scroll, "class", if wraps { "code-wrapped" } else { "" }));
    };
    let button = move || view! { <CodeButtons text=Signal::derive(text) language=Signal::derive(language) wrap /> };
    // It goes with the answer, to whose owner the value belongs.
    let _mounted = StoredValue::new_local(mount_to(top.unchecked_into::<HtmlElement>(), button));
    figure
}

fn table() -> Element {
    let scroll = element("div", "table-scroll");
    for (name, value) in [("tabindex", "0"), ("role", "region"), ("aria-label", texts().answer.table())] {
        set(&scroll, name, value);
    }
    let (table, head) = (element("table", ""), element("thead", ""));
    append(&head, &[&element("tr", "")]);
    append(&table, &[&head, &element("tbody", "")]);
    append(&scroll, &[&table]);
    scroll
}

fn document() -> Document {
    // A window with a page has a document.
    browser::window().document().unwrap_or_else(|| unreachable!("the page runs in a document"))
}

fn element(name: &'static str, class: &str) -> Element {
    // All names are valid.
    let element = document().create_element(name).unwrap_or_else(|_| unreachable!("{name} is a valid name"));
    if !class.is_empty() {
        element.set_class_name(class);
    }
    element
}

fn append(parent: &Element, children: &[&Element]) {
    for child in children {
        // A new element can be appended anywhere.
        let _appended = parent.append_child(child);
    }
}

fn set(element: &Element, name: &str, value: &str) {
    // All names are valid.
    let _set = element.set_attribute(name, value);
}

/// Does something with the first element within `node` that matches.
fn within(node: &Node, selector: &str, change: impl FnOnce(&Element)) {
    let found = node.dyn_ref::<Element>().and_then(|element| element.query_selector(selector).ok().flatten());
    if let Some(found) = found {
        change(&found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prefix_that_stays_ends_between_letters() {
        assert_eq!(common_prefix("Hello **bo", "Hello "), 6);
        assert_eq!(common_prefix("aä", "aö"), 1, "the first byte of both is the same");
        assert_eq!(common_prefix("", "a"), 0);
        assert_eq!(length("a😀"), 3);
    }
}
