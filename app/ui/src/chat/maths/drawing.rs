//! Formulas as elements of the page.

use std::cell::OnceCell;

use wasm_bindgen::JsCast;
use web_sys::{Document, HtmlElement};

use super::{Element, Node, mending};

/// The namespace of MathML.
const MATHML: &str = "http://www.w3.org/1998/Math/MathML";

thread_local! {
    /// The browser draws roots: it has a font for mathematics.
    static DRAWS_ROOTS: OnceCell<bool> = const { OnceCell::new() };
}

/// Makes the element that shows a formula; nothing if the browser refuses.
pub fn draw(document: &Document, mut formula: Element) -> Option<web_sys::Element> {
    if formula.has("msqrt") || formula.has("mroot") {
        let draws_roots = DRAWS_ROOTS.with(|known| *known.get_or_init(|| draws_roots(document).unwrap_or(true)));
        if !draws_roots {
            mending::spell_roots(&mut formula);
        }
    }
    make(document, &formula)
}

fn make(document: &Document, formula: &Element) -> Option<web_sys::Element> {
    let element = document.create_element_ns(Some(MATHML), formula.name).ok()?;
    for (name, value) in &formula.attributes {
        element.set_attribute(name, value).ok()?;
    }
    if !formula.styles.is_empty() {
        // An element of MathML has a style as one of HTML has. The page's policy refuses the attribute, but not this.
        let style = element.unchecked_ref::<HtmlElement>().style();
        for (name, value) in &formula.styles {
            style.set_property(name, value).ok()?;
        }
    }
    for child in &formula.children {
        let child: web_sys::Node = match child {
            Node::Element(child) => make(document, child)?.into(),
            Node::Text(text) => document.create_text_node(text).into(),
        };
        element.append_child(&child).ok()?;
    }
    Some(element)
}

/// Whether a root is wider than what is in it.
fn draws_roots(document: &Document) -> Option<bool> {
    let place: HtmlElement = document.create_element("span").ok()?.dyn_into().ok()?;
    place.set_class_name("formula formula-measured");
    document.body()?.append_child(&place).ok()?;
    let letter = || Element { name: "mi", children: vec![Node::Text("x".to_owned())], ..Element::default() };
    let width = |name: &'static str| {
        let inside = Element { name, children: vec![Node::Element(letter())], ..Element::default() };
        let math = Element { name: "math", children: vec![Node::Element(inside)], ..Element::default() };
        place.set_text_content(None);
        let math: web_sys::Node = make(document, &math)?.into();
        place.append_child(&math).ok()?;
        Some(place.offset_width())
    };
    let widths = (width("mrow"), width("msqrt"));
    place.remove();
    Some(widths.1? > widths.0? + 2)
}
