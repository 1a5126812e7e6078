//! Mends what formulas lack: a line below a table, and roots where the device has no font for them.

use super::{Element, Node};

/// A line of the text's colour.
const LINE: &str = "0.05em solid currentcolor";

/// A line at the end of a table makes a row without anything in it. It becomes the table's lower edge.
pub fn close_tables(element: &mut Element) {
    for child in &mut element.children {
        if let Node::Element(child) = child {
            close_tables(child);
        }
    }
    let is_lined =
        |cell: &Node| matches!(cell, Node::Element(cell) if cell.styles.iter().any(|(name, _)| *name == "border-top"));
    let is_empty = |cell: &Node| matches!(cell, Node::Element(cell) if cell.children.is_empty());
    if element.name == "mtable"
        && let Some(Node::Element(row)) = element.children.pop_if(|row| {
            matches!(row, Node::Element(row) if row.children.iter().all(is_empty) && row.children.iter().any(is_lined))
        })
        && !row.children.is_empty()
    {
        element.styles.push(("border-bottom", LINE.to_owned()));
    }
}

/// Roots as a sign with a line above what follows it. A browser draws them by itself only with a font for mathematics.
pub fn spell_roots(element: &mut Element) {
    for child in &mut element.children {
        if let Node::Element(child) = child {
            spell_roots(child);
        }
    }
    let children = match element.name {
        "msqrt" => std::mem::take(&mut element.children),
        "mroot" => {
            let mut children = std::mem::take(&mut element.children).into_iter();
            let root = children.next();
            let index = children.next().map(|index| node("msup", vec![node("mrow", Vec::new()), index]));
            element.children.extend(index);
            root.into_iter().collect()
        }
        _ => return,
    };
    element.name = "mrow";
    let mut under = Element { name: "mrow", children, ..Element::default() };
    under.styles.push(("border-top", LINE.to_owned()));
    let sign = Element { name: "mo", children: vec![Node::Text("√".to_owned())], ..Element::default() };
    let attributes = vec![("lspace", "0".to_owned()), ("rspace", "0".to_owned())];
    element.children.extend([Node::Element(Element { attributes, ..sign }), Node::Element(under)]);
}

fn node(name: &'static str, children: Vec<Node>) -> Node {
    Node::Element(Element { name, children, ..Element::default() })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::{super::markup, *};

    #[test]
    fn a_line_at_the_end_of_a_table_is_its_edge() {
        let row = r#"<mtr><mtd><mi>x</mi></mtd></mtr>"#;
        let last = r#"<mtr><mtd style="border-top: 0.05em solid currentcolor;"></mtd></mtr>"#;
        let mut math = markup::read(&format!("<math><mtable>{row}{last}</mtable></math>")).unwrap();
        close_tables(&mut math);
        let Node::Element(table) = &math.children[0] else { panic!("a table") };
        assert_eq!((table.children.len(), table.styles[0].0), (1, "border-bottom"));
        let mut math = markup::read(&format!("<math><mtable>{row}<mtr><mtd></mtd></mtr></mtable></math>")).unwrap();
        let before = math.clone();
        close_tables(&mut math);
        assert_eq!(math, before, "an empty row without a line stays");
    }

    #[test]
    fn roots_are_spelled_with_a_sign() {
        let mut math =
            markup::read("<math><msqrt><mi>x</mi><mroot><mn>8</mn><mn>3</mn></mroot></msqrt></math>").unwrap();
        spell_roots(&mut math);
        let told = format!("{math:?}");
        assert!(!told.contains("msqrt") && !told.contains("mroot"));
        assert_eq!(told.matches('√').count(), 2);
        assert!(told.find('3') < told.find('8'), "the index stands before its root");
    }
}
